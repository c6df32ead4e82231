"""The size of one transaction. Other writes wait for its end, so large changes are made in steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from memoranda.store.validation import Draft

T = TypeVar("T")
ROWS = 150
"""Rows that one transaction deletes, with their index changes; each takes up to a millisecond."""
MARKS = 100
"""Rows that one transaction marks; each takes up to two milliseconds, where its vector is put into a graph again."""
DRAFTS = 250
"""The most that one transaction inserts, by `weight`."""
TEXTS = 4_000_000
"""Characters that one transaction deletes, for rows with long texts: SQLite overwrites each of them."""
CHARS = 2_000
REFS = 20
"""Characters of text, and sources, that weigh as much as a row."""


def weight(draft: Draft, put_limit: int | None = None) -> float:
    """Return the cost of writing a draft, in rows of ordinary size. `put_limit` is that of the vector index."""
    row = draft.row
    return weight_of(len(row.content), len(draft.parts), put_limit, row.source_refs.count(","))


def weight_of(chars: int, vectors: int, put_limit: int | None, refs: int = 0) -> float:
    """Return the cost of writing a text of so many characters, vectors and sources, in rows of ordinary size."""
    return max(1, chars / CHARS + refs / REFS, vectors * DRAFTS / put_limit if put_limit else 0.0)


def parted(items: Sequence[T], weigh: Callable[[T], float], most: float) -> Iterator[Sequence[T]]:
    """Yield the items in order, in parts that weigh at most `most`; an item that weighs more is a part of its own."""
    start, total = 0, 0.0
    for place, item in enumerate(items):
        heavy = weigh(item)
        if place > start and total + heavy > most:
            yield items[start:place]
            start, total = place, 0.0
        total += heavy
    if start < len(items):
        yield items[start:]
