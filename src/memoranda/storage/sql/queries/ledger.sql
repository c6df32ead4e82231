-- name: add_spending
INSERT INTO spending (
    tenant_id, day, purpose, operations, model_calls, tokens_in, tokens_out, texts_embedded, tokens_embedded
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant_id, day, purpose) DO UPDATE SET
    operations = spending.operations + excluded.operations,
    model_calls = spending.model_calls + excluded.model_calls,
    tokens_in = spending.tokens_in + excluded.tokens_in,
    tokens_out = spending.tokens_out + excluded.tokens_out,
    texts_embedded = spending.texts_embedded + excluded.texts_embedded,
    tokens_embedded = spending.tokens_embedded + excluded.tokens_embedded

-- name: spent_between
SELECT day, purpose, operations, model_calls, tokens_in, tokens_out, texts_embedded, tokens_embedded
FROM spending WHERE tenant_id = ? AND day >= ? AND day <= ? ORDER BY day, purpose

-- name: go_on_spending (jobs that wait for a limit look again now)
UPDATE jobs SET run_at = ? WHERE tenant_id = ? AND state = 'queued' AND error LIKE 'spending: %'
