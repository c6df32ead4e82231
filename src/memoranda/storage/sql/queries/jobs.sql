-- name: add_job
INSERT INTO jobs (tenant_id, id, seq, kind, dedup_key, lane, state, payload, run_at, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, 'queued', ?, ?, ?, ?) ON CONFLICT DO NOTHING

-- name: twin_job
SELECT id FROM jobs WHERE tenant_id = ? AND kind = ? AND dedup_key = ? AND state IN ('queued', 'running')

-- name: get_job
SELECT id, kind, state, done, total, attempts, error, result, created_at, updated_at FROM jobs
WHERE tenant_id = ? AND id = ?

-- name: told_job
SELECT kind, payload FROM jobs WHERE tenant_id = ? AND id = ?

-- name: list_jobs
SELECT id, kind, state, done, total, attempts, error, result, created_at, updated_at FROM jobs
WHERE tenant_id = ? ORDER BY seq DESC LIMIT ?

-- name: count_jobs
SELECT state, count(*) FROM jobs GROUP BY state

-- name: count_waiting_jobs
SELECT kind, count(*) FROM jobs WHERE lane IN (?, ?, ?, ?) AND state IN ('queued', 'running')
GROUP BY kind ORDER BY kind

-- name: count_lane
SELECT count(*) FROM jobs WHERE lane = ? AND state IN ('queued', 'running')

-- name: claim_job (one that is due beyond ?5 was queued while the clock was ahead: it is due)
UPDATE jobs SET state = 'running', lease_owner = ?1, lease_until = ?2, updated_at = ?3,
    attempts = attempts + CASE state WHEN 'queued' THEN 1 ELSE 0 END,
    deaths = deaths + CASE state WHEN 'queued' THEN 0 ELSE 1 END
WHERE (tenant_id, id) = (
    SELECT tenant_id, id FROM (
        SELECT * FROM (
            SELECT tenant_id, id, run_at, seq FROM jobs WHERE lane = ?4 AND state = 'queued' AND run_at <= ?3
            ORDER BY run_at, seq LIMIT 1
        ) wanted_queued
        UNION ALL
        SELECT * FROM (
            SELECT tenant_id, id, run_at, seq FROM jobs WHERE lane = ?4 AND state = 'queued' AND run_at > ?5
            ORDER BY run_at, seq LIMIT 1
        ) wanted_ahead
        UNION ALL
        SELECT tenant_id, id, run_at, seq FROM jobs
        WHERE lane = ?4 AND state = 'running' AND (lease_until < ?3 OR lease_until > ?5)
    ) wanted_due
    ORDER BY run_at, seq LIMIT 1
)
RETURNING tenant_id, id, kind, payload, cursor, done, total, attempts, deaths

-- name: claim_this_job (unless a worker has it)
UPDATE jobs SET state = 'running', lease_owner = ?1, lease_until = ?2, updated_at = ?3,
    attempts = attempts + CASE state WHEN 'queued' THEN 1 ELSE 0 END,
    deaths = deaths + CASE state WHEN 'queued' THEN 0 ELSE 1 END
WHERE tenant_id = ?4 AND id = ?5 AND (state = 'queued' OR (state = 'running' AND lease_until < ?3))
RETURNING tenant_id, id, kind, payload, cursor, done, total, attempts, deaths

-- name: jobs_under_way (of one kind, those that have a key)
SELECT id, payload FROM jobs
WHERE tenant_id = ? AND kind = ? AND dedup_key >= '' AND state IN ('queued', 'running') ORDER BY seq

-- name: next_job_at (0 for one that is due beyond ?2)
SELECT min(CASE WHEN due > ?2 THEN 0 ELSE due END) FROM (
    SELECT CASE state WHEN 'queued' THEN run_at ELSE lease_until END AS due FROM jobs
    WHERE lane = ?1 AND state IN ('queued', 'running')
) wanted

-- name: release_jobs
UPDATE jobs SET state = 'queued', attempts = attempts - 1, deaths = deaths + 1, lease_owner = NULL, lease_until = NULL
WHERE lane IN (0, 1, 2, 3) AND state = 'running'

-- name: give_back_jobs
UPDATE jobs SET state = 'queued', attempts = attempts - 1, lease_owner = NULL, lease_until = NULL
WHERE lane IN (0, 1, 2, 3) AND state = 'running' AND lease_owner LIKE ?

-- name: renew_job
UPDATE jobs SET lease_until = ? WHERE tenant_id = ? AND id = ? AND lease_owner = ? AND state = 'running'

-- name: progress_job
UPDATE jobs SET done = ?, total = ?, cursor = ?, lease_until = ?, updated_at = ?
WHERE tenant_id = ? AND id = ? AND lease_owner = ? AND state = 'running' RETURNING cancelling

-- name: set_cursor
UPDATE jobs SET cursor = ? WHERE tenant_id = ? AND id = ?

-- name: end_job (the payload may have text and secrets, and is deleted when it is no longer needed: ?9 keeps that of a job that may be retried by hand)
UPDATE jobs SET state = CASE WHEN ?1 = 'queued' AND cancelling = 1 THEN 'cancelled' ELSE ?1 END, error = ?2, result = ?3, run_at = ?4, lease_owner = NULL, lease_until = NULL, updated_at = ?5,
    payload = CASE WHEN ?1 = 'queued' AND cancelling = 0 OR ?1 = 'failed' AND ?9 THEN payload ELSE '{}' END
WHERE tenant_id = ?6 AND id = ?7 AND lease_owner = ?8 AND state = 'running' RETURNING state

-- name: postpone_job
UPDATE jobs SET state = CASE cancelling WHEN 1 THEN 'cancelled' ELSE 'queued' END, attempts = attempts - 1, error = ?,
    run_at = ?, lease_owner = NULL, lease_until = NULL, updated_at = ?,
    payload = CASE cancelling WHEN 1 THEN '{}' ELSE payload END
WHERE tenant_id = ? AND id = ? AND lease_owner = ? AND state = 'running' RETURNING state

-- name: retry_job (that failed, and was not erased since; unless the same work waits already)
UPDATE jobs SET state = 'queued', attempts = 0, deaths = 0, error = NULL, cancelling = 0, run_at = ?1, updated_at = ?1, payload = ?4
WHERE tenant_id = ?2 AND id = ?3 AND state = 'failed' AND error IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM jobs AS twin WHERE twin.tenant_id = ?2 AND twin.kind = jobs.kind AND twin.dedup_key = jobs.dedup_key
        AND twin.state IN ('queued', 'running')
)

-- name: cancel_queued_job
UPDATE jobs SET state = 'cancelled', cancelling = 1, payload = '{}', updated_at = ?
WHERE tenant_id = ? AND id = ? AND state = 'queued'

-- name: cancel_running_job
UPDATE jobs SET cancelling = 1, updated_at = ? WHERE tenant_id = ? AND id = ? AND state = 'running'

-- name: is_cancelling
SELECT cancelling FROM jobs WHERE tenant_id = ? AND id = ?

-- name: stop_job_of (the one of a kind and key, if there is one)
UPDATE jobs SET cancelling = 1, state = CASE state WHEN 'queued' THEN 'cancelled' ELSE state END, updated_at = ?
WHERE tenant_id = ? AND kind = ? AND dedup_key = ? AND state IN ('queued', 'running')

-- name: blank_jobs (deletes payloads, results and errors)
UPDATE jobs SET payload = '{}', error = NULL, result = NULL, cursor = NULL
WHERE tenant_id = ? AND id IN (SELECT value FROM {texts ?} wanted)

-- name: blank_outcomes (deletes results and errors)
UPDATE jobs SET error = NULL, result = NULL
WHERE tenant_id = ? AND id IN (SELECT value FROM {texts ?} wanted)

-- name: drop_ended_jobs
DELETE FROM jobs WHERE (tenant_id, id) IN (
    SELECT tenant_id, id FROM jobs WHERE state IN ('completed', 'failed', 'cancelled') AND updated_at < ?
    ORDER BY updated_at LIMIT ?
)
