"""Passages for answers and contexts: without repetitions, and as sources to cite."""

from __future__ import annotations

from collections.abc import Sequence

from memoranda.knowledge.values import Passage
from memoranda.providers.chat.base import Source
from memoranda.types import MAX_LIMIT

COPIES = 4
"""The number of searched stores that a file may be in without leaving an answer short of passages."""


def search_limit(limit: int, stores: Sequence[str], most: int = MAX_LIMIT) -> int:
    """Return how many passages of some stores to search for, of which `limit` distinct ones are wanted. `most` is the
    greatest limit of the search: a greater one is returned as it is, for the search to refuse."""
    return max(limit, min(most, limit * min(COPIES, len(stores))))


def distinct(passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages without those that repeat a better one: the same text, at the same place of a file of the
    same name, as when a file is in several of the stores that were searched."""
    first: dict[tuple[object, ...], Passage] = {}
    for passage in passages:
        place = (passage.filename, passage.start, passage.end, passage.heading, passage.columns)
        first.setdefault((*place, passage.text), passage)
    return list(first.values())


def source(passage: Passage, number: int = 0) -> Source:
    """Return a passage as a source."""
    return Source(
        number=number,
        text=passage.text,
        title=passage.filename,
        id=passage.file_id,
        score=passage.score,
        columns=passage.columns,
    )
