"""The chunks of a file in a store, and their text."""

from __future__ import annotations

from memoranda.knowledge.records import AttachedRow
from memoranda.knowledge.text import joined
from memoranda.knowledge.values import Chunk
from memoranda.storage.sql.base import Connection
from memoranda.store.ids import nameable
from memoranda.store.paging import Listed, as_page, cursors


def text_of(c: Connection, tenant: str, file: AttachedRow) -> str:
    """Return the text of a file from its chunks; empty before the file is completed."""
    if file.status != "completed":
        return ""
    rows = c.all("chunks_between", [tenant, file.seq, 0, file.chunk_count])
    return joined([(0, ""), *((start, content) for _, start, _, _, _, content, *_ in rows)])


def chunks_of(
    c: Connection, tenant: str, file: AttachedRow, *, limit: int, after: str | None
) -> Listed[Chunk]:
    """Return one page of the chunks of a file, in the order of its text; none before the file is completed.

    Raises:
        InvalidInput: the cursor names no chunk of the file.
    """

    def place_of(id_: str) -> int | None:
        row = c.one("place_of_chunk", [tenant, id_, file.seq]) if nameable(id_) else None
        return None if row is None else int(row[0])

    at, _ = cursors(after, None, place_of)
    wanted = limit + 1 if file.status == "completed" else 0
    rows = c.all("chunks_after", [tenant, file.seq, -1 if at is None else at, wanted])
    chunks = [Chunk(**dict(zip(Chunk.__struct_fields__, row, strict=True))) for row in rows[:limit]]
    return as_page(chunks, [chunk.id for chunk in chunks], len(rows) > limit)
