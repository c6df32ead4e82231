"""ChatGPT data exports: the zip file, the unpacked folder, or one `conversations.json`.

Sources: https://whychose.com/seo/chatgpt-conversations-json-format and docs/chatgpt-data-export-format.md of
mitkury/chatgpt-export-parser for the tree of messages; https://difegam.github.io/chatgpt-to-markdown/reference/data-models
and issue 1 of NextStat/chatgpt2md for the newer layout, `conversations-000.json`, `conversations-001.json`, ...

The messages of a conversation are a tree, of which the path that ends at `current_node` is what the user sees. The
export has no list of memories. They are taken from what the model sent to the tool `bio`, from `model_set_context`, and
from custom instructions. The project of a conversation is its `gizmo_id` if that begins with `g-p-`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from memoranda.importers.dates import moment, unread
from memoranda.importers.fields import items, mapping, name, named, text
from memoranda.importers.sources import Source, each_file, left_out
from memoranda.importers.values import Conversation, Entry, Item, Message, Skipped
from memoranda.text.hashing import digest

NAME = "chatgpt"
_FILE = re.compile(r"(?:^|/)conversations(?:[-_]\d+)?\.json$")
_CITATION = re.compile("[ \t]*\ue200[^\ue201]*\ue201")
_REMEMBERED = re.compile(
    r"(?:\A|\n[ \t\r]*\n|\n(?=\d+\.\s*\[\d))[ \t]*(\d+)\.(?:\s*\[(\d{4}-\d{2}-\d{2})\]\.?|(?=\s))"
)
"""The beginning of a memory in the list: a number, with a date or after an empty line."""
REASONING = frozenset({"thoughts", "reasoning_recap"})
CONTEXT = frozenset({"user_editable_context", "model_editable_context"})


def matches(source: Source) -> bool:
    """Return True if the source is such an export."""
    return any(_is_conversation(each) for file in _files(source) for each in source.head(file))


def read(source: Source) -> Iterator[Item]:
    """The conversations, and the memories in them."""
    files = _files(source)
    seen: set[str] = set()
    yield from each_file(files, lambda file: _read_file(source, file, seen))
    yield from left_out(source, files)


def _files(source: Source) -> list[str]:
    return [each for each in source.names if _FILE.search(each)] or source.only


def _is_conversation(value: dict[str, Any]) -> bool:
    return isinstance(value.get("mapping"), dict)


def _read_file(source: Source, file: str, seen: set[str]) -> Iterator[Item]:
    for record in source.records(file):
        place = f"{file}, conversation {record.number}"
        if record.problem is not None:
            yield Skipped(
                kind="conversation", reason="is damaged", place=f"{place} {record.problem}", failed=True
            )
            continue
        value = mapping(record.value)
        id_ = name(value.get("conversation_id")) or name(value.get("id"))
        if id_ is None or not _is_conversation(value):
            missing = "id" if id_ is None else "mapping"
            yield Skipped(kind="conversation", reason=f"has no {missing}", place=place, failed=True)
            continue
        yield from _conversation(value, id_, place, seen)


def _conversation(value: dict[str, Any], id_: str, place: str, seen: set[str]) -> Iterator[Item]:
    nodes: dict[str, Any] = value["mapping"]
    path = _path(nodes, value.get("current_node"))
    messages: list[Message] = []
    for node_id in path:
        message = nodes[node_id].get("message")
        if not isinstance(message, dict):
            continue
        where = f"{place}, message {node_id}"
        for entry in _memories(message, where):
            if entry.id not in seen:
                seen.add(entry.id)
                yield entry
        content, reason = _said(message)
        if reason:
            yield Skipped(kind="message", reason=reason, place=where)
            continue
        role = text(mapping(message.get("author")).get("role"))
        created = moment(message.get("create_time"))
        yield from unread(where, message.get("create_time"))
        messages.append(
            Message(id=name(message.get("id")) or node_id, role=role, content=content, occurred_at=created)
        )
    shown = {*path}
    for node_id, node in nodes.items():
        if node_id not in shown and isinstance(mapping(node).get("message"), dict):
            yield Skipped(
                kind="message", reason="is on a branch that was replaced", place=f"{place}, message {node_id}"
            )
    yield from unread(place, value.get("create_time"))
    gizmo = text(value.get("gizmo_id"))
    yield Conversation(
        id=id_,
        place=place,
        messages=messages,
        title=name(value.get("title")),
        started_at=moment(value.get("create_time")),
        metadata=named({"project": gizmo if gizmo.startswith("g-p-") else None}),
    )


def _path(nodes: dict[str, Any], current: Any) -> list[str]:
    """The ids of the nodes from the root to the current one; without one, to the leaf that was written last."""
    if not isinstance(current, str) or current not in nodes:
        leaves = [id_ for id_, node in nodes.items() if not items(mapping(node).get("children"))]
        current = max(leaves, key=lambda id_: _time(nodes[id_]), default=None)
    path: dict[str, None] = {}
    while isinstance(current, str) and isinstance(nodes.get(current), dict) and current not in path:
        path[current] = None
        current = nodes[current].get("parent")
    return [*path][::-1]


def _time(node: Any) -> float:
    value = mapping(mapping(node).get("message")).get("create_time")
    return float(value) if isinstance(value, int | float) else 0.0


def _said(message: dict[str, Any]) -> tuple[str, str]:
    """The text of a message, or the reason why it is not imported."""
    content = mapping(message.get("content"))
    type_ = text(content.get("content_type"))
    role = text(mapping(message.get("author")).get("role"))
    reason = ""
    if role == "system":
        reason = "is a system prompt"
    elif role == "tool":
        reason = "is the output of a tool"
    elif role not in ("user", "assistant"):
        reason = "has no known role"
    elif type_ in CONTEXT:
        reason = "is context of custom instructions or memories"
    elif type_ in REASONING or message.get("channel") == "analysis":
        reason = "is reasoning of the model"
    elif role == "assistant" and message.get("recipient") not in (None, "all"):
        reason = "is a call of a tool"
    elif mapping(message.get("metadata")).get("is_visually_hidden_from_conversation") is True:
        reason = "is hidden from the user"
    body = "" if reason else _text(content)
    return body, reason or ("" if body else "has no text")


def _text(content: dict[str, Any]) -> str:
    parts = [
        each if isinstance(each, str) else mapping(each).get("text") for each in items(content.get("parts"))
    ]
    parts.append(content.get("text"))
    return _CITATION.sub("", "\n\n".join(filter(None, map(text, parts)))).strip()


def _memories(message: dict[str, Any], place: str) -> Iterator[Entry]:
    """The memories of ChatGPT that a message shows: calls of `bio`, the list of memories, instructions."""
    content = mapping(message.get("content"))
    created = moment(message.get("create_time"))
    saved = _text(content) if message.get("recipient") == "bio" else ""
    if saved:
        yield Entry(id=digest("memory", saved), place=place, content=saved, kind="fact", occurred_at=created)
    context = text(content.get("model_set_context"))
    listed = _listed(context)
    for day, memory in listed:
        when = moment(day) or created
        yield Entry(id=digest("memory", memory), place=place, content=memory, kind="fact", occurred_at=when)
    if context and not listed:
        yield Entry(id=digest("memory", context), place=place, content=context, occurred_at=created)
    tags = ["custom-instructions"]
    for key, instructions in _instructions(message, content):
        yield Entry(
            id=digest(key, instructions), place=place, content=instructions, tags=tags, occurred_at=created
        )


def _listed(context: str) -> list[tuple[str, str]]:
    """The days and texts of a list of memories; a memory may have no day, and several lines. Empty for a text in which
    no memory has a day."""
    starts: list[re.Match[str]] = []
    for match in _REMEMBERED.finditer(context):
        if match[2] or not starts or int(match[1]) > int(starts[-1][1]):
            starts.append(match)
    if not any(match[2] for match in starts):
        return []
    ends = [*(match.start() for match in starts[1:]), len(context)]
    listed = [(match[2], text(context[match.end() : end])) for match, end in zip(starts, ends, strict=True)]
    return [(day, memory) for day, memory in listed if memory]


def _instructions(message: dict[str, Any], content: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Custom instructions with what they are about: in a message of their own, else beside an empty one."""
    if content.get("content_type") == "user_editable_context":
        pairs = [(key, text(content.get(key))) for key in ("user_profile", "user_instructions")]
    else:
        data = mapping(mapping(message.get("metadata")).get("user_context_message_data"))
        pairs = [(key, text(data.get(key))) for key in ("about_user_message", "about_model_message")]
    return ((key, instructions) for key, instructions in pairs if instructions)
