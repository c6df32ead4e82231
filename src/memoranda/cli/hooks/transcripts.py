"""The messages of a client's transcript: one JSON value a line, of which the new ones are read.

- Claude Code: `user` and `assistant` entries with a `uuid`, a `timestamp` and a `message`
  (https://code.claude.com/docs/en/hooks, `transcript_path`).
- Codex: entries of type `response_item` whose payload is a message. Codex calls its format no stable interface
  (https://developers.openai.com/codex/hooks); these entries are what it resumes sessions from.
- Gemini CLI: records with an `id`, a `timestamp`, a `type` and a `content`
  (https://github.com/google-gemini/gemini-cli, packages/core/src/services/chatRecordingTypes.ts).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any

from memoranda.text.hashing import digest

ADDED = re.compile(r"<(system-reminder|hook_context)>.*?</\1>", re.DOTALL)
"""What clients and hooks add to the text of a person."""
NOT_SAID = re.compile(
    r"<(?:command-|local-command-|bash-|environment_context|user_instructions|turn_aborted|task-notification)"
    r"|# AGENTS\.md instructions|Caveat: The messages below|\[Request interrupted"
)
"""What texts begin with that a client wrote in the name of a person."""
HIDDEN = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
"""Marks of entries of Claude Code that are no part of the conversation with the person."""
Message = dict[str, Any]


def messages_after(path: str, offset: int, session_id: str) -> Iterator[tuple[Message | None, int]]:
    """Yield the messages behind a position, each with the position behind its line; None for lines without a message.
    A file that is shorter than the position is read from its beginning. A last line without an end is left for later.

    Raises:
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        if offset > os.fstat(file.fileno()).st_size:
            offset = 0
        file.seek(offset)
        for line in file:
            if not line.endswith(b"\n"):
                return
            offset += len(line)
            yield message_of(line, session_id), offset


def message_of(line: bytes, session_id: str) -> Message | None:
    """Return the message of a line of a transcript, as `/v1/messages` takes it; None if it is none."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    if not isinstance(entry, dict):
        return None
    if entry.get("type") == "response_item":
        message_parts = _of_codex(entry, session_id)
    elif "uuid" in entry:
        message_parts = _of_claude(entry)
    else:
        message_parts = _of_gemini(entry)
    if message_parts is None:
        return None
    role, id_, content = message_parts
    content = ADDED.sub("", content).strip()
    if not content or not isinstance(id_, str) or (role == "user" and NOT_SAID.match(content)):
        return None
    message = {"id": id_, "role": role, "content": content}
    return message | ({"occurred_at": entry["timestamp"]} if entry.get("timestamp") else {})


def _of_claude(entry: dict[str, Any]) -> tuple[str, Any, str] | None:
    message = entry.get("message")
    role = entry.get("type")
    if role not in ("user", "assistant") or not isinstance(message, dict) or any(map(entry.get, HIDDEN)):
        return None
    return role, entry["uuid"], _text(message.get("content"), ("text",))


def _of_codex(entry: dict[str, Any], session_id: str) -> tuple[str, Any, str] | None:
    payload = entry.get("payload")
    if not isinstance(payload, dict) or payload.get("type") != "message":
        return None
    role = payload.get("role")
    if role not in ("user", "assistant"):
        return None
    content = _text(payload.get("content"), ("input_text", "output_text"))
    own = payload.get("id") or digest(f"{session_id} {entry.get('timestamp')} {role} {content}")
    return role, own, content


def _of_gemini(entry: dict[str, Any]) -> tuple[str, Any, str] | None:
    role = {"user": "user", "gemini": "assistant"}.get(str(entry.get("type")))
    if role is None:
        return None
    return role, entry.get("id"), _text(entry.get("displayContent") or entry.get("content"), (None,))


def _text(content: Any, kinds: tuple[str | None, ...]) -> str:
    """Return the text of a content: a string, or the parts of these types."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = [content]
    parts = content if isinstance(content, list) else []
    return "\n\n".join(
        part if isinstance(part, str) else part["text"]
        for part in parts
        if isinstance(part, str)
        or (isinstance(part, dict) and part.get("type") in kinds and isinstance(part.get("text"), str))
    )
