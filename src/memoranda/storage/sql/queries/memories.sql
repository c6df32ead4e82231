-- `{seqs ?} wanted {join} table`: the list leads, whatever the planner guesses about the table's size.

-- name: draw_revs
UPDATE counters SET value = value + ? WHERE name = 'rev' RETURNING value

-- name: last_rev
SELECT value FROM counters WHERE name = 'rev'

-- name: add_tenant
INSERT INTO tenants (tenant_id, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING

-- name: tenants
SELECT tenant_id FROM tenants ORDER BY tenant_id

-- name: tenants_after
SELECT tenant_id, created_at FROM tenants WHERE tenant_id > ? ORDER BY tenant_id LIMIT ?

-- name: space_of
SELECT space, dim FROM spaces WHERE model = ?

-- name: spaces
SELECT space, model, dim FROM spaces ORDER BY space

-- name: add_space
INSERT INTO spaces (model, dim) VALUES (?, ?) RETURNING space

-- name: memories_by_dedup
SELECT m.dedup_key, m.seq, m.id FROM {texts ?2} wanted
{join} memories m ON m.tenant_id = ?1 AND m.dedup_key = wanted.value

-- name: memories_by_id
SELECT m.id, m.seq, m.dedup_key FROM {texts ?2} wanted
{join} memories m ON m.tenant_id = ?1 AND m.id = wanted.value

-- name: set_memory
UPDATE memories SET
    rev = ?, kind = ?, content = ?, content_hash = ?, dedup_key = ?, role = ?, source = ?, tags = ?, metadata = ?,
    importance = ?, confidence = ?, valid_from = ?, invalid_at = ?, archived_at = ?, source_refs = ?, dated = ?,
    occurred_at = ?, updated_at = ?
WHERE tenant_id = ? AND seq = ?

-- name: mark_memory
UPDATE memories SET
    rev = ?, session_id = ?, tags = ?, metadata = ?, importance = ?, confidence = ?, valid_from = ?, invalid_at = ?,
    superseded_by = ?, archived_at = ?, access_count = ?, last_accessed_at = ?, source_refs = ?, updated_at = ?
WHERE tenant_id = ? AND seq = ?

-- name: unlink_sources
DELETE FROM memory_sources WHERE tenant_id = ? AND seq = ?

-- name: made_of (memories that were made of any of these sources)
SELECT DISTINCT s.seq FROM {texts ?2} wanted
{join} memory_sources s ON s.tenant_id = ?1 AND s.source_id = wanted.value

-- name: memories_going
SELECT m.seq, m.id, m.kind, m.channel_id, m.session_id, m.content, m.dedup_key, m.metadata, m.user_id, m.superseded_by,
    m.invalid_at
FROM {seqs ?2} wanted
{join} memories m ON m.tenant_id = ?1 AND m.seq = wanted.value AND m.kind <> 'chunk'

-- name: has_embeddings
SELECT 1 FROM embeddings WHERE tenant_id = ? AND space = ? LIMIT 1

-- name: has_embedding
SELECT 1 FROM embeddings WHERE tenant_id = ? LIMIT 1

-- name: count_access
UPDATE memories SET access_count = access_count + 1, last_accessed_at = ?
WHERE tenant_id = ? AND seq IN (SELECT value FROM {seqs ?} wanted)

-- name: remove_memories
DELETE FROM memories WHERE tenant_id = ? AND seq IN (SELECT value FROM {seqs ?} wanted)

-- name: count_vectors_of
SELECT count(*) FROM {seqs ?2} wanted
{join} embeddings e ON e.tenant_id = ?1 AND e.seq = wanted.value

-- name: note_removal
INSERT INTO removals (tenant_id, rev, seq) VALUES (?, ?, ?)

-- name: newest
SELECT seq FROM memories WHERE tenant_id = ? ORDER BY seq DESC LIMIT ?

-- name: removals_after
SELECT seq FROM removals WHERE tenant_id = ? AND rev > ? ORDER BY rev

-- name: drop_removals
DELETE FROM removals WHERE rev <= ?

-- name: set_tombstone
INSERT INTO tombstones (tenant_id, id, erased_at, memories, vectors, counts) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant_id, id) DO UPDATE SET
    memories = excluded.memories, vectors = excluded.vectors, counts = excluded.counts

-- name: note_forgotten
INSERT INTO forgotten (tenant_id, salt, mark, forgotten_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING

-- name: salts_of_forgotten (each once, without reading every row)
WITH RECURSIVE chain (salt) AS (
    SELECT min(salt) FROM forgotten WHERE tenant_id = ?1
    UNION ALL
    SELECT (SELECT min(f.salt) FROM forgotten f WHERE f.tenant_id = ?1 AND f.salt > chain.salt)
    FROM chain WHERE chain.salt IS NOT NULL
)
SELECT salt FROM chain WHERE salt IS NOT NULL

-- name: forgotten_among
SELECT DISTINCT f.mark FROM {texts ?2} wanted
{join} forgotten f ON f.tenant_id = ?1 AND f.salt = ?3 AND f.mark = wanted.value AND f.forgotten_at > ?4

-- name: add_embedding
INSERT INTO embeddings (tenant_id, space, seq, part, start, stop, text_hash, vector, tokens)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: drop_embeddings
DELETE FROM embeddings WHERE tenant_id = ? AND space = ? AND seq IN (SELECT value FROM {seqs ?} wanted)

-- name: drop_all_embeddings
DELETE FROM embeddings WHERE tenant_id = ? AND seq = ?

-- name: embeddings_of
SELECT seq, part, start, stop, vector FROM embeddings
WHERE tenant_id = ? AND space = ? AND seq IN (SELECT value FROM {seqs ?} wanted) ORDER BY seq, part

-- name: first_embeddings
SELECT m.id, m.kind, m.session_id, m.user_id, m.agent_id, m.channel_id, m.occurred_at, e.vector FROM {seqs ?3} wanted
{join} memories m ON m.tenant_id = ?1 AND m.seq = wanted.value
{join} embeddings e ON e.tenant_id = ?1 AND e.space = ?2 AND e.seq = m.seq AND e.part = 0 ORDER BY m.seq

-- name: embedding_span
SELECT start, stop FROM embeddings WHERE tenant_id = ? AND space = ? AND seq = ? AND part = ?

-- name: known_vectors
SELECT text_hash, vector, tokens FROM embeddings
WHERE tenant_id = ? AND space = ? AND text_hash IN (SELECT value FROM {texts ?} wanted)

-- name: add_pending
INSERT INTO unembedded (tenant_id, space, seq) VALUES (?, ?, ?) ON CONFLICT DO NOTHING

-- name: pending_embeddings
SELECT u.seq, m.content_hash FROM unembedded u JOIN memories m ON m.tenant_id = u.tenant_id AND m.seq = u.seq
WHERE u.tenant_id = ? AND u.space = ? AND u.seq > ? ORDER BY u.seq LIMIT ?

-- name: pending_among
SELECT seq FROM unembedded WHERE tenant_id = ? AND space = ? AND seq IN (SELECT value FROM {seqs ?} wanted)

-- name: settle_embeddings
DELETE FROM unembedded WHERE tenant_id = ? AND space = ? AND seq IN (SELECT value FROM {seqs ?} wanted)

-- name: count_pending
SELECT tenant_id, count(*) FROM unembedded WHERE space = ? GROUP BY tenant_id

-- name: add_missing_pending
INSERT INTO unembedded (tenant_id, space, seq)
SELECT m.tenant_id, ?1, m.seq FROM memories m
WHERE m.tenant_id = ?2 AND NOT EXISTS (
    SELECT 1 FROM embeddings e WHERE e.tenant_id = m.tenant_id AND e.space = ?1 AND e.seq = m.seq
) AND m.seq > ?3 AND m.seq <= ?4
ON CONFLICT DO NOTHING

-- name: page_end (the last of the next so many rows)
SELECT max(seq) FROM (SELECT seq FROM memories WHERE tenant_id = ? AND seq > ? ORDER BY seq LIMIT ?) held

-- name: misses_model (vectors of a space are there, and some memory has none of the model)
SELECT 1 FROM memories m WHERE EXISTS (SELECT 1 FROM embeddings WHERE space = ?1) AND NOT EXISTS (
    SELECT 1 FROM embeddings e JOIN spaces s ON s.space = e.space
    WHERE e.tenant_id = m.tenant_id AND e.seq = m.seq AND s.model = ?2
) LIMIT 1

-- name: drop_foreign_spaces
DELETE FROM embeddings WHERE tenant_id = ?2 AND space <> ?1 AND seq > ?3 AND seq <= ?4

-- name: count_embeddings
SELECT count(*) FROM embeddings WHERE tenant_id = ? AND space = ?

-- name: count_memories
SELECT count(*) FROM memories WHERE tenant_id = ?

-- name: stats_by_kind (by `seq`: SQLite would walk through an index in another order)
SELECT kind, count(*), CAST(sum(length(content)) AS BIGINT) FROM memories WHERE tenant_id = ? AND seq > 0
GROUP BY kind ORDER BY kind

-- name: get_meta
SELECT value FROM meta WHERE key = ?

-- name: set_meta
INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value

-- name: drop_meta
DELETE FROM meta WHERE key = ?

-- name: keep_meta
INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING

-- name: has_rows
SELECT 1 FROM (SELECT 1 AS one FROM memories UNION ALL SELECT 1 FROM files UNION ALL SELECT 1 FROM messages) held LIMIT 1

-- name: changed_beyond (a row that was written after a revision: a new one has its revision as its seq)
SELECT 1 FROM memories WHERE tenant_id = ? AND seq > ?
UNION ALL SELECT 1 FROM memories WHERE tenant_id = ? AND rev <> seq AND rev > ? LIMIT 1

-- name: set_rev
UPDATE memories SET rev = ? WHERE tenant_id = ? AND seq = ?

-- name: memories_there
SELECT seq FROM memories WHERE tenant_id = ? AND seq IN (SELECT value FROM {seqs ?} wanted)

-- name: vectors_of
SELECT seq, start, stop, text_hash, vector, tokens FROM embeddings
WHERE tenant_id = ? AND space = ? AND seq IN (SELECT value FROM {seqs ?} wanted) ORDER BY seq, part
