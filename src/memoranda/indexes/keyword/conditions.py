"""Filters as tantivy queries, with exactly the meaning of `filters.matches`; see `attributes` for the terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tantivy import Index, Occur, Query, Searcher

from memoranda.filters import AllOf, Filter
from memoranda.storage.attributes import column, equal_tag, key_prefix, string_form
from memoranda.storage.dialect import Dialect, Values
from memoranda.storage.numbers import COMPARE, number_order, ranks

Clause = tuple[Occur, Query]
Signed = tuple[bool, Query]
"""A query, and whether it is negated: tantivy excludes rows faster than it collects all others."""
MANY = 32
"""From this many values on, one set query is cheaper than a disjunction."""


class Conditions(Dialect[Signed]):
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
        return [_clause(self.condition(part)) for part in parts]

    def all_of(self, parts: Sequence[Signed]) -> Signed:
        return False, conjunction(list(map(_clause, parts)))

    def any_of(self, parts: Sequence[Signed]) -> Signed:
        return False, disjunction(
            [conjunction([(Occur.MustNot, query)]) if negated else query for negated, query in parts]
        )

    def equal(self, key: str, values: Values) -> Signed:
        prefix, null = key_prefix(key), []
        if values.null:
            null = [self._tag(prefix + "0"), conjunction([(Occur.MustNot, self._tag(prefix + "?"))])]
            if values.given == (None,) and not self._searcher.doc_freq("tag", prefix + "0"):
                return True, self._tag(prefix + "?")
        orders = [order for order in map(number_order, values.numbers) if order is not None]
        tags = [tag for value in values.present if (tag := equal_tag(key, value)) is not None]
        found = [*self._any_term("tag", tags), *self._any_term(f"num.{column(key)}", orders)]
        return False, disjunction(found + null)

    def unequal(self, key: str, values: Values) -> Signed:
        negated, query = self.equal(key, values)
        return not negated, query

    def text_order(self, key: str, op: str, value: str) -> Signed:
        prefix = key_prefix(key)
        bound = string_form(value)
        tags = [tag for tag in self._terms(prefix + "s") if COMPARE[op](tag[len(prefix) + 1 :], bound)]
        lists = (Occur.MustNot, self._tag(prefix + "["))
        return False, conjunction([(Occur.Must, disjunction(self._any_term("tag", tags))), lists])

    def number_order(self, key: str, op: str, value: float) -> Signed:
        """Compare with the column of numbers by rank, and with ints beyond 2**53 in full."""
        low, high = ranks(op, value)
        column_range = self._index.parse_query(f"num.{column(key)}:[{low} TO {high}]")
        prefix = key_prefix(key) + "x"
        tags = [tag for tag in self._terms(prefix) if COMPARE[op](int(tag[len(prefix) :]), value)]
        return False, disjunction([column_range, *self._any_term("tag", tags)])

    def _any_term(self, field: str, values: Sequence[Any]) -> list[Query]:
        if len(values) < MANY:
            return [Query.term_query(self._schema, field, value, "basic") for value in values]
        return [Query.term_set_query(self._schema, field, values)]

    def _tag(self, tag: str) -> Query:
        return Query.term_query(self._schema, "tag", tag, "basic")

    def _terms(self, prefix: str) -> list[str]:
        return [term for term, _ in self._searcher.terms_with_prefix("tag", prefix)]


def _clause(condition: Signed) -> Clause:
    negated, query = condition
    return (Occur.MustNot, query) if negated else (Occur.Must, Query.const_score_query(query, 0.0))


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
