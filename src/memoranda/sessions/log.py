"""The message log: stores messages, cuts them into sessions and indexes those to be found, in one transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from memoranda.errors import Conflict, NotFound
from memoranda.sessions import boundaries
from memoranda.sessions.boundaries import Cluster, SessionCloser
from memoranda.sessions.merge import JOIN_JOB, merged, near, united
from memoranda.sessions.records import (
    MessageRow,
    SessionRow,
    kept_owner,
    messages_by_id,
    sees,
    session_of,
    set_session,
    texts_of,
)
from memoranda.sessions.values import EXTRACT_JOB, MODES, Mode
from memoranda.storage.sql.base import Connection
from memoranda.store.changes import ROWS
from memoranda.store.rows import Draft
from memoranda.store.transaction import Writing
from memoranda.types import Subject


class Saying(msgspec.Struct):
    """A message to be stored: its row without a place, and the memory by which search finds it, if it is indexed."""

    row: MessageRow
    draft: Draft | None
    named: bool
    """True if the caller gave its id."""


class Heard(msgspec.Struct, frozen=True):
    """Messages that arrived together, for one session or one channel. `owner` is the user that the writer is bound to:
    the sessions of each owner are cut separately."""

    subject: Subject
    sayings: Sequence[Saying]
    session_id: str | None
    channel_id: str | None
    owner: str | None
    agent_id: str | None
    extraction: Mode
    now: int


class Logged(msgspec.Struct):
    """The result of a write: the rows, whether each is new, and the sessions that changed."""

    rows: list[tuple[MessageRow, bool]] = msgspec.field(default_factory=list)
    sessions: list[str] = msgspec.field(default_factory=list)
    opened: list[str] = msgspec.field(default_factory=list)
    closed: list[str] = msgspec.field(default_factory=list)
    due_at: int = 0
    woken: set[str] = msgspec.field(default_factory=set)


class Log:
    """Writes messages of one transaction."""

    def __init__(self, w: Writing, heard: Heard, closer: SessionCloser) -> None:
        self.w = w
        self.heard = heard
        self.closer = closer
        self.settings = closer.settings
        self.tenant = heard.subject.tenant_id
        self.logged = Logged()
        self._became: dict[str, str] = {}
        """Sessions merged into another one, and which."""

    def write(self) -> Logged:
        """Store the messages that are new.

        Raises:
            Conflict: an id already names another text.
            NotFound: the session is another's.
        """
        heard, c = self.heard, self.w.c
        first = self.w.draw(len(heard.sayings))  # other writers wait from here on
        known = known_messages(c, heard.subject, heard.sayings)
        fresh: list[Saying] = []
        for saying in heard.sayings:
            if saying.row.key not in known:
                saying = Saying(saying.row._replace(seq=first + len(fresh)), saying.draft, saying.named)
                known[saying.row.key] = saying.row
                fresh.append(saying)
        if fresh:
            fresh = self._placed(fresh)
            c.load("messages", MessageRow._fields, [saying.row for saying in fresh])
            drafts = [saying.draft for saying in fresh if saying.draft is not None]
            if len(drafts) < len(fresh):
                c.run("add_tenant", [self.tenant, heard.now])
            self.w.insert(drafts)
        new = {saying.row.key: saying.row for saying in fresh}
        for saying in heard.sayings:
            key = saying.row.key
            self.logged.rows.append((new.get(key) or known[key], new.pop(key, None) is not None))
        return self.logged

    # --- sessions ----------------------------------------------------------------------------------

    def _placed(self, fresh: Sequence[Saying]) -> list[Saying]:
        """Return the messages with their sessions, after writing those."""
        placed: list[Saying] = [*fresh]
        for cluster in self._clusters(fresh):
            some = [fresh[place] for place in cluster.places]
            id_ = self._session(cluster, some)
            for place, saying in zip(cluster.places, some, strict=True):
                placed[place] = Saying(saying.row._replace(session_id=id_), saying.draft, saying.named)
        return [self._settled(saying) for saying in placed]

    def _settled(self, saying: Saying) -> Saying:
        id_ = saying.row.session_id
        while id_ in self._became:
            id_ = self._became[id_]
        if saying.draft is not None:
            saying.draft.row = saying.draft.row._replace(session_id=id_)
        return Saying(saying.row._replace(session_id=id_), saying.draft, saying.named)

    def _clusters(self, fresh: Sequence[Saying]) -> list[Cluster]:
        times = [saying.row.occurred_at for saying in fresh]
        whole = self.heard.session_id is not None or not self.settings.enabled
        return boundaries.clusters(times, boundaries.FOREVER if whole else self.closer.gap)

    def _session(self, cluster: Cluster, sayings: Sequence[Saying]) -> str:
        """Return the id of the session of these messages, after it was updated or created."""
        matching = self._matching(cluster)
        row = self._begun(cluster) if not matching else matching[0]
        joined = [saying.row for saying in sayings]
        row = self._with_others(row, matching[1:])
        row = self._with(row, cluster, joined)
        if matching:
            set_session(self.w.c, row)
        else:
            self.w.c.load("sessions", SessionRow._fields, [row])
            self.logged.opened.append(row.id)
            self._close_earlier(cluster)
        if row.extraction == "eager" and EXTRACT_JOB in self.closer.jobs.kinds:
            self.closer.jobs.place(
                self.w.c, self.tenant, EXTRACT_JOB, {"session_id": row.id}, dedup_key=row.id
            )
            self.logged.woken.add(EXTRACT_JOB)
        self.logged.sessions.append(row.id)
        self.logged.due_at = min(self.logged.due_at or row.due_at, row.due_at)
        return row.id

    def _matching(self, cluster: Cluster) -> list[SessionRow]:
        """Return the existing sessions that the messages belong to; several are to be merged."""
        heard, c = self.heard, self.w.c
        if heard.session_id is not None:
            row = session_of(c, self.tenant, heard.session_id)
            if row is None:
                return []
            if not sees(heard.subject, row):
                raise NotFound(f"no session {heard.session_id!r}")
            if not row.named:
                raise Conflict(
                    f"session_id: {row.id!r} was cut out of channel {row.channel_id!r}; send the channel_id"
                )
            return [row]
        if not self.settings.enabled:
            last = self._before(boundaries.FOREVER)
            return [last] if last is not None and last.status == "open" else []
        return near(c, self.tenant, heard.channel_id, heard.owner, cluster, self.closer.gap)

    @property
    def _private(self) -> int:
        return int(self.heard.owner is not None)

    def _before(self, moment: int) -> SessionRow | None:
        values = [self.tenant, self.heard.channel_id, moment, self._private, self.heard.owner]
        row = self.w.c.one("session_before", values)
        return None if row is None else SessionRow._make(row)

    def _close_earlier(self, cluster: Cluster) -> None:
        """Close the session before the silence."""
        if self.heard.session_id is not None or not self.settings.enabled:
            return
        row = self._before(cluster.started_at - self.closer.gap)
        if row is not None and row.status == "open":
            self.logged.woken |= self.closer.close(self.w.c, [row], self.heard.now)
            self.logged.closed.append(row.id)

    def _begun(self, cluster: Cluster) -> SessionRow:
        heard = self.heard
        seq = self.w.draw(1)
        return SessionRow(
            tenant_id=self.tenant,
            id=heard.session_id or f"ses_{heard.now:013x}{seq:012x}",
            seq=seq,
            rev=seq,
            named=int(heard.session_id is not None),
            private=self._private,
            channel_id=heard.channel_id,
            user_id=heard.owner,
            agent_id=heard.agent_id,
            metadata="{}",
            started_at=cluster.started_at,
            ended_at=cluster.ended_at,
            last_seen_at=0,
            due_at=0,
            message_count=0,
            participants="[]",
            users="[]",
            status="open",
            summary=None,
            topics="[]",
            decisions="[]",
            open_questions="[]",
            action_items="[]",
            entities="[]",
            summary_id=None,
            summary_model=None,
            summary_version=None,
            summary_created_at=None,
            summary_rev=None,
            failure=None,
            pending=0,
            attempts=0,
            next_try_at=0,
            extraction="off",
            facts_seq=0,
            facts_rev=0,
            facts_failure=None,
            facts_attempts=0,
            facts_next_try_at=0,
            created_at=heard.now,
            updated_at=heard.now,
        )

    def _with(self, row: SessionRow, cluster: Cluster, joined: Sequence[MessageRow]) -> SessionRow:
        """Return the session with messages added to it: it is open."""
        heard = self.heard
        ended = max(row.ended_at, cluster.ended_at)
        users = united(row.users, [message.user_id for message in joined if message.user_id is not None])
        return row._replace(
            rev=self.w.draw(1),
            channel_id=row.channel_id or heard.channel_id,
            user_id=kept_owner(row, texts_of(users)),
            agent_id=row.agent_id or heard.agent_id,
            started_at=min(row.started_at, cluster.started_at),
            ended_at=ended,
            last_seen_at=heard.now,
            due_at=boundaries.due_at(ended, heard.now, self.closer.gap),
            message_count=row.message_count + len(joined),
            participants=united(row.participants, [message.name for message in joined]),
            users=users,
            status="open",
            failure=None,
            pending=0,
            attempts=0,
            next_try_at=0,
            extraction=max(row.extraction, heard.extraction, key=MODES.index),
            updated_at=heard.now,
        )

    def _with_others(self, row: SessionRow, others: Sequence[SessionRow]) -> SessionRow:
        """Merge sessions that messages between them connect. What is too much for one transaction is left to a job, and
        so are sessions that another one was about to merge."""
        most, left = ROWS, False
        for other in others:
            if other.message_count > most:
                left = True
                continue
            most -= other.message_count
            left = left or self.w.c.one("twin_job", [self.tenant, JOIN_JOB, other.id]) is not None
            row = merged(self.w, row, other, self.heard.now)
            self._became[other.id] = row.id
        if left:
            payload = {"session_id": row.id}
            self.closer.jobs.place(self.w.c, self.tenant, JOIN_JOB, payload, dedup_key=row.id)
            self.logged.woken.add(JOIN_JOB)
        return row


def known_messages(c: Connection, subject: Subject, sayings: Sequence[Saying]) -> dict[str, MessageRow]:
    """Return the messages that are stored already, by key.

    Raises:
        Conflict: an id names two texts, or a message that the subject does not see.
    """
    texts: dict[str, str] = {}
    for saying in sayings:
        if texts.setdefault(saying.row.key, saying.row.content) != saying.row.content:
            raise Conflict(f"id: {saying.row.id!r} names two texts; choose another id for one of them")
    keys = json.dumps([saying.row.key for saying in sayings])
    rows = [MessageRow._make(row) for row in c.all("messages_by_key", [subject.tenant_id, keys])]
    known = {row.key: row for row in rows}
    named = {
        saying.row.id: saying.row.key for saying in sayings if saying.named and saying.row.key not in known
    }
    known |= {named[id_]: row for id_, row in messages_by_id(c, subject.tenant_id, named).items()}
    for saying in sayings:
        row = known.get(saying.row.key)
        if row is None:
            continue
        session = session_of(c, subject.tenant_id, row.session_id)
        seen = session is None or sees(subject, session)
        if not seen or (saying.named and row.content != saying.row.content):
            raise Conflict(f"id: {row.id!r} already names another text; update it, or choose another id")
    return known
