"""The measures against values worked out by hand, and what holds for any ranking."""

from __future__ import annotations

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.app.evals import metrics

RANKED = ["a", "x", "b", "y", "c"]
RELEVANT = {"a", "b", "c", "d"}
IDS = st.lists(st.sampled_from("abcdefghij"), unique=True)


@st.composite
def ranking(draw: st.DrawFn) -> tuple[list[str], dict[str, float]]:
    """A ranking and the grades of what is relevant, some of it not ranked at all."""
    relevant = draw(st.lists(st.sampled_from("abcdefghij"), unique=True, min_size=1))
    grades = draw(st.lists(st.integers(1, 3), min_size=len(relevant), max_size=len(relevant)))
    return draw(IDS), dict(zip(relevant, map(float, grades), strict=True))


def test_recall_is_a_share_and_hit_is_any() -> None:
    assert metrics.recall(RANKED, RELEVANT, 1) == 0.25
    assert metrics.recall(RANKED, RELEVANT, 3) == 0.5
    assert metrics.recall(RANKED, RELEVANT, 10) == 0.75
    assert metrics.hit(RANKED, RELEVANT, 1) == 1.0
    assert metrics.hit(["x", "a"], RELEVANT, 1) == 0.0


def test_perfect_recall_needs_all() -> None:
    assert metrics.perfect(RANKED, RELEVANT, 5) == 0.0
    assert metrics.perfect(RANKED, {"a", "b"}, 2) == 0.0
    assert metrics.perfect(RANKED, {"a", "b"}, 3) == 1.0


def test_precision_counts_empty_places_as_misses() -> None:
    assert metrics.precision(RANKED, RELEVANT, 5) == 0.6
    assert metrics.precision(["a"], RELEVANT, 5) == 0.2


def test_reciprocal_rank() -> None:
    assert metrics.reciprocal_rank(RANKED, {"b", "c"}) == pytest.approx(1 / 3)
    assert metrics.reciprocal_rank(RANKED, {"nowhere"}) == 0.0
    assert metrics.reciprocal_rank([], {"a"}) == 0.0


def test_ndcg_by_hand() -> None:
    grades = dict.fromkeys("ab", 1.0)
    best = 1 + 1 / log2(3)
    assert metrics.ndcg(["x", "a", "b"], grades, 10) == pytest.approx((1 / log2(3) + 0.5) / best)
    assert metrics.ndcg(["x", "a", "b"], grades, 1) == 0.0
    assert metrics.ndcg(["b"], grades, 10) == pytest.approx(1 / best)


def test_ndcg_gains_are_the_grades() -> None:
    grades = {"a": 3.0, "b": 1.0}
    assert metrics.ndcg(["b", "a"], grades, 2) == pytest.approx((1 + 3 / log2(3)) / (3 + 1 / log2(3)))


def test_noise_is_the_share_marked_wrong_of_what_was_given() -> None:
    assert metrics.noise(RANKED, {"x", "y"}, 2) == 0.5
    assert metrics.noise(RANKED, {"x", "y"}, 4) == 0.5
    assert metrics.noise(["x"], {"x"}, 5) == 1.0
    assert metrics.noise([], {"x"}, 5) == 0.0
    assert metrics.noise(RANKED, set(), 5) == 0.0


@pytest.mark.parametrize("measure", [metrics.recall, metrics.hit, metrics.perfect, metrics.precision])
def test_nothing_relevant_has_no_measure(measure: object) -> None:
    with pytest.raises(ValueError, match="nothing is relevant"):
        measure(RANKED, set(), 5)  # type: ignore[operator]


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="grade above 0"):
        metrics.ndcg(RANKED, {"a": 0.0}, 5)
    for measure in (metrics.recall, metrics.noise):
        with pytest.raises(ValueError, match="at least 1"):
            measure(RANKED, RELEVANT, 0)


@given(ranking(), st.integers(1, 12))
def test_every_measure_is_a_share(case: tuple[list[str], dict[str, float]], k: int) -> None:
    ranked, grades = case
    for measure in (metrics.recall, metrics.hit, metrics.perfect, metrics.precision, metrics.noise):
        assert 0.0 <= measure(ranked, grades, k) <= 1.0
    assert 0.0 <= metrics.ndcg(ranked, grades, k) <= 1.0 + 1e-12
    assert 0.0 <= metrics.reciprocal_rank(ranked, grades) <= 1.0


@given(ranking(), st.integers(1, 11))
def test_longer_lists_never_find_less(case: tuple[list[str], dict[str, float]], k: int) -> None:
    ranked, grades = case
    for measure in (metrics.recall, metrics.hit, metrics.perfect):
        assert measure(ranked, grades, k) <= measure(ranked, grades, k + 1)


@given(ranking(), st.integers(1, 12))
def test_perfect_recall_and_hit_in_order(case: tuple[list[str], dict[str, float]], k: int) -> None:
    ranked, grades = case
    found = [measure(ranked, grades, k) for measure in (metrics.perfect, metrics.recall, metrics.hit)]
    assert found == sorted(found)
    assert (metrics.reciprocal_rank(ranked, grades) >= 1 / k) == bool(metrics.hit(ranked, grades, k))


@given(ranking())
def test_the_best_order_has_an_ndcg_of_one(case: tuple[list[str], dict[str, float]]) -> None:
    _, grades = case
    best = sorted(grades, key=lambda one: -grades[one])
    assert metrics.ndcg(best, grades, 10) == pytest.approx(1.0)


@given(ranking(), st.integers(1, 12))
def test_moving_a_relevant_id_up_never_hurts(case: tuple[list[str], dict[str, float]], k: int) -> None:
    ranked, grades = case
    for place in range(1, len(ranked)):
        if ranked[place] in grades and ranked[place - 1] not in grades:
            better = [*ranked]
            better[place - 1], better[place] = better[place], better[place - 1]
            assert metrics.ndcg(better, grades, k) >= metrics.ndcg(ranked, grades, k) - 1e-12
            assert metrics.reciprocal_rank(better, grades) >= metrics.reciprocal_rank(ranked, grades)
