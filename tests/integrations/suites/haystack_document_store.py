"""Haystack's tests of a document store, on a folder."""

from __future__ import annotations

from typing import Any

import pytest
from haystack.dataclasses import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.testing import document_store as blocking
from haystack.testing import document_store_async as awaited

from memoranda.integrations.haystack import MemorandaDocumentStore


class Stores:
    """Gives the tests an empty store."""

    @pytest.fixture
    def document_store(self, folder: Any) -> MemorandaDocumentStore:
        return MemorandaDocumentStore(folder)


class TestStore(
    Stores,
    blocking.CountDocumentsTest,
    blocking.WriteDocumentsTest,
    blocking.DeleteDocumentsTest,
    blocking.FilterDocumentsTest,
    blocking.DeleteAllTest,
    blocking.DeleteByFilterTest,
    blocking.UpdateByFilterTest,
    blocking.CountDocumentsByFilterTest,
    blocking.CountUniqueMetadataByFilterTest,
    blocking.GetMetadataFieldsInfoTest,
    blocking.GetMetadataFieldMinMaxTest,
    blocking.GetMetadataFieldUniqueValuesTest,
):
    """Everything that Haystack tests."""

    def test_write_documents(self, document_store: MemorandaDocumentStore) -> None:  # type: ignore[override]
        """Haystack leaves to each store what it does with a document that is there."""
        document = Document(content="test doc")
        assert document_store.write_documents([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents([document])


class TestAwaitedStore(
    Stores,
    awaited.CountDocumentsAsyncTest,
    awaited.WriteDocumentsAsyncTest,
    awaited.DeleteDocumentsAsyncTest,
    awaited.FilterDocumentsAsyncTest,
    awaited.DeleteAllAsyncTest,
    awaited.DeleteByFilterAsyncTest,
    awaited.UpdateByFilterAsyncTest,
    awaited.CountDocumentsByFilterAsyncTest,
    awaited.CountUniqueMetadataByFilterAsyncTest,
    awaited.GetMetadataFieldsInfoAsyncTest,
    awaited.GetMetadataFieldMinMaxAsyncTest,
    awaited.GetMetadataFieldUniqueValuesAsyncTest,
):
    """Everything that Haystack tests of the async methods."""

    async def test_write_documents_async(self, document_store: MemorandaDocumentStore) -> None:  # type: ignore[override]
        """Haystack leaves to each store what it does with a document that is there."""
        document = Document(content="test doc")
        assert await document_store.write_documents_async([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            await document_store.write_documents_async([document])
