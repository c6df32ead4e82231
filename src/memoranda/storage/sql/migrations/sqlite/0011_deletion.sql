-- What deleted responses added to conversations, and summaries that may tell of them.
CREATE INDEX conversation_items_response ON conversation_items (tenant_id, response_id) WHERE response_id IS NOT NULL;
CREATE INDEX responses_summary ON responses (tenant_id, session_id, seq) WHERE summary IS NOT NULL;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('conversation_items', 'conversation_items_response', '1000000 1000000 3'),
    ('responses', 'responses_summary', '10000 10000 2 1');
ANALYZE sqlite_schema;
