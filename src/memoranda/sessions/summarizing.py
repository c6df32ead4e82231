"""Summaries of closed sessions, by a job for each tenant: made outside of transactions, kept a batch in one."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from memoranda.clock import moment, now_micros
from memoranda.errors import Conflict, ModelError, ModelUnavailable, SpendingLimit
from memoranda.sessions import records
from memoranda.sessions.digests import Digest
from memoranda.sessions.headers import session_header
from memoranda.sessions.keeping import QUIET, stale, told_memory
from memoranda.sessions.records import MessageRow, SessionRow, texts_of
from memoranda.sessions.rolling import Rolling
from memoranda.sessions.summarizer import Telling
from memoranda.sessions.switches import in_force, summarized, switches_of
from memoranda.storage.sql.base import Connection
from memoranda.store.core import Core
from memoranda.store.jobs import SECOND, Postponed, Run, backoff
from memoranda.store.rows import fetch_ids
from memoranda.store.transaction import Writing
from memoranda.store.validation import Draft
from memoranda.text.json import compact_json

log = logging.getLogger("memoranda.sessions")
BATCH = 200
"""Sessions that are summarized by rules in one transaction."""
ASKED = 8
"""Sessions that a model summarizes for one transaction, `AT_ONCE` at a time."""
AT_ONCE = 4
SHORT = 300
"""Messages of a session that is read whole; of a longer one this many, of its beginning and its end."""
AGAIN = 30.0
"""Seconds after which a summary that failed is tried again; twice as many after each failure, up to a day."""
LONGEST = 24 * 3600.0
SOURCE = "session"


@dataclass(slots=True)
class Done:
    """What was written: how many summaries were `created`, `failed` and `skipped`, and the ids of the sessions that
    have one now, with what made it."""

    counts: dict[str, int] = field(default_factory=lambda: {"created": 0, "failed": 0, "skipped": 0})
    summarized: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Made:
    """What became of one session: its digest, why there is none, or neither where it is too small."""

    row: SessionRow
    digest: Digest | None = None
    failure: Exception | None = None


class Summarizing:
    """Makes what is missing of a tenant's summaries."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.settings = core.config.sessions
        self.rolling = Rolling(core)

    async def work(self, run: Run) -> dict[str, Any]:
        """The job: every session that is closed and not summarized, then the weeks that are over.

        Raises:
            Postponed: the model is away; what it was asked for is noted as failed and tried again.
        """
        telling = Telling(self.core, run.tenant, background=True)
        counts: dict[str, int] = defaultdict(int)
        while rows := await self._pending(run.tenant, BATCH if telling.by_rules else ASKED):
            made = await self._made(telling, run.tenant, rows)
            for name, number in (await self._keep(run.tenant, made)).items():
                counts[name] += number
            await run.report(run.done + len(rows))
            _check_away(made)
        if self.settings.rollups:
            counts["rollups"] = await self.rolling.work(run, telling)
        return dict(counts)

    async def one(self, tenant: str, row: SessionRow) -> None:
        """Summarizes one session now, however small it is.

        Raises:
            ModelError: the model gave no summary; it is tried again later.
            SpendingLimit: the tenant has spent its day.
        """
        telling = Telling(self.core, tenant, background=False)
        made = (await self._made(telling, tenant, [row], asked=True))[0]
        await self._keep(tenant, [made])
        if made.failure is not None:
            raise made.failure

    async def several(self, tenant: str, rows: Sequence[SessionRow]) -> dict[str, int]:
        """Summarizes closed sessions that are large enough, and not summarized as they stand; how many were `created`,
        `failed` and `skipped`.

        Raises:
            Postponed: the model is away, or the tenant has spent its day; which failed is noted.
        """
        made = await self._made(Telling(self.core, tenant, background=True), tenant, rows)
        counts = await self._keep(tenant, made)
        _check_away(made)
        return counts

    async def _pending(self, tenant: str, limit: int) -> list[SessionRow]:
        values = [tenant, now_micros(), limit]
        return await self.core.threads.run(
            self.core.store.db.read,
            lambda c: [SessionRow._make(row) for row in c.all("pending_sessions", values)],
            tenant,
        )

    # --- making ------------------------------------------------------------------------------------

    async def _made(
        self, telling: Telling, tenant: str, rows: Sequence[SessionRow], asked: bool = False
    ) -> list[Made]:
        began = time.perf_counter()
        wanted = [*rows] if asked else await self.core.threads.run(self._wanted, tenant, rows)
        if telling.by_rules:
            found = await self.core.threads.run(self._extracted, telling, tenant, wanted)
        else:
            read = await self.core.threads.run(self._said, tenant, wanted)
            free = asyncio.Semaphore(AT_ONCE)
            made = await asyncio.gather(*(self._asked(telling, free, row, read[row.id]) for row in wanted))
            found = {one.row.id: one for one in made}
        self.core.tally["session_summary_seconds"] += time.perf_counter() - began  # type: ignore[assignment]
        return [found.get(row.id) or Made(row) for row in rows]

    def _wanted(self, tenant: str, rows: Sequence[SessionRow]) -> list[SessionRow]:
        """The sessions of which something is to be made: summaries are on where they were held, and they are not too
        small, nor summarized as they stand."""
        channels = {row.channel_id for row in rows}
        switched = self.core.store.db.read(lambda c: switches_of(c, tenant, channels), tenant)
        on = {
            channel: in_force(self.core.config, switched[channel]).session_summaries for channel in channels
        }
        return [row for row in rows if on[row.channel_id] and self._unsummarized(row)]

    def _unsummarized(self, row: SessionRow) -> bool:
        done = row.summary_rev == row.rev and row.summary_version == self.settings.summary_version
        return row.message_count >= self.settings.min_messages and not done

    def _extracted(self, telling: Telling, tenant: str, rows: Sequence[SessionRow]) -> dict[str, Made]:
        said = self._said(tenant, rows)
        return {row.id: Made(row, telling.extracted(said[row.id])) for row in rows}

    def _said(self, tenant: str, rows: Sequence[SessionRow]) -> dict[str, list[MessageRow]]:
        """What was said in sessions, by id."""
        short = [row.id for row in rows if row.message_count <= SHORT]
        said: dict[str, list[MessageRow]] = {row.id: [] for row in rows}

        def read(c: Connection) -> None:
            for one in c.all("messages_of_sessions", [tenant, json.dumps(short)]):
                message = MessageRow._make(one)
                said[message.session_id].append(message)
            for row in rows:
                if row.message_count > SHORT:
                    said[row.id] = records.messages_of(c, tenant, row.id, SHORT // 4, SHORT - SHORT // 4)

        self.core.store.db.read(read, tenant)
        return said

    async def _asked(
        self, telling: Telling, free: asyncio.Semaphore, row: SessionRow, said: Sequence[MessageRow]
    ) -> Made:
        async with free:
            try:
                return Made(row, await telling.of_session(row, said))
            except (ModelError, SpendingLimit) as exc:
                return Made(row, failure=exc)

    # --- keeping -----------------------------------------------------------------------------------

    async def _keep(self, tenant: str, made: Sequence[Made]) -> dict[str, int]:
        """Writes what became of sessions, in one transaction with the memories in which they are found."""

        def work(w: Writing) -> Done:
            w.draw(1)
            return self._kept(w, made)

        return await self._counted(tenant, work)

    async def store(
        self, tenant: str, found: Callable[[Connection], SessionRow], digest: Digest, number: int | None
    ) -> None:
        """Keeps a digest that was made elsewhere as the summary of the session that is `found`.

        Raises:
            Conflict: the session has another `number` of messages (None: any).
        """

        def work(w: Writing) -> Done:
            w.draw(1)
            row = found(w.c)
            if number is not None and number != row.message_count:
                says = f"the session has {row.message_count} messages, not {number}: read it again"
                raise Conflict(f"message_count: {says}")
            return self._kept(w, [Made(row, digest)])

        await self._counted(tenant, work)

    async def fail(self, tenant: str, found: Callable[[Connection], SessionRow], reason: str) -> None:
        """Notes that the summary of the session that is `found` could not be made elsewhere. It is tried here later, as
        one that failed here, where sessions are summarized."""

        def work(w: Writing) -> Done:
            w.draw(1)
            row, now = found(w.c), now_micros()
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
            self.core.expect(now_micros() + QUIET)
        for name, number in counts.items():
            self.core.tally[f"session_summaries.{name}"] += number
        return counts

    def _kept(self, w: Writing, made: Sequence[Made]) -> Done:
        now = now_micros()
        there = records.sessions_by_id(w.c, w.tenant, [one.row.id for one in made])
        drafts: list[Draft] = []
        done = Done()
        counts = done.counts
        for one in made:
            row = there.get(one.row.id)
            if row is None or row.rev != one.row.rev:
                continue  # something was said or went meanwhile: it is closed, and comes, again
            if one.digest is not None:
                drafts.append(self._summarized(w, row, one.digest, now))
                counts["created"] += 1
                done.summarized.append((row.id, one.digest.by))
            elif one.failure is not None:
                self._failed(w, row, str(one.failure), type(one.failure).__name__, now)
                counts["failed"] += 1
            else:
                status = "summarized" if row.summary_id is not None else "closed"
                w.c.run("settle_session", [status, w.tenant, row.id, row.rev])
                counts["skipped"] += 1
        stale(w, [there[one.row.id] for one in made if one.digest is not None and one.row.id in there], now)
        w.insert(drafts)
        return done

    def _failed(self, w: Writing, row: SessionRow, reason: str, error: str, now: int) -> None:
        """Notes why there is no summary, and when it is tried again."""
        again = now + int(backoff(row.attempts + 1, base=AGAIN, most=LONGEST) * SECOND)
        w.c.run("fail_session", [reason[:500], again, now, w.tenant, row.id, row.rev])
        self.core.expect(again)
        told = {"tenant": w.tenant, "session": row.id, "error": error, "attempt": row.attempts + 1}
        log.warning("session not summarized", extra=told)

    def _summarized(self, w: Writing, row: SessionRow, digest: Digest, now: int) -> Draft:
        """The memory of a session's summary, with which its row is written; an earlier one goes."""
        if row.summary_id is not None:
            w.remove([memory.seq for memory in fetch_ids(w.c, w.tenant, [row.summary_id]).values()])
        made = summary_memory(row, digest, now)
        lists = [compact_json(getattr(digest, name)) for name in records.LISTS]
        w.c.run(
            "summarize_session",
            [
                digest.summary, *lists, made.row.id, digest.by, self.settings.summary_version, now, now,
                w.tenant, row.id, row.rev,
            ],
        )  # fmt: skip
        return made


def summary_memory(row: SessionRow, digest: Digest, now: int) -> Draft:
    """A session's summary as a memory; what is embedded begins with where, when and who it was."""
    participants = texts_of(row.participants)
    return told_memory(
        row.tenant_id,
        "session_summary",
        digest.flat(),
        session_header(row.channel_id, row.started_at, row.ended_at, participants, digest.topics),
        key=[row.id],
        user_id=row.user_id,
        agent_id=row.agent_id,
        channel_id=row.channel_id,
        session_id=row.id,
        source=SOURCE,
        tags=digest.topics,
        metadata={
            "session_id": row.id,
            "started_at": moment(row.started_at).isoformat(),
            "ended_at": moment(row.ended_at).isoformat(),
            "participants": participants[:100],
            "message_count": row.message_count,
        },
        refs=[row.id],
        occurred_at=row.ended_at,
        now=now,
    )


def _check_away(made: Sequence[Made]) -> None:
    """Goes on later where the model did not answer to any of them: each would be waited for in vain.

    Raises:
        Postponed: that is so.
    """
    failures = [one.failure for one in made if one.failure is not None]
    away = [exc for exc in failures if isinstance(exc, ModelUnavailable | SpendingLimit)]
    if away and not any(one.digest is not None for one in made):
        raise Postponed(str(away[0]), away[0].seconds if isinstance(away[0], SpendingLimit) else AGAIN)
