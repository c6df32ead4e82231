"""Conversion of items to the messages of chat completions."""

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
from memoranda.text.quoting import quoted

TEXTS = "_texts"
"""The private key of a message under which the texts of its files stand, by the place of the part."""
Images = Mapping[str, str]
"""Data URLs of images that are uploaded files, by file id."""
Names = Mapping[tuple[str, str], str]
"""The names under which tools are offered now, by the label of their server ("" for none) and their own."""


def to_messages(
    items: Sequence[Item], names: Names | None = None, images: Images | None = None
) -> list[Message]:
    """The items as messages, in the order that chat completions demand: answers to a message's calls come right after
    it. Consecutive calls of the client become one message with several calls, together with those that ran here in
    the same turn. `names` are the names under which tools are offered now."""
    return _Writing(items, names or {}, images or {}).messages()


class _Writing:
    """The messages written so far. `_answers` belong to the calls of the last message, which may get more calls."""

    def __init__(self, items: Sequence[Item], names: Names, images: Images) -> None:
        self._items = items
        self._names = names
        self._images = images
        self._pairs = paired(items)
        self._messages: list[Message] = []
        self._answers: list[Message] = []
        self._asked: dict[str, Item] = {}

    def messages(self) -> list[Message]:
        """All of them."""
        answers = set(self._pairs.values())
        for place, item in enumerate(self._items):
            kind = item["type"]
            if kind == "message":
                self._close()
                self._messages += _message(item, self._images)
            elif kind in CALLS:
                self._call_out(place, item)
            elif kind in OUTPUTS:
                self._close()
                if place not in answers:
                    self._messages.append(_answer(item["call_id"], output_text(item)))
            elif kind in ("file_search_call", "mcp_call"):
                self._served(item)
            elif kind == "mcp_approval_request":
                self._asked[item["id"]] = item
            elif kind == "mcp_approval_response" and not item["approve"]:
                self._refused(item)
            elif kind == "compaction":
                self._close()
                summary = f"{prompts.SUMMARY}\n{quoted(decode(item['encrypted_content']))}"
                self._messages.append({"role": "user", "content": f"{prompts.QUOTED}\n\n{summary}"})
        self._close()
        return self._messages

    def _close(self) -> None:
        self._messages += self._answers
        self._answers = []

    def _call(self, call_id: str, name: str, arguments: str) -> None:
        call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        if self._messages and self._messages[-1]["role"] == "assistant":
            self._messages[-1].setdefault("tool_calls", []).append(call)
        else:
            self._messages.append({"role": "assistant", "content": None, "tool_calls": [call]})

    def _call_out(self, place: int, item: Item) -> None:
        """A call of the client's, which its output answers."""
        output = self._pairs.get(place)
        if output is None and broken_off(item):
            return
        arguments = item["arguments"] if item["type"] == "function_call" else item["input"]
        name, space = item["name"], item.get("namespace")
        if space is not None:
            name = self._names.get((place_of(space), name)) or in_namespace(space, name)
        self._call(item["call_id"], name, _object(arguments))
        if output is not None:
            self._answers.append(_answer(item["call_id"], output_text(self._items[output])))

    def _ran(self, call_id: str, label: str, name: str, arguments: str, content: str) -> None:
        """A call that was answered here. After calls of the client it belongs to their turn."""
        alone = not self._answers
        offered = self._names.get((label, name), name)
        self._call(call_id, offered, _object(arguments))
        self._answers.append(_answer(call_id, content))
        if alone:
            self._close()

    def _served(self, item: Item) -> None:
        """A call that ran here, and its output."""
        call_id = item.get("_call_id") or f"call_{item['id']}"
        if item["type"] == "file_search_call":
            query = json.dumps({"query": " ".join(item.get("queries") or [])}, ensure_ascii=False)
            self._ran(call_id, "", "file_search", query, item.get("_told") or _results(item))
            return
        content = item.get("_told") or item.get("output") or _error(item)
        self._ran(call_id, item["server_label"], item["name"], item.get("arguments") or "{}", content)

    def _refused(self, answer: Item) -> None:
        """A call that the user did not approve."""
        asked = self._asked.get(answer["approval_request_id"])
        if asked is not None:
            content = prompts.refused(answer.get("reason"))
            self._ran(
                f"call_{asked['id']}", asked["server_label"], asked["name"], asked["arguments"], content
            )


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
        return {
            "type": "text",
            "text": f"File {quoted(name)}:\n{quoted(item.get(TEXTS, {}).get(str(place), ''))}",
        }
    return {"type": "text", "text": part.get("text") or part.get("refusal") or ""}


def _results(item: Item) -> str:
    """The passages that a client sends back with a search of an earlier response."""
    results = item.get("results") or []
    lines = (f"{result.get('filename', '')}: {result.get('text', '')}" for result in results)
    return "\n\n".join(lines) or "No results."


def _error(item: Item) -> str:
    error = item.get("error")
    says = error.get("message") or _texts(error.get("content")) if isinstance(error, dict) else error
    return f"Error: {says}" if says else "No output."


def _texts(content: Any) -> str:
    parts = content if isinstance(content, list) else []
    return " ".join(str(part["text"]) for part in parts if isinstance(part, dict) and part.get("text"))


def _object(arguments: str) -> str:
    """The arguments as the JSON object that servers require; any other text becomes its single value `input`."""
    if not arguments.strip():
        return "{}"
    try:
        if isinstance(json.loads(arguments), dict):
            return arguments
    except (ValueError, RecursionError):
        pass
    return json.dumps({"input": arguments}, ensure_ascii=False)
