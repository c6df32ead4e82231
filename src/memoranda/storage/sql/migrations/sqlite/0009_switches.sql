-- What a tenant, or one of its channels (`channel_id`, '' for the whole tenant), has switched on (1) or off (0), where it
-- is not what the configuration says.
CREATE TABLE switches (
    tenant_id  TEXT    NOT NULL,
    channel_id TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    value      INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, channel_id, name)
) WITHOUT ROWID;
