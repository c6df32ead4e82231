"""Text of mails (.eml, .mhtml) and mailboxes (.mbox): sender, receivers, text, and the text of attachments."""

from __future__ import annotations

import binascii
import io
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email import message_from_binary_file, message_from_bytes
from email.message import Message
from itertools import chain
from pathlib import Path
from typing import IO, Any, TypeAlias

from memoranda.readers import detect, formats, html
from memoranda.readers.base import Document, Heading, Limits, Unreadable
from memoranda.readers.body import LINE, Body
from memoranda.readers.plain import clean
from memoranda.text.decoding import NotText, decoded

MEDIA_TYPE = detect.MAIL
DEEPEST = 3
"""The most levels of nested mails."""
DEEPEST_PART = 50
STUB = 1 / 3
"""A plain part with a smaller share of the HTML's words is a stub ("Please view this in a browser")."""

Part: TypeAlias = "Message[str, str]"

_FIELDS = ("From", "To", "Cc", "Date")
_TEXTS = ("text/plain", "text/html")
_ENDS = {"text/html": ".html", "text/markdown": ".md", "text/csv": ".csv", "application/json": ".json"}
_LOOKS = re.compile(r"text/css|(?:text|application)/(?:x-)?javascript|font/.*|application/(?:x-)?font.*")
"""Parts of a page for styling and scripting."""
_WORDS = re.compile(r"\w+")
_FOLD = re.compile(r"\r?\n[ \t]*")
_ENVELOPE = re.compile(rb"From \S.*\b\d\d?:\d\d\b")
"""The line before each mail of a mailbox: its sender and the time."""
_WORD = re.compile(r"=\?(?P<charset>[^?\s]{1,60})\?(?P<how>[bBqQ])\?(?P<word>[^?\r\n]*)\?=(?:\s+(?==\?))?")


def read(path: Path, limits: Limits) -> Document:
    """Return sender, receivers and date, a line each; the text, and under a heading of its name the text of each
    attachment. The subject is the title. Unreadable attachments are named. Each mail of a mailbox stands under its
    subject."""
    if path.stat().st_size > limits.unpacked_bytes:
        raise Unreadable("invalid_file", f"is larger than {limits.unpacked_bytes >> 20:,} MB; split it")
    body = Body(limits)
    try:
        with path.open("rb") as file:
            title = _fill(body, _messages(_in_bytes(file)), limits)
    except RecursionError as exc:
        raise Unreadable("invalid_file", "has too many parts inside each other") from exc
    return body.document(MEDIA_TYPE, title)


def _fill(body: Body, messages: Iterator[Part], limits: Limits) -> str:
    """Add the only mail and return its subject, or add the mails of a mailbox, each under a heading."""
    first, second = next(messages), next(messages, None)
    if second is None:
        return Mail(body, limits).add(first, 1)
    for message in chain((first, second), messages):
        body.heading(_subject(message) or "(no subject)", 1)
        Mail(body, limits, level=1).add(message, 1)
    return ""


def _messages(file: IO[bytes]) -> Iterator[Part]:
    """Yield the mail, or those of a mailbox: an empty line and an envelope line begin the next one."""
    if not _ENVELOPE.match(file.readline(1_000)):
        file.seek(0)
        yield message_from_binary_file(file)
        return
    lines: list[bytes] = []
    for line in file:
        if lines and not lines[-1].strip() and _ENVELOPE.match(line):
            yield message_from_bytes(b"".join(lines))
            lines = []
        else:
            lines.append(line)
    yield message_from_bytes(b"".join(lines))


def header_words(value: str) -> str:
    """Return the value of a header field on one line, its encoded words and its bytes that are not ASCII decoded."""
    text = _FOLD.sub(" ", value)
    if not text.isascii():
        text = _text_of(text.encode("utf-8", "surrogateescape")) or text.encode("utf-8", "replace").decode(
            "utf-8"
        )
    return _WORD.sub(_word, text).strip()


def _word(match: re.Match[str]) -> str:
    try:
        if match["how"] in "bB":
            data = binascii.a2b_base64(match["word"].encode() + b"==")
        else:
            data = binascii.a2b_qp(match["word"].encode(), header=True)
    except binascii.Error:
        return match[0]
    return _text_of(data, match["charset"].partition("*")[0]) or (match[0] if match["word"] else "")


def _text_of(data: bytes, charset: str | None = None) -> str:
    try:
        return decoded(data, charset).text
    except NotText:
        return ""


def _in_bytes(file: IO[bytes]) -> IO[bytes]:
    """Return the bytes of the file; those of UTF-16 are converted to UTF-8, as the parser needs it."""
    head = file.read(1_024)
    file.seek(0)
    if b"\0" not in head and not head.startswith(b"\xef\xbb\xbf"):
        return file
    try:
        return io.BytesIO(decoded(file.read()).text.encode("utf-8", "replace"))
    except NotText as exc:
        raise Unreadable("invalid_file", f"is no mail: {exc}") from exc


class Mail:
    """Reads a mail, and the mails inside it, into a `Body`. `level` is that of the heading above it, 0 without one."""

    def __init__(self, body: Body, limits: Limits, level: int = 0) -> None:
        self._body = body
        self._limits = limits
        self._level = level
        self._parts = 0

    def add(self, message: Part, depth: int) -> str:
        """Add a message and return its subject. `depth` is its level among nested mails."""
        for name in _FIELDS:
            if value := ", ".join(_field(message, name)):
                self._body.add(f"{name}: {value}", LINE)
        attached: list[Part] = []
        self._words(message, attached, 0)
        for part in attached:
            self._attachment(part, depth)
        return _subject(message)

    def _words(self, part: Part, attached: list[Part], depth: int) -> bool:
        """Add the text of a part and of its children; `attached` gets the rest. Return True if there was text."""
        self._count(depth)
        kind = part.get_content_type()
        inner = _inner(part) if kind != MEDIA_TYPE else []
        if inner and kind == "multipart/alternative":
            return self._best(inner, attached, depth + 1)
        if inner:
            said = [self._words(child, attached, depth + 1) for child in inner]
            return any(said)
        whole = kind in _TEXTS or kind.startswith("multipart/")
        if (
            whole
            and part.get_content_disposition() != "attachment"
            and not (depth and _parameter(part.get_filename))
        ):
            return self._text(part, kind)
        if not _LOOKS.fullmatch(kind):
            attached.append(part)
        return False

    def _best(self, parts: list[Part], attached: list[Part], depth: int) -> bool:
        """Add the text of one of several alternative parts: the plain one if it has text and is no stub, else the last
        with text."""
        plain = [part for part in parts if part.get_content_type() == "text/plain"]
        richer = [part for part in parts if part.get_content_type() != "text/plain"]
        stub = bool(plain) and _is_stub(self._vocabulary(plain), self._vocabulary(richer))
        said = False
        for part in [*reversed(richer), *plain] if stub else [*plain, *reversed(richer)]:
            if said and part.get_content_type() in _TEXTS:
                continue
            if said and part.is_multipart():
                self._beside(part, attached, depth)
                continue
            said = self._words(part, attached, depth) or said
        return said

    def _vocabulary(self, parts: list[Part]) -> set[str]:
        """Return the different words of the plain and HTML texts of these parts."""
        page = Body(self._limits)
        for leaf in (leaf for part in parts for leaf in part.walk()):
            if leaf.get_content_type() in _TEXTS:
                with suppress(NotText, Unreadable):
                    _write(leaf, page)
        return set() if page.empty else set(_WORDS.findall(page.document(MEDIA_TYPE).text.casefold()))

    def _beside(self, part: Part, attached: list[Part], depth: int) -> None:
        """Collect the attachments of a part whose text is known already."""
        self._count(depth)
        for child in _inner(part):
            if child.get_content_type() == MEDIA_TYPE or not (
                child.is_multipart() or child.get_content_type() in _TEXTS
            ):
                self._words(child, attached, depth + 1)
            elif child.is_multipart():
                self._beside(child, attached, depth + 1)

    def _text(self, part: Part, kind: str) -> bool:
        """Add the text of one part; return True if it has any."""
        page = Body(self._limits)
        try:
            _write(part, page)
        except NotText as exc:
            self._body.notes.append(f"a part of the mail is left out: it is {exc}")
            return False
        if page.empty:
            return False
        self._place(page.document(kind))
        return True

    def _place(self, document: Document) -> None:
        """Add the text of a part with its headings, below that of the part itself."""
        start = self._body.put(document.text) or 0
        self._body.headings.extend(
            Heading(start + heading.start, self._level + heading.level + 1, heading.text)
            for heading in document.headings
        )
        self._body.notes.extend(document.notes)

    def _attachment(self, part: Part, depth: int) -> None:
        """Add the text of an attachment under a heading of its name, or a line with its name and type."""
        name = header_words(_parameter(part.get_filename) or "")
        try:
            if part.get_content_type() == MEDIA_TYPE and (inner := _inner(part)):
                self._mail(inner[0], name, depth)
                return
            data = _content(part)
            called = name or f"attachment{_ENDS.get(part.get_content_type(), '')}"
            with stored(data) as path:
                kind = detect.media_type(path, called)
                document = None if kind == MEDIA_TYPE else formats.read(path, called, self._limits)
            if document is None:
                for message in _messages(io.BytesIO(data)):
                    self._mail(message, name, depth)
                return
        except Unreadable as exc:
            self._name(name, str(exc).partition(";")[0])
        except MemoryError:
            raise
        except Exception as exc:  # however a parser fails on one attachment, the mail is read
            self._name(name, f"broke its reader ({type(exc).__name__})")
        else:
            self._body.heading(name or "Attachment", self._level + 1)
            self._place(document)

    def _mail(self, message: Part, name: str, depth: int) -> None:
        """Add an attached mail."""
        called = _subject(message) or name
        if depth == DEEPEST:
            self._name(called, f"is more than {DEEPEST} mails deep")
            return
        self._body.heading(called or "Attachment", self._level + 1)
        self.add(message, depth + 1)

    def _name(self, name: str, reason: str) -> None:
        self._body.add(f"Attachment: {name or 'without a name'} ({reason})", LINE)

    def _count(self, depth: int) -> None:
        self._parts += 1
        if self._parts > self._limits.parts:
            raise Unreadable("invalid_file", f"has more than {self._limits.parts:,} parts")
        if depth > DEEPEST_PART:
            raise Unreadable("invalid_file", "has too many parts inside each other")


def _is_stub(plain: set[str], rich: set[str]) -> bool:
    """Return True if the plain words are fewer than the rich ones, and few of these."""
    return len(plain) < len(rich) and len(plain & rich) < STUB * len(rich)


def _write(part: Part, page: Body) -> None:
    """Write the text of one part. Raises `NotText`."""
    data, charset = _content(part), _parameter(part.get_content_charset)
    if part.get_content_type() == "text/html":
        html.fill(page, data, charset)
    else:
        page.add(clean(decoded(data, charset), page.notes))


def _inner(part: Part) -> list[Part]:
    """Return the parts of a part; empty if it has text."""
    payload: Any = part.get_payload() if part.is_multipart() else []
    return payload if isinstance(payload, list) else []


def _parameter(read: Callable[[], str | None]) -> str | None:
    """Return a parameter of a header field; None if it is given twice, or damaged."""
    try:
        return read()
    except (TypeError, ValueError, LookupError):  # the library sorts the numbers of its pieces
        return None


def _content(part: Part) -> bytes:
    """Return the bytes of a part, decoded as far as possible."""
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _field(message: Part, name: str) -> list[str]:
    """Return the values of a header field that are not empty."""
    raw = (str(value) for key, value in message.raw_items() if key.lower() == name.lower())
    return [words for words in map(header_words, raw) if words]


def _subject(message: Part) -> str:
    return next(iter(_field(message, "Subject")), "")


@contextmanager
def stored(data: bytes) -> Iterator[Path]:
    """Yield a file with these bytes, in memory if the system supports that: a killed reader leaves none."""
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("attachment"), "wb") as file:
            file.write(data)
            file.flush()
            yield Path(f"/proc/self/fd/{file.fileno()}")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "attachment")
        path.write_bytes(data)
        yield path
