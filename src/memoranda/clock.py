"""The present and moments as microseconds since 1970."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


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


def moment_of(text: str) -> datetime:
    """The moment of a text in ISO 8601: without a zone it is in UTC, and a date alone is its midnight.

    Raises:
        ValueError: it is no moment.
    """
    found = datetime.fromisoformat(text.strip())
    return found if found.tzinfo else found.replace(tzinfo=UTC)
