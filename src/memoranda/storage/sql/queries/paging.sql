-- name: leave_place
INSERT INTO left_places (tenant_id, key, seq, left_at) VALUES (?, ?, ?, ?)
ON CONFLICT (tenant_id, key) DO UPDATE SET seq = excluded.seq, left_at = excluded.left_at

-- name: drop_left_places
DELETE FROM left_places WHERE tenant_id = ? AND left_at < ?

-- name: left_place
SELECT seq FROM left_places WHERE tenant_id = ? AND key = ? AND left_at >= ?
