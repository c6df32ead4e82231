"""Responses at a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Unpack

import msgspec

from memoranda.client.remote import Remote
from memoranda.client.wire import error_of, query_of
from memoranda.responses.events import Event
from memoranda.responses.records import ResponseEntry
from memoranda.responses.responses import Responses
from memoranda.responses.values import RequestFields, Response, ResponseRequest, Status
from memoranda.store.operations import segment
from memoranda.store.paging import Listed
from memoranda.validation import merged

AT = "/v1/responses"
STATUS = 500
"""Of an error in the middle of a stream, which has a code and no status."""


class RemoteResponses(Remote, Responses):
    """The responses of a server; see `responses.Responses`."""

    async def create(
        self, request: ResponseRequest | str | None = None, **fields: Unpack[RequestFields]
    ) -> Response:
        """See `Responses.create`."""
        body = _body(request, fields)
        return msgspec.json.decode(await self._wire.call("POST", AT, body=body), type=Response)

    async def stream(
        self, request: ResponseRequest | str | None = None, **fields: Unpack[RequestFields]
    ) -> AsyncIterator[Event]:
        """See `Responses.stream`; closing the iterator closes the connection, which stops the model."""
        body = {**_body(request, fields), "stream": True}
        rest = b""
        async with aclosing(self._wire.pieces("POST", AT, body=body)) as pieces:
            async for piece in pieces:
                *frames, rest = (rest + piece).split(b"\n\n")
                for event in (event for frame in frames for event in _events(frame)):
                    yield event

    async def get(self, id: str, include: Sequence[str] = ()) -> Response:
        """See `Responses.get`."""
        return msgspec.json.decode(
            await self._wire.call("GET", _path(id), query=query_of({"include": [*include] or None})),
            type=Response,
        )

    async def list(
        self,
        *,
        limit: int = 20,
        after: str | None = None,
        before: str | None = None,
        order: str = "desc",
        status: Status | None = None,
    ) -> Listed[ResponseEntry]:
        """See `Responses.list`."""
        asked = {"limit": limit, "after": after, "before": before, "order": order, "status": status}
        answer = await self._wire.call("GET", AT, query=query_of(asked))
        return msgspec.json.decode(answer, type=Listed[ResponseEntry])

    async def cancel(self, id: str) -> Response:
        """See `Responses.cancel`."""
        return msgspec.json.decode(await self._wire.call("POST", f"{_path(id)}/cancel"), type=Response)

    async def delete(self, id: str) -> None:
        """See `Responses.delete`."""
        await self._wire.call("DELETE", _path(id))


def _body(request: ResponseRequest | str | None, fields: Any) -> dict[str, Any]:
    """The fields that are set; a request may be given whole, or as its input."""
    if isinstance(request, ResponseRequest):
        if fields:
            raise TypeError("give either a ResponseRequest or fields, not both")
        fields = msgspec.structs.asdict(request)
    elif request is not None:
        fields = merged("input", request, fields)
    return {name: value for name, value in fields.items() if value is not None}


def _events(frame: bytes) -> Iterator[Event]:
    """The event of one frame; comments, which keep the connection alive, are none.

    Raises:
        MemorandaError: the stream ended with an error.
    """
    for line in frame.splitlines():
        if not line.startswith(b"data: "):
            continue
        event: Event = msgspec.json.decode(line.removeprefix(b"data: "))
        if event["type"] == "error":
            raise error_of(STATUS, msgspec.json.encode({"error": event}))
        yield event


def _path(id: str) -> str:
    return f"{AT}/{segment(id)}"
