"""Wires the parts of the application from a configuration."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import msgspec

from memoranda.concurrency.threads import Threads
from memoranda.config.agent_sections import Model
from memoranda.config.sections import Config
from memoranda.document_qa.feature import check_dimension
from memoranda.errors import ConfigError
from memoranda.indexes.keyword import open_words
from memoranda.indexes.vector import open_index
from memoranda.indexes.vector.base import Index
from memoranda.providers.chat import open_model
from memoranda.providers.embeddings import open_embedder
from memoranda.providers.embeddings.base import Embedder
from memoranda.providers.embeddings.cache import CachedEmbedder
from memoranda.readers.base import Limits
from memoranda.readers.pool import Readers
from memoranda.storage.blobs import open_blobs
from memoranda.storage.blobs.base import Blobs
from memoranda.storage.data_lock import (
    FolderLock,
    drop_other_caches,
    make_private,
    refuse_emptied_database,
    refuse_lost_database,
)
from memoranda.storage.sql import open_database
from memoranda.storage.sql.base import Database, Options
from memoranda.store.core import Core, Embedders
from memoranda.store.covering import AUTO, DECIDED, ENGLISH, MULTILINGUAL, decision
from memoranda.store.ingest import Ingest
from memoranda.store.jobs import Jobs
from memoranda.store.retrieval.reranking import How
from memoranda.store.retrieval.scoring import PRESETS, load
from memoranda.store.retrieval.search import Recall, Settings
from memoranda.store.store import Store
from memoranda.store.usage import CostTracker
from memoranda.store.validation import Bounds
from memoranda.text.hashing import digest
from memoranda.text.splitting import Chunking

log = logging.getLogger("memoranda")
IN_SERVERS = {"postgresql", "postgres", "pgvector", "tsvector", "qdrant", "database"}
"""Schemes that store nothing in the data folder."""
DATABASE_ID = "database_id"
"""The key of the database id in its metadata."""
EMBEDDER = "embedder"
"""The key of the URL of the embedder that answers, in the metadata."""


class Wired(msgspec.Struct, frozen=True):
    """The parts, the lock on the folder if there is one, and a way to open another index for a model."""

    core: Core
    lock: FolderLock | None
    open_index: Callable[[str, Embedder], Index]
    index_url: str


def rows_url(config: Config) -> str:
    """Return the URL of the rows, read from its file if it is in one.

    Raises:
        ConfigError: the file cannot be read, or holds no URL.
    """
    if config.database.url_file is None:
        return config.database.url
    path = Path(config.database.url_file).expanduser()
    try:
        url = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError("database.url_file", f"{path} cannot be read: {exc}") from exc
    if ":" not in url or "\n" in url:
        raise ConfigError(
            "database.url_file", f"{path} must hold one URL such as postgresql://user:secret@host/name"
        )
    return url


def derived_urls(config: Config) -> tuple[str, str]:
    """Return the URLs of the vector index and of the keyword index: as configured, or the defaults of the database."""
    beside = rows_url(config).startswith("postgres")
    index = config.index.url or ("pgvector:" if beside else "memory:")
    return index, config.words.url or ("tsvector:" if beside else "tantivy:")


def files_url(config: Config) -> str:
    """Return the URL of the blob store of uploaded files: as configured, or the default of the database."""
    beside = rows_url(config).startswith("postgres")
    return config.files.url or ("database:" if beside else "folder:")


def wire(config: Config, threads: Threads, own: Embedder | None = None) -> Wired:
    """Open everything that the configuration names; `own` is an embedder in place of the configured one.

    Raises:
        ConfigError: a URL, a model or an option is wrong.
        FolderInUse: another process has the folder.
        StorageError: rows cannot be read or written.
        IndexUnavailable: an index does not answer.
    """
    folder = folder_of(config)
    lock = None if folder is None else FolderLock(folder)
    try:
        return _wire(config, folder, threads, lock, own)
    except BaseException:
        if lock is not None:
            lock.release()
        raise


def folder_of(config: Config) -> Path | None:
    """Return the data folder; None if nothing is stored in one: everything is in servers, or `data` is `:memory:`."""
    urls = (rows_url(config), *derived_urls(config), files_url(config))
    if config.data == ":memory:" or all(_elsewhere(url) for url in urls):
        return None
    return Path(config.data).expanduser()


def _elsewhere(url: str) -> bool:
    """Return True if a backend stores nothing in the data folder: it is a server, or a folder of its own."""
    scheme, _, rest = url.partition(":")
    return scheme in IN_SERVERS or (scheme == "folder" and bool(rest))


def _wire(
    config: Config, folder: Path | None, threads: Threads, lock: FolderLock | None, own: Embedder | None
) -> Wired:
    url = config.embedder.url if own is None else f"own:{own.model}"
    with ExitStack() as opened:
        if folder is not None:
            make_private(folder)
        asked = _embedder(config, url) if own is None else CachedEmbedder(own, config.embedder.cache_size)
        opened.callback(asked.close)
        check_dimension(config, asked.model, asked.dim)
        database = config.database
        options = Options(
            database.pool_size, database.statement_timeout, database.retry_seconds, database.replica_url
        )
        own_rows = folder if rows_url(config).startswith("sqlite") else None
        if own_rows is not None:
            refuse_lost_database(own_rows)
        db = open_database(rows_url(config), folder, options)
        opened.callback(db.close)
        unused = not db.read(lambda c: c.one("has_rows", []))
        if own_rows is not None and unused and db.read(lambda c: c.one("get_meta", [DATABASE_ID])) is None:
            refuse_emptied_database(own_rows)
        if url == AUTO:
            url = _by_texts(db)
            if url != ENGLISH:
                asked.close()
                asked = _embedder(config, url)
                opened.callback(asked.close)
        elif own is None:
            _forget_decision(db)
        database_id = _database_id(db)  # before an index makes a file: a start that is killed can be repeated
        earlier = _earlier(config, db, asked, url)
        if earlier is not None:
            opened.callback(earlier.close)
        embedder = earlier or asked
        index_url, words_url = derived_urls(config)
        caches = _index_cache(index_url, embedder), f"words-{_plain(words_url)}"
        if folder is not None:
            drop_other_caches(folder, caches)

        def index_of(url: str, embedder: Embedder) -> Index:
            place = None if folder is None else folder / _index_cache(url, embedder)
            return open_index(url, embedder.dim, place, space=_plain(embedder.model), database=db)

        index = index_of(index_url, embedder)
        opened.callback(index.close)
        words = open_words(words_url, None if folder is None else folder / caches[1], db)
        opened.callback(words.close)
        blobs = open_blobs(files_url(config), folder, db)
        opened.callback(blobs.close)
        temporary = folder is None and rows_url(config).startswith("sqlite")
        blobs.claim(database_id, empty=unused, keep=not temporary)
        store = Store(db, index, words, embedder.model)
        store.open()
        if earlier is not None:
            store.prepare(asked.model, asked.dim)
        else:
            _note_embedder(db, url)
        if folder is not None:
            make_private(folder)  # what is new in it
        opened.pop_all()
    return Wired(_core(config, store, embedder, asked, url, threads, blobs), lock, index_of, index_url)


def _embedder(config: Config, url: str) -> Embedder:
    asked = config.embedder
    return open_embedder(url, threads=asked.threads, cache_size=asked.cache_size, settings=asked)


def _by_texts(db: Database) -> str:
    """Return the URL that `auto` stands for: of the model that the texts need, or that has made their vectors."""
    stored, decided = db.read(lambda c: (c.one("get_meta", [EMBEDDER]), decision(c)))
    return MULTILINGUAL if decided == "move" or (stored and stored[0] == MULTILINGUAL) else ENGLISH


def _forget_decision(db: Database) -> None:
    """Forget what `auto` had decided, as another embedder is configured."""
    if db.read(decision) is not None:
        db.write(lambda c: c.run("drop_meta", [DECIDED])).result()


def _earlier(config: Config, db: Database, asked: Embedder, asked_url: str) -> Embedder | None:
    """Return the embedder of the stored vectors, if it is not the configured one and that has vectors still to make:
    searches use it until then. None if there is none, or it cannot be opened any more."""
    url, space = (db.read(lambda c, key=key: c.one("get_meta", [key])) for key in (EMBEDDER, "space"))  # type: ignore[misc]
    if url is None or space is None or url[0] == asked_url:
        return None
    if not db.read(lambda c: c.one("misses_model", [int(space[0]), asked.model])):
        return None
    try:
        earlier = open_embedder(
            url[0], threads=config.embedder.threads, cache_size=config.embedder.cache_size
        )
    except ConfigError as exc:
        log.warning("the vectors of %s answer no more, it cannot be opened: %s", url[0], exc)
        return None
    if earlier.model == asked.model:
        earlier.close()
        return None
    if (config.embedder.url, asked_url) != (AUTO, MULTILINGUAL):  # this move goes on by itself
        log.warning(
            "searches go by %s until reindex has made the vectors of %s, which is configured now",
            earlier.model,
            asked.model,
        )
    return earlier


def _database_id(db: Database) -> str:
    """Return the id of the database, created when it is first opened."""
    if (known := db.read(lambda c: c.one("get_meta", [DATABASE_ID]))) is None:
        db.write(lambda c: c.run("keep_meta", [DATABASE_ID, secrets.token_hex(16)])).result()
        known = db.read(lambda c: c.one("get_meta", [DATABASE_ID]))
    assert known is not None
    return str(known[0])


def _note_embedder(db: Database, url: str) -> None:
    stored = db.read(lambda c: c.one("get_meta", [EMBEDDER]))
    if stored is None or stored[0] != url:
        db.write(lambda c: c.run("set_meta", [EMBEDDER, url])).result()


def _core(
    config: Config,
    store: Store,
    embedder: Embedder,
    asked: Embedder,
    url: str,
    threads: Threads,
    blobs: Blobs,
) -> Core:
    limits = config.limits
    bounds = Bounds(limits.max_content_bytes, limits.max_tags, limits.max_metadata_bytes)
    jobs = Jobs(
        store.db, threads, lease_seconds=config.jobs.lease_seconds, max_attempts=config.jobs.max_attempts
    )

    model = open_model(config.model, lambda: core.embedder)
    costs = CostTracker(store.db, threads, config.spending)
    core = Core(
        store=store,
        embedders=Embedders(embedder, None if embedder is asked else asked, url),
        ingest=Ingest(store, embedder, threads, bounds, costs),
        recall=Recall(store, embedder.calibration, _settings(config, embedder)),
        jobs=jobs,
        threads=threads,
        default_limit=config.search.default_limit,
        max_batch=limits.max_batch,
        max_query_chars=limits.max_query_chars,
        search_settings=partial(_settings, config),
        blobs=blobs,
        readers=_readers(config),
        config=config,
        model=model,
        fallback=None
        if model.quotes_only or not config.model.fallback
        else open_model(Model(), lambda: core.embedder),
        costs=costs,
        quotas=config.quotas,
        chunking=Chunking(
            strategy=config.knowledge.chunking,
            size=config.knowledge.chunk_size,
            overlap=config.knowledge.chunk_overlap,
            header=config.knowledge.contextual_header,
        ),
    )
    return core


def _readers(config: Config) -> Readers:
    settings = config.readers
    limits = Limits(
        seconds=settings.seconds,
        memory_bytes=settings.memory_bytes,
        pages=settings.pages,
        parts=settings.parts,
        unpacked_bytes=settings.unpacked_bytes,
        characters=settings.characters,
        hidden_text=settings.hidden_text,
    )
    return Readers(settings.workers, limits)


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
        how=How(
            rerank=search.rerank,
            recency=search.recency,
            times=search.times,
            styles=PRESETS if search.rerank_weights is None else load(search.rerank_weights),
            half_life_days=search.half_life_days,
        ),
    )


def _index_cache(url: str, embedder: Embedder) -> str:
    """Return the name of an index's folder, made of its URL and model so that indexes do not share files."""
    scheme, _, rest = url.partition(":")
    parts = [] if scheme == "memory" else [scheme]
    return "-".join(("index", *parts, *([digest(rest)[:8]] if rest else []), _plain(embedder.model)))


def _plain(name: str) -> str:
    """Return a name in a form for folders."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name).strip("-")
