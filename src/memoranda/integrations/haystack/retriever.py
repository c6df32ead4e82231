"""A component that retrieves documents from a `MemorandaDocumentStore`."""

from __future__ import annotations

from typing import Any

from haystack import component
from haystack.core.serialization import default_from_dict, default_to_dict
from haystack.dataclasses import Document

from memoranda.integrations.haystack.document_store import MemorandaDocumentStore


@component
class MemorandaRetriever:
    """Retrieves the documents that fit a text, by vectors and keywords. `filters` and `top_k` are the defaults of a
    run; each document has the score that orders it, 0..1."""

    def __init__(
        self,
        document_store: MemorandaDocumentStore,
        *,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
    ) -> None:
        self.document_store = document_store
        self.filters = filters
        self.top_k = top_k

    def to_dict(self) -> dict[str, Any]:
        """The component as a part of a saved pipeline; see `MemorandaDocumentStore.to_dict`."""
        saved: dict[str, Any] = default_to_dict(
            self, document_store=self.document_store.to_dict(), filters=self.filters, top_k=self.top_k
        )
        return saved

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> MemorandaRetriever:
        """The component of a saved pipeline."""
        given = data["init_parameters"]
        if isinstance(given["document_store"], dict):
            given["document_store"] = MemorandaDocumentStore.from_dict(given["document_store"])
        retriever: MemorandaRetriever = default_from_dict(cls, data)
        return retriever

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """The best documents for a text, under `documents`."""
        chosen, limit = self._chosen(filters, top_k)
        return {"documents": self.document_store.search(query, chosen, limit)}

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """`run`, awaited."""
        chosen, limit = self._chosen(filters, top_k)
        return {"documents": await self.document_store.search_async(query, chosen, limit)}

    def _chosen(self, filters: dict[str, Any] | None, top_k: int | None) -> tuple[dict[str, Any] | None, int]:
        return self.filters if filters is None else filters, self.top_k if top_k is None else top_k
