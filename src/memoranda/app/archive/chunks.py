"""Restoring chunks of documents with their vectors and places, under the corresponding attachment here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec

from memoranda.app.archive.tables import Moment
from memoranda.knowledge.records import chunk_row
from memoranda.memories.transfer import Count, Header, Vector, parts_of
from memoranda.storage.sql.base import Connection, Row
from memoranda.store.changes import Outcome
from memoranda.store.core import Core
from memoranda.store.rows import Draft, Record

PLACE = ("tenant_id", "seq", "attached", "idx", "start", "stop", "tokens", "page", "last_page", "heading")


class ChunkLine(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A chunk of a file in a store: its place in the file, what is searched of it, and its vectors."""

    store_id: str
    file_id: str
    idx: Count
    start: Count
    stop: Count
    tokens: Count
    page: Count | None = None
    last_page: Count | None = None
    heading: str | None = None
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
    header: str | None = None
    content: str
    occurred_at: Moment
    created_at: Moment
    updated_at: Moment
    embeddings: list[Vector] | None = None


class Attachment(NamedTuple):
    """The number of a file in a store here, and the attributes of the file as JSON."""

    seq: int
    attributes: str


class Ours(NamedTuple):
    """A chunk to be stored, and its attachment."""

    line: ChunkLine
    attachment: Attachment


def attached_here(c: Connection, tenant: str, lines: Sequence[ChunkLine]) -> set[tuple[str, str]]:
    """Return the files of chunks that are attached to their stores here, as (store, file)."""
    return {(row[0], row[1]) for row in _attached(c, tenant, lines, "")}


def _attached(c: Connection, tenant: str, lines: Sequence[ChunkLine], where: str) -> list[Row]:
    pairs = sorted({(line.store_id, line.file_id) for line in lines})
    return c.select(
        "SELECT store_id, file_id, seq, attributes FROM store_files WHERE tenant_id = ? AND (store_id, file_id) IN"
        f" (VALUES {', '.join(['(CAST(? AS TEXT), CAST(? AS TEXT))'] * len(pairs))}){where}",
        [tenant, *(id_ for pair in pairs for id_ in pair)],
    )


def present_chunks(c: Connection, tenant: str, lines: Sequence[ChunkLine]) -> tuple[list[Ours], int]:
    """Return the missing chunks of files that a restore has attached to their stores, and the number of the others."""
    attached_rows = _attached(c, tenant, lines, " AND status = 'completed' AND writing = 1")
    attachments = {(store, file): Attachment(seq, content) for store, file, seq, content in attached_rows}
    ours = {
        (attachment.seq, line.idx): Ours(line, attachment)
        for line in lines
        if (attachment := attachments.get((line.store_id, line.file_id))) is not None
    }
    if not ours:
        return [], len(lines)
    stored = c.select(
        "SELECT attached, idx FROM chunks WHERE tenant_id = ? AND (attached, idx) IN"
        f" (VALUES {', '.join(['(CAST(? AS BIGINT), CAST(? AS BIGINT))'] * len(ours))})",
        [tenant, *(number for key in ours for number in key)],
    )
    for attached, idx in stored:
        del ours[(attached, idx)]
    return list(ours.values()), len(lines) - len(ours)


def chunk_drafts(core: Core, tenant: str, header: Header, ours: Sequence[Ours]) -> list[Draft]:
    """Return the rows of chunks. A chunk whose id is taken here gets another."""
    taken = core.store.by_id(tenant, [chunk.line.id for chunk in ours])
    drafts = []
    for line, attachment in ours:
        id_ = f"chunk_{line.file_id[-8:]}{attachment.seq:x}_{line.idx:x}" if line.id in taken else line.id
        draft = Draft(_record(tenant, line, attachment, id_), named=False)
        draft.parts, draft.model = (
            parts_of(line.embeddings, header, core.ingest, draft.row),
            header.model or "",
        )
        drafts.append(draft)
    return drafts


def _record(tenant: str, line: ChunkLine, attachment: Attachment, id_: str) -> Record:
    return chunk_row(
        tenant=tenant,
        id_=id_,
        store_id=line.store_id,
        attached=attachment.seq,
        place=(line.idx, line.start),
        content=line.content,
        header=line.header,
        attributes=attachment.attributes,
        times=(line.occurred_at, line.created_at, line.updated_at),
    )


def place_chunks(tenant: str, ours: Sequence[Ours], c: Connection, outcomes: list[Outcome]) -> None:
    """Write the places of chunks in their files, in the transaction of the chunks."""
    c.load(
        "chunks",
        PLACE,
        [
            (
                tenant, outcome.row.seq, attachment.seq, line.idx, line.start, line.stop, line.tokens, line.page,
                line.last_page, line.heading,
            )
            for outcome, (line, attachment) in zip(outcomes, ours, strict=True)
            if outcome.created
        ],
    )  # fmt: skip
