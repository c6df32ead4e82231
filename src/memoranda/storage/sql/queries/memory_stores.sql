-- Memory stores, the memories in them, and their versions. Lists are composed in code (`memory_stores/`).

-- name: add_memory_store
INSERT INTO memory_stores (
    tenant_id, id, seq, name, description, metadata, user_id, archived_at, created_at, updated_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: get_memory_store
SELECT tenant_id, id, seq, name, description, metadata, user_id, archived_at, created_at, updated_at FROM memory_stores
WHERE tenant_id = ? AND id = ?

-- name: set_memory_store
UPDATE memory_stores SET name = ?, description = ?, metadata = ?, archived_at = ?, updated_at = ?
WHERE tenant_id = ? AND id = ?

-- name: drop_memory_store
DELETE FROM memory_stores WHERE tenant_id = ? AND id = ?

-- name: close_memory_store
UPDATE memory_stores SET archived_at = COALESCE(archived_at, ?) WHERE tenant_id = ? AND id = ?

-- name: blank_memory_store
UPDATE memory_stores SET name = ?, description = '', metadata = '{}' WHERE tenant_id = ? AND id = ?

-- name: add_store_memory
INSERT INTO store_memories (tenant_id, id, store_id, path, version_id, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: get_store_memory
SELECT m.id, m.store_id, m.path, m.version_id, m.created_at, m.updated_at, v.content_sha256, v.content_bytes, v.content
FROM store_memories m JOIN memory_versions v ON v.tenant_id = m.tenant_id AND v.id = m.version_id
WHERE m.tenant_id = ? AND m.id = ? AND m.path IS NOT NULL

-- name: set_store_memory
UPDATE store_memories SET path = ?, version_id = ?, updated_at = ? WHERE tenant_id = ? AND id = ?

-- name: memories_at (those at some paths)
SELECT m.id, m.path FROM {texts ?3} wanted
{join} store_memories m ON m.tenant_id = ?1 AND m.store_id = ?2 AND m.path = wanted.value

-- name: memories_below (the first two whose paths are between two others)
SELECT id, path FROM store_memories WHERE tenant_id = ? AND store_id = ? AND path > ? AND path < ? ORDER BY path LIMIT 2

-- name: memories_of_store (some of them, and of those deleted)
SELECT id FROM store_memories WHERE tenant_id = ? AND store_id = ? LIMIT ?

-- name: stored_among (those of some memories that are in stores, or were deleted in them, with their stores)
SELECT m.id, m.path, m.store_id, s.user_id FROM {texts ?2} wanted
{join} store_memories m ON m.tenant_id = ?1 AND m.id = wanted.value
{join} memory_stores s ON s.tenant_id = m.tenant_id AND s.id = m.store_id

-- name: drop_store_memories
DELETE FROM store_memories WHERE tenant_id = ? AND id IN (SELECT value FROM {texts ?} wanted)

-- name: latest_among (the latest versions of some memories, and their memories)
SELECT m.version_id, m.id FROM {texts ?2} wanted
{join} store_memories m ON m.tenant_id = ?1 AND m.id = wanted.value AND m.path IS NOT NULL

-- name: add_memory_version
INSERT INTO memory_versions (
    tenant_id, id, seq, store_id, memory_id, operation, written_by, created_at, path, content_sha256, content_bytes,
    content
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: get_memory_version
SELECT v.id, v.seq, v.memory_id, v.operation, v.written_by, v.created_at, v.redacted_by, v.redacted_at, v.path,
    v.content_sha256, v.content_bytes, v.content
FROM memory_versions v JOIN store_memories m ON m.tenant_id = v.tenant_id AND m.id = v.memory_id
WHERE v.tenant_id = ? AND v.store_id = ? AND v.id = ?

-- name: redact_memory_version
UPDATE memory_versions
SET path = NULL, content_sha256 = NULL, content_bytes = NULL, content = NULL, redacted_by = ?, redacted_at = ?
WHERE tenant_id = ? AND id = ?

-- name: versions_of_store
SELECT id FROM memory_versions WHERE tenant_id = ? AND store_id = ? LIMIT ?

-- name: versions_of_memories
SELECT v.id FROM {texts ?2} wanted
{join} memory_versions v ON v.tenant_id = ?1 AND v.memory_id = wanted.value LIMIT ?3

-- name: count_versions (of some memories)
SELECT count(*) FROM {texts ?2} wanted
{join} memory_versions v ON v.tenant_id = ?1 AND v.memory_id = wanted.value

-- name: drop_memory_versions
DELETE FROM memory_versions WHERE tenant_id = ? AND id IN (SELECT value FROM {texts ?} wanted)

-- name: unname_writers
UPDATE memory_versions SET written_by = NULL WHERE tenant_id = ? AND id IN (SELECT value FROM {texts ?} wanted)

-- name: unname_redactors
UPDATE memory_versions SET redacted_by = NULL WHERE tenant_id = ? AND id IN (SELECT value FROM {texts ?} wanted)
