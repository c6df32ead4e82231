"""`/v1/context`: a prompt for a question, with memories and documents."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from memoranda.contexts.values import CONVERSATION, Context, ContextQuery, Said
from memoranda.server.memories import as_wire
from memoranda.server.route import Call, Route
from memoranda.store.selections import SCOPED, ScopeName, named_scopes
from memoranda.types import Question
from memoranda.validation.constraints import BLANK, Constraint, NotBoth

Asked = Annotated[Question, Meta(description="What is asked.", examples=["What must be kept away from her?"])]
Recent = Annotated[
    list[Said],
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
    query: Asked
    recent: Recent | None = None
    stores: Stores = msgspec.field(default_factory=list)
    scope: ScopeName | None = None
    scope_id: str | None = None


class ContextObject(Context, kw_only=True, tag_field="object", tag="context"):
    """The prompt: as one text, as messages for a chat model, and piece by piece."""


async def create(call: Call[ContextBody, None]) -> ContextObject:
    fields = {name: getattr(call.body, name) for name in ContextQuery.__struct_fields__}
    fields["scopes"] = named_scopes(call.body.scopes, call.body.scope, call.body.scope_id)
    return as_wire(await call.contexts.context(ContextQuery(**fields)), ContextObject)


ROUTES = (
    Route("POST", "/v1/context", "A prompt for a question", create, "read", ContextObject, ContextBody),
)
