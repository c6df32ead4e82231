"""Where an import reads from: one file, a folder, or a zip file. Nothing is unpacked to disk."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from memoranda.errors import InvalidInput
from memoranda.importers.json_stream import Record, document, elements, lines
from memoranda.importers.values import Item, Skipped
from memoranda.readers.archive import Archive
from memoranda.readers.base import Limits, Unreadable

LIMITS = Limits(parts=500_000, unpacked_bytes=64 << 30)
"""Exports have a file for each image, and gigabytes of conversations."""
HEAD = 10
"""Records by which a format is recognised."""


class Source:
    """The files of a source by name, in order. A name is a path below the source, with `/`.

    Raises:
        InvalidInput: the path is not there or cannot be read.
    """

    def __init__(self, path: Path, fields: Mapping[str, str] | None = None) -> None:
        """`fields` are names of fields that the caller gave, see `mapping`."""
        self.path = path
        self.fields = dict(fields or {})
        self._archive: Archive | None = None
        self._heads: dict[str, list[dict[str, Any]]] = {}
        self.problem: str | None = None
        """The problem of the first file whose head cannot be read."""
        try:
            if path.is_dir():
                self.names = list(_files_below(path))
            elif not path.exists():
                raise InvalidInput(
                    "source", f"{path} cannot be read: it is not there; give the path of an export"
                )
            elif _is_zip(path):
                self._archive = Archive(path, LIMITS)
                self.names = sorted(name for name in self._archive.names if not name.endswith("/"))
            else:
                with path.open("rb"):
                    self.names = [path.name]
        except OSError as exc:
            reason = (exc.strerror or str(exc)).lower()
            raise InvalidInput("source", f"{path} cannot be read: {reason}") from exc
        except Unreadable as exc:
            raise InvalidInput("source", f"{path} {exc}") from exc

    @property
    def name(self) -> str:
        """The name of the folder or zip file, without the suffix of the latter; of one file, that of its folder."""
        path = self.path.resolve()
        if self._archive is not None:
            return path.stem
        return path.name if self.is_folder else path.parent.name

    @property
    def is_folder(self) -> bool:
        """True if the source is a folder."""
        return self.path.is_dir()

    @property
    def only(self) -> list[str]:
        """The name of the file, if the source is one file and not a zip file; else nothing."""
        return [] if self.is_folder or self._archive is not None else self.names

    def ending(self, *suffixes: str) -> list[str]:
        """Return the names of the files that end so, or the one of a source that is one file."""
        return [name for name in self.names if name.endswith(suffixes)] or self.only

    def open(self, name: str) -> IO[bytes]:
        """The bytes of a file as a stream.

        Raises:
            Unreadable: the zip file is damaged here, locked, or unpacks to more than `LIMITS` allow.
            OSError: the file cannot be read.
        """
        if self._archive is not None:
            return self._archive.open(name)
        return (self.path / name if self.is_folder else self.path).open("rb")

    def file(self, name: str) -> Path | None:
        """The path of a file on disk; None in a zip file."""
        if self._archive is not None:
            return None
        return self.path / name if self.is_folder else self.path

    def modified(self, name: str) -> datetime | None:
        """When a file was last changed, where that is known. A zip file does not store the zone; it is taken as UTC."""
        try:
            if self._archive is not None:
                return datetime(*self._archive.names[name].date_time, tzinfo=UTC)
            path = self.path / name if self.is_folder else self.path
            return datetime.fromtimestamp(path.stat().st_mtime, UTC)
        except (ValueError, OSError, OverflowError):
            return None

    def records(self, name: str) -> Iterator[Record]:
        """The values of a JSON file, whether it is an array, has one on each line, or is one. Errors as `open`."""
        with self.open(name) as file:
            start = _start(file)
        if start == b"[":
            with self.open(name) as file:
                yield from elements(file)
            return
        with self.open(name) as file:
            records = lines(file)
            first = next(records, Record(1, None, "is empty"))
            whole = first if first.problem is None else self._document(name)
            if whole.problem is None and first.problem is not None:
                yield whole
                return
            yield first
            yield from records

    def _document(self, name: str) -> Record:
        with self.open(name) as file:
            return document(file)

    def head(self, name: str) -> list[dict[str, Any]]:
        """The first objects of a JSON file, as `records` gives them. Empty for other files."""
        if name not in self._heads:
            try:
                values = (
                    [record.value for record in islice(self.records(name), HEAD)]
                    if self._is_json(name)
                    else []
                )
            except (Unreadable, OSError) as exc:
                self.problem = self.problem or f"{name} {exc}"
                values = []
            self._heads[name] = [each for each in values if isinstance(each, dict)]
        return self._heads[name]

    def is_empty(self, name: str) -> bool:
        """Return True if a file has only white space in its first 4 KiB."""
        with self.open(name) as file:
            return not _start(file)

    def _is_json(self, name: str) -> bool:
        with self.open(name) as file:
            return _start(file) in (b"[", b"{")

    def close(self) -> None:
        """Closes the zip file. Idempotent."""
        if self._archive is not None:
            self._archive.__exit__(None, None, None)

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def each_file(names: Iterable[str], read: Callable[[str], Iterator[Item]]) -> Iterator[Item]:
    """The items that `read` yields of each file; a file that cannot be read to its end is reported and skipped."""
    for name in names:
        try:
            yield from read(name)
        except Unreadable as exc:
            yield Skipped(kind="file", reason="cannot be unpacked", place=f"{name}: {exc}", failed=True)
        except OSError as exc:
            why = (exc.strerror or str(exc)).lower()
            yield Skipped(kind="file", reason="cannot be read", place=f"{name}: {why}", failed=True)


def left_out(source: Source, used: Iterable[str]) -> Iterator[Skipped]:
    """The files of an export with nothing to import."""
    for name in sorted({*source.names} - {*used}):
        yield Skipped(kind="file", reason="has nothing to import", place=name)


def _is_zip(path: Path) -> bool:
    """Return True for a zip file, also for one without its end, as a download that stopped leaves it."""
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04" or zipfile.is_zipfile(path)


def _start(file: IO[bytes]) -> bytes:
    """The first byte of a file that is not white space; empty if there is none in the first 4 KiB."""
    return file.read(4_096).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]


def _files_below(folder: Path) -> Iterator[str]:
    """Regular files below a folder, as paths from it; links are not followed."""
    for root, folders, files in os.walk(folder, followlinks=False):
        folders.sort()
        for name in sorted(files):
            path = Path(root, name)
            if path.is_file() and not path.is_symlink():
                yield path.relative_to(folder).as_posix()
