"""The interface of document readers: bytes of some format in, text with its structure out.

A reader is a function `read(path, limits) -> Document`. It runs in a process of its own (see `pool`), so it may hang,
crash or exhaust memory without harm; it raises `Unreadable` for known problems.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from memoranda.errors import MemorandaError

Code = Literal["unsupported_file", "invalid_file", "server_error"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What reading one file may cost: wall-clock seconds, bytes of memory over an idle worker, pages (slides, sheets),
    parts (members of an archive, attachments), bytes unpacked, and characters of text."""

    seconds: float = 60.0
    memory_bytes: int = 1 << 30
    pages: int = 5_000
    parts: int = 10_000
    unpacked_bytes: int = 512 << 20
    characters: int = 50_000_000
    hidden_text: bool = False
    """Whether text that a reader of the document does not see, or that is struck out, is read, too."""


class Heading(msgspec.Struct, frozen=True):
    """A heading of the text: where it stands (character offset), its level (1 is the highest), its words."""

    start: int
    level: int
    text: str


class Page(msgspec.Struct, frozen=True):
    """Where page (slide, sheet) `number`, counted from 1, begins in the text."""

    start: int
    number: int


class Document(msgspec.Struct, kw_only=True):
    """The text of a file. `headings` and `pages` are in order of `start`; both may be empty. `notes` say in a sentence
    each what was left out or guessed (an encoding, a damaged page)."""

    text: str
    media_type: str
    title: str | None = None
    pages: list[Page] = []
    headings: list[Heading] = []
    notes: list[str] = []


class Unreadable(MemorandaError):
    """The file has no text for us: `unsupported_file` for an unknown format, `invalid_file` for one that is damaged,
    locked, too large or empty of text, `server_error` if the reader itself failed. The message says what is wrong and
    what to do."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code: Code = code


Reader: TypeAlias = Callable[[Path, Limits], Document]


class PageImage(msgspec.Struct, kw_only=True, tag="page_image"):
    """Page number `page` of a document as a PNG file, empty if there is no such page. `pages` is how many the document
    has, `marked` how many of the passages are on the page, whole or in part."""

    image: bytes
    page: int
    pages: int
    marked: int
