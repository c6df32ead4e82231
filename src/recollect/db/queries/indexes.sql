-- name: note_unsettled
INSERT INTO unsettled (tenant_id, rev, since, noted_at) VALUES (?, ?, ?, ?)

-- name: settle
DELETE FROM unsettled WHERE tenant_id = ? AND rev = ?

-- name: unsettled_before
SELECT tenant_id, rev, since FROM unsettled WHERE noted_at < ? ORDER BY rev LIMIT 1000

-- name: moved_since
SELECT seq FROM memories WHERE tenant_id = ? AND rev > ? AND seq IN (SELECT value FROM {seqs ?} wanted)
