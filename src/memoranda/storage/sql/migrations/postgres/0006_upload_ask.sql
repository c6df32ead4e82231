-- Questions that were asked of uploaded documents: the log of them, their sessions, and what became of them.

-- The store that holds a user's documents; `owner` is the user's id, or '' for nobody's.
CREATE TABLE ask_stores (
    tenant_id TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    store_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, owner)
);

-- Whose a session is; what was said in it stands in `messages`, how it stands in `sessions`.
CREATE TABLE ask_sessions (
    tenant_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    user_id TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX ask_sessions_user ON ask_sessions (tenant_id, user_id, seq);
CREATE INDEX ask_sessions_order ON ask_sessions (tenant_id, seq);

-- One question with its answer. A row is written once and stays as it is; only forgetting takes its texts away.
CREATE TABLE query_log (
    tenant_id TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C",
    question TEXT COLLATE "C" NOT NULL,
    answer TEXT COLLATE "C" NOT NULL,
    sources TEXT COLLATE "C" NOT NULL,
    memories TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    latency_ms BIGINT NOT NULL,
    question_tokens BIGINT NOT NULL,
    answer_tokens BIGINT NOT NULL,
    document_tokens BIGINT NOT NULL,
    memory_tokens BIGINT NOT NULL,
    history_tokens BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    erased_at BIGINT,
    PRIMARY KEY (tenant_id, seq)
);
CREATE UNIQUE INDEX query_log_id ON query_log (tenant_id, id);
CREATE INDEX query_log_session ON query_log (tenant_id, session_id, seq);
CREATE INDEX query_log_user ON query_log (tenant_id, user_id, seq);

CREATE FUNCTION query_log_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the query log is written once; only its texts can be erased';
END $$;
CREATE TRIGGER query_log_stays BEFORE UPDATE ON query_log FOR EACH ROW
WHEN (NOT (
    NEW.question = '' AND NEW.answer = '' AND NEW.sources = '[]' AND NEW.memories = '[]' AND NEW.erased_at IS NOT NULL
    AND NEW.tenant_id = OLD.tenant_id AND NEW.seq = OLD.seq AND NEW.id = OLD.id AND NEW.session_id = OLD.session_id
    AND NEW.user_id IS NOT DISTINCT FROM OLD.user_id AND NEW.status = OLD.status AND NEW.model = OLD.model
    AND NEW.latency_ms = OLD.latency_ms AND NEW.question_tokens = OLD.question_tokens
    AND NEW.answer_tokens = OLD.answer_tokens AND NEW.document_tokens = OLD.document_tokens
    AND NEW.memory_tokens = OLD.memory_tokens AND NEW.history_tokens = OLD.history_tokens
    AND NEW.created_at = OLD.created_at
))
EXECUTE FUNCTION query_log_stays();

-- What a row of the log became: a memory, or none where it is NULL. A row that stands here is never derived again,
-- also when its memory was pruned or deleted since.
CREATE TABLE ask_memories (
    tenant_id TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    memory_id TEXT COLLATE "C",
    PRIMARY KEY (tenant_id, seq)
);

-- The summaries of a session: each tells of what was asked after the one before, up to `through` (a row of the log).
CREATE TABLE ask_summaries (
    tenant_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    through BIGINT NOT NULL,
    memory_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, session_id, through)
);

CREATE INDEX memories_asked ON memories (tenant_id, coalesce(user_id, ''), importance, occurred_at, seq)
WHERE source IN ('qa_turn', 'summary', 'manual');

DO $$
DECLARE name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY['ask_stores', 'ask_sessions', 'query_log', 'ask_memories', 'ask_summaries']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY own_tenant ON %I USING ('
            'tenant_id = (SELECT current_setting(''memoranda.tenant'', true))'
            ' OR (SELECT current_setting(''memoranda.house'', true)) = ''on'')',
            name
        );
    END LOOP;
END $$;
