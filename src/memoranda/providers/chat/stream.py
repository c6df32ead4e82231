"""Parse the bytes of an answer, streamed or whole, into pieces. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from memoranda.providers.chat.base import Piece
from memoranda.providers.chat.chunks import Chunk, decoded
from memoranda.providers.chat.reading import Nonsense, Reading
from memoranda.providers.chat.sse import Events, TooLong

MAX_ANSWER_BYTES = 64 << 20
_DONE = b"[DONE]"


class Failed(Exception):
    """The server reports a failure in its answer. `status` is the status that it names, 0 if it names none."""

    def __init__(self, says: str, status: int) -> None:
        super().__init__(says)
        self.status = status


class Stream:
    """An answer as server-sent events. `done` after its last event; `heard` counts events, without keep-alives."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.done = False
        self.heard = 0
        self._events = Events()

    def feed(self, data: bytes) -> Iterator[Piece]:
        """Yield the pieces that end in `data`, including those before a failure.

        Raises:
            Nonsense: an event is no chunk.
            Failed: the server says so.
        """
        try:
            events = self._events.feed(data)
        except TooLong as exc:
            raise Nonsense("a line of it does not end") from exc
        for event in events:
            self.heard += 1
            if event[:6] == _DONE:
                self.done = True
                break
            for chunk in _chunks(event):
                check(chunk)
                yield from self.reading.feed(chunk)

    def end(self) -> Iterator[Piece]:
        """Yield the remaining pieces at the end of the bytes.

        Raises:
            Nonsense: nothing that came was a chunk, or as `feed`.
        """
        if not self.done:
            yield from self.feed(b"\n\n")
        if not self.heard:
            raise Nonsense("it holds no events")
        if self.done and not self.reading.answered:
            raise Nonsense("it has no choices")


class Whole:
    """An answer in one piece of JSON, with the interface of `Stream`."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.done = False
        self.heard = 0
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> Iterable[Piece]:
        """Collect bytes; returns no pieces yet.

        Raises:
            Nonsense: it does not end.
        """
        self.heard += len(data)
        self._parts.append(data)
        if self.heard > MAX_ANSWER_BYTES:
            raise Nonsense("it does not end")
        return ()

    def end(self) -> Iterable[Piece]:
        """Return the pieces of the answer.

        Raises:
            Nonsense: it is no answer.
            Failed: the server says so.
        """
        chunk = _chunk(b"".join(self._parts))
        check(chunk)
        pieces = self.reading.feed(chunk)
        if not self.reading.answered:
            raise Nonsense("it has no choices")
        self.done = True
        return pieces


def check(chunk: Chunk) -> None:
    """Check that a chunk reports no failure.

    Raises:
        Failed: it does.
    """
    error: Any = chunk.error
    if not error and chunk.choices is None and chunk.usage is None:
        error = chunk.message or chunk.detail
    if error:
        inner = error if isinstance(error, dict) else {"message": error}
        status = next((code for code in (inner.get("code"), inner.get("status")) if isinstance(code, int)), 0)
        raise Failed(
            str(inner.get("message") or inner.get("detail") or inner.get("code") or "no reason"), status
        )


def _chunks(event: bytes) -> list[Chunk]:
    """Return the chunk in an event, or one per line if a server omits the blank lines between events."""
    try:
        return [decoded(event)]
    except ValueError as exc:
        lines = [line for line in event.split(b"\n") if line.strip() and not line.startswith(_DONE)]
        if len(lines) < 2:
            raise Nonsense(_odd(event)) from exc
    return [_chunk(line) for line in lines]


def _chunk(data: bytes) -> Chunk:
    try:
        return decoded(data)
    except ValueError as exc:
        raise Nonsense(_odd(data)) from exc


def _odd(data: bytes) -> str:
    begins = " ".join(data[:60].decode("utf-8", "replace").split())
    return f"it holds {begins!r}, which is no chat completion"
