"""Filters of LangGraph: what they mean, and that the product's filters leave out nothing that passes them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.filters import matches, parse
from memoranda.integrations.langgraph import conditions
from memoranda.integrations.langgraph.items import OWN

VALUE = {"n": 2, "t": "b", "yes": True, "none": None, "list": [1, 2], "deep": {"a": {"b": 3}}, "x.y": 1}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, True),
        ({"n": 2, "t": "b"}, True),
        ({"n": 2.0}, True),
        ({"n": "2"}, False),
        ({"yes": True}, True),
        ({"yes": 1}, False),
        ({"none": None, "missing": None}, True),
        ({"missing": {"$ne": 1}}, True),
        ({"missing": {"$gt": 1}}, False),
        ({"n": {"$gt": 1, "$lt": float("inf"), "$ne": 3}}, True),
        ({"n": {"$lt": 10**100}}, True),
        ({"n": {"$eq": float("nan")}}, False),
        ({"n": {"$gte": "1"}}, False),
        ({"t": {"$gte": "a", "$lte": "b"}}, True),
        ({"list": [1, 2]}, True),
        ({"list": [1]}, False),
        ({"list": 1}, False),
        ({"deep": {"a": {"b": {"$gt": 2}}}}, True),
        ({"deep.a.b": 3, "x.y": 1}, True),
        ({"deep.a.c": 3}, False),
        ({"t.u": "b"}, False),
    ],
)
def test_a_value_passes(wanted: dict[str, Any], expected: bool) -> None:
    assert conditions.passes(VALUE, wanted) is expected


NAMES = st.sampled_from(["a", "b", "a.b", "$x", "", "langgraph.key"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.5, 1.0, float("inf"), "", "a", "\x00"])
)
PARTS = (
    SCALARS
    | st.lists(SCALARS, max_size=2)
    | st.dictionaries(st.sampled_from(["b", "c"]), SCALARS, max_size=2)
)
VALUES = st.dictionaries(NAMES, PARTS, max_size=3)
CONDITIONS = st.dictionaries(
    NAMES,
    PARTS | st.dictionaries(st.sampled_from(conditions.OPERATORS), SCALARS, min_size=1, max_size=2),
    max_size=3,
)


@given(VALUES, CONDITIONS)
def test_narrowing_leaves_out_nothing_that_passes(value: dict[str, Any], wanted: dict[str, Any]) -> None:
    stored = {name: part for name, part in value.items() if name and not name.startswith(("$", OWN))}
    narrow = parse({"type": "and", "filters": conditions.narrowing(wanted, OWN)})
    if conditions.passes(value, wanted):
        assert matches(narrow, stored)
