"""Which terms texts hold, against the analysis that the word indexes use."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.text.questions import asks, asks_when, coverage, rarity, timely
from memoranda.text.terms import query_terms, terms

WORDS = [
    "running",
    "ran",
    "runs",
    "happy",
    "happily",
    "relational",
    "studies",
    "café",
    "don't",
    "übel",
    "2023",
    "cat's",
    "a",
]


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), min_size=1, max_size=4),
    st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join),
)
def test_what_is_held_is_what_an_index_would_find(texts: list[str], question: str) -> None:
    wanted = query_terms(question)
    expected = [[term in set(terms(text)) for term in wanted] for text in texts]
    assert coverage(texts, wanted).tolist() == expected


def test_words_that_only_begin_alike_are_not_held() -> None:
    assert coverage(
        ["The conversation went on.", "A converse opinion", "reconvene"], query_terms("conversations")
    ).tolist() == [
        [True],
        [True],
        [False],
    ]
    assert coverage(["日本語です", "nothing"], query_terms("日本")).tolist() == [[True, True], [False, False]]
    assert coverage([], ["x"]).shape == (0, 1)


def test_rare_terms_tell_more() -> None:
    found = np.array([[1, 1], [1, 0], [1, 0], [1, 0]], np.bool_)
    weights = rarity(found)
    assert weights.sum() == pytest.approx(1.0)
    assert weights[1] > 5 * weights[0]
    assert rarity(np.zeros((3, 0), np.bool_)).tolist() == []


@pytest.mark.parametrize(
    ("text", "asking"),
    [("How are you?", True), ("Really? I am well.", False), ("Well! And you? 😀", True), ("", False)],
)
def test_who_asks(text: str, asking: bool) -> None:
    assert asks(text) is asking


def test_who_wants_a_time_and_who_gives_one() -> None:
    assert asks_when("When did Ana leave?")
    assert asks_when("In which year was that?")
    assert not asks_when("Who came whenever it rained?")
    assert timely("I was there (last Friday!)")
    assert timely("Since 1998.")
    assert not timely("A monthly thing")
