"""Attribute columns: growth, sparse and dense, renumbering, and a round trip through arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memoranda.filters import Compare, matches
from memoranda.indexes.vector.cache import pack, unpack
from memoranda.indexes.vector.columns import Columns
from memoranda.indexes.vector.growing import SeqColumn, Series
from memoranda.storage.dialect import Values
from memoranda.storage.numbers import bound

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(2**53 - 2, 2**53 + 2),
    st.floats(width=16),
    st.text(max_size=2),
    st.lists(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(0, 2),
            st.integers(2**53, 2**53 + 1),
            st.text(max_size=1),
            st.lists(st.integers(2**53, 2**53 + 1), max_size=1),
        ),
        max_size=3,
    ),
)
ROWS = st.lists(st.dictionaries(st.sampled_from("ab"), VALUES), min_size=1, max_size=30)


def made(rows: list[dict[str, Any]], batches: int = 3) -> Columns:
    columns = Columns(SeqColumn())
    for some in np.array_split(np.arange(len(rows)), batches):
        columns.extend(columns.seqs.seqs.count, [rows[i] for i in some])
        columns.seqs.extend(some)
    return columns


def same(columns: Columns, rows: list[dict[str, Any]], probes: list[Any]) -> None:
    for value in probes:
        for op in ("eq", "ne", "gt", "lte"):
            where = Compare("a", op, value)
            mask = columns.mask(where, len(rows))
            passing = [True] * len(rows) if mask is None else mask.tolist()
            assert passing == [matches(where, row) for row in rows], where


def test_lists_within_lists_equal_nothing_however_deep_they_are() -> None:
    deep: list[Any] = [1]
    for _ in range(5_000):
        deep = [deep]
    rows = [{"a": deep}, {"a": [deep, 2]}, {"a": 2}]
    same(made(rows, 1), rows, PROBES)


PROBES = [None, True, 0, 1, 2.0, 2**53, 2**53 + 1, "", "a", "0"]


@settings(max_examples=80, deadline=None)
@given(rows=ROWS, keep=st.data())
def test_taking_rows_keeps_their_values_and_nothing_else(
    rows: list[dict[str, Any]], keep: st.DataObject
) -> None:
    slots = np.array(keep.draw(st.permutations(range(len(rows))))[: len(rows) // 2 + 1], np.int64)
    columns = made(rows)
    taken = columns.take(slots, SeqColumn(slots))
    kept = [rows[slot] for slot in slots]
    same(taken, kept, PROBES)
    strings = {value for row in kept for value in row.values() if isinstance(value, str)}
    assert {text for column in taken.by_key.values() for text in column.strings} == strings


@settings(max_examples=80, deadline=None)
@given(rows=ROWS)
@example(rows=[{"a": [2**53 + 1, ""]}])
def test_columns_come_back_from_their_bytes_and_grow_on(rows: list[dict[str, Any]]) -> None:
    data = b"".join(pack(*made(rows).dump(len(rows))))
    again = Columns.load(*unpack(data), SeqColumn(np.arange(len(rows))))
    same(again, rows, PROBES)
    again.extend(len(rows), rows)
    again.seqs.extend(np.arange(len(rows)))
    same(again, rows + rows, PROBES)


def test_a_reader_of_fewer_rows_sees_only_those() -> None:
    rows = [{"a": i % 3, "b": ["x"]} for i in range(20)]
    columns = made(rows)
    for n in range(21):
        mask = columns.mask(Compare("b", "eq", "x"), n)
        assert mask is not None
        assert mask.tolist() == [True] * n
        mask = columns.mask(Compare("a", "gte", 2), n)
        assert mask is not None
        assert mask.tolist() == [i % 3 == 2 for i in range(n)]


def test_a_rare_key_stays_sparse_and_a_common_one_does_not() -> None:
    rare, common = Series(0, np.uint32), Series(0, np.uint32)
    rare.extend(np.array([5, 900]), np.array([7, 8], np.uint32), 1000)
    common.extend(np.arange(0, 1000, 2), np.full(500, 7, np.uint32), 1000)
    assert rare.parts(1000)[0] is not None
    assert common.parts(1000)[0] is None
    assert np.flatnonzero(rare.hits(lambda values: values == 7, 1000)).tolist() == [5]
    assert rare.hits(lambda values: values == 8, 900).any() == np.False_
    assert common.hits(lambda values: values == 7, 1000).sum() == 500


@given(
    op=st.sampled_from(["gt", "gte", "lt", "lte"]),
    held=st.floats(allow_nan=False) | st.sampled_from([2.0**53, 2.0**53 + 2, 2.0**70]),
    value=st.integers(2**53 - 3, 2**53 + 3) | st.integers(-(2**80), 2**80) | st.just(10**400) | st.floats(),
)
def test_a_bound_compares_floats_as_the_value_does(op: str, held: float, value: float) -> None:
    compare = {
        "gt": lambda a, b: a > b,
        "gte": lambda a, b: a >= b,
        "lt": lambda a, b: a < b,
        "lte": lambda a, b: a <= b,
    }
    near, limit = bound(op, value)
    assert compare[near](held, limit) == compare[op](held, value)


@given(
    batches=st.lists(st.lists(st.integers(0, 40), max_size=12), max_size=6),
    wanted=st.lists(st.integers(0, 45)),
)
def test_seqs_are_found_in_whatever_order_they_came(batches: list[list[int]], wanted: list[int]) -> None:
    column = SeqColumn()
    seqs: list[int] = []
    for some in batches:
        column.extend(np.array(some, np.int64))
        seqs += some
    for n in (len(seqs), len(seqs) // 2):
        expected = [slot for slot in range(n) if seqs[slot] in wanted]
        assert column.find(np.array(wanted, np.int64), n).tolist() == expected


@pytest.mark.parametrize("value", [7, 7.0, True, "7", None, 7.5, float("nan"), float("inf"), 2**70])
def test_a_seq_equals_only_whole_numbers(value: Any) -> None:
    column = SeqColumn(np.array([1, 7, 9]))
    assert column.equal(Values((value,)), 3).tolist() == [
        matches(Compare("s", "eq", value), {"s": s}) for s in (1, 7, 9)
    ]
