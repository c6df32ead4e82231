-- Responses and their events.

-- name: add_response
INSERT INTO responses (tenant_id, id, seq, user_id, session_id, previous_id, conversation_id, agent_id, status, background,
    body, input, output, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: get_response
SELECT tenant_id, id, seq, user_id, session_id, previous_id, conversation_id, agent_id, status, background, body, input, output,
    summary, summarized_to, created_at
FROM responses WHERE tenant_id = ? AND id = ?

-- name: response_status
SELECT status FROM responses WHERE tenant_id = ? AND id = ?

-- name: hold_response (its status, locked until this transaction ends)
SELECT status FROM responses WHERE tenant_id = ? AND id = ?

-- name: begin_response
UPDATE responses SET status = 'in_progress' WHERE tenant_id = ? AND id = ? AND status = 'queued'

-- name: end_response (unless it has ended)
UPDATE responses SET status = ?, body = ?, output = ?
WHERE tenant_id = ? AND id = ? AND status IN ('queued', 'in_progress')

-- name: drop_response
DELETE FROM responses WHERE tenant_id = ? AND id = ?

-- name: summarize_response
UPDATE responses SET summary = ?, summarized_to = ? WHERE tenant_id = ? AND id = ?

-- name: chain (back from one response, newest first, down to what the newest summary reaches; UNION ends a circle)
WITH RECURSIVE chain (id, previous_id, upto) AS (
    SELECT r.id, r.previous_id, r.summarized_to FROM responses r WHERE r.tenant_id = ?1 AND r.id = ?2
    UNION
    SELECT r.id, r.previous_id, coalesce(chain.upto, r.summarized_to)
    FROM chain {join} responses r ON r.tenant_id = ?1 AND r.id = chain.previous_id
    WHERE chain.upto IS NULL OR r.id <> chain.upto
)
SELECT r.tenant_id, r.id, r.seq, r.user_id, r.session_id, r.previous_id, r.conversation_id, r.agent_id, r.status, r.background,
    r.body, r.input, r.output, r.summary, r.summarized_to, r.created_at
FROM (SELECT DISTINCT id FROM chain) held {join} responses r ON r.tenant_id = ?1 AND r.id = held.id ORDER BY r.seq DESC

-- name: add_events
INSERT INTO response_events (tenant_id, response_id, first, last, events) VALUES (?, ?, ?, ?, ?)

-- name: events_after
SELECT first, last, events FROM response_events WHERE tenant_id = ? AND response_id = ? AND last > ? ORDER BY first

-- name: last_event (the number of the last event)
SELECT last FROM response_events WHERE tenant_id = ? AND response_id = ? ORDER BY first DESC LIMIT 1

-- name: add_item
INSERT INTO conversation_items (tenant_id, conversation_id, seq, id, response_id, item, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING

-- name: has_conversation
SELECT user_id FROM conversations WHERE tenant_id = ? AND id = ?
