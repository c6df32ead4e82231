"""The files of a tantivy index, read without tantivy: list them, verify checksums, check the writer's lock, and a
small file with the revision of the index."""

from __future__ import annotations

import json
import os
import re
import sys
import zlib
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict

from memoranda.storage.durable import sync_folder, write_file

if sys.platform != "win32":
    import fcntl

PARTS = ("term", "idx", "pos", "fast", "fieldnorm", "store")
FOOTER_MAGIC = 1337
CHUNK = 1 << 20
_SEGMENT_FILE = re.compile(r"[0-9a-f]{32}\.[\w.]+")
"""The name of a file of a segment."""


def listed_segments(path: Path) -> list[dict[str, Any]]:
    """The segments that the index's `meta.json` names, in the order searchers number them."""
    segments: list[dict[str, Any]] = json.loads((path / "meta.json").read_bytes())["segments"]
    return segments


def alive(segment: dict[str, Any]) -> int:
    """Return the number of documents of the segment that are not deleted."""
    deletes = segment["deletes"]
    return int(segment["max_doc"]) - (int(deletes["num_deleted_docs"]) if deletes else 0)


def remove_unnamed(path: Path, *, deletes_only: bool) -> None:
    """Remove the files of segments that `meta.json` does not name, which a process that was killed between two files
    has left; with `deletes_only` only lists of deleted documents, while other files may be written. A writer that makes
    a file of the same name again cannot commit. No writer may be open."""
    named = set()
    for segment in listed_segments(path):
        name = segment["segment_id"].replace("-", "")
        named |= {f"{name}.{part}" for part in PARTS}
        if segment["deletes"]:
            named.add(f"{name}.{segment['deletes']['opstamp']}.del")
    for file in path.iterdir():
        ours = _SEGMENT_FILE.fullmatch(file.name) and (file.suffix == ".del" or not deletes_only)
        if ours and file.name not in named:
            file.unlink(missing_ok=True)


def check_unlocked(path: Path) -> None:
    """Raise BlockingIOError if another process writes the index: its files may look damaged."""
    lock = path / ".tantivy-writer.lock"
    if sys.platform != "win32" and lock.exists():
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def damage(path: Path) -> str | None:
    """Return the damage of the index files, by the checksums in their footers; None if there is none."""
    try:
        for segment in listed_segments(path):
            name = segment["segment_id"].replace("-", "")
            parts = [f"{name}.{part}" for part in PARTS]
            if segment["deletes"]:
                parts.append(f"{name}.{segment['deletes']['opstamp']}.del")
            for part in parts:
                if not _sound(path / part):
                    return f"{part} is damaged"
    except (OSError, ValueError, KeyError, TypeError) as exc:
        return f"{type(exc).__name__}: {exc}"
    return None


def _sound(path: Path) -> bool:
    """Return True if the body of a tantivy file has the CRC in its footer: body, JSON, its length, magic."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END) - 8
        file.seek(max(0, end))
        length, magic = (int.from_bytes(file.read(4), "little") for _ in range(2))
        start = end - length
        if magic != FOOTER_MAGIC or start < 0:
            return False
        file.seek(start)
        footer = json.loads(file.read(length))
        file.seek(0)
        crc = 0
        for at in range(0, start, CHUNK):
            crc = zlib.crc32(file.read(min(CHUNK, start - at)), crc)
    return bool(footer["crc"] == crc)


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
