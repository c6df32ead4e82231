"""Prompts from memories and documents: one assembler for every host."""

from memoranda.contexts.contexts import Contexts
from memoranda.contexts.values import (
    ChatMessage,
    Citation,
    Context,
    ContextFields,
    ContextPart,
    ContextPiece,
    ContextQuery,
    LeftOut,
    RecentMessage,
)

__all__ = [
    "ChatMessage",
    "Citation",
    "Context",
    "ContextFields",
    "ContextPart",
    "ContextPiece",
    "ContextQuery",
    "Contexts",
    "LeftOut",
    "RecentMessage",
]
