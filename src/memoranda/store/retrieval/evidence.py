"""Whether what was found is about what was asked."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

FLOOR = 0.5
"""The calibrated similarity below which a text without a term of the question is taken to be about something else."""


def unrelated(asked: AbstractSet[str], terms: AbstractSet[str], similarity: float | None) -> bool:
    """Return True if a text has no term of the question and is not known to be similar to it.

    `similarity` is calibrated, in 0..1; None where it is not known.
    """
    return not asked & terms and (similarity is None or similarity < FLOOR)
