"""Memories of one subject: add, get, list, update, delete, search, forget, count, compare, export and import."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from typing_extensions import Unpack

from memoranda.clock import moment, now_micros
from memoranda.errors import Forbidden, InvalidInput, NotFound
from memoranda.filters import EVERYTHING, Filter, all_of, matches
from memoranda.indexes.vector import INDEXES
from memoranda.memories import duplicates, facets, projection, transfer
from memoranda.providers.embeddings.base import Embedded, Embedder, Task
from memoranda.store import listing
from memoranda.store.access import scopes_filter, selection_filter, visible_to
from memoranda.store.core import COMPACT_JOB, EMBED_JOB, MOVE_JOB, OPERATOR_TENANT, REMODEL_JOB, Core
from memoranda.store.forgetting import Forgetting, aim_of
from memoranda.store.jobs import RELEASE_JOB
from memoranda.store.retrieval.pending import NONE, Fresh, Waiting
from memoranda.store.retrieval.query_expansion import Aid, channel_of, headed, helped
from memoranda.store.retrieval.search import ModelChanged, check
from memoranda.store.rows import Record, attributes, fetch_ids, to_memory
from memoranda.store.usage import SEARCH, Cost
from memoranda.store.validation import check_texts, check_vector
from memoranda.text.instructions import RULES
from memoranda.text.json import compact_json
from memoranda.types import (
    KINDS,
    MOST_POINTS,
    Added,
    Change,
    ChangeFields,
    Facets,
    Forget,
    ForgetFields,
    Job,
    Memory,
    MemoryFields,
    NearDuplicate,
    NewMemory,
    Page,
    Projection,
    Query,
    Receipt,
    SearchFields,
    SearchResult,
    Selection,
    SelectionFields,
    Subject,
)
from memoranda.validation import convert, merged

MAX_PAGE = 1_000
NAMES_NOTHING: tuple[Any, ...] = (None, [], {}, True, False)
"""Values of a selection field that name no memory: an empty list erases nothing."""


class Memories:
    """The memories of one subject, as far as its role allows. Missing and not visible are deliberately
    indistinguishable."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self._core = core
        self.subject = subject

    # --- writing -----------------------------------------------------------------------------------

    async def add(self, content: str | NewMemory, **fields: Unpack[MemoryFields]) -> Added:
        """Store one text; its kind, scope and other fields go in `fields`.

        Writing the same text again in the same scope changes nothing and returns the existing row. A fact
        (`kind="fact"`) is compared with the facts of its user, or place: it may supersede some of them. If it says
        nearly the same as one, and has no `id` of its own, it becomes a source of that one, which is returned.

        Raises:
            InvalidInput: names the field and the fix.
            Conflict: `id` already names another text.
        """
        if isinstance(content, NewMemory):
            _alone(content, fields)
            new = content
        else:
            new = convert(merged("content", content, fields), NewMemory)
        return (await self._add([new]))[0]

    async def add_many(self, memories: Iterable[NewMemory | Mapping[str, Any] | str]) -> list[Added]:
        """Store a batch, in order; return one result each. Nothing is written if one of them is invalid.

        Raises:
            InvalidInput: names the memory by its place, the field and the fix.
        """
        given = list(memories)
        items = [
            convert(
                {"content": item} if isinstance(item, str) else item,
                NewMemory,
                f"[{i}]" if len(given) > 1 else "",
            )
            for i, item in enumerate(given)
        ]
        return await self._add(items)

    async def _add(self, items: Sequence[NewMemory]) -> list[Added]:
        self._must_write()
        if not items:
            raise InvalidInput("memories", "must hold at least one memory")
        if len(items) > self._core.max_batch:
            raise InvalidInput(
                "memories", f"holds {len(items)}, at most {self._core.max_batch} go in one batch"
            )
        for i, item in enumerate(items):
            place = f"[{i}]." if len(items) > 1 else ""
            self._may_own(item.user_id, f"{place}user_id")
            _no_claim_of_rules(item.metadata, f"{place}metadata")
        core = self._core
        outcomes = await core.write(self.subject.tenant_id, core.ingest.drafts(self.subject, items))
        return [
            Added(memory=to_memory(outcome.row), created=outcome.created, embedded=outcome.embedded)
            for outcome in outcomes
        ]

    async def update(self, id: str, **fields: Unpack[ChangeFields]) -> Memory:
        """Change the named fields of a memory; the rest stays.

        Raises:
            NotFound: no such memory for this subject.
            InvalidInput: names the field and the fix.
            Conflict: another memory of the scope already has the new text.
        """
        self._must_write()
        row = await self._row(id)
        change = convert(fields, Change)
        if change.metadata is not msgspec.UNSET and to_memory(row).metadata.get("extracted_by") != RULES:
            _no_claim_of_rules(change.metadata, "metadata")
        updated = await self._core.ingest.update(self.subject, row, change)
        await self._core.jobs.finish(self.subject.tenant_id, RELEASE_JOB)
        return to_memory(updated)

    async def delete(self, id: str) -> None:
        """Delete one memory with its vectors.

        Raises:
            NotFound: no such memory for this subject.
        """
        self._must_write()
        row = await self._row(id)
        gone, _ = await self._core.transact(self.subject.tenant_id, lambda w: w.remove([row.seq]))
        if not gone:
            raise NotFound(f"no memory {id!r}")

    async def forget(self, ids: Sequence[str] | None = None, **fields: Unpack[ForgetFields]) -> Receipt:
        """Erase for good: memories of `ids`, or all that a selection names, archived and superseded ones too, with
        everything derived from them. A selection by scope, time or `text` alone also covers other data with text there:
        messages, responses, conversations, logged questions, files; see docs/forgetting.md. The text is removed from
        rows, indexes, caches, write-ahead log and free pages; a tombstone with counts stays.

        Raises:
            InvalidInput: neither ids nor a selection is given: forgetting everything must be said (`scopes=["all"]`).
        """
        self._must_write()
        named = [name for name, value in fields.items() if value not in NAMES_NOTHING]
        if ids is None and not named:
            raise InvalidInput(
                "scopes", 'name what to forget: ids, scopes, a text, a source, ...; everything is ["all"]'
            )
        if ids is not None and named:
            raise InvalidInput("ids", f"go alone, without {named[0]}: forget the one, then the other")
        if ids is not None:
            _check_ids(ids)
        core = self._core
        aim = aim_of(self.subject, ids, convert(fields, Forget, beside=("ids",)))
        run = Forgetting(core.store, core.jobs, core.threads, aim, f"gone_{secrets.token_hex(12)}")
        return await run.run(core.erasers)

    # --- reading -----------------------------------------------------------------------------------

    async def get(self, id: str) -> Memory:
        """Return one memory.

        Raises:
            NotFound: no such memory for this subject.
        """
        return to_memory(await self._row(id))

    async def _row(self, id: str) -> Record:
        rows = await self._core.threads.run(self._core.store.by_id, self.subject.tenant_id, [id])
        row = rows.get(id)
        if row is None or not matches(visible_to(self.subject), attributes(row)):
            raise NotFound(f"no memory {id!r}")
        return row

    async def list(
        self,
        *,
        limit: int = 20,
        after: str | None = None,
        before: str | None = None,
        order: str = "desc",
        **fields: Unpack[SelectionFields],
    ) -> Page:
        """Return one page of memories in the order they were stored, newest first unless `order` is `asc`.

        `after` and `before` are ids of memories: the page begins beyond the one, or ends at the other. Memories
        stored meanwhile neither repeat nor hide any.

        Raises:
            InvalidInput: a field is wrong, or the cursor names no memory.
        """
        _check_limit(limit)
        if order not in ("asc", "desc"):
            raise InvalidInput("order", "must be asc or desc")
        if after is not None and before is not None:
            raise InvalidInput("before", "goes without `after`: a page is read in one direction")
        where = self._where(convert(fields, Selection, beside=("limit", "after", "before", "order")))
        return await self._core.threads.run(self._page, where, limit, after, before, order == "desc")

    def _page(
        self, where: Filter, limit: int, after: str | None, before: str | None, descending: bool
    ) -> Page:
        cursor = self._cursor("after", after) if after else self._cursor("before", before) if before else None
        backwards = before is not None
        rows = self._core.store.db.read(
            lambda c: listing.page(
                c,
                self.subject.tenant_id,
                where,
                limit=limit + 1,
                after=cursor,
                descending=descending != backwards,
            ),
            self.subject.tenant_id,
        )
        more = len(rows) > limit
        rows = rows[:limit][::-1] if backwards else rows[:limit]
        return Page(
            data=[to_memory(row) for row in rows],
            first_id=rows[0].id if rows else None,
            last_id=rows[-1].id if rows else None,
            has_more=more,
        )

    def _cursor(self, name: str, id: str) -> int:
        rows = self._core.store.db.read(
            lambda c: fetch_ids(c, self.subject.tenant_id, [id]), self.subject.tenant_id
        )
        row = rows.get(id)
        if row is None or not matches(visible_to(self.subject), attributes(row)):
            raise InvalidInput(name, f"{id!r} is no memory; begin again without a cursor")
        return row.seq

    async def search(self, query: str | Query, **fields: Unpack[SearchFields]) -> SearchResult:
        """Return the best memories for a text, by vector search and keyword search, fused; each hit has both scores.

        Raises:
            InvalidInput: names the field and the fix.
            Forbidden: scope `all` without the admin role.
        """
        if isinstance(query, Query):
            _alone(query, fields)
            asked = query
        else:
            limits = {"limit": self._core.default_limit, **fields}
            asked = convert(merged("query", query, limits), Query)
        check(asked)
        if len(asked.query) > self._core.max_query_chars:
            raise InvalidInput("query", f"is longer than {self._core.max_query_chars} characters")
        try:
            result = await self._recall(asked)
        except ModelChanged:
            result = await self._recall(asked)
        core = self._core
        aid = Aid(core.model, core.embedder, core.ledger, self.subject.tenant_id, core.config.search)
        result = await helped(asked, result, aid, self._recall)
        if asked.count_access and result.results:
            await self.count_access([hit.memory.id for hit in result.results])
        return result

    async def _recall(self, asked: Query) -> SearchResult:
        embedder = self._core.embedder
        (vector, spent), waiting = await asyncio.gather(
            self._query_vector(asked, embedder), self._waiting(asked)
        )
        model = "" if asked.embedding is not None else embedder.model
        fresh = None if vector is None else await self._fresh(waiting)
        recall = self._core.recall
        result = await self._core.threads.run(recall.search, self.subject, asked, vector, model, fresh)
        result.degraded += spent
        return result

    async def _waiting(self, asked: Query) -> Waiting:
        """Return the rows relevant to a vector search that are not embedded yet."""
        recall = self._core.recall
        if asked.mode == "words" or not recall.pending.possible(self.subject.tenant_id):
            return NONE
        return await self._core.threads.run(recall.unembedded, self.subject, asked)

    async def _fresh(self, waiting: Waiting) -> Fresh:
        """Return vectors for rows that are not embedded yet."""
        rows, ingest = waiting.rows, self._core.ingest
        vectors = await ingest.embed_first(self.subject.tenant_id, rows, SEARCH) if rows else {}
        return Fresh(vectors, complete=waiting.complete and len(vectors) == len(rows))

    async def _query_vector(
        self, asked: Query, embedder: Embedder
    ) -> tuple[NDArray[np.float32] | None, Sequence[str]]:
        """Return the query vector and the degraded parts; no vector if none is needed or it cannot be made; see
        `Ledger.questions`."""
        ledger, tenant = self._core.ledger, self.subject.tenant_id
        if asked.mode != "words" and asked.embedding is None:
            enriched = self._core.config.search.enrich if asked.enrich is None else asked.enrich
            said = asked.query
            if enriched:
                said = headed(said, asked.as_of or moment(now_micros()), channel_of(asked))
            vectors, degraded = await ledger.questions(embedder, [said], tenant)
            return (None if vectors is None else vectors[0]), degraded
        ledger.note(tenant, SEARCH, Cost(operations=1))
        return (
            None if asked.mode == "words" else check_vector(asked.embedding, embedder.dim, "embedding")
        ), ()

    async def embed(self, texts: Sequence[str], task: Task = "document") -> Embedded:
        """Return the vectors of texts by the configured model, at the tenant's cost; `task` is `query` for questions.

        Raises:
            InvalidInput: there are none or too many, or one is empty or longer than the model's input.
            EmbedderUnavailable: the model does not answer.
            SpendingLimit: the tenant has reached its daily limit.
        """
        core = self._core
        await core.threads.run(check_texts, texts, core.embedder)
        tenant = self.subject.tenant_id
        return await core.ledger.embed(
            core.embedder, texts, task, tenant=tenant, purpose="embeddings", operations=1
        )

    async def count_access(self, ids: Sequence[str]) -> int:
        """Record that these memories were used: update access_count and last_accessed_at. Return how many there are."""
        _check_ids(ids)
        rows = await self._core.threads.run(self._core.store.by_id, self.subject.tenant_id, list(ids))
        mine = visible_to(self.subject)
        seqs = [row.seq for row in rows.values() if matches(mine, attributes(row))]
        values = [now_micros(), self.subject.tenant_id, compact_json(seqs)]
        counted = self._core.store.db.write(
            lambda c: c.run("count_access", values), tenant=self.subject.tenant_id
        )
        return await self._core.threads.result(counted)

    async def count(self, **fields: Unpack[SelectionFields]) -> int:
        """Return how many memories a selection has. Its `scopes` may name `session`, `channel`, `agent` or `user`
        without an id: memories with any."""
        where = self._where(convert(fields, Selection))
        return await self._core.threads.run(listing.count, self._core.store.db, self.subject.tenant_id, where)

    async def facets(self, *, limit: int = 20, **fields: Unpack[SelectionFields]) -> Facets:
        """Return how many memories of a selection there are by kind, scope, source, tag and month, at most `limit`
        (1..1000) values of each. `scopes` as in `count`.

        Raises:
            InvalidInput: the limit or a field of the selection is wrong.
        """
        _check_limit(limit)
        where = self._where(convert(fields, Selection, beside=("limit",)))
        return await self._core.threads.run(
            facets.facets, self._core.store.db, self.subject.tenant_id, where, limit
        )

    async def near_duplicates(
        self, *, limit: int = 100, **fields: Unpack[SelectionFields]
    ) -> Sequence[NearDuplicate]:
        """Return pairs of memories of one scope that say nearly the same, most similar first; see
        `duplicates.report`."""
        _check_limit(limit)
        where = self._where(convert(fields, Selection, beside=("limit",)))
        return await self._core.threads.run(
            duplicates.report, self._core.store, self.subject.tenant_id, where, limit
        )

    async def projection(self, *, limit: int = 10_000, **fields: Unpack[SelectionFields]) -> Projection:
        """Project memories onto the plane of the first two principal components of their vectors, at most `limit`
        (1..100 000) of them; see `projection.project`.

        Raises:
            InvalidInput: the limit or a field of the selection is wrong.
        """
        _check_limit(limit, MOST_POINTS)
        where = self._where(convert(fields, Selection, beside=("limit",)))
        return await self._core.threads.run(
            projection.project, self._core.store, self.subject.tenant_id, where, limit
        )

    async def stats(self, *, scope: str | None = None) -> dict[str, Any]:
        """Return counts and sizes of the tenant: memories by kind, vectors, pending embeddings, the state of each
        index. With `scope` (`session:X`, `session` for any, ...) only the memories of that scope that are valid now,
        with their characters, by kind.

        Raises:
            InvalidInput: the scope is invalid.
            Forbidden: the subject is not an admin; counts include rows of others.
        """
        self._must_be_admin("stats")
        if scope is not None:
            where = self._where(Selection(scopes=[scope], kinds=list(KINDS)))  # type: ignore[arg-type]
            read = self._core.store.db.read
            kinds = await self._core.threads.run(
                read, lambda c: listing.by_kind(c, self.subject.tenant_id, where), self.subject.tenant_id
            )
            return {
                "scope": scope,
                "memories": sum(number for number, _ in kinds.values()),
                "characters": sum(characters for _, characters in kinds.values()),
                "by_kind": {kind: number for kind, (number, _) in kinds.items()},
            }
        return await self._core.threads.run(self._core.store.stats, self.subject.tenant_id)

    # --- export and import -------------------------------------------------------------------------

    async def export(
        self, *, vectors: bool = False, **fields: Unpack[SelectionFields]
    ) -> AsyncIterator[bytes]:
        """Export the selection as JSONL, yielding a line at a time: a header, then a memory each, oldest first,
        archived and superseded ones too. With `vectors` an import needs no model; nothing else ever shows an embedding.
        Scopes as in `count`."""
        where = self._where(convert(fields, Selection, beside=("vectors",)), all_times=True)
        lines = transfer.lines(self._core.store, self.subject.tenant_id, where, vectors)
        while (line := await self._core.threads.run(next, lines, None)) is not None:
            yield line

    async def export_to(
        self, path: str | Path, *, vectors: bool = False, **fields: Unpack[SelectionFields]
    ) -> int:
        """Write an export to a file, atomically; return the number of memories written. See `export`."""
        where = self._where(convert(fields, Selection, beside=("vectors",)), all_times=True)
        lines = transfer.lines(self._core.store, self.subject.tenant_id, where, vectors)
        return await self._core.threads.run(transfer.write_file, Path(path), lines)

    async def import_from(
        self, source: str | Path | Iterable[bytes], *, scope: str | None = None
    ) -> transfer.Imported:
        """Import an export: a path, or its lines. Existing memories stay as they are, so importing twice changes
        nothing. `scope` (`session:X`, ..., `global`) replaces the scope of all memories; one that is here in another
        scope is copied.

        Raises:
            InvalidInput: names the invalid line; the lines before it are stored.
        """
        self._must_write()
        return await transfer.take(self._core, self.subject, source, scope, self._may_own)

    # --- long work ---------------------------------------------------------------------------------

    async def reembed(self, *, everything: bool = False, rows_per_second: float | None = None) -> Job:
        """Start the job that makes missing vectors with the configured model, or, with `everything`, all of them again.
        It can be cancelled, and resumes where it stopped."""
        self._must_be_admin("reembed")
        if self._core.next is not None:
            return await self._remodel(rows_per_second)
        pending = await self._core.threads.run(
            self._core.store.mark_pending, self.subject.tenant_id, everything
        )
        payload = {"reuse": not everything, "rows_per_second": rows_per_second, "total": pending}
        id_ = await self._core.jobs.enqueue(
            self.subject.tenant_id, EMBED_JOB, payload, dedup_key="embeddings"
        )
        return await self._core.jobs.get(self.subject.tenant_id, id_)

    async def _remodel(self, rows_per_second: float | None) -> Job:
        self._must_be_operator("reembed with another model")
        payload = {"rows_per_second": rows_per_second}
        id_ = await self._core.jobs.enqueue(OPERATOR_TENANT, REMODEL_JOB, payload, dedup_key="remodel")
        return await self._core.jobs.get(OPERATOR_TENANT, id_)

    async def move_index(self, to: str) -> Job:
        """Start the job that fills the vector index of another URL from the stored vectors and then switches to it;
        nothing is embedded, and adds, deletes and searches go on. The configuration is not changed: set `index.url`
        too, or the next start goes back to the old index.

        Raises:
            InvalidInput: the URL's scheme is unknown.
            Forbidden: the subject is not an admin of the operator's tenant.
        """
        self._must_be_operator("move_index")
        if not isinstance(to, str) or to.split(":", 1)[0] not in INDEXES:
            raise InvalidInput("to", f"must be the URL of a vector index: {', '.join(INDEXES)}")
        id_ = await self._core.jobs.enqueue(
            OPERATOR_TENANT, MOVE_JOB, {"to": to, "total": None}, dedup_key="move"
        )
        return await self._core.jobs.get(OPERATOR_TENANT, id_)

    async def compact(self) -> Job:
        """Start the job that frees the space of deleted rows and vectors, on disk and in memory."""
        self._must_be_admin("compact")
        id_ = await self._core.jobs.enqueue(self.subject.tenant_id, COMPACT_JOB, {}, dedup_key="compact")
        return await self._core.jobs.get(self.subject.tenant_id, id_)

    async def job(self, id: str) -> Job:
        """Return the present state of a job of this tenant.

        Raises:
            NotFound: no such job.
        """
        self._must_be_admin("job")
        return await self._core.jobs.get(self.subject.tenant_id, id)

    async def wait(self, id: str) -> Job:
        """Return a job of this tenant once it has ended."""
        self._must_be_admin("job")
        return await self._core.jobs.wait(self.subject.tenant_id, id)

    async def cancel(self, id: str) -> Job:
        """Cancel a job: at once if it waits, between two steps if it runs."""
        self._must_be_admin("job")
        return await self._core.jobs.cancel(self.subject.tenant_id, id)

    # --- permissions -------------------------------------------------------------------------------

    def _where(self, selection: Selection, *, all_times: bool = False) -> Filter:
        unscoped = all_times and selection.scopes is None and self.subject.role == "admin"
        return all_of(
            EVERYTHING if unscoped else scopes_filter(selection.scopes, self.subject, any_id=True),
            selection_filter(selection, self.subject, None if all_times else now_micros()),
        )

    def _must_write(self) -> None:
        if self.subject.role == "reader":
            raise Forbidden("role: a reader writes nothing; use a key with the member role or above")

    def _must_be_admin(self, what: str) -> None:
        if self.subject.role != "admin":
            raise Forbidden(f"{what}: needs the admin role")

    def _must_be_operator(self, what: str) -> None:
        self._must_be_admin(what)
        if self.subject.tenant_id != OPERATOR_TENANT:
            raise Forbidden(f"{what}: concerns every tenant; needs an admin of tenant {OPERATOR_TENANT!r}")

    def _may_own(self, user: Any, where: str) -> None:
        """Refuse rows of other users: a member, or a service that acts for a user, writes that user's rows and rows
        without a user."""
        free = self.subject.role == "admin" or (
            self.subject.role == "service" and self.subject.user_id is None
        )
        if not free and isinstance(user, str) and user != self.subject.user_id:
            raise Forbidden(f"{where}: this key writes as {self.subject.user_id!r} or for nobody (null)")


def _alone(given: NewMemory | Query, fields: Mapping[str, Any]) -> None:
    if fields:
        kind = type(given).__name__
        raise InvalidInput(next(iter(fields)), f"goes inside the {kind} that is given, not beside it")


def _check_limit(limit: Any, most: int = MAX_PAGE) -> None:
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= most:
        raise InvalidInput("limit", f"must be a whole number between 1 and {most}")


def _check_ids(ids: Any) -> None:
    if isinstance(ids, str | bytes) or not all(isinstance(id_, str) for id_ in ids):
        raise InvalidInput("ids", "must be a list of strings")


def _no_claim_of_rules(metadata: Any, where: str) -> None:
    """Refuse metadata that marks a fact of a caller as extracted by rules, as standing instructions are."""
    if isinstance(metadata, dict) and metadata.get("extracted_by") == RULES:
        raise InvalidInput(
            f"{where}.extracted_by", f"is {RULES!r} only where extraction set it; leave it out"
        )
