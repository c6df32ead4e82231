"""The blocking interface of a product for adapters: a folder, a folder in an event loop, or a server."""

from __future__ import annotations

from typing import TypeAlias

from memoranda.app.blocking import BlockingMemoranda, BlockingMemories
from memoranda.app.blocking.calls import InProcess
from memoranda.app.blocking.features import BlockingKnowledge
from memoranda.app.memoranda import Memoranda
from memoranda.client import Client
from memoranda.client.knowledge import ClientKnowledge
from memoranda.concurrency.portal import LoopPortal
from memoranda.errors import InvalidInput
from memoranda.memories.memories import Memories

Product: TypeAlias = BlockingMemoranda | BlockingMemories | Memoranda | Memories | Client
"""The argument of every adapter: `memoranda.open(...)`, `await Memoranda.open(...)`, `Client(url)`, or the memories of
one subject (`as_subject(...).memories`)."""


def memories_of(product: Product) -> BlockingMemories:
    """The blocking memory operations of a product. For a `Memoranda` in an event loop, call them from other threads.

    Raises:
        InvalidInput: it is none of these, or a `Memoranda` outside its event loop.
    """
    if isinstance(product, BlockingMemories):
        return product
    if isinstance(product, BlockingMemoranda | Client):
        return product.memories
    if isinstance(product, Memoranda | Memories):
        memories = product.memories if isinstance(product, Memoranda) else product
        return BlockingMemories(InProcess(memories, _loop()))
    raise InvalidInput(
        "product",
        f"is {type(product).__name__}; use memoranda.open(...), await Memoranda.open(...) or Client(url)",
    )


def knowledge_of(product: Product) -> BlockingKnowledge | ClientKnowledge:
    """The files and vector stores of a product, blocking, as `memories_of`.

    Raises:
        InvalidInput: it has none.
    """
    if isinstance(product, BlockingMemoranda | Client):
        return product.knowledge
    if isinstance(product, Memoranda):
        return BlockingKnowledge(InProcess(product.knowledge, _loop()))
    raise InvalidInput(
        "product",
        f"is {type(product).__name__}, which has no vector stores; use a whole product, or leave `stores` out",
    )


def whole_of(product: Product) -> BlockingMemoranda | Client:
    """A product with its sessions and contexts, blocking, as `memories_of`.

    Raises:
        InvalidInput: it has memories only.
    """
    if isinstance(product, BlockingMemoranda | Client):
        return product
    if isinstance(product, Memoranda):
        return BlockingMemoranda(product, _loop())
    raise InvalidInput("product", f"is {type(product).__name__}, which has no sessions; use a whole product")


def _loop() -> LoopPortal:
    try:
        return LoopPortal()
    except RuntimeError as exc:
        raise InvalidInput(
            "product", "belongs to an event loop; create the adapter in a coroutine, or use memoranda.open"
        ) from exc
