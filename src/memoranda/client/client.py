"""The blocking client of a server: the interface that `memoranda.open` returns for a folder, for a URL. It raises the
same exceptions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import msgspec
import numpy as np
from typing_extensions import Unpack

from memoranda import errors
from memoranda.app.backfills import Missing
from memoranda.app.blocking.features import BlockingFacts
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
from memoranda.client.agents import ClientAgents
from memoranda.client.archives import ClientArchives
from memoranda.client.calls import OverHttp
from memoranda.client.conversations import ClientConversations
from memoranda.client.knowledge import ClientKnowledge
from memoranda.client.memory_stores import ClientMemoryStores
from memoranda.client.responses import ClientResponses
from memoranda.client.sessions import ClientSessions
from memoranda.client.switches import ClientSwitches
from memoranda.client.wire import Wire, query_of
from memoranda.config.sections import Spending
from memoranda.contexts.values import Context, ContextFields, ContextQuery
from memoranda.facts.operations import OPERATIONS as FACTS
from memoranda.memories.export_files import read_lines, write_file
from memoranda.memories.overviews import Facets, NearDuplicatePage, Projection
from memoranda.memories.transfer import Imported
from memoranda.providers.embeddings.base import Embedded, Task
from memoranda.store.operations import segment
from memoranda.types import (
    Added,
    ChangeFields,
    ForgetFields,
    ForgetPreview,
    Job,
    Memory,
    MemoryFields,
    NewMemory,
    Page,
    Query,
    Receipt,
    SearchFields,
    SearchResult,
    SelectionFields,
)
from memoranda.validation import merged

T = TypeVar("T")
AT = "/v1/memories"
PART = 4 << 20
"""Bytes of an import sent in one request."""


class _AddedFlags(msgspec.Struct):
    """The fields of an added memory beside the memory itself."""

    created: bool
    embedded: bool


class _Forgotten(msgspec.Struct):
    forgotten: list[int]


class _Many(msgspec.Struct):
    """A batch's answer, each memory still encoded."""

    data: list[msgspec.Raw]


class _Jobs(msgspec.Struct):
    """A list of jobs."""

    data: list[Job]


class _Vector(msgspec.Struct):
    """One embedding: float32, little-endian, in base64."""

    embedding: bytes


class _Embeddings(msgspec.Struct):
    """The answer to texts."""

    data: list[_Vector]
    usage: dict[str, int]


class _Count(msgspec.Struct):
    """A count's answer."""

    count: int


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
        self.sessions = ClientSessions(self._wire)
        self.switches = ClientSwitches(self._wire)
        self.facts = BlockingFacts(OverHttp(self._wire, FACTS))
        self.responses = ClientResponses(self._wire)
        self.conversations = ClientConversations(self._wire)
        self.agents = ClientAgents(self._wire)
        self.memory_stores = ClientMemoryStores(self._wire)
        self.archives = ClientArchives(self._wire)

    # --- writing -----------------------------------------------------------------------------------

    def add(self, content: str | NewMemory, **fields: Unpack[MemoryFields]) -> Added:
        """See `Memories.add`."""
        body = content if isinstance(content, NewMemory) else merged("content", content, fields)
        return _added(self._wire.call("POST", AT, body=body))

    def add_many(self, memories: Iterable[NewMemory | Mapping[str, Any] | str]) -> list[Added]:
        """See `Memories.add_many`."""
        items = [{"content": item} if isinstance(item, str) else item for item in memories]
        answer = msgspec.json.decode(
            self._wire.call("POST", f"{AT}/batch", body={"memories": items}), type=_Many
        )
        return [_added(bytes(memory)) for memory in answer.data]

    def update(self, id: str, **fields: Unpack[ChangeFields]) -> Memory:
        """See `Memories.update`."""
        return msgspec.json.decode(self._wire.call("PATCH", _path(id), body=fields), type=Memory)

    def delete(self, id: str) -> None:
        """See `Memories.delete`."""
        self._wire.call("DELETE", _path(id))

    def forget(self, ids: Sequence[str] | None = None, **fields: Unpack[ForgetFields]) -> Receipt:
        """See `Memories.forget`."""
        body = {**fields} if ids is None else {**fields, "ids": list(ids)}
        return msgspec.json.decode(self._wire.call("POST", f"{AT}/forget", body=body), type=Receipt)

    def preview_forget(
        self, ids: Sequence[str] | None = None, *, examples: int = 3, **fields: Unpack[ForgetFields]
    ) -> ForgetPreview:
        """See `Memories.preview_forget`."""
        body = {"ids": ids, "examples": examples, **fields}
        answer = self._wire.call("POST", f"{AT}/forget/preview", body=body)
        return msgspec.json.decode(answer, type=ForgetPreview)

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
        return msgspec.json.decode(self._wire.call("GET", "/v1/backfills"), type=Missing)

    def backfill(self, what: str, *, everything: bool = False, rows_per_second: float | None = None) -> Job:
        """See `Backfills.start`."""
        body = {"what": what, "everything": everything, "rows_per_second": rows_per_second}
        return msgspec.json.decode(self._wire.call("POST", "/v1/backfills", body=body), type=Job)

    def set_spending(self, changes: dict[str, int | None], tenant: str | None = None) -> Spending:
        """See `Costs.set_limits`."""
        query = query_of({"tenant": tenant})
        return msgspec.json.decode(
            self._wire.call("POST", "/v1/admin/spending", body=changes, query=query), type=Spending
        )

    # --- reading -----------------------------------------------------------------------------------

    def get(self, id: str) -> Memory:
        """See `Memories.get`."""
        return msgspec.json.decode(self._wire.call("GET", _path(id)), type=Memory)

    def list(
        self,
        *,
        limit: int = 20,
        after: str | None = None,
        before: str | None = None,
        order: str = "desc",
        **fields: Unpack[SelectionFields],
    ) -> Page:
        """See `Memories.list`."""
        asked = {"limit": limit, "after": after, "before": before, "order": order, **fields}
        return msgspec.json.decode(self._wire.call("GET", AT, query=query_of(asked)), type=Page)

    def search(self, query: str | Query, **fields: Unpack[SearchFields]) -> SearchResult:
        """See `Memories.search`."""
        body = query if isinstance(query, Query) else merged("query", query, fields)
        return msgspec.json.decode(self._wire.call("POST", f"{AT}/search", body=body), type=SearchResult)

    def embed(self, texts: Sequence[str], task: Task = "document") -> Embedded:
        """See `Memories.embed`."""
        body = {"input": list(texts), "input_type": task, "encoding_format": "base64"}
        try:
            answer = self._wire.call("POST", "/v1/embeddings", body=body)
        except errors.InvalidInput as exc:
            says = str(exc).removeprefix(f"{exc.field}: ")
            raise type(exc)(exc.field.replace("input", "texts", 1), says) from exc
        decoded = msgspec.json.decode(answer, type=_Embeddings)
        vectors = np.stack([np.frombuffer(vector.embedding, "<f4") for vector in decoded.data])
        return Embedded(vectors, decoded.usage["total_tokens"])

    def context(self, query: str | ContextQuery, **fields: Unpack[ContextFields]) -> Context:
        """See `Contexts.context`."""
        body = query if isinstance(query, ContextQuery) else merged("query", query, fields)
        return msgspec.json.decode(self._wire.call("POST", "/v1/context", body=body), type=Context)

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

    def count(self, **fields: Unpack[SelectionFields]) -> int:
        """See `Memories.count`."""
        return msgspec.json.decode(self._wire.call("POST", f"{AT}/count", body=fields), type=_Count).count

    def count_access(self, ids: Sequence[str]) -> int:
        """See `Memories.count_access`; takes 1,000 ids at most."""
        body = {"ids": list(ids)}
        answer = self._wire.call("POST", f"{AT}/count_access", body=body)
        return msgspec.json.decode(answer, type=_Count).count

    def near_duplicates(
        self, *, limit: int = 100, after: str | None = None, **fields: Unpack[SelectionFields]
    ) -> NearDuplicatePage:
        """See `Memories.near_duplicates`."""
        body = {"limit": limit, "after": after, **fields}
        answer = self._wire.call("POST", f"{AT}/near_duplicates", body=body)
        return msgspec.json.decode(answer, type=NearDuplicatePage)

    def facets(self, *, limit: int = 20, time_zone: str = "UTC", **fields: Unpack[SelectionFields]) -> Facets:
        """See `Memories.facets`."""
        body = {"limit": limit, "time_zone": time_zone, **fields}
        return msgspec.json.decode(self._wire.call("POST", f"{AT}/facets", body=body), type=Facets)

    def projection(self, *, limit: int = 10_000, **fields: Unpack[SelectionFields]) -> Projection:
        """See `Memories.projection`."""
        answer = self._wire.call("POST", f"{AT}/projection", body={"limit": limit, **fields})
        return msgspec.json.decode(answer, type=Projection)

    def stats(self, *, scope: str | None = None) -> dict[str, Any]:
        """See `Memories.stats`."""
        answer = self._wire.call("GET", f"{AT}/stats", query=query_of({"scope": scope}))
        counts: dict[str, Any] = msgspec.json.decode(answer)
        del counts["object"]
        return counts

    # --- export and import -------------------------------------------------------------------------

    def export(self, *, vectors: bool = False, **fields: Unpack[SelectionFields]) -> Iterator[bytes]:
        """See `Memories.export`."""
        rest = b""
        for piece in self._wire.pieces("POST", f"{AT}/export", body={"vectors": vectors, **fields}):
            *lines, rest = (rest + piece).split(b"\n")
            yield from (line + b"\n" for line in lines)

    def export_to(self, path: str | Path, *, vectors: bool = False, **fields: Unpack[SelectionFields]) -> int:
        """See `Memories.export_to`; the file is on this machine."""
        return write_file(Path(path), self.export(vectors=vectors, **fields))

    def import_from(
        self,
        source: str | Path | Iterable[bytes],
        *,
        scope: str | None = None,
        include_forgotten: bool = False,
    ) -> Imported:
        """See `Memories.import_from`; sent in parts, so that no file is too large."""
        query = {} if scope is None else {"scope": scope}
        query |= {"include_forgotten": "true"} if include_forgotten else {}
        total = Imported()
        for shift, part in _parts(read_lines(source)):
            done = self._part(part, query, shift)
            total.read += done.read
            total.created += done.created
            total.present += done.present
            total.conflicts += done.conflicts
            total.forgotten += done.forgotten
        return total

    def _part(self, part: bytes, query: dict[str, str], shift: int) -> Imported:
        """Sends one part of an import; errors name a line by its number in the whole import."""
        try:
            return msgspec.json.decode(
                self._wire.call("POST", f"{AT}/import", raw=part, query=query), type=Imported
            )
        except errors.InvalidInput as exc:
            name, _, number = exc.field.partition(" ")
            if name != "line" or not number.isdecimal():
                raise
            says = str(exc).removeprefix(f"{exc.field}: ")
            raise errors.InvalidInput(f"line {int(number) + shift}", says) from exc

    def forgotten(
        self, memories: Iterable[NewMemory | Mapping[str, Any] | str], exported_at: datetime
    ) -> Sequence[bool]:
        """See `Memories.forgotten`."""
        items = [{"content": item} if isinstance(item, str) else item for item in memories]
        body = {"memories": items, "exported_at": exported_at}
        answer = msgspec.json.decode(self._wire.call("POST", f"{AT}/forgotten", body=body), type=_Forgotten)
        return [place in answer.forgotten for place in range(len(items))]

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
            return forgotten_states(self.forgotten(write.memories, write.exported_at))
        added = self.add_many(write.memories)
        stored = states(added)
        for place, at in new_ends(write.memories, added).items():
            self.update(added[place].memory.id, invalid_at=at)
            stored[place] = "ended"
        return stored

    # --- long work ---------------------------------------------------------------------------------

    def reembed(self, *, everything: bool = False, rows_per_second: float | None = None) -> Job:
        """See `Memories.reembed`."""
        body = {"everything": everything, "rows_per_second": rows_per_second}
        return msgspec.json.decode(self._wire.call("POST", f"{AT}/reembed", body=body), type=Job)

    def move_index(self, to: str) -> Job:
        """See `Memories.move_index`."""
        return msgspec.json.decode(self._wire.call("POST", f"{AT}/move_index", body={"to": to}), type=Job)

    def compact(self) -> Job:
        """See `Memories.compact`."""
        return msgspec.json.decode(self._wire.call("POST", f"{AT}/compact"), type=Job)

    def job(self, id: str) -> Job:
        """See `Memories.job`."""
        return msgspec.json.decode(self._wire.call("GET", f"/v1/jobs/{segment(id)}"), type=Job)

    def wait(
        self, id: str, *, every: float = 0.25, on_change: Callable[[Job], None] = lambda job: None
    ) -> Job:
        """Poll a job `every` so many seconds and return it once it has ended; `on_change` gets each earlier state."""
        while (job := self.job(id)).state in ("queued", "running"):
            on_change(job)
            time.sleep(every)
        return job

    def cancel(self, id: str) -> Job:
        """See `Memories.cancel`."""
        return msgspec.json.decode(self._wire.call("POST", f"/v1/jobs/{segment(id)}/cancel"), type=Job)

    def jobs(self, limit: int = 100) -> Sequence[Job]:
        """See `Memories.jobs`."""
        return msgspec.json.decode(
            self._wire.call("GET", "/v1/jobs", query={"limit": limit}), type=_Jobs
        ).data

    def retry(self, id: str) -> Job:
        """See `Memories.retry`."""
        return msgspec.json.decode(self._wire.call("POST", f"/v1/jobs/{segment(id)}/retry"), type=Job)

    def close(self) -> None:
        """Closes the connections. Idempotent."""
        self._wire.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _added(body: bytes) -> Added:
    flags = msgspec.json.decode(body, type=_AddedFlags)
    memory = msgspec.json.decode(body, type=Memory)
    return Added(memory=memory, created=flags.created, embedded=flags.embedded)


def _path(id: str) -> str:
    return f"{AT}/{segment(id)}"


def _parts(lines: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    """An import in parts of about `PART` bytes. Each begins with the header, if there is one, and comes with the offset
    from a line's number in the part to its number in the whole import."""
    first = next(lines, b"")
    header = [first] if b'"memoranda_export"' in first[:200] else []
    batch, size, sent, shift = [first], len(first), 0, 0
    for line in lines:
        if size + len(line) > PART and len(batch) > len(header):
            yield shift, _joined(batch)
            sent += len(batch) - (len(header) if shift else 0)
            batch, size, shift = [*header], 0, sent - len(header)
        batch.append(line)
        size += len(line)
    yield shift, _joined(batch)


def _joined(lines: Sequence[bytes]) -> bytes:
    return b"\n".join(line.rstrip(b"\n") for line in lines)
