"""The product's embedding model for LangChain."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings

from memoranda.integrations.products import Product, memories_of

BATCH = 256
"""Texts of one request."""


class MemorandaEmbeddings(Embeddings):
    """Embeds with the model that a product is configured with. Vectors have unit length.

    Methods raise InvalidInput for a text that is empty or longer than the model's input, and EmbedderUnavailable if the
    model does not answer. The async methods run in worker threads.
    """

    def __init__(self, product: Product) -> None:
        self.product = product
        self._memories = memories_of(product)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text, in order."""
        vectors: list[list[float]] = []
        for start in range(0, len(texts), BATCH):
            vectors += self._memories.embed(texts[start : start + BATCH]).vectors.tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question that is asked of documents."""
        vector: list[float] = self._memories.embed([text], "query").vectors[0].tolist()
        return vector
