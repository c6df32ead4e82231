"""The entry point of the library: one configuration, wired once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import Any

from msgspec.structs import replace
from typing_extensions import Unpack

from memoranda.app.auto_embedder import AutoEmbedder
from memoranda.app.backfills import Kind, Missing
from memoranda.app.bootstrap import Wired, wire
from memoranda.app.costs import UsageReport
from memoranda.app.evals.evaluation import (
    DEFAULTS,
    Evaluation,
    EvaluationQuestion,
    SearchConfiguration,
    evaluate,
)
from memoranda.app.features import features
from memoranda.app.history_import import (
    Add,
    Check,
    Find,
    ImportOptions,
    Observe,
    advance,
    forgotten_states,
    importing,
    name_of,
    new_ends,
    states,
)
from memoranda.app.history_report import HistoryImported, Stored
from memoranda.app.import_trial import Trial
from memoranda.app.migration import Moves
from memoranda.app.workspace import Workspace
from memoranda.concurrency.threads import Threads
from memoranda.config import load
from memoranda.config.sections import Config
from memoranda.contexts.values import Context, ContextFields, ContextQuery
from memoranda.errors import MemorandaError
from memoranda.memories.memories import Memories
from memoranda.providers.embeddings.base import Embedder
from memoranda.responses.engine import Engine
from memoranda.responses.history import History
from memoranda.responses.profiles import configured_profiles
from memoranda.sessions.sessions import Sessions
from memoranda.sessions.values import Around, NewMessage, Observed
from memoranda.store.core import Core
from memoranda.store.covering import AUTO
from memoranda.store.feature import Feature, install
from memoranda.store.workers import Workers
from memoranda.types import Job, Subject, Through


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

    async def observe(
        self,
        messages: str | NewMessage | Mapping[str, Any] | Iterable[NewMessage | Mapping[str, Any] | str],
        **place: Unpack[Around],
    ) -> list[Observed]:
        """Store messages, see `Sessions.observe`."""
        return await self.sessions.observe(messages, **place)

    async def import_history(
        self,
        source: str | Path,
        *,
        format: str | None = None,
        scope: str | None = None,
        user_id: str | None = None,
        extraction: bool | None = None,
        dry_run: bool = False,
        fields: dict[str, str] | None = None,
        include_forgotten: bool = False,
        on_progress: Callable[[HistoryImported], None] | None = None,
    ) -> HistoryImported:
        """Import data of another system from a file, folder, zip file or database: conversations as sessions,
        memories and notes as memories, each with its original date. Importing it again changes nothing.

        `format` is one of `importers.formats.FORMATS`; without it, the content decides. `scope` (`user:X`, `agent:X`,
        `channel:X`, `global`) and `user_id` apply to all of it instead of what the data says. With `dry_run` nothing is
        stored, and the report is that of the import. `fields` names fields of a database by what they are
        (`importers.mapping.NAMES`). Of a bundle of this program, what was forgotten after it was made is left out,
        unless `include_forgotten`. `on_progress` is called with the report as it stands, on another thread. What is
        damaged is in the report, and the rest is imported.

        Raises:
            InvalidInput: the source cannot be read or shows no known format, or an option is wrong.
        """
        options = ImportOptions(
            format=format,
            scope=scope,
            user_id=user_id,
            extraction=extraction,
            dry_run=dry_run,
            fields=fields or {},
            include_forgotten=include_forgotten,
        )
        work = importing(source, options, on_progress)
        importer = self.as_subject(_importer(self.subject, source))
        memories, sessions = importer.memories, importer.sessions
        trial = Trial(self.core, memories, sessions)
        step = await self.core.threads.run(advance, work, None)
        while not isinstance(step, HistoryImported):
            reply: Sequence[Stored] | MemorandaError
            try:
                reply = await (
                    trial.perform(step.write)
                    if isinstance(step, Check)
                    else _performed(step, memories, sessions)
                )
            except MemorandaError as exc:
                reply = exc
            step = await self.core.threads.run(advance, work, reply)
        return step

    async def usage(
        self, *, since: date | None = None, until: date | None = None, tenant: str | None = None
    ) -> UsageReport:
        """Return the spending by day and purpose, see `Costs.usage`."""
        return await self.costs.usage(since=since, until=until, tenant=tenant)

    async def context(self, query: str | ContextQuery, **fields: Unpack[ContextFields]) -> Context:
        """Return a prompt for a question, see `Contexts.context`."""
        return await self.contexts.context(query, **fields)

    async def evaluate(
        self,
        questions: Sequence[EvaluationQuestion | Mapping[str, Any]],
        configurations: Sequence[SearchConfiguration | Mapping[str, Any]] = (DEFAULTS,),
        *,
        limit: int = 10,
    ) -> Evaluation:
        """Ask every question with every configuration of a search, and compare the results with the memories that
        answer it.

        Args:
            questions: 1..500 questions, each with the ids of its memories: `{"query": ..., "relevant": [...]}`, see
                `EvaluationQuestion`.
            configurations: 1..4 ways of searching, each under a name of its own (`{"mode": "words"}`), see
                `SearchConfiguration`.
            limit: how many results each question asks for, 1..100; at most 50 000 for all. No floor applies, and the
                language model does not help (`hyde`, `model_rerank`).

        Raises:
            InvalidInput: names the field; also if a memory does not exist.
        """
        return await evaluate(self.core, self.subject, questions, configurations, limit)

    async def missing(self) -> Missing:
        """Return how much backfills would make, see `Backfills.missing`."""
        return await self.backfills.missing()

    async def backfill(
        self, what: Kind, *, everything: bool = False, rows_per_second: float | None = None
    ) -> Job:
        """Start a backfill: `embeddings`, `summaries` or `query_logs`, see `Backfills`."""
        return await self.backfills.start(what, everything=everything, rows_per_second=rows_per_second)

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
        await self.core.ledger.close()
        try:
            # A read of a cancelled coroutine may still run: it must end before its connection is closed.
            await asyncio.to_thread(self.core.threads.close)
            await asyncio.to_thread(self.core.blobs.close)
            await asyncio.to_thread(self.core.store.close)
            await asyncio.to_thread(self._moves.close)
        finally:
            for embedder in (self.core.embedder, self.core.next, self.core.earlier):
                if embedder is not None:
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


def _importer(subject: Subject, source: str | Path) -> Subject:
    """Return the subject as it imports data of another system."""
    return replace(subject, through=Through(origin="import", by=(f"import:{name_of(source)}",)))


async def _performed(write: Observe | Add | Find, memories: Memories, sessions: Sessions) -> Sequence[Stored]:
    """Return what became of the parts of a write of an import."""
    if isinstance(write, Observe):
        return states(await sessions.observe(write.messages, **write.place))
    if isinstance(write, Find):
        return forgotten_states(await memories.forgotten(write.memories, write.exported_at))
    added = await memories.add_many(write.memories)
    stored = states(added)
    for place, at in new_ends(write.memories, added).items():
        await memories.update(added[place].memory.id, invalid_at=at)
        stored[place] = "ended"
    return stored
