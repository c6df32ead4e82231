"""The entry point of the library: one configuration, wired once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from memoranda.app.auto_embedder import AutoEmbedder
from memoranda.app.bootstrap import Wired, wire
from memoranda.app.features import features
from memoranda.app.migration import Moves
from memoranda.app.workspace import Workspace
from memoranda.concurrency.threads import Threads
from memoranda.config import load
from memoranda.config.sections import Config
from memoranda.providers.embeddings.base import Embedder
from memoranda.responses.engine import Engine
from memoranda.responses.history import History
from memoranda.responses.profiles import configured_profiles
from memoranda.store.core import Core
from memoranda.store.covering import AUTO
from memoranda.store.feature import Feature, install
from memoranda.store.workers import Workers
from memoranda.types import Subject


class Memoranda(Workspace):
    """Memory and knowledge in one folder, or wherever the configuration says, and agents that use both.

    `memories`, `sessions`, `facts` and the other features act for the admin of tenant `default`; `as_subject` gives the
    same features for another subject.
    """

    def __init__(
        self,
        config: Config,
        wired: Wired,
        moves: Moves,
        engine: Engine,
        auto: AutoEmbedder | None,
        installed: Sequence[Feature],
        workers: Workers,
    ) -> None:
        super().__init__(wired.core, Subject(), engine)
        self.config = config
        self._lock = wired.lock
        self.auto = auto
        self._moves = moves
        self._features = installed
        self._workers = workers
        self._closed = False

    @classmethod
    async def open(
        cls,
        data: str | Path | None = None,
        *,
        config: Config | None = None,
        embedder: Embedder | Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> Memoranda:
        """Open the data folder `data` (created if missing; `:memory:` stores nothing on disk), for this process alone.
        Without `config`, the configuration is loaded from file and environment; `settings` are sections that go before
        both (`limits={"max_batch": 100}`). `embedder` is such a section too (`{"url": "hash:256"}`), or a model of your
        own, which goes before the configured one and is closed with the product.

        Raises:
            ConfigError: a key or value is wrong.
            FolderInUse: another process has the folder.
            StorageError: the folder cannot be used.
        """
        overrides: dict[str, object] = dict(settings)
        own = embedder if isinstance(embedder, Embedder) else None
        if embedder is not None and own is None:
            overrides["embedder"] = embedder
        if data is not None:
            overrides["data"] = str(data)
        if config is None:
            config = load(overrides=overrides)
        elif overrides:
            raise TypeError("give either a config or settings, not both")
        threads = Threads()
        try:
            wired = await threads.run(wire, config, threads, own)
        except BaseException:
            threads.close()
            raise
        core = wired.core
        moves = Moves(core, wired.open_index, wired.index_url)
        engine = _engine(config, core)
        auto = AutoEmbedder(core, moves) if config.embedder.url == AUTO and own is None else None
        installed = features(core, engine, moves, auto)
        install(core, installed)
        at_once = (config.knowledge.files_at_once, config.responses.background_at_once, config.jobs.workers)
        workers = Workers(core.jobs)
        await workers.start(config.jobs.workers, *(at_once if config.jobs.workers else ()))
        for feature in installed:
            await feature.start()
        return cls(config, wired, moves, engine, auto, installed, workers)

    def as_subject(self, subject: Subject) -> Workspace:
        """Return the features as another subject sees them."""
        return Workspace(self.core, subject, self.engine)

    def announce(self, url: str) -> None:
        """Publish the address of the server to other processes that want this folder."""
        if self._lock is not None:
            self._lock.announce(url)

    async def close(self) -> None:
        """End background work, finish writes, save the indexes, and release the folder. Idempotent."""
        if self._closed:
            return
        self._closed = True
        for feature in reversed(self._features):
            await feature.stop()
        await self._workers.stop()
        for feature in reversed(self._features):
            await feature.close()
        await self.core.readers.close()
        await self.core.costs.close()
        try:
            # A read of a cancelled coroutine may still run: it must end before its connection is closed.
            await asyncio.to_thread(self.core.threads.close)
            await asyncio.to_thread(self.core.blobs.close)
            await asyncio.to_thread(self.core.store.close)
            await asyncio.to_thread(self._moves.close)
        finally:
            for embedder in self.core.embedders.opened():
                embedder.close()
            if self._lock is not None:
                self._lock.release()

    async def __aenter__(self) -> Memoranda:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _engine(config: Config, core: Core) -> Engine:
    """Return the engine of responses."""
    history = History(core, config.summarization, core.model, context_tokens=config.model.context_tokens)
    return Engine(core, config, core.model, core.fallback, history, configured_profiles(config))
