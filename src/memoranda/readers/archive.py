"""Members of a zip file, read within limits. Nothing is written to disk, so names are only names."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path
from types import TracebackType
from typing import IO

from memoranda.readers.base import Limits, Unreadable

LOCKED = "is locked with a password; save it without one"
MOST_RATIO = 1_000
"""A member of more than `SMALL` bytes that unpacks to more than this many times its size is a bomb: deflate reaches
1 032, and text and sheets stay well below."""
SMALL = 10 << 20

_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    OSError,
    UnicodeDecodeError,
    ValueError,
)


class Archive:
    """A zip file open for reading. Every byte that is unpacked counts, over all members together.

    Raises `Unreadable` for a file that is no zip, is damaged, is encrypted, or unpacks to more than `limits` allow.
    """

    def __init__(self, path: Path, limits: Limits) -> None:
        try:
            self._zip = zipfile.ZipFile(path)
        except _DAMAGE as exc:
            raise Unreadable("invalid_file", _no_archive(path)) from exc
        self.names = {info.filename.replace("\\", "/").lstrip("/"): info for info in self._zip.infolist()}
        self._folded = {name.casefold(): name for name in self.names}
        self._limits = limits
        self._left = limits.unpacked_bytes
        if len(self._zip.infolist()) > limits.parts:
            self._zip.close()
            raise Unreadable("invalid_file", f"has more than {limits.parts:,} parts")

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    def __contains__(self, name: str) -> bool:
        return name.casefold() in self._folded

    def read(self, name: str) -> bytes:
        """Return the bytes of a member, whose name may differ in case; KeyError without one."""
        with self.open(name) as member:
            return member.read()

    def open(self, name: str) -> IO[bytes]:
        """Return a member as a stream, unpacked while it is read."""
        info = self.names[self._folded[name.casefold()]]
        if info.flag_bits & 1:
            raise Unreadable("invalid_file", LOCKED)
        if info.file_size > self._left or info.file_size > max(SMALL, info.compress_size * MOST_RATIO):
            raise self.too_large()
        try:
            return io.BufferedReader(_Counted(self, self._zip.open(info), info.filename), 1 << 16)
        except _DAMAGE as exc:
            raise _damaged(info.filename) from exc

    def spend(self, size: int) -> None:
        """Count bytes that were unpacked."""
        self._left -= size
        if self._left < 0:
            raise self.too_large()

    def too_large(self) -> Unreadable:
        size = self._limits.unpacked_bytes >> 20
        return Unreadable("invalid_file", f"unpacks to more than {size:,} MB; split it")


class _Counted(io.RawIOBase):
    """A member whose bytes are counted as they are read, whatever size the archive's directory declares."""

    def __init__(self, archive: Archive, member: IO[bytes], name: str) -> None:
        self._archive = archive
        self._member = member
        self._name = name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            block = self._member.read(len(buffer))
        except _DAMAGE as exc:
            raise _damaged(self._name) from exc
        self._archive.spend(len(block))
        buffer[: len(block)] = block
        return len(block)

    def close(self) -> None:
        self._member.close()
        super().close()


def _damaged(name: str) -> Unreadable:
    return Unreadable("invalid_file", f"is damaged: its part {name} cannot be unpacked")


def _no_archive(path: Path) -> str:
    """Return the error for a file that should be a zip: office programs store locked documents in another container."""
    with path.open("rb") as file:
        start = file.read(8)
    if start == b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":
        return LOCKED
    if start.startswith(b"PK"):
        return "is damaged: its directory of parts cannot be read, it may be cut short"
    return "is damaged, or of another format than its name says: it is no zip archive"
