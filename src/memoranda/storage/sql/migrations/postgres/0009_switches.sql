-- What a tenant, or one of its channels (`channel_id`, '' for the whole tenant), has switched on (1) or off (0), where it
-- is not what the configuration says.
CREATE TABLE switches (
    tenant_id  TEXT COLLATE "C" NOT NULL,
    channel_id TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    value      BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, channel_id, name)
);
ALTER TABLE switches ENABLE ROW LEVEL SECURITY;
ALTER TABLE switches FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON switches USING (
    tenant_id = (SELECT current_setting('memoranda.tenant', true))
    OR (SELECT current_setting('memoranda.house', true)) = 'on'
);
