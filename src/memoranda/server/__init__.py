"""The HTTP server; nothing below knows of it."""
