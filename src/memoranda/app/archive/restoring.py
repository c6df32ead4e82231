"""Restoring an archive into one tenant: existing rows stay as they are, so a restore can be repeated, or resumed after
a kill."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar

import msgspec

from memoranda.app.archive.chunks import ChunkLine, attached_here, chunk_drafts, place_chunks, present_chunks
from memoranda.app.archive.lines import Fields, row_of
from memoranda.app.archive.reading import ArchiveFile
from memoranda.app.archive.rows import (
    ELSEWHERE,
    GONE,
    TAKEN,
    restore_summaries,
    settle_attachments,
    write_rows,
)
from memoranda.app.archive.tables import (
    ATTACHED,
    CHUNKS,
    CONVERSATIONS,
    FILES,
    MEMORIES,
    MESSAGES,
    ROLLUPS,
    SESSIONS,
    STORE_MEMORIES,
    TABLES,
    Table,
)
from memoranda.app.archive.writing import FORMAT
from memoranda.app.history_report import HistoryImported
from memoranda.clock import now_micros
from memoranda.errors import Conflict, InvalidInput, QuotaExceeded
from memoranda.facts.versions import changes_of
from memoranda.importers.formats import ARCHIVE
from memoranda.importers.values import Skipped
from memoranda.knowledge.attaching import INDEX_JOB
from memoranda.knowledge.files import insert
from memoranda.knowledge.quotas import check_file, quotas_of
from memoranda.knowledge.records import FileRow
from memoranda.memories.transfer import (
    ArchivedLine,
    Header,
    archived_draft,
)
from memoranda.sessions.rollups import SOURCE as ROLLED
from memoranda.storage.sql.base import Connection
from memoranda.store.changes import DRAFTS, parted
from memoranda.store.core import Core
from memoranda.store.forgotten import FORGOTTEN, FORGOTTEN_WITH
from memoranda.store.ids import listed
from memoranda.store.rows import Draft
from memoranda.store.validation import keyed
from memoranda.text.instructions import TAG
from memoranda.types import Subject
from memoranda.validation import decode

T = TypeVar("T")
DAMAGED = "is damaged"
MISSING = "has no bytes: it was deleted while the archive was written"
UNCONFIRMED = "is proposed, as a file proves nothing: confirm it for the standing instruction to be in force"
NOT_MOVED = "is not moved to another scope: the weeks of a channel are summarized there again"


class Restoring:
    """One restore. `place` has the ids that replace those of the rows; with `dry_run` nothing is stored. Without
    `include_forgotten` what was forgotten after the archive was written is left out."""

    def __init__(
        self,
        core: Core,
        subject: Subject,
        archive: ArchiveFile,
        place: dict[str, str | None],
        *,
        dry_run: bool,
        include_forgotten: bool = False,
        on_progress: Callable[[HistoryImported], None] | None = None,
    ) -> None:
        self._core = core
        self._subject = subject
        self._tenant = subject.tenant_id
        self._archive = archive
        self._place = place
        self._dry_run = dry_run
        self._on_progress = on_progress
        self._since = None if include_forgotten else archive.created_at
        self._refused: dict[str, dict[str, str]] = {}
        """Why rows were refused, by table and key: rows that belong to them are refused, too."""
        self.report = HistoryImported(format=ARCHIVE, dry_run=dry_run)
        manifest = archive.manifest
        self._header = Header(memoranda_export=FORMAT, model=manifest.model, dim=manifest.dim)

    async def run(self) -> HistoryImported:
        """Check the archive, restore it, and report the result of each row.

        Raises:
            InvalidInput: the archive is damaged; nothing was restored.
        """
        await self._core.threads.run_stoppable(self._archive.check)
        await self._each(SESSIONS, self._other_session, quiet=True)
        for table in TABLES:
            if table is ROLLUPS:
                await self._memories()
            await self._each(table, self._file if table is FILES else partial(self._rows, table))
            if table.name == "store_files":
                await self._chunks()
        if not self._dry_run:
            await self._each(CONVERSATIONS, self._summaries, quiet=True)
            await self._each(ATTACHED, self._settle, quiet=True)
            self._core.due_times.announce(now_micros())
        return self.report

    # --- rows --------------------------------------------------------------------------------------

    async def _each(
        self, table: Table, store: Callable[[list[Fields]], Awaitable[None]], *, quiet: bool = False
    ) -> None:
        """Give `store` the rows of a table, a page at a time; `quiet` leaves damaged lines to another pass."""
        pages = self._archive.pages(table.name)
        while page := await self._core.threads.run(next, pages, None):
            rows = []
            for line in page:
                try:
                    rows.append(row_of(table, line.raw, self._place))
                except InvalidInput as exc:
                    if not quiet:
                        self._damaged(table.what, table.name, line.number, exc)
            if rows:
                await store(rows)
            self._progress()

    async def _other_session(self, rows: list[Fields]) -> None:
        """Find the sessions whose ids name other sessions here, before their messages are restored."""
        done = await self._read(partial(self._written, SESSIONS, rows, dry=True))
        refused = {rows[at]["id"]: reason for at, reason in done.refused.items()}
        self._refused.setdefault(SESSIONS.name, {}).update(refused)

    async def _rows(self, table: Table, rows: list[Fields]) -> None:
        if table is ROLLUPS and self._place:
            for row in rows:
                self._skip(table.what, NOT_MOVED, f"{row['channel_id']}, week {row['week']}")
            return
        some = []
        for row in rows:
            if reason := self._belongs_to_refused(table, row):
                self._refuse(table, row, reason)
            else:
                some.append(row)
        if not some:
            return
        if self._dry_run:
            done = await self._read(partial(self._written, table, some, dry=True))
        else:
            done = await self._write(partial(self._written, table, some, dry=False), INDEX_JOB)
        for at, reason in done.refused.items():
            self._refuse(table, some[at], reason)
        self.report.count(table.what, [True] * len(done.created) + [False] * len(done.present))

    def _written(self, table: Table, rows: list[Fields], c: Connection, *, dry: bool) -> Any:
        return write_rows(
            c, self._core, self._tenant, table, rows, dry=dry, moved=self._place, since=self._since
        )

    def _belongs_to_refused(self, table: Table, row: Fields) -> str | None:
        """Return why a row is refused with what it belongs to; None if it is not."""
        owners = {**table.parents, **table.groups}
        refused = [self._refused.get(owner, {}).get(row[column]) for column, owner in owners.items()]
        if FORGOTTEN in refused:
            return FORGOTTEN if "id" in row else FORGOTTEN_WITH
        return GONE if any(refused) else None

    def _refuse(self, table: Table, row: Fields, reason: str) -> None:
        place = ", ".join(str(row[name]) for name in table.key if name in row)
        self._refused.setdefault(table.name, {})[place] = reason
        failed = reason not in (FORGOTTEN, FORGOTTEN_WITH)
        self._skip(table.what, reason, place or str(row.get("query_id")), failed=failed)

    async def _summaries(self, rows: list[Fields]) -> None:
        refused = self._refused.get(CONVERSATIONS.name, ())
        summarized = [row for row in rows if row["summary"] is not None and row["id"] not in refused]
        if summarized:
            await self._write(lambda c: restore_summaries(c, self._tenant, summarized))

    async def _settle(self, rows: list[Fields]) -> None:
        stores = listed(sorted({row["store_id"] for row in rows}))
        while await self._write(lambda c: settle_attachments(c, self._core, self._tenant, stores), INDEX_JOB):
            pass

    # --- files -------------------------------------------------------------------------------------

    async def _file(self, rows: list[Fields]) -> None:
        done = await self._read(partial(self._written, FILES, rows, dry=True))
        for at, reason in done.refused.items():
            self._refuse(FILES, rows[at], reason)
        created = [False] * len(done.present)
        for at in done.created:
            created += await self._new_file(rows[at])
        self.report.count(FILES.what, created)

    async def _new_file(self, fields: Fields) -> list[bool]:
        if fields["id"] in self._archive.manifest.missing:
            self._refuse(FILES, fields, MISSING)
            return []
        if self._dry_run:
            return [True]
        row = FileRow(tenant_id=self._tenant, seq=0, **fields)
        try:
            await self._core.threads.run(self._copy, row)
            quotas = await self._read(lambda c: quotas_of(c, self._tenant, self._core.quotas))
            await self._write(lambda c: insert(c, row, quotas))
        except (QuotaExceeded, InvalidInput) as exc:
            await self._core.threads.run(self._core.blobs.delete, self._tenant, row.id)
            self._refuse(FILES, fields, str(exc))
            return []
        return [True]

    def _copy(self, row: FileRow) -> None:
        """Store the bytes of a file. Bytes that a killed attempt left are deleted first: no row refers to them.

        Raises:
            InvalidInput: they are not those of the row.
            QuotaExceeded: it is larger than a file may be.
        """
        quotas = self._core.store.db.read(
            lambda c: quotas_of(c, self._tenant, self._core.quotas), self._tenant
        )
        check_file(row.bytes, quotas)
        self._core.blobs.delete(self._tenant, row.id)
        writer, digest = self._core.blobs.writer(self._tenant, row.id), sha256()
        try:
            for piece in self._archive.file(row.id, row.bytes):
                digest.update(piece)
                writer.write(piece)
            if (writer.size, digest.hexdigest()) != (row.bytes, row.sha256):
                raise InvalidInput("sha256", "is not that of the bytes")
            writer.commit()
        except BaseException:
            writer.abort()
            raise

    # --- what is searched --------------------------------------------------------------------------

    async def _memories(self) -> None:
        decoder = msgspec.json.Decoder(ArchivedLine)
        pages = self._archive.pages(MEMORIES)
        while page := await self._core.threads.run(next, pages, None):
            drafts = []
            for line in page:
                try:
                    draft = archived_draft(
                        line.raw, decoder, self._header, self._core.ingest, self._subject, self._place or None
                    )
                except InvalidInput as exc:
                    self._damaged("memory", MEMORIES, line.number, exc)
                    continue
                refused = self._refused.get(MESSAGES.name, {}) if draft.row.kind == "message" else {}
                if reason := refused.get(draft.row.id):
                    self._skip_part(draft.row.id, reason)
                    continue
                if self._place and (draft.row.kind, draft.row.source) == ("rollup", ROLLED):
                    self._skip("memory", NOT_MOVED, draft.row.id)
                    continue
                drafts.append(draft)
            drafts = await self._in_stores(drafts)
            if drafts:
                await self._memories_of(drafts)
            self._progress()

    async def _in_stores(self, drafts: Sequence[Draft]) -> list[Draft]:
        """Return the drafts without those of memories that are not in their memory store here; in another scope, the
        others stay in the channel of their store."""
        ids = [draft.row.id for draft in drafts]
        rows = await self._read(lambda c: c.all("stored_among", [self._tenant, listed(ids)]))
        stored = {id_: (path, store, user) for id_, path, store, user in rows}
        left = []
        for draft in drafts:
            id_ = draft.row.id
            path, store, user = stored.get(id_, ("", "", None))
            reason = self._refused.get(STORE_MEMORIES.name, {}).get(id_)
            if path is None:
                self._skip("memory", GONE, id_)
                continue
            if reason:
                self._skip_part(id_, reason)
                continue
            if store and self._place:
                draft.row = keyed(draft.row._replace(user_id=user, channel_id=store))
            left.append(draft)
        return left

    def _skip_part(self, id_: str, reason: str) -> None:
        """Skip the memory of a row that was refused for a reason."""
        forgotten = reason == FORGOTTEN
        self._skip("memory", FORGOTTEN if forgotten else GONE, id_, failed=not forgotten)

    async def _memories_of(self, drafts: list[Draft]) -> None:
        fresh, present = await self._core.threads.run(self._new_memories, drafts)
        self.report.count("memory", [False] * present)
        if self._dry_run:
            self.report.count("memory", [True] * len(fresh))
            return
        if fresh:
            for draft in fresh:
                if TAG in draft.row.tags and any(
                    change.what == "confirmed" for change in changes_of(draft.row)
                ):
                    self._skip("memory", UNCONFIRMED, draft.row.id)
            await self._core.ingest.prepare(self._tenant, fresh)
            for some in parted(fresh, self._core.store.weight, DRAFTS):
                self.report.count("memory", await self._put(some))

    def _new_memories(self, drafts: Sequence[Draft]) -> tuple[list[Draft], int]:
        """Return the drafts that are not stored yet, and the number of those that are."""
        here = self._core.store.by_id(self._tenant, [draft.row.id for draft in drafts])
        known = self._core.store.known_texts(self._tenant, drafts)
        forgotten = self._core.store.forgotten(self._tenant, drafts, self._since)
        fresh, present = [], 0
        for draft, gone in zip(drafts, forgotten, strict=True):
            other = here.get(draft.row.id)
            same = other is not None and other.created_at == draft.row.created_at
            if same and any(getattr(other, name) != getattr(draft.row, name) for name in self._place):
                self._skip("memory", ELSEWHERE, draft.row.id, failed=True)
            elif same or draft.row.dedup_key in known:
                present += 1
            elif gone:
                self._skip("memory", FORGOTTEN, draft.row.id)
            elif other is not None:
                self._skip("memory", TAKEN, draft.row.id, failed=True)
            else:
                fresh.append(draft)
                known.add(draft.row.dedup_key)
        return fresh, present

    async def _put(self, drafts: Sequence[Draft]) -> list[bool]:
        """Store drafts and return for each whether it is new; one by one if an id was taken in between."""
        try:
            outcomes = await self._core.threads.result(self._core.store.put(drafts))
        except Conflict:
            if len(drafts) > 1:
                return [created for draft in drafts for created in await self._put([draft])]
            self._skip("memory", TAKEN, drafts[0].row.id, failed=True)
            return []
        return [outcome.created for outcome in outcomes]

    async def _chunks(self) -> None:
        decoder = msgspec.json.Decoder(ChunkLine)
        attached = self._refused.get(ATTACHED.name, {})
        pages = self._archive.pages(CHUNKS)
        while page := await self._core.threads.run(next, pages, None):
            lines = []
            for line in page:
                try:
                    chunk = decode(line.raw, decoder)
                except InvalidInput as exc:
                    self._damaged("chunk", CHUNKS, line.number, exc)
                    continue
                if attached.get(f"{chunk.store_id}, {chunk.file_id}") in (FORGOTTEN, FORGOTTEN_WITH):
                    self._skip("chunk", FORGOTTEN_WITH, chunk.id)
                else:
                    lines.append(chunk)
            if lines:
                await self._chunks_of(lines)
            self._progress()

    async def _chunks_of(self, lines: list[ChunkLine]) -> None:
        """Store the chunks of files that a restore attached to their stores; other files have chunks of their own."""
        if self._dry_run:
            there = await self._read(lambda c: attached_here(c, self._tenant, lines))
            self.report.count("chunk", [(line.store_id, line.file_id) not in there for line in lines])
            return
        ours, other = await self._read(lambda c: present_chunks(c, self._tenant, lines))
        self.report.count("chunk", [False] * other)
        if not ours:
            return
        drafts = await self._core.threads.run(chunk_drafts, self._core, self._tenant, self._header, ours)
        await self._core.ingest.prepare(self._tenant, drafts)
        weight = self._core.store.weight
        for some in parted([*zip(drafts, ours, strict=True)], lambda chunk: weight(chunk[0]), DRAFTS):
            along = partial(place_chunks, self._tenant, [place for _, place in some])
            put = self._core.store.put([draft for draft, _ in some], along)
            outcomes = await self._core.threads.result(put)
            self.report.count("chunk", [outcome.created for outcome in outcomes])

    # --- below -------------------------------------------------------------------------------------

    async def _read(self, work: Callable[[Connection], T]) -> T:
        return await self._core.threads.run(self._core.store.db.read, work, self._tenant)

    async def _write(self, work: Callable[[Connection], T], *jobs: str) -> T:
        then = self._core.jobs.woken(*jobs)
        return await self._core.threads.result(self._core.store.db.write(work, then, self._tenant))

    def _damaged(self, what: str, table: str, number: int, exc: InvalidInput) -> None:
        self._skip(what, DAMAGED, f"{table} line {number}: {exc}", failed=True)

    def _skip(self, kind: str, reason: str, place: str, *, failed: bool = False) -> None:
        self.report.skip(Skipped(kind=kind, reason=reason, place=place, failed=failed))

    def _progress(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self.report)
