"""Items as a model of chat completions reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from memoranda.providers.chat.base import Message
from memoranda.responses.compaction import decode
from memoranda.responses.items import CALLS, OUTPUTS, broken_off, output_text, paired, text_of
from memoranda.responses.offers import in_namespace, place_of
from memoranda.responses.values import Item
from memoranda.text import prompts

TEXTS = "_texts"
"""The private key of a message under which the texts of its files stand, by the place of the part."""
Images = Mapping[str, str]
"""Data URLs of images that are uploaded files, by file id."""
Names = Mapping[tuple[str, str], str]
"""The names under which tools are offered now, by the label of their server ("" for none) and their own."""


def to_messages(
    items: Sequence[Item], names: Names | None = None, images: Images | None = None
) -> list[Message]:
    """The messages that say what the items say, in the order that chat completions demand: what answers a message's
    calls comes right after it. Calls of the client that follow each other become one message with several, together
    with those that ran here in the same turn. `names` are the names under which tools are offered now."""
    return _Writing(items, names or {}, images or {}).messages()


class _Writing:
    """The messages made so far. `_answers` go to the calls of the last message, to which more calls may come."""

    def __init__(self, items: Sequence[Item], names: Names, images: Images) -> None:
        self._items = items
        self._names = names
        self._images = images
        self._pairs = paired(items)
        self._made: list[Message] = []
        self._answers: list[Message] = []
        self._asked: dict[str, Item] = {}

    def messages(self) -> list[Message]:
        """All of them."""
        answers = set(self._pairs.values())
        for place, item in enumerate(self._items):
            kind = item["type"]
            if kind == "message":
                self._close()
                self._made += _message(item, self._images)
            elif kind in CALLS:
                self._call_out(place, item)
            elif kind in OUTPUTS:
                self._close()
                if place not in answers:
                    self._made.append(_answer(item["call_id"], output_text(item)))
            elif kind in ("file_search_call", "mcp_call"):
                self._served(item)
            elif kind == "mcp_approval_request":
                self._asked[item["id"]] = item
            elif kind == "mcp_approval_response" and not item["approve"]:
                self._refused(item)
            elif kind == "compaction":
                self._close()
                self._made.append({"role": "system", "content": decode(item["encrypted_content"])})
        self._close()
        return self._made

    def _close(self) -> None:
        self._made += self._answers
        self._answers = []

    def _call(self, call_id: str, name: str, arguments: str) -> None:
        call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        if self._made and self._made[-1]["role"] == "assistant":
            self._made[-1].setdefault("tool_calls", []).append(call)
        else:
            self._made.append({"role": "assistant", "content": None, "tool_calls": [call]})

    def _call_out(self, place: int, item: Item) -> None:
        """A call of the client's, which its output answers."""
        output = self._pairs.get(place)
        if output is None and broken_off(item):
            return
        said = item["arguments"] if item["type"] == "function_call" else item["input"]
        name, space = item["name"], item.get("namespace")
        if space is not None:
            name = self._names.get((place_of(space), name)) or in_namespace(space, name)
        self._call(item["call_id"], name, _object(said))
        if output is not None:
            self._answers.append(_answer(item["call_id"], output_text(self._items[output])))

    def _ran(self, call_id: str, label: str, name: str, arguments: str, told: str) -> None:
        """A call that was answered here. With calls of the client before it, it is of their turn."""
        alone = not self._answers
        offered = self._names.get((label, name), name)
        self._call(call_id, offered, _object(arguments))
        self._answers.append(_answer(call_id, told))
        if alone:
            self._close()

    def _served(self, item: Item) -> None:
        """A call that ran here, and what it gave back."""
        call_id = item.get("_call_id") or f"call_{item['id']}"
        if item["type"] == "file_search_call":
            query = json.dumps({"query": " ".join(item.get("queries") or [])}, ensure_ascii=False)
            self._ran(call_id, "", "file_search", query, item.get("_told") or _results(item))
            return
        told = item.get("_told") or item.get("output") or _error(item)
        self._ran(call_id, item["server_label"], item["name"], item.get("arguments") or "{}", told)

    def _refused(self, answer: Item) -> None:
        """A call that the user did not let run."""
        asked = self._asked.get(answer["approval_request_id"])
        if asked is not None:
            told = prompts.refused(answer.get("reason"))
            self._ran(f"call_{asked['id']}", asked["server_label"], asked["name"], asked["arguments"], told)


def _answer(call_id: str, content: str) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def _message(item: Item, images: Images) -> list[Message]:
    role = "system" if item["role"] == "developer" else item["role"]
    parts = [_part(part, i, item, images) for i, part in enumerate(item["content"])]
    if role == "assistant" or all(part["type"] == "text" for part in parts):
        text = text_of(item) if role == "assistant" else "\n\n".join(part["text"] for part in parts)
        return [{"role": role, "content": text}] if text or role != "assistant" else []
    return [{"role": role, "content": parts}]


def _part(part: Item, place: int, item: Item, images: Images) -> dict[str, Any]:
    if part["type"] == "input_image":
        if not (url := part.get("image_url") or images.get(part.get("file_id") or "")):
            return {"type": "text", "text": "[an image that is not there any more]"}
        return {"type": "image_url", "image_url": {"url": url, "detail": part.get("detail", "auto")}}
    if part["type"] == "input_file":
        name = part.get("filename") or part.get("file_id") or "file"
        return {"type": "text", "text": f"File {name}:\n{item.get(TEXTS, {}).get(str(place), '')}"}
    return {"type": "text", "text": part.get("text") or part.get("refusal") or ""}


def _results(item: Item) -> str:
    """The passages that a client sends back with a search of an earlier response."""
    found = item.get("results") or []
    return "\n\n".join(f"{one.get('filename', '')}: {one.get('text', '')}" for one in found) or "No results."


def _error(item: Item) -> str:
    error = item.get("error")
    says = error.get("message") or _texts(error.get("content")) if isinstance(error, dict) else error
    return f"Error: {says}" if says else "No output."


def _texts(content: Any) -> str:
    parts = content if isinstance(content, list) else []
    return " ".join(str(part["text"]) for part in parts if isinstance(part, dict) and part.get("text"))


def _object(arguments: str) -> str:
    """The arguments as the JSON object that servers insist on; what is none becomes the one value of it."""
    if not arguments.strip():
        return "{}"
    try:
        if isinstance(json.loads(arguments), dict):
            return arguments
    except (ValueError, RecursionError):
        pass
    return json.dumps({"input": arguments}, ensure_ascii=False)
