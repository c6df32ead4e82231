"""Responses for callers without an event loop."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Unpack

from memoranda.concurrency.portal import Runner, blocking
from memoranda.responses.events import Event
from memoranda.responses.responses import Responses
from memoranda.responses.values import RequestFields, ResponseRequest


class BlockingResponses:
    """`responses.responses.Responses`, method for method."""

    def __init__(self, inner: Responses, portal: Runner) -> None:
        self.inner = inner
        self.portal = portal

    create = blocking(Responses.create)
    get = blocking(Responses.get)
    list = blocking(Responses.list)
    delete = blocking(Responses.delete)
    cancel = blocking(Responses.cancel)
    input_items = blocking(Responses.input_items)
    input_tokens = blocking(Responses.input_tokens)
    compact = blocking(Responses.compact)

    def stream(
        self, request: ResponseRequest | str | None = None, **fields: Unpack[RequestFields]
    ) -> Generator[Event, None, None]:
        """Yield the events of a response, see `Responses.stream`."""
        yield from self.portal.following(self.inner.stream(request, **fields))

    def events(self, id: str, after: int = -1) -> Iterator[Event]:
        """Yield the events of a background response, see `Responses.events`."""
        for batch in self.portal.following(self.portal.call(self.inner.events(id, after))):
            yield from batch
