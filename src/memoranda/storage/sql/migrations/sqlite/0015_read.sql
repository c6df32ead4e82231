-- What was written after something was read, which deleting a file looks up.
CREATE INDEX memories_read ON memories (tenant_id, seq) WHERE metadata LIKE '%"$read":%';
