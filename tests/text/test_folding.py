"""What texts are compared by: signs that look alike, and signs that cannot be seen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.text.phrase import Phrase
from memoranda.text.terms import WORD, folded_of, terms, with_apostrophes, word_terms

HYPHENS = "Donau\u00addampf\u00adschiff"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ana\u2019s dog", "Ana's dog"),
        ("Ana\u00b4s dog", "ana's dog"),
        ("re\u2011start", "re-start"),
        ("\uff21\uff44\uff41", "Ada"),
        ("Ana\u200d's", "Ana's"),
        ("\u0130stanbul", "istanbul"),
        ("I\u015f\u0131k", "\u0131\u015f\u0131k"),
        (HYPHENS, "Donaudampfschiff"),
        ("ze\u200bro", "zero"),
        ("stra\u00dfe", "STRASSE"),
        ("cafe\u0301", "caf\u00e9"),
        ("`code`", "`code`"),
    ],
)
def test_a_phrase_is_found_however_it_is_written(text: str, words: str) -> None:
    assert Phrase(words).within(text)
    assert Phrase(text).within(words)


def test_other_words_are_no_phrase() -> None:
    assert not Phrase("ann").within("planning")
    assert not Phrase("restart").within("re-start")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (HYPHENS, "Donaudampfschiff"),
        ("\u0130stanbul", "istanbul"),
        ("I\u0307stanbul", "ISTANBUL"),
        ("\u0131l\u0131k", "ILIK"),
        ("wor\u2060d", "word"),
    ],
)
def test_words_that_look_alike_have_the_same_terms(text: str, same: str) -> None:
    assert terms(text) == terms(same) == [term for word in WORD.findall(text) for term in word_terms(word)]


@given(st.text(max_size=60))
def test_folding_twice_is_folding_once(text: str) -> None:
    assert folded_of(folded_of(text)) == folded_of(text)
    assert len(with_apostrophes(text)) == len(text)
