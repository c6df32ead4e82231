"""The blocking client of a server: the interface that `memoranda.open` returns for a folder, for a URL. It raises the
same exceptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
from typing_extensions import Unpack

from memoranda.app.backfills import Kind, Missing
from memoranda.app.blocking.features import (
    BlockingAgents,
    BlockingBackfills,
    BlockingContexts,
    BlockingFacts,
    BlockingMemories,
    BlockingSessions,
)
from memoranda.app.costs import UsageReport
from memoranda.app.evals.evaluation import DEFAULTS, Evaluation, EvaluationQuestion, SearchConfiguration
from memoranda.app.history_import import (
    Check,
    Find,
    ImportOptions,
    Observe,
    Write,
    forgotten_states,
    importing,
    name_of,
    new_ends,
    run,
    states,
)
from memoranda.app.history_report import HistoryImported, Stored
from memoranda.app.operations import OPERATIONS as BACKFILLS
from memoranda.client.archives import ClientArchives
from memoranda.client.calls import OverHttp
from memoranda.client.conversations import ClientConversations
from memoranda.client.knowledge import ClientKnowledge
from memoranda.client.memories import WRITTEN
from memoranda.client.memory_stores import ClientMemoryStores
from memoranda.client.responses import ClientResponses
from memoranda.client.switches import ClientSwitches
from memoranda.client.wire import Wire, query_of
from memoranda.config.sections import Spending
from memoranda.contexts.operations import OPERATIONS as CONTEXTS
from memoranda.contexts.values import Context, ContextFields, ContextQuery
from memoranda.facts.operations import OPERATIONS as FACTS
from memoranda.memories.operations import OPERATIONS as MEMORIES
from memoranda.responses.agent_operations import OPERATIONS as AGENTS
from memoranda.sessions.operations import OPERATIONS as SESSIONS
from memoranda.types import (
    Job,
)


class Client:
    """A client of the server at `url`, with `key` if it requires one, for `user` if one is named. What it writes is
    marked as an import of the name `importing`, if there is one. Days without a zone are those of `time_zone`, such as
    `Europe/Berlin`, and so is the day of what is sent in UTC. Thread-safe; close it, or use it in a `with`.

    Every method raises StorageError when the server cannot be reached, and otherwise the errors of the library.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        user: str | None = None,
        importing: str | None = None,
        time_zone: str | None = None,
    ) -> None:
        self.url = url
        self._wire = Wire(url, key, user, importing, time_zone)
        self.knowledge = ClientKnowledge(self._wire)
        self.memories = BlockingMemories(OverHttp(self._wire, MEMORIES, WRITTEN))
        self.sessions = BlockingSessions(OverHttp(self._wire, SESSIONS))
        self.contexts = BlockingContexts(OverHttp(self._wire, CONTEXTS))
        self.switches = ClientSwitches(self._wire)
        self.facts = BlockingFacts(OverHttp(self._wire, FACTS))
        self.responses = ClientResponses(self._wire)
        self.conversations = ClientConversations(self._wire)
        self.agents = BlockingAgents(OverHttp(self._wire, AGENTS))
        self.backfills = BlockingBackfills(OverHttp(self._wire, BACKFILLS))
        self.memory_stores = ClientMemoryStores(self._wire)
        self.archives = ClientArchives(self._wire)

    def __getattr__(self, name: str) -> Any:
        """Return a method of `memories`, which are those of a client, too."""
        if name.startswith("_") or name == "memories":
            raise AttributeError(name)
        return getattr(self.memories, name)

    def usage(
        self, *, since: date | None = None, until: date | None = None, tenant: str | None = None
    ) -> UsageReport:
        """See `Costs.usage`."""
        asked = {"since": since, "until": until, "tenant": tenant}
        return msgspec.json.decode(
            self._wire.call("GET", "/v1/usage", query=query_of(asked)), type=UsageReport
        )

    def missing(self) -> Missing:
        """See `Backfills.missing`."""
        return self.backfills.missing()

    def backfill(self, what: Kind, *, everything: bool = False, rows_per_second: float | None = None) -> Job:
        """See `Backfills.start`."""
        return self.backfills.start(what, everything=everything, rows_per_second=rows_per_second)

    def set_spending(self, changes: dict[str, int | None], tenant: str | None = None) -> Spending:
        """See `Costs.set_limits`."""
        query = query_of({"tenant": tenant})
        return msgspec.json.decode(
            self._wire.call("POST", "/v1/admin/spending", body=changes, query=query), type=Spending
        )

    def context(self, query: str | ContextQuery, **fields: Unpack[ContextFields]) -> Context:
        """See `Contexts.context`."""
        return self.contexts.context(query, **fields)

    def evaluate(
        self,
        questions: Sequence[EvaluationQuestion | Mapping[str, Any]],
        configurations: Sequence[SearchConfiguration | Mapping[str, Any]] = (DEFAULTS,),
        *,
        limit: int = 10,
    ) -> Evaluation:
        """See `Memoranda.evaluate`."""
        body = {"questions": questions, "configurations": configurations, "limit": limit}
        return msgspec.json.decode(self._wire.call("POST", "/v1/evaluations", body=body), type=Evaluation)

    def import_history(
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
        """See `Memoranda.import_history`; the source is on this machine, and a dry run only reads it."""
        options = ImportOptions(
            format=format,
            scope=scope,
            user_id=user_id,
            extraction=extraction,
            dry_run=dry_run,
            fields=fields or {},
            include_forgotten=include_forgotten,
        )
        key, user = self._wire.named
        with Client(self.url, key, user=user, importing=name_of(source)) as client:
            return run(importing(source, options, on_progress), client._perform)

    def _perform(self, write: Write) -> Sequence[Stored]:
        if isinstance(write, Check):
            parts = write.write
            return ["read"] * len(parts.messages if isinstance(parts, Observe) else parts.memories)
        if isinstance(write, Observe):
            return states(self.sessions.observe(write.messages, **write.place))
        if isinstance(write, Find):
            return forgotten_states(self.memories.forgotten(write.memories, write.exported_at))
        added = self.memories.add_many(write.memories)
        stored = states(added)
        for place, at in new_ends(write.memories, added).items():
            self.memories.update(added[place].memory.id, invalid_at=at)
            stored[place] = "ended"
        return stored

    def close(self) -> None:
        """Closes the connections. Idempotent."""
        self._wire.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
