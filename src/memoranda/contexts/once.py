"""An embedder for one question: each text goes to the model once, however many searches need it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np

from memoranda.providers.embeddings.base import Embedded, Embedder, Task, WrappedEmbedder


class Once(WrappedEmbedder):
    """Wraps an embedder and caches its answers, also pending and failed ones. The cost of a text is reported to its
    first caller. A text that ends with `question` is embedded with `brief` appended, so that keyword search does not
    see `brief`."""

    def __init__(self, inner: Embedder, question: str = "", brief: str = "") -> None:
        super().__init__(inner)
        self._question, self._brief = question, brief
        self._asked: dict[tuple[str, Task], asyncio.Task[Embedded]] = {}

    async def embed(self, texts: Sequence[str], task: Task = "document") -> Embedded:
        if self._brief:
            texts = [text + self._brief if text.endswith(self._question) else text for text in texts]
        new = {text for text in texts if (text, task) not in self._asked}
        embedded = [await asyncio.shield(self._task(text, task)) for text in texts]
        paid = [answer for text, answer in zip(texts, embedded, strict=True) if text in new]
        vectors = np.array([answer.vectors[0] for answer in embedded], np.float32).reshape(
            len(embedded), self.dim
        )
        read = sum(1 if answer.texts is None else answer.texts for answer in paid)
        of_tokens = [some for answer in embedded for some in answer.token_vectors or ()]
        tokens = sum(answer.tokens for answer in paid)
        return Embedded(vectors, tokens, read, of_tokens if self.token_dim else None)

    def _task(self, text: str, task: Task) -> asyncio.Task[Embedded]:
        if (text, task) not in self._asked:
            self._asked[text, task] = asyncio.ensure_future(self.inner.embed([text], task))
        return self._asked[text, task]

    async def end(self) -> None:
        """Cancel the embeddings that are still pending."""
        for task in self._asked.values():
            task.cancel()
        await asyncio.gather(*self._asked.values(), return_exceptions=True)

    def close(self) -> None:
        """Do nothing: the wrapped embedder has another owner."""
