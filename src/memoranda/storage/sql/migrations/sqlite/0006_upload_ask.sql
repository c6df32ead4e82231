-- Questions that were asked of uploaded documents: the log of them, their sessions, and what became of them.

-- The store that holds a user's documents; `owner` is the user's id, or '' for nobody's.
CREATE TABLE ask_stores (
    tenant_id TEXT NOT NULL,
    owner     TEXT NOT NULL,
    store_id  TEXT NOT NULL,
    PRIMARY KEY (tenant_id, owner)
) WITHOUT ROWID;

-- Whose a session is; what was said in it stands in `messages`, how it stands in `sessions`.
CREATE TABLE ask_sessions (
    tenant_id  TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    seq        INTEGER NOT NULL,
    user_id    TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE INDEX ask_sessions_user ON ask_sessions (tenant_id, user_id, seq);
CREATE INDEX ask_sessions_order ON ask_sessions (tenant_id, seq);

-- One question with its answer. A row is written once and stays as it is; only forgetting takes its texts away.
CREATE TABLE query_log (
    tenant_id       TEXT    NOT NULL,
    seq             INTEGER NOT NULL,
    id              TEXT    NOT NULL,
    session_id      TEXT    NOT NULL,
    user_id         TEXT,
    question        TEXT    NOT NULL,
    answer          TEXT    NOT NULL,
    sources         TEXT    NOT NULL,
    memories        TEXT    NOT NULL,
    status          TEXT    NOT NULL,
    model           TEXT    NOT NULL,
    latency_ms      INTEGER NOT NULL,
    question_tokens INTEGER NOT NULL,
    answer_tokens   INTEGER NOT NULL,
    document_tokens INTEGER NOT NULL,
    memory_tokens   INTEGER NOT NULL,
    history_tokens  INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    erased_at       INTEGER,
    PRIMARY KEY (tenant_id, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX query_log_id ON query_log (tenant_id, id);
CREATE INDEX query_log_session ON query_log (tenant_id, session_id, seq);
CREATE INDEX query_log_user ON query_log (tenant_id, user_id, seq);

CREATE TRIGGER query_log_stays BEFORE UPDATE ON query_log
WHEN NOT (
    NEW.question = '' AND NEW.answer = '' AND NEW.sources = '[]' AND NEW.memories = '[]' AND NEW.erased_at IS NOT NULL
    AND NEW.tenant_id = OLD.tenant_id AND NEW.seq = OLD.seq AND NEW.id = OLD.id AND NEW.session_id = OLD.session_id
    AND NEW.user_id IS OLD.user_id AND NEW.status = OLD.status AND NEW.model = OLD.model
    AND NEW.latency_ms = OLD.latency_ms AND NEW.question_tokens = OLD.question_tokens
    AND NEW.answer_tokens = OLD.answer_tokens AND NEW.document_tokens = OLD.document_tokens
    AND NEW.memory_tokens = OLD.memory_tokens AND NEW.history_tokens = OLD.history_tokens
    AND NEW.created_at = OLD.created_at
)
BEGIN
    SELECT RAISE(ABORT, 'the query log is written once; only its texts can be erased');
END;

-- What a row of the log became: a memory, or none where it is NULL. A row that stands here is never derived again,
-- also when its memory was pruned or deleted since.
CREATE TABLE ask_memories (
    tenant_id TEXT    NOT NULL,
    seq       INTEGER NOT NULL,
    memory_id TEXT,
    PRIMARY KEY (tenant_id, seq)
) WITHOUT ROWID;

-- The summaries of a session: each tells of what was asked after the one before, up to `through` (a row of the log).
CREATE TABLE ask_summaries (
    tenant_id  TEXT    NOT NULL,
    session_id TEXT    NOT NULL,
    through    INTEGER NOT NULL,
    memory_id  TEXT    NOT NULL,
    PRIMARY KEY (tenant_id, session_id, through)
) WITHOUT ROWID;

CREATE INDEX memories_asked ON memories (tenant_id, coalesce(user_id, ''), importance, occurred_at, seq)
WHERE source IN ('qa_turn', 'summary', 'manual');

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('ask_stores', 'ask_stores', '1000 1000 1'),
    ('ask_sessions', 'ask_sessions', '100000 100000 1'),
    ('ask_sessions', 'ask_sessions_user', '100000 100000 20 1'),
    ('ask_sessions', 'ask_sessions_order', '100000 100000 1'),
    ('query_log', 'query_log', '1000000 1000000 1'),
    ('query_log', 'query_log_id', '1000000 1000000 1'),
    ('query_log', 'query_log_session', '1000000 1000000 10 1'),
    ('query_log', 'query_log_user', '1000000 1000000 200 1'),
    ('ask_memories', 'ask_memories', '1000000 1000000 1'),
    ('ask_summaries', 'ask_summaries', '100000 100000 4 1'),
    ('memories', 'memories_asked', '100000 100000 200 50 2 1');
ANALYZE sqlite_schema;
