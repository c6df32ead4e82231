"""Filters as tantivy queries, with exactly the meaning of `filters.matches`; see `attributes` for the terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tantivy import Index, Occur, Query, Searcher

from memoranda.filters import AllOf, AnyOf, Filter, Scalar
from memoranda.storage.attributes import (
    COMPARE,
    column,
    equal_tag,
    in_float_range,
    key_prefix,
    number_order,
    string_form,
)

Clause = tuple[Occur, Query]
MANY = 32
"""From this many values on, one set query is cheaper than a disjunction."""


class Conditions:
    """Compiles filters against one snapshot of an index.

    Order comparisons of strings read the key's distinct values from the snapshot's term dictionary, so
    their cost grows with that number; other comparisons use terms and columns.
    """

    def __init__(self, index: Index, searcher: Searcher) -> None:
        self._index = index
        self._schema = index.schema
        self._searcher = searcher

    def clauses(self, where: Filter) -> list[Clause]:
        """Return the filter as clauses of a conjunction, none of which adds to a score."""
        parts = where.parts if isinstance(where, AllOf) else (where,)
        return [self._clause(part) for part in parts]

    def _clause(self, where: Filter) -> Clause:
        negated, query = self._signed(where)
        return (Occur.MustNot, query) if negated else (Occur.Must, Query.const_score_query(query, 0.0))

    def _signed(self, where: Filter) -> tuple[bool, Query]:
        if isinstance(where, AllOf):
            return False, conjunction([self._clause(part) for part in where.parts])
        if isinstance(where, AnyOf):
            return False, disjunction([self._positive(part) for part in where.parts])
        key, value = where.key, where.value
        values = value if isinstance(value, tuple) else (value,)
        equal = where.op in ("eq", "in")
        if equal or where.op in ("ne", "nin"):
            if values == (None,) and not self._searcher.doc_freq("tag", key_prefix(key) + "0"):
                return equal, self._tag(key_prefix(key) + "?")
            return not equal, self._equal(key, values)
        return False, self._ordered(key, where.op, value)

    def _positive(self, where: Filter) -> Query:
        negated, query = self._signed(where)
        return conjunction([(Occur.MustNot, query)]) if negated else query

    def _equal(self, key: str, values: Sequence[Scalar]) -> Query:
        prefix = key_prefix(key)
        present = [value for value in values if value is not None]
        numbers = [
            value for value in present if isinstance(value, int | float) and not isinstance(value, bool)
        ]
        orders = [order for order in map(number_order, numbers) if order is not None]
        tags = [tag for tag in (equal_tag(key, value) for value in present) if tag is not None]
        parts = [*self._any_term("tag", tags), *self._any_term(f"num.{column(key)}", orders)]
        if len(present) < len(values):
            parts += [self._tag(prefix + "0"), conjunction([(Occur.MustNot, self._tag(prefix + "?"))])]
        return disjunction(parts)

    def _any_term(self, field: str, values: Sequence[Any]) -> list[Query]:
        if len(values) < MANY:
            return [Query.term_query(self._schema, field, value, "basic") for value in values]
        return [Query.term_set_query(self._schema, field, values)]

    def _tag(self, tag: str) -> Query:
        return Query.term_query(self._schema, "tag", tag, "basic")

    def _ordered(self, key: str, op: str, value: object) -> Query:
        if isinstance(value, str):
            return self._ordered_strings(key, op, value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return disjunction([*self._column_range(key, op, value), *self._wide_ints(key, op, value)])
        return Query.empty_query()

    def _ordered_strings(self, key: str, op: str, value: str) -> Query:
        prefix = key_prefix(key)
        bound = string_form(value)
        tags = [tag for tag in self._terms(prefix + "s") if COMPARE[op](tag[len(prefix) + 1 :], bound)]
        lists = (Occur.MustNot, self._tag(prefix + "["))
        return conjunction([(Occur.Must, disjunction(self._any_term("tag", tags))), lists])

    def _wide_ints(self, key: str, op: str, value: int | float) -> list[Query]:
        prefix = key_prefix(key) + "x"
        tags = [tag for tag in self._terms(prefix) if COMPARE[op](int(tag[len(prefix) :]), value)]
        return self._any_term("tag", tags)

    def _terms(self, prefix: str) -> list[str]:
        return [term for term, _ in self._searcher.terms_with_prefix("tag", prefix)]

    def _column_range(self, key: str, op: str, value: int | float) -> list[Query]:
        """Return the rows of the column that compare so with `value`: its rank among the floats bounds the range; the
        numbers themselves decide whether that rank is included, which matters for ints beyond 2**53."""
        upward = op in ("gt", "gte")
        if isinstance(value, int) and not in_float_range(value):
            return self._range(key, "*", "*") if upward == (value < 0) else []
        order = number_order(value)
        if order is None:
            return []
        if not COMPARE[op](float(value), value):
            order += 1 if upward else -1
        return self._range(key, order, "*") if upward else self._range(key, "*", order)

    def _range(self, key: str, low: int | str, high: int | str) -> list[Query]:
        if low == "*" and high == "*":
            low = number_order(float("-inf")) or 0
        return [self._index.parse_query(f"num.{column(key)}:[{low} TO {high}]")]


def conjunction(clauses: Sequence[Clause]) -> Query:
    """Return a query for the rows that meet every clause; with none, every row."""
    if all(occur == Occur.MustNot for occur, _ in clauses):
        return Query.boolean_query([(Occur.Must, Query.all_query()), *clauses])
    return Query.boolean_query(list(clauses))


def disjunction(queries: Sequence[Query]) -> Query:
    """Return a query for the rows that meet any of the queries; with none, no row."""
    if not queries:
        return Query.empty_query()
    return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Should, q) for q in queries])
