-- What was said beside a message.

-- name: places_said
SELECT m.id, m.session_id, m.occurred_at, m.seq
FROM {texts ?2} wanted {join} messages m ON m.tenant_id = ?1 AND m.id = wanted.value

-- name: said_before (the nearest first)
SELECT id, role, speaker, content, user_id, occurred_at, seq, metadata FROM messages
WHERE tenant_id = ? AND session_id = ? AND (occurred_at, seq) < (?, ?) ORDER BY occurred_at DESC, seq DESC LIMIT ?

-- name: said_behind (the nearest first)
SELECT id, role, speaker, content, user_id, occurred_at, seq, metadata FROM messages
WHERE tenant_id = ? AND session_id = ? AND (occurred_at, seq) > (?, ?) ORDER BY occurred_at, seq LIMIT ?

-- name: instructions_of (facts of a user that may be standing instructions, the latest first)
SELECT seq FROM memories WHERE tenant_id = ? AND user_id = ? AND kind = 'fact' AND tags LIKE '%"instruction"%'
AND metadata LIKE '%"$confirmed":%' ORDER BY seq DESC LIMIT ?
