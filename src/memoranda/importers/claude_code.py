"""Transcripts of Claude Code: `~/.claude/projects`, a folder of it, or one `.jsonl` file.

Sources: notes/transcript-format.md of DRMacIver/claude-reliability and docs/conversation-data.md of
spences10/claude-code-analytics. There is no official description.

Each line of a transcript is a record. Records of the types `user` and `assistant` are messages; their content is a
text or a list of blocks. A record of the program itself has `isMeta`, of a subagent `isSidechain`, a summary that
replaces an earlier part of the conversation `isCompactSummary`. The file of a session is named after it; a subagent has
a file of its own. `memory/*.md` beside the transcripts are notes of the project.
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
from memoranda.importers.values import Conversation, Entry, Item, Message, Skipped

NAME = "claude-code"
MAX_NOTE = 1 << 20
_NOTE = re.compile(r"(?:^|/)memory/[^/]+\.md$")
_PROGRAM = re.compile(
    r"^(?:<(?:command-|local-command-|bash-|system-reminder|task-notification|user-memory-input)"
    r"|\[Request interrupted by user)"
)
LEFT_OUT = {
    "thinking": "is reasoning of the model",
    "redacted_thinking": "is reasoning of the model",
    "tool_use": "is a call of a tool",
    "tool_result": "is the output of a tool",
}


def matches(source: Source) -> bool:
    """Return True if the source has transcripts."""
    return any(_is_record(each) for file in _files(source)[:50] for each in source.head(file))


def read(source: Source) -> Iterator[Item]:
    """The conversations of all transcripts, and the notes of the projects."""
    yield from each_file(_files(source), lambda file: _transcript(source, file))
    notes = [each for each in source.names if _NOTE.search(each)]
    yield from each_file(notes, lambda file: _note(source, file))


def _files(source: Source) -> list[str]:
    return [each for each in source.names if each.endswith(".jsonl")]


def _is_record(value: dict[str, Any]) -> bool:
    type_ = value.get("type")
    if type_ == "summary":
        return "leafUuid" in value
    return isinstance(type_, str) and ("sessionId" in value or type_ == "file-history-snapshot")


def _transcript(source: Source, file: str) -> Iterator[Item]:
    messages: list[Message] = []
    about: dict[str, Any] = {}
    session, title = "", ""
    with source.open(file) as stream:
        for record in lines(stream):
            place = f"{file}, line {record.number}"
            if record.problem is not None or not isinstance(record.value, dict):
                why = record.problem or "is not an object"
                yield Skipped(kind="message", reason="is damaged", place=f"{place} {why}", failed=True)
                continue
            value = record.value
            session = session or text(value.get("sessionId"))
            about = about or named(
                {"cwd": text(value.get("cwd")), "git_branch": text(value.get("gitBranch"))}
            )
            title = text(value.get("customTitle")) or title
            if value.get("type") not in ("user", "assistant"):
                kind = text(value.get("type")) or "unknown"
                yield Skipped(kind="record", reason=f"is of the type {kind[:40]}, not a message", place=place)
                continue
            content, reason = _said(value)
            if reason:
                yield Skipped(kind="message", reason=reason, place=place)
                continue
            own = name(value.get("uuid")) or str(record.number)
            created = moment(value.get("timestamp"))
            yield from unread(place, value.get("timestamp"))
            messages.append(Message(id=own, role=value["type"], content=content, occurred_at=created))
    stem = PurePosixPath(file).stem
    id_ = stem if session in ("", stem) else f"{session}/{stem}"
    if messages:
        yield Conversation(id=id_, place=file, messages=messages, title=name(title), metadata=about)


def _said(value: dict[str, Any]) -> tuple[str, str]:
    """The text of a message, or the reason why it is not imported."""
    if value.get("isSidechain") is True:
        return "", "is between the program and a subagent"
    if value.get("isCompactSummary") is True:
        return "", "is a summary of earlier messages"
    if value.get("isMeta") is True or value.get("isApiErrorMessage") is True:
        return "", "is written by the program"
    content = mapping(value.get("message")).get("content")
    blocks = list(objects(content))
    said = (
        [text(content)]
        if isinstance(content, str)
        else [text(block.get("text")) for block in blocks if block.get("type") == "text"]
    )
    body = "\n\n".join(filter(None, said))
    if body:
        return ("", "is written by the program") if _PROGRAM.match(body) else (body, "")
    reasons = (LEFT_OUT.get(text(block.get("type"))) for block in blocks)
    return "", next(filter(None, reasons), "has no text")


def _note(source: Source, file: str) -> Iterator[Item]:
    with source.open(file) as stream:
        raw = stream.read(MAX_NOTE + 1)
    content = text(raw.decode("utf-8", "replace"))
    if len(raw) > MAX_NOTE or not content:
        reason = "has no text" if not content else "is larger than 1 MiB"
        yield Skipped(kind="note", reason=reason, place=file, failed=bool(content))
        return
    yield Entry(
        id=file, place=file, content=content, tags=["project-memory"],
        occurred_at=source.modified(file), metadata={"path": text(file)},
    )  # fmt: skip
