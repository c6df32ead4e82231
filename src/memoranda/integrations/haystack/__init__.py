"""Haystack: `MemorandaDocumentStore` and `MemorandaRetriever`, a component for pipelines."""

from memoranda.integrations.frameworks import require

require("haystack.document_stores.types", "haystack-ai")

from memoranda.integrations.haystack.document_store import MemorandaDocumentStore  # noqa: E402 - says first what is missing
from memoranda.integrations.haystack.retriever import MemorandaRetriever  # noqa: E402

__all__ = ["MemorandaDocumentStore", "MemorandaRetriever"]
