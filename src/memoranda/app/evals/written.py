"""A dataset stored in a product of its own, never in the configured database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from memoranda.app.evals.dataset import Dataset
from memoranda.app.evals.run import Progress, Written, write
from memoranda.app.memoranda import Memoranda
from memoranda.config import load
from memoranda.config.sections import Config

MEASURED = (
    "embedder", "search", "limits", "quotas", "model", "responses", "summarization", "sessions", "facts", "spending",
)  # fmt: skip
"""The configured sections that a measurement uses. It never uses those that say where data is stored, or who may read
it."""


def measured(data: str, **settings: Mapping[str, Any]) -> Config:
    """Return a configuration that stores everything in `data`, a folder or `:memory:`, and has the configured sections
    in `MEASURED`. `settings` are sections that go before the configured ones.

    Raises:
        ConfigError: the configuration has a wrong key or value.
    """
    config = load(overrides=settings)
    return Config(data=data, **{name: getattr(config, name) for name in {*MEASURED, *settings}})


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
    async with await Memoranda.open(config=measured(data, embedder=settings)) as product:
        yield product, await write(product.memories, dataset, progress)
