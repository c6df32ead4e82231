"""Maintenance of facts: archiving, limits, consolidation, sessions not yet read. It runs as jobs; the first process
that checks the clock enqueues each."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from memoranda.clock import now_micros
from memoranda.errors import MemorandaError
from memoranda.facts import decay
from memoranda.knowledge.quotas import quotas_of
from memoranda.sessions.values import EXTRACT_JOB
from memoranda.storage.sql.base import Connection
from memoranda.store.changes import MARKS
from memoranda.store.core import Core
from memoranda.store.job_kinds import Run
from memoranda.store.transaction import Writing

log = logging.getLogger("memoranda.facts")
SWEEP_JOB = "facts.sweep"
CONSOLIDATE_JOB = "facts.consolidate"
LOOK_SECONDS = 60.0
SWEEP_SECONDS = 3_600
HOUR = 3_600_000_000
STEP = 500
"""Unread sessions that one transaction enqueues."""


class Swept(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.sweep"):
    """Facts that were archived: those that were not used for too long, and the least valuable of too many."""

    unused: int = 0
    over: int = 0


class Clock:
    """Enqueues the jobs that are due, once an interval for all processes: the time of the last is in the database."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the clock."""
        self._task = asyncio.create_task(self._watch(), name="facts-clock")

    async def stop(self) -> None:
        """Stop the clock."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS * random.uniform(0.8, 1.2))
            try:
                await self.look()
            except MemorandaError as exc:
                log.warning("facts are not looked after for now: %s", exc)
                self.core.note_failure("facts")

    async def look(self) -> list[str]:
        """Enqueue the jobs that are due; return their kinds."""
        due = {SWEEP_JOB: SWEEP_SECONDS * 1_000_000}
        hours = self.core.config.facts.consolidation_hours
        if hours:
            due[CONSOLIDATE_JOB] = hours * HOUR
        now = now_micros()
        placed = [kind for kind, every in due.items() if await self._due(kind, every, now)]
        for kind in placed:
            self.core.jobs.wake(kind)
        if SWEEP_JOB in placed:
            self.core.jobs.wake(EXTRACT_JOB)
        return placed

    async def _due(self, kind: str, every: int, now: int) -> bool:
        threads, db = self.core.threads, self.core.store.db
        if not _is_due(await threads.run(db.read, lambda c: c.one("get_meta", [kind])), every, now):
            return False
        return await threads.result(db.write(lambda c: self._place(c, kind, every, now)))

    def _place(self, c: Connection, kind: str, every: int, now: int) -> bool:
        """Enqueue the jobs of an interval; return False if another process did. The first interval only begins."""
        c.one("draw_revs", [1])  # waits for another process that does the same
        last = c.one("get_meta", [kind])
        if not _is_due(last, every, now):
            return False
        c.run("set_meta", [kind, str(now)])
        if last is None:
            return False
        for (tenant,) in c.all("tenants_with_facts"):
            self.core.jobs.place(c, tenant, kind, {}, dedup_key=kind)
        if kind == SWEEP_JOB:
            for tenant, session in c.all("unread_sessions", [now, STEP]):
                self.core.jobs.place(c, tenant, EXTRACT_JOB, {"session_id": session}, dedup_key=session)
        return True


def _is_due(last: Sequence[str] | None, every: int, now: int) -> bool:
    """Return True if an interval is over, or the clock was put back since the last."""
    return last is None or not int(last[0]) <= now < int(last[0]) + every


async def sweep(core: Core, tenant: str) -> Swept:
    """Archive facts of a tenant that are unused for too long, and of too many the least valuable; standing instructions
    are neither archived nor counted."""
    settings, now = core.config.facts, now_micros()

    def idle(w: Writing) -> Sequence[int]:
        days = quotas_of(w.c, tenant, core.quotas).auto_archive_days
        if not settings.decay or not days:
            return []
        rows = w.c.all("idle_facts", [tenant, now - days * decay.DAY, MARKS])
        return archive(w, [int(seq) for (seq,) in rows])

    def over(c: Connection) -> list[int]:
        most = quotas_of(c, tenant, core.quotas).max_entries
        count = c.one("count_live_facts", [tenant, now])
        if not most or count is None or count[0] <= most:
            return []
        half_life = settings.half_life_days if settings.decay else None
        worth = []
        for seq, confidence, uses, used_at, created_at in c.all("live_facts", [tenant, now]):
            days = decay.days_unused(created_at, used_at, now)
            worth.append((decay.value(confidence, uses, days, half_life), seq))
        return [seq for _, seq in sorted(worth)[: count[0] - most]]

    def archive(w: Writing, seqs: Sequence[int]) -> Sequence[int]:
        w.mark(seqs, lambda row: row._replace(archived_at=row.archived_at or now))
        return seqs

    done = Swept()
    while archived := len(await core.threads.result(core.store.transact(tenant, idle))):
        done.unused += archived
    beyond = await core.threads.run(core.store.db.read, over, tenant)
    for at in range(0, len(beyond), MARKS):
        some = beyond[at : at + MARKS]
        await core.threads.result(core.store.transact(tenant, partial(archive, seqs=some)))
    done.over = len(beyond)
    core.tally["facts.archived"] += done.unused + done.over
    if done.unused or done.over:
        log.info("facts archived", extra={"tenant": tenant, "unused": done.unused, "over": done.over})
    return done


async def sweep_job(core: Core, run: Run) -> dict[str, Any]:
    """Handler of the job that sweeps a tenant."""
    done = await sweep(core, run.tenant)
    return {"unused": done.unused, "over": done.over}
