"""Chats of Gemini CLI: `~/.gemini/tmp`, a folder of it, or one `session-*.json` or `.jsonl`.

Source: packages/core/src/services/chatRecordingService.ts of google-gemini/gemini-cli.

An older file is an object with `sessionId` and `messages`. A newer one has a line for the session, one for each message
(a later line with the same id replaces it), `$set` for changes of the session, and `$rewindTo` where the user went
back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memoranda.importers.dates import moment, unread
from memoranda.importers.fields import items, mapping, name, objects, text
from memoranda.importers.sources import Source, each_file
from memoranda.importers.values import Conversation, Item, Message, Skipped

NAME = "gemini-cli"
ROLES = {"user": "user", "gemini": "assistant"}


def matches(source: Source) -> bool:
    """Return True if the source has chats."""
    return any(
        {"sessionId", "projectHash"} <= each.keys()
        for file in _files(source)[:50]
        for each in source.head(file)
    )


def read(source: Source) -> Iterator[Item]:
    """The conversations of all chats."""
    yield from each_file(_files(source), lambda file: _chat(source, file))


def _files(source: Source) -> list[str]:
    chats = [each for each in source.names if each.endswith((".json", ".jsonl"))]
    return [
        each for each in chats if not source.is_folder or "/chats/" in f"/{each}" or "/session-" in f"/{each}"
    ]


def _chat(source: Source, file: str) -> Iterator[Item]:
    session: dict[str, Any] = {}
    records: dict[str, dict[str, Any]] = {}
    for record in source.records(file):
        place = f"{file}, record {record.number}"
        if record.problem is not None or not isinstance(record.value, dict):
            why = record.problem or "is not an object"
            yield Skipped(kind="message", reason="is damaged", place=f"{place} {why}", failed=True)
            continue
        value = record.value
        if isinstance(value.get("$rewindTo"), str):
            yield from _rewound(records, value["$rewindTo"], place)
        elif isinstance(value.get("id"), str):
            records[value["id"]] = value
        else:
            changes = mapping(value.get("$set")) or value
            session |= {key: each for key, each in changes.items() if key != "messages"}
            if items(changes.get("messages")):
                records = {
                    _id(each, number): each for number, each in enumerate(objects(changes["messages"]), 1)
                }
    messages: list[Message] = []
    for own, value in records.items():
        where = f"{file}, message {own}"
        content, reason = _said(value, session)
        if reason:
            yield Skipped(kind="message", reason=reason, place=where)
            continue
        role, created = ROLES[value["type"]], moment(value.get("timestamp"))
        yield from unread(where, value.get("timestamp"))
        messages.append(Message(id=own[:256], role=role, content=content, occurred_at=created))
    id_ = name(session.get("sessionId"))
    if id_ is None:
        yield Skipped(kind="conversation", reason="has no sessionId", place=file, failed=True)
    elif messages:
        started, title = moment(session.get("startTime")), name(session.get("summary"))
        yield from unread(file, session.get("startTime"))
        yield Conversation(id=id_, place=file, messages=messages, title=title, started_at=started)


def _id(value: dict[str, Any], number: int) -> str:
    return text(value.get("id")) or str(number)


def _rewound(records: dict[str, dict[str, Any]], to: str, place: str) -> Iterator[Item]:
    """Removes the messages from this id on; all of them if the id is unknown."""
    ids = [*records]
    for id_ in ids[ids.index(to) if to in records else 0 :]:
        del records[id_]
        yield Skipped(kind="message", reason="is taken back by the user", place=f"{place}, message {id_}")


def _said(value: dict[str, Any], session: dict[str, Any]) -> tuple[str, str]:
    """The text of a message, or the reason why it is not imported."""
    if session.get("kind") == "subagent":
        return "", "is between the program and a subagent"
    if text(value.get("type")) not in ROLES:
        return "", "is written by the program"
    content = value.get("content")
    parts = [content] if isinstance(content, str | dict) else items(content)
    said = (text(part) if isinstance(part, str) else text(mapping(part).get("text")) for part in parts)
    body = "\n\n".join(filter(None, said))
    return body, "" if body else "has no text"
