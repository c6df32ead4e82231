"""The summaries of sessions as memories: withdrawn with what they told, and put in its place."""

from __future__ import annotations

from recollect.rows import fetch_ids
from recollect.sessions.records import SessionRow
from recollect.writing import Writing

DAY = 86_400_000_000
WEEK = 7 * DAY
QUIET = 2_000_000
"""For how long nothing of a week must change before its rollup is made again."""
_MONDAY = 3
"""Days since a Monday on the first day of 1970."""


def week_of(moment: int) -> int:
    """The first day, in days since 1970, of the ISO week (UTC) of a moment in microseconds."""
    day = moment // DAY
    return day - (day + _MONDAY) % 7


def stale(w: Writing, row: SessionRow, now: int) -> None:
    """A session's summary came, changed or went: the rollup of its week is to be made again once the week is over."""
    if row.channel_id is None:
        return
    week = week_of(row.started_at)
    due = max(now + QUIET, week * DAY + WEEK)
    w.c.run("stale_rollup", [w.tenant, row.channel_id, row.user_id or "", week, due, now])


def withdraw(w: Writing, row: SessionRow, now: int) -> None:
    """Takes back the summary of a session, and the rollup that tells of it."""
    if row.summary_id is None:
        return
    w.c.run("clear_summary", [w.tenant, row.id])
    ids = [row.summary_id]
    if row.channel_id is not None:
        key = [w.tenant, row.channel_id, row.user_id or "", week_of(row.started_at)]
        rolled = w.c.one("rollup_memory", key)
        if rolled is not None and rolled[0] is not None:
            ids.append(rolled[0])
    stale(w, row, now)
    held = fetch_ids(w.c, w.tenant, ids)
    w.remove([memory.seq for memory in held.values()])
