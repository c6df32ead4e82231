"""Files kept in step with what was indexed of them: what is new comes in, what changed is replaced, the rest stays.

A run keeps no notes of its own. The target says what it has, so that a run goes on where another was broken off, and
what others put there is left alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from memoranda.app.folder_sync.scan import Skipped

Done = TypeVar("Done", bound="Synced")


class Synced(msgspec.Struct):
    """The result of a run, so far. `stopped` says why the rest was not processed; `gone` files are in the target and
    were not among the files."""

    unchanged: int = 0
    added: int = 0
    removed: int = 0
    chunks: int = 0
    gone: list[str] = msgspec.field(default_factory=list)
    skipped: list[Skipped] = msgspec.field(default_factory=list)
    stopped: str | None = None


class FolderSync(ABC, Generic[Done]):
    """One run. `_begin` reads what the target has (`stored`, by path), `_take` brings a file in and adds its path to
    `seen`, `_finish` waits until all are in, and `_settle` removes those that are gone, and whatever was replaced."""

    _on_progress: Callable[[Done], None]
    stored: Mapping[str, Any]
    seen: set[str]
    skipped_stay: ClassVar[bool]
    """True if a file that is skipped for what it is stays in the target, not only one that cannot be read."""

    def __init__(self, done: Done, prune: bool) -> None:
        self.done = done
        self._prune = prune

    def run(
        self,
        paths: Sequence[Path],
        roots: Sequence[Path],
        unreadable: Sequence[Path] = (),
        on_progress: Callable[[Done], None] = lambda done: None,
    ) -> Done:
        """Synchronize the target with the files at `paths`. Files of the target from below `roots` that are not among
        them are reported as gone, and removed if pruning; what is at or below `unreadable` is not gone."""
        done, self._on_progress = self.done, on_progress
        self._begin()
        for path in paths:
            self._take(path)
            if done.stopped is not None:
                break
        self._finish()
        if done.stopped is None:
            there = [item.path for item in done.skipped if item.unreadable or self.skipped_stay]
            done.gone = gone(self.stored.keys() - self.seen, roots, [*unreadable, *there])
        self._settle(done.gone if self._prune else [])
        return done

    @abstractmethod
    def _begin(self) -> None: ...
    @abstractmethod
    def _take(self, path: Path) -> None: ...
    @abstractmethod
    def _finish(self) -> None: ...
    @abstractmethod
    def _settle(self, gone: Iterable[str]) -> None: ...


def gone(missing: Iterable[str], roots: Sequence[Path], there: Sequence[Path]) -> list[str]:
    """Return those of the paths that are at or below `roots`, except those at or below `there`."""
    return [path for path in sorted(missing) if _below(path, roots) and not _below(path, there)]


def _below(path: str, roots: Sequence[Path]) -> bool:
    return any(Path(path) == root or root in Path(path).parents for root in roots)
