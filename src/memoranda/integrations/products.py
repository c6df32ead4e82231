"""The blocking interface of a product for adapters: a folder, a folder in an event loop, or a server."""

from __future__ import annotations

from typing import TypeAlias

from memoranda.app.blocking import BlockingMemories
from memoranda.app.blocking.features import BlockingKnowledge
from memoranda.app.blocking.workspace import BlockingFeatures
from memoranda.app.workspace import Features
from memoranda.concurrency.portal import LoopPortal
from memoranda.errors import InvalidInput
from memoranda.memories.memories import Memories

Product: TypeAlias = BlockingFeatures | BlockingMemories | Features | Memories
"""The argument of every adapter: `memoranda.open(...)`, `await Memoranda.open(...)`, `Client(url)`, `AsyncClient(url)`,
the features or the memories of one subject (`as_subject(...)`)."""


def memories_of(product: Product) -> BlockingMemories:
    """The blocking memory operations of a product. For one in an event loop, call them from other threads.

    Raises:
        InvalidInput: it is none of these, or one for an event loop outside it.
    """
    if isinstance(product, BlockingMemories):
        return product
    if isinstance(product, Memories):
        return BlockingMemories(product, _loop())
    return _features(product).memories


def knowledge_of(product: Product) -> BlockingKnowledge:
    """The files and vector stores of a product, blocking, as `memories_of`.

    Raises:
        InvalidInput: it has none.
    """
    if isinstance(product, BlockingMemories | Memories):
        raise InvalidInput(
            "product",
            f"is {type(product).__name__}, which has no vector stores; use a whole product, or leave `stores` out",
        )
    return _features(product).knowledge


def whole_of(product: Product) -> BlockingFeatures:
    """A product with its sessions and contexts, blocking, as `memories_of`.

    Raises:
        InvalidInput: it has memories only.
    """
    if isinstance(product, BlockingMemories | Memories):
        raise InvalidInput(
            "product", f"is {type(product).__name__}, which has no sessions; use a whole product"
        )
    return _features(product)


def _features(product: Product) -> BlockingFeatures:
    if isinstance(product, BlockingFeatures):
        return product
    if isinstance(product, Features):
        return BlockingFeatures(product, _loop())
    raise InvalidInput(
        "product",
        f"is {type(product).__name__}; use memoranda.open(...), await Memoranda.open(...) or Client(url)",
    )


def _loop() -> LoopPortal:
    try:
        return LoopPortal()
    except RuntimeError as exc:
        raise InvalidInput(
            "product", "belongs to an event loop; create the adapter in a coroutine, or use memoranda.open"
        ) from exc
