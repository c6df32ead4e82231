"""Progress bars on standard error; none if it is not a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

Report = Callable[[int, int | None, str], None]
"""Called with the number done, the total (None: unknown), and a few words beside the bar."""


@contextmanager
def bar(what: str, *, quiet: bool = False) -> Iterator[Report]:
    """Show a progress bar; yield the function that updates it."""
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[words]}"),
    )
    hidden = quiet or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task(what, total=None, words="")

        def report(done: int, total: int | None, words: str = "") -> None:
            progress.update(task, completed=done, total=total, words=words)

        yield report
