"""A Haystack document store in a product."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from haystack.core.serialization import default_from_dict, default_to_dict
from haystack.dataclasses import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.utils.filters import document_matches_filter

import memoranda
from memoranda.app.blocking import BlockingMemoranda
from memoranda.client import Client
from memoranda.errors import InvalidInput
from memoranda.integrations.entries import PAGE, Entries, id_of
from memoranda.integrations.haystack import fields
from memoranda.integrations.haystack.documents import SEARCHABLE, document_of, memory_of
from memoranda.integrations.products import Product, memories_of

Filters = dict[str, Any]


class MemorandaDocumentStore:
    """Documents in a folder or on a server of Memoranda, found by vectors and keywords of the product's own model.

    `product` is a product, or the path of a folder or the URL of a server, which the store opens and can be saved with
    a pipeline. `name` keeps several stores in one tenant apart. A document is a memory of kind `item`, which other
    searches of the product see only if they name that kind; embeddings of documents are stored, and not searched.
    Filters are Haystack's, evaluated by its own rules. The async methods run in worker threads.
    """

    def __init__(self, product: Product | str, *, name: str = "haystack") -> None:
        self._place = product if isinstance(product, str) else None
        self._name = name
        self._opened: BlockingMemoranda | Client | None = None
        if isinstance(product, str):
            product = self._opened = _opened(product)
        self._entries = Entries(memories_of(product), name)

    def to_dict(self) -> dict[str, Any]:
        """The store as a part of a saved pipeline.

        Raises:
            InvalidInput: it was made with an open product.
        """
        if self._place is None:
            raise InvalidInput(
                "product", "is open and cannot be saved; give the store a folder's path or a URL"
            )
        saved: dict[str, Any] = default_to_dict(self, product=self._place, name=self._name)
        return saved

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> MemorandaDocumentStore:
        """The store of a saved pipeline."""
        store: MemorandaDocumentStore = default_from_dict(cls, data)
        return store

    def close(self) -> None:
        """Closes the product that the store opened; a product that it was given stays open."""
        if self._opened is not None:
            self._opened.close()

    # --- writing -----------------------------------------------------------------------------------

    def write_documents(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Writes documents; returns how many. `policy` applies to a document whose id exists: `OVERWRITE`
        replaces it, `SKIP` leaves it, `FAIL` and `NONE` refuse, and documents before it are written.

        Raises:
            ValueError: `documents` holds something else.
            DuplicateDocumentError: names the id that exists.
        """
        if not isinstance(documents, Iterable) or isinstance(documents, str):
            raise ValueError("documents must be a list of Documents")
        given = list(documents)
        if not all(isinstance(document, Document) for document in given):
            raise ValueError("documents must be a list of Documents")
        drafts = [memory_of(document, self._id(document.id)) for document in given]
        if policy == DuplicatePolicy.OVERWRITE:
            last = {draft["id"]: draft for draft in drafts}
            if last:
                self._entries.put(list(last.values()), "meta")
            return len(given)
        if policy == DuplicatePolicy.SKIP:
            return sum(self._entries.add(drafts, "meta"))
        for document, draft in zip(given, drafts, strict=True):
            if not all(self._entries.add([draft], "meta")):
                raise DuplicateDocumentError(
                    f"{document.id!r} is there already; use DuplicatePolicy.OVERWRITE or SKIP"
                )
        return len(given)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Deletes documents; ids that are not there are ignored."""
        for id_ in document_ids:
            self._entries.delete(self._id(id_))

    def delete_all_documents(self) -> None:
        """Deletes every document of the store."""
        for memory in list(self._entries.listed()):
            self._entries.delete(memory.id)

    def delete_by_filter(self, filters: Filters) -> int:
        """Deletes the documents that pass; returns how many."""
        documents = self.filter_documents(filters)
        return sum(self._entries.delete(self._id(document.id)) for document in documents)

    def update_by_filter(self, filters: Filters, meta: dict[str, Any]) -> int:
        """Merges `meta` into the meta of the documents that pass; returns how many."""
        documents = self.filter_documents(filters)
        for document in documents:
            document.meta.update(meta)
        drafts = [memory_of(document, self._id(document.id)) for document in documents]
        if drafts:
            self._entries.put(drafts, "meta")
        return len(drafts)

    # --- reading -----------------------------------------------------------------------------------

    def count_documents(self) -> int:
        """How many documents there are."""
        return self._entries.memories.count(**self._entries.selection)

    def filter_documents(self, filters: Filters | None = None) -> list[Document]:
        """The documents that pass, in the order in which they were first written; all without filters.

        Raises:
            FilterError: the filter is wrong.
        """
        if filters:
            document_matches_filter(
                filters, Document(content="")
            )  # also refuses a wrong filter of an empty store
        documents = map(document_of, self._entries.listed(order="asc"))
        return [
            document for document in documents if not filters or document_matches_filter(filters, document)
        ]

    def search(self, query: str, filters: Filters | None = None, top_k: int = 10) -> list[Document]:
        """The `top_k` best documents for a text, with the score that orders them, 0..1. With filters, those among the
        first thousand that pass.

        Raises:
            FilterError: the filter is wrong.
            InvalidInput: `top_k` or the query is wrong.
        """
        limit = PAGE if filters else top_k
        chosen = {**self._entries.selection, "filters": SEARCHABLE, "threshold": 0.0}
        result = self._entries.memories.search(query, limit=limit, **chosen)
        documents = [document_of(hit.memory, hit.score) for hit in result.results]
        return [
            document for document in documents if not filters or document_matches_filter(filters, document)
        ][:top_k]

    def count_documents_by_filter(self, filters: Filters) -> int:
        """How many documents pass."""
        return len(self.filter_documents(filters))

    def count_unique_metadata_by_filter(self, filters: Filters, metadata_fields: list[str]) -> dict[str, int]:
        """How many different values each field has in the documents that pass."""
        documents = self.filter_documents(filters)
        return {fields.key_of(name): len(fields.values(documents, name)) for name in metadata_fields}

    def get_metadata_fields_info(self) -> dict[str, dict[str, str]]:
        """The type of each field of the meta: `boolean`, `int`, `float` or `keyword`."""
        return fields.types(self.filter_documents())

    def get_metadata_field_min_max(self, metadata_field: str) -> dict[str, Any]:
        """`min` and `max` of a field; None where it has no values that can be compared."""
        return fields.least_and_greatest(self.filter_documents(), metadata_field)

    def get_metadata_field_unique_values(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: Filters | None = None,
    ) -> tuple[list[Any], int]:
        """`size` different values of a field, in the order of their text from `from_` on, and how many there are;
        those that contain `search_term`, where it is given, in any case of letters."""
        values = fields.values(self.filter_documents(filters), metadata_field)
        chosen = [value for value in values if not search_term or search_term.lower() in str(value).lower()]
        return chosen[from_ : from_ + size], len(chosen)

    def _id(self, id_: str) -> str:
        return id_of(self._name, id_)

    # --- awaited -----------------------------------------------------------------------------------

    async def count_documents_async(self) -> int:
        """`count_documents`, awaited."""
        return await asyncio.to_thread(self.count_documents)

    async def filter_documents_async(self, filters: Filters | None = None) -> list[Document]:
        """`filter_documents`, awaited."""
        return await asyncio.to_thread(self.filter_documents, filters)

    async def search_async(
        self, query: str, filters: Filters | None = None, top_k: int = 10
    ) -> list[Document]:
        """`search`, awaited."""
        return await asyncio.to_thread(self.search, query, filters, top_k)

    async def write_documents_async(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """`write_documents`, awaited."""
        return await asyncio.to_thread(self.write_documents, documents, policy)

    async def delete_documents_async(self, document_ids: list[str]) -> None:
        """`delete_documents`, awaited."""
        await asyncio.to_thread(self.delete_documents, document_ids)

    async def delete_all_documents_async(self) -> None:
        """`delete_all_documents`, awaited."""
        await asyncio.to_thread(self.delete_all_documents)

    async def delete_by_filter_async(self, filters: Filters) -> int:
        """`delete_by_filter`, awaited."""
        return await asyncio.to_thread(self.delete_by_filter, filters)

    async def update_by_filter_async(self, filters: Filters, meta: dict[str, Any]) -> int:
        """`update_by_filter`, awaited."""
        return await asyncio.to_thread(self.update_by_filter, filters, meta)

    async def count_documents_by_filter_async(self, filters: Filters) -> int:
        """`count_documents_by_filter`, awaited."""
        return await asyncio.to_thread(self.count_documents_by_filter, filters)

    async def count_unique_metadata_by_filter_async(
        self, filters: Filters, metadata_fields: list[str]
    ) -> dict[str, int]:
        """`count_unique_metadata_by_filter`, awaited."""
        return await asyncio.to_thread(self.count_unique_metadata_by_filter, filters, metadata_fields)

    async def get_metadata_fields_info_async(self) -> dict[str, dict[str, str]]:
        """`get_metadata_fields_info`, awaited."""
        return await asyncio.to_thread(self.get_metadata_fields_info)

    async def get_metadata_field_min_max_async(self, metadata_field: str) -> dict[str, Any]:
        """`get_metadata_field_min_max`, awaited."""
        return await asyncio.to_thread(self.get_metadata_field_min_max, metadata_field)

    async def get_metadata_field_unique_values_async(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: Filters | None = None,
    ) -> tuple[list[Any], int]:
        """`get_metadata_field_unique_values`, awaited."""
        return await asyncio.to_thread(
            self.get_metadata_field_unique_values, metadata_field, search_term, from_, size, filters
        )


def _opened(place: str) -> BlockingMemoranda | Client:
    return Client(place) if place.startswith(("http://", "https://")) else memoranda.open(place)
