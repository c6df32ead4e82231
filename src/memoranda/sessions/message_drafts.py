"""Messages of callers turned into rows: checked, tokens counted, and marked as indexed or not; then ready to be
stored, alone or in one transaction with other writes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from memoranda.config.agent_sections import Sessions as Settings
from memoranda.errors import InvalidInput
from memoranda.sessions.boundaries import SessionCloser, note
from memoranda.sessions.log import Heard, Log, Logged, Saying, known_messages
from memoranda.sessions.records import MessageRow, session_of, to_message
from memoranda.sessions.switches import switches_of
from memoranda.sessions.values import (
    ASKED,
    NEVER,
    SWITCHED,
    Around,
    Mode,
    NewMessage,
    Observed,
    extraction_mode,
)
from memoranda.storage.sql.base import Connection
from memoranda.store.access import sees_all
from memoranda.store.changes import CHARS, parted
from memoranda.store.core import Core
from memoranda.store.ids import new_id
from memoranda.store.origins import hidden
from memoranda.store.rows import Draft, Record
from memoranda.store.transaction import Writing, compared
from memoranda.store.validation import Bounds, check_name, draft
from memoranda.text.hashing import digest
from memoranda.text.stored import compact_json
from memoranda.text.tokens import count
from memoranda.types import MACHINES, NewMemory, Subject, Through

SOURCE = "message"
"""The source of the memories of messages."""
SAME_ROLES = {"human": "user", "ai": "assistant"}
"""LangChain's names of roles, and those that are stored in their place."""


class MessageTarget:
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
    new: Sequence[NewMessage], place: MessageTarget, now: int, settings: Settings, bounds: Bounds
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
    new: NewMessage, place: MessageTarget, now: int, settings: Settings, bounds: Bounds, where: str
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


def _memory(new: NewMessage, place: MessageTarget) -> NewMemory:
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


T = TypeVar("T")
Written = list[tuple[list[int], Logged]]
"""The results of a write, by group: the places of its messages, and what was stored."""


class Ready:
    """Messages checked and counted. `write` stores them in a transaction; after the commit `observed` returns the
    results and `woken` the kinds of jobs to wake."""

    def __init__(self, core: Core, place: MessageTarget, sayings: Sequence[Saying], now: int) -> None:
        self._core = core
        self._place = place
        self._sayings = sayings
        self._now = now

    def steps(self, size: int) -> Iterator[Ready]:
        """Yield the messages in parts of so many, of long ones fewer."""
        for some in parted(self._sayings, _weight, size):
            yield Ready(self._core, self._place, some, self._now)

    def not_searched(self, role: str) -> Ready:
        """Return these messages, those of a role only for the log: no search finds them."""
        sayings = [
            replace(saying, row=saying.row._replace(indexed=0), draft=None)
            if saying.row.role == role
            else saying
            for saying in self._sayings
        ]
        return Ready(self._core, self._place, sayings, self._now)

    def check(self, c: Connection) -> None:
        """Check the ids of messages that take several steps to write.

        Raises:
            Conflict: an id already names another text.
        """
        subject, sayings = self._place.subject, self._sayings
        known = known_messages(c, subject, sayings)
        fresh = [saying.draft for saying in sayings if saying.draft and saying.row.key not in known]
        compared(c, subject.tenant_id, fresh)

    def write(self, w: Writing) -> Written:
        """Store the messages; a user's own messages and those for everybody are cut into separate sessions.

        Raises:
            Conflict: an id already names another text, or the session was cut out of a channel.
            NotFound: the session is another's.
        """
        place, closer = self._place, SessionCloser(self._core)
        mode, sayings = self._to_extract(w.c)
        groups: dict[str | None, list[int]] = {}
        for i, saying in enumerate(sayings):
            owner = place.owner(saying.row.user_id) if place.session_id is None else None
            groups.setdefault(owner, []).append(i)
        done: Written = []
        for owner, places in groups.items():
            heard = Heard(
                place.subject, [sayings[i] for i in places], place.session_id, place.channel_id, owner,
                place.agent_id, mode, self._now,
            )  # fmt: skip
            done.append((places, Log(w, heard, closer).write()))
        return done

    def _to_extract(self, c: Connection) -> tuple[Mode, Sequence[Saying]]:
        """Return when facts are extracted from the messages, and the messages marked with it: as the request asks, else
        as the channel or the tenant is switched, else as configured."""
        place, facts = self._place, self._core.config.facts
        if place.extraction is not None:
            return extraction_mode(facts, place.extraction), self._sayings
        channel = place.channel_id
        if channel is None and place.session_id is not None:
            session = session_of(c, place.subject.tenant_id, place.session_id)
            channel = None if session is None else session.channel_id
        switched = switches_of(c, place.subject.tenant_id, [channel])[channel]
        mode = extraction_mode(facts, switched.extraction)
        mark = NEVER if mode == "off" else SWITCHED
        return mode, [replace(saying, row=saying.row._replace(extract=mark)) for saying in self._sayings]

    def observed(self, written: Written) -> list[Observed]:
        """Return the result of each message, in order; call it after the commit."""
        results: dict[int, Observed] = {}
        tally = self._core.tally
        for places, logged in written:
            for i, (row, created) in zip(places, logged.rows, strict=True):
                results[i] = Observed(message=to_message(row), created=created)
            note(self._core, "opened", self._place.subject.tenant_id, logged.opened)
            note(self._core, "closed", self._place.subject.tenant_id, logged.closed)
            tally["messages_observed"] += sum(created for _, created in logged.rows)
            if logged.due_at:
                self._core.due_times.announce(logged.due_at)
        return [results[i] for i in range(len(self._sayings))]

    @staticmethod
    def woken(written: Written) -> set[str]:
        """Return the kinds of jobs that were enqueued."""
        return {kind for _, logged in written for kind in logged.woken}


def _weight(saying: Saying) -> float:
    """Return how many messages of ordinary size one counts as."""
    return max(1, len(saying.row.content) / CHARS)


async def changed(
    core: Core, tenant: str, work: Callable[[Writing], T], woken: Callable[[T], Iterable[str]]
) -> T:
    """Return the result of a transaction; `woken` names the kinds of jobs that it enqueued, which are woken even if the
    caller is cancelled meanwhile."""
    future = core.store.transact(tenant, work)
    loop = asyncio.get_running_loop()

    def then(done: Future[T]) -> None:
        if done.exception() is not None:
            return
        for kind in woken(done.result()):
            with contextlib.suppress(RuntimeError):  # the loop has ended: the next start checks anyway
                loop.call_soon_threadsafe(core.jobs.wake, kind)

    future.add_done_callback(then)
    return await core.threads.result(future)
