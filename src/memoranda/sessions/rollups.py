"""Weekly rollups of channels: a summary of the summaries of a week, made when it is over, again when it changed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from memoranda.clock import now_micros
from memoranda.errors import ModelError, SpendingLimit
from memoranda.sessions.digests import Digest
from memoranda.sessions.records import SessionRow, sessions_by_id, texts_of
from memoranda.sessions.summarizer import Summarizer
from memoranda.sessions.summary_memories import DAY, WEEK, derived_memory, week_header, week_name
from memoranda.sessions.switches import summarized
from memoranda.storage.sql.base import Connection
from memoranda.store.core import Core
from memoranda.store.job_kinds import Run, backoff
from memoranda.store.jobs import SECOND
from memoranda.store.rows import Draft, fetch_ids
from memoranda.store.transaction import Writing

log = logging.getLogger("memoranda.sessions")
STEP = 32
LEAST = 2
"""The least number of summaries that make a rollup: a single one needs none."""
MOST = 200
"""The most sessions of a week in a rollup."""
AGAIN = 60.0
"""Seconds after which a rollup that failed is tried again; twice as many after each failure, up to a day."""
LONGEST = 24 * 3600.0
SOURCE = "rollup"


class Week(NamedTuple):
    """A pending rollup; `week` is its first day, in days since 1970."""

    channel_id: str
    owner: str
    week: int
    memory_id: str | None
    attempts: int
    updated_at: int


class Rollups:
    """Makes the rollups of a tenant that are due."""

    def __init__(self, core: Core) -> None:
        self.core = core

    async def work(self, run: Run, summarizer: Summarizer) -> int:
        """Make all rollups that are due; return how many."""
        count = 0
        while weeks := await self._due(run.tenant):
            for week in weeks:
                count += await self._roll_up(run.tenant, week, summarizer)
            await run.report(run.done + len(weeks))
        return count

    async def _due(self, tenant: str) -> list[Week]:
        values = [tenant, now_micros(), STEP]
        rows = await self.core.threads.run(
            self.core.store.db.read, lambda c: c.all("rollups_due", values), tenant
        )
        return [Week._make(row) for row in rows]

    async def _roll_up(self, tenant: str, week: Week, summarizer: Summarizer) -> bool:
        start = week.week * DAY
        values = [tenant, week.channel_id, week.owner, start, start + WEEK, MOST]

        def read(c: Connection) -> list[SessionRow] | None:
            if not summarized(c, self.core.config, tenant, week.channel_id):
                return None
            return [SessionRow._make(row) for row in c.all("sessions_of_week", values)]

        rows = await self.core.threads.run(self.core.store.db.read, read, tenant)
        if rows is None:
            await self._left(tenant, week)
            return False
        digest = None
        if len(rows) >= LEAST and hearers(rows) != []:
            try:
                digest = await summarizer.of_week(
                    week_header(week.channel_id, week.week, _names(rows), ()), rows, week.attempts
                )
            except (ModelError, SpendingLimit) as exc:
                await self._failed(tenant, week, exc)
                return False
        await self.core.threads.result(
            self.core.store.transact(tenant, lambda w: _keep(w, week, rows, digest, self._version))
        )
        if digest is not None:
            self.core.tally["session_rollups.created"] += 1
            extra = {"tenant": tenant, "week": week_name(week.week), "sessions": len(rows), "by": digest.by}
            log.info("week summarized", extra=extra)
        return digest is not None

    async def _left(self, tenant: str, week: Week) -> None:
        """Leave a week unchanged: summaries are switched off in its channel."""
        values = [tenant, week.channel_id, week.owner, week.week, week.updated_at]
        await self.core.threads.result(
            self.core.store.db.write(lambda c: c.run("leave_rollup", values), tenant=tenant)
        )

    @property
    def _version(self) -> int:
        return self.core.config.sessions.summary_version

    async def _failed(self, tenant: str, week: Week, exc: Exception) -> None:
        again = now_micros() + int(backoff(week.attempts + 1, base=AGAIN, most=LONGEST) * SECOND)
        values = [str(exc)[:500], again, tenant, week.channel_id, week.owner, week.week]
        self.core.tally["session_rollups.failed"] += 1
        extra = {"tenant": tenant, "week": week_name(week.week), "error": type(exc).__name__}
        log.warning("week not summarized", extra=extra)
        await self.core.threads.result(
            self.core.store.db.write(lambda c: c.run("fail_rollup", values), tenant=tenant)
        )
        self.core.due_times.announce(again)


def _keep(w: Writing, week: Week, rows: Sequence[SessionRow], digest: Digest | None, version: int) -> None:
    """Write a rollup and its memory, unless one of its sessions has changed meanwhile; an earlier memory is removed."""
    w.draw(1)
    now = now_micros()
    there = sessions_by_id(w.c, w.tenant, [row.id for row in rows])
    # A session that has changed may belong to another week now.
    if any(row.id not in there or there[row.id].summary_id != row.summary_id for row in rows):
        return
    rollup = None if digest is None else rollup_memory(w.tenant, week, rows, digest, now)
    key = [w.tenant, week.channel_id, week.owner, week.week]
    previous = w.c.one("rollup_memory", key)
    number = len(rows) if rollup is not None else 0
    values = [None if rollup is None else rollup.row.id, version, number, now, *key, week.updated_at]
    if not w.c.run("set_rollup", values):
        return
    if previous is not None and previous[0] is not None:
        w.remove([memory.seq for memory in fetch_ids(w.c, w.tenant, [previous[0]]).values()])
    if rollup is not None:
        w.insert([rollup])


def rollup_memory(tenant: str, week: Week, rows: Sequence[SessionRow], digest: Digest, now: int) -> Draft:
    """Return the memory of a channel's week."""
    ids = [row.id for row in rows]
    return derived_memory(
        tenant,
        "rollup",
        digest.flat(),
        week_header(week.channel_id, week.week, _names(rows), digest.topics),
        key=[week.channel_id, week.owner, week.week],
        user_id=week.owner or next(iter(hearers(rows) or ()), None),
        channel_id=week.channel_id,
        source=SOURCE,
        tags=digest.topics,
        metadata={"week": week_name(week.week), "sessions": len(ids)},
        refs=ids,
        occurred_at=max(row.ended_at for row in rows),
        now=now,
    )


def hearers(rows: Sequence[SessionRow]) -> list[str] | None:
    """Return the users who took part in all sessions in which users spoke, so that nobody sees a session without having
    been in it. None if no user spoke: the rollup is for everybody."""
    spoke = [texts_of(row.users) for row in rows if row.users != "[]"]
    return [user for user in spoke[0] if all(user in users for users in spoke)] if spoke else None


def _names(rows: Sequence[SessionRow]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in texts_of(row.participants)))
