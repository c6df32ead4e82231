"""One call of a model with rules and material, and its whole answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import Any, NamedTuple, TypedDict, Unpack

from memoranda.errors import ModelBroken
from memoranda.providers.chat.base import Ask, Ended, Model, Piece, TextDelta, TokenUsage, ToolCallDelta

Meter = Callable[[TokenUsage], None]


THINKING = 2_000
"""Tokens that a model may write beyond a summary, for those that think first."""
EXTRACTIVE = "extractive"
"""The author of a summary that no model wrote: the sentences that say most."""


def instructed(rules: str, material: str, max_tokens: int, **options: Unpack[AskFields]) -> Ask:
    """Return a call for one whole answer of at most `max_tokens` tokens: what to do with the material by these
    rules."""
    messages = [{"role": "system", "content": rules}, {"role": "user", "content": material}]
    return Ask(messages=messages, max_tokens=max_tokens, stream=False, **options)


def notes_of(rules: str, material: str, most: int, **options: Unpack[AskFields]) -> Ask:
    """Return a call for notes of at most `most` tokens; the rules name that number as `{words}`."""
    rules = rules.format(words=max(20, most * 2 // 3))
    return instructed(rules, f"{material}\n\nThe notes:", most + THINKING, **options)


class AskFields(TypedDict, total=False):
    """Fields of `Ask` as keywords."""

    model: str | None
    temperature: float
    response_format: dict[str, Any] | None
    question: str
    seconds: float | None


class Completion(NamedTuple):
    """The text of an answer, and the name of the model."""

    text: str
    name: str


async def complete(model: Model, ask: Ask, meter: Meter | None = None) -> Completion:
    """Return the whole answer; `meter` is called with its usage.

    Raises:
        ModelError: the answer is empty, or broke off.
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
    return Completion(text, name)


def characters(piece: Piece) -> int:
    """Return the number of characters of the answer in a piece."""
    if isinstance(piece, Ended):
        return 0
    return len(piece.arguments if isinstance(piece, ToolCallDelta) else piece.text)


def estimated(ask: Ask, complete: int) -> TokenUsage:
    """Return the estimated usage of a call whose provider reports none: a token for every four characters of the
    messages, and of the `complete` characters of the answer."""
    asked = sum(
        len(message["content"]) for message in ask.messages if isinstance(message.get("content"), str)
    )
    return TokenUsage(input=-(-asked // 4), output=-(-complete // 4))
