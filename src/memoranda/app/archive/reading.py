"""An archive, checked before anything of it is stored, then read line by line. Nothing is unpacked to disk."""

from __future__ import annotations

import hashlib
import re
import zipfile
import zlib
from collections.abc import Iterator, Set
from datetime import datetime
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import IO

import msgspec

from memoranda.app.archive.tables import CHUNKS, FILES, FORGOTTEN, MEMORIES, TABLES
from memoranda.app.archive.writing import FORMAT, MANIFEST, Manifest
from memoranda.clock import micros
from memoranda.concurrency.threads import until_cancelled
from memoranda.errors import InvalidInput
from memoranda.memories.transfer import BATCH

MOST_LINE = 64 << 20
"""The most bytes of a line; a longer one is not read into memory."""
MOST_MANIFEST = 64 << 20
PAGE_BYTES = 8 << 20
PIECE = 1 << 18
_FILE = re.compile(r"files/[A-Za-z0-9_-]{1,128}")
_ROWS = {f"rows/{name}.jsonl": name for name in (*(table.name for table in TABLES), CHUNKS, MEMORIES)}
_FORGOTTEN = f"rows/{FORGOTTEN.name}.jsonl"
"""The part that archives of format 1 do not have."""
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, RuntimeError)


class Numbered(msgspec.Struct, frozen=True):
    """A line and its number, from 1."""

    number: int
    raw: bytes


class ArchiveFile:
    """An archive that is open for reading.

    Raises:
        InvalidInput: it cannot be read, is damaged, or has parts that an archive does not have.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except OSError as exc:
            raise InvalidInput(
                "source", f"{path} cannot be read: {(exc.strerror or str(exc)).lower()}"
            ) from exc
        except _DAMAGE as exc:
            raise self._damaged("its list of parts cannot be read, it may be cut short") from exc
        try:
            self._parts = {info.filename: info for info in self._zip.infolist()}
            self.manifest = self._manifest()
            self._check_names()
        except BaseException:
            self._zip.close()
            raise

    def _damaged(self, why: str) -> InvalidInput:
        return InvalidInput("source", f"{self.path} is damaged: {why}; nothing was restored")

    def _manifest(self) -> Manifest:
        if MANIFEST not in self._parts:
            raise InvalidInput("source", f"{self.path} is no archive of Memoranda: it has no {MANIFEST}")
        raw = b"".join(self._pieces(MANIFEST, MOST_MANIFEST))
        try:
            manifest = msgspec.json.decode(raw, type=Manifest)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            raise self._damaged(f"{MANIFEST}: {exc}") from exc
        if manifest.memoranda_archive > FORMAT:
            raise InvalidInput(
                "source",
                f"{self.path} has format {manifest.memoranda_archive}, this version reads {FORMAT}",
            )
        return manifest

    def _check_names(self) -> None:
        if len(self._parts) != len(self._zip.infolist()):
            raise self._damaged("two of its parts have one name")
        wanted = {f"rows/{name}.jsonl" for name in self.manifest.tables}
        for name in self._parts:
            if name != MANIFEST and name not in wanted & _ROWS.keys() and not _FILE.fullmatch(name):
                raise self._damaged(f"it has a part that does not belong in an archive: {name[:200]!r}")
        for name in sorted(self._row_parts() - (self._parts.keys() & wanted)):
            raise self._damaged(f"it has no {name}")

    def _row_parts(self) -> Set[str]:
        """Return the parts with rows that an archive of this format has."""
        return _ROWS.keys() if self.manifest.memoranda_archive > 1 else _ROWS.keys() - {_FORGOTTEN}

    @property
    def created_at(self) -> int:
        """When it was written. Microseconds since 1970.

        Raises:
            InvalidInput: the manifest has no such moment.
        """
        try:
            return micros(datetime.fromisoformat(self.manifest.created_at))
        except ValueError as exc:
            raise self._damaged(f"{MANIFEST}: created_at is no date") from exc

    def check(self, stopped: Event) -> None:
        """Read the whole archive once and compare it with its checksums.

        Raises:
            CancelledError: `stopped` is set.
            InvalidInput: a part is damaged.
        """
        for name in sorted(self._row_parts()):
            member = self.manifest.tables[_ROWS[name]]
            self._check_part(stopped, name, member.bytes, member.sha256)
        known = set()
        for line in self.lines(FILES.name):
            try:
                row = FILES.decoder.decode(line.raw)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue  # the restore reports it
            if row.id not in self.manifest.missing:
                known.add(f"files/{row.id}")
                self._check_part(stopped, f"files/{row.id}", row.bytes, row.sha256)
        for name in self._parts.keys() - known - _ROWS.keys() - {MANIFEST}:
            raise self._damaged(f"{name} belongs to no file")

    def _check_part(self, stopped: Event, name: str, size: int, sha256: str) -> None:
        if name not in self._parts:
            raise self._damaged(f"it has no {name}")
        digest, read = hashlib.sha256(), 0
        for piece in until_cancelled(stopped, self._pieces(name, size)):
            digest.update(piece)
            read += len(piece)
        if read != size or digest.hexdigest() != sha256:
            raise self._damaged(f"{name} is not what was written")

    def lines(self, table: str) -> Iterator[Numbered]:
        """Yield the lines of a table; none of one that its format does not have."""
        number = 0
        if f"rows/{table}.jsonl" not in self._row_parts():
            return
        try:
            with self._zip.open(self._parts[f"rows/{table}.jsonl"]) as member:
                while raw := member.readline(MOST_LINE + 1):
                    number += 1
                    if len(raw) > MOST_LINE:
                        raise self._damaged(f"line {number} of {table} is longer than {MOST_LINE >> 20} MiB")
                    yield Numbered(number, raw)
        except _DAMAGE as exc:
            raise self._damaged(f"rows/{table}.jsonl cannot be unpacked: {exc}") from exc

    def pages(self, table: str) -> Iterator[list[Numbered]]:
        """Yield the lines of a table, some at a time."""
        page: list[Numbered] = []
        size = 0
        for line in self.lines(table):
            page.append(line)
            size += len(line.raw)
            if len(page) == BATCH or size > PAGE_BYTES:
                yield page
                page, size = [], 0
        if page:
            yield page

    def file(self, id_: str, size: int) -> Iterator[bytes]:
        """Yield the bytes of a file, at most `size` and one piece."""
        return self._pieces(f"files/{id_}", size)

    def _pieces(self, name: str, most: int) -> Iterator[bytes]:
        """Yield the bytes of a part; not much more than `most`, whatever size the zip file declares."""
        read = 0
        try:
            with self._open(name) as member:
                while read <= most and (piece := member.read(PIECE)):
                    read += len(piece)
                    yield piece
        except _DAMAGE as exc:
            raise self._damaged(f"{name} cannot be unpacked: {exc}") from exc

    def _open(self, name: str) -> IO[bytes]:
        return self._zip.open(self._parts[name])

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._zip.close()

    def __enter__(self) -> ArchiveFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
