"""Fields of structs as keyword arguments, as type checkers see them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypedDict

from memoranda.types import Kind


class MemoryFields(TypedDict, total=False):
    """The optional fields of `types.NewMemory`, as keywords."""

    id: str
    kind: Kind
    user_id: str | None
    agent_id: str | None
    channel_id: str | None
    session_id: str | None
    role: str | None
    source: str | None
    tags: list[str]
    metadata: dict[str, Any]
    importance: int
    confidence: float
    valid_from: datetime | None
    invalid_at: datetime | None
    source_refs: list[str]
    occurred_at: datetime | None
    replaces: list[str]
    embedding: Any


class ChangeFields(TypedDict, total=False):
    """The fields of `types.Change`, as keywords."""

    content: str
    kind: Kind
    role: str | None
    source: str | None
    tags: list[str]
    metadata: dict[str, Any]
    importance: int
    confidence: float
    valid_from: datetime | None
    invalid_at: datetime | None
    source_refs: list[str]
    occurred_at: datetime
    archived: bool


class SelectionFields(TypedDict, total=False):
    """The fields of `types.Selection`, as keywords."""

    scopes: list[str] | None
    kinds: list[Kind] | None
    roles: list[str] | None
    tags: list[str] | None
    filters: dict[str, Any] | None
    source: str | None
    since: datetime | None
    until: datetime | None
    as_of: datetime | None
    include_archived: bool


class ForgetFields(SelectionFields, total=False):
    """The fields of `types.Forget`, as keywords."""

    text: str | None


class SearchFields(SelectionFields, total=False):
    """The fields of `types.Query` beside the query, as keywords."""

    limit: int
    threshold: float | None
    mode: str
    embedding: Any
    hierarchy: dict[str, str] | None
    weights: dict[str, float] | None
    rerank: str | None
    recency: str | None
    times: bool | None
    enrich: bool | None
    hyde: bool | None
    model_rerank: int | None
    explain: bool
    highlights: bool
    count_access: bool
