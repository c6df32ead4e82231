"""Background maintenance: pending embeddings, index repair, compaction."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any

from memoranda.config.agent_sections import OPERATOR_TENANT
from memoranda.errors import EmbedderUnavailable, IndexUnavailable, MemorandaError
from memoranda.store.core import COMPACT_JOB, EMBED_JOB, Core
from memoranda.store.feature import Feature
from memoranda.store.job_kinds import JobKind, Pace, Postponed, Run
from memoranda.store.rows import Record

log = logging.getLogger("memoranda.maintenance")
REPAIR_JOB = "store.repair"
RETRY_AFTER = 5.0
SOON = 0.2
"""The delay in seconds before pending embeddings are made: those of a burst in one job."""
WATCH_SECONDS = 1.0
COMPARE_SECONDS = 600.0
"""The time between two comparisons of some texts with their hashes."""


def feature(core: Core) -> Feature:
    """Declare the jobs of maintenance, and what enqueues them; needs the running event loop."""
    maintenance = Maintenance(core, asyncio.get_running_loop())
    return Feature(
        jobs={
            EMBED_JOB: JobKind(maintenance.embed, maintenance=True),
            COMPACT_JOB: JobKind(maintenance.compact, maintenance=True),
            REPAIR_JOB: JobKind(maintenance.repair, maintenance=True),
        },
        on_pending=maintenance.schedule_from_writer,
        on_behind=maintenance.behind,
        start=maintenance.start,
        stop=maintenance.stop,
    )


class Maintenance:
    """Handlers of maintenance jobs, and the signals that enqueue them."""

    def __init__(self, core: Core, loop: asyncio.AbstractEventLoop) -> None:
        self.core = core
        self.loop = loop
        self._tasks: set[asyncio.Task[Any]] = set()
        self._open = True
        self._asked: dict[str, float] = {}
        """Until when the job enqueued for a tenant cannot have begun: it covers embeddings pending before then."""
        self._watchers: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Resume pending embeddings after an outage, make token vectors where a text has none, and start to watch a
        database that others write to. If the model is new and has no vector yet, only log it: embedding everything is a
        decision."""
        for tenant, count in self.core.store.pending_counts.items():
            if count and await self.core.threads.run(self.core.store.has_vectors, tenant):
                self.schedule_embeddings(tenant)
            elif count:
                log.warning(
                    "tenant %s: %d memories have no vector of %s yet; reindex makes them",
                    tenant,
                    count,
                    self.core.store.model,
                )
        if self.core.embedder.token_dim:
            for tenant in await self.core.threads.run(self.core.store.tenants_without_tokens):
                payload = {"tokens": True, "rows_per_second": None, "total": None}
                self._queue(tenant, EMBED_JOB, payload, "token vectors", SOON)
        if self.core.store.db.shared:
            self._watchers.append(self.loop.create_task(self._watch()))
        self._watchers.append(self.loop.create_task(self._compare()))
        if self.core.store.derived.behind:
            self._watchers.append(self.loop.create_task(self._fill()))

    async def _fill(self) -> None:
        """Bring the indexes up to date that lacked many rows at the start. One that fails is left to a job."""
        derived = self.core.store.derived
        began = self.loop.time()
        log.info("the %s index is brought up to date in the background", " and ".join(derived.behind))
        try:
            done = await self.core.threads.run(derived.repair)
        except Exception as exc:  # however it fails
            log.warning("an index is not up to date, and is tried again: %s", exc)
            self.core.note_failure("indexes")
            for side in list(derived.behind):
                self.behind(side)
        else:
            log.info("indexes up to date: %s rows in %.1f s", done, self.loop.time() - began)

    async def _compare(self) -> None:
        """Compare some texts of a random tenant with their hashes, from time to time."""
        store = self.core.store
        while self._open:
            await asyncio.sleep(COMPARE_SECONDS * random.uniform(0.8, 1.2))
            with contextlib.suppress(MemorandaError):  # the rows are unavailable: what needs them reports it
                tenants = await self.core.threads.run(store.db.read, lambda c: c.all("tenants"))
                if tenants:
                    tenant = str(random.choice(tenants)[0])
                    await self.core.threads.run(store.compare_texts, tenant, everything=False)

    async def _watch(self) -> None:
        """Synchronize with the other processes of a shared database."""
        trouble = ""
        while self._open:
            await asyncio.sleep(WATCH_SECONDS * random.uniform(0.8, 1.2))
            try:
                await self.core.threads.run(self.core.store.refresh)
                trouble = ""
            except Exception as exc:  # however an index fails: this must go on
                self.core.note_failure("indexes")
                if str(exc) != trouble:
                    known = isinstance(exc, MemorandaError)
                    log.warning("not in step with the other processes: %s", exc, exc_info=not known)
                trouble = str(exc)

    async def stop(self) -> None:
        """Stop: no job is enqueued from here on."""
        self._open = False
        self.core.store.derived.stopped.set()
        for task in (*self._tasks, *self._watchers):
            task.cancel()

    def schedule_embeddings(self, tenant: str) -> None:
        """Schedule embeddings for rows that were written without."""
        now = self.loop.time()
        if self._open and now >= self._asked.get(tenant, 0.0):
            self._asked[tenant] = now + SOON
            self._keep(self._ask(tenant, now + SOON))

    async def _ask(self, tenant: str, until: float) -> None:
        """Enqueue the job; if one is running already, the next rows enqueue again."""
        payload = {"rows_per_second": None, "total": None}
        id_ = await self.core.jobs.enqueue(tenant, EMBED_JOB, payload, dedup_key="embeddings", delay=SOON)
        job = await self.core.jobs.get(tenant, id_)
        if job.state != "queued" and self._asked.get(tenant) == until:
            del self._asked[tenant]

    async def _look_again(self, run: Run) -> None:
        """Enqueue the job again for embeddings that became pending between its last check and its end."""
        store = self.core.store
        while self._open:
            await asyncio.sleep(SOON)
            if not await self.core.threads.run(store.pending_rows, run.tenant, store.space, 1):
                return
            payload = {"rows_per_second": None, "total": None}
            if await self.core.jobs.enqueue(run.tenant, EMBED_JOB, payload, dedup_key="embeddings") != run.id:
                return

    def schedule_from_writer(self, tenant: str) -> None:
        """As `schedule_embeddings`, called on the writer thread. Waking the loop costs more than checking the need."""
        if self.loop.time() < self._asked.get(tenant, 0.0):
            return
        with contextlib.suppress(RuntimeError):  # the loop has ended: the next start resumes it
            self.loop.call_soon_threadsafe(self.schedule_embeddings, tenant)

    def behind(self, side: str) -> None:
        """Schedule a repair after an index rejected a change; called on the writer thread. With other processes, the
        job might run in one of them, which does not have this index: the watch repairs it."""
        if self.core.store.db.shared:
            return
        self.loop.call_soon_threadsafe(
            self._queue, OPERATOR_TENANT, REPAIR_JOB, {"side": side}, "repair", 1.0
        )

    def _queue(self, tenant: str, kind: str, payload: dict[str, Any], key: str, delay: float) -> None:
        if not self._open:
            return
        self._keep(self.core.jobs.enqueue(tenant, kind, payload, dedup_key=key, delay=delay))

    def _keep(self, work: Coroutine[Any, Any, Any]) -> None:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def embed(self, run: Run) -> dict[str, Any]:
        """Make the pending vectors of a tenant, or with `upto` those of all rows up to this seq again, or with `tokens`
        those of rows without token vectors, oldest first. While the embedder does not answer it waits, however long
        that takes."""
        total = run.total if run.total is not None else run.payload.get("total")
        store, upto, pace = self.core.store, run.payload.get("upto"), Pace(run)

        def read() -> list[Record]:
            if run.payload.get("tokens"):
                return store.rows_without_tokens(run.tenant, int(run.cursor or 0), pace.step)
            if upto is None:
                return store.pending_rows(run.tenant, store.space, pace.step)
            return store.rows_between(run.tenant, int(run.cursor or 0), upto, pace.step)

        done = run.done
        while rows := await self.core.threads.run(read):
            try:
                await self.core.ingest.embed_pending(rows, run.tenant, reuse=upto is None)
            except EmbedderUnavailable as exc:
                raise Postponed(str(exc), RETRY_AFTER) from exc
            done += len(rows)
            await run.report(done, total, str(rows[-1].seq))
            await pace.keep(len(rows))
        self._keep(self._look_again(run))
        return {"embedded": done, "model": store.model}

    async def repair(self, run: Run) -> dict[str, Any]:
        """Replay the rows that an index rejected, as soon as it accepts them, however long that takes."""
        try:
            done = await self.core.threads.run(self.core.store.derived.repair)
        except (IndexUnavailable, OSError, CancelledError) as exc:
            raise Postponed(str(exc), RETRY_AFTER) from exc
        if self.core.store.derived.behind:
            raise Postponed("an index still misses changes", RETRY_AFTER)
        return done

    async def compact(self, run: Run) -> dict[str, Any]:
        """Free the space of deleted rows; return the bytes of the database before and after."""
        before = self.core.store.db.health()["bytes"]
        await self.core.threads.run(self.core.store.compact)
        return {"bytes_before": before, "bytes_after": self.core.store.db.health()["bytes"]}
