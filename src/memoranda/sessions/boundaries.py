"""Cutting of a channel's messages into sessions, no two neighbours of which are further apart than the gap, and their
closing by a message after the gap, or by the clock.

Times and gaps are microseconds. Whatever the order of arrival, the same messages end up in the same
sessions."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Iterable, Sequence
from typing import Literal, Protocol, TypeVar

import msgspec

from memoranda.clock import now_micros
from memoranda.config.agent_sections import Sessions as Settings
from memoranda.errors import MemorandaError
from memoranda.sessions.records import SessionRow
from memoranda.sessions.switches import summarized
from memoranda.sessions.values import EXTRACT_JOB
from memoranda.storage.sql.base import Connection
from memoranda.store.core import Core
from memoranda.store.jobs import Jobs

MINUTE = 60_000_000
PATIENCE = MINUTE
"""How long at most a session stays open after its last message arrived, if that is dated long ago: sessions of an
imported history are closed soon."""
FOREVER = 1 << 62
"""A gap wider than any other."""


class Cluster(msgspec.Struct):
    """Messages of one batch that belong together: their places in the batch, and when the first and the last were
    sent."""

    started_at: int
    ended_at: int
    places: list[int] = msgspec.field(default_factory=list)


class Timed(Protocol):
    """A value with a beginning and an end."""

    @property
    def started_at(self) -> int: ...

    @property
    def ended_at(self) -> int: ...


S = TypeVar("S", bound=Timed)


def gap_of(minutes: float) -> int:
    """Return the gap in microseconds."""
    return round(minutes * MINUTE)


def clusters(times: Sequence[int], gap: int) -> list[Cluster]:
    """Return the messages sent at `times` in clusters, the earliest first; within a cluster in order of arrival. Two
    that are exactly `gap` apart belong together."""
    results: list[Cluster] = []
    for place in sorted(range(len(times)), key=lambda i: (times[i], i)):
        if results and times[place] - results[-1].ended_at <= gap:
            results[-1].ended_at = times[place]
            results[-1].places.append(place)
        else:
            results.append(Cluster(times[place], times[place], [place]))
    for cluster in results:
        cluster.places.sort()
    return results


def near(cluster: Cluster, sessions: Iterable[S], gap: int) -> list[S]:
    """Return those of `sessions` that a cluster belongs to, the earliest first. A cluster merges several into one,
    which keeps the id of the first."""
    matching = [
        session
        for session in sessions
        if session.ended_at >= cluster.started_at - gap and session.started_at <= cluster.ended_at + gap
    ]
    return sorted(matching, key=lambda session: (session.started_at, session.ended_at))


def due_at(ended_at: int, last_seen_at: int, gap: int) -> int:
    """Return when a session is closed if no message follows: a gap after its last message. A message dated in the
    future, perhaps by a wrong clock, keeps no session open, and one of the past no longer than `PATIENCE`."""
    return max(min(ended_at, last_seen_at) + gap, last_seen_at + min(gap, PATIENCE))


log = logging.getLogger("memoranda.sessions")
SUMMARIZE_JOB = "sessions.summarize"
VERSION = "sessions.summary_version"
"""The key of the last configured version of summaries in the metadata."""
STEP = 256
"""Sessions closed in one transaction."""
SECOND = 1_000_000
LOOK_SECONDS = 1.0
"""Seconds between two checks if other processes write too, or something is overdue."""
LONGEST_SECONDS = 300.0


def note(core: Core, event: Literal["opened", "closed"], tenant: str, ids: Iterable[str]) -> None:
    """Count and log changes of sessions after their commit."""
    for id_ in ids:
        core.tally[f"sessions.{event}"] += 1
        log.info("session %s", event, extra={"tenant": tenant, "session": id_})


class SessionCloser:
    """Closes sessions and enqueues their follow-up jobs."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.jobs: Jobs = core.jobs
        self.settings: Settings = core.config.sessions
        self.gap = gap_of(self.settings.gap_minutes)

    def close(self, c: Connection, rows: Sequence[SessionRow], now: int) -> set[str]:
        """Close open sessions in the transaction of `c`, and enqueue follow-up jobs; return their kinds, to be woken
        after the commit."""
        kinds: set[str] = set()
        waiting: set[str] = set()
        for row in rows:
            pending = int(summarized(c, self.core.config, row.tenant_id, row.channel_id))
            if not c.run("close_session", [pending, now, now, row.tenant_id, row.id]):
                continue
            if pending:
                waiting.add(row.tenant_id)
            if row.extraction == "lazy" and EXTRACT_JOB in self.jobs.kinds:
                payload = {"session_id": row.id}
                self.jobs.place(c, row.tenant_id, EXTRACT_JOB, payload, dedup_key=row.id)
                kinds.add(EXTRACT_JOB)
        if waiting:
            kinds.add(SUMMARIZE_JOB)
            self.place(c, waiting)
        return kinds

    def place(self, c: Connection, tenants: set[str]) -> None:
        """Enqueue the job that summarizes closed sessions, one a tenant."""
        for tenant in sorted(tenants):
            self.jobs.place(c, tenant, SUMMARIZE_JOB, {}, dedup_key="closed")


class Clock:
    """Closes due sessions of all tenants. Every process checks; a session is closed once."""

    def __init__(self, closer: SessionCloser) -> None:
        self.closer = closer
        self.core = closer.core
        self.settings = closer.settings
        self._next = 0
        self._sooner = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._watcher: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the clock."""
        self._watcher = self._loop.create_task(self._watch())

    async def stop(self) -> None:
        """Stop the clock."""
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)

    def expect(self, due_at: int) -> None:
        """Note that something is due at a moment (microseconds); callable from any thread."""
        if self._next and due_at >= self._next:
            return
        self._next = due_at
        with contextlib.suppress(RuntimeError):  # the loop has ended: the next start checks anyway
            self._loop.call_soon_threadsafe(self._sooner.set)

    async def _watch(self) -> None:
        trouble, raised = "", not self.settings.summarize
        while True:
            self._sooner.clear()
            self._next = 0
            try:
                if not raised:
                    await self.core.threads.result(self.core.store.db.write(self._raise_version))
                    raised = True
                wait = await self.look()
                trouble = ""
            except MemorandaError as exc:
                self.core.note_failure("sessions")
                wait = LOOK_SECONDS
                if str(exc) != trouble:
                    log.warning("no session is closed for now: %s", exc)
                trouble = str(exc)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):  # `wait_for` of 3.11 can lose the cancelling that ends this
                    await self._sooner.wait()

    async def look(self) -> float:
        """Close what is due; return the seconds until the next check."""
        threads, db = self.core.threads, self.core.store.db
        now = now_micros()
        at = await threads.run(db.read, self._due)
        if at is not None and at <= now:
            kinds, closed, rest = await threads.result(db.write(lambda c: self._close_due(c, now)))
            for row in closed:
                note(self.core, "closed", row.tenant_id, [row.id])
            for kind in kinds:
                self.core.jobs.wake(kind)
            return 0.0 if rest else LOOK_SECONDS
        most = LOOK_SECONDS * random.uniform(0.8, 1.2) if db.shared else LONGEST_SECONDS
        if at is None:
            return most
        self._next = at
        return min(most, max(0.001, (at - now) / SECOND))

    def _raise_version(self, c: Connection) -> None:
        """If the configured version of summaries rose, mark all of an earlier version to be made again."""
        stored, version = c.one("get_meta", [VERSION]), self.settings.summary_version
        if stored is not None and int(stored[0]) < version:
            c.run("summarize_again", [now_micros(), version])
        if stored is None or int(stored[0]) < version:
            c.run("set_meta", [VERSION, str(version)])

    def _due(self, c: Connection) -> int | None:
        """Return when something is due next; None if nothing is."""
        if not self.settings.enabled:
            return None
        times = [row[0] for name in self._clocks() if (row := c.one(name)) is not None and row[0] is not None]
        return min(times, default=None)

    def _clocks(self) -> tuple[str, ...]:
        return ("next_due", "next_pending", *(("next_rollup",) if self.settings.rollups else ()))

    def _close_due(self, c: Connection, now: int) -> tuple[set[str], list[SessionRow], bool]:
        """Close sessions that are due and enqueue jobs for pending summaries.

        Return the kinds of jobs to wake, the closed sessions, and whether there are more.
        """
        c.one("draw_revs", [1])  # writers of messages wait: both lock rows in one order
        rows = [SessionRow._make(row) for row in c.all("sessions_due", [now, STEP])]
        kinds = self.closer.close(c, rows, now)
        names = ("pending_tenants", "rollup_tenants") if self.settings.rollups else ("pending_tenants",)
        waiting = {tenant for name in names for (tenant,) in c.all(name, [now])}
        if waiting:
            self.closer.place(c, waiting)
            kinds.add(SUMMARIZE_JOB)
        return kinds, rows, len(rows) == STEP
