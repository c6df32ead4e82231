"""Extraction of facts from messages by a job: read on, call the model, write, in steps that may be repeated."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace

from memoranda.clock import now_micros
from memoranda.errors import (
    IndexUnavailable,
    ModelBroken,
    ModelError,
    ModelRefused,
    SpendingLimit,
)
from memoranda.facts.existing import Existing, existing_facts
from memoranda.facts.insertion import Learned, Plan, learn
from memoranda.facts.parsing import Candidate, parsed
from memoranda.facts.plans import line_of, place_of, plans_of
from memoranda.facts.reconciling import PURPOSE, RECONCILE_JOB, reconcile_later
from memoranda.facts.reextraction import Anew, anew_of, has_words_of_deleted, is_wanted, still_rests
from memoranda.facts.rules import captured
from memoranda.providers.chat.base import Ask, Model
from memoranda.providers.chat.completion import complete, instructed
from memoranda.sessions.records import (
    MessageRow,
    SessionRow,
    messages_by_id,
    messages_to_learn_from,
    session_of,
)
from memoranda.sessions.switches import in_force, switches_of
from memoranda.sessions.values import ASKED, EXTRACT_JOB, SWITCHED
from memoranda.storage.sql.base import Connection
from memoranda.store.core import Core
from memoranda.store.job_kinds import Postponed, Run
from memoranda.store.rows import Home, context_of, fetch_ids, home_at
from memoranda.store.transaction import Writing
from memoranda.text import prompts
from memoranda.text.hashing import digest
from memoranda.text.instructions import RULES
from memoranda.text.stored import compact_json

T = TypeVar("T")
log = logging.getLogger("memoranda.facts")
AT_ONCE = 60
"""The most messages in one prompt."""
BATCH_TOKENS = 6_000
"""Tokens of conversation in one prompt; at most half of the context of the model."""
LINE_TOKENS = 1_500
"""Tokens of one message that are shown; a pasted document is cut."""
BEFORE = 4
"""Earlier messages that are shown as context."""
ANSWER_TOKENS = 4_000
FIRST_WAIT, LONGEST_WAIT = 30.0, 3_600.0
"""Seconds until a model that failed is called again, doubled each time."""
FIRST = "first"
"""The cursor of the job that waits for the model on behalf of all later ones of its session."""
GIVES_UP = 3
"""Attempts with one batch at a model that refuses it, or returns nothing of use."""
CONTENT = (400, 413, 422)
"""Statuses by which a model refuses the content, not the sender."""


_LOCKS: WeakValueDictionary[tuple[int, str, str], asyncio.Lock] = WeakValueDictionary()
"""Locks of sessions that are being read, by store, tenant and session."""


class Moved(Exception):
    """Another job has read the session, its messages were moved, or one was changed: the session is read again."""


class Batch(msgspec.Struct, frozen=True):
    """Messages to extract facts from, the messages before them, and the state of the session."""

    session: SessionRow
    messages: list[MessageRow]
    before: list[MessageRow]
    upto: int | None
    """The session is read up to this message once the batch is done (0: up to its beginning); None: for single
    messages."""
    rest: Sequence[str] = ()
    """The ids of single messages that do not fit: a job of their own reads them."""
    about: Anew = {}
    """Of single messages, the words that the wanted facts are about, if not all are wanted."""


class Extraction:
    """Handler of the job that extracts facts from a session, or again from single messages of it. In the background,
    replies to users have priority over its model calls."""

    def __init__(self, core: Core, *, background: bool) -> None:
        self.core = core
        self._background = background
        self.settings = core.config.facts

    # --- the job -----------------------------------------------------------------------------------

    async def job(self, run: Run) -> dict[str, Any]:
        """Extract what is pending; a session that another job reads, or that is gone, is left alone.

        Raises:
            Postponed: the model does not answer; the job waits, however long that takes.
            SpendingLimit: the tenant has spent its day.
        """
        session, anew = str(run.payload["session_id"]), anew_of(run.payload)
        if anew is None and await self._write(run.tenant, lambda w: self._waits(w, run, session)):
            return {"waits": True}
        extraction = Extraction(self.core, background=False) if run.awaited else self
        try:
            learned = await extraction.extract(run.tenant, session, anew, run.id, run.done)
        except (ModelError, IndexUnavailable, SpendingLimit) as exc:
            self.core.tally["facts.failed"] += 1
            extra = {"tenant": run.tenant, "session": session, "error": type(exc).__name__}
            log.warning("facts not extracted", extra=extra)
            if anew is None:
                wait = await self._failed(run, session, exc)
                run.cursor = FIRST
            else:  # single messages: no other job reads them, so none waits for this one
                wait = _wait(run.done)
                await run.report(run.done + 1)
            if isinstance(exc, SpendingLimit):
                raise
            raise Postponed(_reason(exc), wait) from exc
        return {"kept": learned.kept, "joined": learned.joined, "superseded": learned.superseded}

    def _waits(self, w: Writing, run: Run, session: str) -> bool:
        """Return True if an earlier job of the session waits for the model, and will read what this one would. Later
        messages get a job of their own."""
        w.c.run("free_job_key", [run.tenant, run.id])
        row = session_of(w.c, w.tenant, session)
        until = 0 if row is None else row.facts_next_try_at
        return run.cursor != FIRST and 0 < until - now_micros() <= LONGEST_WAIT * 1e6

    async def extract(
        self,
        tenant: str,
        session: str,
        anew: Anew | None = None,
        job: str | None = None,
        failures: int = 0,
    ) -> Learned:
        """Extract facts from the messages of a session since the last time, or from the messages `anew`; `job`
        is the id of the job that is about these, `failures` how often it failed before.

        Raises:
            ModelError: the model gave no answer that could be used; what it answered before is kept.
            IndexUnavailable: the neighbours of a fact cannot be looked up now.
            SpendingLimit: the tenant has spent its day.
        """
        key = (id(self.core.store), tenant, session)
        async with _LOCKS.setdefault(
            key, asyncio.Lock()
        ):  # two jobs must not send the same messages to the model
            return await self._extract(tenant, session, anew, job, failures)

    async def _extract(
        self, tenant: str, session: str, anew: Anew | None, job: str | None, failures: int
    ) -> Learned:
        total = Learned()
        while True:
            batch = await self.core.threads.run(self._read, tenant, session, anew, failures)
            if batch is None:
                break
            try:
                done = await self._take(batch, job)
            except Moved:
                continue
            total = Learned(*(a + b for a, b in zip(total, done, strict=True)))
            self.core.tally.update({f"facts.{name}": n for name, n in done._asdict().items()})
            if anew is not None:
                break
        if any(total):
            log.info("facts extracted", extra={"tenant": tenant, "session": session, **total._asdict()})
        return total

    async def _failed(self, run: Run, session: str, exc: Exception) -> float:
        """Record in the session that it could not be read, and that other jobs may wait for this one; return the
        seconds until the next try."""

        def work(w: Writing) -> float:
            row = session_of(w.c, w.tenant, session)
            wait = _wait(row.facts_attempts if row else 0)
            w.c.run("fail_facts", [_reason(exc), now_micros() + int(wait * 1e6), w.tenant, session])
            w.c.run("set_cursor", [FIRST, w.tenant, run.id])
            return wait

        return await self._write(run.tenant, work)

    async def _write(self, tenant: str, work: Callable[[Writing], T]) -> T:
        return await self.core.threads.result(self.core.store.transact(tenant, work))

    # --- reading -----------------------------------------------------------------------------------

    def _read(self, tenant: str, id_: str, anew: Anew | None, failures: int) -> Batch | None:
        """Return the next messages of a session; None if none are left to read. The number of failures of messages
        `anew` is that of their job."""

        def read(c: Connection) -> Batch | None:
            messages = [] if anew is None else [*messages_by_id(c, tenant, anew).values()]
            session = session_of(c, tenant, messages[0].session_id if messages else id_)  # it may be merged
            if session is None:
                return None
            if anew is not None:
                session = session._replace(facts_attempts=failures)
                marks = self._readable(c, session)
                again = [row for row in messages if row.extract in marks and row.seq <= session.facts_seq]
                again.sort(key=lambda row: row.seq)
                batch = self._batch(c, session, again, marks, single=True) if again else None
                return None if batch is None else replace(batch, about=anew)
            rows = messages_to_learn_from(c, tenant, id_, session.facts_seq, AT_ONCE)
            if rows:
                return self._batch(c, session, rows, self._readable(c, session))
            behind = session.facts_rev < session.rev or session.facts_failure is not None
            return Batch(session, [], [], session.facts_seq) if behind else None

        return self.core.store.db.read(read, tenant)

    def _readable(self, c: Connection, session: SessionRow) -> tuple[int, ...]:
        """Return the marks (`messages.extract`) of the messages that may be read now. A job reads messages without a
        request of their own only while extraction is on; skipped ones are not read later."""
        if not self._background:
            return ASKED, SWITCHED
        channel = session.channel_id
        switched = switches_of(c, session.tenant_id, [channel])[channel]
        return (ASKED, SWITCHED) if in_force(self.core.config, switched).extraction else (ASKED,)

    def _batch(
        self,
        c: Connection,
        session: SessionRow,
        rows: list[MessageRow],
        marks: tuple[int, ...],
        single: bool = False,
    ) -> Batch:
        budget = min(BATCH_TOKENS, self.core.config.model.context_tokens // 2)
        spent = 0
        some: list[MessageRow] = []
        for row in rows:
            spent += min(row.tokens, LINE_TOKENS) + 16
            if some and (spent > budget or len(some) == AT_ONCE):
                break
            some.append(row)
        first = min(row.seq for row in some)
        earlier = c.all("messages_before", [session.tenant_id, session.id, first, max(marks), BEFORE])
        before = [MessageRow._make(row) for row in reversed(earlier)]
        upto = None if single else max(row.seq for row in some)
        talked = [row for row in some if row.extract in marks and (row.personal or row.role == "assistant")]
        talked.sort(key=lambda row: (row.occurred_at, row.seq))
        rest = [row.id for row in rows[len(some) :]] if single else []
        return Batch(session, talked, before, upto, rest)

    # --- one batch ---------------------------------------------------------------------------------

    async def _take(self, batch: Batch, job: str | None) -> Learned:
        tenant = batch.session.tenant_id
        model = self._model(tenant)
        known = await self._known(batch) if model is not None else []
        extracted, by = await self._candidates(batch, model, known)
        plans = await self.core.threads.run(self._plans, batch, extracted, by)
        await self.core.ingest.embed(tenant, [plan.draft for plan in plans], PURPOSE)
        context = [*batch.before, *(row for fact in known for row in fact.messages)]
        woken = partial(self.core.jobs.woken(EXTRACT_JOB), None)
        wake = self.core.jobs.woken(RECONCILE_JOB)

        def write(w: Writing) -> Learned:
            learned = self._learn(w, batch, plans, context, known, job, wake)
            if batch.rest:
                self._leave_rest(w, batch)
                w.then(woken)
            return learned

        return await self._write(tenant, write)

    def _model(self, tenant: str) -> Model | None:
        """Return the model to call; None if rules replace it: none is configured, or only rules are enabled."""
        model, settings = self.core.model, self.settings
        if model.quotes_only or (settings.extraction == "off" and settings.capture_rules):
            return None
        return self.core.costs.paid(model, tenant, PURPOSE, background=self._background)

    async def _known(self, batch: Batch) -> list[Existing]:
        """Return the stored facts that the messages may be about; none if the messages are of several people, whose
        facts the model must not mix: a job compares these afterwards."""
        if len(homes := self._homes(batch)) != 1:
            return []
        texts = {row.id: row.content for row in batch.messages}
        tenant = batch.session.tenant_id
        return await existing_facts(self.core, tenant, homes.pop(), texts, purpose=PURPOSE)

    def _homes(self, batch: Batch) -> set[Home]:
        """Return the scopes of facts of the people whose messages these are."""
        return {home_at(**place_of(batch.session, [row])) for row in batch.messages if row.personal}

    async def _candidates(
        self, batch: Batch, model: Model | None, known: Sequence[Existing]
    ) -> tuple[list[Candidate], str]:
        if not any(row.personal for row in batch.messages):
            return [], RULES
        if model is None:
            return await self.core.threads.run(self._by_rules, batch), RULES
        try:
            answer = await complete(model, self._ask(batch, known))
        except ModelRefused as exc:
            if exc.status not in CONTENT or batch.session.facts_attempts + 1 < GIVES_UP:
                raise
            log.warning("session %s: the model refuses some messages, they give no facts", batch.session.id)
            return [], RULES
        except ModelBroken:
            if batch.session.facts_attempts + 1 < GIVES_UP:
                raise
            log.warning("session %s: the model says nothing of some messages", batch.session.id)
            return [], RULES
        return [_with_known(candidate, known) for candidate in parsed(answer.text)], answer.name or model.name

    def _ask(self, batch: Batch, known: Sequence[Existing]) -> Ask:
        """Return the request. After a failure it has no response format, which the server may not support."""
        before = [line_of(row) for row in batch.before]
        lines = [line_of(row, most=4 * LINE_TOKENS) for row in batch.messages]
        material = prompts.conversation([fact.line for fact in known], before, lines)
        form = None if batch.session.facts_attempts else prompts.FACTS_FORM
        model = self.settings.model
        return instructed(prompts.FACTS, material, ANSWER_TOKENS, model=model, response_format=form)

    def _by_rules(self, batch: Batch) -> list[Candidate]:
        """Return what rules read in the messages of people; a message on which they fail does not keep the others
        from being read."""
        candidates: list[Candidate] = []
        for number, row in enumerate(batch.messages, 1):
            if not row.personal:
                continue
            try:
                some = captured(row.content, row.author, self.settings.max_per_turn)
            except (ArithmeticError, LookupError, ValueError):
                self.core.tally["facts.unread"] += 1
                log.exception("message %s has no facts: the rules failed on its text", row.id)
                continue
            candidates += [replace(candidate, messages=(number,)) for candidate in some]
        return candidates

    def _plans(self, batch: Batch, extracted: list[Candidate], by: str) -> list[Plan]:
        """Return what was extracted from the messages, to be stored. It reads all words of the messages: not for the
        event loop."""
        bounds, now = self.core.ingest.bounds, now_micros()
        plans = plans_of(extracted, batch.session, batch.messages, batch.before, by, bounds, now)
        return [plan for plan in plans if is_wanted(plan.draft, batch.messages, batch.about)]

    # --- writing -----------------------------------------------------------------------------------

    def _learn(
        self,
        w: Writing,
        batch: Batch,
        plans: Sequence[Plan],
        context: Sequence[MessageRow],
        known: Sequence[Existing],
        job: str | None,
        wake: Callable[[object], None],
    ) -> Learned:
        """Write facts, what follows from them, and how far the session was read: all or nothing. `context` has the
        messages around those of the batch, and of the facts that are `known`.

        Raises:
            Moved: another job read the session, messages were moved in it, one was changed, one of the context of a
                fact is not there any more, or a fact has words that only deleted ones said. No job is placed for a
                message that is changed while it is read; from here on one is.
        """
        session = batch.session
        if batch.upto is None:
            w.draw(1)  # writers of other processes wait
        else:
            key = [batch.upto, session.rev, w.tenant, session.id, session.facts_seq]
            if not w.c.run("read_facts", key):
                raise Moved
        used = {ref for plan in plans for ref in context_of(plan.draft.row)}
        read = {row.id: row for row in (*context, *batch.messages)}
        there = messages_by_id(w.c, w.tenant, {*used, *(row.id for row in batch.messages)})
        left = [row for row in batch.messages if row.id in there]
        facts = fetch_ids(w.c, w.tenant, sorted(used - there.keys()))
        if used - there.keys() - facts.keys():
            raise Moved
        shown = {fact.row.id: fact.row.content for fact in known}
        if any(read[id_].content != row.content for id_, row in there.items()) or any(
            shown[id_] != row.content for id_, row in facts.items()
        ):
            raise Moved
        if any(has_words_of_deleted(plan.draft, batch.messages, there) for plan in plans):
            raise Moved
        if batch.upto is None and job is not None:
            w.c.run("free_job_key", [w.tenant, job])
        resting = [plan for plan in plans if still_rests(plan.draft, left)]
        written = learn(w, resting)
        if not self.core.model.quotes_only and len(self._homes(batch)) > 1:
            reconcile_later(self.core, w, [each.row for each in written.outcomes if each.created], wake)
        return written.counts

    def _leave_rest(self, w: Writing, batch: Batch) -> None:
        """Leave single messages that do not fit to another job: if it fails, this batch is not sent again."""
        about = {id_: batch.about[id_] for id_ in batch.rest}
        payload = {"session_id": batch.session.id, "messages": batch.rest, "about": about}
        key = f"{batch.session.id} {digest(compact_json(payload))}"
        self.core.jobs.place(w.c, w.tenant, EXTRACT_JOB, payload, dedup_key=key)


def _with_known(candidate: Candidate, known: Sequence[Existing]) -> Candidate:
    """Return a candidate with the known facts of its numbers. What ends one in its very words is written in those of
    the message."""
    facts = tuple(known[number - 1] for number in candidate.of if number <= len(known))
    again = candidate.op == "ends" and any(fact.row.content == candidate.text for fact in facts)
    return replace(
        candidate, known=facts, text=(candidate.quote or candidate.text) if again else candidate.text
    )


def _wait(failures: int) -> float:
    """Return the seconds until the next try after one more failure."""
    return min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(20, failures))


def _reason(exc: Exception) -> str:
    """Return what went wrong, without the text of a provider, which may quote the conversation."""
    status = f" (status {exc.status})" if isinstance(exc, ModelRefused) and exc.status else ""
    says = (exc.__doc__ or "").partition("\n")[0].strip()
    return f"{type(exc).__name__}{status}: {says}"
