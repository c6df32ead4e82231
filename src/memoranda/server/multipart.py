"""Streaming multipart forms with a file: the file is passed on in pieces and never in memory as a whole."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from email.message import Message
from email.utils import collapse_rfc2231_value
from typing import Any, Generic, Literal, TypeVar

import msgspec
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser
from starlette.types import Receive

from memoranda.errors import InvalidInput, MemorandaError
from memoranda.server.errors import ClientGone, Refused
from memoranda.server.load import announced, drain, next_piece

T = TypeVar("T")
PIECE = 1 << 18
"""Bytes of a file that are passed on together."""
BESIDE = 1 << 20
"""Bytes of a body beside its file: fields, headers and boundaries, together."""
MOST_PARTS = 512
MOST_HEADERS = 16 << 10
DEEPEST = 4
_NAME = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_PLAIN = ("", "7bit", "8bit", "binary")


class FilePart(msgspec.Struct, frozen=True):
    """A file that is being received. `filename` is the last part of the path it was sent with. An error raised while
    `pieces` are read (the client disconnected, the body is cut or too large) means that the file is incomplete."""

    filename: str
    media_type: str | None
    pieces: AsyncIterator[bytes]


class FilledForm(msgspec.Struct, Generic[T], frozen=True):
    """The fields in order, as they were sent (see `unflatten`), and the result of `on_file`."""

    fields: list[tuple[str, str]]
    file: T


async def read_form(
    receive: Receive,
    headers: Mapping[str, str],
    on_file: Callable[[FilePart], Awaitable[T]],
    *,
    undo: Callable[[T], Awaitable[None]],
    file: str = "file",
    most: int,
    field_most: int = 1 << 16,
    patience: float,
) -> FilledForm[T]:
    """The form in a multipart body. `on_file` is called when the part named `file` begins and reads its pieces, of at
    most `most` bytes together; if the form is refused later, its result is passed to `undo`. The body must keep
    arriving, with no pause of more than `patience` seconds.

    Raises:
        Refused: 413 too large, 408 too slow, 415 no form or compressed, 400 the body is cut or is no form.
        InvalidInput: names the field: no file, two of them, one without a name, a part where none belongs.
        ClientGone: the client hung up.
    """
    boundary = _boundary(headers)
    if announced(headers) > most + BESIDE:
        await drain(receive, headers)
        raise _too_large(file, most)
    body = _Body(receive, boundary, most + 2 * BESIDE, patience)
    reading = _Reading(body, on_file, file, most, field_most)
    try:
        return await reading.run()
    except BaseException as exc:
        for taken in reading.taken:
            await undo(taken)
        if isinstance(exc, MemorandaError) and not body.over:
            await drain(receive, headers)
        raise


def unflatten(fields: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Fields as nested values: `a[b]=1` is `{"a": {"b": "1"}}`, `a[]=1` an element of the list `a`. Values stay text.

    Raises:
        InvalidInput: a name is malformed or deeper than 4, or a field is there twice.
    """
    tree: dict[str, Any] = {}
    for name, value in fields:
        *above, last = _keys(name)
        listed = last == ""
        if listed:
            *above, last = above
        at = tree
        for key in above:
            at = at.setdefault(key, {})
            if not isinstance(at, dict):
                raise InvalidInput(
                    name, f"goes into `{key}`, which is there as a value, too; send one of them"
                )
        if not listed and last in at:
            raise InvalidInput(name, "is there twice; it takes one value")
        if not listed:
            at[last] = value
            continue
        values = at.setdefault(last, [])
        if not isinstance(values, list):
            raise InvalidInput(name, "is there as a value, too; send one of them")
        values.append(value)
    return tree


def _keys(name: str) -> list[str]:
    """`a`, `b`, `c` of `a[b][c]`; the last may be empty."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise InvalidInput(name, "is no name of a field; write `name`, `name[key]` or `name[]`")
    keys = [match[1], *match[2].removeprefix("[").removesuffix("]").split("][")] if match[2] else [match[1]]
    if "" in keys[:-1]:
        raise InvalidInput(name, "has `[]` before its end; send such a value as JSON")
    if len(keys) - (keys[-1] == "") > DEEPEST:
        raise InvalidInput(name, f"is nested deeper than {DEEPEST}")
    return keys


class _Body:
    """A body's parts as events: `begin` with the part's headers, `data`, `end`."""

    def __init__(self, receive: Receive, boundary: bytes, most: int, patience: float) -> None:
        self.over = False
        """True once the whole body has arrived, or the client is gone."""
        self._receive = receive
        self._bytes_left = most
        self._patience = patience
        self._events: deque[tuple[Literal["begin", "data", "end"], Any]] = deque()
        self._headers: list[tuple[bytearray, bytearray]] = []
        self._header_bytes = 0
        self._whole = False
        self._parser = _parser(boundary, self)

    async def next(self) -> tuple[Literal["begin", "data", "end"], Any] | None:
        """The next event; None at the end.

        Raises:
            Refused: 400 the body is cut or is no form, 408 silence, 413 it has no end.
            ClientGone: the client hung up.
        """
        while not self._events:
            if self.over:
                if not self._whole:
                    raise _malformed("it ends before its last boundary; send it again")
                return None
            await self._more()
        return self._events.popleft()

    async def _more(self) -> None:
        try:
            async with asyncio.timeout(self._patience):
                piece, more = await next_piece(self._receive)
        except ClientGone:
            self.over = True
            raise
        except TimeoutError as exc:
            self.over = True
            says = f"nothing arrived for {self._patience:g} seconds"
            raise Refused(408, "request_timeout", says) from exc
        self.over = not more
        self._bytes_left -= len(piece)
        if self._bytes_left < 0:
            raise Refused(
                413, "request_too_large", "the body is larger than its file and fields may be", "body"
            )
        try:
            self._parser.write(piece)
        except FormParserError as exc:
            raise _malformed(str(exc)) from exc

    def on_part_begin(self) -> None:
        self._headers = []
        self._header_bytes = 0

    def on_header_begin(self) -> None:
        self._headers.append((bytearray(), bytearray()))

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._add_header(0, data[start:end])

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._add_header(1, data[start:end])

    def _add_header(self, side: int, piece: bytes) -> None:
        self._header_bytes += len(piece)
        if self._header_bytes > MOST_HEADERS:
            raise FormParserError(f"a part has more than {MOST_HEADERS} bytes of headers")
        self._headers[-1][side].extend(piece)

    def on_headers_finished(self) -> None:
        self._events.append(("begin", {_text(name).lower(): _text(value) for name, value in self._headers}))

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._events.append(("data", data[start:end]))

    def on_part_end(self) -> None:
        self._events.append(("end", None))

    def on_end(self) -> None:
        self._whole = True


def _parser(boundary: bytes, body: _Body) -> MultipartParser:
    names = (
        "on_part_begin", "on_header_begin", "on_header_field", "on_header_value", "on_headers_finished",
        "on_part_data", "on_part_end", "on_end",
    )  # fmt: skip
    calls: Any = {name: getattr(body, name) for name in names}
    try:
        return MultipartParser(boundary, calls)
    except FormParserError as exc:
        raise _malformed(str(exc)) from exc


class _Reading(Generic[T]):
    """The state of one form while it is read."""

    def __init__(
        self, body: _Body, on_file: Callable[[FilePart], Awaitable[T]], file: str, most: int, field_most: int
    ) -> None:
        self.taken: list[T] = []
        self._body = body
        self._on_file = on_file
        self._file = file
        self._most = most
        self._field_most = field_most
        self._fields: list[tuple[str, str]] = []
        self._beside = 0
        self._parts = 0
        self._in_file = False

    async def run(self) -> FilledForm[T]:
        while (event := await self._body.next()) is not None:
            self._parts += 1
            if self._parts > MOST_PARTS:
                raise Refused(413, "request_too_large", f"the form has more than {MOST_PARTS} fields", "body")
            await self._part(event[1])
        if not self.taken:
            raise InvalidInput(self._file, "is required, as a file with a name")
        return FilledForm(self._fields, self.taken[0])

    async def _part(self, headers: dict[str, str]) -> None:
        disposition = _parameters(headers.get("content-disposition", ""))
        name = disposition.get("name", "")
        if not name:
            raise _malformed("a part has no name; its Content-Disposition must have one")
        if headers.get("content-transfer-encoding", "").strip().lower() not in _PLAIN:
            raise InvalidInput(name, "is encoded for transfer; send its bytes as they are")
        self._count(len(name), name)
        if "filename" in disposition:
            await self._take_file(name, disposition["filename"], headers.get("content-type"))
        else:
            self._fields.append((name, await self._field(name)))

    async def _take_file(self, name: str, path: str, media_type: str | None) -> None:
        if name != self._file:
            raise InvalidInput(name, f"is a file; the file of this form is `{self._file}`")
        if self.taken:
            raise InvalidInput(name, "is there twice; send one file")
        filename = last_name(path)
        if not filename:
            raise InvalidInput(name, "has no file name; send one")
        media = _CONTROL.sub("", media_type or "").strip() or None
        self._in_file = True
        self.taken.append(await self._on_file(FilePart(filename, media, self._pieces())))
        while self._in_file:  # skip pieces that `on_file` did not read
            await self._file_data()

    async def _pieces(self) -> AsyncIterator[bytes]:
        """The file in pieces of about `PIECE` bytes."""
        buffer: list[bytes] = []
        size = total = 0
        while self._in_file:
            data = await self._file_data()
            buffer.append(data)
            size += len(data)
            total += len(data)
            if total > self._most:
                raise _too_large(self._file, self._most)
            if size >= PIECE:
                yield b"".join(buffer)
                buffer, size = [], 0
        if size:
            yield b"".join(buffer)

    async def _file_data(self) -> bytes:
        """The next bytes of the file; none at its end."""
        data = await self._data()
        self._in_file = data is not None
        return data or b""

    async def _field(self, name: str) -> str:
        pieces: list[bytes] = []
        size = 0
        while (data := await self._data()) is not None:
            self._count(len(data), name)
            pieces.append(data)
            size += len(data)
            if size > self._field_most:
                raise Refused(413, "request_too_large", f"is longer than {self._field_most} bytes", name)
        try:
            return b"".join(pieces).decode()
        except UnicodeDecodeError as exc:
            raise InvalidInput(name, f"is not UTF-8 at byte {exc.start}") from exc

    async def _data(self) -> bytes | None:
        """The next bytes of the part; None at its end."""
        event = await self._body.next()
        return event[1] if event is not None and event[0] == "data" else None

    def _count(self, size: int, name: str) -> None:
        self._beside += size
        if self._beside > BESIDE:
            raise Refused(
                413, "request_too_large", f"all fields together have more than {BESIDE} bytes", name
            )


def last_name(path: str) -> str:
    """A file's name without the folders before it, nor what cannot be shown; empty when nothing is left."""
    name = _CONTROL.sub("", path).replace("\\", "/").rpartition("/")[2].strip()
    return "" if name in (".", "..") else name


def _boundary(headers: Mapping[str, str]) -> bytes:
    if headers.get("content-encoding", "identity") != "identity":
        raise Refused(415, "unsupported_encoding", "send the body as it is, without Content-Encoding")
    sent = headers.get("content-type", "")
    if sent.partition(";")[0].strip().lower() != "multipart/form-data":
        says = f"send the file as multipart/form-data, not as {sent.partition(';')[0] or 'nothing'}"
        raise Refused(415, "unsupported_media_type", says, "Content-Type")
    try:
        boundary = _parameters(sent).get("boundary", "").rstrip().encode("latin-1")
    except UnicodeEncodeError as exc:
        raise _malformed("its boundary is not ASCII") from exc
    if not boundary:
        raise Refused(
            400, "invalid_multipart", "names no boundary; let your HTTP library set it", "Content-Type"
        )
    return boundary


def _parameters(value: str) -> dict[str, str]:
    """The parameters of a header by name, `name*` of RFC 5987 and RFC 2231 before a plain `name`."""
    message = Message()
    message["content-type"] = value
    try:
        parameters: Any = message.get_params(failobj=[], header="content-type")
        return {name.lower(): _value(content) for name, content in parameters[1:]}
    except (ValueError, TypeError) as exc:
        raise _malformed(f"a header cannot be read: {value[:100]}") from exc


def _value(value: str | tuple[str | None, str | None, str]) -> str:
    """A quote is `%22` in what browsers and HTTP libraries send."""
    return collapse_rfc2231_value(value) if isinstance(value, tuple) else value.replace("%22", '"')


def _text(raw: bytearray) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _malformed(says: str) -> Refused:
    return Refused(400, "invalid_multipart", f"the body is no form: {says}", "body")


def _too_large(file: str, most: int) -> Refused:
    says = f"the file is larger than {most} bytes; send less, or raise the limit"
    return Refused(413, "file_too_large", says, file)
