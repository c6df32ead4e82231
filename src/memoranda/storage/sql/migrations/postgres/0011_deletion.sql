-- What deleted responses added to conversations, and summaries that may tell of them.
CREATE INDEX conversation_items_response ON conversation_items (tenant_id, response_id) WHERE response_id IS NOT NULL;
CREATE INDEX responses_summary ON responses (tenant_id, session_id, seq) WHERE summary IS NOT NULL;
