"""A snapshot of the committed documents, and the searches on it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from tantivy import Index, Occur, Query, Searcher

from memoranda.errors import IndexUnavailable
from memoranda.filters import EVERYTHING, NOTHING, Filter, fold
from memoranda.indexes.keyword.census import Census
from memoranda.indexes.keyword.conditions import Conditions, conjunction, disjunction
from memoranda.indexes.keyword.owned import owner
from memoranda.indexes.keyword.segments import stored_row
from memoranda.storage.attributes import key_prefix
from memoranda.text.analysis import index_terms

TIE = 2.0**-12
"""Scores that differ by less than this share count as equal: the same documents score a little differently in
float32 by what else is in the index."""
SAMPLE = 16


class View:
    """An immutable snapshot of the committed documents."""

    def __init__(self, index: Index, searcher: Searcher) -> None:
        self._index = index
        self._schema = index.schema
        self.searcher = searcher
        self._collection: tuple[int, float] | None = None
        self._keys: dict[str, bool] = {}
        self.census = Census(index.schema, searcher)

    def highest_seq(self) -> int:
        """The highest seq of all tenants, -1 when there is none."""
        hits = self.searcher.search(Query.all_query(), 1, count=False, order_by_field="seq").hits
        seqs = self.searcher.fast_field_values("seq", [address for _, address in hits])
        return max(map(_int, seqs), default=-1)

    def search(
        self, tenant: str, boosts: Mapping[str, float], limit: int, where: Filter, hidden: Collection[int]
    ) -> list[tuple[float, int]]:
        """Return (score, seq) of at least the `limit` best documents that have any term, pass, and are not hidden.

        `boosts` are the terms, each with the factor on its BM25 weight. The terms have the tenant's prefix, so
        they find no document of another.
        """
        query = disjunction([self._term(tenant, word, boost) for word, boost in boosts.items()])
        where = fold(where, self._has)
        if where == NOTHING:
            return []
        if where != EVERYTHING:
            clauses = Conditions(self._index, self.searcher).clauses(where)
            query = conjunction([(Occur.Must, query), *clauses])
        hits = self._best(query, limit + len(hidden))
        seqs = self.searcher.fast_field_values("seq", [address for _, address in hits])
        scored = zip((score for score, _ in hits), map(_int, seqs), strict=True)
        return [(score, seq) for score, seq in scored if seq not in hidden]

    def _best(self, query: Query, wanted: int) -> list[tuple[float, Any]]:
        """The best `wanted` hits and what ties with the last of them, to within `TIE`, so that seqs can
        decide; of a very large tie, only a part."""
        for asked in (wanted + 8 + wanted // 4, 4 * wanted + 64):
            hits: list[tuple[float, Any]] = self.searcher.search(query, asked, count=False).hits
            if len(hits) <= wanted:
                return hits
            floor = hits[wanted - 1][0] * (1.0 - TIE)
            if len(hits) < asked or hits[-1][0] < floor:
                break
        return [hit for hit in hits if hit[0] >= floor]

    def collection(self) -> tuple[int, float]:
        """Documents of all tenants (deleted ones too) and their mean length, as this snapshot's BM25 has them.

        They are read from tantivy's own account of one score, so a document with a term is needed. Without
        one among the first, the mean is 0.
        """
        if self._collection is None:
            self._collection = self._explained()
        return self._collection

    def _has(self, key: str) -> bool:
        """Return True if any document has the key; most searches filter by keys that few rows have, such as
        archived."""
        known = self._keys.get(key)
        if known is None:
            known = self._keys[key] = self.searcher.doc_freq("tag", key_prefix(key) + "?") > 0
        return known

    def _term(self, tenant: str, word: str, boost: float = 1.0) -> Query:
        query = Query.term_query(self._schema, "text", owner(tenant) + word, "freq")
        return query if boost == 1.0 else Query.boost_query(query, boost)

    def _explained(self) -> tuple[int, float]:
        for _, address in self.searcher.search(Query.all_query(), SAMPLE, count=False).hits:
            doc = stored_row(self.searcher.doc(address))
            words = index_terms(doc.text)
            if words:
                account = self._term(doc.tenant, words[0]).explain(self.searcher, address)
                parts = dict(_leaves(json.loads(account.to_json())))
                return int(parts["N"]), parts["avgdl"]
        return self.searcher.num_docs, 0.0


def _leaves(node: dict[str, Any]) -> list[tuple[str, float]]:
    leaves = [(str(node["description"]).split(",")[0], float(node["value"]))]
    for part in node.get("details") or []:
        leaves += _leaves(part)
    return leaves


def _int(value: float | None) -> int:
    if value is None:
        raise IndexUnavailable("The word index holds a document without its seq; rebuild it")
    return int(value)
