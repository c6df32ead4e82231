"""Summaries of closed sessions, by a job for each tenant: made outside of transactions, stored a batch in one."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from memoranda.clock import ZONE, local, moment, now_micros
from memoranda.errors import Conflict, ModelError, ModelUnavailable, SpendingLimit
from memoranda.sessions import records
from memoranda.sessions.digests import Digest
from memoranda.sessions.records import MessageRow, SessionRow, texts_of
from memoranda.sessions.rollups import Rollups
from memoranda.sessions.summarizer import Summarizer
from memoranda.sessions.summary_memories import QUIET, derived_memory, schedule_rollups, session_header
from memoranda.sessions.switches import in_force, summarized, switches_of
from memoranda.storage.sql.base import Connection
from memoranda.store.core import Core
from memoranda.store.job_kinds import Postponed, Run, backoff
from memoranda.store.jobs import SECOND
from memoranda.store.rows import Draft, fetch_ids, zone_of
from memoranda.store.transaction import Writing
from memoranda.text.stored import compact_json

log = logging.getLogger("memoranda.sessions")
BATCH = 200
"""Sessions summarized by rules in one transaction."""
ASKED = 8
"""Sessions that a model summarizes for one transaction, `AT_ONCE` at a time."""
AT_ONCE = 4
SHORT = 300
"""The most messages of a session that is read whole; of a longer one as many, from its beginning and its end."""
AGAIN = 30.0
"""Seconds after which a summary that failed is tried again; twice as many after each failure, up to a day."""
LONGEST = 24 * 3600.0
SOURCE = "session"


class Done(msgspec.Struct):
    """What was written: how many summaries were `created`, `failed` and `skipped`, and the ids of the summarized
    sessions, with the model of each."""

    counts: dict[str, int] = msgspec.field(default_factory=lambda: {"created": 0, "failed": 0, "skipped": 0})
    summarized: list[tuple[str, str]] = msgspec.field(default_factory=list)


class Made(msgspec.Struct):
    """The result of one session: its digest, the failure, or neither if it is too small."""

    row: SessionRow
    digest: Digest | None = None
    failure: Exception | None = None


class SummaryJobs:
    """Makes the pending summaries of a tenant."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.settings = core.config.sessions
        self.rolling = Rollups(core)

    async def work(self, run: Run) -> dict[str, Any]:
        """Handler of the job: summarize every closed session that has no summary, then the weeks that are over.

        Raises:
            Postponed: the model does not answer; these sessions are recorded as failed and tried again.
        """
        summarizer = Summarizer(self.core, run.tenant, background=True)
        counts: dict[str, int] = defaultdict(int)
        while True:
            while rows := await self._pending(run.tenant, BATCH if summarizer.by_rules else ASKED):
                results = await self._results(summarizer, run.tenant, rows)
                for name, number in (await self._keep(run.tenant, results)).items():
                    counts[name] += number
                await run.report(run.done + len(rows))
                _check_away(results)
            if self.settings.rollups:
                counts["rollups"] += await self.rolling.work(run, summarizer)
            last = self.core.store.db.write(lambda c: self._last(c, run), tenant=run.tenant)
            if await self.core.threads.result(last):
                return dict(counts)

    def _last(self, c: Connection, run: Run) -> bool:
        """Return True if nothing is pending. A session that is closed from here on gets a job of its own; until here
        none was placed for it."""
        now = now_micros()
        names = ("pending_sessions", "rollups_due") if self.settings.rollups else ("pending_sessions",)
        if any(c.one(name, [run.tenant, now, 1]) for name in names):
            return False
        c.run("free_job_key", [run.tenant, run.id])
        return True

    async def one(self, tenant: str, row: SessionRow) -> None:
        """Summarize one session now, however small it is.

        Raises:
            ModelError: the model gave no summary; it is tried again later.
            SpendingLimit: the tenant has spent its day.
        """
        summarizer = Summarizer(self.core, tenant, background=False)
        result = (await self._results(summarizer, tenant, [row], asked=True))[0]
        await self._keep(tenant, [result])
        if result.failure is not None:
            raise result.failure

    async def several(self, tenant: str, rows: Sequence[SessionRow]) -> dict[str, int]:
        """Summarize closed sessions that are large enough and have no current summary; return how many were `created`,
        `failed` and `skipped`.

        Raises:
            Postponed: the model does not answer, or the tenant has reached its daily limit; failures are recorded.
        """
        results = await self._results(Summarizer(self.core, tenant, background=True), tenant, rows)
        counts = await self._keep(tenant, results)
        _check_away(results)
        return counts

    async def _pending(self, tenant: str, limit: int) -> list[SessionRow]:
        values = [tenant, now_micros(), limit]
        return await self.core.threads.run(
            self.core.store.db.read,
            lambda c: [SessionRow._make(row) for row in c.all("pending_sessions", values)],
            tenant,
        )

    # --- making ------------------------------------------------------------------------------------

    async def _results(
        self, summarizer: Summarizer, tenant: str, rows: Sequence[SessionRow], asked: bool = False
    ) -> list[Made]:
        began = time.perf_counter()
        wanted = [*rows] if asked else await self.core.threads.run(self._wanted, tenant, rows)
        if summarizer.by_rules:
            by_id = await self.core.threads.run(self._extracted, summarizer, tenant, wanted)
        else:
            read = await self.core.threads.run(self._said, tenant, wanted)
            free = asyncio.Semaphore(AT_ONCE)
            answers = await asyncio.gather(
                *(self._asked(summarizer, free, row, read[row.id]) for row in wanted)
            )
            by_id = {answer.row.id: answer for answer in answers}
        self.core.tally["session_summary_seconds"] += time.perf_counter() - began  # type: ignore[assignment]
        return [by_id.get(row.id) or Made(row) for row in rows]

    def _wanted(self, tenant: str, rows: Sequence[SessionRow]) -> list[SessionRow]:
        """Return the sessions to summarize: summaries are on in their channel, they are not too small, and have no
        current summary."""
        channels = {row.channel_id for row in rows}
        switched = self.core.store.db.read(lambda c: switches_of(c, tenant, channels), tenant)
        on = {
            channel: in_force(self.core.config, switched[channel]).session_summaries for channel in channels
        }
        return [row for row in rows if on[row.channel_id] and self._unsummarized(row)]

    def _unsummarized(self, row: SessionRow) -> bool:
        done = row.summary_rev == row.rev and row.summary_version == self.settings.summary_version
        return row.message_count >= self.settings.min_messages and not done

    def _extracted(self, summarizer: Summarizer, tenant: str, rows: Sequence[SessionRow]) -> dict[str, Made]:
        said = self._said(tenant, rows)
        return {row.id: Made(row, summarizer.extracted(said[row.id])) for row in rows}

    def _said(self, tenant: str, rows: Sequence[SessionRow]) -> dict[str, list[MessageRow]]:
        """Return the messages of sessions, by id of the session."""
        short = [row.id for row in rows if row.message_count <= SHORT]
        said: dict[str, list[MessageRow]] = {row.id: [] for row in rows}

        def read(c: Connection) -> None:
            for columns in c.all("messages_of_sessions", [tenant, json.dumps(short)]):
                message = MessageRow._make(columns)
                said[message.session_id].append(message)
            for row in rows:
                if row.message_count > SHORT:
                    said[row.id] = records.messages_of(c, tenant, row.id, SHORT // 4, SHORT - SHORT // 4)

        self.core.store.db.read(read, tenant)
        return said

    async def _asked(
        self, summarizer: Summarizer, free: asyncio.Semaphore, row: SessionRow, said: Sequence[MessageRow]
    ) -> Made:
        async with free:
            try:
                return Made(row, await summarizer.of_session(row, said))
            except (ModelError, SpendingLimit) as exc:
                return Made(row, failure=exc)

    # --- keeping -----------------------------------------------------------------------------------

    async def _keep(self, tenant: str, results: Sequence[Made]) -> dict[str, int]:
        """Write the results of sessions, in one transaction with the memories of their summaries."""

        def work(w: Writing) -> Done:
            w.draw(1)
            return self._write_results(w, results)

        return await self._counted(tenant, work)

    async def store(
        self, tenant: str, find: Callable[[Connection], SessionRow], digest: Digest, number: int | None
    ) -> None:
        """Store a digest that a caller made as the summary of the session that `find` returns.

        Raises:
            Conflict: the session has another `number` of messages (None: any).
        """

        def work(w: Writing) -> Done:
            w.draw(1)
            row = find(w.c)
            if number is not None and number != row.message_count:
                says = f"the session has {row.message_count} messages, not {number}: read it again"
                raise Conflict(f"message_count: {says}")
            return self._write_results(w, [Made(row, digest)])

        await self._counted(tenant, work)

    async def fail(self, tenant: str, find: Callable[[Connection], SessionRow], reason: str) -> None:
        """Record that a caller could not make the summary of the session that `find` returns. If sessions are
        summarized here, it is tried here later, as one that failed here."""

        def work(w: Writing) -> Done:
            w.draw(1)
            row, now = find(w.c), now_micros()
            self._failed(w, row, reason, "external", now)
            if row.status != "open" and not summarized(w.c, self.core.config, tenant, row.channel_id):
                w.c.run("give_up_session", [tenant, row.id])
            return Done({"created": 0, "failed": 1, "skipped": 0})

        await self._counted(tenant, work)

    async def _counted(self, tenant: str, work: Callable[[Writing], Done]) -> dict[str, int]:
        done = await self.core.threads.result(self.core.store.transact(tenant, work))
        counts = done.counts
        for id_, by in done.summarized:
            log.info("session summarized", extra={"tenant": tenant, "session": id_, "by": by})
        if counts["created"]:
            self.core.due_times.announce(now_micros() + QUIET)
        for name, number in counts.items():
            self.core.tally[f"session_summaries.{name}"] += number
        return counts

    def _write_results(self, w: Writing, results: Sequence[Made]) -> Done:
        now = now_micros()
        there = records.sessions_by_id(w.c, w.tenant, [result.row.id for result in results])
        drafts: list[Draft] = []
        done = Done()
        counts = done.counts
        for result in results:
            row = there.get(result.row.id)
            if row is None or row.rev != result.row.rev:
                continue  # its messages changed meanwhile: it is closed, and summarized, again
            if result.digest is not None:
                drafts.append(self._summarized(w, row, result.digest, now))
                counts["created"] += 1
                done.summarized.append((row.id, result.digest.by))
            elif result.failure is not None:
                self._failed(w, row, str(result.failure), type(result.failure).__name__, now)
                counts["failed"] += 1
            else:
                status = "summarized" if row.summary_id is not None else "closed"
                w.c.run("settle_session", [status, w.tenant, row.id, row.rev])
                counts["skipped"] += 1
        schedule_rollups(
            w.c,
            w.tenant,
            [
                there[result.row.id]
                for result in results
                if result.digest is not None and result.row.id in there
            ],
            now,
        )
        w.insert(drafts)
        return done

    def _failed(self, w: Writing, row: SessionRow, reason: str, error: str, now: int) -> None:
        """Record why there is no summary, and when it is tried again."""
        again = now + int(backoff(row.attempts + 1, base=AGAIN, most=LONGEST) * SECOND)
        w.c.run("fail_session", [reason[:500], again, now, w.tenant, row.id, row.rev])
        w.then(partial(self.core.due_times.announce, again))
        extra = {"tenant": w.tenant, "session": row.id, "error": error, "attempt": row.attempts + 1}
        log.warning("session not summarized", extra=extra)

    def _summarized(self, w: Writing, row: SessionRow, digest: Digest, now: int) -> Draft:
        """Return the memory of a session's summary and write the session; an earlier memory is removed."""
        if row.summary_id is not None:
            w.remove([memory.seq for memory in fetch_ids(w.c, w.tenant, [row.summary_id]).values()])
        (last,) = records.messages_of(w.c, w.tenant, row.id, 0, 1) or (None,)
        draft = summary_memory(row, digest, now, None if last is None else zone_of(last.metadata))
        lists = [compact_json(getattr(digest, name)) for name in records.LISTS]
        w.c.run(
            "summarize_session",
            [
                digest.summary, *lists, draft.row.id, digest.by, self.settings.summary_version, now, now,
                w.tenant, row.id, row.rev,
            ],
        )  # fmt: skip
        return draft


def summary_memory(row: SessionRow, digest: Digest, now: int, zone: str | None = None) -> Draft:
    """Return the memory of a session's summary; its embedding includes a header of channel, time and speakers. `zone`
    is the offset from UTC of its times."""
    began, ended = (local(moment(at), zone) for at in (row.started_at, row.ended_at))
    participants = texts_of(row.participants)
    return derived_memory(
        row.tenant_id,
        "session_summary",
        digest.flat(),
        session_header(row.channel_id, row.started_at, row.ended_at, participants, digest.topics, zone),
        key=[row.id],
        user_id=row.user_id,
        agent_id=row.agent_id,
        channel_id=row.channel_id,
        session_id=row.id,
        source=SOURCE,
        tags=digest.topics,
        metadata={
            "session_id": row.id,
            "started_at": began.isoformat(),
            "ended_at": ended.isoformat(),
            "participants": participants[:100],
            "message_count": row.message_count,
            **({ZONE: zone} if zone else {}),
        },
        refs=[row.id],
        occurred_at=row.ended_at,
        now=now,
    )


def _check_away(results: Sequence[Made]) -> None:
    """Postpone if the model answered for none of the sessions: others would fail too.

    Raises:
        Postponed: the model answered for none.
    """
    failures = [result.failure for result in results if result.failure is not None]
    away = [exc for exc in failures if isinstance(exc, ModelUnavailable | SpendingLimit)]
    if away and not any(result.digest is not None for result in results):
        raise Postponed(str(away[0]), away[0].seconds if isinstance(away[0], SpendingLimit) else AGAIN)
