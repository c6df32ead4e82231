"""Passages as the sources of an answer."""

from __future__ import annotations

from collections.abc import Sequence

from memoranda.knowledge.values import Passage
from memoranda.providers.chat.base import Source


def distinct(passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages without those that repeat the text of a better one from a file of the same name, as when a
    file is in several of the stores that were searched."""
    seen: set[tuple[str, str]] = set()
    first = []
    for passage in passages:
        if (passage.filename, passage.text) not in seen:
            seen.add((passage.filename, passage.text))
            first.append(passage)
    return first


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
