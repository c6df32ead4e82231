"""Times that a question names ("last May", "two weeks ago", "on 8 May 2023"), and the closeness of moments to them.

English. Days begin at midnight UTC. A time without a year ("in May", "on 8 May", "on Tuesday") is in every year.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.text.calendar import DAYS, MONTH, MONTHS, SEASON
from memoranda.text.numbers import ENGLISH
from memoranda.text.regex import Regex, in_ascii, regex

DAY = 86_400_000_000
"""Microseconds."""
GRACE = 3 * DAY
"""A message is close to an event for at least this long after it."""

_MONTH = {name[:3]: n for n, name in enumerate(MONTHS, start=1)}
_SEASONS = {"spring": (3, 5), "summer": (6, 8), "autumn": (9, 11), "fall": (9, 11), "winter": (12, 2)}
_FEASTS = {"christmas": (12, 24, 26), "halloween": (10, 30, 31), "new year's eve": (12, 31, 31)}
_NUMBERS = {"a": 1, "an": 1, "couple": 2, "few": 3} | {word: n for n, word in enumerate(ENGLISH) if n}
_UNITS = {"day": 1, "week": 7, "weekend": 7, "month": 30, "year": 365}

_COUNT = (
    rf"(?:(?:a|the)\s+)?(?P<n>\d{{1,3}}|{'|'.join(_NUMBERS)})(?:\s+of)?\s+(?P<unit>day|week|month|year)s?"
)
_DATE = (
    rf"(?P<iso>\b(?:19|20)\d\d-\d\d?-\d\d?\b)"
    rf"|\b(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?\s+(?P<m1>{MONTH})\b\.?(?:,?\s*(?P<y1>(?:19|20)\d\d)\b)?"
    rf"|\b(?P<m2>{MONTH})\b\.?\s+(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d|:)(?:,?\s*(?P<y2>(?:19|20)\d\d)\b)?"
    rf"|\b(?P<m3>{MONTH})\b\.?,?\s+(?:of\s+)?(?P<y3>(?:19|20)\d\d)\b"
)
_EXACT = regex(_DATE, re.IGNORECASE)
_BEFORE = regex(rf"\b{_COUNT}\s+(?P<way>before|after)\s+(?:the\s+)?$", re.IGNORECASE)
_AGO = regex(rf"\b{_COUNT}\s+ago\b", re.IGNORECASE)
_NEAR = regex(
    rf"\b(?P<which>last|past|previous|this|next)\s+(?P<what>night|week(?:end)?|month|year|{SEASON}"
    rf"|{'|'.join(DAYS)}|{MONTH})\b",
    re.IGNORECASE,
)
_RELATIVE = regex(
    r"\b(?P<day>the day before yesterday|yesterday|today|tonight|this morning)\b", re.IGNORECASE
)
_YEAR = regex(
    r"\b(?:in|of|during|since|from|until|by|for|throughout)\s+(?P<y>(?:19|20)\d\d)\b", re.IGNORECASE
)
_SEASON = regex(
    rf"\b(?:in|of|during|over|this|that)\s+(?:the\s+)?(?P<s>{SEASON})"
    r"(?:(?:\s+of)?\s+(?P<sy>(?:19|20)\d\d))?\b",
    re.IGNORECASE,
)
_INMONTH = regex(rf"\b(?:in|of|during|since|until|by|early|late|mid|mid-)\s*(?P<m>{MONTH})\b", re.IGNORECASE)
_ONDAY = regex(rf"\bon\s+(?:a\s+)?(?P<wd>{'|'.join(DAYS)})s?\b", re.IGNORECASE)
_FEAST = regex(rf"\b(?P<f>{'|'.join(_FEASTS)})\b", re.IGNORECASE)


class Span(msgspec.Struct, frozen=True):
    """From `start` up to, not including, `end`: microseconds since 1970."""

    start: int
    end: int


class Yearly(msgspec.Struct, frozen=True):
    """Every year from one (month, day) to another, both included; `first` may come after `last`, over the new year."""

    first: tuple[int, int]
    last: tuple[int, int]


class Weekly(msgspec.Struct, frozen=True):
    """Every week on one day, Monday being 0."""

    weekday: int


Time = Span | Yearly | Weekly


def times(text: str, now: datetime) -> list[Time]:
    """Return the times that `text` names, relative to `now`; empty if it names none. Each piece of text counts once, as
    the longest expression that it is part of."""
    text = in_ascii(text)
    try:
        today = _midnight(now)
    except OverflowError:  # a moment that is no time of UTC
        return []
    taken: list[tuple[int, int]] = []
    named: list[Time] = []
    for pattern, read in _READERS:
        for match in pattern.finditer(text):
            start, end = match.span()
            if any(start < stop and begin < end for begin, stop in taken):
                continue
            try:
                time = read(match, today)
            except (ValueError, OverflowError):  # 31 June, or a year that no date can have
                continue
            if time is not None:
                taken.append((start, end))
                named.append(time)
    return named


def closeness(named: list[Time], moments: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how close each moment (n,) is to the nearest of the named times, in [0, 1]: 1 within it, then falling to 0
    over its own length (at least three days), since people report events after they happened; 0 otherwise."""
    best = np.zeros(len(moments))
    for time in named:
        best = np.maximum(best, _near(time, moments))
    return best


def _near(time: Time, moments: NDArray[np.int64]) -> NDArray[np.float64]:
    if isinstance(time, Span):
        grace = max(GRACE, min(time.end - time.start, 31 * DAY))
        late = np.clip((moments - time.end) / grace, 0.0, 1.0)
        near: NDArray[np.float64] = np.where(moments < time.start, 0.0, 1.0 - late)
        return near
    if isinstance(time, Weekly):
        on_day: NDArray[np.bool_] = (moments // DAY + 3) % 7 == time.weekday
        return on_day.astype(np.float64)
    days = moments.astype("datetime64[us]").astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    of_year = (
        (months.astype(np.int64) % 12 + 1) * 100
        + (days - months.astype("datetime64[D]")).astype(np.int64)
        + 1
    )
    first, last = time.first[0] * 100 + time.first[1], time.last[0] * 100 + time.last[1]
    after, until = of_year >= first, of_year <= last
    inside: NDArray[np.bool_] = after & until if first <= last else after | until
    return inside.astype(np.float64)


# --- reading one expression ----------------------------------------------------------------------------


def _midnight(now: datetime) -> datetime:
    aware = now.replace(tzinfo=UTC) if now.tzinfo is None else now.astimezone(UTC)
    return aware.replace(hour=0, minute=0, second=0, microsecond=0)


def _span(start: datetime, end: datetime) -> Span:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return Span(*((moment - epoch) // timedelta(microseconds=1) for moment in (start, end)))


def _month(year: int, month: int, months: int = 1) -> Span:
    stop = month + months - 1
    return _span(
        datetime(year, month, 1, tzinfo=UTC), datetime(year + stop // 12, stop % 12 + 1, 1, tzinfo=UTC)
    )


def _date(match: re.Match[str], today: datetime) -> Time:
    groups = {name: value for name, value in match.groupdict().items() if value}
    if "iso" in groups:
        day = datetime(*(int(part) for part in groups["iso"].split("-")), tzinfo=UTC)  # type: ignore[misc, arg-type]
        return _shifted(match, day)
    month = _MONTH[(groups.get("m1") or groups.get("m2") or groups["m3"])[:3].lower()]
    year = groups.get("y1") or groups.get("y2") or groups.get("y3")
    if "m3" in groups:
        return _month(int(groups["y3"]), month)
    day_of_month = int(groups.get("d1") or groups["d2"])
    if year is None:
        datetime(2024, month, day_of_month, tzinfo=UTC)
        return Yearly((month, day_of_month), (month, day_of_month))
    return _shifted(match, datetime(int(year), month, day_of_month, tzinfo=UTC))


def _shifted(match: re.Match[str], day: datetime) -> Span:
    """Return the day itself, or the span before or after it that the text names (`the week before 8 May 2023`)."""
    said = _BEFORE.search(match.string[max(0, match.start() - 40) : match.start()])
    if said is None:
        said = re.search(
            r"\bthe\s+(?P<unit>day|week|weekend|month|year)\s+(?P<way>before|after|of)\s+(?:the\s+)?$",
            match.string[max(0, match.start() - 40) : match.start()],
            re.IGNORECASE,
        )
    if said is None:
        return _span(day, day + timedelta(days=1))
    length = timedelta(days=_UNITS[said["unit"].lower()])
    count = said.groupdict().get("n")
    if said["way"].lower() == "of":
        return _span(day - length / 2, day + length / 2)
    sign = -1 if said["way"].lower() == "before" else 1
    if count is None:
        return _span(min(day, day + sign * length), max(day, day + sign * length))
    middle = day + sign * length * _number(count)
    return _span(middle - length / 2, middle + length / 2 + timedelta(days=1))


def _number(text: str) -> int:
    return int(text) if text.isdigit() else _NUMBERS[text.lower()]


def _ago(match: re.Match[str], today: datetime) -> Time:
    length = timedelta(days=_UNITS[match["unit"].lower()])
    slack = length / 2 if length > timedelta(days=1) else timedelta(0)
    middle = today - length * _number(match["n"])
    return _span(middle - slack, middle + slack + timedelta(days=1))


def _relative(match: re.Match[str], today: datetime) -> Time:
    back = {"yesterday": 1, "the day before yesterday": 2}.get(match["day"].lower(), 0)
    return _span(today - timedelta(days=back), today - timedelta(days=back - 1))


def _near_now(match: re.Match[str], today: datetime) -> Time | None:
    which, what = match["which"].lower(), match["what"].lower()
    step = {"this": 0, "next": 1}.get(which, -1)
    if what == "night":
        return _span(today - timedelta(days=1), today + timedelta(days=1)) if step == -1 else None
    if what in ("week", "weekend"):
        monday = today - timedelta(days=today.weekday()) + timedelta(days=7 * step)
        return _span(monday + timedelta(days=5 if what == "weekend" else 0), monday + timedelta(days=7))
    if what == "month":
        months = today.year * 12 + today.month - 1 + step
        return _month(months // 12, months % 12 + 1)
    if what == "year":
        return _month(today.year + step, 1, 12)
    if what in DAYS:
        away = (DAYS.index(what) - today.weekday()) % 7
        days = away if step == 0 else (away or 7) if step == 1 else away - 7
        return _span(today + timedelta(days=days), today + timedelta(days=days + 1))
    if what in _SEASONS:
        return _passed(_SEASONS[what][0], 3, step, today)
    return _passed(_MONTH[what[:3]], 1, step, today)


def _passed(month: int, months: int, step: int, today: datetime) -> Span:
    """Return the month or season that is `last` (the latest begun), `next` (not begun) or `this` (of this year)."""
    this = _month(today.year, month, months)
    begun = this.start <= _span(today, today).start
    if step == 0 or (step == -1 and begun) or (step == 1 and not begun):
        return this
    return _month(today.year + step, month, months)


def _season(match: re.Match[str], today: datetime) -> Time:
    first, last = _SEASONS[match["s"].lower()]
    return _month(int(match["sy"]), first, 3) if match["sy"] else Yearly((first, 1), (last, 31))


def _month_named(match: re.Match[str], today: datetime) -> Time:
    month = _MONTH[match["m"][:3].lower()]
    return Yearly((month, 1), (month, 31))


def _feast(match: re.Match[str], today: datetime) -> Time:
    month, first, last = _FEASTS[match["f"].lower()]
    return Yearly((month, first), (month, last))


def _year(match: re.Match[str], today: datetime) -> Time:
    return _month(int(match["y"]), 1, 12)


def _weekday(match: re.Match[str], today: datetime) -> Time:
    return Weekly(DAYS.index(match["wd"].lower()))


_READERS: list[tuple[Regex, Callable[[re.Match[str], datetime], Time | None]]] = [
    (_EXACT, _date),
    (_AGO, _ago),
    (_RELATIVE, _relative),
    (_NEAR, _near_now),
    (_SEASON, _season),
    (_YEAR, _year),
    (_INMONTH, _month_named),
    (_ONDAY, _weekday),
    (_FEAST, _feast),
]
