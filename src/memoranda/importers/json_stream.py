"""JSON files larger than memory: the elements of an array or the lines of a file, one at a time.

Streaming parsers such as ijson end at the first damaged element, refuse control characters in strings, and change half
of a surrogate pair. Here the elements are only separated, and each is decoded on its own: the others are still read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import msgspec

MAX_ITEM = 64 << 20
"""Bytes of one element or line; a longer one is not read into memory."""
MAX_DOCUMENT = 256 << 20
"""Bytes of a file that is read as a whole."""
CHUNK = 1 << 20
_OUTSIDE = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["{}\[\]]', re.DOTALL)
_INSIDE = re.compile(rb'\\.|"', re.DOTALL)
_SCALAR = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^\s,"]+', re.DOTALL)
"""What may stand between the objects of an array."""


class Record(NamedTuple):
    """An element or a line: its number from 1, and its value or its problem."""

    number: int
    value: Any
    problem: str | None = None


def decoded(raw: bytes) -> Any:
    """The value of a JSON text. Half surrogate pairs, which some exporters write, are accepted.

    Raises:
        ValueError: it is not JSON, or nested too deeply.
    """
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        try:
            return json.loads(raw, strict=False)
        except RecursionError as exc:
            raise ValueError("nested too deeply") from exc
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc


def elements(file: IO[bytes], limit: int = MAX_ITEM) -> Iterator[Record]:
    """The objects of a JSON array, read piece by piece. An object that is damaged has a problem; the others follow."""
    splitter = _Splitter(limit)
    number = 0
    while chunk := file.read(CHUNK):
        for raw in splitter.feed(chunk):
            number += 1
            yield _record(number, raw)
    if splitter.problem is not None:
        yield Record(number + 1, None, splitter.problem)


def lines(file: IO[bytes], limit: int = MAX_ITEM) -> Iterator[Record]:
    """The JSON values of a file with one on each line; empty lines are left out."""
    number = 0
    while raw := file.readline(limit + 1):
        number += 1
        if len(raw) > limit:
            while raw and not raw.endswith(b"\n"):
                raw = file.readline(CHUNK)
            yield Record(number, None, f"is longer than {limit >> 20} MiB")
        elif raw.strip():
            yield _record(number, raw.removeprefix(b"\xef\xbb\xbf"))


def document(file: IO[bytes], limit: int = MAX_DOCUMENT) -> Record:
    """The JSON value of a whole file."""
    raw = file.read(limit + 1)
    if len(raw) > limit:
        return Record(1, None, f"is larger than {limit >> 20} MiB")
    return _record(1, raw.removeprefix(b"\xef\xbb\xbf"))


def _record(number: int, raw: bytes | str) -> Record:
    if isinstance(raw, str):
        return Record(number, None, raw)
    try:
        return Record(number, decoded(raw))
    except ValueError as exc:
        return Record(number, None, f"is not valid JSON: {exc}")


class _Splitter:
    """Finds the objects of an array in chunks of bytes. Each byte is scanned once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._tail = b""
        self._parts: list[bytes] = []
        self._size = 0
        self._depth = 0
        self._in_string = False
        self._ended = False

    @property
    def problem(self) -> str | None:
        """The problem at the end of the file, once all chunks were fed."""
        if self._depth > 1:
            return "ends in the middle: the file is cut short"
        return None if self._ended else "is missing: the file ends before its list does"

    def feed(self, chunk: bytes) -> Iterator[bytes | str]:
        """The objects that end in this chunk; a text is the problem of an element."""
        data = self._tail + chunk
        start = 0  # of the object, or of what stands between objects
        at = 0
        while (bracket := self._structure(data, at)) is not None:
            token, at = bracket
            if token in b"{[":
                self._depth += 1
                if self._depth == 2:
                    yield from self._stray(data[start : at - 1])
                    start = at - 1
                elif self._depth == 1:
                    start = at
            else:
                self._depth = max(0, self._depth - 1)
                if self._depth == 1:
                    yield self._object(data[start:at])
                    start = at
                elif self._depth == 0:
                    yield from self._stray(data[start : at - 1])
                    self._ended = True
                    start = at
        end = len(data) - len(self._tail)
        if self._depth:
            self._keep(data[start:end])

    def _structure(self, data: bytes, at: int) -> tuple[bytes, int] | None:
        """The next bracket outside of strings, and where it ends; None when the data is used up."""
        self._tail = b""
        while True:
            match = (_INSIDE if self._in_string else _OUTSIDE).search(data, at)
            if match is None:
                if self._in_string and at < len(data) and data.endswith(b"\\"):
                    self._tail = b"\\"
                return None
            at = match.end()
            if self._in_string:
                self._in_string = match[0] != b'"'
            elif match[0] == b'"':
                self._in_string = True
            elif len(match[0]) == 1:
                return match[0], at

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._limit:
            self._parts.clear()
        else:
            self._parts.append(part)

    def _object(self, last: bytes) -> bytes | str:
        self._keep(last)
        whole, size = b"".join(self._parts), self._size
        self._parts, self._size = [], 0
        return whole if size <= self._limit else f"is larger than {self._limit >> 20} MiB"

    def _stray(self, last: bytes) -> Iterator[str]:
        """The problem of each value between two objects."""
        between = self._object(last)
        values = [between] if isinstance(between, str) else _SCALAR.findall(between)
        yield from ("is not an object" for _ in values)
