"""Passages for answers: each once, whatever the number of stores that have it."""

from __future__ import annotations

from typing import Any

import pytest

from memoranda.knowledge.passages import COPIES, distinct, search_limit, source
from memoranda.knowledge.values import MAX_RESULTS, Passage
from memoranda.types import MAX_LIMIT


def passage(text: str, store: str = "one", **fields: Any) -> Passage:
    return Passage(
        **{
            "vector_store_id": store,
            "file_id": f"file of {store}",
            "filename": "costs.csv",
            "attributes": {},
            "score": 0.5,
            "similarity": 0.5,
            "text": text,
            "chunk_id": f"{store} {text}",
            "chunk_index": 0,
            "start": 0,
            "end": len(text),
            "page": None,
            "last_page": None,
            "heading": None,
            "title": None,
            **fields,
        }
    )


def test_a_copy_in_another_store_is_left_out_and_the_best_stays() -> None:
    best, other, copy = passage("North | 5"), passage("South | 7"), passage("North | 5", "two")
    assert distinct([best, other, copy]) == [best, other]
    assert distinct([copy, best]) == [copy]


def test_the_same_text_elsewhere_is_no_copy() -> None:
    row = passage("North | 5", columns="Region | Cost")
    others = [
        passage("North | 5", columns="Region | Revenue"),
        passage("North | 5", columns="Region | Cost", start=90, end=99),
        passage("North | 5", columns="Region | Cost", heading="2024"),
        passage("North | 5", columns="Region | Cost", filename="revenue.csv"),
    ]
    assert distinct([row, *others]) == [row, *others]


def test_of_two_that_were_merged_of_other_chunks_the_longer_stays() -> None:
    short = passage("the heron waits", start=4, score=0.9, similarity=0.6)
    other = passage("kite", start=80)
    rest = passage("in the reeds", "one", start=20, end=32)
    long = passage("and the heron waits in the reeds", "two", start=0, score=0.4, similarity=0.8)
    assert distinct([long, short, rest]) == [long]
    kept, apart = distinct([short, other, rest, long])
    assert (kept.text, kept.score, kept.similarity, apart) == (long.text, 0.9, 0.8, other)
    changed = passage("The heron waits", start=4)
    assert distinct([long, changed]) == [long, changed], "another text at the same place"


def test_a_search_is_deep_enough_for_copies_in_several_stores() -> None:
    assert search_limit(10, ["one"]) == 10
    assert search_limit(10, ["one", "two"]) == 20
    assert search_limit(10, ["one"] * 99) == 10 * COPIES
    assert search_limit(MAX_LIMIT, ["one", "two"]) == MAX_LIMIT
    assert search_limit(20, ["one", "two", "three"], MAX_RESULTS) == MAX_RESULTS


@pytest.mark.parametrize("limit", [MAX_LIMIT + 1, 5_000, 0, -1])
def test_a_limit_that_no_search_accepts_is_left_to_it_to_refuse(limit: int) -> None:
    for stores in (["one"], ["one", "two"]):
        assert not 1 <= search_limit(limit, stores) <= MAX_LIMIT


def test_a_source_has_what_is_cited() -> None:
    made = source(passage("North | 5", columns="Region | Cost"), 3)
    assert (made.number, made.text, made.title, made.id) == (3, "North | 5", "costs.csv", "file of one")
    assert made.columns == "Region | Cost"
