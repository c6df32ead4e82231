"""Items as the messages of chat completions: how they are written, how many tokens a model will read, and where a
conversation may be cut. Texts are counted exactly, what a provider puts around them by constants. A turn is one request
of the user and all its answers; a cut never separates a call from its output, which models reject."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from memoranda.providers.chat.base import Message
from memoranda.responses.declared import in_namespace, place_of
from memoranda.responses.values import (
    CALLS,
    OUTPUTS,
    TEXTS,
    Item,
    broken_off,
    output_text,
    paired,
    text_of,
    unpack,
)
from memoranda.text import prompts
from memoranda.text.prompts import quoted
from memoranda.text.stored import compact_json
from memoranda.text.tokens import DEFAULT_ENCODING, count

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
                summary = f"{prompts.SUMMARY}\n{quoted(unpack(item['encrypted_content']))}"
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


MESSAGE_TOKENS = 4
"""Around every message: its beginning, its role, its end."""
CALL_TOKENS = 8
"""Around every call of a function and every tool: names of fields, brackets."""
PRIMING_TOKENS = 3
"""What every prompt ends with, so that the assistant begins."""
IMAGE_TOKENS = 765
"""An image, whatever its size: what OpenAI's models count for one of 1024 x 1024; models differ."""
SMALL_IMAGE_TOKENS = 85
"""An image of `detail: low`."""
COUNTED = "_tokens"
"""The key under which a stored item carries its tokens in the default encoding."""
OLDER = ("gpt-4-", "gpt-3.5", "gpt-35", "text-embedding-")
"""How names of models begin that read cl100k."""
NEWER = ("gpt-4o", "gpt-4.", "gpt-5", "gpt-oss", "chatgpt-", "o1", "o3", "o4")
"""How names of models begin that read o200k."""


def encoding_for(model: str | None) -> tuple[str, bool]:
    """The encoding to count in for a model, and whether it is the model's own; o200k estimates where none is known."""
    name = (model or "").lower().rpartition("/")[2]
    if name == "gpt-4" or (name.startswith(OLDER) and not name.startswith(NEWER)):
        return "cl100k_base", True
    return DEFAULT_ENCODING, name.startswith(NEWER)


def tokens_of_items(items: Iterable[Item], encoding: str = DEFAULT_ENCODING) -> int:
    """The tokens of all items together."""
    return sum(tokens_of_item(item, encoding) for item in items)


def tokens_of_item(item: Item, encoding: str = DEFAULT_ENCODING) -> int:
    """The tokens of one item as a model reads it; 0 for one that is not sent to models. The count that a stored item
    carries is used as it is."""
    stored = item.get(COUNTED)
    if stored is not None and encoding == DEFAULT_ENCODING:
        return int(stored)
    return sum(_message_tokens(message, encoding) for message in to_messages([item]))


def mark(items: Iterable[Item]) -> None:
    """Stores the token count of complete items in them, so that later readers need not count again."""
    for item in items:
        if COUNTED not in item:
            item[COUNTED] = tokens_of_item(item)


def tokens_of_messages(messages: Iterable[Message], encoding: str = DEFAULT_ENCODING) -> int:
    """The tokens of a prompt in the shape of chat completions."""
    return PRIMING_TOKENS + sum(_message_tokens(message, encoding) for message in messages)


def tokens_of_tools(tools: Sequence[dict[str, Any]], encoding: str = DEFAULT_ENCODING) -> int:
    """The tokens of tools, each counted as its JSON. A provider may write them more briefly."""
    return sum(CALL_TOKENS + count(compact_json(tool.get("function", tool)), encoding) for tool in tools)


def _message_tokens(message: Message, encoding: str) -> int:
    calls = message.get("tool_calls") or ()
    spent = MESSAGE_TOKENS + _content_tokens(message.get("content"), encoding)
    for call in calls:
        function = call.get("function", {})
        texts = (function.get("name"), function.get("arguments"))
        spent += CALL_TOKENS + sum(count(text, encoding) for text in texts if text)
    return spent


def _content_tokens(content: Any, encoding: str) -> int:
    if content is None:
        return 0
    if isinstance(content, str):
        return count(content, encoding)
    return sum(_part_tokens(part, encoding) for part in content)


def _part_tokens(part: dict[str, Any], encoding: str) -> int:
    if part["type"] != "image_url":
        return count(part["text"], encoding)
    return SMALL_IMAGE_TOKENS if part["image_url"].get("detail") == "low" else IMAGE_TOKENS


ASKING = ("user", "system", "developer")


def starts_of(items: Sequence[Item]) -> list[int]:
    """Where turns begin, ascending; the first is 0. Messages in a row that ask, of the user or a developer, begin one
    turn together."""
    if not items:
        return []
    whole = _uncut(items)
    starts = [0]
    for at in range(1, len(items)):
        if _asks(items[at]) and not _asks(items[at - 1]) and at not in whole:
            starts.append(at)
    return starts


def turns_of(items: Sequence[Item]) -> list[list[Item]]:
    """The items by turn, oldest first."""
    starts = starts_of(items)
    return [list(items[start:end]) for start, end in pairwise([*starts, len(items)])]


def pinned(items: Sequence[Item], new: Sequence[Item]) -> int:
    """The first of `items` that must stay because `new` holds the other half of a call that it begins; their number
    where there is none."""
    wanted = {key for item in new for key in _links(item)}
    return next((at for at, item in enumerate(items) if wanted & set(_links(item))), len(items))


def fitting(
    items: Sequence[Item], budget: int, new: Sequence[Item] = (), encoding: str = DEFAULT_ENCODING
) -> tuple[int, int]:
    """The first item of the newest whole turns that fit into `budget` tokens, and their tokens. Items that `new`
    continues stay even if they do not fit."""
    starts = starts_of(items)
    first, spent = len(items), 0
    last = pinned(items, new)
    for start in reversed(starts):
        tokens = sum(tokens_of_item(item, encoding) for item in items[start:first])
        if spent + tokens > budget and first <= last:
            break
        first, spent = start, spent + tokens
    return first, spent


def _asks(item: Item) -> bool:
    return item.get("type", "message") == "message" and item.get("role") in ASKING


def _links(item: Item) -> list[str]:
    """The keys that link this item to others: its call, or the approval it asks for or gives."""
    kind = item.get("type", "message")
    if kind == "mcp_approval_request":
        return [f"approval {item.get('id')}"]
    tied = [f"approval {item['approval_request_id']}"] if item.get("approval_request_id") else []
    return [*tied, f"call {item['call_id']}"] if item.get("call_id") else tied


def _uncut(items: Sequence[Item]) -> set[int]:
    """The positions before which no cut may be made, because linked items are on both sides of them."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for at, item in enumerate(items):
        for key in _links(item):
            first.setdefault(key, at)
            last[key] = at
    return {at for key, start in first.items() for at in range(start + 1, last[key] + 1)}
