"""Chats of Open WebUI: the JSON file of "Export chats".

Sources: pull request 643 of open-webui/open-webui, which exports the rows of the table of chats, and the types `Chat`,
`History` and `Message` of its web client.

The file is a list of chats: `id`, `title`, `created_at` and `chat`, in which `history.messages` are a tree with
`parentId` whose visible path ends at `history.currentId`, and `messages` are that path. Reasoning and calls of tools
stand in the content as `<details type="...">`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from memoranda.importers.dates import moment, unread
from memoranda.importers.fields import items, mapping, name, named, objects, text
from memoranda.importers.sources import Source, each_file, left_out
from memoranda.importers.values import Conversation, Item, Message, Skipped

NAME = "open-webui"
_DETAILS = re.compile(
    r"<details type=\"(?:reasoning|tool_calls|code_interpreter)\"[^>]*>.*?</details>", re.DOTALL
)

FILES = (".json",)


def matches(source: Source) -> bool:
    """Return True if the source is such a file."""
    return any(_is_chat(each) for file in source.ending(*FILES)[:20] for each in source.head(file))


def read(source: Source) -> Iterator[Item]:
    """The conversations."""
    files = source.ending(*FILES)
    yield from each_file(files, lambda file: _read_file(source, file))
    yield from left_out(source, files)


def _is_chat(value: dict[str, Any]) -> bool:
    chat = mapping(value.get("chat"))
    return "history" in chat or "messages" in chat


def _read_file(source: Source, file: str) -> Iterator[Item]:
    for record in source.records(file):
        place = f"{file}, chat {record.number}"
        value = mapping(record.value)
        id_ = name(value.get("id"))
        if record.problem is not None or id_ is None or not _is_chat(value):
            why = record.problem or ("has no id" if id_ is None else "has no messages")
            yield Skipped(kind="conversation", reason="is damaged", place=f"{place} {why}", failed=True)
            continue
        yield from _chat(value, id_, place)


def _chat(value: dict[str, Any], id_: str, place: str) -> Iterator[Item]:
    chat = mapping(value.get("chat"))
    tree = mapping(mapping(chat.get("history")).get("messages"))
    shown = _path(tree, mapping(chat.get("history")).get("currentId")) or list(objects(chat.get("messages")))
    messages: list[Message] = []
    for number, each in enumerate(shown, 1):
        content, own = text(_DETAILS.sub("", text(each.get("content")))), name(each.get("id")) or str(number)
        where = f"{place}, message {own}"
        if each.get("role") not in ("user", "assistant"):
            yield Skipped(kind="message", reason="is a system prompt", place=where)
        elif not content:
            yield Skipped(kind="message", reason="has no text", place=where)
        else:
            created = moment(each.get("timestamp"))
            yield from unread(where, each.get("timestamp"))
            messages.append(Message(id=own, role=each["role"], content=content, occurred_at=created))
    path = {each.get("id") for each in shown if isinstance(each.get("id"), str)}
    for other in tree.keys() - path:
        yield Skipped(
            kind="message", reason="is on a branch that was replaced", place=f"{place}, message {other}"
        )
    title = name(value.get("title")) or name(chat.get("title"))
    yield from unread(place, value.get("created_at"))
    yield Conversation(
        id=id_, place=place, messages=messages, title=title,
        started_at=moment(value.get("created_at")), metadata=named({"models": _names(chat.get("models"))}),
    )  # fmt: skip


def _names(value: Any) -> list[str]:
    return [model for each in items(value)[:16] if (model := text(each))]


def _path(tree: dict[str, Any], current: Any) -> list[dict[str, Any]]:
    """The messages from the first one to the current one."""
    path: dict[str, dict[str, Any]] = {}
    while isinstance(current, str) and isinstance(tree.get(current), dict) and current not in path:
        path[current] = {"id": current, **tree[current]}
        current = tree[current].get("parentId")
    return [*path.values()][::-1]
