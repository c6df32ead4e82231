-- What was said, in order; its sessions with their summaries; what memories were made of; what was spent.

-- The message log. `id` is also that of the memory in which a message is found, if it is found at all; `key` makes a
-- message that is sent again the same one. `session_id` names a row of `sessions`.
CREATE TABLE messages (
    tenant_id   TEXT    NOT NULL,
    seq         INTEGER NOT NULL,
    id          TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    session_id  TEXT    NOT NULL,
    channel_id  TEXT,
    user_id     TEXT,
    agent_id    TEXT,
    role        TEXT    NOT NULL,
    speaker     TEXT,
    content     TEXT    NOT NULL,
    tokens      INTEGER NOT NULL,
    metadata    TEXT    NOT NULL,
    response_id TEXT,
    indexed     INTEGER NOT NULL,
    extract     INTEGER NOT NULL,
    occurred_at INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX messages_id ON messages (tenant_id, id);
CREATE UNIQUE INDEX messages_key ON messages (tenant_id, key);
CREATE INDEX messages_session ON messages (tenant_id, session_id, occurred_at, seq);
CREATE INDEX messages_response ON messages (tenant_id, response_id) WHERE response_id IS NOT NULL;
CREATE INDEX messages_user ON messages (tenant_id, user_id, seq) WHERE user_id IS NOT NULL;

-- Consecutive messages of a channel, cut where it was silent for longer than the gap; or, `named`, the messages that
-- somebody gave one session id. `rev` moves with every change of its messages, so that a summary, or facts, of earlier
-- ones are known to be that; `due_at` is when an open one is closed if nothing more is said. A `private` one is of what
-- one user said for itself, `users` are those whose messages are in it; `pending` says that its summary is to be made.
CREATE TABLE sessions (
    tenant_id          TEXT    NOT NULL,
    id                 TEXT    NOT NULL,
    seq                INTEGER NOT NULL,
    rev                INTEGER NOT NULL,
    named              INTEGER NOT NULL,
    private            INTEGER NOT NULL,
    channel_id         TEXT,
    user_id            TEXT,
    agent_id           TEXT,
    metadata           TEXT    NOT NULL DEFAULT '{}',
    started_at         INTEGER NOT NULL,
    ended_at           INTEGER NOT NULL,
    last_seen_at       INTEGER NOT NULL,
    due_at             INTEGER NOT NULL,
    message_count      INTEGER NOT NULL,
    participants       TEXT    NOT NULL DEFAULT '[]',
    users              TEXT    NOT NULL DEFAULT '[]',
    status             TEXT    NOT NULL,
    summary            TEXT,
    topics             TEXT    NOT NULL DEFAULT '[]',
    decisions          TEXT    NOT NULL DEFAULT '[]',
    open_questions     TEXT    NOT NULL DEFAULT '[]',
    action_items       TEXT    NOT NULL DEFAULT '[]',
    entities           TEXT    NOT NULL DEFAULT '[]',
    summary_id         TEXT,
    summary_model      TEXT,
    summary_version    INTEGER,
    summary_created_at INTEGER,
    summary_rev        INTEGER,
    failure            TEXT,
    pending            INTEGER NOT NULL DEFAULT 0,
    attempts           INTEGER NOT NULL DEFAULT 0,
    next_try_at        INTEGER NOT NULL DEFAULT 0,
    extraction         TEXT    NOT NULL DEFAULT 'off',
    facts_seq          INTEGER NOT NULL DEFAULT 0,
    facts_rev          INTEGER NOT NULL DEFAULT 0,
    facts_failure      TEXT,
    facts_attempts     INTEGER NOT NULL DEFAULT 0,
    facts_next_try_at  INTEGER NOT NULL DEFAULT 0,
    created_at         INTEGER NOT NULL,
    updated_at         INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX sessions_order ON sessions (tenant_id, seq);
CREATE INDEX sessions_channel ON sessions (tenant_id, channel_id, ended_at) WHERE channel_id IS NOT NULL;
CREATE INDEX sessions_status ON sessions (tenant_id, status, ended_at);
CREATE INDEX sessions_due ON sessions (due_at) WHERE status = 'open';
CREATE INDEX sessions_unread ON sessions (tenant_id, seq) WHERE extraction <> 'off' AND facts_rev < rev;
CREATE INDEX sessions_pending ON sessions (pending, tenant_id, next_try_at) WHERE pending = 1;

-- One summary a channel, week (its first day, in days since 1970) and owner ('': nobody) of the summaries of its
-- sessions. `stale` says that one of them has changed since, `due_at` when it is made again.
CREATE TABLE rollups (
    tenant_id  TEXT    NOT NULL,
    channel_id TEXT    NOT NULL,
    owner      TEXT    NOT NULL,
    week       INTEGER NOT NULL,
    memory_id  TEXT,
    version    INTEGER NOT NULL,
    sessions   INTEGER NOT NULL,
    stale      INTEGER NOT NULL,
    due_at     INTEGER NOT NULL,
    attempts   INTEGER NOT NULL,
    failure    TEXT,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, channel_id, owner, week)
) WITHOUT ROWID;
CREATE INDEX rollups_stale ON rollups (stale, tenant_id, due_at) WHERE stale = 1;
CREATE INDEX rollups_memory ON rollups (tenant_id, memory_id) WHERE memory_id IS NOT NULL;

-- What a memory was made of: ids of messages, of memories, of responses.
CREATE TABLE memory_sources (
    tenant_id TEXT    NOT NULL,
    source_id TEXT    NOT NULL,
    seq       INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, source_id, seq),
    FOREIGN KEY (tenant_id, seq) REFERENCES memories (tenant_id, seq) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX memory_sources_seq ON memory_sources (tenant_id, seq);
INSERT OR IGNORE INTO memory_sources
SELECT m.tenant_id, j.value, m.seq FROM memories m, json_each(m.source_refs) j WHERE m.source_refs <> '[]';

CREATE INDEX memories_facts ON memories (tenant_id, seq) WHERE kind = 'fact';
CREATE INDEX memories_superseded ON memories (tenant_id, superseded_by) WHERE superseded_by IS NOT NULL;

-- What a tenant's reads and writes cost, by day (days since 1970, UTC) and purpose.
CREATE TABLE spending (
    tenant_id       TEXT    NOT NULL,
    day             INTEGER NOT NULL,
    purpose         TEXT    NOT NULL,
    operations      INTEGER NOT NULL,
    model_calls     INTEGER NOT NULL,
    tokens_in       INTEGER NOT NULL,
    tokens_out      INTEGER NOT NULL,
    texts_embedded  INTEGER NOT NULL,
    tokens_embedded INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, day, purpose)
) WITHOUT ROWID;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('messages', 'messages', '1000000 1000000 1'),
    ('messages', 'messages_id', '1000000 1000000 1'),
    ('messages', 'messages_key', '1000000 1000000 1'),
    ('messages', 'messages_session', '1000000 1000000 30 1 1'),
    ('messages', 'messages_response', '1000000 1000000 2'),
    ('messages', 'messages_user', '1000000 1000000 1000 1'),
    ('sessions', 'sessions', '100000 100000 1'),
    ('sessions', 'sessions_order', '100000 100000 1'),
    ('sessions', 'sessions_channel', '100000 100000 100 1'),
    ('sessions', 'sessions_status', '100000 100000 30000 1'),
    ('sessions', 'sessions_due', '1000 1'),
    ('sessions', 'sessions_pending', '1000 1000 1000 1'),
    ('rollups', 'rollups', '10000 10000 20 10 1'),
    ('rollups', 'rollups_stale', '100 100 100 1'),
    ('rollups', 'rollups_memory', '10000 10000 1'),
    ('memory_sources', 'memory_sources', '100000 100000 2 1'),
    ('memory_sources', 'memory_sources_seq', '100000 100000 2'),
    ('memories', 'memories_facts', '10000 10000 1'),
    ('memories', 'memories_superseded', '10000 10000 2'),
    ('sessions', 'sessions_unread', '1000 1000 1'),
    ('spending', 'spending', '10000 10000 10 1');
ANALYZE sqlite_schema;
