"""Calibration: monotone, inverse to itself, the knots where the docstring puts them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.providers.embeddings.base import Calibration

calibrations = st.builds(Calibration, st.floats(-0.5, 0.4), st.floats(0.41, 0.95))


@given(calibrations)
def test_knots(calibration: Calibration) -> None:
    assert calibration.similarity(calibration.low) == pytest.approx(0.0, abs=1e-9)
    assert calibration.similarity(calibration.firm) == pytest.approx(0.7)
    assert calibration.similarity(1.0) == pytest.approx(1.0)
    assert calibration.similarity(-1.0) == 0.0


@given(calibrations, st.floats(-1, 1), st.floats(-1, 1))
def test_a_higher_cosine_never_reads_lower(calibration: Calibration, a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert calibration.similarity(low) <= calibration.similarity(high) + 1e-12


@given(calibrations, st.floats(0, 1))
def test_a_floor_comes_back_as_itself(calibration: Calibration, similarity: float) -> None:
    assert calibration.similarity(calibration.cosine(similarity)) == pytest.approx(similarity, abs=1e-9)


def test_the_default_is_the_identity() -> None:
    assert Calibration().similarity(0.42) == pytest.approx(0.42)
    assert Calibration().similarity(0.9) == pytest.approx(0.9)
