-- name: chain (as `queries/agent.sql` has it; each step asks for its one row, whatever the planner knows of the table)
WITH RECURSIVE chain (id, previous_id, upto) AS (
    SELECT r.id, r.previous_id, r.summarized_to FROM responses r WHERE r.tenant_id = ?1 AND r.id = ?2
    UNION
    SELECT r.id, r.previous_id, coalesce(chain.upto, r.summarized_to)
    FROM chain CROSS JOIN LATERAL (
        SELECT s.id, s.previous_id, s.summarized_to FROM responses s
        WHERE s.tenant_id = ?1 AND s.id = chain.previous_id LIMIT 1
    ) r
    WHERE chain.upto IS NULL OR chain.previous_id <> chain.upto
)
SELECT r.* FROM (SELECT DISTINCT id FROM chain) held CROSS JOIN LATERAL (
    SELECT s.tenant_id, s.id, s.seq, s.user_id, s.session_id, s.previous_id, s.conversation_id, s.agent_id, s.status,
        s.background, s.body, s.input, s.output, s.summary, s.summarized_to, s.created_at
    FROM responses s WHERE s.tenant_id = ?1 AND s.id = held.id LIMIT 1
) r ORDER BY r.seq DESC

-- name: hold_response (its status, locked until this transaction ends)
SELECT status FROM responses WHERE tenant_id = ? AND id = ? FOR NO KEY UPDATE
