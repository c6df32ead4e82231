"""What `/v1/files`, `/v1/uploads` and `/v1/vector_stores` take and answer: OpenAI's shapes, and what we add to them.

Unknown fields are ignored, as OpenAI's clients expect; the admin's bodies at the end are ours, and name them.
Times are whole seconds since 1970."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memoranda.knowledge.checks import MAX_NAME_CHARS, FileAttributes, StoreMetadata
from memoranda.knowledge.uploads import MAX_BYTES, MAX_PARTS
from memoranda.knowledge.values import Chunk, FileError, FileState, Purpose, Sharing
from memoranda.types import Name, any_text, says, some_text
from memoranda.validation.constraints import Constraint, NotBoth, OneOf


class AutoStrategy(msgspec.Struct, kw_only=True, tag_field="type", tag="auto"):
    """The store's own; a new store's is the configured one."""


class StaticTokens(msgspec.Struct, kw_only=True):
    """Tokens of a chunk, and how many of them the next one repeats, at most half."""

    max_chunk_size_tokens: Annotated[int, Meta(ge=100, le=4_096)]
    chunk_overlap_tokens: Annotated[int, Meta(ge=0)]


class StaticStrategy(msgspec.Struct, kw_only=True, tag_field="type", tag="static"):
    """Every so many tokens, as OpenAI writes it."""

    static: StaticTokens


class OwnStrategy(msgspec.Struct, kw_only=True, tag_field="type"):
    """Sizes in tokens; with `contextual_header` a chunk is embedded under the title and the headings above it."""

    chunk_size: Annotated[int, Meta(ge=1, le=8_192)] = 200
    chunk_overlap: Annotated[int, Meta(ge=0)] | None = None
    contextual_header: bool = False


class FixedStrategy(OwnStrategy, kw_only=True, tag_field="type", tag="fixed"):
    """Every so many tokens."""


class RecursiveStrategy(OwnStrategy, kw_only=True, tag_field="type", tag="recursive"):
    """At paragraphs, sentences and words."""


class SemanticStrategy(OwnStrategy, kw_only=True, tag_field="type", tag="semantic"):
    """Where the meaning turns."""


Strategy = AutoStrategy | StaticStrategy | FixedStrategy | RecursiveStrategy | SemanticStrategy


class ShownTokens(msgspec.Struct, kw_only=True):
    """Tokens of a chunk, and how many of them the next one repeats."""

    max_chunk_size_tokens: int
    chunk_overlap_tokens: int


class ShownStrategy(msgspec.Struct, kw_only=True, tag_field="type", tag="static"):
    """How a text is split. `strategy` is there when it is not `fixed`, `contextual_header` when it is on."""

    static: ShownTokens
    chunk_size: int
    chunk_overlap: int
    strategy: str | UnsetType = UNSET
    contextual_header: bool | UnsetType = UNSET


Limit = Annotated[int, Meta(ge=1, le=100)]
FilesLimit = Annotated[int, Meta(ge=1, le=10_000)]
FileIds = Annotated[list[Name], Meta(min_length=1, max_length=2_000)]
Writers = Annotated[list[Annotated[str, some_text(256)]], Meta(max_length=1_000)]
Title = Annotated[str, any_text(MAX_NAME_CHARS)]
FileName = Annotated[str, some_text(MAX_NAME_CHARS)]
Description = Annotated[str, any_text(4_096)]
Md5 = Annotated[
    str,
    Meta(pattern=r"^[0-9A-Fa-f]{32}$", extra=says("must be the MD5 of the file as 32 hexadecimal digits")),
]

# --- files and uploads -----------------------------------------------------------------------------


class ExpiresAfterCreated(msgspec.Struct, kw_only=True):
    """Seconds after its making when a file deletes itself."""

    anchor: Literal["created_at"]
    seconds: Annotated[int, Meta(ge=3_600, le=2_592_000)]


class FileFields(msgspec.Struct, kw_only=True):
    """What goes beside a file that is uploaded. `expires_after` is JSON, or `expires_after[seconds]` and so on."""

    purpose: Purpose
    expires_after: ExpiresAfterCreated | None = None


class NoFields(msgspec.Struct, kw_only=True):
    """Nothing beside the bytes."""


class FilesQuery(msgspec.Struct, kw_only=True):
    """A page of files."""

    limit: FilesLimit = 10_000
    after: str | None = None
    order: Literal["asc", "desc"] = "desc"
    purpose: Purpose | None = None


class FileObject(msgspec.Struct, kw_only=True, tag_field="object", tag="file"):
    """An uploaded file. `sha256` (hex) and `media_type` are ours."""

    id: str
    bytes: int
    created_at: int
    expires_at: int | UnsetType = UNSET
    filename: str
    purpose: Purpose
    status: Literal["uploaded", "processed", "error"] = "processed"
    sha256: str = ""
    media_type: str | None = None


class FilePage(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """A page of files; `after=last_id` asks for the next one."""

    data: list[FileObject]
    first_id: str
    last_id: str
    has_more: bool


class DeletedFile(msgspec.Struct, kw_only=True, tag_field="object", tag="file"):
    """The file that is gone. `derived` memories were written after it was read; the `source` of its id selects them."""

    id: str
    deleted: bool = True
    derived: int = 0


class UploadBody(msgspec.Struct, kw_only=True):
    """A file that will come in parts: its name, and how many bytes it has."""

    filename: FileName
    bytes: Annotated[int, Meta(ge=1, le=MAX_BYTES)]
    purpose: Purpose
    mime_type: Title | None = None
    expires_after: ExpiresAfterCreated | None = None


class CompleteBody(msgspec.Struct, kw_only=True):
    """The parts in their order; `md5` of the whole, in hex, is checked when it is there."""

    part_ids: Annotated[list[Name], Meta(max_length=MAX_PARTS, extra_json_schema={"minItems": 1})]
    md5: Md5 | None = None


class UploadObject(msgspec.Struct, kw_only=True, tag_field="object", tag="upload"):
    """A file that comes in parts."""

    id: str
    bytes: int
    created_at: int
    expires_at: int
    filename: str
    purpose: Purpose
    status: Literal["pending", "completed", "cancelled", "expired"]
    file: FileObject | None


class PartObject(msgspec.Struct, kw_only=True, tag_field="object", tag="upload.part"):
    """A part that has come."""

    id: str
    upload_id: str
    created_at: int
    bytes: int


# --- vector stores ---------------------------------------------------------------------------------


class ExpiresAfterActive(msgspec.Struct, kw_only=True):
    """Days without use after which a store expires."""

    anchor: Literal["last_active_at"]
    days: Annotated[int, Meta(ge=1, le=365)]


class StoreBody(msgspec.Struct, kw_only=True):
    """A new vector store. `sharing` and `writers` say who else reads it and adds to it."""

    name: Title | None = None
    description: Description | None = None
    file_ids: Annotated[list[Name], Meta(max_length=500)] | None = None
    metadata: StoreMetadata | None = None
    expires_after: ExpiresAfterActive | None = None
    chunking_strategy: Strategy | None = None
    sharing: Sharing = "private"
    writers: Writers = []


class StoreChangeBody(msgspec.Struct, kw_only=True):
    """The fields to change; what is left out stays as it is. Another `chunking_strategy` is for files that come."""

    name: Title | None | UnsetType = UNSET
    description: Description | None | UnsetType = UNSET
    metadata: StoreMetadata | None | UnsetType = UNSET
    expires_after: ExpiresAfterActive | None | UnsetType = UNSET
    chunking_strategy: Strategy | None | UnsetType = UNSET
    sharing: Sharing | UnsetType = UNSET
    writers: Writers | UnsetType = UNSET


class StoresQuery(msgspec.Struct, kw_only=True):
    """A page of vector stores."""

    limit: Limit = 20
    after: str | None = None
    before: str | None = None
    order: Literal["asc", "desc"] = "desc"


class ShownCounts(msgspec.Struct, kw_only=True):
    """How many files are in which state."""

    in_progress: int
    completed: int
    failed: int
    cancelled: int
    total: int


class StoreObject(msgspec.Struct, kw_only=True, tag_field="object", tag="vector_store"):
    """A vector store. `owner` is a user, or null for the tenant's own."""

    id: str
    created_at: int
    name: str
    description: str | None
    usage_bytes: int
    file_counts: ShownCounts
    status: Literal["expired", "in_progress", "completed"]
    last_active_at: int | None
    expires_after: ExpiresAfterActive | UnsetType = UNSET
    expires_at: int | None
    metadata: dict[str, str]
    chunking_strategy: ShownStrategy
    model: str
    dimension: int
    owner: str | None
    sharing: Sharing
    writers: list[str]


class StorePage(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """A page of vector stores; `after=last_id` asks for the next one."""

    data: list[StoreObject]
    first_id: str
    last_id: str
    has_more: bool


class DeletedStore(msgspec.Struct, kw_only=True, tag_field="object", tag="vector_store.deleted"):
    """The vector store that is gone, with its files' chunks; the files stay."""

    id: str
    deleted: bool = True


# --- files in a store ------------------------------------------------------------------------------


class AttachBody(msgspec.Struct, kw_only=True):
    """An uploaded file to add."""

    file_id: Name
    attributes: FileAttributes | None = None
    chunking_strategy: Strategy | None = None


class AttachFields(msgspec.Struct, kw_only=True):
    """What goes beside a file that is uploaded straight into a store; both as JSON, or as `attributes[key]` and so
    on, where values are strings."""

    attributes: FileAttributes | None = None
    chunking_strategy: Strategy | None = None
    purpose: Purpose = "assistants"


class WaitQuery(msgspec.Struct, kw_only=True):
    """Seconds for which the answer waits while a file is in progress: it comes once none is, or after that time."""

    wait: Annotated[float, Meta(ge=0, le=10)] = 0.0


class AttributesBody(msgspec.Struct, kw_only=True):
    """The attributes instead of those before; null is none."""

    attributes: FileAttributes | None


class StoreFilesQuery(StoresQuery, kw_only=True):
    """A page of the files in a store or a batch."""

    filter: FileState | None = None


class StoreFileObject(msgspec.Struct, kw_only=True, tag_field="object", tag="vector_store.file"):
    """A file in a vector store. `notes` say what a reader passed over."""

    id: str
    created_at: int
    usage_bytes: int
    vector_store_id: str
    status: FileState
    last_error: FileError | None
    chunking_strategy: ShownStrategy
    attributes: dict[str, str | float | bool | None]
    filename: str
    bytes: int
    chunk_count: int
    title: str | None
    notes: list[str]


class StoreFilePage(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """A page of files in a store; `after=last_id` asks for the next one."""

    data: list[StoreFileObject]
    first_id: str
    last_id: str
    has_more: bool


class DetachedFile(msgspec.Struct, kw_only=True, tag_field="object", tag="vector_store.file.deleted"):
    """The file that is no longer in the store."""

    id: str
    deleted: bool = True


class TextContent(msgspec.Struct, kw_only=True, tag_field="type", tag="text"):
    """A piece of text."""

    text: str


class ContentPage(msgspec.Struct, kw_only=True, tag_field="object", tag="vector_store.file_content.page"):
    """The text that was read out of a file."""

    data: list[TextContent]
    has_more: bool = False
    next_page: str | None = None


class ChunksQuery(msgspec.Struct, kw_only=True):
    """A page of chunks."""

    limit: Limit = 20
    after: str | None = None


class ChunkObject(Chunk, kw_only=True, tag_field="object", tag="vector_store.file.chunk"):
    """One chunk of a file, without its embedding."""


class ChunkPage(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """A page of chunks, in the order of the file's text; `after=last_id` asks for the next one."""

    data: list[ChunkObject]
    first_id: str
    last_id: str
    has_more: bool


class FileBatchBody(msgspec.Struct, kw_only=True):
    """Files to add together: `file_ids`, with `attributes` and `chunking_strategy` for all of them, or `files`, each
    with its own."""

    constraints: ClassVar[tuple[Constraint, ...]] = (
        NotBoth("files", "file_ids", "goes without `file_ids`; send one of the two"),
        OneOf(("file_ids", "files"), "is required, or `files`"),
    )
    file_ids: FileIds | None = None
    files: Annotated[list[AttachBody], Meta(min_length=1, max_length=2_000)] | None = None
    attributes: FileAttributes | None = None
    chunking_strategy: Strategy | None = None


class FileBatchObject(msgspec.Struct, kw_only=True, tag_field="object", tag="vector_store.files_batch"):
    """Files that were added together."""

    id: str
    created_at: int
    vector_store_id: str
    status: FileState
    file_counts: ShownCounts
