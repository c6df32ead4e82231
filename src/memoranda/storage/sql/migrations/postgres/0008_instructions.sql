-- Standing instructions of users, which every context looks up.
CREATE INDEX memories_instructions ON memories (tenant_id, user_id, seq)
WHERE kind = 'fact' AND tags LIKE '%"instruction"%';
