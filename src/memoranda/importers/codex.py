"""Sessions of Codex: `~/.codex/sessions`, a folder of it, or one `rollout-*.jsonl`.

Sources: .agent/research/codex/format-comparison.md of jnarowski/agentcmd and docs/codex-format.md of
kvsankar/agent-history, which is verified against the program's source.

Each line is `{timestamp, type, payload}`. The first one, `session_meta`, has the id. A `response_item` whose payload is
a `message` is one; `event_msg` repeats messages for display. Older files have the payloads as lines, without the outer
object. The program sends its own context as messages of the user, in tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from memoranda.importers.dates import moment, unread
from memoranda.importers.fields import mapping, name, named, objects, text
from memoranda.importers.json_stream import lines
from memoranda.importers.sources import Source, each_file
from memoranda.importers.values import Conversation, Item, Message, Skipped

NAME = "codex"
_PROGRAM = re.compile(
    r"^(?:<(?:environment_context|user_instructions|user_shell_command|turn_aborted|permissions|INSTRUCTIONS|skill"
    r"|subagent_notification)|# AGENTS\.md instructions)"
)
TYPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})


def matches(source: Source) -> bool:
    """Return True if the source has sessions."""
    return any(_is_first(each) for file in _files(source)[:50] for each in source.head(file)[:1])


def read(source: Source) -> Iterator[Item]:
    """The conversations of all sessions."""
    yield from each_file(_files(source), lambda file: _session(source, file))


def _files(source: Source) -> list[str]:
    return [each for each in source.names if each.endswith(".jsonl")]


def _is_first(value: dict[str, Any]) -> bool:
    if value.get("type") == "session_meta":
        return isinstance(value.get("payload"), dict)
    return {"id", "timestamp", "instructions"} <= value.keys() and "type" not in value


def _session(source: Source, file: str) -> Iterator[Item]:
    messages: list[Message] = []
    about: dict[str, Any] = {}
    session, started = "", None
    with source.open(file) as stream:
        for record in lines(stream):
            place = f"{file}, line {record.number}"
            if record.problem is not None or not isinstance(record.value, dict):
                why = record.problem or "is not an object"
                yield Skipped(kind="message", reason="is damaged", place=f"{place} {why}", failed=True)
                continue
            value = record.value
            wrapped = text(value.get("type")) in TYPES
            payload = mapping(value.get("payload")) if wrapped else value
            if value.get("type") == "session_meta" or _is_first(value):
                session = session or text(payload.get("id"))
                about = about or named({"cwd": text(payload.get("cwd"))})
                started = started or moment(payload.get("timestamp"))
                yield from unread(place, payload.get("timestamp"))
                continue
            if payload.get("type") != "message" or value.get("type") not in ("response_item", "message"):
                kind = text(payload.get("type")) or text(value.get("type")) or "unknown"
                yield Skipped(kind="record", reason=f"is of the type {kind[:40]}, not a message", place=place)
                continue
            content, reason = _said(payload)
            if reason:
                yield Skipped(kind="message", reason=reason, place=place)
                continue
            created = moment(value.get("timestamp"))
            yield from unread(place, value.get("timestamp"))
            role = text(payload.get("role"))
            messages.append(Message(id=str(record.number), role=role, content=content, occurred_at=created))
    if messages:
        id_ = name(session) or PurePosixPath(file).stem
        yield Conversation(id=id_, place=file, messages=messages, started_at=started, metadata=about)


def _said(payload: dict[str, Any]) -> tuple[str, str]:
    """The text of a message, or the reason why it is not imported."""
    if payload.get("role") not in ("user", "assistant"):
        return "", "is an instruction of the program"
    said = (text(block.get("text")) for block in objects(payload.get("content")))
    content = "\n\n".join(filter(None, said)) or text(payload.get("content"))
    if _PROGRAM.match(content):
        return "", "is written by the program"
    return content, "" if content else "has no text"
