"""Snippets that show where a text matches."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.text.highlights import highlights
from memoranda.text.terms import WORD, query_terms, terms

WORDS = [
    "run",
    "running",
    "the",
    "apple",
    "Äpfel",
    "東京",
    "👩‍👩‍👧",
    "🇩🇪🇫🇷",
    "e\u0301te\u0301",
    "x" * 50,
    ",",
    "\r\n",
    "don't",
]
TEXTS = st.lists(st.sampled_from([*WORDS, " ", " "]), max_size=80).map("".join)


def test_a_snippet_is_the_text_at_its_offsets():
    text = "Intro. " * 40 + "The dogs were running to the park. " + "Outro. " * 40
    (snippet,) = highlights(text, "dog runs", width=60)
    assert text[snippet.start : snippet.end] == snippet.text
    assert "dogs were running" in snippet.text
    assert len(snippet.text) <= 60


def test_the_window_with_most_distinct_terms_wins():
    text = "dog dog dog dog. " + "filler words here " * 20 + "dog in a park. " + "more filler " * 20
    (snippet,) = highlights(text, "dog park", limit=1, width=40)
    assert "dog in a park" in snippet.text


def test_snippets_come_in_text_order_and_do_not_overlap():
    text = " ".join(f"fox{'' if i % 10 else ' den'} " + "word " * 20 for i in range(30))
    found = highlights(text, "fox den", limit=3, width=50)
    assert len(found) == 3
    assert all(a.end <= b.start for a, b in pairwise(found))


@pytest.mark.parametrize("query", ["", "the of and", "zebra", "\ud800"])
def test_nothing_to_show(query):
    assert highlights("the quick brown fox", query) == []


def test_a_short_text_is_shown_whole():
    text = "One fox."
    assert [snippet.text for snippet in highlights(text, "foxes")] == [text]


def test_only_the_beginning_of_a_huge_text_is_looked_at():
    assert highlights("word " * 5_000 + "needle", "needle") == []


def test_words_stay_whole():
    text = "incomprehensibilities " * 30 + "target " + "incomprehensibilities " * 30
    (snippet,) = highlights(text, "target", width=100)
    assert set(snippet.text.split()) == {"incomprehensibilities", "target"}


def test_han_is_matched_by_character():
    text = "明日は休みです。" * 30 + "東京へ行きました。" + "明日は休みです。" * 30
    assert "東京" in highlights(text, "東京", limit=1, width=20)[0].text


@pytest.mark.parametrize(("stored", "asked"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_accents_are_the_same_composed_and_apart(stored: str, asked: str) -> None:
    said = unicodedata.normalize(stored, "Wir waren in München.") + " Kein Wort." * 40
    city = unicodedata.normalize(stored, "München")
    (snippet,) = highlights(said, unicodedata.normalize(asked, "münchen"), width=40)
    assert city in snippet.text
    assert WORD.findall(city) == [city]
    assert query_terms(unicodedata.normalize(asked, "É un café à Zürich")) == terms("É un café à Zürich")


@given(
    text=TEXTS,
    query=st.sampled_from(["run apple", "東京", "apfel", "ete don", "x" * 50]),
    width=st.integers(1, 200),
)
def test_properties(text, query, width):
    wanted = set(query_terms(query))
    found = highlights(text, query, limit=3, width=width)
    assert bool(found) == bool(wanted & set(terms(text)))
    end = 0
    for snippet in found:
        assert snippet.start >= end
        assert text[snippet.start : snippet.end] == snippet.text
        assert wanted & set(terms(snippet.text))
        assert not unicodedata.category(snippet.text[0]).startswith("M")
        assert snippet.text[0] != "\u200d"
        assert snippet.text[-1] != "\u200d"
        assert len(snippet.text) <= max(width, 50) + 10
        end = snippet.end


@given(text=st.text(), query=st.text())
def test_any_text_and_query(text, query):
    for snippet in highlights(text, query):
        assert text[snippet.start : snippet.end] == snippet.text
