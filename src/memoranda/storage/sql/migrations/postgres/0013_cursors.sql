-- The places in their lists of rows that were deleted a short time ago, for a client that deletes what it lists: the page
-- after a deleted row can still be asked for. `key` is a hash of the list, the subject that deleted the row, and its id.
CREATE TABLE left_places (
    tenant_id TEXT COLLATE "C" NOT NULL,
    key       TEXT COLLATE "C" NOT NULL,
    seq       BIGINT NOT NULL,
    left_at   BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, key)
);
CREATE INDEX left_places_at ON left_places (tenant_id, left_at);
ALTER TABLE left_places ENABLE ROW LEVEL SECURITY;
ALTER TABLE left_places FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON left_places USING (
    tenant_id = (SELECT current_setting('memoranda.tenant', true))
    OR (SELECT current_setting('memoranda.house', true)) = 'on'
);
