"""The verbs as commands: `memoranda --help` lists them."""

from memoranda.cli.app import app, main

__all__ = ["app", "main"]
