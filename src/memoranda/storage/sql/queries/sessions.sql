-- What is said, the sessions it belongs to, and their summaries. Lists are composed in code (`sessions/records.py`).

-- name: messages_by_key
SELECT m.* FROM {texts ?2} wanted {join} messages m ON m.tenant_id = ?1 AND m.key = wanted.value

-- name: messages_by_id
SELECT m.* FROM {texts ?2} wanted {join} messages m ON m.tenant_id = ?1 AND m.id = wanted.value

-- name: messages_of_response
SELECT m.* FROM messages m WHERE m.tenant_id = ? AND m.response_id = ?

-- name: first_messages
SELECT m.* FROM messages m WHERE m.tenant_id = ? AND m.session_id = ? ORDER BY m.occurred_at, m.seq LIMIT ?

-- name: last_messages
SELECT m.* FROM messages m WHERE m.tenant_id = ? AND m.session_id = ? ORDER BY m.occurred_at DESC, m.seq DESC LIMIT ?

-- name: messages_of_sessions (all that was said in sessions that are not long)
SELECT m.* FROM {texts ?2} wanted {join} messages m ON m.tenant_id = ?1 AND m.session_id = wanted.value
ORDER BY m.session_id, m.occurred_at, m.seq

-- name: messages_to_learn_from (those from which facts may be taken, as they came)
SELECT m.* FROM messages m WHERE m.tenant_id = ? AND m.session_id = ? AND m.seq > ? AND m.extract > 0 ORDER BY m.seq LIMIT ?

-- name: message_ids_of (the ids of a session's messages, beginning after one)
SELECT m.id, m.indexed FROM messages m WHERE m.tenant_id = ? AND m.session_id = ? LIMIT ?

-- name: set_message
UPDATE messages SET key = ?, role = ?, speaker = ?, content = ?, tokens = ?, metadata = ?, indexed = ?, occurred_at = ?
WHERE tenant_id = ? AND id = ?

-- name: move_messages
UPDATE messages SET session_id = ? WHERE tenant_id = ? AND session_id = ?

-- name: move_these_messages
UPDATE messages SET session_id = ?1 WHERE tenant_id = ?2 AND id IN (SELECT value FROM {texts ?3} wanted)

-- name: drop_messages
DELETE FROM messages WHERE tenant_id = ? AND id IN (SELECT value FROM {texts ?} wanted)

-- name: seqs_of_messages (the memories in which a session's messages are found)
SELECT m.seq FROM messages g {join} memories m ON m.tenant_id = g.tenant_id AND m.id = g.id
WHERE g.tenant_id = ? AND g.session_id = ? AND g.indexed = 1

-- name: measure_session (what its messages say of it)
SELECT count(*), min(occurred_at), max(occurred_at) FROM messages WHERE tenant_id = ? AND session_id = ?

-- name: speakers_of
SELECT speaker, user_id, role, min(seq) FROM messages WHERE tenant_id = ? AND session_id = ?
GROUP BY speaker, user_id, role ORDER BY min(seq)

-- name: agents_of (the agents of a session's messages, the first one first)
SELECT agent_id, min(seq) FROM messages WHERE tenant_id = ? AND session_id = ? AND agent_id IS NOT NULL
GROUP BY agent_id ORDER BY min(seq)

-- name: get_session
SELECT s.* FROM sessions s WHERE s.tenant_id = ? AND s.id = ?

-- name: sessions_by_id
SELECT s.* FROM {texts ?2} wanted {join} sessions s ON s.tenant_id = ?1 AND s.id = wanted.value

-- name: sessions_near (a channel's that end at a moment or later, the earliest first)
SELECT s.* FROM sessions s
WHERE s.tenant_id = ? AND s.channel_id = ? AND s.ended_at >= ? AND s.named = 0 AND s.private = ?
    AND (s.private = 0 OR s.user_id = ?)
ORDER BY s.ended_at LIMIT 4

-- name: session_before (a channel's last one that ended before a moment)
SELECT s.* FROM sessions s
WHERE s.tenant_id = ? AND s.channel_id = ? AND s.ended_at < ? AND s.named = 0 AND s.private = ?
    AND (s.private = 0 OR s.user_id = ?)
ORDER BY s.ended_at DESC LIMIT 1

-- name: set_session
UPDATE sessions SET
    rev = ?, channel_id = ?, user_id = ?, agent_id = ?, started_at = ?, ended_at = ?, last_seen_at = ?, due_at = ?,
    message_count = ?, participants = ?, users = ?, status = ?, failure = ?, pending = ?, attempts = ?, next_try_at = ?,
    extraction = ?, facts_seq = ?, updated_at = ?
WHERE tenant_id = ? AND id = ?

-- name: clear_summary
UPDATE sessions SET
    summary = NULL, topics = '[]', decisions = '[]', open_questions = '[]', action_items = '[]', entities = '[]',
    summary_id = NULL, summary_model = NULL, summary_version = NULL, summary_created_at = NULL, summary_rev = NULL
WHERE tenant_id = ? AND id = ?

-- name: drop_session
DELETE FROM sessions WHERE tenant_id = ? AND id = ?

-- name: close_session
UPDATE sessions SET status = 'closed', failure = NULL, pending = ?, attempts = 0, next_try_at = ?, updated_at = ?
WHERE tenant_id = ? AND id = ? AND status = 'open'

-- name: sessions_due
SELECT s.* FROM sessions s WHERE s.status = 'open' AND s.due_at <= ? ORDER BY s.due_at LIMIT ?

-- name: next_due
SELECT min(due_at) FROM sessions WHERE status = 'open'

-- name: next_pending
SELECT min(next_try_at) FROM sessions WHERE pending = 1

-- name: pending_tenants
SELECT DISTINCT tenant_id FROM sessions WHERE pending = 1 AND next_try_at <= ?

-- name: next_rollup
SELECT min(due_at) FROM rollups WHERE stale = 1

-- name: rollup_tenants
SELECT DISTINCT tenant_id FROM rollups WHERE stale = 1 AND due_at <= ?

-- name: rollup_memory
SELECT memory_id FROM rollups WHERE tenant_id = ? AND channel_id = ? AND owner = ? AND week = ?

-- name: rollups_of (those that were made of any of these sessions, and their memories)
SELECT DISTINCT r.channel_id, r.owner, r.week, r.memory_id FROM {texts ?2} wanted
{join} memory_sources s ON s.tenant_id = ?1 AND s.source_id = wanted.value
{join} memories m ON m.tenant_id = ?1 AND m.seq = s.seq AND m.kind = 'rollup'
{join} rollups r ON r.tenant_id = ?1 AND r.memory_id = m.id

-- name: stale_rollup
INSERT INTO rollups (tenant_id, channel_id, owner, week, memory_id, version, sessions, stale, due_at, attempts, updated_at)
VALUES (?1, ?2, ?3, ?4, NULL, 0, 0, 1, ?5, 0, ?6)
ON CONFLICT (tenant_id, channel_id, owner, week) DO UPDATE SET stale = 1, due_at = ?5, attempts = 0, updated_at = ?6

-- name: drop_rollup_of (the rollup was deleted, or it is about to be made again)
UPDATE rollups SET memory_id = NULL, updated_at = ? WHERE tenant_id = ? AND memory_id = ?

-- name: pending_sessions
SELECT s.* FROM sessions s WHERE s.pending = 1 AND s.tenant_id = ? AND s.next_try_at <= ? ORDER BY s.next_try_at LIMIT ?

-- name: summarize_session (unless something was said meanwhile)
UPDATE sessions SET
    status = CASE status WHEN 'open' THEN 'open' ELSE 'summarized' END, summary = ?, topics = ?, decisions = ?,
    open_questions = ?, action_items = ?, entities = ?, summary_id = ?, summary_model = ?, summary_version = ?,
    summary_created_at = ?, summary_rev = rev, failure = NULL, pending = 0, attempts = 0, updated_at = ?
WHERE tenant_id = ? AND id = ? AND rev = ?

-- name: settle_session (nothing is to be summarized: it is too small, or was before)
UPDATE sessions SET status = ?, pending = 0, attempts = 0 WHERE tenant_id = ? AND id = ? AND rev = ? AND status <> 'open'

-- name: fail_session
UPDATE sessions SET
    status = CASE status WHEN 'open' THEN 'open' ELSE 'failed' END,
    pending = CASE status WHEN 'open' THEN 0 ELSE 1 END,
    failure = ?, attempts = attempts + 1, next_try_at = ?, updated_at = ?
WHERE tenant_id = ? AND id = ? AND rev = ?

-- name: give_up_session (it is not tried again)
UPDATE sessions SET pending = 0 WHERE tenant_id = ? AND id = ?

-- name: summarize_again (those of an earlier version)
UPDATE sessions SET pending = 1, next_try_at = ? WHERE status = 'summarized' AND summary_version < ?

-- name: rollups_due
SELECT r.channel_id, r.owner, r.week, r.memory_id, r.attempts, r.updated_at FROM rollups r
WHERE r.stale = 1 AND r.tenant_id = ? AND r.due_at <= ? ORDER BY r.due_at LIMIT ?

-- name: sessions_of_week (the summarized ones of a channel that were begun in a span of time)
SELECT s.* FROM sessions s
WHERE s.tenant_id = ?1 AND s.channel_id = ?2 AND s.ended_at >= ?4 AND s.started_at >= ?4 AND s.started_at < ?5
    AND CASE WHEN s.users LIKE '%","%' THEN '' ELSE coalesce(s.user_id, '') END = ?3 AND s.summary IS NOT NULL
ORDER BY s.ended_at LIMIT ?6

-- name: set_rollup (unless one of its sessions has changed meanwhile)
UPDATE rollups SET
    memory_id = ?, version = ?, sessions = ?, stale = 0, attempts = 0, failure = NULL, updated_at = ?
WHERE tenant_id = ? AND channel_id = ? AND owner = ? AND week = ? AND updated_at = ?

-- name: leave_rollup
UPDATE rollups SET stale = 0 WHERE tenant_id = ? AND channel_id = ? AND owner = ? AND week = ? AND updated_at = ?

-- name: fail_rollup
UPDATE rollups SET attempts = attempts + 1, failure = ?, due_at = ?
WHERE tenant_id = ? AND channel_id = ? AND owner = ? AND week = ?

-- name: sessions_of_users (those of these owners, and those of which all users are one of these lists)
SELECT s.id, s.users FROM sessions s WHERE s.tenant_id = ?1
    AND (s.user_id IN (SELECT value FROM {texts ?2} wanted) OR s.users IN (SELECT value FROM {texts ?3} wanted))

-- name: blank_session (of what may contain a phrase beside the summary and the participants)
UPDATE sessions SET metadata = ?, facts_failure = ? WHERE tenant_id = ? AND id = ?

-- name: unsummarized (closed ones that are large enough, without a summary of this version, in order)
SELECT s.* FROM sessions s
WHERE s.tenant_id = ? AND s.status <> 'open' AND (s.summary_version IS NULL OR s.summary_version < ?)
    AND s.message_count >= ? AND s.seq > ?
ORDER BY s.seq LIMIT ?

-- name: count_unsummarized
SELECT count(*) FROM sessions
WHERE tenant_id = ? AND status <> 'open' AND (summary_version IS NULL OR summary_version < ?) AND message_count >= ?
