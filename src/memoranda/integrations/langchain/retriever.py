"""A LangChain retriever over a product: memories, or files in vector stores."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field, PrivateAttr

from memoranda.integrations.retrieval import Search


class MemorandaRetriever(BaseRetriever):
    """Retrieves memories, or passages of the files in `stores`.

    `product` is a folder or a server, as for every adapter. `search` has further fields of the search:
    `{"scopes": ["user:ana"], "kinds": ["fact"]}` for memories, `{"filters": {...}, "diversity": 0.3}` for passages.
    `score` and `similarity` are in the metadata of each document.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    product: Any
    k: int = Field(default=4, ge=1)
    """How many documents are retrieved, at most."""
    stores: list[str] | None = None
    """The ids of vector stores; memories are searched without them."""
    search: dict[str, Any] = Field(default_factory=dict)
    _source: Search = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Refuses anything that is not a product."""
        super().model_post_init(context)
        self._source = Search(self.product, self.stores, self.search)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        results = self._source.run(query, self.k if k is None else k)
        return [
            Document(id=result.id, page_content=result.text, metadata=result.metadata) for result in results
        ]
