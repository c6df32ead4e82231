-- Switches of tenants and of their channels; `channel_id` is '' for the whole tenant.

-- name: switches_of (of some of a tenant's channels)
SELECT s.channel_id, s.name, s.value FROM {texts ?2} wanted
{join} switches s ON s.tenant_id = ?1 AND s.channel_id = wanted.value

-- name: switched_on_anywhere
SELECT 1 FROM switches WHERE tenant_id = ? AND name = ? AND value = 1 LIMIT 1

-- name: set_switch
INSERT INTO switches (tenant_id, channel_id, name, value) VALUES (?, ?, ?, ?)
ON CONFLICT (tenant_id, channel_id, name) DO UPDATE SET value = excluded.value

-- name: drop_switch
DELETE FROM switches WHERE tenant_id = ? AND channel_id = ? AND name = ?
