"""Expiry: of files, vector stores and unfinished uploads, and of bytes that belong to no file."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import defaultdict
from collections.abc import Callable, Coroutine
from typing import Any

from memoranda.clock import now_micros
from memoranda.errors import MemorandaError
from memoranda.knowledge.files import remove_file
from memoranda.knowledge.integrity import compare_files
from memoranda.knowledge.removal import REMOVE_JOB, empty, end_upload, queue
from memoranda.storage.sql.base import Connection
from memoranda.store.core import Core
from memoranda.store.ids import listed

log = logging.getLogger("memoranda.knowledge")
EVERY = 30.0
"""Seconds between two runs."""
SWEEP_EVERY = 3_600.0
LEFTOVER_AFTER = 2 * 3_600.0
"""Seconds after which bytes without a row are swept: longer than any upload needs to get its row."""
DISCARDED_FOR = 3 * 86_400.0
"""Seconds for which bytes without a row can still be restored by hand."""
AT_ONCE = 100
ENDED_FOR = 86_400
"""Seconds for which an ended upload is still known."""


class Expiry:
    """Removes what has expired, periodically. Every process may run it; each item is removed once."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self._swept_at = 0
        self._watcher: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to look for what has expired."""
        self._watcher = asyncio.create_task(self.watch(), name="knowledge-expiry")

    async def stop(self) -> None:
        """Stop looking."""
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)

    async def watch(self) -> None:
        """Run every `EVERY` seconds, until cancelled."""
        while True:
            await asyncio.sleep(EVERY * random.uniform(0.8, 1.2))
            await self.look()

    async def look(self) -> None:
        """Remove what has expired by now. A failure is tried again at the next run, and does not stop the others."""
        now = now_micros()
        await self._each("expired_files", self._file, now)
        await self._each("idle_stores", self._store, now)
        await self._each("expired_uploads", self._upload, now)
        await self._tried(self._forget(now))
        if self._swept_at + SWEEP_EVERY * 1_000_000 <= now:
            self._swept_at = now
            await self._tried(self.sweep())

    async def _each(self, name: str, end: Callable[[str, str], Coroutine[Any, Any, None]], now: int) -> None:
        async def work() -> None:
            for tenant, id_ in await self._due(name, now):
                await self._tried(end(tenant, id_))

        await self._tried(work())

    async def _tried(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            await work
        except Exception as exc:  # whatever it is: this run must go on, and the next one start
            self.core.note_failure("expiry")
            known = isinstance(exc, MemorandaError)
            level = logging.WARNING if known else logging.ERROR
            log.log(level, "what has expired stays for now: %s", exc, exc_info=not known)

    async def _due(self, name: str, now: int) -> list[tuple[str, str]]:
        rows = await self.core.threads.run(self.core.store.db.read, lambda c: c.all(name, [now, AT_ONCE]))
        return [(tenant, id_) for tenant, id_ in rows]

    async def _file(self, tenant: str, id_: str) -> None:
        def work(c: Connection) -> None:
            remove_file(c, self.core, tenant, id_)

        await self._write(tenant, work)
        await self.core.threads.run(self.core.blobs.delete, tenant, id_)

    async def _store(self, tenant: str, id_: str) -> None:
        def work(c: Connection) -> None:
            if c.run("expire_store", [tenant, id_]):
                empty(c, self.core, tenant, id_)

        await self._write(tenant, work)

    async def _upload(self, tenant: str, id_: str) -> None:
        await end_upload(self.core, tenant, id_, "expired")

    async def _forget(self, now: int) -> None:
        """Delete the rows of uploads that ended a day ago."""
        until = now - ENDED_FOR * 1_000_000
        await self.core.threads.result(
            self.core.store.db.write(lambda c: c.run("drop_ended_uploads", [until]))
        )

    async def _write(self, tenant: str, work: Any) -> None:
        await self.core.threads.result(self.core.store.db.write(work, tenant=tenant))
        self.core.jobs.wake(REMOVE_JOB)

    async def sweep(self, older_than: float = LEFTOVER_AFTER) -> int:
        """Discard bytes that no row knows, delete those discarded `DISCARDED_FOR` ago, and resume removals without a
        job; return how many were discarded."""
        await self.core.threads.result(self.core.store.db.write(self._requeue))
        self.core.jobs.wake(REMOVE_JOB)
        await self.core.threads.run(self._compare)
        return await self.core.threads.run(self._sweep, older_than)

    def _compare(self) -> None:
        """Compare one file of each tenant with its hash."""
        for (tenant,) in self.core.store.db.read(lambda c: c.all("tenants")):
            compare_files(self.core, tenant, everything=False)

    def _requeue(self, c: Connection) -> None:
        for tenant, store_id, attached in c.all("all_removing"):
            queue(c, self.core, tenant, store_id, attached)

    def _sweep(self, older_than: float) -> int:
        by_tenant: dict[str, list[str]] = defaultdict(list)
        for tenant, id_ in self.core.blobs.stored(older_than):
            by_tenant[tenant].append(id_)
        swept = 0
        for tenant, ids in by_tenant.items():
            for at in range(0, len(ids), 1_000):
                some = ids[at : at + 1_000]
                key = [tenant, listed(some)]
                rows = self.core.store.db.read(lambda c, key=key: c.all("blobs_known", key), tenant)  # type: ignore[misc]
                known = {id_ for (id_,) in rows}
                for id_ in some:
                    if id_ not in known:
                        swept += self.core.blobs.discard(tenant, id_)
        if swept:
            log.info("set aside the bytes of %d unfinished or deleted files", swept)
        self.core.blobs.drop_discarded(DISCARDED_FOR)
        return swept
