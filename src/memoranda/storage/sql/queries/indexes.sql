-- name: note_unsettled
INSERT INTO unsettled (tenant_id, rev, since, noted_at) VALUES (?, ?, ?, ?)

-- name: settle
DELETE FROM unsettled WHERE tenant_id = ? AND rev = ?

-- name: unsettled_before
SELECT count(*), min(since) FROM unsettled WHERE noted_at < ?

-- name: settle_before
DELETE FROM unsettled WHERE noted_at < ? AND rev <= ?

-- name: changed_tenants
SELECT tenant_id FROM tenants t
WHERE EXISTS (SELECT 1 FROM memories m WHERE m.tenant_id = t.tenant_id AND m.seq > ?1)
    OR EXISTS (SELECT 1 FROM memories m WHERE m.tenant_id = t.tenant_id AND m.rev <> m.seq AND m.rev > ?1)
    OR EXISTS (SELECT 1 FROM removals r WHERE r.tenant_id = t.tenant_id AND r.rev > ?1)
ORDER BY tenant_id

-- name: moved_since
SELECT seq FROM memories WHERE tenant_id = ?1 AND rev > ?2 AND seq IN (SELECT value FROM {seqs ?3} wanted)
UNION ALL
SELECT seq FROM removals WHERE tenant_id = ?1 AND rev > ?2 AND seq IN (SELECT value FROM {seqs ?3} wanted)

-- name: keepers
SELECT key, value FROM meta WHERE key IN ('keeps.index', 'keeps.words')

-- name: end_filling
DELETE FROM meta WHERE key = ? AND value = ?
