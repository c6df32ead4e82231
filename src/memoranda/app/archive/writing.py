"""Writes a tenant's rows and files as one zip file. The rows are one snapshot, read a page at a time."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Event
from typing import IO, Any

import msgspec

from memoranda.app.archive.tables import AGENTS, CHUNKS, CONVERSATIONS, MEMORIES, TABLES, Table
from memoranda.clock import moment, now_micros
from memoranda.concurrency.threads import until_cancelled
from memoranda.errors import NotFound
from memoranda.memories.export_files import replacing
from memoranda.memories.transfer import BATCH, archived_line, encoded_vectors
from memoranda.responses.declared import without_secrets
from memoranda.storage.sql.base import Connection
from memoranda.store.access import MEMORIES as EVERY_MEMORY
from memoranda.store.core import Core
from memoranda.store.listing import page
from memoranda.store.rows import COLUMNS, Record

FORMAT = 2
MANIFEST = "manifest.json"
STAMP = (1980, 1, 1, 0, 0, 0)
"""The date of every member: archives of the same rows have the same bytes, except for the date of the manifest."""


class Member(msgspec.Struct, kw_only=True):
    """A member with rows: how many lines and bytes it has, and their SHA-256."""

    rows: int
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, kw_only=True):
    """What is in an archive. `model` and `dim` are those of the vectors, if it has some; `missing` are the ids of
    files whose bytes were deleted while it was written."""

    memoranda_archive: int
    created_at: str
    model: str | None = None
    dim: int | None = None
    tables: dict[str, Member]
    missing: list[str] = []


class Exported(msgspec.Struct, kw_only=True):
    """What an archive has: rows by table, the bytes of the file, and the files whose bytes were deleted meanwhile."""

    rows: dict[str, int]
    bytes: int
    missing: list[str] = []


def write_archive(stopped: Event, core: Core, tenant: str, path: Path, *, vectors: bool) -> Exported:
    """Write the archive of a tenant to a temporary file beside `path` and move it there once complete. Blocks.

    Raises:
        CancelledError: `stopped` is set; an older file stays.
        StorageError: the file cannot be written, or the rows cannot be read; an older file stays.
    """
    with replacing(path) as file:
        manifest = _Writer(stopped, core, tenant, file, vectors).write()
    return _summary(manifest, path)


def exported(path: Path) -> Exported:
    """Return the summary of an archive that a server has written."""
    with zipfile.ZipFile(path) as archive:
        return _summary(msgspec.json.decode(archive.read(MANIFEST), type=Manifest), path)


def _summary(manifest: Manifest, path: Path) -> Exported:
    rows = {name: member.rows for name, member in manifest.tables.items()}
    return Exported(rows=rows, bytes=path.stat().st_size, missing=manifest.missing)


class _Writer:
    def __init__(self, stopped: Event, core: Core, tenant: str, file: IO[bytes], vectors: bool) -> None:
        self._stopped = stopped
        self._core = core
        self._tenant = tenant
        self._file = file
        self._vectors = vectors

    def write(self) -> Manifest:
        def snapshot(c: Connection) -> tuple[zipfile.ZipFile, Manifest, list[str]]:
            """Return a snapshot; start again if the database connection is lost."""
            self._file.seek(0)
            self._file.truncate()
            archive = zipfile.ZipFile(self._file, "w", zipfile.ZIP_DEFLATED)
            try:
                return archive, self._rows(c, archive), _file_ids(c, self._tenant)
            except BaseException:
                archive.close()  # else it would write its end into the next attempt
                raise

        archive, manifest, files = self._core.store.db.read(snapshot, self._tenant)
        with archive:
            for id_ in files:
                if not self._bytes(archive, id_):
                    manifest.missing.append(id_)
            archive.writestr(_info(MANIFEST), msgspec.json.encode(manifest))
        return manifest

    def _rows(self, c: Connection, archive: zipfile.ZipFile) -> Manifest:
        store = self._core.store
        manifest = Manifest(memoranda_archive=FORMAT, created_at=moment(now_micros()).isoformat(), tables={})
        if self._vectors:
            manifest.model, manifest.dim = store.model, store.index.dim
        for table in TABLES:
            manifest.tables[table.name] = self._member(archive, table.name, _lines(c, self._tenant, table))
        manifest.tables[CHUNKS] = self._member(archive, CHUNKS, self._chunks(c))
        manifest.tables[MEMORIES] = self._member(archive, MEMORIES, self._memories(c))
        return manifest

    def _member(self, archive: zipfile.ZipFile, name: str, lines: Iterable[bytes]) -> Member:
        part, digest = Member(rows=0, bytes=0, sha256=""), hashlib.sha256()
        with archive.open(_info(f"rows/{name}.jsonl"), "w", force_zip64=True) as member:
            for line in until_cancelled(self._stopped, lines):
                member.write(line)
                member.write(b"\n")
                digest.update(line + b"\n")
                part.rows += 1
                part.bytes += len(line) + 1
        part.sha256 = digest.hexdigest()
        return part

    def _memories(self, c: Connection) -> Iterator[bytes]:
        after: int | None = None
        while rows := page(c, self._tenant, EVERY_MEMORY, limit=BATCH, after=after, descending=False):
            vectors = self._vectors_of(c, rows)
            for row in rows:
                yield msgspec.json.encode(
                    archived_line(row, vectors.get(row.seq, []) if self._vectors else None)
                )
            after = rows[-1].seq

    def _chunks(self, c: Connection) -> Iterator[bytes]:
        places = ("store_id", "file_id", "idx", "start", "stop", "tokens", "page", "last_page", "heading")
        columns = ", ".join(f"{'s' if name.endswith('_id') else 'c'}.{name}" for name in places)
        select = (
            f"SELECT c.attached, {columns}, {', '.join('m.' + name for name in COLUMNS.split(', '))} FROM chunks c"
            " JOIN store_files s ON s.tenant_id = c.tenant_id AND s.seq = c.attached"
            " JOIN memories m ON m.tenant_id = c.tenant_id AND m.seq = c.seq"
            " WHERE c.tenant_id = ? AND s.status = 'completed' AND s.writing = 0 AND (c.attached, c.idx) > (?, ?)"
            " ORDER BY c.attached, c.idx LIMIT ?"
        )
        at = (-1, -1)
        while rows := c.select(select, [self._tenant, *at, BATCH]):
            records = [Record._make(row[1 + len(places) :]) for row in rows]
            vectors = self._vectors_of(c, records)
            for row, record in zip(rows, records, strict=True):
                line: dict[str, Any] = dict(zip(places, row[1:], strict=False))
                line |= {
                    name: getattr(record, name)
                    for name in ("id", "header", "content", "occurred_at", "created_at", "updated_at")
                }
                if self._vectors:
                    line["embeddings"] = vectors.get(record.seq, [])
                yield msgspec.json.encode(line)
            at = (rows[-1][0], rows[-1][3])

    def _vectors_of(self, c: Connection, rows: list[Record]) -> dict[int, Any]:
        return encoded_vectors(c, self._core.store, self._tenant, rows) if self._vectors else {}

    def _bytes(self, archive: zipfile.ZipFile, id_: str) -> bool:
        """Write the bytes of a file; return False if they are missing."""
        try:
            pieces = until_cancelled(self._stopped, self._core.blobs.read(self._tenant, id_))
            first = next(pieces, b"")
        except NotFound:
            return False
        try:
            with archive.open(_info(f"files/{id_}", zipfile.ZIP_STORED), "w", force_zip64=True) as member:
                member.write(first)
                for piece in pieces:
                    member.write(piece)
        except NotFound:
            return False
        return True


def _info(name: str, compression: int = zipfile.ZIP_DEFLATED) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, STAMP)
    info.compress_type = compression
    info.external_attr = 0o600 << 16
    return info


def _lines(c: Connection, tenant: str, table: Table) -> Iterator[bytes]:
    expressions = [f"t.{name}" for name in table.columns] + [
        f"{sql} AS {name}" for name, (_, sql) in table.references.items()
    ]
    order = ", ".join(f"t.{name}" for name in table.order)
    where = f" AND {table.where}" if table.where else ""
    select = f"SELECT {order}, {', '.join(expressions)} FROM {table.name} t WHERE t.tenant_id = ?{where}"
    beyond = f" AND ({order}) > ({', '.join('?' * len(table.order))})"
    after: list[Any] = []
    while rows := c.select(
        f"{select}{beyond if after else ''} ORDER BY {order} LIMIT ?", [tenant, *after, BATCH]
    ):
        for row in rows:
            fields = dict(zip(table.fields, row[len(table.order) :], strict=True))
            if table is CONVERSATIONS and fields["summary"] is not None:
                fields["summary"] = _summary_with_item(c, tenant, fields["id"], fields["summary"])
            if table is AGENTS:
                fields["body"] = _without_credentials(fields["body"])
            yield _line(table, fields)
        after = list(rows[-1][: len(table.order)])


def _line(table: Table, fields: dict[str, Any]) -> bytes:
    for name, kind in table.fields.items():
        if fields[name] is not None and kind.removesuffix("?") in ("object", "array"):
            fields[name] = msgspec.Raw(fields[name].encode())
    return msgspec.json.encode(fields)


def _summary_with_item(c: Connection, tenant: str, conversation: str, summary: str) -> str:
    """Return the summary of a conversation with the id of the last item that it covers, instead of its number."""
    fields = msgspec.json.decode(summary)
    last = c.select(
        "SELECT id FROM conversation_items WHERE tenant_id = ? AND conversation_id = ? AND seq <= ?"
        " ORDER BY seq DESC LIMIT 1",
        [tenant, conversation, fields.pop("seq")],
    )
    return msgspec.json.encode(fields | {"item": last[0][0] if last else None}).decode()


def _without_credentials(profile: str) -> str:
    """Return an agent profile as it is shown: credentials for its MCP servers are masked."""
    fields = msgspec.json.decode(profile)
    shown = fields | {"tools": without_secrets(fields["tools"])} if fields.get("tools") else fields
    return profile if shown == fields else msgspec.json.encode(shown).decode()


def _file_ids(c: Connection, tenant: str) -> list[str]:
    return [
        str(id_) for (id_,) in c.select("SELECT id FROM files WHERE tenant_id = ? ORDER BY seq", [tenant])
    ]
