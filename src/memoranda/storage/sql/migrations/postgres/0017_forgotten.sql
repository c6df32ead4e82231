-- What was forgotten by request, so that importing an older export does not bring it back: digests, no ids and no text.
-- `mark` is keyed with `salt`, which an export has as well.
CREATE TABLE forgotten (
    tenant_id    TEXT COLLATE "C" NOT NULL,
    salt         TEXT COLLATE "C" NOT NULL,
    mark         TEXT COLLATE "C" NOT NULL,
    forgotten_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, salt, mark, forgotten_at)
);
ALTER TABLE forgotten ENABLE ROW LEVEL SECURITY;
ALTER TABLE forgotten FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON forgotten USING (
    tenant_id = (SELECT current_setting('memoranda.tenant', true))
    OR (SELECT current_setting('memoranda.house', true)) = 'on'
);
