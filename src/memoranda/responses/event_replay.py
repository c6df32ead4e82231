"""What a client has put together from the events so far: the output of a response whose process died."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memoranda.responses.events import Event
from memoranda.responses.values import Item

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


def folded(events: Sequence[Event]) -> list[Item]:
    """The output items that the events tell of, in order; those that are not done are `incomplete`."""
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
