"""Progress on standard error: bars on a terminal; elsewhere a line every ten seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from memoranda.cli.output import say

EVERY_SECONDS = 10.0
Report = Callable[[int, int | None, str], None]
"""Called with the number done, the total (None: unknown), and a few words beside the bar."""


class Lines:
    """Progress as lines on standard error, at most one in `EVERY_SECONDS`: none of work that is done before."""

    def __init__(self) -> None:
        self._last = self._began = time.monotonic()

    def show(self, what: str, done: int, total: int | None, words: str = "") -> None:
        """Print how far the work is, if the last line is old enough."""
        now = time.monotonic()
        if now - self._last < EVERY_SECONDS:
            return
        self._last = now
        count = f"{done:,}" if total is None else f"{done:,} of {total:,}"
        say(", ".join(part for part in (f"{what}: {count}", words, f"{now - self._began:.0f} s") if part))


@contextmanager
def bar(what: str, *, quiet: bool = False) -> Iterator[Report]:
    """Show progress, unless `quiet`; yield the function that updates it."""
    console = Console(stderr=True)
    if not quiet and not console.is_terminal:
        yield partial(Lines().show, what)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[words]}"),
    )
    with Progress(*columns, console=console, transient=True, disable=quiet) as progress:
        task = progress.add_task(what, total=None, words="")

        def report(done: int, total: int | None, words: str = "") -> None:
            progress.update(task, completed=done, total=total, words=words)

        yield report
