"""The verbs as commands: `memoranda --help` lists them."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Runs the program with the words of its command line, and ends the process with its exit code.

    A hook must answer within 300 ms, which the imports of the other commands take alone.
    """
    words = sys.argv[1:]
    if words[:1] == ["hook"] and not {"-h", "--help"} & set(words):
        from memoranda.cli.hooks.main import run_hook

        run_hook(words[1:])
    else:
        from memoranda.cli.app import main as run

        run()
