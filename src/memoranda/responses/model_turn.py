"""One turn of a model, streamed as events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from memoranda.errors import ModelBroken
from memoranda.providers.chat.base import (
    Ended,
    Piece,
    ReasoningDelta,
    RefusalDelta,
    Source,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)
from memoranda.responses import citations
from memoranda.responses.events import EventEmitter
from memoranda.responses.offers import Offers
from memoranda.responses.steps import ModelTurn, ToolCall
from memoranda.responses.values import Item
from memoranda.store.ids import new_id


class Calling(msgspec.Struct):
    """A call as received so far. `item` is set for a call of the client, whose arguments are streamed."""

    id: str
    name: str
    arguments: list[str] = msgspec.field(default_factory=list)
    item: Item | None = None


class Listening:
    """Receives one turn of a model and emits its events: reasoning, text with its citations, calls of the client's
    functions. Calls that run here are left to the loop."""

    def __init__(self, emitter: EventEmitter, offers: Offers, sources: Sequence[Source]) -> None:
        self._telling = emitter
        self._offers = offers
        self._sources = sources
        self._reasoning: Item | None = None
        self._message: Item | None = None
        self._calls: dict[int, Calling] = {}
        self._text: list[str] = []
        self.began = False
        """True once an event was emitted."""
        self.usage: TokenUsage | None = None
        self.model = ""

    async def hear(self, pieces: AsyncIterator[Piece]) -> ModelTurn:
        """The whole turn.

        Raises:
            ModelError: as `Model.answer`. Items that were emitted before are still open.
        """
        ended: Ended | None = None
        async with aclosing(pieces) as stream:  # type: ignore[type-var]
            async for piece in stream:
                if isinstance(piece, TextDelta):
                    self._say(piece)
                elif isinstance(piece, ToolCallDelta):
                    self._call(piece)
                elif isinstance(piece, ReasoningDelta):
                    self._think(piece)
                elif isinstance(piece, RefusalDelta):
                    self._refuse(piece)
                else:
                    ended = piece
        if ended is None:
            raise ModelBroken("the language model's answer ended without an end")
        self.usage, self.model = ended.usage, ended.model
        return self._close(ended)

    # --- pieces ------------------------------------------------------------------------------------

    def _say(self, piece: TextDelta) -> None:
        if not piece.text:
            return
        message = self._begin("output_text")
        self._text.append(piece.text)
        self._telling.text(message, piece.text, piece.logprobs)

    def _refuse(self, piece: RefusalDelta) -> None:
        self._telling.refusal(self._begin("refusal"), piece.text)

    def _begin(self, kind: str) -> Item:
        """The message, with a part of this kind at its end."""
        self.began = True
        self._end_reasoning()
        if self._message is None:
            self._message = self._telling.begin_message()
        content = self._message["content"]
        if not content or content[-1]["type"] != kind:
            if content:
                self._end_part(self._message)
            text = {"type": kind, "text": "", "annotations": [], "logprobs": []}
            self._telling.begin_part(
                self._message, text if kind == "output_text" else {"type": kind, "refusal": ""}
            )
        return self._message

    def _think(self, piece: ReasoningDelta) -> None:
        self.began = True
        if self._reasoning is None:
            self._reasoning = self._telling.begin_reasoning()
            self._telling.begin_part(self._reasoning, {"type": "reasoning_text", "text": ""})
        self._telling.reasoning(self._reasoning, piece.text)

    def _call(self, piece: ToolCallDelta) -> None:
        calling = self._calls.get(piece.index)
        if calling is None:
            calling = self._calls[piece.index] = Calling(self._own(piece.id), piece.name or "")
            if calling.name in self._offers.functions:
                self._begin_call(calling)
        if piece.arguments:
            calling.arguments.append(piece.arguments)
            if calling.item is not None and calling.item["type"] == "function_call":
                self._telling.arguments(calling.item, piece.arguments)

    def _own(self, id_: str | None) -> str:
        """The id of a call, a new one if the model has given the same id to another call."""
        taken = {calling.id for calling in self._calls.values()}
        return id_ if id_ and id_ not in taken else new_id("call_")

    def _begin_call(self, calling: Calling) -> None:
        self.began = True
        self._end_reasoning()
        self._end_message("completed")
        custom = calling.name in self._offers.custom
        space, name = self._offers.namespaced.get(calling.name, (None, calling.name))
        calling.item = {
            "id": new_id("ctc_" if custom else "fc_"),
            "type": "custom_tool_call" if custom else "function_call",
            "status": "in_progress",
            "call_id": calling.id,
            "name": name,
            "input" if custom else "arguments": "",
        }
        if space is not None:
            calling.item["namespace"] = space
        self._telling.begin(calling.item)

    # --- ends --------------------------------------------------------------------------------------

    def _close(self, ended: Ended) -> ModelTurn:
        status = "incomplete" if ended.reason in ("length", "content_filter") else "completed"
        self._end_reasoning()
        self._end_message(status)
        for _, calling in sorted(self._calls.items()):
            if calling.item is not None:
                self._end_call(calling, calling.item, status)
        calls = [
            ToolCall(call.id, call.name, "".join(call.arguments)) for _, call in sorted(self._calls.items())
        ]
        return ModelTurn(ended.reason, "".join(self._text), calls)

    def _end_call(self, calling: Calling, item: Item, status: str) -> None:
        item["status"] = status
        if item["type"] == "function_call":
            item["arguments"] = item["arguments"] or "{}"
            self._telling.arguments_done(item)
        else:
            item["input"] = _input("".join(calling.arguments))
            self._telling.input(item)
        self._telling.end(item)

    def _end_reasoning(self) -> None:
        if self._reasoning is not None:
            self._telling.end_part(self._reasoning)
            self._reasoning["status"] = "completed"
            self._telling.end(self._reasoning)
            self._reasoning = None

    def _end_message(self, status: str) -> None:
        if self._message is not None:
            self._end_part(self._message)
            self._message["status"] = status
            self._telling.end(self._message)
            self._message = None

    def _end_part(self, message: Item) -> None:
        part = message["content"][-1]
        if part["type"] == "output_text" and self._sources:
            self._telling.annotate(message, citations.annotations(part["text"], self._sources))
        self._telling.end_part(message)

    def cut(self) -> None:
        """Ends the parts of an interrupted text, with its citations; the items are left open."""
        if self._reasoning is not None:
            self._telling.end_part(self._reasoning)
        if self._message is not None and self._message["content"]:
            self._end_part(self._message)


def _input(arguments: str) -> str:
    """The text that a custom tool is called with."""
    try:
        value: Any = msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return arguments
    return value["input"] if isinstance(value, dict) and isinstance(value.get("input"), str) else arguments
