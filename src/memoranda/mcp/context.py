"""The tool `context`: memories and documents for a question, within a token budget."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from memoranda.contexts.assembly import FOUND
from memoranda.contexts.values import Context
from memoranda.mcp.caller import Caller
from memoranda.mcp.documents import newest_stores
from memoranda.mcp.remembering import Text
from memoranda.mcp.tool import Tool


class AskContext(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    query: Annotated[Text, Meta(description="the task or question at hand")]
    max_tokens: Annotated[int, Meta(ge=100, le=100_000)] = 2_000
    documents: Annotated[bool, Meta(description="passages of the uploaded documents, too")] = True


class ContextResult(msgspec.Struct, kw_only=True):
    """`text` is ready for a prompt; `ids` are the memories and chunks in it."""

    text: str
    tokens: int
    evidence: str
    evidence_probability: float
    ids: list[str]
    degraded: list[str]


async def ask_context(caller: Caller, asked: AskContext) -> ContextResult:
    """Compose a context."""
    context = await composed(caller, asked.query, asked.max_tokens, asked.documents)
    return ContextResult(
        text=context.text,
        tokens=context.tokens,
        evidence=context.evidence,
        evidence_probability=context.evidence_probability,
        ids=[piece.id for piece in context.pieces if piece.part in FOUND],
        degraded=context.degraded,
    )


async def composed(caller: Caller, query: str, budget: int, documents: bool = True) -> Context:
    """Compose the context of a question out of the caller's memories, sessions and documents."""
    stores = await newest_stores(caller) if documents else []
    return await caller.contexts.context(
        query,
        budget=budget,
        stores=[store.id for store in stores],
        hierarchy=caller.places or None,
        count_access=True,
    )


CONTEXT = Tool(
    "context",
    "Context for a task",
    "Everything that is known for a task in one text: standing instructions, facts, earlier sessions, documents."
    " Call it once at the beginning of a task.",
    AskContext,
    ContextResult,
    ask_context,
)
