"""What a feature adds to an open library. Features declare it; `install` alone registers it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from memoranda.store.core import Core, Writer
from memoranda.store.forget_preview import Derived
from memoranda.store.forgetting import Eraser
from memoranda.store.job_kinds import JobKind, Listener
from memoranda.store.transaction import Cascade, Edit

T = TypeVar("T")


async def nothing() -> None:
    """Do nothing: the start and the end of a feature without background work."""


class Feature(msgspec.Struct, frozen=True, kw_only=True):
    """What a feature adds to an open library. The order of features is that of their cascades, edits, erasers and
    starts; they stop and close in reverse."""

    jobs: Mapping[str, JobKind] = {}
    """Its jobs, by kind."""
    cascades: Sequence[Cascade] = ()
    """Called with removed memories and messages."""
    edits: Sequence[Edit] = ()
    """Called when the text of a memory or message changes."""
    erasers: Sequence[Eraser] = ()
    """What erases its rows when something is forgotten."""
    derived: Sequence[Derived] = ()
    """What it erases with messages and memories, for previews."""
    writers: Mapping[str, Writer] = {}
    """The writers of memories, by kind, where more than a row is written."""
    caches: Sequence[Callable[[], None]] = ()
    """Called, on any thread, when rows were erased: each clears a cache in memory."""
    due: Sequence[Listener] = ()
    """Called when something becomes due at a moment."""
    on_pending: Callable[[str], None] | None = None
    """Called on the writing thread when rows of a tenant were written without vectors. One feature declares it."""
    on_behind: Callable[[str], None] | None = None
    """Called on the writing thread when an index rejected a change. One feature declares it."""
    start: Callable[[], Awaitable[None]] = nothing
    """Begins its background work, once the workers run."""
    stop: Callable[[], Awaitable[None]] = nothing
    """Ends its background work, while the workers still run."""
    close: Callable[[], Awaitable[None]] = nothing
    """Ends what its jobs use, after the workers have ended."""


def install(core: Core, features: Sequence[Feature]) -> None:
    """Register what the features declare, in their order. Call it once, before jobs run.

    Raises:
        ValueError: two features declare the same kind of job or memory, or both are called for the same event.
    """
    store = core.store
    for feature in features:
        _add(core.jobs.kinds, feature.jobs)
        _add(core.writers, feature.writers)
        store.cascades.extend(feature.cascades)
        store.edits.extend(feature.edits)
        store.caches.extend(feature.caches)
        core.erasers.extend(feature.erasers)
        core.derived.extend(feature.derived)
        for listener in feature.due:
            core.due_times.listen(listener)
    for on_pending in _only(feature.on_pending for feature in features):
        store.on_pending = on_pending
    for on_behind in _only(feature.on_behind for feature in features):
        store.derived.on_behind = on_behind


def _add(known: dict[str, T], declared: Mapping[str, T]) -> None:
    if twice := known.keys() & declared.keys():
        raise ValueError(f"two features declare {', '.join(sorted(twice))}")
    known.update(declared)


def _only(declared: Iterable[T | None]) -> list[T]:
    """Return what one feature declares, as a list of one; empty if none does."""
    calls = [call for call in declared if call is not None]
    if len(calls) > 1:
        raise ValueError(f"two features are called for one event: {calls}")
    return calls
