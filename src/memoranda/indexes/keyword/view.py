"""A snapshot of the committed documents: their number by tenant and term, and the searches on it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from tantivy import Index, Occur, Query, Schema, Searcher

from memoranda.errors import IndexUnavailable
from memoranda.filters import EVERYTHING, NOTHING, Filter, fold
from memoranda.indexes.keyword.conditions import Conditions, conjunction, disjunction
from memoranda.indexes.keyword.owned import owner
from memoranda.indexes.keyword.segments import documents, id_tag, stored_row, tenant_tag
from memoranda.storage.attributes import key_prefix
from memoranda.text.analysis import index_terms


class Census:
    """Counts of the documents that are neither deleted in the snapshot nor hidden since.

    Between calls, a tenant's hidden seqs may only grow; each hidden document is read
    once, for its terms. Not thread-safe; the caller locks.
    """

    def __init__(self, schema: Schema, searcher: Searcher) -> None:
        self._schema = schema
        self._searcher = searcher
        self._living: dict[str, int] = {}
        self._frequencies: dict[tuple[str, str], int] = {}
        self._read: dict[str, set[int]] = {}
        self._gone: dict[str, int] = {}
        self._lost: dict[str, Counter[str]] = {}

    def count(self, tenant: str, hidden: Collection[int]) -> int:
        """Return the number of documents of the tenant, without hidden seqs."""
        self._read_hidden(tenant, hidden)
        return self._alive(tenant) - self._gone.get(tenant, 0)

    def frequencies(self, tenant: str, words: Collection[str]) -> dict[str, int]:
        """Return the document frequency of each word in the tenant, with deleted and hidden documents, as in tantivy's
        idf; words that occur in none are left out."""
        first = owner(tenant)
        counts = ((word, self._searcher.doc_freq("text", first + word)) for word in words)
        return {word: count for word, count in counts if count}

    def holding(self, tenant: str, written: Mapping[str, int], hidden: Collection[int]) -> dict[str, int]:
        """Return the frequency of each of these words in live documents; `written` are their frequencies in all."""
        self._read_hidden(tenant, hidden)
        if self._searcher.doc_freq("tag", tenant_tag(tenant)) != self._alive(tenant):
            written = {word: self._undeleted(tenant, word) for word in written}
        lost = self._lost.get(tenant)
        return {word: count - lost[word] for word, count in written.items()} if lost else dict(written)

    def _alive(self, tenant: str) -> int:
        known = self._living.get(tenant)
        if known is None:
            query = Query.term_query(self._schema, "tag", tenant_tag(tenant), "basic")
            known = self._living[tenant] = documents(self._searcher, query)
        return known

    def _undeleted(self, tenant: str, word: str) -> int:
        known = self._frequencies.get((tenant, word))
        if known is None:
            query = Query.term_query(self._schema, "text", owner(tenant) + word, "basic")
            known = self._frequencies[tenant, word] = documents(self._searcher, query)
        return known

    def _read_hidden(self, tenant: str, hidden: Collection[int]) -> None:
        if not hidden:
            return
        read = self._read.setdefault(tenant, set())
        if len(read) == len(hidden):
            return
        fresh = [seq for seq in hidden if seq not in read]
        query = Query.term_set_query(self._schema, "tag", [id_tag((tenant, seq)) for seq in fresh])
        hits: list[Any] = self._searcher.search(query, len(fresh), count=False).hits
        texts = [stored_row(self._searcher.doc(address)).text for _, address in hits]
        read.update(fresh)
        self._gone[tenant] = self._gone.get(tenant, 0) + len(texts)
        lost = self._lost.setdefault(tenant, Counter())
        for text in texts:
            lost.update(set(index_terms(text)))


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
