"""The verbs as commands: `recollect --help` lists them."""

from recollect.cli.app import app, main

__all__ = ["app", "main"]
