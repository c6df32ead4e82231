"""The events of a response, in the order and with the numbers that clients expect, and the response they build."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from memoranda.responses.values import Item, Response, ResponseUsage, message, shown
from memoranda.store.ids import new_id

Event = dict[str, Any]
"""One event: its `type`, its `sequence_number`, and its data."""


class EventEmitter:
    """Emits the events of one response as it grows. Every change to `response` goes through here and is an event for
    `sink`. Items are appended when they begin and are the same objects until they end."""

    def __init__(
        self, response: Response, sink: Callable[[Event], None], first: int = 0, include: Sequence[str] = ()
    ) -> None:
        self.response = response
        self.next = first
        self._sink = sink
        self._results = "file_search_call.results" in include
        self._open: dict[str, int] = {}

    def _emit(self, kind: str, fields: Event) -> None:
        event = {"type": kind, "sequence_number": self.next, **fields}
        self.next += 1
        self._sink(event)

    def state(self, kind: str) -> None:
        """The whole response, as `response.created`, `response.in_progress`, `response.completed`, ..."""
        self._emit(kind, {"response": self.copy()})

    def copy(self) -> dict[str, Any]:
        """The current response, as a client sees it."""
        response = self.response
        fields = {
            name: value
            for name in response.__struct_fields__
            if (value := getattr(response, name)) is not msgspec.UNSET
        }
        return fields | {
            "usage": msgspec.to_builtins(response.usage),
            "output": [self.visible(item) for item in response.output],
            "extensions": dict(response.extensions),
        }

    def visible(self, item: Item) -> Item:
        """The current item, as the client asked to see it."""
        return visible(item, self._results)

    # --- items -------------------------------------------------------------------------------------

    def begin(self, item: Item) -> int:
        """Adds an item to the output; its place there."""
        place = len(self.response.output)
        item["id"] = item_id(item["id"].partition("_")[0], self.response.id, place)
        self.response.output.append(item)
        self._open[item["id"]] = place
        self._item("added", place, item)
        return place

    def end(self, item: Item) -> None:
        """Emits that an item is done."""
        place = self._open.pop(item["id"])
        self._item("done", place, item)

    def _item(self, stage: str, place: int, item: Item) -> None:
        where = {"response_id": self.response.id, "output_index": place}
        self._emit(f"response.output_item.{stage}", {**where, "item": self.visible(item)})

    def stage(self, item: Item, stage: str) -> None:
        """Emits the progress of a call: `response.file_search_call.searching` and the like."""
        kind = f"response.{item['type']}.{stage}"
        self._emit(kind, {"output_index": self._open[item["id"]], "item_id": item["id"]})

    def arguments(self, item: Item, delta: str) -> None:
        """More of a function's arguments."""
        item["arguments"] += delta
        kind = f"response.{_family(item)}_arguments.delta"
        place = self._open[item["id"]]
        self._emit(kind, {"item_id": item["id"], "output_index": place, "delta": delta})

    def arguments_done(self, item: Item) -> None:
        """All of a call's arguments."""
        place = {"item_id": item["id"], "output_index": self._open[item["id"]]}
        done = {**place, "name": item["name"], "arguments": item["arguments"]}
        self._emit(f"response.{_family(item)}_arguments.done", done)

    def input(self, item: Item) -> None:
        """All of the text that a custom tool is called with."""
        place = {"item_id": item["id"], "output_index": self._open[item["id"]]}
        self._emit("response.custom_tool_call_input.delta", {**place, "delta": item["input"]})
        self._emit("response.custom_tool_call_input.done", {**place, "input": item["input"]})

    def end_open(self, status: str) -> None:
        """Ends every open item with this status; texts end where they are."""
        for item in list(self.response.output):
            if item["id"] in self._open:
                if "status" in item:
                    item["status"] = status
                self.end(item)

    # --- texts -------------------------------------------------------------------------------------

    def begin_message(self) -> Item:
        """A new message of the assistant, empty."""
        item = message("assistant", [], "in_progress")
        self.begin(item)
        return item

    def begin_reasoning(self) -> Item:
        """A new reasoning item, empty."""
        item: Item = {
            "id": new_id("rs_"),
            "type": "reasoning",
            "status": "in_progress",
            "summary": [],
            "content": [],
        }
        self.begin(item)
        return item

    def begin_part(self, item: Item, part: Item) -> None:
        """A new part at the end of an item's content."""
        item["content"].append(part)
        self._part("added", item, _copied(part))

    def text(self, item: Item, delta: str, logprobs: list[dict[str, Any]] | None = None) -> None:
        """More of the text of a message's last part."""
        part = item["content"][-1]
        part["text"] += delta
        if logprobs:
            part["logprobs"] += logprobs
        place = self._open[item["id"]]
        # Written out: this is what is done for every token.
        event = {
            "type": "response.output_text.delta",
            "sequence_number": self.next,
            "item_id": item["id"],
            "output_index": place,
            "content_index": len(item["content"]) - 1,
            "delta": delta,
            "logprobs": logprobs or [],
        }
        self.next += 1
        self._sink(event)

    def reasoning(self, item: Item, delta: str) -> None:
        """More of the reasoning."""
        item["content"][-1]["text"] += delta
        self._emit("response.reasoning_text.delta", {**self._at(item), "delta": delta})

    def refusal(self, item: Item, delta: str) -> None:
        """More of a refusal."""
        item["content"][-1]["refusal"] += delta
        self._emit("response.refusal.delta", {**self._at(item), "delta": delta})

    def annotate(self, item: Item, annotations: Sequence[Item]) -> None:
        """Citations of the last part."""
        part = item["content"][-1]
        for annotation in annotations:
            where = {**self._at(item), "annotation_index": len(part["annotations"])}
            part["annotations"].append(annotation)
            self._emit("response.output_text.annotation.added", {**where, "annotation": annotation})

    def end_part(self, item: Item) -> None:
        """Emits that the last part is done."""
        part = item["content"][-1]
        where = self._at(item)
        if part["type"] == "output_text":
            done = {**where, "text": part["text"], "logprobs": part["logprobs"]}
            self._emit("response.output_text.done", done)
        elif part["type"] == "refusal":
            self._emit("response.refusal.done", {**where, "refusal": part["refusal"]})
        else:
            self._emit("response.reasoning_text.done", {**where, "text": part["text"]})
        self._part("done", item, dict(part))

    def _part(self, stage: str, item: Item, part: Item) -> None:
        where = {"response_id": self.response.id, **self._at(item)}
        self._emit(f"response.content_part.{stage}", {**where, "part": part})

    def _at(self, item: Item) -> Event:
        return {
            "item_id": item["id"],
            "output_index": self._open[item["id"]],
            "content_index": len(item["content"]) - 1,
        }


def visible(item: Item, results: bool) -> Item:
    """A copy of an item as a client sees it; the results of a search only if they are requested."""
    seen = dict(shown(item))
    if item["type"] == "file_search_call":
        seen["results"] = (item.get("_results") or item.get("results") or []) if results else None
    if isinstance(content := item.get("content"), list):
        seen["content"] = [_copied(part) if isinstance(part, dict) else part for part in content]
    return seen


def _copied(part: Item) -> Item:
    return {key: list(value) if isinstance(value, list) else value for key, value in part.items()}


def item_id(kind: str, response_id: str, place: int) -> str:
    """The id of an output item: it contains the id of its response, so that a reference to it can be resolved."""
    return f"{kind}_{response_id.removeprefix('resp_')}{place:04x}"


def response_of_item(id_: str) -> str:
    """The id of the response that an output item is of, if it is an id of ours."""
    return f"resp_{id_.partition('_')[2][:-4]}"


def _family(item: Item) -> str:
    return "mcp_call" if item["type"] == "mcp_call" else "function_call"


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
    emitter = EventEmitter(response, events.append, include=include)
    emitter.state("response.created")
    emitter.state("response.in_progress")
    for item in stored.output:
        _replay(emitter, item)
    response.status, response.usage = stored.status, stored.usage
    response.error, response.incomplete_details = stored.error, stored.incomplete_details
    emitter.state(f"response.{ENDS.get(stored.status, stored.status)}")
    return [event for event in events if event["sequence_number"] > after]


def _replay(emitter: EventEmitter, item: Item) -> None:
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
        emitter.begin(begun)
        emitter.end(begun)
        return
    emitter.begin(begun)
    if kind in ("message", "reasoning"):
        for part in item["content"]:
            _part(emitter, begun, part)
    elif kind == "function_call":
        emitter.arguments(begun, item["arguments"])
        emitter.arguments_done(begun)
    elif kind == "mcp_call":
        emitter.stage(begun, "in_progress")
        emitter.arguments(begun, item["arguments"])
        emitter.arguments_done(begun)
        emitter.stage(begun, "failed" if status == "failed" else "completed")
    elif kind == "file_search_call":
        for stage in ("in_progress", "searching", "completed"):
            emitter.stage(begun, stage)
    elif kind == "custom_tool_call":
        emitter.input(begun)
    begun.update({key: value for key, value in item.items() if key not in ("id", "content")})
    emitter.end(begun)


def _part(emitter: EventEmitter, item: Item, part: Item) -> None:
    """A part of a message or of reasoning, from its beginning to its end."""
    kind = part["type"]
    if kind == "output_text":
        emitter.begin_part(item, {**part, "text": "", "annotations": [], "logprobs": []})
        emitter.text(item, part["text"], part.get("logprobs"))
        emitter.annotate(item, part.get("annotations") or [])
    elif kind == "refusal":
        emitter.begin_part(item, {**part, "refusal": ""})
        emitter.refusal(item, part["refusal"])
    else:
        emitter.begin_part(item, {**part, "text": ""})
        emitter.reasoning(item, part["text"])
    emitter.end_part(item)
