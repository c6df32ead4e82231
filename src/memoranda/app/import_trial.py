"""The dry run of an import into a folder: each write is made in transactions that are rolled back, as long as those of
the import."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from memoranda.app.history_import import Add, Observe, new_ends
from memoranda.app.history_report import Stored
from memoranda.errors import Conflict
from memoranda.memories.memories import Memories
from memoranda.sessions.sessions import Sessions
from memoranda.store.core import Core
from memoranda.store.rows import to_memory
from memoranda.store.steps import DRAFTS, parted
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
        known = ChainMap({}, self._keys)
        stored: list[Stored] = []
        for some in ready.steps(self._core.config.sessions.batch_size):
            for row, created in [row for _, logged in await self._tried(some.write) for row in logged.rows]:
                stored.append("created" if created and row.key not in known else "present")
                text = digest(row.content)
                if created and known.setdefault(row.key, text) != text:
                    raise Conflict("id: already names another text")
        self._keys |= known.maps[0]
        return stored

    async def _add(self, write: Add) -> Sequence[Stored]:
        known, ids = ChainMap({}, self._keys), set[str]()
        stored: list[Stored] = []
        added: list[Added] = []
        for some in parted(self._memories.prepare(write.memories), self._core.store.weight, DRAFTS):
            for each in await self._tried(partial(Writing.insert, drafts=some)):
                key, id_ = each.row.dedup_key, each.row.id
                fresh = each.created and key not in known
                if fresh and (id_ in self._ids or id_ in ids):
                    raise Conflict("id: already names another text")
                if fresh:
                    known[key] = id_
                    ids.add(id_)
                stored.append("created" if fresh else "present")
                memory = to_memory(each.row)
                added.append(Added(memory=memory, created=each.created, embedded=each.embedded))
        for place in new_ends(write.memories, added):
            stored[place] = "ended"
        self._keys |= known.maps[0]
        self._ids |= ids
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
