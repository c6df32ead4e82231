"""What becomes of memory stores when memories are deleted, changed or forgotten elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from memoranda.clock import now_micros
from memoranda.errors import Conflict
from memoranda.memory_stores.rows import MemoryRow
from memoranda.store.core import Core
from memoranda.store.forgetting import Forgetting, removed
from memoranda.store.ids import listed
from memoranda.store.jobs import Run
from memoranda.store.rows import Record, fetch_ids
from memoranda.store.steps import ROWS, TEXTS, parted
from memoranda.store.transaction import Gone, Writing

CLEAR_JOB = "memory_stores.clear"
KIND: Literal["note"] = "note"
"""The kind of the memories by which memories of stores are found."""
VERSIONS = 40
"""Versions that one transaction deletes: as much text as `TEXTS`, where each has the longest content."""
WAKE_AFTER = 0.1
"""Seconds after which workers check for the job of a transaction whose commit is not visible here."""
OWNER = (
    "(SELECT s.user_id FROM memory_stores s"
    " WHERE s.tenant_id = memory_versions.tenant_id AND s.id = memory_versions.store_id)"
)
VERSION_PAGE = "id, memory_id, path, content"


def searched(path: str, content: str) -> str:
    """Return the text of the memory by which a memory of a store is found."""
    return f"{path}\n\n{content}"


def drop_step(w: Writing, store_id: str) -> dict[str, int]:
    """Delete a part of a store, and the store itself with the last one; return the counts."""
    ids = [id_ for (id_,) in w.c.all("memories_of_store", [w.tenant, store_id, ROWS])]
    if ids:
        return erased(w, ids)
    versions = versions_dropped(w)
    return versions or {"memory_stores": w.c.run("drop_memory_store", [w.tenant, store_id])}


def erased(w: Writing, ids: Sequence[str]) -> dict[str, int]:
    """Erase memories of stores. Their versions are erased later, see `versions_dropped`."""
    w.c.run("drop_store_memories", [w.tenant, listed(ids)])
    return removed(w, [row.seq for row in fetch_ids(w.c, w.tenant, ids).values()])


def versions_dropped(w: Writing) -> dict[str, int]:
    """Delete some versions of erased memories; return how many, nothing if there are none."""
    ids = [id_ for (id_,) in w.c.all("erased_versions", [w.tenant, VERSIONS])]
    return {"memory_versions": w.c.run("drop_memory_versions", [w.tenant, listed(ids)])} if ids else {}


class Removal:
    """Hooks of the store, see `Writing`, the job that continues them, and the eraser."""

    def __init__(self, core: Core, loop: asyncio.AbstractEventLoop) -> None:
        self.core = core
        self.loop = loop

    def gone(self, w: Writing, gone: Sequence[Gone]) -> tuple[int, int]:
        """Erase memories of stores whose searchable texts were deleted; a job erases their versions."""
        ids = [memory.id for memory in gone if memory.kind == KIND]
        if ids and w.c.run("drop_store_memories", [w.tenant, listed(ids)]):
            self.core.jobs.place(w.c, w.tenant, CLEAR_JOB, {}, dedup_key="clear")
            with contextlib.suppress(RuntimeError):  # the loop has ended: the next start looks by itself
                self.loop.call_soon_threadsafe(
                    self.loop.call_later, WAKE_AFTER, self.core.jobs.wake, CLEAR_JOB
                )
        return 0, 0

    def edited(self, w: Writing, before: Record, after: Record) -> None:
        """Refuse an edit that does not come from the store.

        Raises:
            Conflict: the text would not be that of the memory at its path any more.
        """
        row = w.c.one("get_store_memory", [w.tenant, after.id]) if before.kind == KIND else None
        if row is None:
            return
        memory = MemoryRow._make(row)
        if after.kind != KIND or after.content != searched(memory.path, memory.content or ""):
            raise Conflict(
                f"{after.id} is {memory.path} of the memory store {memory.store_id}; change its content there"
            )

    async def clear(self, run: Run) -> dict[str, Any]:
        """Handler of the job: delete versions of erased memories until there are none."""
        done = 0
        while some := (await self.core.transact(run.tenant, versions_dropped)).get("memory_versions", 0):
            done += some
            await run.report(done)
        return {"memory_versions": done}

    # --- forgetting --------------------------------------------------------------------------------

    async def erase(self, run: Forgetting) -> None:
        """Erase stores of what is forgotten as a whole, and selected versions: the latest one with its memory, an
        earlier one by redaction. A store whose description contains the phrase loses it."""
        if run.aim.rooms:
            await self._stores(run)
            await self._versions(run)
            await self._names(run)
        while await run.threads.run(self._left, run.aim.tenant):
            await run.change(versions_dropped)

    async def _stores(self, run: Forgetting) -> None:
        aim = run.aim
        where = replace(aim, since=None, until=None).condition(user="user_id", channel="id")
        if not (aim.whole or aim.text is not None):
            return
        async for page in run.pages("memory_stores", "seq, id, name, description, metadata", where):
            for _, id_, name, description, metadata in page:
                if aim.text is None:
                    await self._whole(run, id_)
                elif aim.text.within(name, description) or aim.text.within_json(metadata):
                    await run.change(lambda w, i=id_: _blanked(w, i))  # type: ignore[misc]

    async def _whole(self, run: Forgetting, id_: str) -> None:
        key = [run.aim.tenant, id_]
        there = run.store.db.read
        while await run.threads.run(there, lambda c: c.one("get_memory_store", key), run.aim.tenant):
            await run.change(lambda w: drop_step(w, id_))

    async def _versions(self, run: Forgetting) -> None:
        aim = run.aim
        for where in (
            aim.condition(user=OWNER, channel="store_id", time="created_at"),
            aim.condition(user="written_by", time="created_at"),
        ):
            if where is None:
                continue
            unredacted = f"{where[0]} AND path IS NOT NULL", where[1]
            async for page in run.pages("memory_versions", VERSION_PAGE, unredacted, "id"):
                chosen = [
                    _Version(id_, memory_id, len(content or ""))
                    for id_, memory_id, path, content in page
                    if aim.text is None or aim.text.within(path, content)
                ]
                for some in parted(chosen, lambda version: version.size, TEXTS):
                    await run.change(lambda w, some=some: _cleared(w, some))  # type: ignore[misc]

    async def _names(self, run: Forgetting) -> None:
        """Remove forgotten users from versions of others."""
        for column in ("written_by", "redacted_by"):
            where = run.aim.condition(user=column) if run.aim.whole else None
            async for page in run.pages("memory_versions", "id", where, "id"):
                ids = listed(id_ for (id_,) in page)
                await run.change(lambda w, column=column, ids=ids: _unnamed(w, column, ids))  # type: ignore[misc]

    def _left(self, tenant: str) -> bool:
        return bool(self.core.store.db.read(lambda c: c.all("erased_versions", [tenant, 1]), tenant))


class _Version(NamedTuple):
    id: str
    memory_id: str
    size: int


def _cleared(w: Writing, versions: Sequence[_Version]) -> dict[str, int]:
    """Erase the memories whose latest version is among these, and redact the others."""
    memories = listed({version.memory_id for version in versions})
    latest: dict[str, str] = dict(w.c.all("latest_among", [w.tenant, memories]))
    gone = {latest[version.id] for version in versions if version.id in latest}
    counts = erased(w, sorted(gone))
    earlier = [version.id for version in versions if version.memory_id not in gone]
    now = now_micros()
    w.c.many("redact_memory_version", [(None, now, w.tenant, id_) for id_ in earlier])
    return {**counts, "memory_versions": len(earlier)}


def _unnamed(w: Writing, column: str, ids: str) -> dict[str, int]:
    w.c.run("unname_writers" if column == "written_by" else "unname_redactors", [w.tenant, ids])
    return {}


def _blanked(w: Writing, id_: str) -> dict[str, int]:
    return {"memory_stores": w.c.run("blank_memory_store", [w.tenant, id_])}
