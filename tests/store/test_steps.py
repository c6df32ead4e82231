"""No transaction is given more than its share, whatever the lists and texts at their limits."""

from __future__ import annotations

from msgspec.structs import replace

from memoranda.clock import now_micros
from memoranda.store.changes import CHARS, DRAFTS, REFS, parted, weight
from memoranda.store.rows import Draft, Part
from memoranda.store.validation import MOST_REFS, Bounds, draft
from memoranda.types import NewMemory, Subject


def made(content: str = "text", refs: int = 0) -> Draft:
    new = NewMemory(content=content, source_refs=[f"msg_{i}" for i in range(refs)])
    return draft(new, Subject(), now_micros(), BOUNDS, "")


BOUNDS = Bounds()


def test_a_thousand_short_texts_are_four_steps() -> None:
    drafts = [made()] * 1_000
    assert [len(some) for some in parted(drafts, weight, DRAFTS)] == [DRAFTS] * 4


def test_sources_at_their_limit_are_divided() -> None:
    drafts = [made(refs=MOST_REFS)] * 100
    parts = list(parted(drafts, weight, DRAFTS))
    assert sum(map(len, parts)) == 100
    assert max(map(len, parts)) * MOST_REFS <= (DRAFTS + 1) * REFS * 2


def test_texts_at_their_limit_are_divided() -> None:
    drafts = [made("word " * (1 << 17))] * 10
    parts = list(parted(drafts, weight, DRAFTS))
    assert [len(some) for some in parts] == [1] * 10
    assert weight(drafts[0]) > len(drafts[0].row.content) / CHARS - 1


def test_vectors_of_an_index_that_takes_few_at_once_are_divided() -> None:
    part = Part(0, 4, "text", "hash")
    drafts = [replace(made(), parts=[part] * n) for n in (1, 2, 1, 8, 3)]
    parts = list(parted(drafts, lambda one: weight(one, 4), DRAFTS))
    assert [[len(one.parts) for one in some] for some in parts] == [[1, 2, 1], [8], [3]]
    assert list(parted(drafts, weight, DRAFTS)) == [drafts]


def test_everything_comes_once_and_in_order() -> None:
    items = [1.0, 5.0, 2.0, 2.0, 9.0, 1.0]
    assert list(parted(items, float, 5.0)) == [[1.0], [5.0], [2.0, 2.0], [9.0], [1.0]]
    assert list(parted([], float, 5.0)) == []
