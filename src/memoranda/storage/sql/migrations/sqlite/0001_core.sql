-- Rows of the core: memories, their embeddings, what is owed to the indexes, jobs.
-- tenant_id leads every key. seq orders rows; rev is drawn from the same counter and moves with every
-- change that an index must see. Times are microseconds since 1970, UTC.

CREATE TABLE counters (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO counters VALUES ('rev', 0);

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE tenants (
    tenant_id  TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE spaces (
    space INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    dim   INTEGER NOT NULL,
    UNIQUE (model, dim)
);

CREATE TABLE memories (
    tenant_id        TEXT    NOT NULL,
    seq              INTEGER NOT NULL,
    rev              INTEGER NOT NULL,
    id               TEXT    NOT NULL,
    kind             TEXT    NOT NULL,
    content          TEXT    NOT NULL,
    content_hash     TEXT    NOT NULL,
    dedup_key        TEXT    NOT NULL,
    user_id          TEXT,
    agent_id         TEXT,
    channel_id       TEXT,
    session_id       TEXT,
    role             TEXT,
    source           TEXT,
    tags             TEXT    NOT NULL DEFAULT '[]',
    metadata         TEXT    NOT NULL DEFAULT '{}',
    importance       INTEGER NOT NULL DEFAULT 0,
    confidence       REAL    NOT NULL DEFAULT 1.0,
    access_count     INTEGER NOT NULL DEFAULT 0,
    last_accessed_at INTEGER,
    valid_from       INTEGER,
    invalid_at       INTEGER,
    superseded_by    TEXT,
    archived_at      INTEGER,
    source_refs      TEXT    NOT NULL DEFAULT '[]',
    dated            INTEGER NOT NULL DEFAULT 0,
    occurred_at      INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX memories_id ON memories (tenant_id, id);
CREATE UNIQUE INDEX memories_dedup ON memories (tenant_id, dedup_key);
CREATE INDEX memories_rev ON memories (tenant_id, rev) WHERE rev <> seq;
CREATE INDEX memories_session ON memories (tenant_id, session_id, seq) WHERE session_id IS NOT NULL;
CREATE INDEX memories_user ON memories (tenant_id, user_id, seq) WHERE user_id IS NOT NULL;
CREATE INDEX memories_agent ON memories (tenant_id, agent_id, seq) WHERE agent_id IS NOT NULL;
CREATE INDEX memories_channel ON memories (tenant_id, channel_id, seq) WHERE channel_id IS NOT NULL;
CREATE INDEX memories_source ON memories (tenant_id, source, seq) WHERE source IS NOT NULL;

CREATE TABLE embeddings (
    tenant_id TEXT    NOT NULL,
    space     INTEGER NOT NULL REFERENCES spaces (space),
    seq       INTEGER NOT NULL,
    part      INTEGER NOT NULL,
    start     INTEGER NOT NULL,
    stop      INTEGER NOT NULL,
    text_hash TEXT    NOT NULL,
    vector    BLOB    NOT NULL,
    PRIMARY KEY (tenant_id, seq, space, part),
    FOREIGN KEY (tenant_id, seq) REFERENCES memories (tenant_id, seq) ON DELETE CASCADE
);
CREATE INDEX embeddings_text ON embeddings (tenant_id, space, text_hash);

-- Memories whose vectors in a space are still to be made.
CREATE TABLE unembedded (
    tenant_id TEXT    NOT NULL,
    space     INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, seq, space),
    FOREIGN KEY (tenant_id, seq) REFERENCES memories (tenant_id, seq) ON DELETE CASCADE
) WITHOUT ROWID;

-- Memories that are gone; kept until every index has durably taken them out.
CREATE TABLE removals (
    tenant_id TEXT    NOT NULL,
    rev       INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, rev, seq)
) WITHOUT ROWID;

-- What stays of a forgetting: when, how much, never what.
CREATE TABLE tombstones (
    tenant_id TEXT    NOT NULL,
    id        TEXT    NOT NULL,
    erased_at INTEGER NOT NULL,
    memories  INTEGER NOT NULL,
    vectors   INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;

CREATE TABLE jobs (
    tenant_id    TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    seq          INTEGER NOT NULL,
    kind         TEXT    NOT NULL,
    dedup_key    TEXT,
    state        TEXT    NOT NULL,
    payload      TEXT    NOT NULL,
    cursor       TEXT,
    done         INTEGER NOT NULL DEFAULT 0,
    total        INTEGER,
    attempts     INTEGER NOT NULL DEFAULT 0,
    cancelling   INTEGER NOT NULL DEFAULT 0,
    run_at       INTEGER NOT NULL,
    lease_owner  TEXT,
    lease_until  INTEGER,
    error        TEXT,
    result       TEXT,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX jobs_dedup ON jobs (tenant_id, kind, dedup_key)
    WHERE dedup_key IS NOT NULL AND state IN ('queued', 'running');
CREATE INDEX jobs_due ON jobs (state, run_at, seq);

-- What the planner should expect of a large tenant. Without this it walks a tenant's rows in order instead of
-- going to the few of one user or session.
ANALYZE sqlite_schema;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('memories', 'memories', '1000000 1000000 1'),
    ('memories', 'memories_id', '1000000 1000000 1'),
    ('memories', 'memories_dedup', '1000000 1000000 1'),
    ('memories', 'memories_rev', '10000 10000 1'),
    ('memories', 'memories_session', '1000000 1000000 200 1'),
    ('memories', 'memories_user', '1000000 1000000 200 1'),
    ('memories', 'memories_agent', '1000000 1000000 1000 1'),
    ('memories', 'memories_channel', '1000000 1000000 1000 1'),
    ('memories', 'memories_source', '1000000 1000000 100 1'),
    ('embeddings', 'sqlite_autoindex_embeddings_1', '1000000 1000000 1 1 1'),
    ('embeddings', 'embeddings_text', '1000000 1000000 1000000 1');
ANALYZE sqlite_schema;
