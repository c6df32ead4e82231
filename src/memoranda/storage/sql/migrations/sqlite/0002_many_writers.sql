-- Revisions of a write that an index outside the database has still to take. Kept only where several processes
-- write: one row a transaction, gone once the index has it.
CREATE TABLE unsettled (
    tenant_id TEXT    NOT NULL,
    rev       INTEGER NOT NULL,
    since     INTEGER NOT NULL,
    noted_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, rev)
) WITHOUT ROWID;
