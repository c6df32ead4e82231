"""The interface of language models: asks, and the pieces of answers."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable
from typing import Any, Literal

import msgspec

from memoranda.errors import ModelBroken
from memoranda.types import EvidenceLevel

Message = dict[str, Any]
"""A message of chat completions: `role` (system, developer, user, assistant, tool), `content` (text or parts),
and for tools `tool_calls` or `tool_call_id`."""

EndReason = Literal["stop", "length", "tool_calls", "content_filter"]
NOT_CHAT_MODELS = re.compile(
    r"embed|whisper|\btts\b|dall-e|moderation|transcri|rerank|realtime|image|\bsora\b|\bbge\b|\bocr\b|"
    r"^(?:babbage|davinci)-\d",
    re.IGNORECASE,
)
"""Names of models that are no chat models, which servers list, too."""


Form = Literal["text", "fact", "summary"]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A text in the prompt that can be cited: its marker's number, or the `mark` that it is cited by instead, its kind,
    and its origin. `columns` is the row that names the columns of the table in which the text begins; `about` is what
    it took the place of, and `question` the message that it replies to, whose words it may lack. `form` is `fact` for a
    fact, a whole statement, and `summary` for a summary, which repeats what messages and facts say."""

    number: int
    text: str
    title: str
    mark: str = ""
    kind: Literal["document", "memory"] = "document"
    id: str = ""
    score: float = 0.0
    about: str = ""
    question: str = ""
    form: Form = "text"
    columns: str | None = None


class Ask(msgspec.Struct, kw_only=True):
    """One call of a model.

    `tools` and `tool_choice` are in the form of chat completions. `model` names another model than the default one.
    `max_tokens` bounds the answer. `sources` are the passages in `messages` that can be cited, which a model that
    only quotes uses; `question` is the question that they should answer, and `evidence` how likely they do (None: not
    known). `extra` is sent to the provider unchanged.
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
    """True if pieces are wanted as they arrive; otherwise the model may wait for the whole answer."""
    background: bool = False
    """True for background work: replies on the same endpoint have priority."""
    seconds: float | None = None
    """Seconds that a background answer may take, without the time that it waits for replies; None: no limit."""


class TextDelta(msgspec.Struct, frozen=True):
    """More of the answer. `logprobs` as in chat completions (`content` list), None if not requested."""

    text: str
    logprobs: list[dict[str, Any]] | None = None


class ReasoningDelta(msgspec.Struct, frozen=True):
    """More of the model's reasoning, if it shows it."""

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
    """The answer is complete: always the last piece, exactly one. `usage` is None if the provider does not report it;
    `model` is the name that the provider returns."""

    reason: EndReason
    usage: TokenUsage | None = None
    model: str = ""


class AnswerTimedOut(ModelBroken):
    """A background answer did not end within `Ask.seconds`."""

    usage: TokenUsage


Piece = TextDelta | ReasoningDelta | RefusalDelta | ToolCallDelta | Ended


class Model(ABC):
    """A language model. `name` is its default model, for an `Ask` that names none."""

    name: str
    quotes_only: bool = False
    """True if it only quotes the given sources, so that its answers must say so."""

    @abstractmethod
    def answer(self, ask: Ask) -> AsyncIterator[Piece]:
        """Yield the pieces of the answer as they arrive, `Ended` last. Closing the iterator (`aclose`) stops the call.

        Raises:
            ModelUnavailable: it did not answer, or not in time; no piece was yielded.
            ModelRefused: it refuses this request.
            ModelBroken: its answer ended early, or cannot be understood.
            AnswerTimedOut: a background answer did not end within `ask.seconds`; no piece was yielded.
        """

    async def names(self) -> list[str]:
        """Return the names of the available models; at least its own."""
        return [self.name]

    def usage(self) -> dict[str, int]:
        """Return counts since it was opened: requests, retries, failures, tokens in and out."""
        return {}

    def close(self) -> None:
        """Close the connections. Idempotent."""
        return


def chat_models(names: Iterable[str], own: str) -> list[str]:
    """Return the names of chat models, each once; `own` always counts as one."""
    return [name for name in dict.fromkeys(names) if name == own or not NOT_CHAT_MODELS.search(name)]
