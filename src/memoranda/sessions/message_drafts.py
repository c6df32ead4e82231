"""Messages of callers turned into rows: checked, tokens counted, and marked as indexed or not."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from memoranda.config.sections import Sessions as Settings
from memoranda.errors import InvalidInput
from memoranda.sessions.log import Saying
from memoranda.sessions.records import MessageRow
from memoranda.sessions.values import ASKED, NEVER, Around, NewMessage
from memoranda.store.access import sees_all
from memoranda.store.ids import new_id
from memoranda.store.origins import hidden
from memoranda.store.rows import Record
from memoranda.store.validation import Bounds, Draft, check_name, draft
from memoranda.text.hashing import digest
from memoranda.text.json import compact_json
from memoranda.text.tokens import count
from memoranda.types import MACHINES, NewMemory, Subject, Through

SOURCE = "message"
"""The source of the memories of messages."""
SAME_ROLES = {"human": "user", "ai": "assistant"}
"""LangChain's names of roles, and those that are stored in their place."""


class Place:
    """Where messages belong, for whom they are stored, and the settings that apply to all of them."""

    def __init__(self, subject: Subject, around: Around) -> None:
        response_id = around.get("response_id")
        self.subject = subject if response_id is None else _through(subject, response_id)
        self.session_id = around.get("session_id")
        self.channel_id = around.get("channel_id")
        self.agent_id = around.get("agent_id")
        self.user_id = around.get("user_id", msgspec.UNSET)
        self.response_id = response_id
        self.extraction = around.get("extraction")
        for name in ("session_id", "channel_id", "agent_id"):
            check_name(getattr(self, name), name)
        if self.session_id is None and self.channel_id is None:
            raise InvalidInput("channel_id", "name the channel it was said in, or a session_id")

    def writer(self, role: str) -> Subject:
        """Return the subject of a message: what a response had read before is nothing that the user says."""
        through = self.subject.through
        if through is None or not through.read or role.lower() in MACHINES:
            return self.subject
        return replace(self.subject, through=replace(through, read=()))

    def key(self, row: Record, new: NewMessage, speaker: str | None) -> str:
        """Return the key that makes two messages the same one: the given id; else the place, speaker, time and text if
        the time is given; else it is unique."""
        if new.id is not None:
            return digest(compact_json(["id", new.id]))
        if new.occurred_at is None:
            return digest(compact_json(["new", row.id]))
        place = ["session", self.session_id] if self.session_id is not None else ["channel", self.channel_id]
        said = [*place, row.user_id, self.owner(row.user_id), row.role, speaker, row.occurred_at]
        return digest(compact_json(said), row.content_hash)

    def owner(self, user_id: str | None) -> str | None:
        """Return the user whose sessions in a channel are separate; None if the writer sees all users."""
        return None if sees_all(self.subject) else user_id


def _through(subject: Subject, response_id: str) -> Subject:
    """Return the subject that writes through a response."""
    through = subject.through or Through()
    return replace(subject, through=replace(through, by=(*through.by, response_id)))


def sayings(
    new: Sequence[NewMessage], place: Place, now: int, settings: Settings, bounds: Bounds
) -> list[Saying]:
    """Return the messages in the form to be stored. Tokens are counted: do not run this on the event loop for many.

    Raises:
        InvalidInput: names the message by its place (`[3].role`), the field and the fix.
    """
    return [
        _saying(message, place, now, settings, bounds, f"[{i}]." if len(new) > 1 else "")
        for i, message in enumerate(new)
    ]


def _saying(
    new: NewMessage, place: Place, now: int, settings: Settings, bounds: Bounds, where: str
) -> Saying:
    check_name(new.speaker, f"{where}speaker")
    memory = draft(_memory(new, place), place.writer(new.role), now, bounds, where)
    key = place.key(memory.row, new, new.speaker)
    if memory.row.role is None:
        raise InvalidInput(f"{where}role", "must be a string that is not empty: user, assistant, tool, ...")
    memory = message_draft(memory, key)
    row = memory.row
    message = MessageRow(
        tenant_id=row.tenant_id,
        seq=0,
        id=row.id,
        key=key,
        session_id="",
        channel_id=place.channel_id,
        user_id=row.user_id,
        agent_id=place.agent_id,
        role=memory.row.role or "",
        speaker=new.speaker,
        content=row.content,
        tokens=count(row.content),
        metadata=_logged(row, new),
        response_id=place.response_id,
        indexed=int(is_indexed(row.role or "", row.content, settings)),
        extract=ASKED if place.extraction else NEVER,
        occurred_at=row.occurred_at,
        created_at=now,
    )
    return Saying(message, memory if message.indexed else None, new.id is not None)


def _logged(row: Record, new: NewMessage) -> str:
    """Return the metadata of a message in the log: the given, and the hidden keys of its memory."""
    stamp = hidden(row.metadata)
    return compact_json({**new.metadata, **stamp}) if new.metadata or stamp else "{}"


def _memory(new: NewMessage, place: Place) -> NewMemory:
    metadata = new.metadata if new.speaker is None else {**new.metadata, "speaker": new.speaker}
    return NewMemory(
        content=new.content,
        id=new_id("msg_") if new.id is None else new.id,
        kind="message",
        user_id=place.user_id if isinstance(new.user_id, msgspec.UnsetType) else new.user_id,
        agent_id=place.agent_id,
        channel_id=place.channel_id,
        role=SAME_ROLES.get(new.role, new.role),
        source=SOURCE,
        metadata=metadata,
        occurred_at=new.occurred_at,
    )


def message_draft(memory: Draft, key: str) -> Draft:
    """Return the draft of a message's memory: its date is known, and the same text sent twice is two memories."""
    memory.row = memory.row._replace(dated=1, dedup_key=digest(compact_json(["message", key])))
    return memory


def is_indexed(role: str, content: str, settings: Settings) -> bool:
    """Return True if a message is to be indexed for search."""
    long_enough = len(content) >= settings.min_length
    short_enough = not settings.max_length or len(content) <= settings.max_length
    return settings.index_messages and role in settings.roles and long_enough and short_enough
