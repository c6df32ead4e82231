"""The messages just before and after a message in the results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import msgspec
from msgspec.structs import replace

from memoranda.clock import moment
from memoranda.contexts.choosing import Chosen
from memoranda.contexts.result_text import excerpt, memory_text, spoken
from memoranda.contexts.values import OriginClass
from memoranda.sessions.records import sees, session_of
from memoranda.storage.sql.base import Connection, Row
from memoranda.store.access import sees_all
from memoranda.store.origins import hidden, origin_of
from memoranda.text.stored import compact_json
from memoranda.types import Subject


class Line(msgspec.Struct, frozen=True):
    """A message in its prompt form: `place` orders those of one session."""

    id: str
    text: str
    place: tuple[int, int]


class Window(msgspec.Struct):
    """Memories in one piece of the prompt, the best first, with the messages between and around them. `lines` is empty
    for a single one. `user` is for whom they are."""

    found: list[Chosen]
    lines: list[Line] = msgspec.field(default_factory=list)
    user: str | None = None

    def texts(self, question: str) -> list[str]:
        """Return the piece line by line; of a long memory, where it has most words of the question."""
        if self.lines:
            return [line.text for line in self.lines]
        best = self.found[0]
        shown = replace(best.memory, content=excerpt(best.memory.content, question))
        return [memory_text(shown, best.until, latest=best.latest, hour=best.hour, user=self.user)]

    @property
    def ids(self) -> list[str]:
        """The ids of everything in it, in order."""
        return [line.id for line in self.lines] or [self.found[0].memory.id]


class Reach(msgspec.Struct, frozen=True):
    """How far to widen: messages on either side, at most `tokens` of them, none sent after `until`, none of `shown`;
    `user` is for whom they are."""

    messages: int
    tokens: int
    count: Callable[[str], int]
    until: int | None
    user: str | None
    shown: Collection[str]


def widened(c: Connection, subject: Subject, candidates: Sequence[Chosen], reach: Reach) -> list[Window]:
    """Return the memories, each message with the neighbours in its session that the subject sees; overlapping windows
    are merged."""
    tenant = subject.tenant_id
    ids = compact_json(
        [candidate.memory.id for candidate in candidates if candidate.memory.kind == "message"]
    )
    places = {row[0]: row[1:] for row in c.all("places_said", [tenant, ids])}
    windows: list[Window] = []
    for candidate in candidates:
        if candidate.memory.id not in places:
            windows.append(Window([candidate], user=reach.user))
            continue
        session, occurred_at, seq = places[candidate.memory.id]
        own = Line(
            candidate.memory.id,
            memory_text(
                candidate.memory,
                candidate.until,
                latest=candidate.latest,
                hour=candidate.hour,
                user=reach.user,
            ),
            (occurred_at, seq),
        )
        key = [tenant, session, occurred_at, seq, reach.messages]
        users = None if _whole(c, subject, session) else (subject.user_id, None)
        before = _visible_lines(c.all("said_before", key), users, reach)
        behind = _visible_lines(c.all("said_behind", key), users, reach)
        _join(
            windows,
            Window(
                [candidate],
                sorted([own, *_within(before, behind, reach)], key=lambda at: at.place),
                reach.user,
            ),
        )
    return windows


def _whole(c: Connection, subject: Subject, session: str) -> bool:
    """Return True if the subject sees every message of a session."""
    if sees_all(subject):
        return True
    row = session_of(c, subject.tenant_id, session)
    return row is not None and sees(subject, row)


def _visible_lines(rows: Sequence[Row], users: Collection[str | None] | None, reach: Reach) -> list[Line]:
    """Return the rows up to the first of a user not in `users` (None: any user), or that is shown elsewhere."""
    lines: list[Line] = []
    for id_, role, speaker, content, user_id, occurred_at, seq, metadata in rows:
        unseen = users is not None and user_id not in users
        if unseen or id_ in reach.shown or (reach.until is not None and occurred_at > reach.until):
            break
        origin: OriginClass = origin_of(hidden(metadata), "message", role)
        if origin == "user" and None not in (user_id, reach.user) and user_id != reach.user:
            origin = "member"
        mark = "" if origin in ("user", speaker or role) else f", {origin}"
        text = spoken(speaker or role, content, moment(occurred_at), mark=mark)
        lines.append(Line(id_, text, (occurred_at, seq)))
    return lines


def _within(before: list[Line], behind: list[Line], reach: Reach) -> list[Line]:
    """Return the nearest of both sides in turn, within the tokens."""
    left, taken = reach.tokens, list[Line]()
    sides = [list(before), list(behind)]
    while any(sides):
        for side in sides:
            if side and (spent := reach.count(side[0].text)) <= left:
                left -= spent
                taken.append(side.pop(0))
            else:
                side.clear()
    return taken


def _join(windows: list[Window], new: Window) -> None:
    """Add a window, merged with those that it overlaps."""
    ids = set(new.ids)
    meeting = [window for window in windows if window.lines and ids & set(window.ids)]
    if not meeting:
        windows.append(new)
        return
    first, *others = meeting
    lines = {line.id: line for window in (*meeting, new) for line in window.lines}
    first.lines = sorted(lines.values(), key=lambda at: at.place)
    first.found += [candidate for window in (*others, new) for candidate in window.found]
    for window in others:
        windows.remove(window)
