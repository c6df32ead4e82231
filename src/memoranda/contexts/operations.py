"""The operation that makes a context, as servers, clients and interfaces have it."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from memoranda.contexts.contexts import Contexts
from memoranda.contexts.values import CONVERSATION, ContextQuery, RecentMessage
from memoranda.store.operations import Operation, given
from memoranda.store.selections import SCOPED, ScopeName, with_scope
from memoranda.types import Question
from memoranda.validation.constraints import BLANK, Constraint, NotBoth

ContextQuestion = Annotated[
    Question, Meta(description="What is asked.", examples=["What must be kept away from her?"])
]
Recent = Annotated[
    list[RecentMessage],
    Meta(
        max_length=1_000,
        description="What was said last, the oldest first; the newest are kept where not all fit. Left out: "
        "that of the session or channel that is named.",
        examples=[[{"role": "user", "content": "Mara comes to lunch."}]],
    ),
]
Stores = Annotated[
    list[str],
    Meta(max_length=100, description="Ids of the vector stores to search.", examples=[["vs_4f1c22"]]),
]


class ContextBody(ContextQuery, kw_only=True, forbid_unknown_fields=True):
    """A question, what was said before it, and where to look. `scope` with `scope_id` is another way to write `scopes`
    with one entry."""

    constraints: ClassVar[tuple[Constraint, ...]] = (
        *SCOPED,
        *ContextQuery.constraints,
        *(
            NotBoth(name, "scope", "says where to look and goes without `scope`", empty=BLANK)
            for name in ("hierarchy", *CONVERSATION)
        ),
    )
    query: ContextQuestion
    recent: Recent | None = None
    stores: Stores = msgspec.field(default_factory=list)
    scope: ScopeName | None = None
    scope_id: str | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the fields that are given, with the scope among the scopes."""
        return with_scope(given(self))


OPERATIONS = (Operation(Contexts.context, "POST", "/v1/context", "read", ContextBody),)
