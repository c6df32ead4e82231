"""Scores as sums, their weights, and the files that these are read from."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from memoranda.errors import ConfigError
from memoranda.store.retrieval.scoring import (
    BEHIND,
    FEATURES,
    FEW,
    INTERCEPT,
    PARTS,
    PRESETS,
    WITHOUT_TOKENS,
    Weights,
    factors,
    fewness,
    load,
    logistic,
    logits,
    summands,
)

STYLE = Weights("people", -1.0, {"asks": -0.5, "similarity": 2.0, "coverage": 1.0}, few=0.5, behind=0.25)


def rows(*values: dict[str, float]) -> np.ndarray:
    return np.array([[row.get(name, 0.0) for name in FEATURES] for row in values])


def test_a_sum_by_hand() -> None:
    features = rows({"asks": 1.0, "similarity": 0.5}, {"similarity": 1.0, "coverage": 0.5, "when": 9.0})
    first, second = (
        dict(zip(PARTS, row, strict=True)) for row in summands(features, [STYLE] * 2, searched=10)
    )
    few = 0.5 * np.log(5)
    assert first[INTERCEPT] == second[INTERCEPT] == -1.0
    assert first[FEW] == second[FEW] == pytest.approx(few)
    assert (first["asks"], first["similarity"]) == (-0.5, 1.0)
    assert (second["similarity"], second["coverage"], second["when"]) == (2.0, 0.5, 0.0)
    assert second[BEHIND] == 0.0
    assert first[BEHIND] == pytest.approx(0.25 * (0.5 - 2.5))


def test_each_candidate_has_the_weights_of_its_style() -> None:
    other = Weights("plain", 0.0, {"similarity": 1.0})
    added = summands(rows({"similarity": 1.0}, {"similarity": 1.0}), [STYLE, other], searched=None)
    column = PARTS.index("similarity")
    assert added[:, column].tolist() == [2.0, 1.0]
    assert added[:, 0].tolist() == [-1.0, 0.0]


def test_a_candidate_is_behind_those_of_its_own_style() -> None:
    other = Weights("plain", 9.0, {"similarity": 1.0}, behind=0.5)
    features = rows({"similarity": 1.0}, {"similarity": 0.5}, {"similarity": 1.0}, {"similarity": 0.5})
    added = summands(features, [STYLE, STYLE, other, other], searched=None)
    assert added[:, PARTS.index(BEHIND)].tolist() == [0.0, -0.25, 0.0, -0.25]


def test_the_weights_of_the_sides_are_factors() -> None:
    sides = factors({"dense": 1.3, "words": 0.0})
    added = summands(rows({"similarity": 1.0, "coverage": 1.0, "asks": 1.0}), [STYLE], None, sides)
    shown = dict(zip(PARTS, added[0], strict=True))
    assert shown["similarity"] == pytest.approx(2.0 / 0.65)
    assert (shown["coverage"], shown["asks"]) == (0.0, -0.5)


def test_few_texts_are_fewer_than_fifty() -> None:
    assert [fewness(count) for count in (None, 50, 5_000)] == [0.0, 0.0, 0.0]
    assert fewness(1) == fewness(0) == pytest.approx(np.log(50))


def test_logits_are_the_inverse_of_probabilities() -> None:
    sums = np.array([-3.0, 0.0, 0.5, 4.0])
    assert logits(logistic(sums)) == pytest.approx(sums)
    assert np.isfinite(logits(np.array([0.0, 1.0]))).all()


@pytest.mark.parametrize("presets", [PRESETS, WITHOUT_TOKENS])
def test_presets_name_features_that_there_are(presets: dict[str, Weights]) -> None:
    for name, style in presets.items():
        assert style.name == name
        assert {*style.weights, *style.means} <= set(FEATURES)
        assert ("tokens" in style.weights) is (presets is PRESETS)
        assert style.weights["similarity"] > 0
        assert style.weights["coverage"] > 0
        assert min(style.behind, style.few) >= 0


def test_a_file_replaces_the_styles_it_names(tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    path.write_text(json.dumps({"plain": {"intercept": -2, "weights": {"coverage": 1}, "behind": 0.5}}))
    held = load(path)
    assert held["plain"] == Weights("plain", -2.0, {"coverage": 1.0}, behind=0.5)
    assert held["people"] is PRESETS["people"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1]", "cannot be read as weights"),
        ("{people: {intercept: 0, weights: {coverage: high}}}", "cannot be read as weights"),
        ("{people: {weights: {coverage: 1}}}", "intercept"),
        ("{ppl: {intercept: 0, weights: {}}}", "'ppl'"),
        ("{people: {intercept: 0, weights: {coverge: 1}}}", "coverge"),
        ("{people: {intercept: 0, weights: {}, means: {coverage: .nan}}}", "finite"),
        ("{people: {intercept: .inf, weights: {}}}", "finite"),
        (None, "cannot be read"),
    ],
)
def test_a_wrong_file_is_named_with_the_fix(text: str | None, says: str, tmp_path: Path) -> None:
    path = tmp_path / "weights.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=says) as told:
        load(path)
    assert told.value.field == "search.rerank_weights"
    assert str(path) in str(told.value)
