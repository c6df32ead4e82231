-- Agent profiles. Lists are composed in code (`responses/profiles.py`), for who may see what.

-- name: add_agent
INSERT INTO agents (tenant_id, id, seq, name, user_id, body, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)

-- name: get_agent
SELECT tenant_id, id, seq, name, user_id, body, created_at, updated_at FROM agents WHERE tenant_id = ? AND id = ?

-- name: set_agent
UPDATE agents SET name = ?, body = ?, updated_at = ? WHERE tenant_id = ? AND id = ?

-- name: drop_agent
DELETE FROM agents WHERE tenant_id = ? AND id = ?

-- name: count_agents
SELECT count(*) FROM agents WHERE tenant_id = ?
