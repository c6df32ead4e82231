"""Files and names that are on the disk when a call returns."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from pathlib import Path

Buffer = bytes | memoryview


def write_file(path: Path, chunks: Iterable[Buffer]) -> tuple[str, int, int]:
    """Replace the file by the chunks in one step; return its name, size and CRC-32. After a crash it is the old file or
    the new one; once `sync_folder` returned, the new one."""
    size = crc = 0
    partial = path.with_name(f"{path.name}.tmp")
    with partial.open("wb") as file:
        for chunk in chunks:
            size += file.write(chunk)
            crc = zlib.crc32(chunk, crc)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    return path.name, size, crc


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: what was created, renamed or removed there."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
