"""The product's embedding model for LlamaIndex."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.embeddings import BaseEmbedding
from pydantic import PrivateAttr

from memoranda.app.blocking import BlockingMemories
from memoranda.integrations.products import Product, memories_of


class MemorandaEmbedding(BaseEmbedding):
    """Embeds with the model that a product is configured with. Vectors have unit length.

    Methods raise InvalidInput for a text that is empty or longer than the model's input, and EmbedderUnavailable if the
    model does not answer. The async methods run in worker threads.
    """

    _memories: BlockingMemories = PrivateAttr()

    def __init__(self, product: Product, **settings: Any) -> None:
        super().__init__(model_name="memoranda", **settings)
        self._memories = memories_of(product)

    @classmethod
    def class_name(cls) -> str:
        """The name by which LlamaIndex knows it."""
        return "MemorandaEmbedding"

    def _get_query_embedding(self, query: str) -> list[float]:
        vector: list[float] = self._memories.embed([query], "query").vectors[0].tolist()
        return vector

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._memories.embed(texts).vectors.tolist()
        return vectors

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)
