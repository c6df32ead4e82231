-- name: claim_job (rows that another worker is claiming are stepped over)
UPDATE jobs SET state = 'running', lease_owner = ?1, lease_until = ?2, attempts = attempts + 1, updated_at = ?3
WHERE (tenant_id, id) = (
    SELECT tenant_id, id FROM jobs
    WHERE lane = ?4 AND ((state = 'queued' AND run_at <= ?3) OR (state = 'running' AND lease_until < ?3))
    ORDER BY run_at, seq LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING tenant_id, id, kind, payload, cursor, done, total, attempts
