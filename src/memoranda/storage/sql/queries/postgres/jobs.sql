-- name: claim_job (rows that another worker is claiming are stepped over)
UPDATE jobs SET state = 'running', lease_owner = ?1, lease_until = ?2, updated_at = ?3,
    attempts = attempts + CASE state WHEN 'queued' THEN 1 ELSE 0 END,
    deaths = deaths + CASE state WHEN 'queued' THEN 0 ELSE 1 END
WHERE (tenant_id, id) = (
    SELECT tenant_id, id FROM jobs
    WHERE lane = ?4 AND (
        (state = 'queued' AND (run_at <= ?3 OR run_at > ?5))
        OR (state = 'running' AND (lease_until < ?3 OR lease_until > ?5))
    )
    ORDER BY run_at, seq LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING tenant_id, id, kind, payload, cursor, done, total, attempts, deaths
