"""Pieces out of the bytes of an answer, streamed or whole. No I/O."""

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
    """The server says in its answer that it failed. `status` is what it names as one, 0 where it names none."""

    def __init__(self, says: str, status: int) -> None:
        super().__init__(says)
        self.status = status


class Stream:
    """An answer as server-sent events. `done` once its last event came; `heard` counts events, signs of life apart."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.done = False
        self.heard = 0
        self._events = Events()

    def feed(self, data: bytes) -> Iterator[Piece]:
        """The pieces that end in `data`, those before a failure as well.

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
        """The pieces that are left at the end of the bytes.

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
        """Nothing yet.

        Raises:
            Nonsense: it does not end.
        """
        self.heard += len(data)
        self._parts.append(data)
        if self.heard > MAX_ANSWER_BYTES:
            raise Nonsense("it does not end")
        return ()

    def end(self) -> Iterable[Piece]:
        """The pieces of the answer.

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
    """Refuses a chunk that tells of a failure.

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
    """The chunk in an event; or one in each of its lines, where a server leaves out the blank lines between events."""
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
