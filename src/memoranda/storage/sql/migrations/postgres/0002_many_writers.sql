-- Revisions of a write that an index outside the database has still to take. Kept only where several processes
-- write: one row a transaction, gone once the index has it.
CREATE TABLE unsettled (
    tenant_id TEXT COLLATE "C" NOT NULL,
    rev       BIGINT NOT NULL,
    since     BIGINT NOT NULL,
    noted_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, rev)
);
ALTER TABLE unsettled ENABLE ROW LEVEL SECURITY;
ALTER TABLE unsettled FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON unsettled USING (tenant_id = (SELECT current_setting('memoranda.tenant', true))
    OR (SELECT current_setting('memoranda.house', true)) = 'on');
