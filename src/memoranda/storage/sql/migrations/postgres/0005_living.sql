-- What was said, in order; its sessions with their summaries; what memories were made of; what was spent.

-- The message log. `id` is also that of the memory in which a message is found, if it is found at all; `key` makes a
-- message that is sent again the same one. `session_id` names a row of `sessions`.
CREATE TABLE messages (
    tenant_id TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    channel_id TEXT COLLATE "C",
    user_id TEXT COLLATE "C",
    agent_id TEXT COLLATE "C",
    role TEXT COLLATE "C" NOT NULL,
    speaker TEXT COLLATE "C",
    content TEXT COLLATE "C" NOT NULL,
    tokens BIGINT NOT NULL,
    metadata TEXT COLLATE "C" NOT NULL,
    response_id TEXT COLLATE "C",
    indexed BIGINT NOT NULL,
    extract BIGINT NOT NULL,
    occurred_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, seq)
);
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
    tenant_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    rev BIGINT NOT NULL,
    named BIGINT NOT NULL,
    private BIGINT NOT NULL,
    channel_id TEXT COLLATE "C",
    user_id TEXT COLLATE "C",
    agent_id TEXT COLLATE "C",
    metadata TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    started_at BIGINT NOT NULL,
    ended_at BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    message_count BIGINT NOT NULL,
    participants TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    users TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    status TEXT COLLATE "C" NOT NULL,
    summary TEXT COLLATE "C",
    topics TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    decisions TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    open_questions TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    action_items TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    entities TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    summary_id TEXT COLLATE "C",
    summary_model TEXT COLLATE "C",
    summary_version BIGINT,
    summary_created_at BIGINT,
    summary_rev BIGINT,
    failure TEXT COLLATE "C",
    pending BIGINT NOT NULL DEFAULT 0,
    attempts BIGINT NOT NULL DEFAULT 0,
    next_try_at BIGINT NOT NULL DEFAULT 0,
    extraction TEXT COLLATE "C" NOT NULL DEFAULT 'off',
    facts_seq BIGINT NOT NULL DEFAULT 0,
    facts_rev BIGINT NOT NULL DEFAULT 0,
    facts_failure TEXT COLLATE "C",
    facts_attempts BIGINT NOT NULL DEFAULT 0,
    facts_next_try_at BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX sessions_order ON sessions (tenant_id, seq);
CREATE INDEX sessions_channel ON sessions (tenant_id, channel_id, ended_at) WHERE channel_id IS NOT NULL;
CREATE INDEX sessions_status ON sessions (tenant_id, status, ended_at);
CREATE INDEX sessions_due ON sessions (due_at) WHERE status = 'open';
CREATE INDEX sessions_unread ON sessions (tenant_id, seq) WHERE extraction <> 'off' AND facts_rev < rev;
CREATE INDEX sessions_pending ON sessions (pending, tenant_id, next_try_at) WHERE pending = 1;

-- One summary a channel, week (its first day, in days since 1970) and owner ('': nobody) of the summaries of its
-- sessions. `stale` says that one of them has changed since, `due_at` when it is made again.
CREATE TABLE rollups (
    tenant_id TEXT COLLATE "C" NOT NULL,
    channel_id TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    week BIGINT NOT NULL,
    memory_id TEXT COLLATE "C",
    version BIGINT NOT NULL,
    sessions BIGINT NOT NULL,
    stale BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    failure TEXT COLLATE "C",
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, channel_id, owner, week)
);
CREATE INDEX rollups_stale ON rollups (stale, tenant_id, due_at) WHERE stale = 1;
CREATE INDEX rollups_memory ON rollups (tenant_id, memory_id) WHERE memory_id IS NOT NULL;

-- What a memory was made of: ids of messages, of memories, of responses.
CREATE TABLE memory_sources (
    tenant_id TEXT COLLATE "C" NOT NULL,
    source_id TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, source_id, seq),
    FOREIGN KEY (tenant_id, seq) REFERENCES memories (tenant_id, seq) ON DELETE CASCADE
);
CREATE INDEX memory_sources_seq ON memory_sources (tenant_id, seq);
INSERT INTO memory_sources
SELECT m.tenant_id, j.value, m.seq FROM memories m, jsonb_array_elements_text(CAST(m.source_refs AS jsonb)) AS j (value)
WHERE m.source_refs <> '[]' ON CONFLICT DO NOTHING;

CREATE INDEX memories_facts ON memories (tenant_id, seq) WHERE kind = 'fact';
CREATE INDEX memories_superseded ON memories (tenant_id, superseded_by) WHERE superseded_by IS NOT NULL;

-- What a tenant's reads and writes cost, by day (days since 1970, UTC) and purpose.
CREATE TABLE spending (
    tenant_id TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    purpose TEXT COLLATE "C" NOT NULL,
    operations BIGINT NOT NULL,
    model_calls BIGINT NOT NULL,
    tokens_in BIGINT NOT NULL,
    tokens_out BIGINT NOT NULL,
    texts_embedded BIGINT NOT NULL,
    tokens_embedded BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, day, purpose)
);


DO $$
DECLARE name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY['messages', 'sessions', 'rollups', 'memory_sources', 'spending']
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
