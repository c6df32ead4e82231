"""How a document is split, as `/v1/vector_stores` takes and shows it: OpenAI's shapes, and what we add to them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType


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
