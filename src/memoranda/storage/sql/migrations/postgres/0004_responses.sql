-- What agents say: responses and their chains, conversations and their items, agent profiles.

CREATE TABLE conversations (
    tenant_id  TEXT COLLATE "C" NOT NULL,
    id         TEXT COLLATE "C" NOT NULL,
    seq        BIGINT NOT NULL,
    user_id    TEXT COLLATE "C",
    metadata   TEXT COLLATE "C" NOT NULL,
    summary    TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX conversations_order ON conversations (tenant_id, seq);

-- What was said in a conversation, in order.
CREATE TABLE conversation_items (
    tenant_id       TEXT COLLATE "C" NOT NULL,
    conversation_id TEXT COLLATE "C" NOT NULL,
    seq             BIGINT NOT NULL,
    id              TEXT COLLATE "C" NOT NULL,
    response_id     TEXT COLLATE "C",
    item            TEXT COLLATE "C" NOT NULL,
    created_at      BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, conversation_id, seq),
    FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations (tenant_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX conversation_items_id ON conversation_items (tenant_id, conversation_id, id);

-- `body` is the response as it is shown, without what has a column; `input` and `output` are lists of items. `session_id`
-- is the conversation, or the first response of the chain. `summary` is of the chain up to the response `summarized_to`.
CREATE TABLE responses (
    tenant_id       TEXT COLLATE "C" NOT NULL,
    id              TEXT COLLATE "C" NOT NULL,
    seq             BIGINT NOT NULL,
    user_id         TEXT COLLATE "C",
    session_id      TEXT COLLATE "C" NOT NULL,
    previous_id     TEXT COLLATE "C",
    conversation_id TEXT COLLATE "C",
    agent_id        TEXT COLLATE "C",
    status          TEXT COLLATE "C" NOT NULL,
    background      BIGINT NOT NULL DEFAULT 0,
    body            TEXT COLLATE "C" NOT NULL,
    input           TEXT COLLATE "C" NOT NULL,
    output          TEXT COLLATE "C" NOT NULL,
    summary         TEXT COLLATE "C",
    summarized_to   TEXT COLLATE "C",
    created_at      BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX responses_order ON responses (tenant_id, seq);
CREATE INDEX responses_session ON responses (tenant_id, session_id, seq);
CREATE INDEX responses_previous ON responses (tenant_id, previous_id) WHERE previous_id IS NOT NULL;

-- The events of a background response, in runs: `first` to `last` are their sequence numbers, `events` one a line.
CREATE TABLE response_events (
    tenant_id   TEXT COLLATE "C" NOT NULL,
    response_id TEXT COLLATE "C" NOT NULL,
    first       BIGINT NOT NULL,
    last        BIGINT NOT NULL,
    events      TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, response_id, first),
    FOREIGN KEY (tenant_id, response_id) REFERENCES responses (tenant_id, id) ON DELETE CASCADE
);

CREATE TABLE agents (
    tenant_id  TEXT COLLATE "C" NOT NULL,
    id         TEXT COLLATE "C" NOT NULL,
    seq        BIGINT NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    user_id    TEXT COLLATE "C",
    body       TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX agents_order ON agents (tenant_id, seq);
CREATE INDEX agents_name ON agents (tenant_id, name);

DO $$
DECLARE name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY['conversations', 'conversation_items', 'responses', 'response_events', 'agents']
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
