"""A LangChain vector store in a product."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import uuid4

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from memoranda.errors import InvalidInput
from memoranda.integrations import entries
from memoranda.integrations.entries import Entries
from memoranda.integrations.langchain.embeddings import MemorandaEmbeddings
from memoranda.integrations.products import Product, memories_of
from memoranda.types import Hit, Memory

OWN = "langchain."
"""Begins the metadata keys that are not the document's."""
COMPARED = 400
"""Characters of a document by which max marginal relevance compares it, so that they fit every model's input."""
Filter = dict[str, Any]


class MemorandaVectorStore(VectorStore):
    """Documents in a folder or on a server of Memoranda, embedded by its own model and found by vectors and keywords.

    A document is a memory of kind `item`, which other searches of the product see only if they name that kind; `name`
    keeps several stores in one tenant apart. A document with the id of one that is there replaces it. Filters are the
    product's (`{"lang": "en"}`, `{"type": "gt", "key": "year", "value": 2020}`). The async methods run in worker
    threads.
    """

    def __init__(self, product: Product, *, name: str = "langchain") -> None:
        self._entries = Entries(memories_of(product), name)
        self._embeddings = MemorandaEmbeddings(product)
        self._name = name

    @property
    def embeddings(self) -> MemorandaEmbeddings:
        """The product's model."""
        return self._embeddings

    # --- writing -----------------------------------------------------------------------------------

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Writes texts, and returns their ids; a text without an id gets one.

        Raises:
            InvalidInput: the lists have different lengths, or a text or its metadata is wrong.
        """
        _refuse(kwargs)
        given = list(texts)
        for field, values in (("metadatas", metadatas), ("ids", ids)):
            if values is not None and len(values) != len(given):
                raise InvalidInput(field, f"has {len(values)} entries for {len(given)} texts")
        named = [id_ or str(uuid4()) for id_ in (ids or [None] * len(given))]
        drafts = [
            {
                "id": self._id(id_),
                "content": text,
                "metadata": entries.metadata_of(metadata or {}, {"id": id_}, OWN),
            }
            for id_, text, metadata in zip(named, given, metadatas or [{}] * len(given), strict=True)
        ]
        last = {draft["id"]: draft for draft in drafts}
        if last:
            self._entries.put(list(last.values()), "metadatas")
        return named

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Deletes documents, all of them without `ids`; those that are not there are ignored."""
        _refuse(kwargs)
        memory_ids = [memory.id for memory in self._entries.listed()] if ids is None else map(self._id, ids)
        for id_ in memory_ids:
            self._entries.delete(id_)
        return True

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> MemorandaVectorStore:
        """A store with these texts in the product of `embedding`, a `MemorandaEmbeddings`; `name` as of the class.

        Raises:
            InvalidInput: `embedding` is another one.
        """
        if not isinstance(embedding, MemorandaEmbeddings):
            raise InvalidInput(
                "embedding", "must be MemorandaEmbeddings(product): the product's own model embeds"
            )
        store = cls(embedding.product, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    # --- reading -----------------------------------------------------------------------------------

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents of these ids that exist, in the order of the ids."""
        memories = [self._entries.get(self._id(id_)) for id_ in ids]
        return [_document(memory) for memory in memories if memory is not None]

    def similarity_search(
        self, query: str, k: int = 4, filter: Filter | None = None, **kwargs: Any
    ) -> list[Document]:
        """The `k` best documents for a text."""
        _refuse(kwargs)
        return [_document(hit.memory) for hit in self._hits(query, k, filter)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, filter: Filter | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """The `k` best documents with the score that orders them, 0..1, greater is better."""
        _refuse(kwargs)
        return [(_document(hit.memory), hit.score) for hit in self._hits(query, k, filter)]

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, filter: Filter | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """The `k` best documents with their scores, 0..1, which mean the same across searches."""
        _refuse(kwargs)
        return [(_document(hit.memory), hit.score) for hit in self._hits(query, k, filter)]

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, filter: Filter | None = None, **kwargs: Any
    ) -> list[Document]:
        """The `k` best documents for a vector of the product's model."""
        _refuse(kwargs)
        hits = self._hits("vector", k, filter, mode="dense", embedding=np.array(embedding, np.float32))
        return [_document(hit.memory) for hit in hits]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """`k` of the `fetch_k` best documents, each chosen for its likeness to the text and its difference from those
        chosen before; `lambda_mult` 1 is likeness alone, 0 difference alone."""
        _refuse(kwargs)
        documents = [_document(hit.memory) for hit in self._hits(query, fetch_k, filter)]
        vectors = self._embeddings.embed_documents(
            [document.page_content[:COMPARED] for document in documents]
        )
        asked = np.array(self._embeddings.embed_query(query), np.float32)
        return [documents[i] for i in maximal_marginal_relevance(asked, vectors, lambda_mult, k)]

    def _hits(self, query: str, k: int, filter: Filter | None, **fields: Any) -> list[Hit]:
        chosen = {**self._entries.selection, "threshold": 0.0, **fields}
        return self._entries.memories.search(query, limit=k, filters=filter, **chosen).results

    def _id(self, id_: str) -> str:
        return entries.id_of(self._name, id_)


def _document(memory: Memory) -> Document:
    return Document(
        id=memory.metadata[f"{OWN}id"], page_content=memory.content, metadata=entries.value_of(memory, OWN)
    )


def _refuse(kwargs: dict[str, Any]) -> None:
    """Refuses arguments that would be ignored.

    Raises:
        TypeError: names the first.
    """
    if kwargs:
        raise TypeError(f"{next(iter(kwargs))!r} is no argument here")
