"""A LlamaIndex retriever over a product: memories, or files in vector stores."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from memoranda.integrations.products import Product
from memoranda.integrations.retrieval import Search


class MemorandaRetriever(BaseRetriever):
    """Retrieves the `similarity_top_k` best memories, or passages of the files in `stores`, ids of vector stores.

    `search` has further fields of the search: `{"scopes": ["user:ana"], "kinds": ["fact"]}` for memories,
    `{"filters": {...}, "diversity": 0.3}` for passages. The fields of a memory or passage are in the node's metadata.
    """

    def __init__(
        self,
        product: Product,
        *,
        similarity_top_k: int = 4,
        stores: list[str] | None = None,
        search: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self._search = Search(product, stores, search or {})
        self._top_k = similarity_top_k

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            NodeWithScore(
                node=TextNode(id_=result.id, text=result.text, metadata=result.metadata), score=result.score
            )
            for result in self._search.run(query_bundle.query_str, self._top_k)
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)
