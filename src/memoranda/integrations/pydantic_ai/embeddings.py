"""The product's embedding model for Pydantic AI."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pydantic_ai.embeddings import EmbeddingModel, EmbeddingResult, EmbeddingSettings
from pydantic_ai.embeddings.result import EmbedInputType
from pydantic_ai.exceptions import UserError
from pydantic_ai.usage import RequestUsage

from memoranda.integrations.products import Product, memories_of

BATCH = 256
"""Texts of one request."""
REFUSED = ("dimensions", "truncate")
"""Settings that the product's model cannot follow."""


class MemorandaEmbeddingModel(EmbeddingModel):
    """Embeds with the model that a product is configured with. Vectors have unit length.

    `embed` runs in a worker thread. It raises InvalidInput for a text that is empty or longer than the model's input,
    EmbedderUnavailable if the model does not answer, and UserError for a setting that would be ignored.
    """

    def __init__(self, product: Product, *, settings: EmbeddingSettings | None = None) -> None:
        super().__init__(settings=settings)
        self._memories = memories_of(product)

    @property
    def model_name(self) -> str:
        """`embedder`: the model is the product's."""
        return "embedder"

    @property
    def system(self) -> str:
        """`memoranda`."""
        return "memoranda"

    async def embed(
        self,
        inputs: str | Sequence[str],
        *,
        input_type: EmbedInputType,
        settings: EmbeddingSettings | None = None,
    ) -> EmbeddingResult:
        """One vector per text, in order."""
        texts, merged = self.prepare_embed(inputs, settings)
        for name in REFUSED:
            if merged.get(name):
                raise UserError(f"{name} is not supported: the product's own model embeds, and cuts no text")
        vectors, tokens = await asyncio.to_thread(self._embed, texts, input_type)
        return EmbeddingResult(
            embeddings=vectors,
            inputs=texts,
            input_type=input_type,
            model_name=self.model_name,
            provider_name=self.system,
            usage=RequestUsage(input_tokens=tokens),
        )

    def _embed(self, texts: Sequence[str], input_type: EmbedInputType) -> tuple[list[list[float]], int]:
        vectors: list[list[float]] = []
        tokens = 0
        for start in range(0, len(texts), BATCH):
            embedded = self._memories.embed(texts[start : start + BATCH], input_type)
            vectors += embedded.vectors.tolist()
            tokens += embedded.tokens
        return vectors, tokens
