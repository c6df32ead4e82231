"""Responses as rows: writing, reading, listing, and walking back along a chain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from memoranda.clock import now_micros
from memoranda.errors import NotFound
from memoranda.responses.values import LIVE, Item, Response, ResponseUsage, Status, last_question
from memoranda.storage.sql.base import Connection
from memoranda.store.access import owns, sees_all
from memoranda.store.ids import nameable
from memoranda.store.paging import Listed, Paging, as_page, left_place, page
from memoranda.types import Subject

SECOND = 1_000_000
OWN_COLUMNS = ("id", "created_at", "status", "output")
"""Fields of a response that its row has columns for."""
UNANSWERED = frozenset({"mcp_list_tools", "reasoning", "file_search_call"})
"""Types of output that are no answer, and wait for none."""
_encode = msgspec.json.Encoder().encode
_items = msgspec.json.Decoder(list[dict[str, Any]])


class ResponseRow(NamedTuple):
    """One row of `responses`. `body`, `input`, `output` and `summary` are JSON."""

    tenant_id: str
    id: str
    seq: int
    user_id: str | None
    session_id: str
    previous_id: str | None
    conversation_id: str | None
    agent_id: str | None
    status: str
    background: int
    body: str
    input: str
    output: str
    summary: str | None
    summarized_to: str | None
    created_at: int

    @property
    def input_items(self) -> list[Item]:
        """The input of the model, private keys included."""
        return _items.decode(self.input)

    @property
    def output_items(self) -> list[Item]:
        """The output of the model, private keys included."""
        return _items.decode(self.output)

    @property
    def live(self) -> bool:
        """True until it has ended."""
        return self.status in LIVE


def encoded(value: Any) -> str:
    """JSON as stored in rows."""
    return _encode(value).decode()


def body_of(response: Response) -> str:
    """The response as JSON, without the fields that have a column."""
    fields = msgspec.to_builtins(response)
    return encoded({name: value for name, value in fields.items() if name not in OWN_COLUMNS})


def response_of(row: ResponseRow) -> Response:
    """The response of a row, its items with their private keys."""
    fields = msgspec.json.decode(row.body)
    summary = {} if row.summary is None else {"conversation_summary": msgspec.json.decode(row.summary)}
    fields["extensions"] = fields.get("extensions", {}) | summary
    own = {
        "id": row.id,
        "created_at": row.created_at // SECOND,
        "status": row.status,
        "output": row.output_items,
    }
    return msgspec.convert(fields | own, Response)


class NewResponse(msgspec.Struct, kw_only=True):
    """A response to be stored: what is shown of it, what was said, and where it belongs."""

    subject: Subject
    response: Response
    input: Sequence[Item]
    session_id: str


def add(c: Connection, new: NewResponse) -> bool:
    """Store a response; unless it is live, it joins its conversation. Return True."""
    response, tenant = new.response, new.subject.tenant_id
    conversation = response.conversation["id"] if response.conversation else None
    c.run(
        "add_response",
        [
            tenant,
            response.id,
            draw(c),
            new.subject.user_id,
            new.session_id,
            response.previous_response_id,
            conversation,
            response.agent_id,
            response.status,
            int(response.background),
            body_of(response),
            encoded(new.input),
            encoded(response.output),
            response.created_at * SECOND,
        ],
    )
    if response.status not in LIVE:
        join_conversation(c, new)
    return True


def end(c: Connection, new: NewResponse) -> bool:
    """Write the end of a live response. Return False if it had ended, or is deleted."""
    response = new.response
    values = [response.status, body_of(response), encoded(response.output)]
    if not c.run("end_response", [*values, new.subject.tenant_id, response.id]):
        return False
    join_conversation(c, new)
    return True


def join_conversation(c: Connection, new: NewResponse) -> None:
    """Add input and output to the response's conversation, if it still exists. A response that failed or was cancelled
    before an answer or a call adds nothing: its input would be in the conversation again for each retry."""
    response, tenant = new.response, new.subject.tenant_id
    if response.status in ("failed", "cancelled") and all(
        item["type"] in UNANSWERED for item in response.output
    ):
        return
    if not response.conversation or c.one("has_conversation", [tenant, response.conversation["id"]]) is None:
        return
    add_items(c, tenant, response.conversation["id"], [*new.input, *response.output], response.id)


def add_items(
    c: Connection, tenant: str, conversation: str, items: Sequence[Item], response_id: str | None = None
) -> None:
    """Adds items at the end of a conversation; one whose id is in it already stays where it is."""
    if not items:
        return
    first, now = draw(c, len(items)) - len(items) + 1, now_micros()
    c.many(
        "add_item",
        [
            (tenant, conversation, seq, item["id"], response_id, encoded(item), now)
            for seq, item in enumerate(items, first)
        ],
    )


def draw(c: Connection, count: int = 1) -> int:
    """The last of `count` new numbers of the order of rows."""
    row = c.one("draw_revs", [count])
    assert row is not None
    return int(row[0])


def response_seen(c: Connection, subject: Subject, id_: str) -> ResponseRow:
    """A response that the subject may see.

    Raises:
        NotFound: there is none for this subject.
    """
    row = c.one("get_response", [subject.tenant_id, id_]) if nameable(id_) else None
    response = None if row is None else ResponseRow._make(row)
    if response is None or not owns(subject, response.user_id):
        raise NotFound(f"Response with id '{id_}' not found.")
    return response


def chain(c: Connection, tenant: str, id_: str) -> list[ResponseRow]:
    """The responses that lead to `id_`, itself included, newest first. The walk ends before the response that the
    newest summary on the way reaches, at a link that is missing, and where a circle closes."""
    if not nameable(id_):
        return []
    return [ResponseRow._make(row) for row in c.all("chain", [tenant, id_])]


QUESTION = 300
"""Characters of a question that a list shows."""
UNCALLED = frozenset({"message", "reasoning", "compaction", "mcp_list_tools", "mcp_approval_request"})
"""Types of items in an output that are no calls of a tool."""


class ResponseEntry(msgspec.Struct, kw_only=True):
    """A response in a list. `question` is how the user's last message begins, at most 300 characters; `tool_calls`
    counts calls by the name of the tool, `failed_tool_calls` those that failed. `timings` are seconds by stage, as in
    `extensions.timings` of the response; null until it has ended. `cost` is
    `extensions.cost`; null without prices. Times are whole seconds since 1970."""

    id: str
    created_at: int
    completed_at: int | None
    status: Status
    background: bool
    model: str
    user_id: str | None
    agent_id: str | None
    conversation_id: str | None
    previous_response_id: str | None
    question: str
    tool_calls: dict[str, int]
    failed_tool_calls: int
    usage: ResponseUsage
    timings: dict[str, float] | None
    cost: dict[str, Any] | None
    answered_by: str | None
    degraded: list[str]
    error: dict[str, Any] | None


class _Row(NamedTuple):
    """The columns of `responses` that an entry is made from. `body`, `input` and `output` are JSON."""

    seq: int
    id: str
    user_id: str | None
    previous_id: str | None
    conversation_id: str | None
    agent_id: str | None
    status: Status
    background: int
    body: str
    input: str
    output: str
    created_at: int


class _Body(msgspec.Struct):
    """What an entry reads of the body of a response."""

    model: str
    completed_at: int | None = None
    usage: ResponseUsage = msgspec.field(default_factory=ResponseUsage)
    error: dict[str, Any] | None = None
    extensions: dict[str, Any] = {}


COLUMNS = ", ".join(f"r.{name}" for name in _Row._fields)
_body = msgspec.json.Decoder(_Body)


def listed(c: Connection, subject: Subject, request: Paging, status: str | None) -> Listed[ResponseEntry]:
    """One page of the responses that a subject may see.

    Raises:
        InvalidInput: a cursor names none of them.
    """
    where, params = _seen(subject)

    def seq_of(id_: str) -> int | None:
        sql = f"SELECT r.seq FROM responses r WHERE {where} AND r.id = ?"
        rows = c.select(sql, [*params, id_]) if nameable(id_) else []
        return int(rows[0][0]) if rows else left_place(c, subject, "responses", id_)

    if status is not None:
        where, params = f"{where} AND r.status = ?", [*params, status]
    select = f"SELECT {COLUMNS} FROM responses r WHERE {where}"
    rows, more = page(c, select, params, "r.seq", seq_of, request)
    entries = [_entry(_Row._make(row)) for row in rows]
    return as_page(entries, [entry.id for entry in entries], more)


def _seen(subject: Subject) -> tuple[str, list[Any]]:
    """The responses that a subject may see, as SQL: all of the tenant's, or its own and those of no user."""
    if sees_all(subject):
        return "r.tenant_id = ?", [subject.tenant_id]
    return "r.tenant_id = ? AND (r.user_id IS NULL OR r.user_id = ?)", [subject.tenant_id, subject.user_id]


def _entry(row: _Row) -> ResponseEntry:
    body, output = _body.decode(row.body), _items.decode(row.output)
    calls = [item for item in output if item["type"] not in UNCALLED]
    return ResponseEntry(
        id=row.id,
        created_at=row.created_at // SECOND,
        completed_at=body.completed_at,
        status=row.status,
        background=bool(row.background),
        model=body.model,
        user_id=row.user_id,
        agent_id=row.agent_id,
        conversation_id=row.conversation_id,
        previous_response_id=row.previous_id,
        question=last_question(_items.decode(row.input))[:QUESTION],
        tool_calls=dict(Counter(map(_tool, calls))),
        failed_tool_calls=sum(item.get("status") == "failed" for item in calls),
        usage=body.usage,
        timings=body.extensions.get("timings"),
        cost=body.extensions.get("cost"),
        answered_by=body.extensions.get("answered_by"),
        degraded=body.extensions.get("degraded", []),
        error=body.error,
    )


def _tool(call: Item) -> str:
    """The name of the tool that a call is of: a function's own, else its type's."""
    return str(call.get("name") or call["type"].removesuffix("_call"))
