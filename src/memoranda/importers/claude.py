"""Claude (claude.ai) data exports: the zip file, the unpacked folder, or one `conversations.json`.

Sources: https://portable-ai-memory.org/providers/anthropic for the files and their fields; issue 22 of
Superkikim/nexus-ai-chat-importer for `projects/<uuid>.json`, which newer exports have instead of `projects.json`;
src/basic_memory/importers of basicmachines-co/basic-memory for attachments.

A conversation has `chat_messages` in order. `memories.json` has what Claude remembers of all conversations
(`conversations_memory`) and of each project (`project_memories`). A project has instructions and documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from memoranda.importers.dates import moment, unread
from memoranda.importers.fields import items, mapping, name, named, objects, text
from memoranda.importers.sources import Source, each_file, left_out
from memoranda.importers.values import Conversation, Entry, Item, Message, Skipped
from memoranda.text.hashing import digest

NAME = "claude"
_CONVERSATIONS = re.compile(r"(?:^|/)conversations(?:[-_]\d+)?\.json$")
_MEMORIES = re.compile(r"(?:^|/)memories(?:/[^/]+)?\.json$")
_PROJECTS = re.compile(r"(?:^|/)projects(?:/[^/]+)?\.json$")
Reader: TypeAlias = Callable[[dict[str, Any], str], Iterator[Item]]
"""Reads one object that stands at a place."""
ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
LEFT_OUT = {
    "thinking": "is reasoning of the model",
    "redacted_thinking": "is reasoning of the model",
    "tool_use": "is a call of a tool",
    "tool_result": "is the output of a tool",
}


def matches(source: Source) -> bool:
    """Return True if the source is such an export."""
    files = _named(source, _CONVERSATIONS) or source.only
    if any(isinstance(each.get("chat_messages"), list) for file in files for each in source.head(file)):
        return True
    return any(
        "conversations_memory" in each for file in _named(source, _MEMORIES) for each in source.head(file)
    )


def read(source: Source) -> Iterator[Item]:
    """The conversations with their attachments, the memories, the projects with their documents."""
    memories, projects = _named(source, _MEMORIES), _named(source, _PROJECTS)
    chats = _named(source, _CONVERSATIONS) or (source.only if not (memories or projects) else [])
    yield from each_file(memories, lambda file: _each(source, file, "memory", _memory))
    yield from each_file(projects, lambda file: _each(source, file, "project", _project))
    yield from each_file(chats, lambda file: _each(source, file, "conversation", _conversation))
    yield from left_out(source, [*chats, *memories, *projects])


def _named(source: Source, pattern: re.Pattern[str]) -> list[str]:
    return [each for each in source.names if pattern.search(each)]


def _each(source: Source, file: str, kind: str, read_one: Reader) -> Iterator[Item]:
    for record in source.records(file):
        place = f"{file}, {kind} {record.number}"
        if record.problem is not None or not isinstance(record.value, dict):
            why = record.problem or "is not an object"
            yield Skipped(kind=kind, reason="is damaged", place=f"{place} {why}", failed=True)
        else:
            yield from read_one(record.value, place)


def _conversation(value: dict[str, Any], place: str) -> Iterator[Item]:
    id_ = name(value.get("uuid"))
    if id_ is None or not isinstance(value.get("chat_messages"), list):
        missing = "uuid" if id_ is None else "chat_messages"
        yield Skipped(kind="conversation", reason=f"has no {missing}", place=place, failed=True)
        return
    messages: list[Message] = []
    for number, each in enumerate(value["chat_messages"], 1):
        where = f"{place}, message {number}"
        message = mapping(each)
        created = moment(message.get("created_at"))
        yield from _attachments(message, id_, where)
        role, content, reason = ROLES.get(text(message.get("sender"))), *_said(message)
        if role is None:
            yield Skipped(kind="message", reason="has no known sender", place=where, failed=True)
        elif reason:
            yield Skipped(kind="message", reason=reason, place=where)
        else:
            own = name(message.get("uuid")) or str(number)
            yield from unread(where, message.get("created_at"))
            messages.append(Message(id=own, role=role, content=content, occurred_at=created))
    yield from unread(place, value.get("created_at"))
    yield Conversation(
        id=id_,
        place=place,
        messages=messages,
        title=name(value.get("name")),
        started_at=moment(value.get("created_at")),
        metadata=named({"project": name(value.get("project_uuid"))}),
    )


def _said(message: dict[str, Any]) -> tuple[str, str]:
    """The text of a message, or the reason why there is none. `text` repeats the blocks, with placeholders for those of
    tools; of blocks of unknown types it has the words."""
    blocks = list(objects(message.get("content")))
    said = [text(block.get("text")) for block in blocks if block.get("type") == "text"]
    left_out = (LEFT_OUT.get(text(block.get("type"))) for block in blocks)
    reason = next(filter(None, left_out), None)
    content = "\n\n".join(filter(None, said)) or (text(message.get("text")) if reason is None else "")
    return content, "" if content else reason or "has no text"


def _attachments(message: dict[str, Any], conversation: str, place: str) -> Iterator[Item]:
    for attachment in objects(message.get("attachments")):
        content = text(attachment.get("extracted_content"))
        file = text(attachment.get("file_name"))
        if not content:
            yield Skipped(kind="attachment", reason="has no text", place=f"{place}, {file}")
            continue
        yield Entry(
            id=digest("attachment", conversation, content),
            place=place,
            content=content,
            kind="document",
            occurred_at=moment(message.get("created_at")),
            metadata=named({"file_name": file, "conversation": conversation}),
        )
    for number, file in enumerate(items(message.get("files")), 1):
        shown = text(mapping(file).get("file_name")) or f"file {number}"
        yield Skipped(kind="attachment", reason="is not in the export", place=f"{place}, {shown}")


def _memory(value: dict[str, Any], place: str) -> Iterator[Item]:
    account = text(value.get("account_uuid"))
    if content := text(value.get("conversations_memory")):
        yield Entry(id=digest("memory", account, content), place=place, content=content, tags=["memory"])
    for project, remembered in mapping(value.get("project_memories")).items():
        if content := text(remembered):
            about = {"project": text(project)}
            id_ = digest("memory", account, text(project), content)
            yield Entry(id=id_, place=place, content=content, tags=["memory"], metadata=about)
    if items(value.get("memory_files")):
        yield Skipped(kind="memory", reason="memory_files are not documented", place=place)


def _project(value: dict[str, Any], place: str) -> Iterator[Item]:
    id_, title = name(value.get("uuid")), text(value.get("name"))
    if id_ is None:
        yield Skipped(kind="project", reason="has no uuid", place=place, failed=True)
        return
    parts = [title, text(value.get("description")), text(value.get("prompt_template"))]
    about = named({"project": id_, "title": title})
    if any(parts):
        content = "\n\n".join(filter(None, parts))
        created = moment(value.get("created_at"))
        yield from unread(place, value.get("created_at"))
        entry = digest("project", id_)
        yield Entry(
            id=entry, place=place, content=content, tags=["project"], metadata=about, occurred_at=created
        )
    for number, document in enumerate(objects(value.get("docs")), 1):
        content, file = text(document.get("content")), text(document.get("filename"))
        where = f"{place}, document {number}"
        if not content:
            yield Skipped(kind="document", reason="has no text", place=where)
            continue
        yield from unread(where, document.get("created_at"))
        yield Entry(
            id=digest("document", id_, name(document.get("uuid")) or file, content),
            place=where,
            content=content,
            kind="document",
            occurred_at=moment(document.get("created_at")),
            metadata=named({"file_name": file, **about}),
        )
