"""The chunks of a file in a store, and their text: overlaps once, gaps as white space; and hits that are neighbours in
a file, joined to one part of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from memoranda.knowledge.records import AttachedRow
from memoranda.knowledge.values import Chunk
from memoranda.storage.sql.base import Connection
from memoranda.store.ids import nameable
from memoranda.store.paging import Listed, as_page, cursors


def joined(pieces: Iterable[tuple[int, str]]) -> str:
    """Return the text of chunks given as (start, content), in order of `start`: overlaps appear once, and gaps, which
    were white space, keep their length. So every character keeps its offset from the first start."""
    parts: list[str] = []
    end: int | None = None
    for start, content in pieces:
        if end is not None and start > end:
            parts += ["\n" * min(2, start - end), " " * (start - end - 2)]
        parts.append(content[max(0, (start if end is None else end) - start) :])
        end = max(end or 0, start + len(content))
    return "".join(parts)


LONGEST = 512
"""The most tokens of chunks that are joined. A longer passage takes the place of better ones in a budget of text."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Chunks `first` to `last` of a file, `tokens` together, as one text. `file` names the file in its store. `heading`
    and `header` are those of the first chunk."""

    file: tuple[str, int]
    first: int
    last: int
    tokens: int
    text: str
    start: int
    end: int
    page: int | None
    last_page: int | None
    heading: str | None
    header: str | None


def neighbouring(parts: Sequence[Part]) -> list[list[int]]:
    """Return the places of ranked parts in groups, in their order. A part joins those right before it in the ranking
    if it continues or overlaps them in their file; so no part goes before one that ranks better."""
    groups: list[list[int]] = []
    last: Part | None = None
    for place, part in enumerate(parts):
        if last is not None and _neighbours(last, part):
            last = merged([last, part])
            groups[-1].append(place)
        else:
            last = part
            groups.append([place])
    return groups


def _neighbours(one: Part, other: Part) -> bool:
    if one.file != other.file or one.first > other.last + 1 or other.first > one.last + 1:
        return False
    inside = one.first <= other.first and other.last <= one.last
    return inside or one.tokens + other.tokens <= LONGEST


def merged(parts: Sequence[Part]) -> Part:
    """Return neighbouring parts of a file as one; what they overlap in appears once."""
    ordered = sorted(parts, key=lambda part: (part.first, -part.last))
    end = max(ordered, key=lambda part: part.last)
    return msgspec.structs.replace(
        ordered[0],
        last=end.last,
        tokens=sum(part.tokens for part in ordered),
        text=joined((part.start, part.text) for part in ordered),
        end=end.end,
        last_page=end.last_page,
    )


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
