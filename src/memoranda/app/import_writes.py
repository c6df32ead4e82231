"""The writes of an import, through the features of a folder or of a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from memoranda.app.history_import import (
    Add,
    Check,
    Find,
    Import,
    Observe,
    advance,
    forgotten_states,
    new_ends,
    states,
)
from memoranda.app.history_report import HistoryImported, Stored
from memoranda.errors import MemorandaError
from memoranda.memories.memories import Memories
from memoranda.sessions.sessions import Sessions

Checked = Callable[[Observe | Add], Awaitable[Sequence[Stored]]]
"""Returns what would become of each part of a write."""


async def import_history(
    work: Import,
    memories: Memories,
    sessions: Sessions,
    check: Checked,
    on_thread: Callable[..., Awaitable[Any]],
) -> HistoryImported:
    """Return the report of an import, after its writes. The source is read on a thread."""
    step = await on_thread(advance, work, None)
    while not isinstance(step, HistoryImported):
        reply: Sequence[Stored] | MemorandaError
        try:
            reply = await (
                check(step.write) if isinstance(step, Check) else _performed(step, memories, sessions)
            )
        except MemorandaError as exc:
            reply = exc
        step = await on_thread(advance, work, reply)
    return step


async def _performed(write: Observe | Add | Find, memories: Memories, sessions: Sessions) -> Sequence[Stored]:
    """Return what became of the parts of a write of an import."""
    if isinstance(write, Observe):
        return states(await sessions.observe(write.messages, **write.place))
    if isinstance(write, Find):
        return forgotten_states(await memories.forgotten(write.memories, write.exported_at))
    added = await memories.add_many(write.memories)
    stored = states(added)
    for place, at in new_ends(write.memories, added).items():
        await memories.update(added[place].memory.id, invalid_at=at)
        stored[place] = "ended"
    return stored
