"""The dry run of an import into a folder: each write is made in a transaction that is rolled back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from memoranda.app.history_import import Add, Observe, new_ends
from memoranda.app.history_report import Stored
from memoranda.errors import Conflict
from memoranda.memories.memories import Memories
from memoranda.sessions.sessions import Sessions
from memoranda.store.core import Core
from memoranda.store.rows import to_memory
from memoranda.store.transaction import Writing
from memoranda.text.hashing import digest
from memoranda.types import Added

T = TypeVar("T")


class _RolledBack(Exception):
    """Ends a transaction without a commit; has its result."""

    def __init__(self, result: Any) -> None:
        super().__init__("the transaction is rolled back")
        self.result = result


class Trial:
    """What would become of the writes of an import, one after the other. No model is called."""

    def __init__(self, core: Core, memories: Memories, sessions: Sessions) -> None:
        self._core = core
        self._memories = memories
        self._sessions = sessions
        self._keys: dict[str, str] = {}
        """What earlier writes would have stored: the id of each memory and the text of each message, by key."""
        self._ids: set[str] = set()

    async def perform(self, write: Observe | Add) -> Sequence[Stored]:
        """Return what would become of each part of a write. Errors as the write itself."""
        return await (self._observe(write) if isinstance(write, Observe) else self._add(write))

    async def _observe(self, write: Observe) -> Sequence[Stored]:
        ready = await self._sessions.prepare(write.messages, **write.place)
        rows = [row for _, logged in await self._tried(ready.write) for row in logged.rows]
        texts = {row.key: digest(row.content) for row, created in rows if created}
        for key, text in texts.items():
            if self._keys.get(key, text) != text:
                raise Conflict("id: already names another text")
        stored: list[Stored] = [
            "created" if created and row.key not in self._keys else "present" for row, created in rows
        ]
        self._keys |= texts
        return stored

    async def _add(self, write: Add) -> Sequence[Stored]:
        drafts = self._memories.prepare(write.memories)
        outcomes = await self._tried(lambda w: w.insert(drafts))
        created = {each.row.dedup_key: each.row.id for each in outcomes if each.created}
        fresh = {key: id_ for key, id_ in created.items() if key not in self._keys}
        if not self._ids.isdisjoint(fresh.values()):
            raise Conflict("id: already names another text")
        stored: list[Stored] = [
            "created" if each.created and each.row.dedup_key in fresh else "present" for each in outcomes
        ]
        added = [
            Added(memory=to_memory(each.row), created=each.created, embedded=each.embedded)
            for each in outcomes
        ]
        for place in new_ends(write.memories, added):
            stored[place] = "ended"
        self._keys |= fresh
        self._ids |= {*fresh.values()}
        return stored

    async def _tried(self, work: Callable[[Writing], T]) -> T:
        """Return the result of a transaction that changes nothing."""

        def undone(w: Writing) -> None:
            raise _RolledBack(work(w))

        try:
            await self._core.threads.result(
                self._core.store.transact(self._memories.subject.tenant_id, undone)
            )
        except _RolledBack as exc:
            result: T = exc.result
            return result
        raise AssertionError("a trial is rolled back")
