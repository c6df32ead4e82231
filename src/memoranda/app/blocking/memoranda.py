"""The library for callers without an event loop: the same methods and results, blocking."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from memoranda.app.blocking.workspace import BlockingWorkspace
from memoranda.app.memoranda import Memoranda
from memoranda.concurrency.portal import Portal
from memoranda.config.sections import Config
from memoranda.types import Subject


class BlockingMemoranda(BlockingWorkspace):
    """`memoranda.Memoranda` on an event loop of its own. Thread-safe; close it, or use it in a `with`. What `open`
    returned is closed at the end of the program otherwise."""

    inner: Memoranda
    portal: Portal

    def __init__(self, inner: Memoranda, portal: Portal) -> None:
        super().__init__(inner, portal)
        self.config = inner.config

    def as_subject(self, subject: Subject) -> BlockingWorkspace:
        """Return the features as another subject sees them."""
        return BlockingWorkspace(self.inner.as_subject(subject), self.portal)

    def close(self) -> None:
        """Finish writes, save the indexes, and release the folder. Idempotent."""
        _open.discard(self)
        if self.portal.alive:
            try:
                self.portal.call(self.inner.close())
            finally:
                self.portal.close()

    def __enter__(self) -> BlockingMemoranda:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_open = set[BlockingMemoranda]()


def _close_all() -> None:
    """Close what this process left open; in a fork, what is open belongs to the process that it was forked from."""
    for product in [*_open]:
        if product.portal.in_its_process:
            product.close()


# `atexit` is too late: it runs when the pools of threads, which closing needs, have ended.
threading._register_atexit(_close_all)  # type: ignore[attr-defined]


def open(
    data: str | Path | None = None, *, config: Config | None = None, **settings: Any
) -> BlockingMemoranda:
    """Open a data folder for callers without an event loop; arguments and errors as `Memoranda.open`."""
    portal = Portal()
    try:
        product = BlockingMemoranda(portal.call(Memoranda.open(data, config=config, **settings)), portal)
    except BaseException:
        portal.close()
        raise
    _open.add(product)
    return product
