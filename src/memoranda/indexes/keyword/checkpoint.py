"""A small file with the revision of an index on disk."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import msgspec
from msgspec.structs import asdict

from memoranda.storage.durable import sync_folder, write_file


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
    write_file(path, [b"%08x\n" % zlib.crc32(body), body])
    sync_folder(path.parent)
