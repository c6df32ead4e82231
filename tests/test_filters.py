"""Filters: what they mean, which forms are read, what is refused."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.errors import InvalidInput
from memoranda.filters import (
    EVERYTHING,
    NOTHING,
    OPS,
    OWN_KEYS,
    AllOf,
    AnyOf,
    Compare,
    Filter,
    all_of,
    any_of,
    fold,
    matches,
    parse,
)


@pytest.mark.parametrize(
    ("op", "value", "held", "expected"),
    [
        ("eq", 1, 1.0, True),
        ("eq", 1, "1", False),
        ("eq", True, 1, False),
        ("eq", None, None, True),
        ("ne", "en", None, True),
        ("ne", None, None, False),
        ("in", ("a", "b"), "b", True),
        ("nin", ("a", "b"), None, True),
        ("in", ("x",), ["x", "y"], True),
        ("nin", ("x",), ["x", "y"], False),
        ("eq", "y", ["x", "y"], True),
        ("gt", 3, 4, True),
        ("gt", 3, "4", False),
        ("gte", "b", "b", True),
        ("lt", "b", "a", True),
        ("lte", 3, None, False),
        ("gt", 0, True, False),
        ("gt", 0, [1, 2], False),
    ],
)
def test_meaning(op: str, value: object, held: object, expected: bool) -> None:
    assert matches(Compare("k", op, value), {"k": held}) is expected  # type: ignore[arg-type]


scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-3, 3) | st.text(max_size=2)


@given(scalars, scalars | st.lists(scalars, max_size=3))
def test_ne_and_nin_are_the_negations(value: object, held: object) -> None:
    row = {"k": held}
    assert matches(Compare("k", "ne", value), row) is not matches(Compare("k", "eq", value), row)  # type: ignore[arg-type]
    assert matches(Compare("k", "nin", (value,)), row) is not matches(Compare("k", "in", (value,)), row)  # type: ignore[arg-type]


def test_both_forms_are_read() -> None:
    tree = parse(
        {
            "type": "and",
            "filters": [{"type": "gte", "key": "year", "value": 2024}, {"type": "or", "filters": []}],
        }
    )
    assert tree == AllOf((Compare("year", "gte", 2024), AnyOf(())))
    assert parse({"lang": "en", "year": [1, 2]}) == AllOf(
        (Compare("lang", "eq", "en"), Compare("year", "in", (1, 2)))
    )


def test_a_metadata_key_called_type_can_be_asked_for() -> None:
    assert parse({"type": "invoice"}) == AllOf((Compare("type", "eq", "invoice"),))


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ({"type": "like", "key": "a", "value": "b"}, "filters.type"),
        ({"type": "eq", "key": "", "value": "b"}, "filters.key"),
        ({"type": "eq", "key": "$tenant", "value": "b"}, "filters.key"),
        ({"type": "in", "key": "a", "value": "b"}, "filters.value"),
        ({"type": "and", "filters": [{"type": "eq", "key": "a", "value": {}}]}, "filters.filters[0].value"),
        ({"a": {"$gt": 1}}, "filters.a"),
        ([], "filters"),
        ({"$seq": 1}, "filters.$seq"),
        ({"type": "eq", "key": "a"}, "filters.value"),
        ({"type": "eq", "value": "b"}, "filters.key"),
        ({"type": "eq", "field": "a", "value": "b"}, "filters.key"),
        ({"key": "a", "value": "b"}, "filters.type"),
        ({"type": "or", "filters": [{"key": "a", "value": "b"}]}, "filters.filters[0].type"),
    ],
)
def test_what_is_wrong_is_named(raw: object, path: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(raw)
    assert caught.value.field == path


def test_bottomless_and_endless_filters_are_refused() -> None:
    deep: dict[str, object] = {"type": "eq", "key": "a", "value": 1}
    for _ in range(40):
        deep = {"type": "and", "filters": [deep]}
    with pytest.raises(InvalidInput, match="nest"):
        parse(deep)
    with pytest.raises(InvalidInput, match="hold"):
        parse({"type": "or", "filters": [{"type": "eq", "key": "a", "value": 1}] * 2_000})


def test_combining() -> None:
    one = Compare("a", "eq", 1)
    assert all_of(one, None) == one
    assert any_of(one) == one
    assert all_of(AllOf((one,)), one) == AllOf((one, one))
    assert not matches(NOTHING, {})
    assert set(OPS) == {"eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"}


compares = st.builds(
    Compare, st.sampled_from("abc"), st.sampled_from(["eq", "ne", "gt", "lte"]), scalars
) | st.builds(
    Compare, st.sampled_from("abc"), st.sampled_from(["in", "nin"]), st.lists(scalars, max_size=2).map(tuple)
)
trees = st.recursive(
    compares,
    lambda inner: (
        st.lists(inner, max_size=3)
        .map(tuple)
        .flatmap(lambda parts: st.sampled_from([AllOf(parts), AnyOf(parts)]))
    ),
    max_leaves=8,
)


@given(trees, st.dictionaries(st.sampled_from("abc"), scalars | st.lists(scalars, max_size=2)), st.booleans())
def test_folding_changes_no_answer(where: Filter, row: dict[str, object], generous: bool) -> None:
    held = (lambda key: True) if generous else (lambda key: key in row)
    assert matches(fold(where, held), row) is matches(where, row)


def test_what_no_row_has_is_decided_once() -> None:
    live = all_of(
        Compare("$archived_at", "eq", None), any_of(Compare("x", "gt", 3), Compare("x", "eq", None))
    )
    assert fold(live, lambda key: False) == EVERYTHING
    assert fold(Compare("x", "eq", 1), lambda key: False) == NOTHING
    assert fold(all_of(Compare("x", "eq", 1), Compare("y", "eq", 2)), lambda key: key == "x") == NOTHING


def test_own_fields_are_allowed_by_name() -> None:
    raw = {"type": "or", "filters": [{"$user_id": "mara"}, {"type": "ne", "key": "$tags", "value": "clay"}]}
    assert parse(raw, own=OWN_KEYS) == AnyOf(
        (AllOf((Compare("$user_id", "eq", "mara"),)), Compare("$tags", "ne", "clay"))
    )
    for wrong in ({"$kind": "note"}, {"type": "and", "filters": [{"$seq": 1}]}):
        with pytest.raises(InvalidInput, match=r"or \$agent_id, "):
            parse(wrong, own=OWN_KEYS)


def test_rows_without_the_key_are_compared_with_many_numbers_as_fast_as_texts() -> None:
    """The time of one is a ratio to that of the other, each the best of some tries."""
    numbers = Compare("a", "in", tuple(range(10_000)))
    texts = Compare("a", "in", tuple(map(str, range(10_000))))

    def seconds(where: Filter, attributes: dict[str, Any]) -> float:
        began = time.process_time()
        assert not any(matches(where, attributes) for _ in range(20))
        return time.process_time() - began

    without, other = (
        min(seconds(*given) for _ in range(3)) for given in ((numbers, {}), (texts, {"a": "b"}))
    )
    assert without < 5 * other
