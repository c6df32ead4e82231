"""The present and moments as microseconds since 1970."""

from __future__ import annotations

import re
import time
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONE = "$utc_offset"
"""The key, in stored metadata, of the offset from UTC that a time was given with, see `offset_of`: no caller has it."""


class _Open(tzinfo):
    """The zone of a day that was given without one: UTC, unless another is known, see `in_zone`."""

    def utcoffset(self, dt: datetime | None) -> timedelta:
        return timedelta(0)

    def dst(self, dt: datetime | None) -> timedelta:
        return timedelta(0)

    def tzname(self, dt: datetime | None) -> str:
        return "UTC"


OPEN = _Open()
_EXACT = 2**52
"""Microseconds below which a double tells each from the next."""
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
    if 0 <= value < _EXACT:
        return datetime.fromtimestamp(value / 1_000_000, UTC)
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


def zone_named(name: str) -> tzinfo:
    """The time zone of a name such as `Europe/Berlin`.

    Raises:
        ValueError: there is none of this name.
    """
    if name == "UTC":  # needs no time zone database
        return UTC
    try:
        return _zone(name)
    except (LookupError, ValueError, TypeError, AttributeError, OSError) as exc:  # OSError: a folder of names
        raise ValueError("must be the name of a time zone, such as Europe/Berlin") from exc


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo:
    return ZoneInfo(name)


def in_zone(value: datetime, name: str | None) -> datetime:
    """The bound of a day that was given without a zone, in the zone of this name; any other moment as it is."""
    if name is None or value.tzinfo is not OPEN:
        return value
    return value.replace(tzinfo=zone_named(name))


def offset_at(value: datetime, name: str) -> str | None:
    """The offset from UTC of a moment in the zone of a name, see `offset_of`."""
    try:
        return offset_of(value.astimezone(zone_named(name)))
    except OverflowError:  # outside of the years 1 to 9999
        return None


def moment_of(text: str) -> datetime:
    """The moment of a text in ISO 8601: without a zone it is in UTC, and a date alone is its midnight, in a zone that
    is still open.

    Raises:
        ValueError: it is no moment.
    """
    found = datetime.fromisoformat(text.strip())
    if found.tzinfo:
        return found
    return found.replace(tzinfo=OPEN if _DAY.fullmatch(text) else UTC)


def end_of(day: str | date, *, inside: bool) -> datetime | None:
    """The end of a day, in a zone that is still open, given as `2026-06-01` or as a date: the next midnight, or,
    `inside` the day, its last microsecond; None for what is no day."""
    if isinstance(day, str):
        if not _DAY.fullmatch(day):
            return None
        try:
            day = date.fromisoformat(day.strip())
        except ValueError:
            return None
    try:
        last = datetime(day.year, day.month, day.day, 23, 59, 59, 999_999, tzinfo=OPEN)
        return last if inside else last + _MICROSECOND
    except OverflowError:  # the last day of the year 9999
        return last
