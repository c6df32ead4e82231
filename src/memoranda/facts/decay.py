"""The value of a fact over time. Pure arithmetic."""

from __future__ import annotations

import math

DAY = 86_400_000_000
"""Microseconds."""


def days_unused(created_at: int, last_accessed_at: int | None, now: int) -> float:
    """Return days since a memory was used, or stored, whichever was later; 0 if that is in the future. Times are
    microseconds."""
    return max(0.0, (now - max(created_at, last_accessed_at or 0)) / DAY)


def freshness(days: float, half_life_days: float) -> float:
    """`max(0, 1 - decay_factor x days)` with decay_factor = 0.5 / half_life_days: 1 when just used, 0.5 after the half
    life, 0 after twice of it."""
    return max(0.0, 1.0 - 0.5 / half_life_days * days)


def value(confidence: float, access_count: int, days: float, half_life_days: float | None) -> float:
    """Return the value of a fact: confidence x (1 + ln(1 + uses)) x freshness; without a half life it does not
    decay."""
    fresh = 1.0 if half_life_days is None else freshness(days, half_life_days)
    return confidence * (1.0 + math.log1p(access_count)) * fresh
