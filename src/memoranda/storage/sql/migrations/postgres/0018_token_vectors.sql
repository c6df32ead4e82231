-- The codes of a text's token vectors: NULL until they are made, empty where there are none to make, of a vector that came
-- with its text.
ALTER TABLE embeddings ADD COLUMN tokens BYTEA;
UPDATE embeddings SET tokens = '' WHERE text_hash LIKE 'given-%';
CREATE INDEX embeddings_without_tokens ON embeddings (tenant_id, space, seq) WHERE tokens IS NULL;
