"""Whether a fact can rest on what was said, and what it is worth with time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.facts.decay import DAY, days_unused, freshness, value
from memoranda.facts.grounding import grounded


@pytest.mark.parametrize(
    ("fact", "said", "is_"),
    [
        ("Mara lives in Berlin", "I moved to Berlin last year", True),
        ("Mara lives in Paris", "I moved to Berlin last year", False),
        ("Mara pays 900 euros of rent", "My rent is 900 euros", True),
        ("Mara pays 950 euros of rent", "My rent is 900 euros", False),
        ("Mara has three cats", "I have 3 cats", True),
        ("Mara has 3 cats", "I have three cats", True),
        ("Mara moves to Oslo on 2024-05-08", "I move to Oslo next Wednesday", True),
        ("The user prefers it", "Good morning", False),
        ("The user works", "I work", True),
        ("Der Nutzer mag Kaffee", "Ich trinke am liebsten Kaffee", True),
    ],
)
def test_a_fact_rests_on_what_was_said(fact: str, said: str, is_: bool) -> None:
    assert grounded(fact, [said], speakers=["Mara"]) is is_


@given(
    st.integers(0, 10**17),
    st.one_of(st.none(), st.integers(0, 10**17)),
    st.integers(0, 10**17),
    st.floats(1, 1000),
)
@settings(max_examples=40)
def test_decay_is_linear_and_never_below_zero(made: int, used: int | None, now: int, half: float) -> None:
    days = days_unused(made, used, now)
    assert days == max(0.0, (now - max(made, used or 0)) / DAY)
    assert freshness(half, half) == pytest.approx(0.5)
    assert 0.0 <= freshness(days, half) <= 1.0
    assert freshness(2 * half + 1, half) == 0.0
    assert value(0.5, 3, days, half) >= value(0.5, 2, days, half)
    assert value(0.5, 0, days, None) == 0.5
