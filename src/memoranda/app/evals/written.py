"""A dataset stored in a product of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from memoranda.app.evals.dataset import Dataset
from memoranda.app.evals.run import Progress, Written, write
from memoranda.app.memoranda import Memoranda


@asynccontextmanager
async def written(
    dataset: Dataset, *, embedder: str | None, data: str, progress: Progress
) -> AsyncIterator[tuple[Memoranda, Written]]:
    """Store the dataset; yield the open product and what was stored.

    `embedder` is a URL, None the configured one. `data` is a folder, or `:memory:`; memories that the folder
    already has are not embedded again.
    """
    settings: dict[str, object] = {"cache_size": max(1_000, len(dataset.questions))}
    if embedder is not None:
        settings["url"] = embedder
    async with await Memoranda.open(data, embedder=settings) as product:
        yield product, await write(product.memories, dataset, progress)
