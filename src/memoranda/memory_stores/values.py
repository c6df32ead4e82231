"""The values of memory stores, in the shapes of Anthropic's API, and the rules for their fields."""

from __future__ import annotations

import unicodedata
from datetime import datetime
from typing import Annotated, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta

from memoranda.errors import Conflict, InvalidInput
from memoranda.types import NO_NUL, any_text, says

T = TypeVar("T")
MAX_CONTENT = 102_400
"""Bytes of UTF-8 of one memory."""
MAX_PATH = 1_024
"""Bytes of UTF-8 of a path."""
MAX_SEGMENTS = 20
MAX_PAIRS = 16
"""Pairs of metadata of a store."""
MAX_PAGE = 100
FULL_PAGE = 20
"""Items of a page that has contents."""
UNPRINTABLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Categories of characters that no path has: control, format, surrogate, line and paragraph separators."""

View = Literal["basic", "full"]
Operation = Literal["created", "modified", "deleted"]
StoreName = Annotated[
    str,
    Meta(
        pattern=r"^[^\x00-\x1f\x7f-\x9f]{1,255}$",
        extra=says("must be 1 to 255 characters, without control characters"),
    ),
]
Description = Annotated[str, any_text(1_024)]
Key = Annotated[str, Meta(pattern=r"^[^\x00]{1,64}$", extra=says("must be 1 to 64 characters, without NUL"))]
Value = Annotated[str, any_text(512)]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", extra=says("must be 64 lowercase hexadecimal digits"))]
_SEGMENT = r"(?!\.{1,2}(/|$))[^/\x00-\x1f\x7f-\x9f]+"
Path = Annotated[
    str,
    Meta(
        description="`/` and 1 to 20 segments joined by `/`: at most 1,024 bytes of UTF-8 in normalization form C, no"
        " segment empty, `.` or `..`, no control or format characters and no line separators.",
        examples=["/notes/todo.md"],
        extra_json_schema={"pattern": f"^(/{_SEGMENT}){{1,{MAX_SEGMENTS}}}$", "maxLength": MAX_PATH},
    ),
]
Prefix = Annotated[
    str,
    Meta(
        description="The beginning of paths: `/`, or whole segments and a `/` behind them.",
        extra_json_schema={"pattern": f"^/({_SEGMENT}/){{0,{MAX_SEGMENTS}}}$", "maxLength": MAX_PATH},
    ),
]
Text = Annotated[
    str,
    Meta(
        description="At most 102,400 bytes of UTF-8, without NUL.",
        extra_json_schema={"pattern": NO_NUL, "maxLength": MAX_CONTENT},
    ),
]


class PathTaken(Conflict):
    """A path is that of another memory, or above or below it. `memory_id` and `path` are those of that memory."""

    def __init__(self, message: str, memory_id: str, path: str) -> None:
        super().__init__(message)
        self.memory_id = memory_id
        self.path = path


class ContentChanged(Conflict):
    """A memory has another content than the one that its change was made for."""


class NewStore(msgspec.Struct, kw_only=True):
    """A memory store to create."""

    name: StoreName
    description: Description = ""
    metadata: Annotated[dict[Key, Value], Meta(max_length=MAX_PAIRS)] = {}


class StoreChange(msgspec.Struct, kw_only=True):
    """The fields of a memory store to change; None is as if left out. Metadata is merged, a key with None removed."""

    name: StoreName | None = None
    description: Description | None = None
    metadata: Annotated[dict[Key, Value | None], Meta(max_length=1_000)] | None = None


class NewStoreMemory(msgspec.Struct, kw_only=True):
    """A memory to create at a path. Without text, its content is empty."""

    path: Path
    content: Text | None


class Precondition(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The content that a memory must have for a change to apply."""

    content_sha256: Sha256
    type: Literal["content_sha256"]


class StoreMemoryChange(msgspec.Struct, kw_only=True):
    """The fields of a memory to change; None is as if left out."""

    content: Text | None = None
    path: Path | None = None
    precondition: Precondition | None = None


class MemoryStore(msgspec.Struct, kw_only=True):
    """A store of memories at paths. Changes of its memories do not change `updated_at`."""

    id: str
    type: Literal["memory_store"] = "memory_store"
    name: str
    description: str
    metadata: Annotated[dict[str, str], Meta(max_length=MAX_PAIRS)]
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None


class StoreMemory(msgspec.Struct, kw_only=True, tag_field="type", tag="memory"):
    """A text at a path of a store. `content` is null in the basic view; the hash is SHA-256 of its UTF-8."""

    id: str
    memory_store_id: str
    memory_version_id: str
    path: str
    content: str | None
    content_sha256: str
    content_size_bytes: int
    created_at: datetime
    updated_at: datetime


class MemoryPrefix(msgspec.Struct, kw_only=True, tag_field="type", tag="memory_prefix"):
    """All memories whose paths begin with `path`, in a list of one level."""

    path: str


class UserActor(msgspec.Struct, kw_only=True):
    """The user who made a change."""

    user_id: str
    type: Literal["user_actor"] = "user_actor"


class MemoryVersion(msgspec.Struct, kw_only=True):
    """A change of a memory. `content` is null in the basic view, after a deletion and after a redaction, which also
    clears `path` and what describes the content. The actors are null where a key bound to no user made the change."""

    id: str
    type: Literal["memory_version"] = "memory_version"
    memory_id: str
    memory_store_id: str
    operation: Operation
    path: str | None
    content: str | None
    content_sha256: str | None
    content_size_bytes: int | None
    created_at: datetime
    created_by: UserActor | None
    redacted_at: datetime | None
    redacted_by: UserActor | None


class Page(msgspec.Struct, Generic[T], kw_only=True):
    """Items of a list; `next_page` asks for the next ones, null at the end."""

    data: list[T]
    next_page: str | None


def checked_path(path: str) -> str:
    """Return the path unchanged.

    Raises:
        InvalidInput: it is none.
    """
    segments = path.split("/")[1:]
    if not path.startswith("/") or not 1 <= len(segments) <= MAX_SEGMENTS:
        raise InvalidInput("path", f"must be / and 1 to {MAX_SEGMENTS} segments, such as /notes/todo.md")
    if any(segment in ("", ".", "..") for segment in segments):
        raise InvalidInput("path", "has an empty segment, `.` or `..`; name each segment")
    if any(unicodedata.category(char) in UNPRINTABLE for char in path):
        raise InvalidInput("path", "has a control or format character, or a line separator; remove it")
    if not unicodedata.is_normalized("NFC", path):
        raise InvalidInput("path", "must be in Unicode normalization form C")
    if len(path.encode()) > MAX_PATH:
        raise InvalidInput("path", f"is longer than {MAX_PATH} bytes of UTF-8; shorten it")
    return path


def checked_prefix(prefix: str) -> str:
    """Return the beginning of paths unchanged.

    Raises:
        InvalidInput: it does not end with `/`, or is no beginning of a path.
    """
    if not prefix.endswith("/"):
        raise InvalidInput("path_prefix", "must end with /, such as /notes/")
    if prefix != "/":
        try:
            checked_path(prefix[:-1])
        except InvalidInput as exc:
            raise InvalidInput("path_prefix", str(exc).removeprefix("path: ")) from exc
    return prefix


def checked_content(content: str) -> bytes:
    """Return the content as UTF-8.

    Raises:
        InvalidInput: it is too long, or has characters that cannot be stored.
    """
    try:
        encoded = content.encode()
    except UnicodeEncodeError as exc:
        raise InvalidInput("content", "has half of a surrogate pair; send Unicode text") from exc
    if len(encoded) > MAX_CONTENT:
        raise InvalidInput(
            "content", f"is longer than {MAX_CONTENT} bytes of UTF-8; split it into several memories"
        )
    if "\x00" in content:
        raise InvalidInput("content", "holds a NUL character; remove it")
    return encoded


def checked_limit(limit: int | None, view: View = "basic") -> int:
    """Return the items of a page.

    Raises:
        InvalidInput: it is out of range.
    """
    if limit is None:
        return FULL_PAGE
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidInput("limit", f"must be a whole number between 1 and {MAX_PAGE}")
    return min(limit, FULL_PAGE) if view == "full" else limit


def merged(before: dict[str, str], change: dict[str, str | None] | None) -> dict[str, str]:
    """Return metadata after a change: None removes a key.

    Raises:
        InvalidInput: there would be too many pairs.
    """
    pairs = {**before, **(change or {})}
    left = {key: value for key, value in pairs.items() if value is not None}
    if len(left) > MAX_PAIRS:
        raise InvalidInput("metadata", f"would hold {len(left)} keys, at most {MAX_PAIRS} are kept")
    return left
