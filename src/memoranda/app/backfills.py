"""Backfills of existing data: missing vectors, summaries of sessions, memories of logged questions.

Each is a job with progress and a rate limit; it can be cancelled, and resumes where it stopped.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal, get_args

import msgspec

from memoranda.document_qa.asking import UploadAsk
from memoranda.errors import InvalidInput
from memoranda.memories.memories import Memories
from memoranda.sessions.records import SessionRow
from memoranda.sessions.summary_jobs import SummaryJobs
from memoranda.sessions.switches import summarized
from memoranda.storage.sql.base import Connection
from memoranda.store.access import must_be_admin
from memoranda.store.core import Core
from memoranda.store.feature import Feature
from memoranda.store.job_kinds import MEMORY_LANE, JobKind, Pace, Run
from memoranda.types import Job, Rate, Subject

Kind = Literal["embeddings", "summaries", "query_logs"]
KINDS: tuple[str, ...] = get_args(Kind)
SUMMARIES_JOB = "backfill.summaries"


class Missing(msgspec.Struct, kw_only=True, tag_field="object", tag="backfills"):
    """What backfills would make: rows without a vector of the model that answers, sessions without a summary of this
    version, logged answers that became no memory."""

    unembedded: int
    summaries: int
    query_logs: int


class Backfills:
    """Backfills of one tenant, for its admins."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self._core = core
        self.subject = subject

    async def start(
        self, what: Kind, *, everything: bool = False, rows_per_second: Rate | None = None
    ) -> Job:
        """Start a backfill. It is the method of that name: vectors that are missing (or, with `everything`, all),
        summaries of sessions, memories of logged questions; at most so many rows a second.

        Raises:
            InvalidInput: no backfill has that name, or a field is wrong.
            Forbidden: the subject is no admin.
        """
        if what not in KINDS:
            raise InvalidInput("what", f"is no backfill; use {', '.join(KINDS)}")
        if what == "embeddings":
            return await self.embeddings(everything=everything, rows_per_second=rows_per_second)
        if everything:
            raise InvalidInput("everything", "goes with embeddings alone")
        verb = self.summaries if what == "summaries" else self.query_logs
        return await verb(rows_per_second=rows_per_second)

    async def embeddings(self, *, everything: bool = False, rows_per_second: float | None = None) -> Job:
        """Make the missing vectors, or all of them again; see `Memories.reembed`."""
        self._check(rows_per_second)
        memories = Memories(self._core, self.subject)
        return await memories.reembed(everything=everything, rows_per_second=rows_per_second)

    async def summaries(self, *, rows_per_second: float | None = None) -> Job:
        """Summarize closed sessions that have no summary, or one of an earlier `sessions.summary_version`.

        Raises:
            InvalidInput: sessions are not summarized here, or the pace is wrong.
            Forbidden: the subject is no admin.
        """
        self._check(rows_per_second)
        tenant, jobs = self.subject.tenant_id, self._core.jobs
        if not await self._core.threads.run(self._core.store.db.read, self._summarized, tenant):
            says = "is off: nothing is summarized here; set it to true, or switch session_summaries on"
            raise InvalidInput("sessions.summarize", says)
        payload = {"rows_per_second": rows_per_second}
        id_ = await jobs.enqueue(tenant, SUMMARIES_JOB, payload, dedup_key="backfill")
        return await jobs.get(tenant, id_)

    async def query_logs(self, *, rows_per_second: float | None = None) -> Job:
        """Make memories of logged answers without one; see `UploadAsk.derive`."""
        self._check(rows_per_second)
        return await UploadAsk(self._core, self.subject).derive(rows_per_second=rows_per_second)

    async def missing(self) -> Missing:
        """Return how much backfills would make.

        Raises:
            Forbidden: the subject is no admin.
        """
        self._check(None)
        tenant, store, settings = self.subject.tenant_id, self._core.store, self._core.config.sessions
        summaries = [tenant, settings.summary_version, settings.min_messages]

        def read(c: Connection) -> Missing:
            counted = [c.one("count_unsummarized", summaries), c.one("count_underived", [tenant])]
            pending = sum(
                number for whose, number in c.all("count_pending", [store.space]) if whose == tenant
            )
            left, underived = (int(row[0]) if row else 0 for row in counted)
            return Missing(unembedded=pending, summaries=left, query_logs=underived)

        return await self._core.threads.run(store.db.read, read, tenant)

    def _summarized(self, c: Connection) -> bool:
        """Return True if sessions of the tenant, or of one of its channels, are summarized."""
        tenant = self.subject.tenant_id
        anywhere = c.one("switched_on_anywhere", [tenant, "session_summaries"])
        return summarized(c, self._core.config, tenant, None) or anywhere is not None

    def _check(self, rows_per_second: float | None) -> None:
        must_be_admin(self.subject, "backfill")
        if rows_per_second is not None and not rows_per_second > 0:
            raise InvalidInput("rows_per_second", "must be above 0; leave it out for no limit")


class Summaries:
    """The job that summarizes a tenant's sessions, oldest first."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self._summarizing = SummaryJobs(core)

    async def work(self, run: Run) -> dict[str, Any]:
        """Summarize closed sessions without a summary of this version; return the counts of created, failed and skipped
        ones. A summarized session is no candidate any more: a second run finds nothing to do."""
        pace = Pace(run)
        total = run.total if run.total is not None else await self.core.threads.run(self._left, run.tenant)
        counts: Counter[str] = Counter()
        after, done = int(run.cursor or 0), run.done
        while rows := await self.core.threads.run(self._rows, run.tenant, after, pace.step):
            counts.update(await self._summarizing.several(run.tenant, rows))
            after, done = rows[-1].seq, done + len(rows)
            await run.report(done, max(total, done), str(after))
            await pace.keep(len(rows))
        return {"looked_at": done, **counts}

    def _candidates(self, tenant: str) -> list[Any]:
        settings = self.core.config.sessions
        return [tenant, settings.summary_version, settings.min_messages]

    def _left(self, tenant: str) -> int:
        values = self._candidates(tenant)
        row = self.core.store.db.read(lambda c: c.one("count_unsummarized", values), tenant)
        return int(row[0]) if row else 0

    def _rows(self, tenant: str, after: int, step: int) -> list[SessionRow]:
        values = [*self._candidates(tenant), after, step]

        def read(c: Connection) -> list[SessionRow]:
            return [SessionRow._make(row) for row in c.all("unsummarized", values)]

        return self.core.store.db.read(read, tenant)


def feature(core: Core) -> Feature:
    """Declare the job that summarizes sessions."""
    return Feature(jobs={SUMMARIES_JOB: JobKind(Summaries(core).work, MEMORY_LANE)})
