"""Passages for answers and contexts: without repetitions, and as sources to cite."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

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
    same name, as when a file is in several of the stores that were searched. Of two that were merged of other chunks,
    the one that has the text of the other stays, at the place of the better one."""
    kept: list[Passage] = []
    for passage in passages:
        if any(_repeats(passage, better) for better in kept):
            continue
        within = [at for at, better in enumerate(kept) if _repeats(better, passage)]
        if not within:
            kept.append(passage)
            continue
        first = kept[within[0]]
        known = [one.similarity for one in (first, passage) if one.similarity is not None]
        best = max(known, default=None)
        kept[within[0]] = msgspec.structs.replace(
            passage, score=first.score, similarity=best, relevance=first.relevance
        )
        for at in reversed(within[1:]):
            del kept[at]
    return kept


def _repeats(passage: Passage, other: Passage) -> bool:
    """Return True if another passage has the text of this one at its place."""
    at = passage.start - other.start
    if passage.filename != other.filename or at < 0 or not other.text.startswith(passage.text, at):
        return False
    if (passage.start, passage.end) == (other.start, other.end):
        return (passage.heading, passage.columns) == (other.heading, other.columns)
    return passage.end <= other.end


def source(passage: Passage, number: int = 0, mark: str = "") -> Source:
    """Return a passage as a source."""
    return Source(
        number=number,
        mark=mark,
        text=passage.text,
        title=passage.filename,
        id=passage.file_id,
        score=passage.score,
        columns=passage.columns,
    )
