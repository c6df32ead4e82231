"""The list of stored responses: what was asked, how it ended, and what it cost."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import msgspec

from memoranda.responses.items import last_question
from memoranda.responses.records import SECOND
from memoranda.responses.values import Item, ResponseUsage, Status
from memoranda.storage.sql.base import Connection
from memoranda.store.access import sees_all
from memoranda.store.ids import nameable
from memoranda.store.paging import Listed, as_page, cursors, left_place, page
from memoranda.types import Subject

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
_items = msgspec.json.Decoder(list[dict[str, Any]])


def listed(
    c: Connection,
    subject: Subject,
    *,
    status: str | None,
    limit: int,
    after: str | None,
    before: str | None,
    order: str,
) -> Listed[ResponseEntry]:
    """One page of the responses that a subject may see.

    Raises:
        InvalidInput: a cursor names none of them.
    """
    where, params = _seen(subject)

    def seq_of(id_: str) -> int | None:
        sql = f"SELECT r.seq FROM responses r WHERE {where} AND r.id = ?"
        rows = c.select(sql, [*params, id_]) if nameable(id_) else []
        return int(rows[0][0]) if rows else left_place(c, subject, "responses", id_)

    at, until = cursors(after, before, seq_of)
    if status is not None:
        where, params = f"{where} AND r.status = ?", [*params, status]
    rows, more = page(
        c, f"SELECT {COLUMNS} FROM responses r WHERE {where}", params, "r.seq",
        limit=limit, after=at, before=until, descending=order == "desc",
    )  # fmt: skip
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
