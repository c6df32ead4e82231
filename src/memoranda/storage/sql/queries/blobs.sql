-- name: begin_blob
INSERT INTO blobs (tenant_id, id, bytes, state, touched_at) VALUES (?, ?, 0, 'writing', ?) ON CONFLICT DO NOTHING

-- name: grow_blob
UPDATE blobs SET bytes = bytes + ?, state = ?, touched_at = ? WHERE tenant_id = ? AND id = ? AND state = 'writing'

-- name: add_blob_piece
INSERT INTO blob_pieces (tenant_id, id, piece, data) VALUES (?, ?, ?, ?)

-- name: blob_bytes
SELECT bytes FROM blobs WHERE tenant_id = ? AND id = ? AND state = 'complete'

-- name: blob_piece
SELECT data FROM blob_pieces WHERE tenant_id = ? AND id = ? AND piece = ?

-- name: end_blob
UPDATE blobs SET state = 'going', touched_at = ? WHERE tenant_id = ? AND id = ? AND state IN (?, ?)

-- name: last_blob_piece
SELECT max(piece) FROM blob_pieces WHERE tenant_id = ? AND id = ?

-- name: drop_blob_pieces
DELETE FROM blob_pieces WHERE tenant_id = ? AND id = ? AND piece < ?

-- name: drop_blob
DELETE FROM blobs WHERE tenant_id = ? AND id = ? AND state = 'going'

-- name: held_blobs
SELECT tenant_id, id, state FROM blobs WHERE (tenant_id, id) > (?, ?) AND touched_at <= ?
ORDER BY tenant_id, id LIMIT ?
