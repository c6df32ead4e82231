"""Dates of foreign data, in the notations that have one meaning: `01/05/2024` is the fifth day of one month in some
countries and the first of another elsewhere, and is not read. No I/O."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

from memoranda.importers.values import Skipped
from memoranda.text.calendar import MONTH, MONTHS

EARLIEST = 100_000_000
"""Numbers below are no seconds since 1970 but counts, years or dates: as seconds they would lie before March 1973."""
THOUSANDFOLD = 100_000_000_000
"""Numbers from here on are thousandths, millionths or billionths of a second since 1970, not seconds: as seconds they
would lie beyond the year 5000."""
LONGEST = 64
"""Characters of a date."""
_FRACTION = re.compile(r"\.(\d{6})\d+")
_EPOCH = re.compile(r"\d{9,20}(?:\.\d*)?", re.ASCII)
_DIGITS = re.compile(r"((?:19|20)\d{6})(\d{6})?", re.ASCII)
_MONTHS = {name[:3]: number for number, name in enumerate(MONTHS, 1)}
_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+)?"
_NAME = rf"(?P<name>{MONTH})\b\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{4})"
_TIME = (
    r"(?:(?:t|,?\s+(?:at\s+)?)(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.\d+)?)?"
    r"(?:\s*(?P<half>[ap])\.?m\.?)?(?:\s*(?:z|utc|gmt)?(?P<zone>[+-]\d\d:?\d\d)?(?:\s*\([a-z ]*\))?)?)?"
)
_NOTATIONS = [
    re.compile(f"{day}{_TIME}", re.IGNORECASE | re.ASCII)
    for day in (
        rf"{_YEAR}(?P<sign>[-/.])(?P<month>\d{{1,2}})(?P=sign)(?P<day>\d{{1,2}})",
        rf"(?P<one>\d{{1,2}})(?P<sign>[-/.])(?P<two>\d{{1,2}})(?P=sign){_YEAR}",
        rf"{_WEEKDAY}{_DAY}\.?(?:\s+of)?[\s-]+{_NAME},?[\s-]+{_YEAR}",
        rf"{_WEEKDAY}{_NAME}\s+{_DAY},?\s+{_YEAR}",
    )
]


def moment(*values: Any) -> datetime | None:
    """The moment of the first value that has one: a date, a text or a number. Numbers are seconds since 1970 or parts
    of them, or a date as `20240501`. What has no zone is UTC, and a date alone is its midnight."""
    return next((found for value in values if (found := _moment(value)) is not None), None)


def unread(place: str, *values: Any) -> Iterator[Skipped]:
    """The date of the thing at a place, if there is one that cannot be read before the first that can."""
    for value in values:
        if _moment(value) is not None:
            return
        if value.strip() if isinstance(value, str) else value:
            yield Skipped(kind="date", reason="cannot be read", place=f"{place}: {reprlib.repr(value)}")
            return


def _moment(value: Any) -> datetime | None:
    try:
        if isinstance(value, date):
            return _utc(datetime.fromisoformat(value.isoformat()))
        if isinstance(value, str):
            return _of_text(value.strip())
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _of_number(value)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def _of_number(value: float) -> datetime | None:
    if match := _DIGITS.fullmatch(f"{value:.0f}"):
        return _utc(datetime.fromisoformat(f"{match[1]}T{match[2] or '000000'}"))
    if value < EARLIEST:
        return None
    for _ in range(3):
        value = value / 1_000 if value >= THOUSANDFOLD else value
    return datetime.fromtimestamp(value, UTC)


def _of_text(value: str) -> datetime | None:
    if len(value) > LONGEST:
        return None
    if _EPOCH.fullmatch(value):
        return _of_number(float(value))
    try:
        return _utc(datetime.fromisoformat(_FRACTION.sub(r".\1", value)))
    except ValueError:
        matches = (notation.fullmatch(value) for notation in _NOTATIONS)
        return next((_of_parts(match.groupdict()) for match in matches if match), None)


def _of_parts(parts: dict[str, str | None]) -> datetime:
    """The moment of the parts of a notation.

    Raises:
        ValueError: there is no such day, or either number may be the month.
    """
    month, day = _month_and_day(parts)
    hour = int(parts["hour"] or 0)
    if parts["half"]:
        hour = hour % 12 + (12 if parts["half"] in "pP" else 0)
    clock = f"{hour:02}:{parts['minute'] or '00'}:{parts['second'] or '00'}"
    return _utc(datetime.fromisoformat(f"{parts['year']}-{month:02}-{day:02}T{clock}{parts['zone'] or ''}"))


def _month_and_day(parts: dict[str, str | None]) -> tuple[int, int]:
    if name := parts.get("name"):
        return _MONTHS[name[:3].lower()], int(parts["day"] or 0)
    if month := parts.get("month"):
        return int(month), int(parts["day"] or 0)
    one, two = int(parts["one"] or 0), int(parts["two"] or 0)
    if one <= 12 and two <= 12 and one != two:
        raise ValueError("either number may be the month")
    return (two, one) if one > 12 else (one, two)


def _utc(value: datetime) -> datetime:
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
