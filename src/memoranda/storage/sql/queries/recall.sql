-- name: candidates (rows of a search as they are scored; a message's neighbours are those stored right before and after
-- it in its session, or where it has none in its channel; a pinned memory is always used just now)
SELECT m.seq, m.kind, m.session_id, m.channel_id, m.role, m.occurred_at, m.created_at,
    CASE WHEN m.metadata LIKE '%"$pinned":%' THEN 9223372036854775807 ELSE m.last_accessed_at END, m.importance,
    CASE WHEN m.kind IN ('message', 'session_summary') THEN m.metadata ELSE '{}' END,
    substr(COALESCE(m.header, '') || m.content, 1, 2000), m.user_id,
    CASE WHEN m.kind <> 'message' THEN NULL
         WHEN m.session_id IS NOT NULL THEN (
            SELECT p.seq FROM memories p
            WHERE p.tenant_id = m.tenant_id AND p.session_id = m.session_id AND p.kind = 'message' AND p.seq < m.seq
            ORDER BY p.seq DESC LIMIT 1)
         WHEN m.channel_id IS NOT NULL THEN (
            SELECT p.seq FROM memories p
            WHERE p.tenant_id = m.tenant_id AND p.channel_id = m.channel_id AND p.kind = 'message' AND p.seq < m.seq
            ORDER BY p.seq DESC LIMIT 1)
    END,
    CASE WHEN m.kind <> 'message' THEN NULL
         WHEN m.session_id IS NOT NULL THEN (
            SELECT p.seq FROM memories p
            WHERE p.tenant_id = m.tenant_id AND p.session_id = m.session_id AND p.kind = 'message' AND p.seq > m.seq
            ORDER BY p.seq LIMIT 1)
         WHEN m.channel_id IS NOT NULL THEN (
            SELECT p.seq FROM memories p
            WHERE p.tenant_id = m.tenant_id AND p.channel_id = m.channel_id AND p.kind = 'message' AND p.seq > m.seq
            ORDER BY p.seq LIMIT 1)
    END
FROM {seqs ?2} wanted
{join} memories m ON m.tenant_id = ?1 AND m.seq = wanted.value

-- name: seqs_by_id
SELECT m.seq, m.id FROM {texts ?2} wanted {join} memories m ON m.tenant_id = ?1 AND m.id = wanted.value

-- name: token_codes
SELECT seq, tokens FROM embeddings
WHERE tenant_id = ?1 AND space = ?2 AND seq IN (SELECT value FROM {seqs ?3} wanted) AND part < 8 AND length(tokens) > 0

-- name: tenants_without_tokens (of the given ones)
SELECT wanted.value FROM {texts ?1} wanted WHERE EXISTS (
    SELECT 1 FROM embeddings e WHERE e.tenant_id = wanted.value AND e.space = ?2 AND e.tokens IS NULL
)

-- name: count_without_tokens
SELECT count(*) FROM embeddings WHERE tenant_id = ? AND space = ? AND tokens IS NULL

-- name: without_tokens
SELECT DISTINCT seq FROM embeddings WHERE tenant_id = ? AND space = ? AND tokens IS NULL AND seq > ? ORDER BY seq LIMIT ?
