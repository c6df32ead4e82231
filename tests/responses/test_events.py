"""The events of a response: numbered without a gap, in order, and together they are the response."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.config.agent_sections import Responses
from memoranda.errors import ModelBroken
from memoranda.providers.chat.base import (
    Ask,
    Ended,
    Model,
    Piece,
    ReasoningDelta,
    RefusalDelta,
    Source,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)
from memoranda.responses.events import EventEmitter, folded, item_id, response_of_item
from memoranda.responses.loop import Brief, Loop
from memoranda.responses.offers import offers
from memoranda.responses.plan import tools_of
from memoranda.responses.runs import Run
from memoranda.responses.tools.base import Turn
from memoranda.responses.values import MemoryUse, Response
from memoranda.text import tokens
from memoranda.types import Subject

pytestmark = pytest.mark.rows_in("sqlite")
DECLARED: list[dict[str, Any]] = [
    {"type": "function", "name": "find"},
    {"type": "custom", "name": "patch"},
    {"type": "memory_search"},
]
SETTINGS = Responses(memory_min_score=0.0)
LOGPROBS = [{"token": "a", "logprob": -0.1, "bytes": [97], "top_logprobs": []}]
TEXTS = st.sampled_from(["a", " b", "ü語", "👩‍👩", "[1]", "", "\n", "see [1] and [2]."])
SAID = st.one_of(
    st.builds(TextDelta, TEXTS, st.none() | st.just(LOGPROBS)),
    st.builds(ReasoningDelta, TEXTS),
    st.builds(RefusalDelta, TEXTS),
    st.builds(ToolCallDelta, st.integers(0, 2), st.sampled_from(['{"a', '": 1}', "", '{"input": "ü"}'])),
)
NAMES = st.sampled_from(["find", "patch", "memory_search", "fly"])
ENDS = st.sampled_from(["stop", "length", "content_filter", "tool_calls"])
TURNS = st.lists(
    st.tuples(st.lists(SAID, max_size=12), st.lists(NAMES, min_size=3, max_size=3), ENDS, st.booleans()),
    max_size=4,
)


class Speaking(Model):
    """Says these pieces, one list for each call; after the last it says `done`. One without an end breaks off."""

    name = "speaking"

    def __init__(self, turns: list[list[Piece]]) -> None:
        self.turns = turns

    async def answer(self, ask: Ask) -> AsyncIterator[Piece]:
        for piece in self.turns.pop(0) if self.turns else [TextDelta("done"), Ended("stop")]:
            await asyncio.sleep(0)
            yield piece
            if isinstance(piece, Ended):
                return
        raise ModelBroken("it broke off")


def spoken(said: list[Any], names: list[str], end: Any, whole: bool) -> list[Piece]:
    """The pieces with the first of each call named, as models do, and an end."""
    begun: set[int] = set()
    pieces: list[Piece] = []
    for piece in said:
        if isinstance(piece, ToolCallDelta) and piece.index not in begun:
            begun.add(piece.index)
            piece = ToolCallDelta(piece.index, piece.arguments, f"call_{piece.index}", names[piece.index])
        pieces.append(piece)
    return [*pieces, Ended(end, TokenUsage(input=3, output=2))] if whole else pieces


async def hear(core: Any, turns: list[list[Piece]]) -> tuple[list[dict[str, Any]], Response]:
    """The events of a response that a model's pieces make, and the response. Each event is what it was when it came."""
    declared = [tool for tool in DECLARED if tool["type"] != "memory_search"]
    brief = Brief(
        ask=Ask(messages=[]),
        around=list,
        items=[],
        offers=offers(declared, tools_of(DECLARED, SETTINGS)),
        turn=Turn(
            core=core,
            subject=Subject(),
            settings=SETTINGS,
            session_id="s",
            agent_id=None,
            memory=MemoryUse(),
            count=tokens.count,
        ),
        sources=[Source(number=1, text="first", title="a.txt", id="file_1")],
    )
    run = Run(Response(id="resp_1234", created_at=1, status="in_progress", model="m"))

    async def nowhere(_: Run) -> None:
        return

    run.begin(lambda run: Loop(brief, run.emitter, [Speaking(turns)]).run(), nowhere)
    kept: list[tuple[dict[str, Any], bytes]] = []
    async for batch in run:
        kept += [(event, msgspec.json.encode(event)) for event in batch]
    for event, was in kept:
        assert msgspec.json.encode(event) == was, "an event changed after it was told"
    return [msgspec.json.decode(was) for _, was in kept], await run.done()


class Heard:
    """A response put together from its events, as clients do it."""

    def __init__(self) -> None:
        self.output: list[dict[str, Any]] = []
        self.done: list[dict[str, Any] | None] = []
        self.open_parts: set[tuple[int, int]] = set()
        self.end: dict[str, Any] | None = None

    def take(self, event: dict[str, Any], number: int) -> None:
        assert event["sequence_number"] == number
        assert self.end is None, "something came after the end"
        kind = event["type"].removeprefix("response.")
        if kind in ("completed", "incomplete", "failed"):
            self.end = event["response"]
        elif kind not in ("created", "in_progress", "queued"):
            getattr(self, kind.replace(".", "_"), self.other)(event)

    def output_item_added(self, event: dict[str, Any]) -> None:
        assert event["response_id"] == "resp_1234"
        assert event["output_index"] == len(self.output)
        assert event["item"]["status"] == "in_progress"
        self.output.append(event["item"])
        self.done.append(None)

    def output_item_done(self, event: dict[str, Any]) -> None:
        item = self.item(event, event["item"]["id"])
        for index in range(len(item.get("content") or [])):
            assert (event["output_index"], index) not in self.open_parts
        for key in ("content", "arguments", "input"):
            if key in item and item["type"] != "mcp_call":
                assert event["item"][key] == item[key] or (key, item[key]) == ("arguments", "")
        self.done[event["output_index"]] = event["item"]

    def item(self, event: dict[str, Any], id_: str | None = None) -> dict[str, Any]:
        item = self.output[event["output_index"]]
        assert item["id"] == (id_ or event["item_id"])
        assert self.done[event["output_index"]] is None
        return item

    def part(self, event: dict[str, Any]) -> dict[str, Any]:
        item = self.item(event)
        assert (event["output_index"], event["content_index"]) in self.open_parts
        assert event["content_index"] == len(item["content"]) - 1
        part: dict[str, Any] = item["content"][-1]
        return part

    def content_part_added(self, event: dict[str, Any]) -> None:
        assert event["response_id"] == "resp_1234"
        item = self.item(event)
        assert event["content_index"] == len(item["content"])
        assert not {place for place in self.open_parts if place[0] == event["output_index"]}
        item["content"].append(event["part"])
        self.open_parts.add((event["output_index"], event["content_index"]))

    def content_part_done(self, event: dict[str, Any]) -> None:
        assert event["response_id"] == "resp_1234"
        assert event["part"] == self.part(event)
        self.open_parts.remove((event["output_index"], event["content_index"]))

    def output_text_delta(self, event: dict[str, Any]) -> None:
        part = self.part(event)
        part["text"] += event["delta"]
        part["logprobs"] += event["logprobs"]

    def output_text_annotation_added(self, event: dict[str, Any]) -> None:
        part = self.part(event)
        assert event["annotation_index"] == len(part["annotations"])
        part["annotations"].append(event["annotation"])

    def output_text_done(self, event: dict[str, Any]) -> None:
        assert (event["text"], event["logprobs"]) == (self.part(event)["text"], self.part(event)["logprobs"])

    def refusal_delta(self, event: dict[str, Any]) -> None:
        self.part(event)["refusal"] += event["delta"]

    def refusal_done(self, event: dict[str, Any]) -> None:
        assert event["refusal"] == self.part(event)["refusal"]

    def reasoning_text_delta(self, event: dict[str, Any]) -> None:
        self.part(event)["text"] += event["delta"]

    def reasoning_text_done(self, event: dict[str, Any]) -> None:
        assert event["text"] == self.part(event)["text"]

    def function_call_arguments_delta(self, event: dict[str, Any]) -> None:
        self.item(event)["arguments"] += event["delta"]

    def function_call_arguments_done(self, event: dict[str, Any]) -> None:
        item = self.item(event)
        assert event["arguments"] == (item["arguments"] or "{}")
        assert event["name"] == item["name"]

    def custom_tool_call_input_delta(self, event: dict[str, Any]) -> None:
        self.item(event)["input"] += event["delta"]

    def custom_tool_call_input_done(self, event: dict[str, Any]) -> None:
        assert event["input"] == self.item(event)["input"]

    def mcp_call_arguments_delta(self, event: dict[str, Any]) -> None:
        self.item(event)["arguments"] += event["delta"]

    def mcp_call_arguments_done(self, event: dict[str, Any]) -> None:
        assert event["arguments"] == self.item(event)["arguments"]

    def other(self, event: dict[str, Any]) -> None:
        assert event["type"].startswith(("response.mcp_call.", "response.file_search_call.")), event["type"]
        self.item(event)


def check_whole(events: list[dict[str, Any]], response: Response) -> Heard:
    heard = Heard()
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    assert events[0]["response"]["output"] == events[1]["response"]["output"] == []
    for number, event in enumerate(events):
        heard.take(event, number)
    assert heard.end is not None
    assert heard.open_parts == set()
    assert heard.end["output"] == heard.done
    assert heard.end["status"] == response.status
    return heard


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TURNS)
def test_events_together_are_the_response(house: Any, turns: list[Any]) -> None:
    """Whatever a model says, in whatever order, to its end or not."""
    pieces = [spoken(*turn) for turn in turns]
    events, response = house.portal.call(hear(house.inner.core, pieces))
    heard = check_whole(events, response)
    for item in heard.done:
        assert item is not None
        assert item["status"] in ("completed", "incomplete", "failed")
        assert not any(key.startswith("_") for key in item)
    if response.status == "completed":
        assert all(item["status"] != "incomplete" for item in response.output)
        text = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
        parts = [part for item in response.output for part in item.get("content", ())]
        assert text == "".join(part["text"] for part in parts if part["type"] == "output_text")


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TURNS, st.data())
def test_events_that_break_off_are_put_together(house: Any, turns: list[Any], data: st.DataObject) -> None:
    """As when a process dies: what was told by then, and no more."""
    events, _ = house.portal.call(hear(house.inner.core, [spoken(*turn) for turn in turns]))
    at = data.draw(st.integers(0, len(events)))
    told = msgspec.json.decode(msgspec.json.encode(events[:at]))
    items = folded(told)
    added = [event for event in events[:at] if event["type"] == "response.output_item.added"]
    assert [item["id"] for item in items] == [event["item"]["id"] for event in added]
    done = {
        event["item"]["id"]: event["item"]
        for event in events[:at]
        if event["type"] == "response.output_item.done"
    }
    for item in items:
        if item["id"] in done:
            assert item == msgspec.json.decode(msgspec.json.encode(done[item["id"]]))
        else:
            assert item.get("status", "incomplete") == "incomplete"
    text = "".join(event["delta"] for event in events[:at] if event["type"] == "response.output_text.delta")
    parts = [part for item in items for part in item.get("content", ())]
    assert text == "".join(part["text"] for part in parts if part["type"] == "output_text")


def test_two_calls_with_one_id_are_told_apart(house: Any) -> None:
    """Some servers number the calls of every answer from 0, or name them all alike."""
    pieces: list[Piece] = [
        ToolCallDelta(0, "{}", "call_0", "find"),
        ToolCallDelta(1, "{}", "call_0", "find"),
        ToolCallDelta(2, "{}", None, "find"),
        Ended("tool_calls"),
    ]
    _, response = house.portal.call(hear(house.inner.core, [pieces]))
    ids = [item["call_id"] for item in response.output]
    assert ids[0] == "call_0"
    assert len(set(ids)) == 3


def test_ids_tell_where_an_item_is_from() -> None:
    for place in (0, 9, 300):
        id_ = item_id("msg", "resp_12ab", place)
        assert id_.startswith("msg_")
        assert response_of_item(id_) == "resp_12ab"
    assert response_of_item("") == response_of_item("x") == "resp_"


def test_results_are_shown_where_they_are_asked_for() -> None:
    item = {
        "id": "fs_",
        "type": "file_search_call",
        "_results": [{"text": "found"}],
        "results": None,
        "_told": "x",
    }
    for include, shown in ((["file_search_call.results"], [{"text": "found"}]), ([], None)):
        seen = EventEmitter(
            Response(id="resp_1", created_at=1, status="in_progress", model="m"),
            lambda event: None,
            0,
            include,
        ).visible(dict(item))
        assert (seen["results"], "_told" in seen) == (shown, False)
