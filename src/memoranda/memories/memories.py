"""Memories of one subject: add, get, list, update, delete, search, forget, count, compare, export and import."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Unpack

from msgspec import Meta

from memoranda.arguments import ChangeFields, ForgetFields, MemoryFields, SearchFields, SelectionFields
from memoranda.clock import micros, now_micros
from memoranda.concurrency.threads import until_cancelled
from memoranda.errors import DamagedData, Forbidden, InvalidInput, NotFound
from memoranda.filters import EVERYTHING, Compare, Filter, all_of
from memoranda.memories import duplicates, export_files, facets, projection, reindexing, transfer
from memoranda.memories.overviews import MOST_POINTS, Facets, NearDuplicatePage, Projection
from memoranda.memories.pages import read_page
from memoranda.memories.reindexing import IndexUrl
from memoranda.memories.search import search
from memoranda.providers.embeddings.base import Embedded, Task
from memoranda.store import listing
from memoranda.store.access import must_be_admin, must_write, scopes_filter, selection_filter
from memoranda.store.core import Core
from memoranda.store.forget_preview import Preview
from memoranda.store.forgetting import Aim, Erasure, aim_of
from memoranda.store.job_kinds import RELEASE_JOB
from memoranda.store.paging import Paging, check_limit, check_page, leave_place
from memoranda.store.rows import PINNED, Draft, home_of, pinned_row, to_memory
from memoranda.store.transaction import Writing
from memoranda.store.validation import check_texts
from memoranda.text.instructions import is_standing
from memoranda.text.stored import compact_json
from memoranda.types import (
    KINDS,
    MOST_EXAMPLES,
    Added,
    Change,
    Forget,
    ForgetPreview,
    Job,
    Limit,
    Memory,
    NewMemory,
    Order,
    Page,
    Query,
    Rate,
    Receipt,
    SearchResult,
    Selection,
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
        (`kind="fact"`) with the text of one of its user, or place, becomes a source of that one, which is returned. It
        ends the facts that it `replaces`, and no other; see docs/concepts/facts.md.

        Raises:
            InvalidInput: names the field and the fix.
            NotFound: `replaces` names no fact that this subject sees.
            Conflict: `id` already names another text.
        """
        if isinstance(content, NewMemory):
            _alone(content, fields)
            new = content
        else:
            new = convert(merged("content", content, fields), NewMemory)
        return (await self._store(self._drafts([new])))[0]

    async def add_many(self, memories: Iterable[NewMemory | Mapping[str, Any] | str]) -> list[Added]:
        """Store a batch, in order; return one result each. Nothing is written if one of them is invalid, or has the
        id of another one, stored or in the batch, with another text.

        Raises:
            InvalidInput: names the memory by its place, the field and the fix.
            NotFound: `replaces` names no fact that this subject sees.
            Conflict: an `id` names two texts, or already names another text.
        """
        return await self._store(self.prepare(memories))

    def prepare(self, memories: Iterable[NewMemory | Mapping[str, Any] | str]) -> list[Draft]:
        """Return what `add_many` stores, checked. Errors as `add_many`, except those that only the transaction can
        detect."""
        given = list(memories)
        items = [
            convert(
                {"content": item} if isinstance(item, str) else item,
                NewMemory,
                f"[{i}]" if len(given) > 1 else "",
            )
            for i, item in enumerate(given)
        ]
        return self._drafts(items)

    def _drafts(self, items: Sequence[NewMemory]) -> list[Draft]:
        must_write(self.subject)
        if not items:
            raise InvalidInput("memories", "must hold at least one memory")
        if len(items) > self._core.max_batch:
            raise InvalidInput(
                "memories", f"holds {len(items)}, at most {self._core.max_batch} go in one batch"
            )
        for i, item in enumerate(items):
            place = f"[{i}]." if len(items) > 1 else ""
            self._may_own(item.user_id, f"{place}user_id")
        return self._core.ingest.drafts(self.subject, items)

    async def _store(self, drafts: Sequence[Draft]) -> list[Added]:
        await self._check_replaced(drafts)
        outcomes = await self._core.write(self.subject.tenant_id, drafts)
        return [
            Added(memory=to_memory(outcome.row), created=outcome.created, embedded=outcome.embedded)
            for outcome in outcomes
        ]

    async def _check_replaced(self, drafts: Sequence[Draft]) -> None:
        """Check that facts replace facts of their own user or place that the subject sees, and no standing
        instructions: the writer of a fact may be a model that obeys a document."""
        wanted = {id_ for draft in drafts for id_ in draft.replaces}
        rows = await self._core.visible_rows(self.subject, sorted(wanted)) if wanted else {}
        for draft in drafts:
            for id_ in draft.replaces:
                row = rows.get(id_)
                if row is None or row.kind != "fact":
                    raise NotFound(f"replaces: no fact {id_!r}")
                if home_of(row) != home_of(draft.row):
                    raise InvalidInput(
                        "replaces", f"{id_!r} has another user, agent or place; write it there"
                    )
                if is_standing(to_memory(row)):
                    raise InvalidInput("replaces", f"{id_!r} is a standing instruction; delete it")

    async def update(self, id: str, **fields: Unpack[ChangeFields]) -> Memory:
        """Change the named fields of a memory; the rest stays.

        Raises:
            NotFound: no such memory for this subject.
            InvalidInput: names the field and the fix.
            Conflict: another memory of the scope already has the new text.
        """
        must_write(self.subject)
        row = await self._core.visible_row(self.subject, id)
        change = convert(fields, Change)
        updated = await self._core.ingest.update(self.subject, row, change)
        await self._core.jobs.finish(self.subject.tenant_id, RELEASE_JOB)
        return to_memory(updated)

    async def pin(self, id: str) -> Memory:
        """Pin a memory, which then neither decays nor is archived by itself. Return it.

        Raises:
            NotFound: no such memory for this subject.
        """
        return await self._pin(id, True)

    async def unpin(self, id: str) -> Memory:
        """Unpin a memory. Return it. Errors as `pin`."""
        return await self._pin(id, False)

    async def _pin(self, id: str, pin: bool) -> Memory:
        must_write(self.subject)
        seq, tenant = (await self._core.visible_row(self.subject, id)).seq, self.subject.tenant_id
        rows = await self._core.transact(tenant, lambda w: w.mark([seq], lambda row: pinned_row(row, pin)))
        if not rows:
            raise NotFound(f"no memory {id!r}")
        return to_memory(rows[0])

    async def delete(self, id: str) -> None:
        """Delete one memory with its vectors.

        Raises:
            NotFound: no such memory for this subject.
        """
        must_write(self.subject)
        row = await self._core.visible_row(self.subject, id)

        def work(w: Writing) -> tuple[int, int]:
            w.by_request = True
            leave_place(w.c, self.subject, "memories", id, row.seq)
            return w.remove([row.seq])

        gone, _ = await self._core.transact(self.subject.tenant_id, work)
        if not gone:
            raise NotFound(f"no memory {id!r}")

    async def forget(self, ids: Sequence[str] | None = None, **fields: Unpack[ForgetFields]) -> Receipt:
        """Erase for good: memories of `ids`, or all that a selection names, archived and superseded ones too, with
        everything derived from them. A selection by scope, time or `text` alone also covers other data with text there:
        messages, responses, conversations, logged questions, files; see docs/guides/forgetting.md. The text is
        removed from rows, indexes, caches, write-ahead log and free pages; a tombstone with counts stays.

        Raises:
            InvalidInput: neither ids nor a selection is given: forgetting everything must be said (`scopes=["all"]`).
        """
        must_write(self.subject)
        core, aim = self._core, self._aim(ids, fields)
        run = Erasure(core.store, core.jobs, core.threads, aim, f"gone_{secrets.token_hex(12)}")
        return await run.run(core.erasers)

    async def preview_forget(
        self,
        ids: Sequence[str] | None = None,
        *,
        examples: Annotated[int, Meta(ge=1, le=MOST_EXAMPLES)] = 3,
        **fields: Unpack[ForgetFields],
    ) -> ForgetPreview:
        """Return what `forget` would erase with these arguments, with 1..100 memories of each kind as examples. Nothing
        changes.

        Raises:
            InvalidInput: neither ids nor a selection is given, or `examples` is out of range.
        """
        check_limit(examples, MOST_EXAMPLES, "examples")
        core = self._core
        run = Preview(core.store, core.jobs, core.threads, self._aim(ids, fields), examples)
        return await run.run(core.erasers, core.derived)

    def _aim(self, ids: Sequence[str] | None, fields: ForgetFields) -> Aim:
        named = [name for name, value in fields.items() if value not in NAMES_NOTHING]
        if ids is None and not named:
            raise InvalidInput(
                "scopes", 'name what to forget: ids, scopes, a text, a source, ...; everything is ["all"]'
            )
        if ids is not None and named:
            raise InvalidInput("ids", f"go alone, without {named[0]}: forget the one, then the other")
        if ids is not None:
            _check_ids(ids)
        return aim_of(self.subject, ids, convert(fields, Forget, beside=("ids",)))

    # --- reading -----------------------------------------------------------------------------------

    async def get(self, id: str) -> Memory:
        """Return one memory.

        Raises:
            NotFound: no such memory for this subject.
            DamagedData: its text is not what was written.
        """
        row = await self._core.visible_row(self.subject, id)
        if not self._core.store.damage.intact([row]):
            raise DamagedData(f"the text of {id!r} is not what was written; restore a backup, or delete it")
        return to_memory(row)

    async def list(
        self,
        *,
        limit: Limit = 20,
        after: str | None = None,
        before: str | None = None,
        order: Order = "desc",
        pinned: bool | None = None,
        **fields: Unpack[SelectionFields],
    ) -> Page:
        """Return one page of memories in the order they were stored, newest first unless `order` is `asc`; with
        `pinned` those that are pinned, or with False those that are not.

        `after` and `before` are ids of memories: the page begins beyond the one, or ends at the other. Memories
        stored meanwhile neither repeat nor hide any.

        Raises:
            InvalidInput: a field is wrong, or the cursor names no memory.
        """
        check_page(limit, order, MAX_PAGE)
        where = self._where(
            convert(fields, Selection, beside=("limit", "after", "before", "order", "pinned"))
        )
        if pinned is not None:
            where = all_of(where, Compare(PINNED, "eq", pinned or None))
        place = Paging(limit, after, before, order == "desc")
        read, subject = self._core.store.db.read, self.subject
        return await self._core.threads.run(
            read, lambda c: read_page(c, subject, where, place), subject.tenant_id
        )

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
        result = await search(self._core, self.subject, asked)
        if asked.count_access and result.results:
            await self.count_access([hit.memory.id for hit in result.results])
        return result

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
        return await core.costs.embed(
            core.embedder, texts, task, tenant=tenant, purpose="embeddings", operations=1
        )

    async def count_access(self, ids: Annotated[Sequence[str], Meta(max_length=1_000)]) -> int:
        """Record that these memories were used: update access_count and last_accessed_at. Return how many there are."""
        _check_ids(ids)
        seqs = [row.seq for row in (await self._core.visible_rows(self.subject, ids)).values()]
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

    async def facets(
        self, *, limit: Limit = 20, time_zone: str = "UTC", **fields: Unpack[SelectionFields]
    ) -> Facets:
        """Return how many memories of a selection there are by kind, scope, source, tag and month, at most `limit`
        (1..1000) values of each. Months begin as in `time_zone`, such as `Europe/Berlin`. `scopes` as in `count`.

        Raises:
            InvalidInput: the limit, the time zone or a field of the selection is wrong.
        """
        check_limit(limit, MAX_PAGE)
        zone = facets.zone_of(time_zone)
        where = self._where(convert(fields, Selection, beside=("limit", "time_zone")))
        return await self._core.threads.run(
            facets.facets, self._core.store.db, self.subject.tenant_id, where, limit, zone
        )

    async def near_duplicates(
        self, *, limit: Limit = 100, after: str | None = None, **fields: Unpack[SelectionFields]
    ) -> NearDuplicatePage:
        """Return pairs of memories of one scope that say nearly the same, most similar first, at most `limit`. One call
        compares 1 000 memories at most, from the newest on; `after=last_id` goes on. See `duplicates.report`.

        Raises:
            InvalidInput: a field is wrong, or `after` names no memory.
        """
        check_limit(limit, MAX_PAGE)
        where = self._where(convert(fields, Selection, beside=("limit", "after")))
        return await self._core.threads.run(
            duplicates.report, self._core.store, self.subject, where, limit, after
        )

    async def projection(
        self, *, limit: Annotated[int, Meta(ge=1, le=MOST_POINTS)] = 10_000, **fields: Unpack[SelectionFields]
    ) -> Projection:
        """Project memories onto the plane of the first two principal components of their vectors, at most `limit`
        (1..100 000) of them; see `projection.project`.

        Raises:
            InvalidInput: the limit or a field of the selection is wrong.
        """
        check_limit(limit, MOST_POINTS)
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
        must_be_admin(self.subject, "stats")
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
        """Write an export to a file, atomically; return the number of memories written. If it is cancelled, an older
        file stays. See `export`."""
        where = self._where(convert(fields, Selection, beside=("vectors",)), all_times=True)
        lines = transfer.lines(self._core.store, self.subject.tenant_id, where, vectors)
        return await self._core.threads.run_stoppable(
            lambda stopped: export_files.write_file(Path(path), until_cancelled(stopped, lines))
        )

    async def import_from(
        self,
        source: str | Path | Iterable[bytes],
        *,
        scope: str | None = None,
        include_forgotten: bool = False,
    ) -> transfer.Imported:
        """Import an export: a path, or its lines. Existing memories stay as they are, so importing twice changes
        nothing. `scope` (`session:X`, ..., `global`) replaces the scope of all memories; one that is here in another
        scope is copied. What was forgotten after the export was made is left out and reported, unless
        `include_forgotten`.

        Raises:
            InvalidInput: names the invalid line; the lines before it are stored.
        """
        must_write(self.subject)
        return await transfer.take(self._core, self.subject, source, scope, self._may_own, include_forgotten)

    async def forgotten(
        self, memories: Iterable[NewMemory | Mapping[str, Any] | str], exported_at: datetime
    ) -> Sequence[bool]:
        """Return for each memory of an export whether it, or its text in its scope, was forgotten after the export was
        made, and is not stored again. Errors as `add_many`, except those that only the transaction can detect."""
        drafts = self.prepare(memories)
        store, since = self._core.store, micros(exported_at)
        return await self._core.threads.run(store.forgotten, self.subject.tenant_id, drafts, since)

    # --- long work ---------------------------------------------------------------------------------

    async def reembed(self, *, everything: bool = False, rows_per_second: Rate | None = None) -> Job:
        """Start the job that makes missing vectors with the configured model, or, with `everything`, all of them again.
        It can be cancelled, and resumes where it stopped."""
        return await reindexing.reembed(
            self._core, self.subject, everything=everything, rows_per_second=rows_per_second
        )

    async def move_index(self, to: IndexUrl) -> Job:
        """Start the job that fills the vector index of another URL from the stored vectors and then switches to it;
        nothing is embedded, and adds, deletes and searches go on. The configuration is not changed: set `index.url`
        too, or the next start goes back to the old index.

        Raises:
            InvalidInput: the URL's scheme is unknown.
            Forbidden: the subject is not an admin of the operator's tenant.
        """
        return await reindexing.move_index(self._core, self.subject, to)

    async def compact(self) -> Job:
        """Start the job that frees the space of deleted rows and vectors, on disk and in memory."""
        return await reindexing.compact(self._core, self.subject)

    async def job(self, id: str) -> Job:
        """Return the present state of a job of this tenant.

        Raises:
            NotFound: no such job.
        """
        must_be_admin(self.subject, "job")
        return await self._core.jobs.get(self.subject.tenant_id, id)

    async def jobs(self, limit: Limit = 100) -> Sequence[Job]:
        """Return the latest jobs of this tenant, newest first; `limit` is 1..1000. Ended ones are kept for a week.

        Raises:
            InvalidInput: `limit` is out of range.
        """
        must_be_admin(self.subject, "job")
        check_limit(limit, MAX_PAGE)
        return await self._core.jobs.list(self.subject.tenant_id, limit)

    async def wait(self, id: str) -> Job:
        """Return a job of this tenant once it has ended."""
        must_be_admin(self.subject, "job")
        return await self._core.jobs.wait(self.subject.tenant_id, id)

    async def cancel(self, id: str) -> Job:
        """Cancel a job: at once if it waits, between two steps if it runs."""
        must_be_admin(self.subject, "job")
        return await self._core.jobs.cancel(self.subject.tenant_id, id)

    async def retry(self, id: str) -> Job:
        """Queue a failed job again; it goes on from where it stopped.

        Raises:
            NotFound: no such job.
            Conflict: it has not failed, the same work is queued already, or it indexed a file, made a response or moved
                the index: ask for that again.
        """
        must_be_admin(self.subject, "job")
        return await self._core.jobs.retry(self.subject.tenant_id, id)

    # --- permissions -------------------------------------------------------------------------------

    def _where(self, selection: Selection, *, all_times: bool = False) -> Filter:
        unscoped = all_times and selection.scopes is None and self.subject.role == "admin"
        return all_of(
            EVERYTHING if unscoped else scopes_filter(selection.scopes, self.subject, any_id=True),
            selection_filter(selection, self.subject, None if all_times else now_micros()),
        )

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


def _check_ids(ids: Any) -> None:
    if isinstance(ids, str | bytes) or not all(isinstance(id_, str) for id_ in ids):
        raise InvalidInput("ids", "must be a list of strings")
