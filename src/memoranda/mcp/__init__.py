"""Memory and knowledge as a Model Context Protocol server: tools, resources and prompts."""
