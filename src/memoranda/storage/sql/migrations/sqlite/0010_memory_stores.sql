-- Memory stores: text files of agents at paths, and every version of each.

CREATE TABLE memory_stores (
    tenant_id   TEXT    NOT NULL,
    id          TEXT    NOT NULL,
    seq         INTEGER NOT NULL,
    name        TEXT    NOT NULL,
    description TEXT    NOT NULL,
    metadata    TEXT    NOT NULL,
    user_id     TEXT,
    archived_at INTEGER,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX memory_stores_order ON memory_stores (tenant_id, seq);

-- What a store holds; it is found by the row of `memories` with the same id. `path` is null once the memory was
-- deleted and its versions are still listed; `version_id` is the latest version.
CREATE TABLE store_memories (
    tenant_id  TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    store_id   TEXT    NOT NULL,
    path       TEXT,
    version_id TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX store_memories_path ON store_memories (tenant_id, store_id, path);

-- A version whose memory has no row in `store_memories` is being erased.
CREATE TABLE memory_versions (
    tenant_id      TEXT    NOT NULL,
    id             TEXT    NOT NULL,
    seq            INTEGER NOT NULL,
    store_id       TEXT    NOT NULL,
    memory_id      TEXT    NOT NULL,
    operation      TEXT    NOT NULL,
    written_by     TEXT,
    created_at     INTEGER NOT NULL,
    redacted_by    TEXT,
    redacted_at    INTEGER,
    path           TEXT,
    content_sha256 TEXT,
    content_bytes  INTEGER,
    content        TEXT,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX memory_versions_order ON memory_versions (tenant_id, store_id, seq);
CREATE INDEX memory_versions_memory ON memory_versions (tenant_id, memory_id, seq);
