"""Headers that precede summaries in embeddings and indexes: the channel, the time, the speakers and the topics."""

from __future__ import annotations

from collections.abc import Sequence

from memoranda.clock import local, moment
from memoranda.sessions.keeping import DAY

NAMED = 12
"""The most names of speakers."""


def session_header(
    channel: str | None,
    started_at: int,
    ended_at: int,
    participants: Sequence[str],
    topics: Sequence[str],
    zone: str | None = None,
) -> str:
    """`[06 May 2024 12:00 to 12:40] garden, Ana, Bo: roses, water. `; times are microseconds since 1970, shown at the
    offset `zone` from UTC."""
    begun, ended = (local(moment(at), zone) for at in (started_at, ended_at))
    until = f"{ended:%H:%M}" if begun.date() == ended.date() else f"{ended:%d %B %Y %H:%M}"
    who = ", ".join([*([channel] if channel else []), *participants[:NAMED]])
    return f"[{begun:%d %B %Y %H:%M} to {until}] {who}{_about(topics)}. "


def week_header(channel: str, week: int, participants: Sequence[str], topics: Sequence[str]) -> str:
    """`[week of 06 May 2024 to 12 May 2024] garden, Ana, Bo: roses, water. `; `week` is its first day since 1970."""
    first, last = moment(week * DAY), moment((week + 6) * DAY)
    who = ", ".join([channel, *participants[:NAMED]])
    return f"[week of {first:%d %B %Y} to {last:%d %B %Y}] {who}{_about(topics)}. "


def week_name(week: int) -> str:
    """Return the week in ISO 8601: `2024-W19`."""
    year, number, _ = moment(week * DAY).isocalendar()
    return f"{year}-W{number:02d}"


def _about(topics: Sequence[str]) -> str:
    return f": {', '.join(topics)}" if topics else ""
