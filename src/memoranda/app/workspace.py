"""Every feature of the library for one subject."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, Unpack, cast

from msgspec.structs import replace

from memoranda.app.archive.archives import Archives
from memoranda.app.backfills import Backfills, Kind, Missing
from memoranda.app.costs import Costs, TenantSpending, UsageReport
from memoranda.app.evals.evaluation import (
    DEFAULTS,
    Evaluation,
    EvaluationQuestion,
    Evaluations,
    SearchConfiguration,
)
from memoranda.app.history_import import Import, ImportOptions, importing, name_of
from memoranda.app.history_report import HistoryImported
from memoranda.app.import_trial import Trial
from memoranda.app.import_writes import import_history
from memoranda.contexts.contexts import Contexts
from memoranda.contexts.values import Context, ContextFields, ContextQuery
from memoranda.document_qa.asking import UploadAsk
from memoranda.facts.facts import Facts
from memoranda.knowledge import Knowledge
from memoranda.memories.memories import Memories
from memoranda.memory_stores import MemoryStores
from memoranda.responses.conversations import Conversations
from memoranda.responses.engine import Engine
from memoranda.responses.profiles import Agents
from memoranda.responses.responses import Responses
from memoranda.sessions.sessions import Sessions
from memoranda.sessions.switches import Switches
from memoranda.sessions.values import Around, NewMessage, Observed
from memoranda.store.core import Core
from memoranda.types import Job, Subject, Through

T = TypeVar("T")


class Features(ABC):
    """Every feature of the library for one subject, in this process or at a server; each is created at its first
    use."""

    @abstractmethod
    def feature(self, kind: type[T]) -> T:
        """Return a feature."""

    @cached_property
    def memories(self) -> Memories:
        """The memories."""
        return self.feature(Memories)

    @cached_property
    def knowledge(self) -> Knowledge:
        """Files and vector stores."""
        return self.feature(Knowledge)

    @cached_property
    def sessions(self) -> Sessions:
        """Sessions and their messages."""
        return self.feature(Sessions)

    @cached_property
    def facts(self) -> Facts:
        """Facts and their versions."""
        return self.feature(Facts)

    @cached_property
    def contexts(self) -> Contexts:
        """Prompts from memories and documents."""
        return self.feature(Contexts)

    @cached_property
    def responses(self) -> Responses:
        """Responses."""
        return self.feature(Responses)

    @cached_property
    def conversations(self) -> Conversations:
        """Conversations and their items."""
        return self.feature(Conversations)

    @cached_property
    def agents(self) -> Agents:
        """Agent profiles."""
        return self.feature(Agents)

    @cached_property
    def upload_ask(self) -> UploadAsk:
        """Documents, and questions about them."""
        return self.feature(UploadAsk)

    @cached_property
    def switches(self) -> Switches:
        """Switches of the tenant and of its channels."""
        return self.feature(Switches)

    @cached_property
    def memory_stores(self) -> MemoryStores:
        """Memory stores."""
        return self.feature(MemoryStores)

    @cached_property
    def archives(self) -> Archives:
        """Archives of the tenant."""
        return self.feature(Archives)

    @cached_property
    def costs(self) -> Costs:
        """Spending and its limits."""
        return self.feature(Costs)

    @cached_property
    def backfills(self) -> Backfills:
        """Background work on existing data."""
        return self.feature(Backfills)

    @cached_property
    def evaluations(self) -> Evaluations:
        """Comparisons of ways to search."""
        return self.feature(Evaluations)

    async def observe(
        self,
        messages: str | NewMessage | Mapping[str, Any] | Iterable[NewMessage | Mapping[str, Any] | str],
        **place: Unpack[Around],
    ) -> list[Observed]:
        """Store messages, see `Sessions.observe`."""
        return await self.sessions.observe(messages, **place)

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
        """Compare ways of searching, see `Evaluations.evaluate`."""
        return await self.evaluations.evaluate(questions, configurations, limit=limit)

    async def usage(
        self, *, since: date | None = None, until: date | None = None, tenant: str | None = None
    ) -> UsageReport:
        """Return the spending by day and purpose, see `Costs.usage`."""
        return await self.costs.usage(since=since, until=until, tenant=tenant)

    async def set_spending(self, changes: dict[str, int | None], tenant: str | None = None) -> TenantSpending:
        """Set the daily limits of a tenant, see `Costs.set_limits`."""
        return await self.costs.set_limits(changes, tenant)

    async def missing(self) -> Missing:
        """Return how much backfills would make, see `Backfills.missing`."""
        return await self.backfills.missing()

    async def backfill(
        self, what: Kind, *, everything: bool = False, rows_per_second: float | None = None
    ) -> Job:
        """Start a backfill: `embeddings`, `summaries` or `query_logs`, see `Backfills.start`."""
        return await self.backfills.start(what, everything=everything, rows_per_second=rows_per_second)

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
        stored, and the report is that of the import; at a server, the source is only read. `fields` names fields of a
        database by what they are (`importers.mapping.NAMES`). Of a bundle of this program, what was forgotten after it
        was made is left out, unless `include_forgotten`. `on_progress` is called with the report as it stands, on
        another thread. What is damaged is in the report, and the rest is imported.

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
        return await self.imported(importing(source, options, on_progress), name_of(source))

    @abstractmethod
    async def imported(self, work: Import, name: str) -> HistoryImported:
        """Carry out the import of a source of that name."""


class Workspace(Features):
    """The features for one subject, which is in the configured time zone if it names none. Creating one opens and
    copies nothing."""

    def __init__(self, core: Core, subject: Subject, engine: Engine) -> None:
        zone = core.config.sessions.time_zone
        self.core = core
        self.subject = subject if subject.time_zone is not None else replace(subject, time_zone=zone)
        self.engine = engine

    def feature(self, kind: type[T]) -> T:
        """See `Features.feature`."""
        if kind is Agents:
            return cast(T, self.engine.agents(self.subject))
        made = cast(Callable[[Core | Engine, Subject], T], kind)
        return made(self.engine if kind is Responses else self.core, self.subject)

    async def imported(self, work: Import, name: str) -> HistoryImported:
        """See `Features.imported`."""
        importer = replace(self.subject, through=Through(origin="import", by=(f"import:{name}",)))
        memories, sessions = Memories(self.core, importer), Sessions(self.core, importer)
        check = Trial(self.core, memories, sessions).perform
        return await import_history(work, memories, sessions, check, self.core.threads.run)
