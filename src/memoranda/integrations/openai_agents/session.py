"""The history of a conversation of the OpenAI Agents SDK in a product."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar, cast
from uuid import uuid4

from agents import SessionSettings, TResponseInputItem
from agents.memory.session import SessionABC
from agents.memory.session_settings import coerce_session_settings, resolve_session_limit

from memoranda.errors import InvalidInput
from memoranda.integrations.products import Product, memories_of
from memoranda.integrations.records import Record, Records

KIND = "item"
P = ParamSpec("P")
T = TypeVar("T")


class MemorandaSession(SessionABC):
    """The items of one conversation in a folder or on a server of Memoranda: messages, tool calls, their results and
    reasoning, each stored as the JSON that the SDK passes.

    Items are in the scope `session:SESSION_ID`, whose forgetting erases them, and no search finds them. They belong to
    the tenant of the product's subject; `name` keeps the sessions of several applications in one tenant apart. The
    methods run in worker threads; a write that is cancelled is finished first.
    """

    def __init__(
        self,
        product: Product,
        session_id: str,
        *,
        name: str = "openai-agents",
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = coerce_session_settings(session_settings or SessionSettings())
        self._records = Records(memories_of(product), name)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The last `limit` items, oldest first; all of them if neither it nor the session's settings name a limit.
        A limit below 0 is none."""
        return await asyncio.to_thread(self._read, resolve_session_limit(limit, self.session_settings))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Adds items at the end. Up to 250 items of at most 40 KB each, within `limits.max_batch` and
        `server.max_body_bytes`, are added together or not at all.

        Raises:
            InvalidInput: an item is no JSON; nothing was added.
        """
        await _finished(self._records.add, [self._record(item, i) for i, item in enumerate(items)])

    async def pop_item(self) -> TResponseInputItem | None:
        """Removes the last item and returns it; None if there is none. Concurrent callers get different items."""
        return await _finished(self._pop)

    async def clear_session(self) -> None:
        """Erases all items for good."""
        await _finished(self._records.clear, self.session_id)

    def _record(self, item: TResponseInputItem, place: int) -> Record:
        try:
            value = json.dumps(item, ensure_ascii=False).encode("utf-8", "surrogatepass")
        except (TypeError, ValueError) as exc:
            raise InvalidInput(f"items[{place}]", f"must be plain JSON: {exc}") from exc
        return Record(self._records.id_of(uuid4().hex), self.session_id, KIND, value)

    def _read(self, limit: int | None) -> list[TResponseInputItem]:
        if limit == 0:
            return []
        wanted = None if limit is None or limit < 0 else limit
        values = map(self._records.value_of, self._last(wanted))
        return [_item(value) for value in values if value is not None][::-1]

    def _pop(self) -> TResponseInputItem | None:
        while True:
            last = next(self._last(1), None)
            if last is None:
                return None
            value = self._records.value_of(last)
            if value is not None and self._records.delete(last):  # no other caller has popped it
                return _item(value)

    def _last(self, limit: int | None) -> Iterator[Record]:
        return self._records.listed(KIND, self.session_id, "", limit=limit)


def _item(value: bytes) -> TResponseInputItem:
    return cast(TResponseInputItem, json.loads(value.decode("utf-8", "surrogatepass")))


async def _finished(write: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a write in a worker thread. If the caller is cancelled, the write finishes first."""
    task = asyncio.ensure_future(asyncio.to_thread(write, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
