"""The front door: one configuration, wired once."""

from __future__ import annotations

import asyncio
import logging
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from recollect.config import Config, load
from recollect.db import Options, open_database
from recollect.drafts import Bounds
from recollect.embedders import open_embedder
from recollect.embedders.base import Embedder
from recollect.folder import FolderLock, drop_other_caches
from recollect.indexes import open_index
from recollect.ingest import Ingest
from recollect.jobs import Jobs
from recollect.memories import Core, Memories
from recollect.recall import Recall, Settings
from recollect.store import Store
from recollect.threads import Threads
from recollect.types import Subject
from recollect.upkeep import Upkeep
from recollect.words import open_words

log = logging.getLogger("recollect")
IN_SERVERS = {"postgresql", "postgres", "pgvector", "tsvector", "qdrant"}
"""Schemes that keep nothing in the data folder."""


class Recollect:
    """Memory and knowledge in one folder, or wherever the configuration says.

    `memories` acts for the admin of tenant `default`; `acting_as` gives the same for another subject.
    """

    def __init__(self, config: Config, core: Core, lock: FolderLock | None, upkeep: Upkeep) -> None:
        self.config = config
        self.core = core
        self.subject = Subject()
        self.memories = Memories(core, self.subject)
        self._lock = lock
        self._upkeep = upkeep
        self._closed = False

    @classmethod
    async def open(
        cls,
        data: str | Path | None = None,
        *,
        config: Config | None = None,
        **settings: Any,
    ) -> Recollect:
        """Opens the data folder `data` (made when it is not there; `:memory:` keeps nothing), for this process
        alone. Without `config`, the configuration is loaded from file and environment; `settings` are sections
        that go before both (`embedder={"url": "hash:256"}`).

        Raises:
            ConfigError: a key or value is wrong.
            FolderInUse: another process has the folder.
            StorageError: the folder cannot be used.
        """
        overrides: dict[str, object] = dict(settings)
        if data is not None:
            overrides["data"] = str(data)
        if config is None:
            config = load(overrides=overrides)
        elif overrides:
            raise TypeError("give either a config or settings, not both")
        threads = Threads()
        try:
            core, lock = await threads.run(_build, config, threads)
        except BaseException:
            threads.close()
            raise
        upkeep = Upkeep(core, asyncio.get_running_loop())
        await core.jobs.start(config.jobs.workers)
        await upkeep.begin()
        return cls(config, core, lock, upkeep)

    def acting_as(self, subject: Subject) -> Memories:
        """The memories as another subject sees them; nothing is copied or opened."""
        return Memories(self.core, subject)

    def announce(self, url: str) -> None:
        """Tells other processes that want this folder where to find its server."""
        if self._lock is not None:
            self._lock.announce(url)

    async def close(self) -> None:
        """Ends background work, finishes writes, saves the indexes, lets go of the folder. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._upkeep.end()
        await self.core.jobs.stop()
        try:
            # A read that a cancelled coroutine no longer waits for still runs: it must end before its connection.
            await asyncio.to_thread(self.core.threads.close)
            await asyncio.to_thread(self.core.store.close)
        finally:
            self.core.embedder.close()
            if self._lock is not None:
                self._lock.release()

    async def __aenter__(self) -> Recollect:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def derived_urls(config: Config) -> tuple[str, str]:
    """The URLs of the vector index and of the words: those of the configuration, or what goes with the rows."""
    beside = config.database.url.startswith("postgres")
    index = config.index.url or ("pgvector:" if beside else "memory:")
    return index, config.words.url or ("tsvector:" if beside else "tantivy:")


def _folder(config: Config) -> Path | None:
    """The data folder; None when nothing is kept in one: everything is in a server, or `data` says so."""
    schemes = {url.partition(":")[0] for url in (config.database.url, *derived_urls(config))}
    if config.data == ":memory:" or schemes <= IN_SERVERS:
        return None
    return Path(config.data).expanduser()


def _options(config: Config) -> Options:
    held = config.database
    return Options(held.pool_size, held.statement_timeout, held.retry_seconds, held.replica_url)


def _build(config: Config, threads: Threads) -> tuple[Core, FolderLock | None]:
    folder = _folder(config)
    lock = None if folder is None else FolderLock(folder)
    try:
        return _wire(config, folder, threads), lock
    except BaseException:
        if lock is not None:
            lock.release()
        raise


def _wire(config: Config, folder: Path | None, threads: Threads) -> Core:
    with ExitStack() as opened:
        asked = config.embedder
        embedder = open_embedder(
            asked.url, threads=asked.threads, cache_size=asked.cache_size, settings=asked
        )
        opened.callback(embedder.close)
        db = open_database(config.database.url, folder, _options(config))
        opened.callback(db.close)
        index_url, words_url = derived_urls(config)
        caches = f"index-{_plain(embedder.model)}", f"words-{_plain(words_url)}"
        if folder is not None:
            drop_other_caches(folder, caches)
        index = open_index(
            index_url, embedder.dim, _cache(folder, caches[0]), space=_plain(embedder.model), database=db
        )
        opened.callback(index.close)
        words = open_words(words_url, _cache(folder, caches[1]), db)
        opened.callback(words.close)
        store = Store(db, index, words, embedder.model)
        store.open()
        opened.pop_all()
    limits = config.limits
    bounds = Bounds(limits.max_content_bytes, limits.max_tags, limits.max_metadata_bytes)
    return Core(
        store=store,
        embedder=embedder,
        ingest=Ingest(store, embedder, threads, bounds),
        recall=Recall(store, embedder.calibration, _settings(config, embedder)),
        jobs=Jobs(
            db, threads, lease_seconds=config.jobs.lease_seconds, max_attempts=config.jobs.max_attempts
        ),
        threads=threads,
        default_limit=config.search.default_limit,
        max_batch=limits.max_batch,
        max_query_chars=limits.max_query_chars,
    )


def _settings(config: Config, embedder: Embedder) -> Settings:
    search = config.search
    dense = embedder.dense_weight if search.dense_weight is None else search.dense_weight
    return Settings(
        limit=search.default_limit,
        threshold=search.default_threshold,
        scope=search.default_scope,
        dense_weight=dense,
        words_weight=max(0.0, 1.0 - dense) if search.words_weight is None else search.words_weight,
        scope_weights=dict(search.scope_weights),
        candidates=search.candidates,
    )


def _cache(folder: Path | None, name: str) -> Path | None:
    return None if folder is None else folder / name


def _plain(name: str) -> str:
    """A name as a folder is called."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name).strip("-")
