"""What interfaces read for the methods of memories, where that is more than their parameters."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np
from msgspec import UNSET, Meta, UnsetType
from numpy.typing import NDArray

from memoranda.errors import InvalidInput
from memoranda.store.operations import completed_texts, given
from memoranda.store.selections import SCOPED, ScopeName, SelectionBody, with_scope
from memoranda.types import Limit, NewMemory, Query, Scopes, Words, configured
from memoranda.validation.constraints import BLANK, Constraint, NotBoth, OneOf

Vector = Annotated[
    list[float],
    Meta(
        max_length=65_536,
        extra_json_schema=configured(minItems="embedder.dimension", maxItems="embedder.dimension"),
    ),
]
Encoded = Annotated[
    str,
    Meta(
        extra_json_schema={
            "description": "float32 little-endian in base64",
            **configured(
                minLength="embedder.base64", maxLength="embedder.base64", pattern="embedder.alphabet"
            ),
        },
    ),
]
HIERARCHY = tuple(
    NotBoth("hierarchy", name, f"names the scopes itself; leave `{name}` out", empty=BLANK)
    for name in ("scopes", "scope")
)
ALONE = "goes without a selection: name ids, or say which memories are meant"
SELECTING = (
    "scopes", "scope", "kinds", "roles", "tags", "filters", "source", "since", "until", "as_of", "text",
)  # fmt: skip
"""The fields of a selection, without `include_archived`."""


class NewMemoryBody(NewMemory, kw_only=True, forbid_unknown_fields=True):
    """One memory to remember. `embedding` is a list of floats, or float32 little-endian bytes in base64."""

    embedding: Vector | Encoded | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the memory, with its vector as numbers."""
        return {"content": self.with_vector("embedding")}

    def with_vector(self, where: str) -> NewMemoryBody:
        """Return the memory with its vector as numbers; `where` is the vector's path in the body."""
        self.embedding = floats(self.embedding, where)  # type: ignore[assignment]
        return self


class BatchBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Memories to remember together: all of them, or none when one is wrong."""

    memories: Annotated[
        list[NewMemoryBody],
        Meta(min_length=1, max_length=100_000, extra_json_schema=configured(maxItems="limits.max_batch")),
    ]

    def arguments(self) -> dict[str, Any]:
        """Return the memories, with their vectors as numbers."""
        memories = [one.with_vector(f"memories[{i}].embedding") for i, one in enumerate(self.memories)]
        return given(self) | {"memories": memories}

    @classmethod
    def completed(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a body for the arguments of a call: a text is a memory."""
        return values | {"memories": completed_texts(values["memories"])}


class ExportedBody(BatchBody, kw_only=True, forbid_unknown_fields=True):
    """Memories of an export that was made then."""

    exported_at: datetime


class SearchBody(Query, kw_only=True, forbid_unknown_fields=True):
    """A search. `scope` with `scope_id` is another way to write `scopes` with one entry; `embedding` is the query's
    vector, as floats or in base64."""

    constraints: ClassVar[tuple[Constraint, ...]] = (*SCOPED, *HIERARCHY)

    embedding: Vector | Encoded | None = None
    limit: Limit | UnsetType = UNSET  # type: ignore[assignment]
    scope: ScopeName | None = None
    scope_id: str | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the fields that are given, with the scope among the scopes and the vector as numbers."""
        return with_scope(given(self)) | {"embedding": floats(self.embedding, "embedding")}


class ForgetBody(SelectionBody, kw_only=True, forbid_unknown_fields=True):
    """What to erase: these ids, or what the selection names."""

    constraints: ClassVar[tuple[Constraint, ...]] = (
        *SCOPED,
        *(NotBoth("ids", name, ALONE, empty=BLANK) for name in SELECTING),
        NotBoth("include_archived", "ids", "goes without `ids`", (True,)),
        OneOf((*SELECTING, "ids"), 'name what to forget: ids, scopes, a source, ...; everything is ["all"]'),
    )

    scopes: Scopes | None = None
    ids: Annotated[list[str], Meta(max_length=100_000)] | None = None
    text: Words | None = None


def floats(value: list[float] | str | None, where: str) -> NDArray[np.float32] | list[float] | None:
    """Return a vector as it was sent, a string read as float32 little-endian in base64.

    Raises:
        InvalidInput: the string is not that.
    """
    if not isinstance(value, str):
        return value
    try:
        raw = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise InvalidInput(where, "must be a list of floats, or float32 little-endian in base64") from exc
    if len(raw) % 4:
        raise InvalidInput(where, f"holds {len(raw)} bytes, which is no whole number of float32")
    return np.frombuffer(raw, dtype="<f4")
