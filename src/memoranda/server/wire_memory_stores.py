"""What clients of Anthropic's memory stores send and read, beside the values of `memory_stores`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memoranda.memory_stores.memories import Item
from memoranda.memory_stores.values import (
    MAX_PAGE,
    ContentChanged,
    MemoryStore,
    MemoryVersion,
    Operation,
    Page,
    PathTaken,
    Prefix,
    Sha256,
    View,
)
from memoranda.server.errors import ErrorEnvelope, Problem
from memoranda.types import Id, Moment

Limit = Annotated[int, Meta(ge=1, le=MAX_PAGE)]
TYPES = {
    401: "authentication_error", 403: "permission_error", 404: "not_found_error", 409: "conflict_error",
    413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error",
}  # fmt: skip
"""Anthropic's types of errors, by status."""


class AnthropicProblem(Problem, kw_only=True):
    """What went wrong. A path that is taken names the memory that has it, or is above or below it."""

    conflicting_memory_id: str | UnsetType = UNSET
    conflicting_path: str | UnsetType = UNSET


class AnthropicFailure(ErrorEnvelope):
    """An error as Anthropic's clients read it."""

    error: AnthropicProblem
    type: Literal["error"] = "error"


def failure(status: int, error: Problem, exc: Exception) -> AnthropicFailure:
    type_ = TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    taken = exc if isinstance(exc, PathTaken) else None
    if taken is not None:
        type_ = "memory_path_conflict_error"
    elif isinstance(exc, ContentChanged):
        type_ = "memory_precondition_failed_error"
    return AnthropicFailure(
        AnthropicProblem(
            message=error.message,
            type=type_,
            param=error.param,
            code=error.code,
            conflicting_memory_id=taken.memory_id if taken else UNSET,
            conflicting_path=taken.path if taken else UNSET,
        )
    )


class BetaQuery(msgspec.Struct, kw_only=True):
    """`beta=true`, which Anthropic's clients send with every request; it changes nothing."""

    beta: bool = True


class ViewQuery(BetaQuery, kw_only=True):
    """Whether the answer has the content (`full`)."""

    view: View | None = None


class StoresQuery(BetaQuery, kw_only=True):
    """A page of memory stores."""

    limit: Limit = 20
    page: str | None = None
    include_archived: bool = False
    since: Moment | None = msgspec.field(default=None, name="created_at[gte]")
    until: Moment | None = msgspec.field(default=None, name="created_at[lte]")


class MemoriesQuery(BetaQuery, kw_only=True):
    """A page of the memories below a path. With depth 1, directories stand for what is in them."""

    path_prefix: Prefix = "/"
    depth: Annotated[int, Meta(ge=0, le=1)] = 0
    limit: Limit = 20
    page: str | None = None
    view: View = "basic"


class DeletionQuery(BetaQuery, kw_only=True):
    """The content that a memory must have to be deleted."""

    expected_content_sha256: Sha256 | None = None


class VersionsQuery(BetaQuery, kw_only=True):
    """A page of versions. None here is written by an agent's session, or known to be by a key or a service account:
    those filters match nothing."""

    memory_id: str | None = None
    operation: Operation | None = None
    since: Moment | None = msgspec.field(default=None, name="created_at[gte]")
    until: Moment | None = msgspec.field(default=None, name="created_at[lte]")
    session_id: Id | None = None
    api_key_id: Id | None = None
    service_account_id: Id | None = None
    limit: Limit = 20
    page: str | None = None
    view: View = "basic"


class MemoryStorePage(Page[MemoryStore], kw_only=True):
    """Memory stores, newest first; `next_page` asks for more."""


class StoreMemoryPage(Page[Item], kw_only=True):
    """Memories, and directories of them, by path; `next_page` asks for more."""


class MemoryVersionPage(Page[MemoryVersion], kw_only=True):
    """Versions, newest first; `next_page` asks for more."""


class DeletedMemoryStore(msgspec.Struct, kw_only=True):
    """The store that is gone, with its memories and their versions."""

    id: str
    type: Literal["memory_store_deleted"] = "memory_store_deleted"


class DeletedStoreMemory(msgspec.Struct, kw_only=True):
    """The memory that is gone; its versions stay."""

    id: str
    type: Literal["memory_deleted"] = "memory_deleted"
