"""Removal of files, stores and attachments: marked in the same transaction; a job deletes the chunks later."""

from __future__ import annotations

import logging
from typing import Any

from memoranda.storage.sql.base import Connection
from memoranda.store.changes import ROWS
from memoranda.store.core import Core
from memoranda.store.job_kinds import Run

log = logging.getLogger("memoranda.knowledge")
REMOVE_JOB = "knowledge.remove"
WHOLE = 0
"""In `removing`, the attachment that represents a whole store."""


def detach(c: Connection, core: Core, tenant: str, store_id: str, file_id: str, attached: int) -> None:
    """Take a file out of a store: no search shows it from now on. Give `jobs.woken(REMOVE_JOB)` to the write."""
    c.run("drop_store_file", [tenant, store_id, file_id])
    hide(c, core, tenant, store_id, attached)


def hide(c: Connection, core: Core, tenant: str, store_id: str, attached: int) -> None:
    """Mark an attachment's chunks for deletion and enqueue the job."""
    c.run("add_removing", [tenant, store_id, attached])
    queue(c, core, tenant, store_id, attached)


def queue(c: Connection, core: Core, tenant: str, store_id: str, attached: int) -> None:
    """Enqueue the job that deletes marked chunks, unless it is pending."""
    payload = {"store": store_id, "attached": attached}
    core.jobs.place(c, tenant, REMOVE_JOB, payload, dedup_key=f"{store_id}/{attached}")


def empty(c: Connection, core: Core, tenant: str, store_id: str) -> None:
    """Detach every file from a store."""
    c.run("drop_store_files", [tenant, store_id])
    hide(c, core, tenant, store_id, WHOLE)


class Removal:
    """The job that deletes chunks, step by step."""

    def __init__(self, core: Core) -> None:
        self.core = core

    async def remove(self, run: Run) -> dict[str, Any]:
        """Delete the chunks of an attachment, or of a whole store; return the number of chunks deleted."""
        store_id, attached = str(run.payload["store"]), int(run.payload["attached"])

        def unmark(c: Connection) -> bool:
            """Return True if no chunk is left, and remove the mark. A later mark gets a job of its own."""
            if _chunks(c, run.tenant, store_id, attached, 1):
                return False
            c.run("free_job_key", [run.tenant, run.id])
            c.run("drop_removing", [run.tenant, store_id, attached])
            return True

        while True:
            done = await self.clear(run.tenant, store_id, attached, run)
            if await self.core.threads.result(self.core.store.db.write(unmark, tenant=run.tenant)):
                return {"chunks": done}

    async def clear(self, tenant: str, store_id: str, attached: int, run: Run | None = None) -> int:
        """Delete the chunks of an attachment (or of the store) with their vectors; return the number of chunks
        deleted."""
        done = run.done if run else 0
        while seqs := await self.core.threads.run(self._next, tenant, store_id, attached):
            await self.core.threads.result(self.core.store.remove(tenant, seqs))
            done += len(seqs)
            if run is not None:
                await run.report(done)
        return done

    def _next(self, tenant: str, store_id: str, attached: int) -> list[int]:
        return self.core.store.db.read(lambda c: _chunks(c, tenant, store_id, attached, ROWS), tenant)


def _chunks(c: Connection, tenant: str, store_id: str, attached: int, limit: int) -> list[int]:
    """Return the first chunks of an attachment, or of the store."""
    if attached == WHOLE:
        rows = c.all("chunks_of_store", [tenant, store_id, limit])
    else:
        rows = c.all("chunks_of_attachment", [tenant, attached, limit])
    return [int(seq) for (seq,) in rows]


async def end_upload(core: Core, tenant: str, id_: str, status: str, file_id: str | None = None) -> bool:
    """End a pending upload and delete the bytes of its parts; return True if it was pending."""
    parts: list[str] = []

    def work(c: Connection) -> bool:
        parts[:] = [row[0] for row in c.all("parts_of", [tenant, id_])]
        if not c.run("end_upload", [status, file_id, tenant, id_]):
            return False
        c.run("drop_parts", [tenant, id_])
        return True

    ended = await core.threads.result(core.store.db.write(work, tenant=tenant))
    if ended:
        for part in parts:
            await core.threads.run(core.blobs.delete, tenant, part)
    return ended
