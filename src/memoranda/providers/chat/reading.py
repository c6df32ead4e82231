"""Parse chunks of an answer into pieces, and its end. No I/O."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from memoranda.providers.chat.base import (
    Ended,
    EndReason,
    Piece,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    TokenUsage,
)
from memoranda.providers.chat.calls import Calls, Nameless
from memoranda.providers.chat.chunks import CallPart, Choice, Chunk, MessageDelta, counted, text_of
from memoranda.providers.chat.thinking import Thinking
from memoranda.providers.chat.written import WrittenCalls
from memoranda.text.tokens import well_formed

REASONS: dict[str, EndReason] = {
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}
"""The end reason by the server's finish reason in lower case; any other means `stop`."""
FAILED = frozenset({"error", "abort", "aborted", "cancelled", "network_error"})


class Nonsense(Exception):
    """The response is not an answer."""


class Reading:
    """One answer as it arrives. `answered` after the first choice, `finished` is the server's finish reason; `pieces`
    counts the pieces read. Calls of `functions` that are written in the text are parsed, see `written`."""

    def __init__(self, inline_thinking: bool, functions: Collection[str] = ()) -> None:
        self.pieces = 0
        self.answered = False
        self.finished: str | None = None
        self.usage: TokenUsage | None = None
        self.model: str | None = None
        self._calls = Calls()
        self._thinking = Thinking() if inline_thinking else None
        self._written = WrittenCalls(functions) if functions else None
        self._half = ""
        self._tokens: list[dict[str, Any]] = []

    def feed(self, chunk: Chunk) -> list[Piece]:
        """Return the pieces in a chunk, or in a whole answer.

        Raises:
            Nonsense: the server gave up in the middle.
        """
        if chunk.usage is not None or chunk.x_groq is not None:
            self.usage = counted(chunk) or self.usage
        if chunk.model:
            self.model = chunk.model
        if not chunk.choices:
            return []
        self.answered = True
        choice = chunk.choices[0]
        said = choice.delta or choice.message
        pieces = self._said(said, choice) if said is not None else []
        if choice.finish_reason:
            self.finished = choice.finish_reason.lower()
            if self.finished in FAILED:
                raise Nonsense(f"it ended with {choice.finish_reason!r}")
        self.pieces += len(pieces)
        return pieces

    def end(self, model: str) -> list[Piece]:
        """Return the buffered pieces, and the end.

        Raises:
            Nonsense: a tool was called without a name.
        """
        pieces = self._unwritten(self._thinking.end() if self._thinking is not None else [])
        if self._half:
            pieces.append(TextDelta("\ufffd"))
        if self._written is not None:
            text, parts = self._written.end()
            pieces += [TextDelta(text)] if text else []
            pieces += self._calls.feed(parts)
        try:
            pieces += self._calls.end()
        except Nameless as exc:
            raise Nonsense("it called a tool without a name") from exc
        return [*pieces, Ended(self._reason(), self.usage, self.model or model)]

    @property
    def extras(self) -> dict[str, Any]:
        """The extra content to send back with a call (`extra_content`), by the id of the call."""
        return self._calls.extras()

    def _reason(self) -> EndReason:
        reason = REASONS.get(self.finished or "", "stop")
        if self._calls:
            return "tool_calls" if reason == "stop" else reason
        return "stop" if reason == "tool_calls" else reason

    def _said(self, said: MessageDelta, choice: Choice) -> list[Piece]:
        pieces: list[Piece] = []
        thought = said.reasoning_content or said.reasoning or said.thinking
        if thought and (text := "".join(text_of(thought))):
            pieces.append(ReasoningDelta(well_formed(text)))
        if said.content:
            self._content(said.content, choice.logprobs, pieces)
        if said.refusal:
            pieces.append(RefusalDelta(well_formed(said.refusal)))
        parts = said.tool_calls
        if said.function_call is not None:
            parts = [*(parts or []), CallPart(index=0, function=said.function_call)]
        if parts:
            if self._thinking is not None:
                pieces += self._unwritten(self._thinking.before_calls())
            if self._written is not None:
                # tool calls in the field for them take precedence over their text
                text, _ = self._written.end()
                pieces += [TextDelta(text)] if text.strip() else []
            pieces += self._calls.feed(parts)
        return pieces

    def _content(
        self, content: str | list[Any], logprobs: dict[str, Any] | None, output: list[Piece]
    ) -> None:
        text, thought = (content, "") if isinstance(content, str) else text_of(content)
        if thought:
            output.append(ReasoningDelta(thought))
        text = self._whole(text)
        if not text:
            return
        tokens = logprobs.get("content") if logprobs else None
        pieces: list[Piece] = [TextDelta(text)]
        if self._thinking is not None:
            pieces = self._thinking.feed(text)
        pieces = self._unwritten(pieces)
        output += self._with(tokens, pieces) if tokens or self._tokens else pieces

    def _unwritten(self, pieces: list[Piece]) -> list[Piece]:
        """Return the pieces without the text that may be a call."""
        if self._written is None:
            return pieces
        certain: list[Piece] = []
        for piece in pieces:
            if isinstance(piece, TextDelta):
                text = self._written.feed(piece.text)
                certain += [TextDelta(text, piece.logprobs)] if text else []
            else:
                certain.append(piece)
        return certain

    def _with(self, tokens: list[dict[str, Any]] | None, pieces: list[Piece]) -> list[Piece]:
        """Return the pieces with the log probabilities on the first text; those of reasoning are left out."""
        self._tokens += tokens or []
        for at, piece in enumerate(pieces):
            if isinstance(piece, TextDelta):
                pieces[at], self._tokens = TextDelta(piece.text, self._tokens or None), []
            elif isinstance(piece, ReasoningDelta):
                self._tokens = []
        return pieces

    def _whole(self, text: str) -> str:
        """Return the text with surrogate pairs joined; a first half waits for its second."""
        if text.isascii() and not self._half:
            return text
        text, self._half = self._half + text, ""
        try:
            text.encode()
        except UnicodeEncodeError:
            if "\ud800" <= text[-1] <= "\udbff":
                text, self._half = text[:-1], text[-1]
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return text
