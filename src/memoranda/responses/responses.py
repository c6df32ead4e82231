"""The operations on responses of one subject: create, get, list, stream, cancel, delete."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Unpack, get_args

import msgspec

from memoranda.errors import InvalidInput, NotFound
from memoranda.facts.provenance import cut
from memoranda.responses.engine import Engine
from memoranda.responses.events import Event, replayed, visible
from memoranda.responses.records import ResponseEntry, ResponseRow, listed, response_of, response_seen
from memoranda.responses.runs import Run
from memoranda.responses.values import (
    Exchange,
    Item,
    RequestFields,
    Response,
    ResponseRequest,
    ResponseUsage,
    Status,
    shown,
)
from memoranda.sessions.editing import remove_messages
from memoranda.sessions.records import MessageRow
from memoranda.store.access import must_write
from memoranda.store.paging import Listed, Paging, as_page, check_page, leave_place
from memoranda.store.transaction import Writing
from memoranda.types import Subject
from memoranda.validation import convert

MAX_PAGE = 100
Batches = AsyncIterator[list[Event]]
"""Events, in batches as they arrived."""
STATUSES: tuple[str, ...] = get_args(Status)


class Compaction(msgspec.Struct, kw_only=True):
    """A conversation made short: items to send in its place, and what making it cost."""

    id: str
    created_at: int
    output: list[Item]
    usage: ResponseUsage


class Responses:
    """Responses as one subject sees them."""

    def __init__(self, engine: Engine, subject: Subject) -> None:
        self._engine = engine
        self.subject = subject

    async def create(
        self, request: ResponseRequest | str | None = None, **fields: Unpack[RequestFields]
    ) -> Response:
        """Answers, and waits for the end; with `background` only until the work is queued. `request` may be the input
        alone, with the fields of `ResponseRequest` as keywords.

        Raises:
            InvalidInput: a field is wrong; nothing was stored.
            NotFound: a store, an agent or a conversation is not there.
            ModelError: the model failed before any output; the response is stored as `failed`.
        """
        run = await self.start(_request(request, fields))
        if run.response.background:
            return run.shown()
        run.mute()
        response = await run.done()
        if run.failure is not None and not response.output:
            raise run.failure
        return run.shown()

    async def start(self, request: ResponseRequest, exchange: Exchange | None = None) -> Run:
        """Start a response and return its run, which yields events as they happen. With an `exchange` it is not stored,
        and `request` has the whole conversation.

        Raises:
            InvalidInput: a field is wrong; nothing was begun.
            NotFound: a store, an agent or a conversation is not there.
        """
        must_write(self.subject)
        return await self._engine.start(self.subject, request, exchange)

    async def stream(
        self, request: ResponseRequest | str | None = None, **fields: Unpack[RequestFields]
    ) -> AsyncIterator[Event]:
        """Answers, event by event as `docs/concepts/responses.md` lists them. Closing the iterator early stops the
        model, too, unless the response runs in the background.

        Raises:
            InvalidInput: a field is wrong; nothing was begun.
            NotFound: a store, an agent or a conversation is not there.
        """
        run = await self.start(_request(request, fields))
        background = run.response.background
        batches = await self.events(run.response.id) if background else aiter(run)
        try:
            async for batch in batches:
                for event in batch:
                    yield event
        finally:
            if not background:
                run.abandon()

    async def get(self, id: str, include: Sequence[str] = ()) -> Response:
        """A stored response as it stands; `include` as for creating one.

        Raises:
            NotFound: no such response for this subject.
        """
        return _shown(await self._row(id), include)

    async def list(
        self,
        *,
        limit: int = 20,
        after: str | None = None,
        before: str | None = None,
        order: str = "desc",
        status: Status | None = None,
    ) -> Listed[ResponseEntry]:
        """One page of the stored responses, newest first unless `order` is `asc`; of one `status` when it is named.

        Raises:
            InvalidInput: a field is wrong, or the cursor names no response of this subject.
        """
        check_page(limit, order, MAX_PAGE)
        if status is not None and status not in STATUSES:
            raise InvalidInput("status", f"must be one of {', '.join(STATUSES)}")
        core, subject = self._engine.core, self.subject
        return await core.threads.run(
            core.store.db.read,
            lambda c: listed(c, subject, Paging(limit, after, before, order == "desc"), status),
            subject.tenant_id,
        )

    async def delete(self, id: str) -> None:
        """Deletes a response; one that is under way is stopped. What came after it in a chain goes on without it and
        what was before it; summaries that cover it are deleted, too, and its messages leave the message log and memory.
        Facts that were learned from it stay.

        Raises:
            NotFound: no such response for this subject.
        """
        must_write(self.subject)
        row = await self._row(id)
        if row.live:
            await self._engine.background.cancel(row)
        tenant = self.subject.tenant_id

        def shorten(w: Writing) -> bool:
            w.draw(1)
            return self._cut(w, id)[1]

        while await self._engine.core.transact(tenant, shorten):
            pass

        def work(w: Writing) -> int:
            w.by_request = True
            w.note([("responses", id)])
            w.c.run("drop_later_summaries", [tenant, row.session_id, row.seq])
            self._forget(w, id)
            leave_place(w.c, self.subject, "responses", id, row.seq)
            return w.c.run("drop_response", [tenant, id])

        if not await self._engine.core.transact(tenant, work):
            raise NotFound(f"Response with id '{id}' not found.")

    def _forget(self, w: Writing, id: str) -> None:
        """Deletes the messages of a response from the log; facts that were learned from it stay."""
        w.draw(1)
        messages, _ = self._cut(w, id)
        remove_messages(w, messages)

    def _cut(self, w: Writing, id: str) -> tuple[Sequence[MessageRow], bool]:
        """Detach facts from the messages of a response, as many as one transaction changes. Return the messages, and
        whether more facts are left."""
        messages = [MessageRow._make(row) for row in w.c.all("messages_of_response", [w.tenant, id])]
        return messages, cut(w, [row.id for row in messages], id)

    async def cancel(self, id: str) -> Response:
        """Ends a background response; one that has ended stays as it is.

        Raises:
            NotFound: no such response for this subject.
            InvalidInput: it is not a background response.
        """
        must_write(self.subject)
        row = await self._row(id)
        if not row.background:
            raise InvalidInput("", "Cannot cancel a synchronous response.")
        if row.live:
            await self._engine.background.cancel(row)
        return await self.get(id)

    async def events(self, id: str, after: int = -1, include: Sequence[str] = ()) -> Batches:
        """The events of a response whose number is above `after`. For a background response the stored events, then new
        ones as they come, in batches, up to the last one. For any other response the events are rebuilt from the
        stored response: each text in one piece, and so with numbers of their own.

        Raises:
            NotFound: no such response for this subject.
        """
        row = await self._row(id)
        if row.background:
            return self._engine.background.following(row, after)
        return _at_once(replayed(response_of(row), after, include))

    async def input_items(
        self,
        id: str,
        *,
        limit: int = 20,
        after: str | None = None,
        order: str = "desc",
        include: Sequence[str] = (),
    ) -> Listed[Item]:
        """A page of the input items of a response.

        Raises:
            NotFound: no such response for this subject.
            InvalidInput: a field is wrong, or the cursor names no item.
        """
        check_page(limit, order, MAX_PAGE)
        items = (await self._row(id)).input_items
        if order == "desc":
            items.reverse()
        ids = [item["id"] for item in items]
        if after is not None and after not in ids:
            raise InvalidInput(
                "after", f"{after!r} is no item of this response; begin again without a cursor"
            )
        first = 0 if after is None else ids.index(after) + 1
        page = items[first : first + limit]
        results = "file_search_call.results" in include
        seen = [visible(item, results) for item in page]
        return as_page(seen, [item["id"] for item in page], first + limit < len(items))

    async def input_tokens(
        self, request: ResponseRequest | str | None = None, **fields: Unpack[RequestFields]
    ) -> int:
        """The number of tokens that the model would read, history, tools and instructions included.

        Raises:
            InvalidInput: a field is wrong.
        """
        return await self._engine.input_tokens(self.subject, _request(request, fields))

    async def compact(
        self, request: ResponseRequest | str | None = None, **fields: Unpack[RequestFields]
    ) -> Compaction:
        """Compact the conversation of a request, to continue without sending all of it: its `output` is the input of
        another request, or its id the `previous_response_id`, unless `store` is false.

        Raises:
            InvalidInput: a field is wrong.
        """
        must_write(self.subject)
        response = await self._engine.compact(self.subject, _request(request, fields))
        return Compaction(
            id=response.id,
            created_at=response.created_at,
            output=list(map(shown, response.output)),
            usage=response.usage,
        )

    async def _row(self, id_: str) -> ResponseRow:
        core, subject = self._engine.core, self.subject
        return await core.threads.run(
            core.store.db.read, lambda c: response_seen(c, subject, id_), subject.tenant_id
        )


def _request(request: ResponseRequest | str | None, fields: Mapping[str, Any]) -> ResponseRequest:
    if isinstance(request, ResponseRequest):
        if fields:
            raise TypeError("give either a ResponseRequest or fields, not both")
        return request
    if request is not None and "input" in fields:
        raise TypeError("give the input once, first or as `input`")
    return convert(fields if request is None else {"input": request, **fields}, ResponseRequest)


async def _at_once(events: list[Event]) -> AsyncIterator[list[Event]]:
    if events:
        yield events


def _shown(row: ResponseRow, include: Sequence[str]) -> Response:
    response = response_of(row)
    results = "file_search_call.results" in include
    response.output = [visible(item, results) for item in response.output]
    return response
