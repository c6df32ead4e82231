"""The HTTP server; nothing below knows of it."""

from memoranda.server.app import create_app
from memoranda.server.serve import serve, work

__all__ = ["create_app", "serve", "work"]
