-- Memory stores: text files of agents at paths, and every version of each.

CREATE TABLE memory_stores (
    tenant_id   TEXT COLLATE "C" NOT NULL,
    id          TEXT COLLATE "C" NOT NULL,
    seq         BIGINT NOT NULL,
    name        TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C" NOT NULL,
    metadata    TEXT COLLATE "C" NOT NULL,
    user_id     TEXT COLLATE "C",
    archived_at BIGINT,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX memory_stores_order ON memory_stores (tenant_id, seq);

-- What a store holds; it is found by the row of `memories` with the same id. `path` is null once the memory was
-- deleted and its versions are still listed; `version_id` is the latest version.
CREATE TABLE store_memories (
    tenant_id  TEXT COLLATE "C" NOT NULL,
    id         TEXT COLLATE "C" NOT NULL,
    store_id   TEXT COLLATE "C" NOT NULL,
    path       TEXT COLLATE "C",
    version_id TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX store_memories_path ON store_memories (tenant_id, store_id, path);

-- A version whose memory has no row in `store_memories` is being erased.
CREATE TABLE memory_versions (
    tenant_id      TEXT COLLATE "C" NOT NULL,
    id             TEXT COLLATE "C" NOT NULL,
    seq            BIGINT NOT NULL,
    store_id       TEXT COLLATE "C" NOT NULL,
    memory_id      TEXT COLLATE "C" NOT NULL,
    operation      TEXT COLLATE "C" NOT NULL,
    written_by     TEXT COLLATE "C",
    created_at     BIGINT NOT NULL,
    redacted_by    TEXT COLLATE "C",
    redacted_at    BIGINT,
    path           TEXT COLLATE "C",
    content_sha256 TEXT COLLATE "C",
    content_bytes  BIGINT,
    content        TEXT COLLATE "C",
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX memory_versions_order ON memory_versions (tenant_id, store_id, seq);
CREATE INDEX memory_versions_memory ON memory_versions (tenant_id, memory_id, seq);

ALTER TABLE memory_stores ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_stores FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON memory_stores USING (
    tenant_id = (SELECT current_setting('memoranda.tenant', true))
    OR (SELECT current_setting('memoranda.house', true)) = 'on'
);

ALTER TABLE store_memories ENABLE ROW LEVEL SECURITY;
ALTER TABLE store_memories FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON store_memories USING (
    tenant_id = (SELECT current_setting('memoranda.tenant', true))
    OR (SELECT current_setting('memoranda.house', true)) = 'on'
);

ALTER TABLE memory_versions ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_versions FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON memory_versions USING (
    tenant_id = (SELECT current_setting('memoranda.tenant', true))
    OR (SELECT current_setting('memoranda.house', true)) = 'on'
);
