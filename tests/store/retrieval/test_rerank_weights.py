"""Styles as linear models, and the files they are read from."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from memoranda.errors import ConfigError
from memoranda.store.retrieval.rerank_weights import (
    FEATURES,
    PRESETS,
    STEEPNESS,
    Weights,
    load,
    squashed,
)


def test_parts_by_hand() -> None:
    style = Weights("people", {"asks": -0.5, "length": 0.1}, {"asks": 0.2, "length": 3.0, "around": 9.0})
    row = np.zeros((1, len(FEATURES)))
    row[0, FEATURES.index("asks")], row[0, FEATURES.index("length")] = 1.0, 5.0
    parts = dict(zip(FEATURES, style.parts(row)[0], strict=True))
    assert parts["asks"] == pytest.approx(-0.4)
    assert parts["length"] == pytest.approx(0.2)
    assert sum(map(abs, parts.values())) == pytest.approx(0.6)
    assert (style.parts(style.neutral[None]) == 0).all()


def test_squashing_keeps_the_order_in_bounds() -> None:
    scores = np.array([-3.0, 0.0, 0.5, 1.0, 4.0])
    shown = squashed(scores)
    assert shown[2] == 0.5
    assert shown[3] == pytest.approx(1 / (1 + np.exp(-STEEPNESS / 2)))
    assert (np.diff(shown) > 0).all()
    assert shown[0] > 0
    assert shown[-1] < 1


def test_presets_name_features_that_there_are() -> None:
    for name, style in PRESETS.items():
        assert style.name == name
        assert {*style.weights, *style.means} <= set(FEATURES)


def test_a_file_replaces_the_styles_it_names(tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    path.write_text(json.dumps({"plain": {"weights": {"overlap": 1}, "means": {"overlap": 0.5}}}))
    held = load(path)
    assert held["plain"] == Weights("plain", {"overlap": 1.0}, {"overlap": 0.5})
    assert held["people"] is PRESETS["people"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1]", "cannot be read as weights"),
        ("{people: {weights: {overlap: high}}}", "cannot be read as weights"),
        ("{ppl: {weights: {}}}", "'ppl'"),
        ("{people: {weights: {overlp: 1}}}", "overlp"),
        ("{people: {means: {overlap: .nan}}}", "finite"),
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
