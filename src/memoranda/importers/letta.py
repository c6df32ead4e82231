"""Agent files of Letta (`.af`).

Source: letta/schemas/agent_file.py of letta-ai/letta. An agent file has `agents` with their messages, and `blocks`, the
parts of core memory that agents share. The first version was one agent with `core_memory` and `messages`.

What an agent says to the user is the argument of its tool `send_message`; the text beside it is its reasoning. An agent
that has no such tool answers with the text. What users say may be wrapped in a JSON object of the type `user_message`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memoranda.importers.dates import moment, unread
from memoranda.importers.fields import items, mapping, name, named, objects, text
from memoranda.importers.json_stream import decoded
from memoranda.importers.sources import Source, each_file, left_out
from memoranda.importers.values import Conversation, Entry, Item, Message, Skipped
from memoranda.text.hashing import digest

NAME = "letta"
PROGRAM = frozenset({"heartbeat", "login", "system_alert", "bootup"})
"""Types of wrapped messages that the server writes in the user's name."""

FILES = (".af", ".json")


def matches(source: Source) -> bool:
    """Return True if the source is such a file."""
    return any(_is_agent_file(each) for file in source.ending(*FILES)[:20] for each in source.head(file)[:1])


def read(source: Source) -> Iterator[Item]:
    """Core memory as notes, the messages of each agent as a conversation."""
    files = source.ending(*FILES)
    yield from each_file(files, lambda file: _read_file(source, file))
    yield from left_out(source, files)


def _is_agent_file(value: dict[str, Any]) -> bool:
    return {"agents", "blocks"} <= value.keys() or {"core_memory", "messages"} <= value.keys()


def _read_file(source: Source, file: str) -> Iterator[Item]:
    for record in source.records(file):
        value = mapping(record.value)
        if record.problem is not None or not _is_agent_file(value):
            why = record.problem or "has no agents and blocks"
            yield Skipped(kind="file", reason="is damaged", place=f"{file} {why}", failed=True)
            continue
        agents = list(objects(value.get("agents"))) or [value]
        for block in objects(value.get("blocks", value.get("core_memory"))):
            owners = [each for each in agents if block.get("id") in items(each.get("block_ids"))]
            yield _block(block, owners if "agents" in value else agents, file)
        for number, agent in enumerate(agents, 1):
            yield from _agent(agent, number, file)


def _block(block: dict[str, Any], owners: list[dict[str, Any]], file: str) -> Item:
    label, content = text(block.get("label")), text(block.get("value"))
    place = f"{file}, block {label}"
    if not content:
        return Skipped(kind="block", reason="has no text", place=place)
    agent = name(owners[0].get("name")) if len(owners) == 1 else None
    return Entry(
        id=digest("block", agent or "", label, content),
        place=place,
        content=content,
        tags=["core-memory"],
        metadata=named({"label": label, "description": text(block.get("description"))}),
        agent_id=agent,
    )


def _agent(agent: dict[str, Any], number: int, file: str) -> Iterator[Item]:
    title = name(agent.get("name")) or f"agent {number}"
    messages: list[Message] = []
    listed = items(agent.get("messages"))
    sends = any(_sent(mapping(each)) for each in listed)
    for position, each in enumerate(listed, 1):
        place = f"{file}, {title}, message {position}"
        message = mapping(each)
        content, reason = _said(message, sends)
        if reason:
            yield Skipped(kind="message", reason=reason, place=place)
            continue
        own = name(message.get("id")) or str(position)
        created = moment(message.get("created_at"))
        yield from unread(place, message.get("created_at"))
        messages.append(Message(id=own, role=message["role"], content=content, occurred_at=created))
    if messages:
        # Ids restart in every agent file, so the id is a digest of the agent's first message.
        first = messages[0]
        when = first.occurred_at.isoformat() if first.occurred_at else ""
        id_ = digest(title, when, first.content)
        yield Conversation(id=id_, place=f"{file}, {title}", messages=messages, title=title)


def _sent(message: dict[str, Any]) -> str:
    """The texts that an agent sends to the user with its tool."""
    texts = []
    for call in objects(message.get("tool_calls")):
        function = mapping(call.get("function"))
        if function.get("name") == "send_message":
            texts.append(text(_unwrapped(text(function.get("arguments"))).get("message")))
    return "\n\n".join(filter(None, texts))


def _said(message: dict[str, Any], sends: bool) -> tuple[str, str]:
    """The text of a message, or the reason why it is not imported."""
    role = message.get("role")
    if role not in ("user", "assistant"):
        return "", "is the output of a tool" if role == "tool" else "is a system prompt"
    content = message.get("content")
    said = (text(part.get("text")) for part in objects(content) if part.get("type") == "text")
    body = text(content) or "\n\n".join(filter(None, said)) or text(message.get("text"))
    if role == "assistant":
        if sends:
            sent = _sent(message)
            return sent, "" if sent else "is reasoning of the model"
        return body, "" if body else "is a call of a tool"
    wrapped = _unwrapped(body)
    if text(wrapped.get("type")) in PROGRAM:
        return "", "is written by the program"
    if wrapped.get("type") == "user_message":
        body = text(wrapped.get("message"))
    return body, "" if body else "has no text"


def _unwrapped(said: str) -> dict[str, Any]:
    """The JSON object that a text is; empty for any other text."""
    try:
        return mapping(decoded(said.encode("utf-8"))) if said.startswith("{") else {}
    except ValueError:
        return {}
