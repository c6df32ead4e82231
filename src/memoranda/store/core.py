"""The core that the features share: the open store, the models, the jobs, and the operating tenant."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import msgspec

from memoranda.concurrency.threads import Threads
from memoranda.config.agent_sections import OPERATOR_TENANT
from memoranda.config.data_sections import Quotas
from memoranda.config.sections import Config
from memoranda.errors import Forbidden, NotFound
from memoranda.filters import matches
from memoranda.providers.chat.base import Model
from memoranda.providers.embeddings.base import Embedder
from memoranda.readers.pool import Readers
from memoranda.storage.blobs.base import Blobs
from memoranda.store.access import must_be_admin, visible_to
from memoranda.store.changes import Outcome
from memoranda.store.forget_preview import Derived
from memoranda.store.forgetting import Eraser
from memoranda.store.ingest import Ingest
from memoranda.store.integrity import check_file
from memoranda.store.job_kinds import RELEASE_JOB, DueTimes
from memoranda.store.jobs import Jobs
from memoranda.store.retrieval.search import Recall, Settings
from memoranda.store.rows import Draft, Record, attributes
from memoranda.store.store import Store
from memoranda.store.transaction import Writing, no_two_texts
from memoranda.store.usage import CostTracker
from memoranda.store.validation import check_name
from memoranda.text.splitting import Chunking
from memoranda.types import Subject

T = TypeVar("T")
EMBED_JOB = "memories.embed"
COMPACT_JOB = "store.compact"
MOVE_JOB = "index.move"
BackgroundWork = Literal["responses", "indexes", "embedder", "expiry", "sessions", "facts"]
"""What works in the background beside jobs, in the metrics."""
FEW_ROWS = 50
"""The most rows that are read by id on the event loop."""


def tenant_for(subject: Subject, tenant: str | None, what: str) -> str:
    """Return the tenant that an admin asks about: its own, or, for the operator, any.

    Raises:
        Forbidden: the subject is no admin, or asks about another tenant and is not the operator.
        InvalidInput: `tenant` is no name.
    """
    must_be_admin(subject, what)
    if tenant is None or tenant == subject.tenant_id:
        return subject.tenant_id
    if subject.tenant_id != OPERATOR_TENANT:
        raise Forbidden(f"tenant: only an admin of tenant {OPERATOR_TENANT!r} asks about others")
    check_name(tenant, "tenant")
    return tenant


def must_be_operator(subject: Subject, what: str) -> None:
    """Check that a subject is an admin of the operator's tenant; `what` is named in the error.

    Raises:
        Forbidden: it is not.
    """
    must_be_admin(subject, what)
    if subject.tenant_id != OPERATOR_TENANT:
        raise Forbidden(f"{what}: concerns every tenant; needs an admin of tenant {OPERATOR_TENANT!r}")


class Writer(Protocol):
    """Stores drafts of a kind that writes more than a row."""

    async def write(self, tenant: str, drafts: Sequence[Draft]) -> list[Outcome]:
        """Store drafts, in order."""


class Embedders(msgspec.Struct):
    """The embedders of this process: what changes while it runs. `next` is the configured one, with its URL, while
    searches still use the vectors of `current`, which is `earlier` once they use those of `next`."""

    current: Embedder
    next: Embedder | None = None
    next_url: str = ""
    earlier: Embedder | None = None

    def set_next(self, embedder: Embedder, url: str) -> None:
        """Note the embedder, and its URL, whose vectors are to be made while the present one answers."""
        self.next, self.next_url = embedder, url

    def opened(self) -> list[Embedder]:
        """Return those that are open."""
        return [each for each in (self.current, self.next, self.earlier) if each is not None]


class Core(msgspec.Struct, frozen=True):
    """What the operations share; wired once, for every subject. `fallback` only quotes, and replaces a model that is
    unavailable."""

    store: Store
    embedders: Embedders
    ingest: Ingest
    recall: Recall
    jobs: Jobs
    threads: Threads
    default_limit: int
    max_batch: int
    max_query_chars: int
    search_settings: Callable[[Embedder], Settings]
    """Returns the settings of searches with an embedder."""
    blobs: Blobs
    readers: Readers
    config: Config
    model: Model
    fallback: Model | None
    costs: CostTracker
    quotas: Quotas
    chunking: Chunking
    erasers: list[Eraser] = msgspec.field(default_factory=list)
    """The erasers of the features, in this order. This and the next two are declared by features, see `Feature`."""
    derived: list[Derived] = msgspec.field(default_factory=list)
    """What the features erase with messages and memories, for previews."""
    writers: dict[str, Writer] = msgspec.field(default_factory=dict)
    """The writers of memories, by kind."""
    tally: Counter[str] = msgspec.field(default_factory=Counter)
    """Counts of indexing in this process: files `completed`, `failed` and `skipped`, `chunks`, `reading` seconds."""
    due_times: DueTimes = msgspec.field(default_factory=DueTimes)

    @property
    def embedder(self) -> Embedder:
        """The embedder of texts and queries."""
        return self.embedders.current

    def use(self, embedder: Embedder) -> None:
        """Embed texts and queries with another embedder from here on."""
        embedders = self.embedders
        embedders.earlier, embedders.current, embedders.next = embedders.current, embedder, None
        self.ingest.embedder = embedder
        self.recall.calibration = embedder.calibration
        self.recall.settings = self.search_settings(embedder)

    def note_failure(self, work: BackgroundWork) -> None:
        """Count a failure of background work, of which no caller hears: the metrics show it."""
        self.tally[f"background_failures.{work}"] += 1

    async def visible_row(self, subject: Subject, id: str) -> Record:
        """Return the row of a memory that the subject may see.

        Raises:
            NotFound: there is none. Missing and not visible are deliberately indistinguishable.
        """
        rows = await self.visible_rows(subject, [id])
        if id not in rows:
            raise NotFound(f"no memory {id!r}")
        return rows[id]

    async def visible_rows(self, subject: Subject, ids: Sequence[str]) -> dict[str, Record]:
        """Return the rows of the memories that the subject may see, by id; others are left out."""
        read, tenant = self.store.by_id, subject.tenant_id
        if len(ids) <= FEW_ROWS and not self.store.db.shared:
            rows = read(tenant, ids)
        else:
            rows = await self.threads.run(read, tenant, list(ids))
        mine = visible_to(subject)
        return {id_: row for id_, row in rows.items() if matches(mine, attributes(row))}

    @asynccontextmanager
    async def local_file(self, tenant: str, id: str, sha256: str) -> AsyncIterator[Path]:
        """Give the bytes of a file as a local one, read-only, for the duration of the context.

        Raises:
            NotFound: there are none of this id.
            DamagedData: they do not have this SHA-256 (hex).
        """
        local = self.blobs.local(tenant, id)
        path = await self.threads.run(local.__enter__)
        try:
            await self.threads.run(check_file, self.store.damage, id, sha256, path)
            yield path
        finally:
            await self.threads.run(local.__exit__, None, None, None)

    async def transact(self, tenant: str, work: Callable[[Writing], T]) -> T:
        """Return the result of a transaction, after the release jobs that it queued have ended."""
        result = await self.threads.result(self.store.transact(tenant, work))
        await self.jobs.finish(tenant, RELEASE_JOB)
        return result

    async def write(self, tenant: str, drafts: Sequence[Draft]) -> list[Outcome]:
        """Store drafts: in order those for which a row is enough, then in order those of a kind with a writer, see
        `Writer`. Outcomes are in the order of `drafts`.

        Raises:
            Conflict: an id names two texts, or already names another text; nothing was stored, unless the id was taken
                between two steps.
        """
        no_two_texts(drafts)
        plain = [at for at, draft in enumerate(drafts) if draft.row.kind not in self.writers]
        stored = await self.ingest.write(tenant, [drafts[at] for at in plain])
        outcomes = dict(zip(plain, stored, strict=True))
        for kind, writer in self.writers.items():
            places = [at for at, draft in enumerate(drafts) if draft.row.kind == kind]
            if places:
                stored = await writer.write(tenant, [drafts[at] for at in places])
                outcomes |= zip(places, stored, strict=True)
        return [outcomes[at] for at in range(len(drafts))]
