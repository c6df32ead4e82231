"""What was said just before and after a message that was found."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from memoranda.clock import moment
from memoranda.contexts.choosing import Chosen
from memoranda.contexts.telling import memory_text, spoken
from memoranda.sessions.records import sees, session_of
from memoranda.storage.sql.base import Connection, Row
from memoranda.store.access import sees_all
from memoranda.text.json import compact_json
from memoranda.types import Subject


@dataclass(frozen=True, slots=True)
class Line:
    """A message as it is told: `place` orders those of one session."""

    id: str
    text: str
    place: tuple[int, int]


@dataclass(slots=True)
class Window:
    """Memories that are told in one piece, the best first, with the messages between and around them. `lines` is empty
    for one that stands alone."""

    found: list[Chosen]
    lines: list[Line] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """The piece line by line."""
        return [line.text for line in self.lines] or [memory_text(self.found[0].memory)]

    @property
    def ids(self) -> list[str]:
        """All that is in it, in order."""
        return [line.id for line in self.lines] or [self.found[0].memory.id]


@dataclass(frozen=True, slots=True)
class Reach:
    """How far to look: messages on either side, at most `tokens` of them, none said after `until`, none of `told`."""

    messages: int
    tokens: int
    count: Callable[[str], int]
    until: int | None
    told: Collection[str]


def widened(c: Connection, subject: Subject, found: Sequence[Chosen], reach: Reach) -> list[Window]:
    """The memories, each message with its neighbours in its session as far as the subject sees them; those whose
    windows meet are one."""
    tenant = subject.tenant_id
    ids = compact_json([one.memory.id for one in found if one.memory.kind == "message"])
    places = {row[0]: row[1:] for row in c.all("places_said", [tenant, ids])}
    windows: list[Window] = []
    for one in found:
        if one.memory.id not in places:
            windows.append(Window([one]))
            continue
        session, occurred_at, seq = places[one.memory.id]
        own = Line(one.memory.id, memory_text(one.memory), (occurred_at, seq))
        key = [tenant, session, occurred_at, seq, reach.messages]
        users = None if _whole(c, subject, session) else (subject.user_id, None)
        before = _told(c.all("said_before", key), users, reach)
        behind = _told(c.all("said_behind", key), users, reach)
        _join(windows, Window([one], sorted([own, *_within(before, behind, reach)], key=lambda at: at.place)))
    return windows


def _whole(c: Connection, subject: Subject, session: str) -> bool:
    """Whether the subject sees everything that was said in a session."""
    if sees_all(subject):
        return True
    row = session_of(c, subject.tenant_id, session)
    return row is not None and sees(subject, row)


def _told(rows: Sequence[Row], users: Collection[str | None] | None, reach: Reach) -> list[Line]:
    """The rows up to the first that is another's than one of `users` (None: anybody's), or that is told elsewhere."""
    lines: list[Line] = []
    for id_, role, speaker, content, user_id, occurred_at, seq in rows:
        hidden = users is not None and user_id not in users
        if hidden or id_ in reach.told or (reach.until is not None and occurred_at > reach.until):
            break
        text = spoken(speaker or role, content, moment(occurred_at))
        lines.append(Line(id_, text, (occurred_at, seq)))
    return lines


def _within(before: list[Line], behind: list[Line], reach: Reach) -> list[Line]:
    """The nearest of both sides in turn, as long as there are tokens for them."""
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
    """Adds a window to those that are there, as part of the ones it meets."""
    ids = set(new.ids)
    meeting = [window for window in windows if window.lines and ids & set(window.ids)]
    if not meeting:
        windows.append(new)
        return
    first, *others = meeting
    lines = {line.id: line for window in (*meeting, new) for line in window.lines}
    first.lines = sorted(lines.values(), key=lambda at: at.place)
    first.found += [one for window in (*others, new) for one in window.found]
    for window in others:
        windows.remove(window)
