-- The places in their lists of rows that were deleted a short time ago, for a client that deletes what it lists: the page
-- after a deleted row can still be asked for. `key` is a hash of the list, the subject that deleted the row, and its id.
CREATE TABLE left_places (
    tenant_id TEXT    NOT NULL,
    key       TEXT    NOT NULL,
    seq       INTEGER NOT NULL,
    left_at   INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, key)
) WITHOUT ROWID;
CREATE INDEX left_places_at ON left_places (tenant_id, left_at);
