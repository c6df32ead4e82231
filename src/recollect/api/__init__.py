"""The HTTP server; nothing below knows of it."""

from recollect.api.app import create_app
from recollect.api.serve import serve, work

__all__ = ["create_app", "serve", "work"]
