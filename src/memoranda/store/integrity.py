"""Stored texts and files are compared with the hashes that they were written with."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from memoranda.errors import DamagedData
from memoranda.store.rows import Record
from memoranda.text.hashing import digest

log = logging.getLogger("memoranda.store")
PIECE = 1 << 20
"""Bytes of a file that are read at once."""
MOST_NAMED = 1_000
"""Ids that are named in the log; others are only counted."""


class Damage:
    """The damage that was found since the start. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._ids: set[str] = set()

    def __len__(self) -> int:
        """The number of damaged texts and files."""
        return len(self._ids)

    def note(self, what: str, id_: str) -> None:
        """Log a damaged text or file when it is found for the first time."""
        with self._lock:
            new = id_ not in self._ids and len(self._ids) < MOST_NAMED
            self._ids |= {id_} if new else set()
        if new:
            log.error("%s %s is not what was written; restore a backup, or delete it", what, id_)

    def intact(self, rows: Iterable[Record]) -> list[Record]:
        """Return the rows whose texts are those that were written; the others are noted."""
        whole = []
        for row in rows:
            if digest(row.content) == row.content_hash:
                whole.append(row)
            else:
                self.note("memory" if row.kind != "chunk" else "chunk", row.id)
        return whole


class Compared(NamedTuple):
    """How many texts or files were compared, and the ids of the damaged ones."""

    total: int
    damaged: list[str]


def check_file(damage: Damage, id_: str, sha256_of_upload: str, path: Path) -> None:
    """Check the bytes of an uploaded file at `path`.

    Raises:
        DamagedData: they are not those that were uploaded.
    """
    with path.open("rb") as opened:
        pieces = iter(lambda: opened.read(PIECE), b"")
        for _ in verified(pieces, sha256_of_upload, lambda: damage.note("file", id_)):
            pass


def verified(pieces: Iterator[bytes], sha256_of_upload: str, note: Callable[[], None]) -> Iterator[bytes]:
    """Yield the pieces of a file. The last one comes only if all of them have the SHA-256 `sha256_of_upload` (hex).

    Raises:
        DamagedData: they have another; `note` is called before.
    """
    state, waiting = sha256(), b""
    for piece in pieces:
        if waiting:
            yield waiting
        state.update(piece)
        waiting = piece
    if state.hexdigest() != sha256_of_upload:
        note()
        raise DamagedData("the stored bytes of this file are not those that were uploaded; upload it again")
    if waiting:
        yield waiting
