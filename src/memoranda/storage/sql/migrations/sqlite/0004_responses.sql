-- What agents say: responses and their chains, conversations and their items, agent profiles.

CREATE TABLE conversations (
    tenant_id  TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    seq        INTEGER NOT NULL,
    user_id    TEXT,
    metadata   TEXT    NOT NULL,
    summary    TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX conversations_order ON conversations (tenant_id, seq);

-- What was said in a conversation, in order.
CREATE TABLE conversation_items (
    tenant_id       TEXT    NOT NULL,
    conversation_id TEXT    NOT NULL,
    seq             INTEGER NOT NULL,
    id              TEXT    NOT NULL,
    response_id     TEXT,
    item            TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, conversation_id, seq),
    FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations (tenant_id, id) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE UNIQUE INDEX conversation_items_id ON conversation_items (tenant_id, conversation_id, id);

-- `body` is the response as it is shown, without what has a column; `input` and `output` are lists of items. `session_id`
-- is the conversation, or the first response of the chain. `summary` is of the chain up to the response `summarized_to`.
CREATE TABLE responses (
    tenant_id       TEXT    NOT NULL,
    id              TEXT    NOT NULL,
    seq             INTEGER NOT NULL,
    user_id         TEXT,
    session_id      TEXT    NOT NULL,
    previous_id     TEXT,
    conversation_id TEXT,
    agent_id        TEXT,
    status          TEXT    NOT NULL,
    background      INTEGER NOT NULL DEFAULT 0,
    body            TEXT    NOT NULL,
    input           TEXT    NOT NULL,
    output          TEXT    NOT NULL,
    summary         TEXT,
    summarized_to   TEXT,
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX responses_order ON responses (tenant_id, seq);
CREATE INDEX responses_session ON responses (tenant_id, session_id, seq);
CREATE INDEX responses_previous ON responses (tenant_id, previous_id) WHERE previous_id IS NOT NULL;

-- The events of a background response, in runs: `first` to `last` are their sequence numbers, `events` one a line.
CREATE TABLE response_events (
    tenant_id   TEXT    NOT NULL,
    response_id TEXT    NOT NULL,
    first       INTEGER NOT NULL,
    last        INTEGER NOT NULL,
    events      TEXT    NOT NULL,
    PRIMARY KEY (tenant_id, response_id, first),
    FOREIGN KEY (tenant_id, response_id) REFERENCES responses (tenant_id, id) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE TABLE agents (
    tenant_id  TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    seq        INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    user_id    TEXT,
    body       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX agents_order ON agents (tenant_id, seq);
CREATE INDEX agents_name ON agents (tenant_id, name);

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('conversations', 'conversations', '100000 100000 1'),
    ('conversations', 'conversations_order', '100000 100000 1'),
    ('conversation_items', 'conversation_items', '1000000 1000000 50 1'),
    ('conversation_items', 'conversation_items_id', '1000000 1000000 50 1'),
    ('responses', 'responses', '1000000 1000000 1'),
    ('responses', 'responses_order', '1000000 1000000 1'),
    ('responses', 'responses_session', '1000000 1000000 20 1'),
    ('responses', 'responses_previous', '1000000 1000000 1'),
    ('response_events', 'response_events', '100000 100000 20 1'),
    ('agents', 'agents', '1000 1000 1'),
    ('agents', 'agents_order', '1000 1000 1'),
    ('agents', 'agents_name', '1000 1000 1');
ANALYZE sqlite_schema;
