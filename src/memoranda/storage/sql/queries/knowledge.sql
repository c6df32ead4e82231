-- Files, vector stores, what is in them. Lists are composed in code (`knowledge/records.py`), for their order.

-- name: add_file
INSERT INTO files (tenant_id, id, seq, filename, bytes, purpose, media_type, sha256, user_id, created_at, expires_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: files_by_id
SELECT f.tenant_id, f.id, f.seq, f.filename, f.bytes, f.purpose, f.media_type, f.sha256, f.user_id, f.created_at, f.expires_at
FROM {texts ?2} wanted {join} files f ON f.tenant_id = ?1 AND f.id = wanted.value

-- name: drop_file
DELETE FROM files WHERE tenant_id = ? AND id = ?

-- name: hashes_of_files
SELECT seq, id, sha256 FROM files WHERE tenant_id = ? AND seq > ? ORDER BY seq LIMIT ?

-- name: expired_files
SELECT tenant_id, id FROM files WHERE expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?

-- name: usage_of_files
SELECT count(*), coalesce(CAST(sum(bytes) AS BIGINT), 0) FROM files WHERE tenant_id = ?

-- name: pending_bytes
SELECT coalesce(CAST(sum(p.bytes) AS BIGINT), 0) FROM uploads u
JOIN upload_parts p ON p.tenant_id = u.tenant_id AND p.upload_id = u.id WHERE u.tenant_id = ? AND u.status = 'pending'

-- name: add_upload
INSERT INTO uploads (tenant_id, id, filename, bytes, purpose, media_type, status, user_id, expires_seconds, created_at,
    expires_at)
VALUES (?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?)

-- name: get_upload
SELECT tenant_id, id, filename, bytes, purpose, media_type, status, user_id, file_id, expires_seconds, created_at, expires_at
FROM uploads WHERE tenant_id = ? AND id = ?

-- name: end_upload
UPDATE uploads SET status = ?, file_id = ? WHERE tenant_id = ? AND id = ? AND status = 'pending'

-- name: expired_uploads
SELECT tenant_id, id FROM uploads WHERE status = 'pending' AND expires_at <= ? ORDER BY expires_at LIMIT ?

-- name: drop_ended_uploads
DELETE FROM uploads WHERE status <> 'pending' AND expires_at <= ?

-- name: drop_upload_of (the upload that a file came by)
DELETE FROM uploads WHERE tenant_id = ? AND file_id = ?

-- name: add_part
INSERT INTO upload_parts (tenant_id, upload_id, id, bytes, created_at) VALUES (?, ?, ?, ?, ?)

-- name: parts_of
SELECT id, bytes, created_at FROM upload_parts WHERE tenant_id = ? AND upload_id = ? ORDER BY id

-- name: drop_parts
DELETE FROM upload_parts WHERE tenant_id = ? AND upload_id = ?

-- name: blobs_known (which of these ids of a tenant belong to a file or to a part of a pending upload)
SELECT f.id FROM {texts ?2} wanted {join} files f ON f.tenant_id = ?1 AND f.id = wanted.value
UNION ALL
SELECT p.id FROM upload_parts p JOIN uploads u ON u.tenant_id = p.tenant_id AND u.id = p.upload_id
WHERE p.tenant_id = ?1 AND u.status = 'pending' AND p.id IN (SELECT value FROM {texts ?2} wanted)

-- name: add_store
INSERT INTO vector_stores (tenant_id, id, seq, name, description, metadata, chunking, model, dim, user_id, sharing,
    expires_days, created_at, last_active_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: stores_by_id
SELECT v.tenant_id, v.id, v.seq, v.name, v.description, v.metadata, v.chunking, v.model, v.dim, v.user_id, v.sharing,
    v.expires_days, v.expired, v.created_at, v.last_active_at
FROM {texts ?2} wanted {join} vector_stores v ON v.tenant_id = ?1 AND v.id = wanted.value

-- name: shared_stores
SELECT v.tenant_id, v.id, v.seq, v.name, v.description, v.metadata, v.chunking, v.model, v.dim, v.user_id, v.sharing,
    v.expires_days, v.expired, v.created_at, v.last_active_at
FROM vector_stores v WHERE v.sharing = 'everyone' AND v.id IN (SELECT value FROM {texts ?} wanted)

-- name: set_store
UPDATE vector_stores
SET name = ?, description = ?, metadata = ?, chunking = ?, sharing = ?, expires_days = ?, last_active_at = ?
WHERE tenant_id = ? AND id = ?

-- name: touch_store
UPDATE vector_stores SET last_active_at = ? WHERE tenant_id = ? AND id = ?

-- name: drop_store
DELETE FROM vector_stores WHERE tenant_id = ? AND id = ?

-- name: count_stores
SELECT count(*) FROM vector_stores WHERE tenant_id = ?

-- name: idle_stores
SELECT tenant_id, id FROM vector_stores
WHERE expires_days IS NOT NULL AND expired = 0 AND last_active_at + expires_days * 86400000000 <= ?
ORDER BY last_active_at LIMIT ?

-- name: expire_store
UPDATE vector_stores SET expired = 1 WHERE tenant_id = ? AND id = ?

-- name: remodel_stores
UPDATE vector_stores SET model = ?, dim = ? WHERE model <> ? OR dim <> ?

-- name: writers_of
SELECT w.store_id, w.user_id FROM {texts ?2} wanted
{join} store_writers w ON w.tenant_id = ?1 AND w.store_id = wanted.value ORDER BY w.store_id, w.user_id

-- name: drop_writers
DELETE FROM store_writers WHERE tenant_id = ? AND store_id = ?

-- name: add_writer
INSERT INTO store_writers (tenant_id, store_id, user_id) VALUES (?, ?, ?) ON CONFLICT DO NOTHING

-- name: counts_of_stores
SELECT s.store_id, s.status, count(*), CAST(sum(s.usage_bytes) AS BIGINT) FROM {texts ?2} wanted
{join} store_files s ON s.tenant_id = ?1 AND s.store_id = wanted.value GROUP BY s.store_id, s.status

-- name: count_store_files
SELECT count(*) FROM store_files WHERE tenant_id = ? AND store_id = ?

-- name: store_files_by_id
SELECT s.store_id, s.file_id, s.seq, s.status, s.error_code, s.error_message, s.attributes, s.chunking, s.batch_id, s.writing,
    s.chunk_count, s.usage_bytes, s.title, s.notes, s.created_at, f.filename, f.bytes, f.sha256
FROM {texts ?3} wanted {join} store_files s ON s.tenant_id = ?1 AND s.store_id = ?2 AND s.file_id = wanted.value
JOIN files f ON f.tenant_id = s.tenant_id AND f.id = s.file_id

-- name: places_of_file
SELECT store_id, seq FROM store_files WHERE tenant_id = ? AND file_id = ?

-- name: attachment_state
SELECT status, attributes FROM store_files WHERE tenant_id = ? AND store_id = ? AND file_id = ? AND seq = ?

-- name: begin_writing
UPDATE store_files SET writing = 1 WHERE tenant_id = ? AND store_id = ? AND file_id = ? AND seq = ?

-- name: complete_file
UPDATE store_files SET status = 'completed', writing = 0, chunk_count = ?, usage_bytes = ?, title = ?, notes = ?
WHERE tenant_id = ? AND store_id = ? AND file_id = ? AND seq = ?

-- name: note_file
UPDATE store_files SET notes = ? WHERE tenant_id = ? AND store_id = ? AND file_id = ? AND seq = ? AND status = 'in_progress'

-- name: fail_file
UPDATE store_files SET status = 'failed', error_code = ?, error_message = ?
WHERE tenant_id = ? AND store_id = ? AND file_id = ? AND seq = ? AND status = 'in_progress'

-- name: cancel_files
UPDATE store_files SET status = 'cancelled' WHERE tenant_id = ? AND batch_id = ? AND status = 'in_progress'

-- name: set_attributes
UPDATE store_files SET attributes = ? WHERE tenant_id = ? AND store_id = ? AND file_id = ?

-- name: drop_store_file
DELETE FROM store_files WHERE tenant_id = ? AND store_id = ? AND file_id = ?

-- name: drop_store_files
DELETE FROM store_files WHERE tenant_id = ? AND store_id = ?

-- name: add_batch
INSERT INTO file_batches (tenant_id, id, store_id, created_at) VALUES (?, ?, ?, ?)

-- name: get_batch
SELECT id, store_id, cancelled, created_at FROM file_batches WHERE tenant_id = ? AND store_id = ? AND id = ?

-- name: cancel_batch
UPDATE file_batches SET cancelled = 1 WHERE tenant_id = ? AND id = ?

-- name: counts_of_batch
SELECT status, count(*) FROM store_files WHERE tenant_id = ? AND batch_id = ? GROUP BY status

-- name: writing_in_batch
SELECT seq FROM store_files WHERE tenant_id = ? AND batch_id = ? AND writing = 1

-- name: hidden_in
SELECT store_id, seq FROM store_files
WHERE tenant_id = ?1 AND store_id IN (SELECT value FROM {texts ?2} wanted) AND writing = 1
UNION
SELECT store_id, attached FROM removing WHERE tenant_id = ?1 AND store_id IN (SELECT value FROM {texts ?2} wanted)

-- name: add_removing
INSERT INTO removing (tenant_id, store_id, attached) VALUES (?, ?, ?) ON CONFLICT DO NOTHING

-- name: all_removing
SELECT tenant_id, store_id, attached FROM removing

-- name: drop_removing
DELETE FROM removing WHERE tenant_id = ? AND store_id = ? AND attached = ?

-- name: chunks_of_attachment
SELECT seq FROM chunks WHERE tenant_id = ? AND attached = ? ORDER BY idx LIMIT ?

-- name: chunks_from
SELECT seq FROM chunks WHERE tenant_id = ? AND attached = ? AND idx >= ? ORDER BY idx LIMIT ?

-- name: count_attached
SELECT count(*) FROM chunks WHERE tenant_id = ? AND attached = ?

-- name: chunks_of_store
SELECT seq FROM memories WHERE tenant_id = ? AND channel_id = ? AND kind = 'chunk' ORDER BY seq LIMIT ?

-- name: places_of_chunks
SELECT c.seq, c.attached, c.idx, c.start, c.stop, c.page, COALESCE(c.last_page, c.page), c.heading, c.tokens, s.store_id, s.file_id, s.attributes, s.title, f.filename
FROM {seqs ?2} wanted {join} chunks c ON c.tenant_id = ?1 AND c.seq = wanted.value
JOIN store_files s ON s.tenant_id = c.tenant_id AND s.seq = c.attached
JOIN files f ON f.tenant_id = s.tenant_id AND f.id = s.file_id

-- name: chunks_between
SELECT c.idx, c.start, c.stop, c.heading, c.tokens, m.content, c.page, COALESCE(c.last_page, c.page), m.header FROM chunks c
JOIN memories m ON m.tenant_id = c.tenant_id AND m.seq = c.seq
WHERE c.tenant_id = ? AND c.attached = ? AND c.idx >= ? AND c.idx <= ? ORDER BY c.idx

-- name: chunks_after
SELECT m.id, c.idx, c.start, c.stop, c.page, COALESCE(c.last_page, c.page), c.heading, c.tokens, m.content FROM chunks c
JOIN memories m ON m.tenant_id = c.tenant_id AND m.seq = c.seq
WHERE c.tenant_id = ? AND c.attached = ? AND c.idx > ? ORDER BY c.idx LIMIT ?

-- name: place_of_chunk
SELECT c.idx FROM memories m JOIN chunks c ON c.tenant_id = m.tenant_id AND c.seq = m.seq
WHERE m.tenant_id = ? AND m.id = ? AND c.attached = ?

-- name: part_vectors
SELECT seq, vector FROM embeddings
WHERE tenant_id = ? AND space = ? AND part = 0 AND seq IN (SELECT value FROM {seqs ?} wanted)

-- name: count_chunks
SELECT count(*) FROM chunks WHERE tenant_id = ?

-- name: quotas_of
SELECT name, value FROM quotas WHERE tenant_id = ?

-- name: set_quota
INSERT INTO quotas (tenant_id, name, value) VALUES (?, ?, ?)
ON CONFLICT (tenant_id, name) DO UPDATE SET value = excluded.value

-- name: drop_quota
DELETE FROM quotas WHERE tenant_id = ? AND name = ?

-- name: drop_upload
DELETE FROM uploads WHERE tenant_id = ? AND id = ?

-- name: blank_store (what describes it is forgotten)
UPDATE vector_stores SET name = '', description = NULL, metadata = '{}' WHERE tenant_id = ? AND id = ?

-- name: count_written_after (memories that were written after a file was read)
SELECT count(*) FROM memories WHERE tenant_id = ? AND metadata LIKE '%"$read":%' AND metadata LIKE ?
