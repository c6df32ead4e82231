"""Numbers that are written as words, and numbers that name a thing."""

from __future__ import annotations

import pytest

from memoranda.text.numbers import has_long_number, ids_in, in_digits, worded


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


@pytest.mark.parametrize(
    ("text", "long", "ids"),
    [
        ("What is the status of order ORD-12222?", True, ["ord12222"]),
        ("ticket #4711 and INV_2024/00817", True, ["4711", "inv202400817"]),
        ("the budget of 2023, mid-2024 and Q3-2025", False, ["q32025"]),
        ("price of KB-2044, error E09, v2.6", True, ["kb2044", "e09", "v2"]),
        ("1,000 people, 24 towns", False, []),
        ("we paid 12500 euros for 400mg", True, []),
        ("", False, []),
    ],
)
def test_numbers_that_name_a_thing(text: str, long: bool, ids: list[str]) -> None:
    assert (has_long_number(text), ids_in(text)) == (long, ids)
