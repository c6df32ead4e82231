"""One question to a model, and all that it says."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import NamedTuple

from memoranda.errors import ModelBroken
from memoranda.providers.chat.base import Ask, Ended, Model, Piece, TextDelta, TokenUsage, ToolCallDelta

Meter = Callable[[TokenUsage], None]


class Said(NamedTuple):
    """What a model said, and the name it said it under."""

    text: str
    name: str


async def said(model: Model, ask: Ask, meter: Meter | None = None) -> Said:
    """The whole answer; `meter` hears what it cost.

    Raises:
        ModelError: it says nothing, or broke off.
    """
    pieces: list[str] = []
    name = ""
    usage: TokenUsage | None = None
    async with aclosing(model.answer(ask)) as coming:  # type: ignore[type-var]
        async for piece in coming:
            if isinstance(piece, TextDelta):
                pieces.append(piece.text)
            elif isinstance(piece, Ended):
                name = piece.model
                usage = piece.usage
    if meter is not None:
        meter(usage or estimated(ask, sum(map(len, pieces))))
    text = "".join(pieces).strip()
    if not text:
        raise ModelBroken("the model was asked and said nothing")
    return Said(text, name)


def characters(piece: Piece) -> int:
    """Characters of the answer in a piece of it."""
    if isinstance(piece, Ended):
        return 0
    return len(piece.arguments if isinstance(piece, ToolCallDelta) else piece.text)


def estimated(ask: Ask, said: int) -> TokenUsage:
    """What a call cost whose provider does not say: a token for every four characters, of the question and of the
    `said` characters of the answer."""
    asked = sum(len(one["content"]) for one in ask.messages if isinstance(one.get("content"), str))
    return TokenUsage(input=-(-asked // 4), output=-(-said // 4))
