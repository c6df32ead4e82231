"""How many tokens a model will read: of items, messages and tools. Texts are counted exactly, what a provider puts
around them by constants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from memoranda.providers.chat.base import Message
from memoranda.responses.messages import to_messages
from memoranda.responses.values import Item
from memoranda.text.json import compact_json
from memoranda.text.tokens import DEFAULT_ENCODING, count

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
    return sum(_message(message, encoding) for message in to_messages([item]))


def mark(items: Iterable[Item]) -> None:
    """Stores the token count of complete items in them, so that later readers need not count again."""
    for item in items:
        if COUNTED not in item:
            item[COUNTED] = tokens_of_item(item)


def tokens_of_messages(messages: Iterable[Message], encoding: str = DEFAULT_ENCODING) -> int:
    """The tokens of a prompt in the shape of chat completions."""
    return PRIMING_TOKENS + sum(_message(message, encoding) for message in messages)


def tokens_of_tools(tools: Sequence[dict[str, Any]], encoding: str = DEFAULT_ENCODING) -> int:
    """The tokens of tools, each counted as its JSON. A provider may write them more briefly."""
    return sum(CALL_TOKENS + count(compact_json(tool.get("function", tool)), encoding) for tool in tools)


def _message(message: Message, encoding: str) -> int:
    calls = message.get("tool_calls") or ()
    spent = MESSAGE_TOKENS + _content(message.get("content"), encoding)
    for call in calls:
        function = call.get("function", {})
        texts = (function.get("name"), function.get("arguments"))
        spent += CALL_TOKENS + sum(count(text, encoding) for text in texts if text)
    return spent


def _content(content: Any, encoding: str) -> int:
    if content is None:
        return 0
    if isinstance(content, str):
        return count(content, encoding)
    return sum(_part(part, encoding) for part in content)


def _part(part: dict[str, Any], encoding: str) -> int:
    if part["type"] != "image_url":
        return count(part["text"], encoding)
    return SMALL_IMAGE_TOKENS if part["image_url"].get("detail") == "low" else IMAGE_TOKENS
