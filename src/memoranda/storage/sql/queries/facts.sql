-- Facts: memories of kind `fact`, and how far sessions were read for them.

-- name: facts_after (facts written after a revision, the latest first)
SELECT seq FROM memories WHERE tenant_id = ? AND kind = 'fact' AND seq > ? ORDER BY seq DESC LIMIT ?

-- name: facts_ended_by (what was superseded by any of these memories)
SELECT m.seq FROM {texts ?2} wanted
{join} memories m ON m.tenant_id = ?1 AND m.superseded_by = wanted.value AND m.superseded_by IS NOT NULL

-- name: facts_to_restore (some of them, of those written up to a revision)
SELECT m.seq FROM {texts ?2} wanted
{join} memories m ON m.tenant_id = ?1 AND m.superseded_by = wanted.value AND m.superseded_by IS NOT NULL AND m.seq <= ?3
LIMIT ?4

-- name: facts_made_of (facts that rest on any of these sources, or have them as context, in the order of their rows)
SELECT DISTINCT s.seq FROM {texts ?2} wanted
{join} memory_sources s ON s.tenant_id = ?1 AND s.source_id = wanted.value
{join} memories m ON m.tenant_id = s.tenant_id AND m.seq = s.seq AND m.kind = 'fact' AND m.seq <= ?3 AND m.seq > ?4
ORDER BY s.seq LIMIT ?5

-- name: messages_stored_with (a message, and those of its session that were stored at the same moment)
SELECT m.* FROM messages g
{join} messages m ON m.tenant_id = g.tenant_id AND m.session_id = g.session_id AND m.created_at = g.created_at
WHERE g.tenant_id = ? AND g.id = ? ORDER BY m.seq

-- name: messages_before (what was said in a session before a message, the nearest first)
SELECT m.* FROM messages m
WHERE m.tenant_id = ? AND m.session_id = ? AND m.seq < ? AND m.extract > 0 AND m.extract <= ?
ORDER BY m.occurred_at DESC, m.seq DESC LIMIT ?

-- name: read_facts (a session was read up to a message, unless another job has)
UPDATE sessions SET facts_seq = ?, facts_rev = ?, facts_failure = NULL, facts_attempts = 0, facts_next_try_at = 0
WHERE tenant_id = ? AND id = ? AND facts_seq = ?

-- name: fail_facts
UPDATE sessions SET facts_failure = ?, facts_attempts = facts_attempts + 1, facts_next_try_at = ?
WHERE tenant_id = ? AND id = ?

-- name: unread_sessions (from which facts are to be taken that no job has taken yet)
SELECT tenant_id, id FROM sessions
WHERE extraction <> 'off' AND facts_rev < rev AND facts_next_try_at <= ? AND (extraction = 'eager' OR status <> 'open')
ORDER BY tenant_id, seq LIMIT ?

-- name: free_job_key (the next job of this kind and key is another one)
UPDATE jobs SET dedup_key = NULL WHERE tenant_id = ? AND id = ?

-- name: idle_facts (live facts not accessed since a time, but not pinned, and no standing instructions)
SELECT seq FROM memories
WHERE tenant_id = ?1 AND kind = 'fact' AND archived_at IS NULL AND superseded_by IS NULL
    AND NOT (tags LIKE '%"instruction"%' AND metadata LIKE '%"$confirmed":%') AND metadata NOT LIKE '%"$pinned":%'
    AND created_at < ?2 AND (last_accessed_at IS NULL OR last_accessed_at < ?2) ORDER BY seq LIMIT ?3

-- name: count_live_facts (without standing instructions and pinned ones)
SELECT count(*) FROM memories
WHERE tenant_id = ?1 AND kind = 'fact' AND archived_at IS NULL AND superseded_by IS NULL
    AND NOT (tags LIKE '%"instruction"%' AND metadata LIKE '%"$confirmed":%') AND metadata NOT LIKE '%"$pinned":%'
    AND (invalid_at IS NULL OR invalid_at > ?2)

-- name: live_facts (what each is worth; without standing instructions and pinned ones)
SELECT seq, confidence, access_count, last_accessed_at, created_at FROM memories
WHERE tenant_id = ?1 AND kind = 'fact' AND archived_at IS NULL AND superseded_by IS NULL
    AND NOT (tags LIKE '%"instruction"%' AND metadata LIKE '%"$confirmed":%') AND metadata NOT LIKE '%"$pinned":%'
    AND (invalid_at IS NULL OR invalid_at > ?2)

-- name: tenants_with_facts
SELECT t.tenant_id FROM tenants t
WHERE EXISTS (SELECT 1 FROM memories m WHERE m.tenant_id = t.tenant_id AND m.kind = 'fact') ORDER BY t.tenant_id

-- name: facts_of_text (facts with a text, by its hash)
SELECT seq FROM memories WHERE tenant_id = ? AND kind = 'fact' AND content_hash = ? ORDER BY seq LIMIT 1000
