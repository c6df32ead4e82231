"""Numbers that are written as words."""

from __future__ import annotations

import pytest

from memoranda.text.numbers import in_digits, worded


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("Ada has three cats", "Ada has 3 cats"),
        ("ZWÖLF Katzen", "12 Katzen"),
        ("Ada hat \u017fieben Katzen", "Ada hat 7 Katzen"),
        ("\u017f\u0130x cats", "6 cats"),
        ("one cat, no tens", "one cat, no tens"),
    ],
)
def test_words_become_digits(text: str, digits: str) -> None:
    assert in_digits(text) == digits


def test_the_numbers_of_a_text_are_known_from_one_on() -> None:
    assert worded("One or two, and a dozen") == {"1", "2", "12"}
