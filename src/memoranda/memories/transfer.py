"""Export and import of memories as JSONL: a header line, then one memory a line. All but `origin` comes back."""

from __future__ import annotations

import base64
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from memoranda.clock import micros, moment, now_micros
from memoranda.errors import Conflict, InvalidInput, MemorandaError
from memoranda.filters import Filter
from memoranda.memories.copies import copy_of, link_copies
from memoranda.memories.export_files import read_lines
from memoranda.providers.embeddings.onnx import BITS
from memoranda.storage.sql.base import Connection
from memoranda.store.core import Core
from memoranda.store.ingest import Ingest
from memoranda.store.listing import scan
from memoranda.store.origins import BY, CLASSES, ORIGIN, READ, hidden, with_origin
from memoranda.store.rows import (
    ITEM,
    Draft,
    Part,
    Record,
    fetch,
    is_same,
    pinned_row,
    scope_ids,
    start_of,
    to_memory,
)
from memoranda.store.store import Store
from memoranda.store.transaction import known_texts
from memoranda.store.validation import (
    GIVEN,
    Bounds,
    check_name,
    check_text,
    check_vector,
    dedup_key,
    draft,
    later_version,
    time_of,
)
from memoranda.text.hashing import digest
from memoranda.text.stored import compact_json
from memoranda.types import Memory, NewMemory, Subject, Through
from memoranda.validation import convert, decode

FORMAT = 1
BATCH = 500
T = TypeVar("T", int, None)
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 40)]


class Header(msgspec.Struct, kw_only=True):
    """The first line: the format's version, when the export was made, and whose vectors follow."""

    memoranda_export: int
    created_at: datetime | None = None
    model: str | None = None
    dim: int | None = None


GIVEN_ONLY = ("embedding", "replaces")
"""Fields of a new memory that an export does not have."""


class Vector(msgspec.Struct, kw_only=True):
    """One window's vector: characters [start, stop) of the content, float32 little-endian in base64, and in base64 the
    codes of its token vectors, if they are made."""

    start: Count
    stop: Count
    text_hash: Annotated[str, msgspec.Meta(max_length=256)]
    vector: str
    tokens: str | None = None


class Line(Memory, kw_only=True):
    """One memory, with what the API does not show: its header (of a summary), whether its time was given, and its
    vectors."""

    content_hash: str = ""
    header: str | None = None
    access_count: Annotated[int, msgspec.Meta(ge=0, lt=1 << 40)] = 0
    dated: bool = True
    occurred_at: datetime | None = None  # type: ignore[assignment]
    created_at: datetime | None = None  # type: ignore[assignment]
    updated_at: datetime | None = None  # type: ignore[assignment]
    kind: str = "note"  # type: ignore[assignment]
    id: str | None = None  # type: ignore[assignment]
    embeddings: list[Vector] | None = None


class ArchivedLine(Line, kw_only=True):
    """A memory of an archive: its `dedup_key` is there where it is not that of its scope and text."""

    dedup_key: Annotated[str, msgspec.Meta(min_length=1, max_length=256)] | None = None


class Imported(msgspec.Struct, kw_only=True):
    """What an import came to. `conflicts` are ids that already name another text here, and `forgotten` those (or lines)
    of memories that were forgotten after the export was made; they were left alone."""

    read: int = 0
    created: int = 0
    present: int = 0
    conflicts: list[str] = []
    forgotten: list[str] = []


def lines(store: Store, tenant: str, where: Filter, vectors: bool) -> Iterator[bytes]:
    """Yield the export, one line at a time, each ending in a newline."""
    header = Header(memoranda_export=FORMAT, created_at=moment(now_micros()))
    if vectors:
        header.model, header.dim = store.model, store.index.dim
    yield msgspec.json.encode(header) + b"\n"
    for rows in scan(store.db, tenant, where, size=BATCH):
        read = partial(encoded_vectors, store=store, tenant=tenant, rows=rows)
        vectors_by_seq = store.db.read(read, tenant) if vectors else {}
        for row in rows:
            yield msgspec.json.encode(_line(row, vectors_by_seq.get(row.seq))) + b"\n"


def encoded_vectors(c: Connection, store: Store, tenant: str, rows: list[Record]) -> dict[int, list[Vector]]:
    """Return the vectors of rows as an export has them, by seq."""
    by_seq: dict[int, list[Vector]] = {}
    seqs = compact_json([row.seq for row in rows])
    for seq, start, stop, text_hash, data, codes in c.all("vectors_of", [tenant, store.space, seqs]):
        vector = Vector(
            start=start,
            stop=stop,
            text_hash=text_hash.removeprefix(GIVEN),
            vector=base64.b64encode(data).decode("ascii"),
            tokens=None if codes is None else base64.b64encode(codes).decode("ascii"),
        )
        by_seq.setdefault(seq, []).append(vector)
    return by_seq


def _line(row: Record, vectors: list[Vector] | None) -> dict[str, Any]:
    line: dict[str, Any] = msgspec.to_builtins(to_memory(row), builtin_types=(datetime,))
    del line["scope"]
    line["dated"] = bool(row.dated)
    if row.header is not None:
        line["header"] = row.header
    if vectors is not None:
        line["embeddings"] = vectors
    return line


def archived_line(row: Record, vectors: list[Vector] | None) -> dict[str, Any]:
    """Return the row as an archive has it, see `ArchivedLine`."""
    line = _line(row, vectors)
    if row.dedup_key != _own_key(row):
        line["dedup_key"] = row.dedup_key
    return line


def _own_key(row: Record) -> str:
    """Return the dedup key of the scope and text of a row."""
    occurred = row.occurred_at if row.dated else None
    return dedup_key(row.kind, scope_ids(row), row.role, occurred, row.content_hash, row.id)


async def take(
    core: Core,
    subject: Subject,
    source: str | Path | Iterable[bytes],
    scope: str | None,
    may_own: Callable[[Any, str], None],
    include_forgotten: bool = False,
) -> Imported:
    """Import the memories of an export, 500 at a time. See `Memories.import_from`.

    Facts of an export have become what they are where they come from; a model compares only those of a file without
    a header.
    """
    subject = replace(subject, through=Through(origin="import"))
    done = Imported()
    exported = False
    header = Header(memoranda_export=FORMAT)
    since: int | None = None
    batch: dict[int, Draft] = {}

    async def store() -> None:
        moved = place is not None
        free = await core.threads.run(_not_forgotten, core.store, subject.tenant_id, batch, done, since)
        await _store(core, subject.tenant_id, free, done, exported=exported, moved=moved)

    place = place_of(scope)
    decoder = msgspec.json.Decoder(Line)
    pages = _pages(read_lines(source))
    number = 0
    while page := await core.threads.run(next, pages, None):
        for raw in page:
            number += 1
            if number == 1:
                raw = raw.removeprefix(BOM_UTF8)
            if not raw.strip():
                continue
            if number == 1 and b'"memoranda_export"' in raw[:200]:
                header = _header(raw)
                exported = True
                if (
                    not include_forgotten
                ):  # one of an earlier version has no date: it is older than all tombstones
                    since = 0 if header.created_at is None else micros(header.created_at)
                continue
            try:
                batch[number] = _draft(raw, decoder, header, core.ingest, subject, place, number, may_own)
            except MemorandaError:
                await store()
                raise
            done.read += 1
        await store()
        batch = {}
    return done


def _pages(out: Iterator[bytes]) -> Iterator[list[bytes]]:
    page: list[bytes] = []
    for line in out:
        page.append(line)
        if len(page) == BATCH:
            yield page
            page = []
    if page:
        yield page


def _header(raw: bytes) -> Header:
    header = decode(raw, msgspec.json.Decoder(Header))
    if header.memoranda_export > FORMAT:
        raise InvalidInput(
            "memoranda_export",
            f"format {header.memoranda_export} is newer than this version, which reads {FORMAT}",
        )
    return header


def place_of(scope: str | None) -> dict[str, str | None] | None:
    """Return the four ids of a scope such as `user:ada`; None for no scope.

    Raises:
        InvalidInput: the scope is invalid.
    """
    if scope is None:
        return None
    place: dict[str, str | None] = dict.fromkeys(("user_id", "agent_id", "channel_id", "session_id"))
    name, _, id_ = scope.partition(":")
    if scope != "global":
        if f"{name}_id" not in place or not id_:
            raise InvalidInput("scope", f"{scope!r}: use session:ID, user:ID, agent:ID, channel:ID or global")
        place[f"{name}_id"] = id_
    return place


def _draft(
    raw: bytes,
    decoder: msgspec.json.Decoder[Line],
    header: Header,
    ingest: Ingest,
    subject: Subject,
    place: dict[str, str | None] | None,
    number: int,
    may_own: Callable[[Any, str], None],
) -> Draft:
    try:
        line = decode(raw, decoder)
        may_own(line.user_id if place is None else place["user_id"], "user_id")
        new = _row(line, subject, ingest.bounds, place)
        new.parts, new.model = parts_of(line.embeddings, header, ingest, new.row), header.model or ""
    except InvalidInput as exc:
        raise InvalidInput(f"line {number}", str(exc)) from exc
    return new


def _row(line: Line, subject: Subject, bounds: Bounds, place: dict[str, str | None] | None) -> Draft:
    """Return the draft of a line: checked like any new memory, with its own history. In another scope, an item stays in
    its channel and session, by which the store that wrote it finds it."""
    fields = {name: getattr(line, name) for name in NewMemory.__struct_fields__ if name not in GIVEN_ONLY}
    if place is not None:
        fields |= {"user_id": place["user_id"]} if line.kind == ITEM else place
    if not line.dated:
        fields["occurred_at"] = None
    check_name(line.superseded_by, "superseded_by")
    if line.header is not None:
        check_text(line.header, "header", bounds)
    now = now_micros()
    new = draft(convert(fields, NewMemory), subject, now, bounds, "")
    made = line.origin if line.origin in CLASSES and line.kind != "document" else None
    stamp = hidden(new.row.metadata)
    by, read = [*line.written_by, *stamp.get(BY, ())], [*line.read, *stamp.get(READ, ())]
    metadata = with_origin(new.row.metadata, stamp.get(ORIGIN, made), by, read)
    row = new.row._replace(
        metadata=metadata,
        access_count=line.access_count,
        last_accessed_at=_time(line, "last_accessed_at", None),
        superseded_by=line.superseded_by,
        archived_at=_time(line, "archived_at", None),
        occurred_at=_time(line, "occurred_at", now),
        created_at=_time(line, "created_at", now),
        updated_at=_time(line, "updated_at", now),
        header=line.header,
    )
    row = pinned_row(row._replace(dedup_key=_own_key(row)), line.pinned)
    return Draft(row, named=new.named)


def archived_draft(
    raw: bytes,
    decoder: msgspec.json.Decoder[ArchivedLine],
    header: Header,
    ingest: Ingest,
    subject: Subject,
    place: dict[str, str | None] | None,
) -> Draft:
    """Return the draft of an archive's line, in another scope with `place`.

    Raises:
        InvalidInput: names the field and the fix.
    """
    line = decode(raw, decoder)
    new = _row(line, subject, ingest.bounds, place)
    if line.dedup_key is not None:
        moved = place is not None and line.kind != "message"
        key = digest(line.dedup_key, compact_json(place)) if moved else line.dedup_key
        new.row = new.row._replace(dedup_key=key)
    new.parts, new.model = parts_of(line.embeddings, header, ingest, new.row), header.model or ""
    return new


def _time(line: Line, name: str, missing: T) -> int | T:
    value = getattr(line, name)
    return missing if value is None else time_of(value, name)


def parts_of(vectors: list[Vector] | None, header: Header, ingest: Ingest, row: Record) -> list[Part]:
    """Return the vectors of a row in an export if they are of the configured model; else none, and it is embedded."""
    if not vectors or (header.model, header.dim) != (ingest.embedder.model, ingest.embedder.dim):
        return []
    parts = []
    for item in vectors:
        try:
            values = np.frombuffer(base64.b64decode(item.vector, validate=True), dtype="<f4")
            codes = None if item.tokens is None else base64.b64decode(item.tokens, validate=True)
        except ValueError as exc:
            raise InvalidInput("embeddings", f"must be float32 values in base64: {exc}") from exc
        if codes and (width := ingest.embedder.token_dim // BITS) and len(codes) % width:
            raise InvalidInput("embeddings", f"must have tokens of a multiple of {width} bytes")
        vector = check_vector(values, ingest.embedder.dim, "embeddings")
        text = row.content[item.start : item.stop]
        parts.append(Part(item.start, item.stop, text, GIVEN + item.text_hash, vector, codes))
    return parts


def _not_forgotten(
    store: Store, tenant: str, batch: dict[int, Draft], done: Imported, since: int | None
) -> list[Draft]:
    """Return the drafts that were not forgotten after a moment, and report the others."""
    gone = dict(zip(batch, store.forgotten(tenant, [*batch.values()], since), strict=True))
    done.forgotten += [
        item.row.id if item.named else f"line {number}" for number, item in batch.items() if gone[number]
    ]
    return [item for number, item in batch.items() if not gone[number]]


async def _store(
    core: Core, tenant: str, batch: list[Draft], done: Imported, *, exported: bool, moved: bool
) -> None:
    if not batch:
        return
    free = await core.threads.run(_without_conflicts, core.store, tenant, batch, done, moved)
    write = core.ingest.write if exported else core.write
    try:
        outcomes = await write(tenant, free) if free else []
    except Conflict:  # one of these ids was written in between: settle them one by one
        outcomes = []
        for item in free:
            try:
                outcomes += await write(tenant, [item])
            except Conflict:
                done.conflicts.append(item.row.id)
    done.created += sum(outcome.created for outcome in outcomes)
    done.present += sum(not outcome.created for outcome in outcomes)


def _without_conflicts(
    store: Store, tenant: str, batch: list[Draft], done: Imported, moved: bool
) -> list[Draft]:
    """Return the drafts whose id is free or names the same text. A memory that moves to another scope (`moved`) than it
    has here becomes a copy, unless it is an item: its id is its identity."""
    existing = store.by_id(tenant, [candidate.row.id for candidate in batch if candidate.named])
    free: list[Draft] = []
    keys: dict[str, str] = {}
    for candidate in batch:
        other = existing.get(candidate.row.id)
        if moved and other is not None and candidate.row.kind != ITEM and _elsewhere(candidate.row, other):
            free.append(copy_of(candidate))
            continue
        if other is not None and is_same(candidate.row, other):  # the log and summaries have other keys
            candidate.row = candidate.row._replace(dedup_key=other.dedup_key)
        taken = keys.get(candidate.row.id) if other is None else other.dedup_key
        if candidate.named and taken is not None and taken != candidate.row.dedup_key:
            done.conflicts.append(candidate.row.id)
            continue
        keys[candidate.row.id] = candidate.row.dedup_key
        free.append(candidate)
    if moved:
        link_copies(store, tenant, free)
    _part_versions(store, tenant, [item for item in free if item.row.kind == "fact" and item.named])
    return free


def _part_versions(store: Store, tenant: str, facts: list[Draft]) -> None:
    """Give a fact a key of its own if another one, of the import or stored, has its text and is another version: it
    has another start, or was consolidated into this one."""

    def read(c: Connection) -> dict[str, Record]:
        known = known_texts(c, tenant, facts)
        rows = fetch(c, tenant, [seq for seq, _ in known.values()])
        return {key: rows[seq] for key, (seq, _) in known.items()}

    first = store.db.read(read, tenant)
    for fact in facts:
        other = first.setdefault(fact.row.dedup_key, fact.row)
        parted = start_of(other) != start_of(fact.row) or other.superseded_by == fact.row.id
        if other.id != fact.row.id and parted:
            fact.row = later_version(fact.row)


def _elsewhere(row: Record, other: Record) -> bool:
    """Return True if both have the same text, in two scopes."""
    return row.content_hash == other.content_hash and scope_ids(row) != scope_ids(other)
