"""`memoranda connect`: writes the configuration of MCP clients, and takes it out again."""
