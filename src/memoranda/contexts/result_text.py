"""The text and the citation of results in a prompt. Values to text, no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import msgspec

from memoranda.clock import moment, moment_of
from memoranda.contexts.assembly import shortened
from memoranda.contexts.values import Citation, OriginClass
from memoranda.knowledge.values import Passage
from memoranda.store.rows import speaker_name
from memoranda.text.highlights import highlights
from memoranda.text.instructions import is_standing
from memoranda.text.prompts import on_pages, quoted
from memoranda.types import Memory

SUMMARIES = ("session_summary", "rollup")
"""Kinds of memories that summarize earlier sessions."""
EXCERPT = 1_600
"""Characters of a memory that are shown."""
TOPICS = 5
"""Topics of a session that are shown."""
LATEST = ", latest"
"""Behind the date of the newest of several memories about the same thing."""


class Around(msgspec.Struct, frozen=True):
    """A neighbour of a message in the results, as the log has it."""

    id: str
    speaker: str | None
    text: str
    occurred_at: datetime


def chunk_mark(passage: Passage) -> str:
    """Return the citation mark of a chunk."""
    return f"Doc {passage.file_id}/Chunk {passage.chunk_index}"


def chunk_text(passage: Passage) -> str:
    """Return a chunk with its citation mark, file, page and heading."""
    pages = on_pages(passage.page, passage.last_page)
    page = f", {pages}" if pages else ""
    heading = "" if passage.heading is None else f", {line(passage.heading)}"
    return f"[{chunk_mark(passage)}] {line(passage.filename)}{page}{heading}\n{quoted(passage.readable)}"


def chunk_searched(passage: Passage) -> str:
    """Return a chunk with the name and title of its file and its heading, by which it is found."""
    above = (passage.filename, passage.title, passage.heading)
    return "\n".join([*filter(None, above), passage.readable])


def chunk_citation(passage: Passage) -> Citation:
    """Return the source of a chunk."""
    return Citation(
        mark=chunk_mark(passage),
        ids=passage.chunk_ids or [passage.chunk_id],
        kind="chunk",
        origin="document",
        vector_store_id=passage.vector_store_id,
        file_id=passage.file_id,
        filename=passage.filename,
        chunk_index=passage.chunk_index,
        page=passage.page,
        last_page=passage.last_page,
    )


def excerpt(text: str, question: str) -> str:
    """Return a text of at most `EXCERPT` characters as it is, and of a longer one the part with most words of the
    question, else the beginning."""
    if len(text) <= EXCERPT:
        return text
    places = highlights(text, question, 1, EXCERPT)
    start, end = (places[0].start, places[0].end) if places else (0, EXCERPT)
    return f"{'… ' if start else ''}{text[start:end].strip()}{' …' if end < len(text) else ''}"


def memory_text(
    memory: Memory,
    until: datetime | None = None,
    *,
    latest: bool = False,
    hour: bool = False,
    user: str | None = None,
) -> str:
    """Return a memory on one line: a message with its time and speaker if known, and until when what it says was
    valid; a fact with the time since when, and until when, it is valid; a standing instruction without. `latest` marks
    the newest of several about the same thing, which has a date whatever its kind, and `hour` adds the time of day.
    Days are those of where it was said. What is not from `user` has its class, see `class_of`, and where it is no
    message its author."""
    if memory.kind == "message":
        mark = f"{LATEST if latest else ''}{origin_mark(memory, user)}"
        at = _local(memory, memory.occurred_at)
        return spoken(speaker_name(memory), memory.content, at, until, mark, hour=hour)
    if is_standing(memory):
        return f"The user's standing instruction: {line(memory.content)}"
    days, mark = "", origin_mark(memory, user)
    if memory.kind == "fact":
        began, ended = _local(memory, since(memory)), memory.invalid_at
        to = "" if ended is None else f" to {_local(memory, ended):%d %B %Y}"
        days = f"{'' if to else 'since '}{began:{_form(hour)}}{to}"
    elif latest:
        days = f"{_local(memory, memory.occurred_at):{_form(hour)}}"
    days += LATEST if latest and memory.invalid_at is None else ""
    before = f"{days}{mark}" if days else mark.removeprefix(", ")
    return f"[{before}] {line(memory.content)}" if before else line(memory.content)


def class_of(memory: Memory, user: str | None) -> OriginClass:
    """Return the class of a memory as `user` sees it: `member` for what another person wrote."""
    author = author_of(memory)
    if memory.origin != "user" or author in (None, user):
        return memory.origin
    return "user" if user is None and author == memory.user_id else "member"


def author_of(memory: Memory) -> str | None:
    """Return the user who wrote a memory, else the one whose it is."""
    writers = (name.removeprefix("user:") for name in memory.written_by if name.startswith("user:"))
    return next(writers, memory.user_id)


def origin_mark(memory: Memory, user: str | None) -> str:
    """Return ", member eve" for what is not from `user`; a message names its speaker itself, so it has no author here,
    and no mark for a role that it names."""
    origin = class_of(memory, user)
    if origin == "user" or (memory.kind == "message" and speaker_name(memory) == origin):
        return ""
    author = author_of(memory) if origin == "member" and memory.kind != "message" else None
    return f", {origin} {line(author)}" if author else f", {origin}"


def _local(memory: Memory, at: datetime) -> datetime:
    """Return a moment where the memory was said: at the offset from UTC that its time was given with."""
    return at.astimezone(memory.occurred_at.tzinfo)


def since(memory: Memory) -> datetime:
    """Return when a fact begins to be valid: its `valid_from`, else the time of its message."""
    return memory.occurred_at if memory.valid_from is None else memory.valid_from


def _form(hour: bool) -> str:
    """Return the format of a day, with the time of day if `hour`."""
    return "%d %B %Y %H:%M" if hour else "%d %B %Y"


def spoken(
    who: str | None,
    text: str,
    at: datetime,
    until: datetime | None = None,
    mark: str = "",
    *,
    hour: bool = False,
) -> str:
    """Return a message on one line: day, or days from which and until which it was valid, and a mark, speaker, text.
    The days are those of the zone of `at`, with the time of day if `hour`."""
    end = "" if until is None else f" to {until.astimezone(at.tzinfo):%d %B %Y}"
    day = f"[{at:{_form(hour)}}{end}{mark}]"
    return f"{day} {line(who)}: {line(text)}" if who else f"{day} {line(text)}"


def listed(lines: Sequence[str], mark: str | None) -> str:
    """Return an entry of a list: its first line with the mark, more below it."""
    first, *more = lines
    entry = f"- {mark} {first}" if mark else f"- {first}"
    return "\n".join([entry, *(f"  {text}" for text in more)])


def memory_citation(
    memory: Memory, mark: str | None, ids: Sequence[str], user: str | None = None
) -> Citation:
    """Return the source of a memory, its class as `user` sees it."""
    return Citation(
        mark=mark,
        ids=list(ids),
        kind=memory.kind,
        source=memory.source,
        origin=class_of(memory, user),
        author=author_of(memory),
        session_id=memory.session_id,
        channel_id=memory.channel_id,
        started_at=memory.occurred_at,
        ended_at=memory.occurred_at,
    )


def window(memory: Memory) -> tuple[datetime, datetime]:
    """Return the beginning and the end of the session, or the week, of a summary; its own date if unknown."""
    if memory.kind == "rollup" and (week := _week(memory.metadata.get("week"))) is not None:
        return week
    began, ended = (_moment(memory.metadata.get(key)) for key in ("started_at", "ended_at"))
    return began or ended or memory.occurred_at, ended or began or memory.occurred_at


def _week(name: Any) -> tuple[datetime, datetime] | None:
    """Return the beginning and the end of a week in ISO 8601; None for an invalid name."""
    try:
        monday = datetime.strptime(f"{name}-1", "%G-W%V-%u").replace(tzinfo=UTC)
        return monday, monday + timedelta(days=7, minutes=-1)
    except (ValueError, OverflowError):
        return None


def _moment(value: Any) -> datetime | None:
    """Return the moment, in UTC, of microseconds since 1970 or a text in ISO 8601; None if it is neither."""
    try:
        if isinstance(value, int) and not isinstance(value, bool):
            return moment(value)
        return moment_of(value).astimezone(UTC) if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None


def session_text(memory: Memory, characters: int) -> str:
    """Return a summary of a session on one line: its period, its first topics, and the beginning of its text."""
    topics = ", ".join(line(tag) for tag in memory.tags[:TOPICS])
    about = f"{_span(*window(memory), memory.occurred_at.tzinfo)}{f'; topics: {topics}' if topics else ''}"
    return f"[{about}] {shortened(line(memory.content), characters)}"


def session_citation(memory: Memory, mark: str | None, user: str | None = None) -> Citation:
    """Return the source of a summary, its class as `user` sees it."""
    cited = memory_citation(memory, mark, [memory.id], user)
    cited.started_at, cited.ended_at = window(memory)
    return cited


def _span(began: datetime, ended: datetime, zone: tzinfo | None) -> str:
    first, last = began.astimezone(zone or UTC), ended.astimezone(zone or UTC)
    day = f"{first:%d %B %Y %H:%M}"
    if first == last:
        return day
    return f"{day} to {last:%H:%M}" if first.date() == last.date() else f"{day} to {last:%d %B %Y %H:%M}"


def line(text: str) -> str:
    """Return a quoted text on one line."""
    return quoted(" ".join(text.split()))
