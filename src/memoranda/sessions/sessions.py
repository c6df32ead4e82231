"""Sessions of one subject: observe messages, read, close, summarize, change and delete them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from typing import Annotated, Any, TypeVar, Unpack

import msgspec

from memoranda.clock import in_zone, now_micros
from memoranda.errors import Forbidden, InvalidInput
from memoranda.sessions import records
from memoranda.sessions.boundaries import SUMMARIZE_JOB, SessionCloser, note
from memoranda.sessions.editing import remove_messages, rewritten
from memoranda.sessions.external import digest_given
from memoranda.sessions.merge import JOIN_JOB
from memoranda.sessions.message_drafts import MessageTarget, Ready, changed, sayings
from memoranda.sessions.records import MessageRow, SessionRow, Wanted, to_message, to_session
from memoranda.sessions.summary_jobs import SummaryJobs
from memoranda.sessions.values import (
    STATUSES,
    Around,
    Message,
    MessagePage,
    NewMessage,
    NewSummary,
    Observed,
    Session,
    SessionPage,
    SummaryFields,
)
from memoranda.storage.sql.base import Connection
from memoranda.store.access import must_write, sees_all
from memoranda.store.changes import ROWS
from memoranda.store.core import Core
from memoranda.store.job_kinds import RELEASE_JOB
from memoranda.store.paging import check_page
from memoranda.store.transaction import Writing
from memoranda.store.validation import check_text, time_of
from memoranda.types import Content, Limit, Moment, Order, Subject, some_text
from memoranda.validation import convert, merged
from memoranda.validation.dates import moment_in
from memoranda.validation.messages import MOMENT

T = TypeVar("T")
MessageInput = str | NewMessage | Mapping[str, Any] | Iterable[NewMessage | Mapping[str, Any] | str]
MAX_PAGE = 1_000
SHORT = 4_000
"""The most characters whose tokens are counted on the event loop; more go to a thread."""


class Sessions:
    """The sessions of one subject and their messages. Missing and not visible are deliberately indistinguishable."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self._core = core
        self.subject = subject
        self._tenant = subject.tenant_id

    # --- observing ---------------------------------------------------------------------------------

    async def observe(
        self,
        messages: MessageInput,
        *,
        session_id: str | None = None,
        channel_id: str | None = None,
        user_id: str | None | msgspec.UnsetType = msgspec.UNSET,
        agent_id: str | None = None,
        extraction: bool | None = None,
        response_id: str | None = None,
    ) -> list[Observed]:
        """Store messages, in order; keyword search finds them on return, embeddings follow. No model is called.

        With `session_id` all belong to that session; with `channel_id` alone sessions are cut where the channel was
        silent. `user_id` applies to messages that do not name one. `extraction` says whether facts are extracted
        (None: as configured). Nothing is stored if one of the messages is invalid, or has the id of a stored one with
        another text; more than the configured batch size are stored in several steps.

        Raises:
            InvalidInput: names the message by its place, the field and the fix.
            Conflict: an id already names another text, or the session was cut out of a channel.
            NotFound: the session is another's.
        """
        ready = await self.prepare(
            messages, session_id=session_id, channel_id=channel_id, user_id=user_id, agent_id=agent_id,
            extraction=extraction, response_id=response_id,
        )  # fmt: skip
        steps = list(ready.steps(self._core.config.sessions.batch_size))
        if len(steps) > 1:
            await self._read(ready.check)
        observed: list[Observed] = []
        for some in steps:
            observed += some.observed(await changed(self._core, self._tenant, some.write, some.woken))
        return observed

    async def prepare(self, messages: MessageInput, **place: Unpack[Around]) -> Ready:
        """Return what `observe` stores, checked and counted, to be written in a transaction with something else. Errors
        as `observe`, except those that only the transaction can detect."""
        must_write(self.subject)
        new = self._taken(messages)
        asked = MessageTarget(self.subject, place)
        self._may_own(asked.user_id, "user_id")
        for i, message in enumerate(new):
            self._may_own(message.user_id, f"[{i}].user_id" if len(new) > 1 else "user_id")
        now, bounds, settings = now_micros(), self._core.ingest.bounds, self._core.config.sessions
        if Sessions._counting and sum(len(message.content) for message in new) <= SHORT:
            pending = sayings(new, asked, now, settings, bounds)
        else:
            pending = await self._core.threads.run(sayings, new, asked, now, settings, bounds)
            Sessions._counting = True
        return Ready(self._core, asked, pending, now)

    _counting = False
    """True once the tokenizer is loaded, which takes about a second, once a process."""

    def _taken(self, messages: Any) -> list[NewMessage]:
        if isinstance(messages, str | NewMessage | Mapping):
            messages = [messages]
        given = list(messages)
        items = [
            convert(
                {"content": item} if isinstance(item, str) else item,
                NewMessage,
                f"[{i}]" if len(given) > 1 else "",
            )
            for i, item in enumerate(given)
        ]
        if not items:
            raise InvalidInput("messages", "must hold at least one message")
        if len(items) > self._core.max_batch:
            raise InvalidInput("messages", f"holds {len(items)}, at most {self._core.max_batch} go together")
        return items

    def _may_own(self, user: Any, where: str) -> None:
        free = sees_all(self.subject) or not isinstance(user, str) or user == self.subject.user_id
        if not free:
            raise Forbidden(f"{where}: this key writes as {self.subject.user_id!r} or for nobody (null)")

    # --- looking -----------------------------------------------------------------------------------

    async def get(self, id: str) -> Session:
        """Return one session.

        Raises:
            NotFound: no such session for this subject.
        """
        return to_session(await self._read(lambda c: records.session_seen(c, self.subject, id)))

    async def list(
        self,
        *,
        channel_id: str | None = None,
        status: str | Sequence[str] | None = None,
        participant: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: Limit = 20,
        after: str | None = None,
        before: str | None = None,
        order: Order = "desc",
    ) -> SessionPage:
        """Return one page of sessions in the order in which they began, newest first unless `order` is `asc`: those of
        a channel, of a status, with a participant, that reach beyond `since` and began before `until`.

        Raises:
            InvalidInput: a field is wrong, or the cursor names no session.
        """
        check_page(limit, order, MAX_PAGE)
        _one_way(after, before)
        wanted = Wanted(
            channel_id=channel_id,
            status=_statuses(status),
            participant=participant,
            since=self._bound(since, "since"),
            until=self._bound(until, "until"),
        )

        def read(c: Connection) -> SessionPage:
            cursor = None
            if (named := after or before) is not None:
                cursor = records.session_of(c, self._tenant, named)
                cursor = cursor if cursor is not None and records.sees(self.subject, cursor) else None
                records.check_cursor("after" if after else "before", named, cursor)
            rows, more = records.session_page(
                c, self.subject, wanted,
                limit=limit, cursor=cursor, backwards=before is not None, descending=order == "desc",
            )  # fmt: skip
            return SessionPage(
                data=[to_session(row) for row in rows],
                first_id=rows[0].id if rows else None,
                last_id=rows[-1].id if rows else None,
                has_more=more,
            )

        return await self._read(read)

    async def messages(
        self,
        id: str,
        *,
        limit: Limit = 20,
        after: str | None = None,
        before: str | None = None,
        order: Order = "asc",
    ) -> MessagePage:
        """Return one page of the messages of a session, in order of time.

        Raises:
            NotFound: no such session for this subject.
            InvalidInput: a field is wrong, or the cursor names no message of it.
        """
        check_page(limit, order, MAX_PAGE)
        _one_way(after, before)

        def read(c: Connection) -> MessagePage:
            records.session_seen(c, self.subject, id)
            cursor = None
            if (named := after or before) is not None:
                cursor = records.messages_by_id(c, self._tenant, [named]).get(named)
                cursor = cursor if cursor is not None and cursor.session_id == id else None
                records.check_cursor("after" if after else "before", named, cursor)
            rows, more = records.message_page(
                c, self._tenant, id,
                limit=limit, cursor=cursor, backwards=before is not None, descending=order == "desc",
            )  # fmt: skip
            return MessagePage(
                data=[to_message(row) for row in rows],
                first_id=rows[0].id if rows else None,
                last_id=rows[-1].id if rows else None,
                has_more=more,
            )

        return await self._read(read)

    # --- changing ----------------------------------------------------------------------------------

    async def close(self, id: str) -> Session:
        """Close a session that is open; its summary and facts are made soon after.

        Raises:
            NotFound: no such session for this subject.
        """
        must_write(self.subject)
        closer = SessionCloser(self._core)

        def work(w: Writing) -> tuple[SessionRow, set[str], bool]:
            now = w.draw(1) and now_micros()
            row = records.session_seen(w.c, self.subject, id)
            kinds = closer.close(w.c, [row], now)
            return records.session_seen(w.c, self.subject, id), kinds, row.status == "open"

        row, _, closed = await self._change(work, lambda done: done[1])
        if closed:
            note(self._core, "closed", self._tenant, [id])
        return to_session(row)

    async def summarize(self, id: str) -> Session:
        """Make the summary of a session now, also of an open or a small one.

        Raises:
            NotFound: no such session for this subject.
            ModelError: the model gave no summary.
            SpendingLimit: the tenant has reached its daily limit.
        """
        must_write(self.subject)
        row = await self._read(lambda c: records.session_seen(c, self.subject, id))
        await SummaryJobs(self._core).one(self._tenant, row)
        return await self.get(id)

    async def save_summary(
        self, id: str, summary: str | NewSummary, **fields: Unpack[SummaryFields]
    ) -> Session:
        """Store a summary that the caller made, also of an open session; it replaces an earlier one, and is found,
        replaced and forgotten as any other.

        Raises:
            NotFound: no such session for this subject.
            Forbidden: it is another user's.
            InvalidInput: names the field.
            Conflict: the session has another number of messages than `message_count`.
        """
        must_write(self.subject)
        raw = summary if isinstance(summary, NewSummary) else merged("summary", summary, {**fields})
        new = convert(msgspec.to_builtins(raw), NewSummary)
        digest = digest_given(new, self._core.ingest.bounds)
        find = partial(records.own_session, subject=self.subject, id_=id)
        await SummaryJobs(self._core).store(self._tenant, find, digest, new.message_count)
        return await self.get(id)

    async def fail_summary(self, id: str, reason: Annotated[str, some_text(10_000)]) -> Session:
        """Record that the caller could not make the summary of a session, and why (500 characters are stored): it is
        `failed`, unless it is open. If sessions are summarized here, that is tried after a while.

        Raises:
            NotFound: no such session for this subject.
            Forbidden: it is another user's.
            InvalidInput: the reason is empty.
        """
        must_write(self.subject)
        check_text(reason, "reason", self._core.ingest.bounds)
        find = partial(records.own_session, subject=self.subject, id_=id)
        await SummaryJobs(self._core).fail(self._tenant, find, reason)
        return await self.get(id)

    async def update_message(self, session_id: str, id: str, content: Content) -> Message:
        """Give a message another text: log, memory, summary and facts follow.

        Raises:
            NotFound: no such message in the session, or no such session, for this subject.
            Forbidden: it is another user's.
            InvalidInput: the text cannot be stored.
        """
        must_write(self.subject)
        settings, bounds = self._core.config.sessions, self._core.ingest.bounds
        embedder, subject = self._core.embedder, self.subject

        def work(w: Writing) -> MessageRow:
            w.draw(1)
            row = records.own_message(w.c, subject, session_id, id)
            return rewritten(w, row, content, subject, settings, bounds, embedder)

        row = await self._change(work, _summaries)
        await self._core.jobs.finish(self._tenant, RELEASE_JOB)
        return to_message(row)

    async def delete_message(self, session_id: str, id: str) -> None:
        """Delete a message from the log and the indexes, with everything derived from it.

        Raises:
            NotFound: no such message in the session, or no such session, for this subject.
            Forbidden: it is another user's.
        """
        must_write(self.subject)

        def work(w: Writing) -> None:
            w.draw(1)
            w.by_request = True
            row = records.own_message(w.c, self.subject, session_id, id)
            remove_messages(w, [row])

        await self._change(work, _summaries)
        await self._core.jobs.finish(self._tenant, RELEASE_JOB)

    async def delete(self, id: str) -> None:
        """Delete a session: its messages, their memories, its summary, and everything derived from them.

        Raises:
            NotFound: no such session for this subject.
            Forbidden: another user has spoken in it.
        """
        must_write(self.subject)

        def check(c: Connection) -> None:
            records.erasable(self.subject, records.session_seen(c, self.subject, id))

        def work(w: Writing) -> bool:
            w.draw(1)
            # A merge that runs meanwhile stops: messages not moved yet stay in the other session.
            w.c.run("stop_job_of", [now_micros(), self._tenant, JOIN_JOB, id])
            row = records.session_of(w.c, self._tenant, id)
            if row is None:
                return False
            records.erasable(self.subject, row)
            w.by_request = True
            remove_messages(w, records.messages_of(w.c, self._tenant, id, ROWS))
            return True

        await self._read(check)
        await self._core.jobs.finish(self._tenant, JOIN_JOB)
        await self._read(check)
        while await self._change(work, _summaries):
            await self._core.jobs.finish(self._tenant, RELEASE_JOB)

    # --- on the way --------------------------------------------------------------------------------

    def _bound(self, value: datetime | date | str | None, name: str) -> int | None:
        """Return a bound in microseconds; of a day without a zone its beginning, or as `until` its end."""
        if value is None:
            return None
        moment = value if isinstance(value, datetime) else moment_in(value, name)
        if not isinstance(moment, datetime):
            raise InvalidInput(name, MOMENT)
        return time_of(in_zone(moment, self.subject.time_zone), name)

    async def _read(self, work: Callable[[Connection], T]) -> T:
        return await self._core.threads.run(self._core.store.db.read, work, self._tenant)

    async def _change(self, work: Callable[[Writing], T], woken: Callable[[T], Iterable[str]]) -> T:
        """Return the result of a transaction; jobs that it enqueued are woken even if the caller is cancelled
        meanwhile."""
        return await changed(self._core, self._tenant, work, woken)


def _summaries(done: object) -> tuple[str]:
    """Return the kinds of jobs to wake after messages changed: sessions are summarized again."""
    return (SUMMARIZE_JOB,)


def _statuses(status: Any) -> Sequence[str]:
    named = [status] if isinstance(status, str) else list(status or ())
    for name in named:
        if name not in STATUSES:
            raise InvalidInput("status", f"{name!r} is none; use {', '.join(STATUSES)}")
    return named


def _one_way(after: str | None, before: str | None) -> None:
    if after is not None and before is not None:
        raise InvalidInput("before", "goes without `after`: a page is read in one direction")
