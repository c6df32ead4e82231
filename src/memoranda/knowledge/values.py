"""The values of knowledge: files, vector stores, the files in them, what a search finds."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, TypedDict, TypeVar

import msgspec
from msgspec import Meta

from memoranda.config.data_sections import Quotas
from memoranda.text.splitting import Chunking
from memoranda.text.tables import with_columns
from memoranda.types import EvidenceLevel, Explanation, SearchMode, as_keyword

T = TypeVar("T")
MAX_RESULTS = 50
"""The most passages of a search over HTTP, as in OpenAI's API."""
Purpose = Literal["assistants", "batch", "fine-tune", "vision", "user_data", "evals"]
Sharing = Literal["private", "tenant", "everyone"]
FileState = Literal["in_progress", "completed", "failed", "cancelled"]
Attributes = dict[str, str | float | bool | None]


class StoredFile(msgspec.Struct, kw_only=True):
    """An uploaded file. `bytes` is its size, `sha256` of its bytes in hex; `expires_at` is when it deletes itself."""

    id: str
    filename: str
    bytes: int
    purpose: Purpose
    media_type: str | None
    sha256: str
    user_id: str | None
    created_at: datetime
    expires_at: datetime | None


class PageQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A page of a PDF to draw: its number from 1, the pixels of a line, and passages to mark. With `find` it is the
    first page of 20 from there on that has a passage."""

    page: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    find: bool = False
    width: Annotated[int, Meta(ge=100, le=2_000)] = 1_000
    highlight: Annotated[list[Annotated[str, Meta(max_length=1_000)]], Meta(max_length=4)] = []


class UploadPart(msgspec.Struct, kw_only=True):
    """A piece of an upload, at most 64 MB."""

    id: str
    upload_id: str
    bytes: int
    created_at: datetime


class Upload(msgspec.Struct, kw_only=True):
    """A file that arrives in parts. `bytes` is what was announced; `file` is there once it is completed."""

    id: str
    filename: str
    bytes: int
    purpose: Purpose
    media_type: str | None
    status: Literal["pending", "completed", "cancelled", "expired"]
    user_id: str | None
    created_at: datetime
    expires_at: datetime
    file: StoredFile | None = None


class FileCounts(msgspec.Struct, kw_only=True):
    """How many files are in which state."""

    in_progress: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.in_progress + self.completed + self.failed + self.cancelled


class VectorStore(msgspec.Struct, kw_only=True):
    """A set of files that is searched together. `usage_bytes` counts text and vectors of its chunks. `user_id` owns it
    (None: the tenant); `writers` may add and remove files; `sharing` lets others read it: `tenant` everyone inside,
    `everyone` all tenants. `model` and `dimension` are those its vectors are made with."""

    id: str
    name: str
    description: str | None
    metadata: dict[str, str]
    status: Literal["in_progress", "completed", "expired"]
    file_counts: FileCounts
    usage_bytes: int
    chunking: Chunking
    model: str
    dimension: int
    user_id: str | None
    writers: list[str]
    sharing: Sharing
    expires_after_days: int | None
    created_at: datetime
    last_active_at: datetime
    expires_at: datetime | None


class FileError(msgspec.Struct, kw_only=True):
    """Why a file has no chunks."""

    code: Literal["server_error", "unsupported_file", "invalid_file"]
    message: str


class Chunk(msgspec.Struct, kw_only=True):
    """One chunk of a file in a store: its place among the chunks (from 0), the characters of the file's text that it
    has, the pages that it begins and ends on and its heading where the reader knows them, and its length in tokens."""

    id: str
    index: int
    start: int
    end: int
    page: int | None
    last_page: int | None
    heading: str | None
    tokens: int
    content: str


class StoreFile(msgspec.Struct, kw_only=True):
    """A file in a vector store. `id` is the file's; `bytes` its size; `usage_bytes` what its chunks hold here."""

    id: str
    vector_store_id: str
    filename: str
    bytes: int
    status: FileState
    last_error: FileError | None
    chunking: Chunking
    attributes: Attributes
    usage_bytes: int
    chunk_count: int
    title: str | None
    batch_id: str | None
    notes: list[str]
    created_at: datetime


class Batch(msgspec.Struct, kw_only=True):
    """Files that were attached together."""

    id: str
    vector_store_id: str
    status: FileState
    file_counts: FileCounts
    created_at: datetime


class NewStoreFile(msgspec.Struct, kw_only=True):
    """A file to attach. Without `chunking` the store's own is used."""

    file_id: str
    attributes: Attributes | None = None
    chunking: Chunking | None = None


class StoreChange(msgspec.Struct, kw_only=True):
    """An update of a store: fields that are left unset stay as they are. Another `chunking` is for files that come."""

    name: str | None | msgspec.UnsetType = msgspec.UNSET
    description: str | None | msgspec.UnsetType = msgspec.UNSET
    metadata: dict[str, str] | None | msgspec.UnsetType = msgspec.UNSET
    expires_after_days: int | None | msgspec.UnsetType = msgspec.UNSET
    chunking: Chunking | msgspec.UnsetType = msgspec.UNSET
    sharing: Sharing | msgspec.UnsetType = msgspec.UNSET
    writers: list[str] | msgspec.UnsetType = msgspec.UNSET


class PassageQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A search in vector stores. Several queries are one search: a passage counts with its best.

    `threshold` is a floor on the calibrated similarity, 0 to 1 (0 or None: no floor). `weights` are those of the two
    sides, `dense` and `words`. `rewrite` cleans each query of what is no content. `diversity` 0 to 1 trades relevance
    for variety (MMR; 0 is off). `neighbours` widens each passage by so many chunks on either side, `section` to the
    whole of its section (at most `section_tokens`). `merge` joins hits that follow each other in the ranking and in
    their file to one passage, at most 512 tokens."""

    queries: list[str]
    limit: int = 10
    filters: dict[str, Any] | None = None
    threshold: float | None = None
    weights: dict[str, float] | None = None
    mode: SearchMode = "hybrid"
    rewrite: bool = False
    diversity: float = 0.0
    neighbours: int = 0
    section: bool = False
    section_tokens: int = 2_000
    merge: bool = True
    explain: bool = False

    def __post_init__(self) -> None:
        self.mode = as_keyword(self.mode)


class PassageFields(TypedDict, total=False):
    """The fields of `PassageQuery` beside the queries, as keywords."""

    limit: int
    filters: dict[str, Any] | None
    threshold: float | None
    weights: dict[str, float] | None
    mode: str
    rewrite: bool
    diversity: float
    neighbours: int
    section: bool
    section_tokens: int
    merge: bool
    explain: bool


class Passage(msgspec.Struct, kw_only=True):
    """A chunk that was found, or several neighbouring ones that were merged: `chunk_ids`, the best first, which is
    `chunk_id` and `chunk_index`. `relevance`, 0 to 1, is the probability that the best one is relevant to the question,
    None where it is not known; then `score` only ranks. `similarity` is the best of its chunks, None when only words
    answered. `start` and `end` are characters of the file's extracted text; `page` and `last_page` are the pages that
    they are on. `columns` is the row that names the columns of the table in which the text begins."""

    vector_store_id: str
    file_id: str
    filename: str
    attributes: Attributes
    score: float
    similarity: float | None
    text: str
    chunk_id: str
    chunk_index: int
    start: int
    end: int
    page: int | None
    last_page: int | None
    heading: str | None
    title: str | None
    columns: str | None = None
    chunk_ids: list[str] = []
    explanation: Explanation | None = None
    relevance: float | None = None

    @property
    def readable(self) -> str:
        """The text, below the row that names its columns."""
        return with_columns(self.text.strip(), self.columns)


class Passages(msgspec.Struct, kw_only=True):
    """What a search found, best first. `queries` are those that were searched, rewritten ones as they became.
    `evidence` and `evidence_probability` are those of `SearchResult`, for the query that they are greatest for.
    `degraded` names the sides that could not answer in full."""

    queries: list[str]
    data: list[Passage]
    query_time: float
    evidence: EvidenceLevel = "none"
    evidence_probability: float = 0.0
    degraded: list[str] = []


class Tenant(msgspec.Struct, kw_only=True, tag_field="object", tag="tenant"):
    """A tenant, and when it first stored or was given something."""

    name: str
    created_at: datetime


class TenantQuotas(Quotas, frozen=True, kw_only=True, tag_field="object", tag="quotas"):
    """What a tenant may hold."""

    tenant: str


class Usage(msgspec.Struct, kw_only=True, tag_field="object", tag="usage"):
    """What a tenant holds."""

    tenant: str
    storage_bytes: int
    files: int
    stores: int
    chunks: int
    memories: int
