"""The command line: `memoranda --help` lists the commands."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the program with the arguments of the process, and end the process with its exit code.

    A hook must answer within 300 ms; the imports of the other commands alone take that long.
    """
    words = sys.argv[1:]
    if words[:1] == ["hook"] and not {"-h", "--help"} & set(words):
        from memoranda.cli.hooks.main import run_hook

        run_hook(words[1:])
    elif words in (["-h"], ["--help"]):
        from shutil import get_terminal_size

        from memoranda.cli.commands import overview

        print(overview(get_terminal_size().columns))
    else:
        try:
            from memoranda.cli.app import main as run
        except ModuleNotFoundError as exc:
            from memoranda.extras import needed

            if (says := needed(exc)) is None:
                raise
            sys.exit(f"memoranda: the command line {says}")
        run()
