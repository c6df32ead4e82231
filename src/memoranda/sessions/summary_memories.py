"""Summaries of sessions as memories: written, replaced and withdrawn; and the headers that precede them in embeddings
and indexes: the channel, the time, the speakers and the topics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from memoranda.clock import local, moment
from memoranda.sessions.records import SessionRow, texts_of
from memoranda.storage.sql.base import Connection
from memoranda.store.ids import new_id
from memoranda.store.rows import EMPTY, Draft, fetch_ids
from memoranda.store.transaction import Writing
from memoranda.text.hashing import digest
from memoranda.text.stored import compact_json

DAY = 86_400_000_000
WEEK = 7 * DAY
QUIET = 2_000_000
"""How long a week must be unchanged before its rollup is made again."""
_MONDAY = 3
"""The days from a Monday to the first day of 1970."""


def week_of(moment: int) -> int:
    """Return the first day, in days since 1970, of the ISO week (UTC) of a moment in microseconds."""
    day = moment // DAY
    return day - (day + _MONDAY) % 7


def owner_of(row: SessionRow) -> str:
    """Return the owner of the week that a session belongs to: its user, or "" for the channel if several users
    spoke."""
    return "" if len(texts_of(row.users)) > 1 else row.user_id or ""


def schedule_rollups(c: Connection, tenant: str, rows: Iterable[SessionRow], now: int) -> None:
    """Schedule the rollups of sessions whose summaries have changed: of their weeks, and of the weeks whose rollups
    include them now. A rollup is due when its week is over, but not before `QUIET` has passed."""
    rolled = [row for row in rows if row.channel_id is not None]
    weeks = {(str(row.channel_id), owner_of(row), week_of(row.started_at)) for row in rolled}
    made = c.all("rollups_of", [tenant, compact_json([row.id for row in rolled])])
    weeks |= {(channel, owner, week) for channel, owner, week, _ in made}
    for channel, owner, week in sorted(weeks):
        c.run("stale_rollup", [tenant, channel, owner, week, max(now + QUIET, week * DAY + WEEK), now])


def withdraw(w: Writing, row: SessionRow, now: int) -> tuple[int, int]:
    """Withdraw the summary of a session, and the rollups that include it; return the (memories, vectors) removed."""
    if row.summary_id is None:
        return 0, 0
    w.c.run("clear_summary", [w.tenant, row.id])
    ids = [row.summary_id, *rollup_ids(w.c, row)]
    schedule_rollups(w.c, w.tenant, [row], now)
    memories = fetch_ids(w.c, w.tenant, ids)
    return w.remove([memory.seq for memory in memories.values()])


def rollup_ids(c: Connection, row: SessionRow) -> list[str]:
    """Return the ids of the rollups that include a session. If its week or owner has changed since, these are rollups
    of the earlier week or owner."""
    if row.channel_id is None:
        return []
    return [id_ for *_, id_ in c.all("rollups_of", [row.tenant_id, compact_json([row.id])])]


def derived_memory(
    tenant: str,
    kind: str,
    content: str,
    header: str,
    *,
    key: Sequence[Any],
    user_id: str | None,
    agent_id: str | None = None,
    channel_id: str | None,
    session_id: str | None = None,
    source: str,
    tags: Sequence[str],
    metadata: dict[str, Any],
    refs: Sequence[str],
    occurred_at: int,
    now: int,
) -> Draft:
    """Return the draft of a memory derived from others: `header` is embedded before its text, `key` makes it unique."""
    content_hash = digest(content)
    row = EMPTY._replace(
        tenant_id=tenant,
        id=new_id("mem_"),
        kind=kind,
        content=content,
        content_hash=content_hash,
        dedup_key=digest(compact_json([kind, *key])),
        user_id=user_id,
        agent_id=agent_id,
        channel_id=channel_id,
        session_id=session_id,
        source=source,
        tags=compact_json(tags),
        metadata=compact_json(metadata),
        source_refs=compact_json(refs),
        dated=1,
        occurred_at=occurred_at,
        created_at=now,
        updated_at=now,
        header=header,
    )
    return Draft(row, named=False)


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
