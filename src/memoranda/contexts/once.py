"""An embedder for one question: whoever asks, a text goes to the model once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np

from memoranda.providers.embeddings.base import Embedded, Embedder, Span, Task


class Once(Embedder):
    """The embedder given, with what it was asked before: also what is still on its way, and that it failed. What a text
    cost is told to whoever asked for it first. For a text that ends with `question` the same with `brief` behind it is
    embedded, so that words are searched for without."""

    def __init__(self, inner: Embedder, question: str = "", brief: str = "") -> None:
        self.inner = inner
        self._question, self._brief = question, brief
        self.model, self.dim, self.max_tokens = inner.model, inner.dim, inner.max_tokens
        self.calibration, self.dense_weight, self.remote = inner.calibration, inner.dense_weight, inner.remote
        self._asked: dict[tuple[str, Task], asyncio.Task[Embedded]] = {}

    async def embed(self, texts: Sequence[str], task: Task = "document") -> Embedded:
        if self._brief:
            texts = [text + self._brief if text.endswith(self._question) else text for text in texts]
        new = {text for text in texts if (text, task) not in self._asked}
        made = [await asyncio.shield(self._task(text, task)) for text in texts]
        paid = [one for text, one in zip(texts, made, strict=True) if text in new]
        vectors = np.array([one.vectors[0] for one in made], np.float32).reshape(len(made), self.dim)
        read = sum(1 if one.texts is None else one.texts for one in paid)
        return Embedded(vectors, sum(one.tokens for one in paid), read)

    def _task(self, text: str, task: Task) -> asyncio.Task[Embedded]:
        if (text, task) not in self._asked:
            self._asked[text, task] = asyncio.ensure_future(self.inner.embed([text], task))
        return self._asked[text, task]

    async def end(self) -> None:
        """Lets go of what nobody waits for any more."""
        for task in self._asked.values():
            task.cancel()
        await asyncio.gather(*self._asked.values(), return_exceptions=True)

    def split(self, text: str) -> list[Span]:
        return self.inner.split(text)

    def close(self) -> None:
        """Nothing: the embedder given is another's."""
