"""Attributes as terms and numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memoranda.storage.attributes import MAX_STRING, indexed, key_prefix, plain, string_form
from memoranda.storage.numbers import float_order

FLOATS = st.floats(allow_nan=False)


@given(FLOATS, FLOATS)
def test_float_order_is_the_order_of_floats(a, b):
    assert (float_order(a) < float_order(b)) == (a < b)
    assert -(2**63) <= float_order(a) < 2**63


@given(st.text(), st.text(), st.text(), st.text())
def test_no_key_poses_as_another(key, value, other, another):
    one, two = indexed({key: value}).tags, indexed({other: another}).tags
    if key != other:
        assert not set(one) & set(two)
    assert all(tag.startswith(key_prefix(key)) for tag in one)


def test_what_a_filter_cannot_see_keeps_its_presence():
    attributes = {"nested": {"a": 1}, "huge": 10**400, "list": [1, {"a": 1}, [2]], "none": None, "t": (1, 2)}
    assert plain(attributes) == {"nested": {}, "huge": {}, "list": [1, {}, {}], "none": None, "t": [1, 2]}
    assert indexed(plain({"huge": 10**400})).tags == ["a4:huge?"]


def test_numbers_are_columns_and_strings_are_terms():
    marks = indexed({"n": 2, "s": "x", "b": True, "l": ["x", None], "wide": 2**53 + 1, "none": None})
    assert list(marks.numbers.values()) == [float_order(2.0)]
    assert {"a1:ssx", "a1:bb1", "a1:lsx", "a1:l0", "a1:l[", f"a4:widex{2**53 + 1}"} <= set(marks.tags)
    assert not any(tag.startswith("a4:none") for tag in marks.tags)


def test_long_strings_stay_apart():
    one, two = "z" * MAX_STRING + "a", "z" * MAX_STRING + "b"
    assert string_form(one) != string_form(two)
    assert string_form("z" * MAX_STRING) < string_form(one) < string_form("z" * (MAX_STRING - 1) + "{")
    assert len(string_form("z" * 1_000_000)) < MAX_STRING + 100
