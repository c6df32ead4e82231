"""The door to a language model: what it is asked, and the pieces in which it answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import Any, Literal

import msgspec

from memoranda.types import EvidenceLevel

Message = dict[str, Any]
"""A message as chat completions have it: `role` (system, developer, user, assistant, tool), `content` (text or parts),
and for tools `tool_calls` or `tool_call_id`."""

EndReason = Literal["stop", "length", "tool_calls", "content_filter"]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A text that was put before the model and can be cited: its marker's number, what it is, and where it is from."""

    number: int
    text: str
    title: str
    kind: Literal["document", "memory"] = "document"
    id: str = ""
    score: float = 0.0


class Ask(msgspec.Struct, kw_only=True):
    """One call of a model.

    `tools` and `tool_choice` are in the shape of chat completions. `model` names another model than the door's own.
    `max_tokens` bounds the answer. `sources` are the passages in `messages` that can be cited, which a model that
    only quotes goes by; `question` is what they are to answer, and `evidence` whether they are likely to (None: not
    known). `extra` goes to the provider as it stands.
    """

    messages: list[Message]
    tools: list[dict[str, Any]] = []
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    model: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    top_logprobs: int | None = None
    response_format: dict[str, Any] | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    extra: dict[str, Any] = {}
    question: str = ""
    sources: list[Source] = []
    evidence: EvidenceLevel | None = None
    stream: bool = True
    """Whether pieces are wanted as they come; without, the door may wait for the whole answer."""
    background: bool = False
    """Whether nobody waits for the answer, so that replies on the same endpoint go first."""


class TextDelta(msgspec.Struct, frozen=True):
    """More of the answer. `logprobs` as chat completions have them (`content` list), None when not asked for."""

    text: str
    logprobs: list[dict[str, Any]] | None = None


class ReasoningDelta(msgspec.Struct, frozen=True):
    """More of the model's reasoning, where it shows it."""

    text: str


class RefusalDelta(msgspec.Struct, frozen=True):
    """More of a refusal."""

    text: str


class ToolCallDelta(msgspec.Struct, frozen=True):
    """More of the tool call at `index`. The first of an index has `id` and `name`; later ones only arguments."""

    index: int
    arguments: str = ""
    id: str | None = None
    name: str | None = None


class TokenUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one call, as the provider counts them; `cached` and `reasoning` are parts of the two."""

    input: int
    output: int
    cached: int = 0
    reasoning: int = 0


class Ended(msgspec.Struct, frozen=True):
    """The answer is complete: always the last piece, and there is exactly one. `usage` is None where the provider
    does not say; `model` is the name it answers under."""

    reason: EndReason
    usage: TokenUsage | None = None
    model: str = ""


Piece = TextDelta | ReasoningDelta | RefusalDelta | ToolCallDelta | Ended


class Model(ABC):
    """A language model. `name` is what it answers under when an `Ask` names none."""

    name: str
    quotes_only: bool = False
    """Whether it only quotes the sources it is given, so that its answers must say so."""

    @abstractmethod
    def answer(self, ask: Ask) -> AsyncIterator[Piece]:
        """The answer, piece by piece as it comes, `Ended` last. Closing the iterator (`aclose`) stops the call.

        Raises:
            ModelUnavailable: it did not answer, or not in time; nothing came yet.
            ModelRefused: it will not take this request.
            ModelBroken: its answer ended early, or cannot be understood.
        """

    async def names(self) -> list[str]:
        """The models that can be asked for by name; at least its own."""
        return [self.name]

    def usage(self) -> dict[str, int]:
        """What it was asked since it was opened: requests, retries, failures, tokens in and out."""
        return {}

    def close(self) -> None:
        """Lets go of connections. Idempotent."""
        return
