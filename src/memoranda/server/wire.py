"""What goes over the wire: bodies, query strings and answers. An answer is a library value with its `object`."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from memoranda.store.selections import ONE_SCOPE, ScopeName, SelectionBody
from memoranda.store.validation import MOST_TEXTS
from memoranda.types import (
    configured,
    says,
)
from memoranda.validation.constraints import Constraint

# --- bodies and query strings ----------------------------------------------------------------------


TargetScope = Annotated[
    str,
    Meta(
        pattern=r"^(global|(session|user|agent|channel):[\s\S]+)$",
        extra=says("must be session:ID, user:ID, agent:ID, channel:ID or global"),
    ),
]
"""Where something is put."""


class ExportBody(SelectionBody, kw_only=True, forbid_unknown_fields=True):
    """What to carry out; with `vectors` each line has its embeddings, so that an import needs no model."""

    vectors: bool = False


class ImportQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`scope` puts everything there (`session:X`, ..., `global`) instead of where it was; `include_forgotten` stores
    also what was forgotten after the export was made."""

    scope: TargetScope | None = None
    include_forgotten: bool = False


TextOrList = Annotated[str, Meta(extra_json_schema={"minLength": 1})]
"""A text where a list may stand, too."""
Token = Annotated[int, Meta(extra_json_schema={"minimum": 0, "maximum": 100_255})]
"""A token of cl100k_base, which is checked where it is decoded."""
NOT_MIXED = {
    "minItems": 1,
    "anyOf": [
        {"items": {"type": "integer"}},
        {"items": {"type": ["string", "array"], "maxItems": 8_192}, "maxItems": MOST_TEXTS},
    ],
}
Dimensions = Annotated[
    int, Meta(extra_json_schema=configured(minimum="embedder.dimension", maximum="embedder.dimension"))
]
"""Those of the configured model: no vector is shortened."""


class EmbeddingsBody(msgspec.Struct, kw_only=True):
    """Texts, or texts as cl100k tokens, to embed. Without `model` the configured one does.
    `input_type` is `query` for questions asked of documents."""

    input: (
        TextOrList
        | Annotated[
            list[TextOrList | Token | Annotated[list[Token], Meta(min_length=1, max_length=8_192)]],
            Meta(max_length=8_192, extra_json_schema=NOT_MIXED),
        ]
    )
    model: str | None = None
    dimensions: Dimensions | None = None
    encoding_format: Literal["float", "base64"] = "float"
    input_type: Literal["document", "query"] = "document"


# --- answers ---------------------------------------------------------------------------------------


class MemoryStats(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.stats"):
    """Counts and sizes of the tenant; `embedder_note` says what `embedder: auto` has decided, if anything. `jobs`,
    `database`, `index` and `words` are about the whole folder, and null for all but an admin of tenant `default`."""

    memories: int
    characters: int
    by_kind: dict[str, int]
    chunks: int
    vectors: int
    indexed_vectors: int
    indexed_words: int
    unembedded: int
    behind: list[str]
    model: str
    embedder_note: str | None = None
    dimension: int
    jobs: dict[str, int] | None
    database: dict[str, Any] | None
    index: dict[str, Any] | None
    words: dict[str, Any] | None


class StatsQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One scope: `session:X`, or `session` for any; `scope` and `scope_id` as in a selection."""

    constraints: ClassVar[tuple[Constraint, ...]] = ONE_SCOPE
    scope: ScopeName | None = None
    scope_id: str | None = None


class ScopeStats(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.scope_stats"):
    """Counts of one scope."""

    scope: str
    memories: int
    characters: int
    by_kind: dict[str, int]


class ImportedMemories(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.import"):
    """What an import came to; `conflicts` are ids that already name another text, `forgotten` those of memories that
    were forgotten after the export was made: both are left alone."""

    read: int
    created: int
    present: int
    conflicts: list[str]
    forgotten: list[str]


class EmbeddingObject(msgspec.Struct, kw_only=True, tag_field="object", tag="embedding"):
    """One text's vector: floats, or float32 little-endian bytes in base64."""

    index: int
    embedding: list[float] | str


class Usage(msgspec.Struct, kw_only=True):
    """Tokens of the model that were read."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingList(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """A vector for each text, in order."""

    data: list[EmbeddingObject]
    model: str
    usage: Usage


class ModelObject(msgspec.Struct, kw_only=True, tag_field="object", tag="model"):
    """A model this server answers with; `dimensions` are those of its embeddings, if it makes any."""

    id: str
    created: int = 0
    owned_by: str = "memoranda"
    dimensions: int | None = None
    max_input_tokens: int


class ModelList(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """Every model."""

    data: list[ModelObject]


class Health(msgspec.Struct, kw_only=True, tag_field="object", tag="health"):
    """The process lives."""

    status: str = "ok"
    version: str
