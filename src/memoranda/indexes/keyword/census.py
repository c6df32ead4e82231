"""The number of live documents of a snapshot, by tenant and term."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from tantivy import Query, Schema, Searcher

from memoranda.indexes.keyword.owned import owner
from memoranda.indexes.keyword.segments import documents, id_tag, stored_row, tenant_tag
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
