"""Events to the output of a response whose process died, and a stored response to its events. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from memoranda.responses.events import Event, Telling
from memoranda.responses.values import Item, Response, ResponseUsage

TEXTS = {
    "response.output_text.delta": "text",
    "response.reasoning_text.delta": "text",
    "response.refusal.delta": "refusal",
}
"""The key of a part that a delta adds to."""
CALLS = {
    "response.function_call_arguments.delta": "arguments",
    "response.mcp_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
}
"""The key of an item that a delta adds to."""

ENDS = {"cancelled": "incomplete"}
"""The names of last events that differ from the status."""


def folded(events: Sequence[Event]) -> list[Item]:
    """The output items of the events, in order; those that are not done are `incomplete`."""
    items: dict[int, Item] = {}
    done: set[int] = set()
    for event in events:
        kind, place = event["type"], event.get("output_index")
        if place is None:
            continue
        if kind in ("response.output_item.added", "response.output_item.done"):
            items[place] = event["item"]
            if kind.endswith("done"):
                done.add(place)
        elif place in items and place not in done:
            _add(items[place], kind, event)
    for place, item in items.items():
        if place not in done and "status" in item:
            item["status"] = "incomplete"
    return [items[place] for place in sorted(items)]


def _add(item: Item, kind: str, event: dict[str, Any]) -> None:
    if kind in CALLS:
        item[CALLS[kind]] = (item.get(CALLS[kind]) or "") + event["delta"]
    elif kind == "response.content_part.added":
        item["content"].append(event["part"])
    elif kind in TEXTS:
        part = item["content"][event["content_index"]]
        part[TEXTS[kind]] += event["delta"]
    elif kind == "response.output_text.annotation.added":
        item["content"][event["content_index"]]["annotations"].append(event["annotation"])


def replayed(stored: Response, after: int = -1, include: Sequence[str] = ()) -> list[Event]:
    """Return the events of a response that has ended, numbered from 0, those above `after`: each text in one piece."""
    events: list[Event] = []
    response = msgspec.structs.replace(
        stored, status="in_progress", output=[], usage=ResponseUsage(), error=None, incomplete_details=None
    )
    telling = Telling(response, events.append, include=include)
    telling.state("response.created")
    telling.state("response.in_progress")
    for item in stored.output:
        _replay(telling, item)
    response.status, response.usage = stored.status, stored.usage
    response.error, response.incomplete_details = stored.error, stored.incomplete_details
    telling.state(f"response.{ENDS.get(stored.status, stored.status)}")
    return [event for event in events if event["sequence_number"] > after]


def _replay(telling: Telling, item: Item) -> None:
    kind, status = item["type"], item.get("status")
    begun = dict(item)
    if "status" in item:
        begun["status"] = "in_progress"
    if kind in ("message", "reasoning"):
        begun["content"] = []
    elif kind in ("function_call", "mcp_call"):
        begun["arguments"] = ""
    if kind == "mcp_call":
        begun |= {"output": None, "error": None}
    if kind == "message" and item.get("role") != "assistant":  # in a compacted conversation
        begun["content"] = item["content"]
        telling.begin(begun)
        telling.end(begun)
        return
    telling.begin(begun)
    if kind in ("message", "reasoning"):
        for part in item["content"]:
            _part(telling, begun, part)
    elif kind == "function_call":
        telling.arguments(begun, item["arguments"])
        telling.arguments_done(begun)
    elif kind == "mcp_call":
        telling.stage(begun, "in_progress")
        telling.arguments(begun, item["arguments"])
        telling.arguments_done(begun)
        telling.stage(begun, "failed" if status == "failed" else "completed")
    elif kind == "file_search_call":
        for stage in ("in_progress", "searching", "completed"):
            telling.stage(begun, stage)
    elif kind == "custom_tool_call":
        telling.input(begun)
    begun.update({key: value for key, value in item.items() if key not in ("id", "content")})
    telling.end(begun)


def _part(telling: Telling, item: Item, part: Item) -> None:
    """A part of a message or of reasoning, from its beginning to its end."""
    kind = part["type"]
    if kind == "output_text":
        telling.begin_part(item, {**part, "text": "", "annotations": [], "logprobs": []})
        telling.text(item, part["text"], part.get("logprobs"))
        telling.annotate(item, part.get("annotations") or [])
    elif kind == "refusal":
        telling.begin_part(item, {**part, "refusal": ""})
        telling.refusal(item, part["refusal"])
    else:
        telling.begin_part(item, {**part, "text": ""})
        telling.reasoning(item, part["text"])
    telling.end_part(item)
