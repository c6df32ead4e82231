-- Asking uploaded documents: whose store and session is whose, the log of questions, what became of them. Pages are
-- composed in code (`document_qa/log.py`), for their order. No statement changes a row of the log but the ones that erase.

-- name: ask_store
SELECT store_id FROM ask_stores WHERE tenant_id = ? AND owner = ?

-- name: set_ask_store
INSERT INTO ask_stores (tenant_id, owner, store_id) VALUES (?, ?, ?)
ON CONFLICT (tenant_id, owner) DO UPDATE SET store_id = excluded.store_id

-- name: add_ask_session
INSERT INTO ask_sessions (tenant_id, id, seq, user_id, created_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING

-- name: drop_ask_session
DELETE FROM ask_sessions WHERE tenant_id = ? AND id = ?

-- name: session_known (whose a session is, and whether it has this id because a caller named it so)
SELECT user_id, named FROM sessions WHERE tenant_id = ? AND id = ?

-- name: ask_history (what was said last in a session, the newest first)
SELECT id, role, content, tokens FROM messages
WHERE tenant_id = ? AND session_id = ? AND role IN ('user', 'assistant', 'system')
ORDER BY occurred_at DESC, seq DESC LIMIT ?

-- name: add_query
INSERT INTO query_log (
    tenant_id, seq, id, session_id, user_id, question, answer, sources, memories, status, model, latency_ms,
    question_tokens, answer_tokens, document_tokens, memory_tokens, history_tokens, created_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: query_by_id
SELECT tenant_id, seq, id, session_id, user_id, question, answer, sources, memories, status, model, latency_ms,
    question_tokens, answer_tokens, document_tokens, memory_tokens, history_tokens, created_at, erased_at
FROM query_log WHERE tenant_id = ? AND id = ?

-- name: queries_between (of a session, after one row of the log and up to another)
SELECT seq, id, question, answer, question_tokens + answer_tokens FROM query_log
WHERE tenant_id = ? AND session_id = ? AND seq > ? AND seq <= ? AND erased_at IS NULL ORDER BY seq

-- name: first_query (how a session began)
SELECT substr(question, 1, 120) FROM query_log WHERE tenant_id = ? AND session_id = ? ORDER BY seq LIMIT 1

-- name: underived_queries (answers that became no memory yet)
SELECT tenant_id, seq, id, session_id, user_id, question, answer, sources, memories, status, model, latency_ms,
    question_tokens, answer_tokens, document_tokens, memory_tokens, history_tokens, created_at, erased_at
FROM query_log q
WHERE q.tenant_id = ? AND q.seq > ? AND q.erased_at IS NULL AND q.status IN ('answered', 'quoted')
    AND NOT EXISTS (SELECT 1 FROM ask_memories a WHERE a.tenant_id = q.tenant_id AND a.seq = q.seq)
ORDER BY q.seq LIMIT ?

-- name: count_underived
SELECT count(*) FROM query_log q
WHERE q.tenant_id = ? AND q.erased_at IS NULL AND q.status IN ('answered', 'quoted')
    AND NOT EXISTS (SELECT 1 FROM ask_memories a WHERE a.tenant_id = q.tenant_id AND a.seq = q.seq)

-- name: is_derived
SELECT 1 FROM ask_memories WHERE tenant_id = ? AND seq = ?

-- name: note_derived
INSERT INTO ask_memories (tenant_id, seq, memory_id) VALUES (?, ?, ?)

-- name: last_ask_summary
SELECT coalesce(max(through), 0) FROM ask_summaries WHERE tenant_id = ? AND session_id = ?

-- name: add_ask_summary
INSERT INTO ask_summaries (tenant_id, session_id, through, memory_id) VALUES (?, ?, ?, ?)

-- name: asked_beyond (memories of one user beyond the best so many: of the least important the oldest first)
SELECT seq FROM memories
WHERE tenant_id = ? AND coalesce(user_id, '') = ? AND source IN ('qa_turn', 'summary', 'manual')
    AND kind IN ('qa_turn', 'summary', 'note') AND superseded_by IS NULL
ORDER BY importance DESC, occurred_at DESC, seq DESC LIMIT ? OFFSET ?

-- name: asked_in_session (memories that asking made in a session)
SELECT seq FROM memories WHERE tenant_id = ? AND session_id = ? AND source IN ('qa_turn', 'summary') LIMIT ?

-- name: asked_made_of (memories that asking made of any of these messages)
SELECT DISTINCT s.seq FROM {texts ?2} wanted
{join} memory_sources s ON s.tenant_id = ?1 AND s.source_id = wanted.value
{join} memories m ON m.tenant_id = s.tenant_id AND m.seq = s.seq
    AND m.source IN ('qa_turn', 'summary') AND m.kind IN ('qa_turn', 'summary')

-- name: erase_queries (takes the texts of these rows of the log away; their shells stay)
UPDATE query_log SET question = '', answer = '', sources = '[]', memories = '[]', erased_at = ?1
WHERE tenant_id = ?2 AND seq IN (SELECT value FROM {seqs ?3} wanted) AND erased_at IS NULL
