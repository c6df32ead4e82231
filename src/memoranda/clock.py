"""The present and moments as microseconds since 1970."""

from __future__ import annotations

import re
import time
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONE = "$utc_offset"
"""The key, in stored metadata, of the offset from UTC that a time was given with, see `offset_of`: no caller has it."""
_MICROSECOND = timedelta(microseconds=1)
_OFFSET = re.compile(r"([+-])([01]\d|2[0-3]):([0-5]\d)")
_DAY = re.compile(r"\s*\d{4}-?\d\d-?\d\d\s*|\s*\d{4}-?W\d\d-?\d\s*")


def now_micros() -> int:
    """The present, in microseconds since 1970."""
    return time.time_ns() // 1_000


def micros(moment: datetime) -> int:
    """Microseconds since 1970; a moment without a zone is taken as UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // _MICROSECOND


def moment(value: int) -> datetime:
    """The UTC moment of so many microseconds since 1970."""
    return EPOCH + timedelta(microseconds=value)


def offset_of(value: datetime) -> str | None:
    """The offset from UTC of a moment, such as `-05:00`; None in UTC, and without a zone."""
    offset = value.isoformat(timespec="seconds")[19:] if value.utcoffset() else ""
    return offset if _OFFSET.fullmatch(offset) else None


def local(value: datetime, offset: Any) -> datetime:
    """The moment at an offset from UTC such as `-05:00`; in UTC where the offset is none."""
    found = _OFFSET.fullmatch(offset) if isinstance(offset, str) else None
    if found is None:
        return value.astimezone(UTC)
    away = timedelta(hours=int(found[2]), minutes=int(found[3]))
    try:
        return value.astimezone(timezone(-away if found[1] == "-" else away))
    except (OverflowError, ValueError):  # a day or more, or outside of the years 1 to 9999
        return value.astimezone(UTC)


def moment_of(text: str) -> datetime:
    """The moment of a text in ISO 8601: without a zone it is in UTC, and a date alone is its midnight.

    Raises:
        ValueError: it is no moment.
    """
    found = datetime.fromisoformat(text.strip())
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def end_of(day: str | date, *, inside: bool) -> datetime | None:
    """The end of a day in UTC, given as `2026-06-01` or as a date: the next midnight, or, `inside` the day, its last
    microsecond; None for what is no day."""
    if isinstance(day, str):
        if not _DAY.fullmatch(day):
            return None
        try:
            day = date.fromisoformat(day.strip())
        except ValueError:
            return None
    try:
        last = datetime(day.year, day.month, day.day, 23, 59, 59, 999_999, tzinfo=UTC)
        return last if inside else last + _MICROSECOND
    except OverflowError:  # the last day of the year 9999
        return last
