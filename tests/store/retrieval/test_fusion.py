"""Fusion by hand-computed values and by its properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.store.retrieval.fusion import (
    Ranking,
    blended,
    boosted,
    decayed,
    fuse,
    min_max,
    mmr,
    rank_of,
    reordered,
)


def side(scores: dict[int, float]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(list(scores), np.int64), np.array(list(scores.values()), np.float64)


def fused(
    cosines: dict[int, float], bm25: dict[int, float], *, dense: float = 0.7, words: float = 0.3, scopes=None
) -> Ranking:
    return fuse(side(cosines), side(bm25), dense_weight=dense, words_weight=words, scope_weights=scopes)


def test_fusion_by_hand() -> None:
    ranked = fused({1: 0.9, 2: 0.5, 3: 0.7}, {2: 8.0, 3: 4.0})
    expected = {1: 0.7, 2: 0.3, 3: 0.7 * 0.5 + 0.3 * 0.5}
    assert dict(zip(ranked.seqs.tolist(), ranked.scores.tolist(), strict=True)) == pytest.approx(expected)
    assert ranked.seqs.tolist() == [1, 3, 2]
    assert np.isnan(ranked.bm25[0])
    assert [rank_of(ranked.bm25, ranked.seqs, i) for i in range(3)] == [None, 2, 1]


def test_one_side_alone_has_all_the_weight() -> None:
    ranked = fused({}, {7: 2.0})
    assert ranked.scores[0] == pytest.approx(1.0)
    assert np.isnan(ranked.dense[0])


def test_scope_weight_multiplies_and_the_rank_before_is_kept() -> None:
    ranked = fused({1: 0.9, 2: 0.8, 3: 0.1}, {}, dense=1, words=0, scopes={1: 0.5, 2: 1.0, 3: 1.0})
    assert ranked.seqs.tolist() == [2, 1, 3]
    assert ranked.rank_before.tolist() == [2, 1, 3]


def test_ties_go_to_the_older_memory() -> None:
    assert fused({9: 0.5, 3: 0.5}, {}).seqs.tolist() == [3, 9]
    assert fused({9: 0.5, 3: 0.5}, {}, scopes={9: 0.5, 3: 0.5}).seqs.tolist() == [3, 9]


def test_nothing_found_is_an_empty_ranking() -> None:
    assert len(fused({}, {})) == 0


finite = st.floats(-1, 1)
scores = st.dictionaries(st.integers(0, 50), st.floats(0.01, 30))


@given(st.dictionaries(st.integers(0, 50), finite, max_size=20), scores)
def test_scores_stay_between_zero_and_one_and_every_candidate_is_ranked(
    cosines: dict[int, float], bm25: dict[int, float]
) -> None:
    ranked = fused(cosines, bm25)
    assert set(ranked.seqs.tolist()) == cosines.keys() | bm25.keys()
    assert all(-1e-9 <= score <= 1 + 1e-9 for score in ranked.scores)
    assert ranked.scores.tolist() == sorted(ranked.scores, reverse=True)
    assert sorted(ranked.rank_before) == list(range(1, len(ranked) + 1))


@given(st.lists(finite, min_size=1))
def test_min_max_keeps_the_order(values: list[float]) -> None:
    scaled = min_max(np.array(values))
    order = np.argsort(values, kind="stable")
    assert (np.diff(scaled[order]) >= 0).all()
    assert scaled.max() == 1.0


def test_mmr_by_hand() -> None:
    """The second is all but the first again; the third is less relevant and something else."""
    vectors = np.array([[1.0, 0.0], [0.98, 0.199], [0.0, 1.0]])
    relevance = np.array([0.9, 0.85, 0.5])
    assert mmr(relevance, vectors, 3, 0.0).tolist() == [0, 1, 2]
    assert mmr(relevance, vectors, 3, 0.5).tolist() == [0, 2, 1]
    assert mmr(relevance, vectors, 2, 0.5).tolist() == [0, 2]
    assert mmr(relevance, vectors, 0, 0.5).tolist() == mmr(relevance[:0], vectors[:0], 5, 0.5).tolist() == []


@given(st.integers(0, 12), st.integers(0, 15), st.floats(0, 1), st.integers(0, 1_000))
def test_mmr_is_the_greedy_choice(n: int, limit: int, diversity: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n, 4))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    relevance = rng.uniform(size=n)
    picks = mmr(relevance, vectors, limit, diversity).tolist()
    assert len(picks) == len(set(picks)) == min(n, limit)
    cosines = vectors @ vectors.T

    def marginal(at: int, before: list[int]) -> float:
        return (1 - diversity) * relevance[at] - diversity * max(cosines[at, other] for other in before)

    for place, pick in enumerate(picks):
        left = [at for at in range(n) if at not in picks[:place]]
        if place == 0:
            assert relevance[pick] == relevance.max()
        else:
            best = max(marginal(at, picks[:place]) for at in left)
            assert marginal(pick, picks[:place]) == pytest.approx(best)


def test_unused_memories_fade_as_their_source_has_it() -> None:
    """`max(0, 1 - .5 / half life x days)`: half after one half-life, nothing after two; the future is now."""
    days = np.array([-5.0, 0.0, 9.0, 90.0, 180.0, 400.0])
    assert decayed(days, 90.0).tolist() == pytest.approx([1.0, 1.0, 0.95, 0.5, 0.0, 0.0])
    assert decayed(np.array([10.0]), 10.0).tolist() == [0.5]


def test_boosts_by_hand_and_together_at_most_a_quarter() -> None:
    importance = np.array([0.0, 2.0, 0.0, 5.0, -4.0, -40.0])
    ages = np.array([1e6, 1e6, 30.0, 0.0, 1e6, 0.0])
    assert boosted(importance, ages).tolist() == pytest.approx([1.0, 1.1, 1.125, 1.25, 0.8, 0.0])


def test_a_merged_list_by_hand() -> None:
    parts = blended(np.array([1.0, 0.5]), np.array([0.0, 144.0]), np.array([1.0, 0.5]))
    assert parts[0].tolist() == pytest.approx([0.45, 0.25, 0.3])
    assert parts[1].tolist() == pytest.approx([0.225, 0.0625, 0.15])
    assert blended(np.zeros(1), np.array([np.inf]), np.zeros(1)).tolist() == [[0.0, 0.0, 0.0]]


def test_reordering_moves_every_column_and_keeps_ties() -> None:
    ranked = fused({1: 0.9, 2: 0.8, 3: 0.1}, {2: 3.0})
    seqs = ranked.seqs.tolist()
    turned = reordered(
        ranked,
        np.array([0.1, 0.5, 0.5]),
        np.array([0.1, 0.5, 0.5]),
        np.array([[1.0], [2.0], [3.0]]),
        np.ones((3, 2)),
    )
    assert turned.seqs.tolist() == [seqs[1], seqs[2], seqs[0]]
    assert turned.scores.tolist() == [0.5, 0.5, 0.1]
    assert turned.added.tolist() == [[2.0], [3.0], [1.0]]
    assert turned.fused.tolist() == [ranked.fused[i] for i in (1, 2, 0)]
    assert turned.rank_before.tolist() == [2, 3, 1]
    assert len(turned.where(turned.scores > 0.2)) == 2
