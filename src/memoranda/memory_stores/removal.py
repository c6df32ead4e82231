"""What becomes of memory stores when memories are deleted, changed or forgotten elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from memoranda.clock import now_micros
from memoranda.errors import Conflict, StorageError
from memoranda.memory_stores.rows import MemoryRow
from memoranda.storage.sql.base import Connection, Row
from memoranda.store.access import owns
from memoranda.store.changes import ROWS, TEXTS, parted
from memoranda.store.core import Core
from memoranda.store.forget_preview import Preview
from memoranda.store.forgetting import Forgetting, removed
from memoranda.store.ids import listed
from memoranda.store.job_kinds import Run
from memoranda.store.rows import Record, fetch_ids
from memoranda.store.transaction import RemovedMemory, Writing
from memoranda.text.hashing import digest

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
BLANK = ["forgotten", "", "{}"]
"""Name, description and metadata of a store that lost them."""


def searched(path: str, content: str) -> str:
    """Return the text of the memory by which a memory of a store is found."""
    return f"{path}\n\n{content}"


def drop_step(w: Writing, store_id: str) -> dict[str, int]:
    """Delete a part of a store, and the store itself with the last one; return the counts. From the first one on
    nothing is written into it."""
    w.draw(1)  # writers of other processes wait
    w.by_request = True
    w.note([("memory_stores", store_id)])
    w.c.run("close_memory_store", [now_micros(), w.tenant, store_id])
    ids = [id_ for (id_,) in w.c.all("memories_of_store", [w.tenant, store_id, ROWS])]
    if ids:
        w.c.run("drop_store_memories", [w.tenant, listed(ids)])
        return removed(w, [row.seq for row in fetch_ids(w.c, w.tenant, ids).values()])
    versions = _dropped(w, w.c.all("versions_of_store", [w.tenant, store_id, VERSIONS]))
    return versions or {"memory_stores": w.c.run("drop_memory_store", [w.tenant, store_id])}


def _dropped(w: Writing, ids: Sequence[Row]) -> dict[str, int]:
    """Delete versions; return how many, nothing if there are none."""
    some = listed(id_ for (id_,) in ids)
    return {"memory_versions": w.c.run("drop_memory_versions", [w.tenant, some])} if ids else {}


class Removal:
    """Hooks of the store, see `Writing`, the job that continues them, and the eraser."""

    def __init__(self, core: Core, loop: asyncio.AbstractEventLoop) -> None:
        self.core = core
        self.loop = loop

    def gone(self, w: Writing, gone: Sequence[RemovedMemory]) -> tuple[int, int]:
        """Erase memories of stores that were deleted as memories; a job erases their versions."""
        notes = [memory.id for memory in gone if memory.kind == KIND]
        stored = w.c.all("stored_among", [w.tenant, listed(notes)]) if notes else ()
        self._erase(w, [id_ for id_, path, _, _ in stored if path is not None])
        return 0, 0

    def _erase(self, w: Writing, ids: Iterable[str]) -> None:
        erased = sorted(ids)
        if not erased:
            return
        w.also["memory_versions"] += count_versions(w.c, w.tenant, erased)
        w.c.run("drop_store_memories", [w.tenant, listed(erased)])
        w.note(("store_memories", id_) for id_ in erased)
        self.core.jobs.place(w.c, w.tenant, CLEAR_JOB, {"memories": erased}, dedup_key=digest(*erased))
        with contextlib.suppress(RuntimeError):  # the loop has ended: the next start looks by itself
            wake = self.core.jobs.wake
            self.loop.call_soon_threadsafe(self.loop.call_later, WAKE_AFTER, wake, CLEAR_JOB)

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
        """Handler of the job: delete the versions of erased memories until there are none."""
        memories, done = listed(run.payload["memories"]), 0

        def step(w: Writing) -> dict[str, int]:
            return _dropped(w, w.c.all("versions_of_memories", [w.tenant, memories, VERSIONS]))

        while some := (await self.core.transact(run.tenant, step)).get("memory_versions", 0):
            done += some
            await run.report(done)
        return {"memory_versions": done}

    # --- forgetting --------------------------------------------------------------------------------

    async def erase(self, run: Forgetting) -> None:
        """Erase stores of what is forgotten as a whole, and selected versions: the latest one with its memory, an
        earlier one by redaction. A store whose name, description or metadata contain the phrase loses them.

        Raises:
            StorageError: versions of erased memories could not be deleted; another call continues.
        """
        if run.aim.ids is not None:
            await self._deleted(run, run.aim.ids)
        if run.aim.other_data:
            await self._stores(run)
            await self._versions(run)
            await self._names(run)
        if not run.erasing:
            return
        jobs = await run.jobs.finish(run.aim.tenant, CLEAR_JOB)
        if any(job.state != "completed" for job in jobs):
            raise StorageError(
                "versions of erased memories are not erased yet, a job goes on with it; call forget again"
            )

    async def _deleted(self, run: Forgetting, ids: Sequence[str]) -> None:
        """Erase the versions of named memories that were deleted in their stores."""

        def work(w: Writing, some: str) -> dict[str, int]:
            w.draw(1)  # writers of other processes wait
            stored = w.c.all("stored_among", [w.tenant, some])
            seen = [(id_, path) for id_, path, _, user in stored if owns(run.aim.subject, user)]
            self._erase(w, [id_ for id_, path in seen if path is None])
            return {}

        for at in range(0, len(ids), ROWS):
            some = listed(ids[at : at + ROWS])
            stored = await self._read(run, "stored_among", [run.aim.tenant, some])
            seen = [id_ for id_, path, _, user in stored if path is None and owns(run.aim.subject, user)]
            await run.change(partial(work, some=some), sources=seen)

    async def _stores(self, run: Forgetting) -> None:
        aim = run.aim
        if not (aim.whole or aim.text is not None):
            return
        where = replace(aim, since=None, until=None).condition(user="user_id", channel="id")
        async for page in run.pages("memory_stores", "seq, id, name, description, metadata", where):
            for _, id_, *said in page:
                if aim.text is None:
                    await self._whole(run, id_)
                elif said != BLANK and (aim.text.within(*said[:2]) or aim.text.within_json(said[2])):
                    await run.change(partial(_blanked, id_=id_), {"memory_stores": [id_]})

    async def _whole(self, run: Forgetting, id_: str) -> None:
        key = [run.aim.tenant, id_]
        if isinstance(run, Preview):
            await run.count({"memory_stores": [id_]})
            where = "store_id = ?", [id_]
            async for page in run.pages("store_memories", "id", where, "id"):
                await run.count({}, [memory for (memory,) in page])
            async for page in run.pages("memory_versions", "id", where, "id"):
                await run.count({"memory_versions": [version for (version,) in page]})
            return
        while await self._read(run, "get_memory_store", key):
            await run.change(partial(drop_step, store_id=id_))

    async def _versions(self, run: Forgetting) -> None:
        aim = run.aim
        owned = aim.condition(user=OWNER, channel="store_id", time="created_at")
        written = aim.condition(user="written_by", time="created_at")
        for where in (owned,) if owned == written else (owned, written):
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
                    key = [aim.tenant, listed({version.memory_id for version in some})]
                    latest: dict[str, str] = dict(await self._read(run, "latest_among", key))
                    gone = {latest[version.id] for version in some if version.id in latest}
                    found = {"memory_versions": [version.id for version in some]}
                    await run.change(partial(self._cleared, some), found, gone)

    async def _read(self, run: Forgetting, statement: str, values: Sequence[Any]) -> Sequence[Row]:
        return await run.threads.run(run.store.db.read, lambda c: c.all(statement, values), run.aim.tenant)

    def _cleared(self, versions: Sequence[_Version], w: Writing) -> dict[str, int]:
        """Erase the memories whose latest version is among these, and redact the others."""
        w.draw(1)  # writers of other processes wait
        memories = listed({version.memory_id for version in versions})
        latest: dict[str, str] = dict(w.c.all("latest_among", [w.tenant, memories]))
        gone = {latest[version.id] for version in versions if version.id in latest}
        there = {id_ for id_, *_ in w.c.all("stored_among", [w.tenant, memories])}
        self._erase(w, gone)
        counts = removed(w, [row.seq for row in fetch_ids(w.c, w.tenant, sorted(gone)).values()])
        earlier = [version for version in versions if version.memory_id not in gone]
        now = now_micros()
        w.c.many("redact_memory_version", [(None, now, w.tenant, version.id) for version in earlier])
        counted = sum(
            version.memory_id in there for version in earlier
        )  # the others were, with their memories
        return {**counts, "memory_versions": counted}

    async def _names(self, run: Forgetting) -> None:
        """Remove forgotten users from versions of others."""
        for column in ("written_by", "redacted_by"):
            where = run.aim.condition(user=column) if run.aim.whole else None
            async for page in run.pages("memory_versions", "id", where, "id"):
                ids = listed(id_ for (id_,) in page)
                await run.change(partial(_unnamed, column, ids))


async def count_erased(run: Preview, ids: Sequence[str]) -> None:
    """Count the versions of memories of stores that go with their memories."""
    where = f"memory_id IN ({', '.join('?' * len(ids))})", [*ids]
    async for page in run.pages("memory_versions", "id", where, "id"):
        await run.count({"memory_versions": [id_ for (id_,) in page]})


def count_versions(c: Connection, tenant: str, memories: Sequence[str]) -> int:
    """Return the number of versions of some memories."""
    row = c.one("count_versions", [tenant, listed(memories)])
    return int(row[0]) if row else 0


class _Version(NamedTuple):
    id: str
    memory_id: str
    size: int


def _unnamed(column: str, ids: str, w: Writing) -> dict[str, int]:
    w.c.run("unname_writers" if column == "written_by" else "unname_redactors", [w.tenant, ids])
    return {}


def _blanked(w: Writing, id_: str) -> dict[str, int]:
    return {"memory_stores": w.c.run("blank_memory_store", [BLANK[0], w.tenant, id_])}
