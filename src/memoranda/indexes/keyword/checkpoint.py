"""A small file with the revision of an index on disk."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path

import msgspec
from msgspec.structs import asdict


class Checkpoint(msgspec.Struct, frozen=True):
    """Every change up to revision `rev` is in the index beside it, which was built under `stamp`."""

    rev: int
    stamp: str


def read_checkpoint(path: Path) -> Checkpoint | None:
    """Return the checkpoint, or None if the file is missing, damaged or of another format."""
    try:
        head, _, body = path.read_bytes().partition(b"\n")
        if int(head, 16) != zlib.crc32(body):
            return None
        return Checkpoint(**json.loads(body))
    except (OSError, ValueError, TypeError):
        return None


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Replace the file atomically: after a crash it has the old checkpoint or the new one."""
    body = json.dumps(asdict(checkpoint)).encode()
    beside = path.with_suffix(".new")
    with beside.open("wb") as file:
        file.write(b"%08x\n" % zlib.crc32(body) + body)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames and removals inside the folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
