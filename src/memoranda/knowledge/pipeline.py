"""Indexing of files: read and split in a worker process, embed in batches shared with other files, store. One job a
file.

A file of few chunks becomes searchable in the transaction that completes it. A larger one is stored in steps under a
mark that excludes it from every search until its last chunk is stored. A job that dies with its process begins again
and reuses what it had stored.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from memoranda.clock import now_micros
from memoranda.errors import (
    DamagedData,
    EmbedderUnavailable,
    MemorandaError,
    NotFound,
    SpendingLimit,
    StorageError,
)
from memoranda.knowledge.attaching import COLUMNS
from memoranda.knowledge.filling import Filling
from memoranda.knowledge.records import AttachedRow, attached_of, chunk_row, chunking_of
from memoranda.knowledge.removal import REMOVE_JOB, Removal, detach, hide
from memoranda.providers.embeddings.base import Embedder
from memoranda.readers.base import Document, Unreadable
from memoranda.readers.worker import Parsed
from memoranda.storage.sql.base import Connection
from memoranda.store.changes import DRAFTS, MARKS, Outcome, parted, weight_of
from memoranda.store.core import Core
from memoranda.store.ingest import FILES
from memoranda.store.integrity import check_file
from memoranda.store.job_kinds import Postponed, Run
from memoranda.store.jobs import CANCELLED
from memoranda.store.rows import Draft, Record
from memoranda.text import semantic
from memoranda.text.splitting import Chunking, ChunkPlace, chunk_header, context_header, file_header
from memoranda.text.stored import compact_json

BATCH = DRAFTS
"""Chunks of one file in a transaction; fewer if they are long, or the index takes vectors slowly."""
READ = 1_000
"""Chunks read at once."""
RETRY_AFTER = 5.0
"""Seconds until a file is tried again whose embedding model does not answer; no other file is read meanwhile."""
AWAY = "waits for the embedding model, which does not answer"
PLACE = ("tenant_id", "seq", "attached", "idx", "start", "stop", "tokens", "page", "last_page", "heading")


class IndexingCancelled(Exception):
    """The file was detached from the store, or cancelled, while it was indexed: nothing more is written."""


class Stale(MemorandaError):
    """An earlier attempt stored other chunks of this file; they are deleted, and the next attempt makes all again."""


class Pipeline:
    """The handlers of the jobs that index files."""

    def __init__(self, core: Core, removal: Removal) -> None:
        self.core = core
        self.removal = removal
        self._filling: Filling | None = None
        self._away_until = 0.0

    # --- one file ----------------------------------------------------------------------------------

    async def index(self, run: Run) -> dict[str, Any]:
        """Make the chunks of a file in a store; return how many."""
        row = await self.core.threads.run(self._row, run)
        if row is None:
            return {"skipped": "it is no longer to be indexed"}
        if time.monotonic() < self._away_until:
            raise Postponed(AWAY, RETRY_AFTER)
        try:
            chunks = await self._index(run, row)
            self.core.tally.update(completed=1, chunks=chunks)
            return {"chunks": chunks}
        except Unreadable as exc:
            if exc.code == "server_error":
                raise
            await self._fail(run, exc.code, str(exc))
            return {"failed": exc.code}
        except EmbedderUnavailable as exc:
            self._away_until = time.monotonic() + RETRY_AFTER
            await self._note(run, row, AWAY)
            raise Postponed(str(exc), RETRY_AFTER) from exc
        except SpendingLimit as exc:
            await self._note(run, row, f"waits: {exc}")
            raise
        except IndexingCancelled:
            self.core.tally["skipped"] += 1
            return {"skipped": "it was taken away meanwhile"}
        except Stale:
            await self.removal.clear(run.tenant, row.store_id, row.seq)
            raise

    def _row(self, run: Run) -> AttachedRow | None:
        """Return the attachment of the job while it is to be indexed; else None."""
        file_id, store_id = str(run.payload["file"]), str(run.payload["store"])
        attachment = self.core.store.db.read(
            lambda c: attached_of(c, run.tenant, store_id, [file_id]), run.tenant
        ).get(file_id)
        if (
            attachment is None
            or attachment.seq != run.payload["attached"]
            or attachment.status != "in_progress"
        ):
            return None
        return attachment

    async def _index(self, run: Run, row: AttachedRow) -> int:
        chunking = chunking_of(row.chunking)
        parsed = await self._read(run.tenant, row, chunking)
        embedder = self._embedder()
        document, places = parsed.document, parsed.chunks
        if chunking.strategy == "semantic":
            places = await self._grouped(run.tenant, document.text, places, chunking, embedder)
        if not places:
            raise Unreadable("invalid_file", "holds no text")
        if row.writing and await self.core.threads.run(
            self._others, run.tenant, row.seq, document.text, places
        ):
            await self.removal.clear(run.tenant, row.store_id, row.seq)
        at = 0
        for some in parted(places, partial(self._weight, embedder), BATCH):
            if at == 0 and len(some) < len(places):
                await run.report(at, len(places))
            drafts = self._drafts(run.tenant, row, document, some, at, chunking)
            along = partial(self._along, run, row, document, places, range(at, at + len(some)))
            await self.core.ingest.write_with(run.tenant, drafts, embedder, along)
            at += len(some)
            if len(some) < len(places):
                await run.report(at, len(places))
        return len(places)

    def _others(self, tenant: str, attached: int, text: str, places: Sequence[ChunkPlace]) -> bool:
        """Return True if an unfinished attempt stored other chunks than these."""

        def read(c: Connection) -> bool:
            count = c.one("count_attached", [tenant, attached])
            for at in range(0, int(count[0]) if count else 0, READ):
                for index, start, stop, _, _, content, *_ in c.all(
                    "chunks_between", [tenant, attached, at, at + READ - 1]
                ):
                    if index >= len(places) or (start, stop) != (places[index].start, places[index].end):
                        return True
                    if content != text[start:stop]:
                        return True
            return False

        return self.core.store.db.read(read, tenant)

    async def _read(self, tenant: str, row: AttachedRow, chunking: Chunking) -> Parsed:
        local: AbstractContextManager[Path] = self.core.blobs.local(tenant, row.file_id)
        try:
            path = await self.core.threads.run(local.__enter__)
        except NotFound as exc:
            raise Unreadable("server_error", "the file's bytes are not there; upload it again") from exc
        except StorageError as exc:
            raise Postponed(str(exc), RETRY_AFTER) from exc
        began = time.perf_counter()
        try:
            await self.core.threads.run(check_file, self.core.store.damage, row.file_id, row.sha256, path)
            return await self.core.readers.read(path, row.filename, chunking)
        except DamagedData as exc:
            raise Unreadable("invalid_file", str(exc)) from exc
        finally:
            self.core.tally["reading"] += time.perf_counter() - began  # type: ignore[assignment]
            await self.core.threads.run(local.__exit__, None, None, None)

    def _embedder(self) -> Filling:
        if self._filling is None or self._filling.inner is not self.core.embedder:
            self._filling = Filling(self.core.embedder)
        return self._filling

    async def _grouped(
        self,
        tenant: str,
        text: str,
        places: Sequence[ChunkPlace],
        chunking: Chunking,
        embedder: Embedder,
    ) -> list[ChunkPlace]:
        """Return the sentences grouped by similarity."""
        sentences = [text[place.start : place.end] for place in places]
        embedded = await self.core.costs.embed(embedder, sentences, tenant=tenant, purpose=FILES)
        return await self.core.threads.run(semantic.group, text, places, embedded.vectors, chunking.size)

    def _drafts(
        self,
        tenant: str,
        row: AttachedRow,
        document: Document,
        places: Sequence[ChunkPlace],
        first: int,
        chunking: Chunking,
    ) -> list[Draft]:
        """Return the chunks as rows: their channel is the store, their source the attachment."""
        now = now_micros()
        drafts = []
        for index, place in enumerate(places, first):
            content = document.text[place.start : place.end]
            above = context_header(document.title, place.heading, row.filename) if chunking.header else ""
            if index == 0:
                above = file_header(document.title, row.filename, above)
            record = chunk_row(
                tenant=tenant,
                id_=f"chunk_{row.file_id[-8:]}{row.seq:x}_{index:x}",
                store_id=row.store_id,
                attached=row.seq,
                place=(index, place.start),
                content=content,
                header=chunk_header(above, place.columns),
                attributes=row.attributes,
                times=(now, now, now),
            )
            drafts.append(Draft(record, named=False))
        return drafts

    def _along(
        self,
        run: Run,
        row: AttachedRow,
        document: Document,
        places: Sequence[ChunkPlace],
        some: range,
        c: Connection,
        outcomes: list[Outcome],
    ) -> None:
        """Write the places of chunks and the state of their file, in the transaction of the chunks."""
        key = [run.tenant, row.store_id, row.file_id, row.seq]
        state = c.one("attachment_state", key)
        if state is None or state[0] != "in_progress":
            raise IndexingCancelled
        if state[1] != row.attributes:
            raise Postponed("its attributes were changed meanwhile", 0.0)
        c.load(
            "chunks",
            PLACE,
            [
                (
                    run.tenant, outcome.row.seq, row.seq, index, place.start, place.end, place.tokens, place.page,
                    place.last_page, place.heading,
                )
                for index, outcome, place in zip(some, outcomes, places[some.start : some.stop], strict=True)
                if outcome.created
            ],
        )  # fmt: skip
        if some.stop < len(places):
            c.run("begin_writing", key)
            return
        count = c.one("count_attached", [run.tenant, row.seq])
        if count is None or count[0] != len(places):
            raise Stale("an earlier attempt stored other chunks of this file")
        text_bytes = sum(len(document.text[place.start : place.end].encode()) for place in places)
        usage = text_bytes + 4 * self.core.store.index.dim * len(places)
        title = None if document.title is None else document.title[:512]
        c.run("complete_file", [len(places), usage, title, compact_json(document.notes[:20]), *key])

    async def _note(self, run: Run, row: AttachedRow, says: str) -> None:
        """Set the reason for which a file waits."""
        notes = compact_json([says])
        if row.notes != notes:
            key = [notes, run.tenant, row.store_id, row.file_id, row.seq]
            noted = self.core.store.db.write(lambda c: c.run("note_file", key), tenant=run.tenant)
            await self.core.threads.result(noted)

    # --- how it ends -------------------------------------------------------------------------------

    async def _fail(self, run: Run, code: str, message: str) -> None:
        def work(c: Connection) -> None:
            self._failed(c, run, code, message)

        await self.core.threads.result(self.core.store.db.write(work, tenant=run.tenant))
        self.core.jobs.wake(REMOVE_JOB)

    def _failed(self, c: Connection, run: Run, code: str, message: str) -> None:
        store_id, file_id, seq = run.payload["store"], run.payload["file"], run.payload["attached"]
        if c.run("fail_file", [code, message[:2_000], run.tenant, store_id, file_id, seq]):
            self.core.tally["failed"] += 1
            hide(c, self.core, run.tenant, store_id, seq)

    def failed(self, c: Connection, run: Run, error: str) -> None:
        """Mark the file as failed in the transaction in which its job gives up."""
        times = run.attempts
        failed = times and error != CANCELLED
        says = f"indexing failed {times} times: {error}" if failed else f"it was not indexed: {error}"
        self._failed(c, run, "server_error", says)

    def again(self, c: Connection, tenant: str, payload: dict[str, Any]) -> dict[str, Any] | None:
        """Attach the file of a failed job anew, as it was attached; return the payload for that, or None if the file is
        no longer there as the job left it."""
        store_id, file_id = str(payload["store"]), str(payload["file"])
        row = attached_of(c, tenant, store_id, [file_id]).get(file_id)
        if row is None or row.status != "failed" or row.seq != payload["attached"]:
            return None
        detach(c, self.core, tenant, store_id, file_id, row.seq)
        revs = c.one("draw_revs", [1])
        assert revs is not None
        settings = (row.attributes, row.chunking, row.batch_id, row.created_at)
        c.load("store_files", COLUMNS, [(tenant, store_id, file_id, revs[0], "in_progress", *settings)])
        return {**payload, "attached": revs[0]}

    # --- attributes --------------------------------------------------------------------------------

    async def reattribute(self, run: Run) -> dict[str, Any]:
        """Give the chunks of a file the attributes of its row; if another job changes them meanwhile, the latest
        ones."""
        done, given = 0, None
        while (row := await self.core.threads.run(self._attributes, run)) and row.attributes != given:
            given = row.attributes
            done += await self._reattribute(run, row)
        return {"chunks": done}

    async def _reattribute(self, run: Run, row: AttachedRow) -> int:
        done = 0
        while seqs := await self.core.threads.run(self._seqs, run.tenant, row.seq, done):
            change = partial(_with_metadata, row.attributes)
            await self.core.threads.result(self.core.store.rewrite(run.tenant, seqs, change))
            done += len(seqs)
            await run.report(done)
        return done

    def _attributes(self, run: Run) -> AttachedRow | None:
        file_id, store_id = str(run.payload["file"]), str(run.payload["store"])
        return self.core.store.db.read(
            lambda c: attached_of(c, run.tenant, store_id, [file_id]), run.tenant
        ).get(file_id)

    def _weight(self, embedder: Embedder, place: ChunkPlace) -> float:
        """Return how many rows of ordinary size a chunk counts as, see `store.changes`. Its number of vectors is
        estimated."""
        windows = 1 + place.tokens // embedder.max_tokens
        return weight_of(place.end - place.start, windows, self.core.store.derived.put_limit)

    def _seqs(self, tenant: str, attached: int, first: int) -> list[int]:
        limit = min(MARKS, self.core.store.derived.put_limit or MARKS)
        rows = self.core.store.db.read(
            lambda c: c.all("chunks_from", [tenant, attached, first, limit]), tenant
        )
        return [int(seq) for (seq,) in rows]


def _with_metadata(metadata: str, row: Record) -> Record:
    return row._replace(metadata=metadata)
