"""Memories as a bundle of Portable Memory: a folder that other systems read, see `importers.portable_memory`."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import msgspec

from memoranda.errors import InvalidInput, StorageError
from memoranda.importers.bundle_records import OWN
from memoranda.importers.portable_memory import ITEMS, MANIFEST, SUMS
from memoranda.memories.transfer import Header
from memoranda.store.rows import ITEM, RESERVED
from memoranda.text.stored import compact_json
from memoranda.types import SCOPE_FIELDS, Memory

FORMAT = "1.1.0"
SPECIFICATION = "https://github.com/MacPaw/portable-memory/blob/main/Spec/portable-memory-spec.md"
SUMMARY = 120
"""Characters of the text that are its summary."""
SOURCES = {"message": "chat", "qa_turn": "chat", "document": "document"}
"""What an episode of a kind comes from; any other is a note."""
KEPT = (
    "kind",
    *SCOPE_FIELDS,
    "role",
    "tags",
    "importance",
    "confidence",
    "valid_from",
    "invalid_at",
    "superseded_by",
    "source_refs",
    "occurred_at",
    "created_at",
    "updated_at",
)
"""The fields of a memory that its record has under `memoranda`, beside the metadata."""


class Bundled(msgspec.Struct, kw_only=True):
    """What a bundle has: the numbers of facts, and of other memories as episodes; and how many memories were left out
    because they are archived, of the kind `item`, or facts whose change was undone, which were valid at no time."""

    episodes: int = 0
    facts: int = 0
    archived: int = 0
    items: int = 0
    undone: int = 0


def check_free(path: Path) -> None:
    """Check that no file and no folder with content is there.

    Raises:
        InvalidInput: one is.
    """
    if os.path.lexists(path) and not (path.is_dir() and not any(path.iterdir())):
        raise InvalidInput("output", f"{path} is there already; give another name, or remove it first")


def write_bundle(path: Path, lines: Iterable[bytes]) -> Bundled:
    """Write the lines of an export, see `memories.transfer`, to a folder beside `path` and move it there once complete.

    Raises:
        InvalidInput: a file, or a folder with content, is there.
        StorageError: the folder cannot be written.
        Whatever `lines` raises; nothing is written then.
    """
    check_free(path)
    with _new_folder(path) as folder:
        return _Writer(folder, path).write(lines)


@contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder that becomes `path` if nothing is raised."""
    with _writes(path):
        folder = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        yield folder
        with _writes(path):
            if path.is_dir():
                path.rmdir()
            folder.rename(path)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


@contextmanager
def _writes(path: Path) -> Iterator[None]:
    """Raise a StorageError where the bundle at `path` cannot be written."""
    try:
        yield
    except OSError as exc:
        fix = f"the folder {path.parent} must exist and be writable; create it, or give another path"
        raise StorageError(f"{path} could not be written ({exc.strerror}): {fix}") from exc


class _Stream:
    """A file of records with its size and sum."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._sum = hashlib.sha256()
        self.bytes = 0
        self.count = 0

    def write(self, record: dict[str, Any]) -> None:
        line = _encoded(record) + b"\n"
        self._file.write(line)
        self._sum.update(line)
        self.bytes += len(line)
        self.count += 1

    def close(self) -> None:
        """Writes the rest to the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    @property
    def sha256(self) -> str:
        """The sum of what was written."""
        return self._sum.hexdigest()


class _Writer:
    """Writes memories as records, and the manifest over them, to a folder that becomes `path`."""

    def __init__(self, folder: Path, path: Path) -> None:
        self._folder = folder
        self._path = path
        self._streams: dict[str, _Stream] = {}
        self._contexts: dict[str, datetime] = {}
        self._created_at = datetime.now(UTC)
        self._times: list[datetime] = []
        """The first and the last moment of an episode."""

    def write(self, lines: Iterable[bytes]) -> Bundled:
        """Write the whole bundle."""
        done = Bundled()
        with _writes(self._path):
            (self._folder / ITEMS).mkdir()
        try:
            rows = iter(lines)
            self._created_at = msgspec.json.decode(next(rows), type=Header).created_at or self._created_at
            for raw in rows:
                memory = msgspec.json.decode(raw, type=Memory)
                with _writes(self._path):
                    self._add(memory, done)
            with _writes(self._path):
                self._end()
        finally:
            with _writes(self._path):
                for stream in self._streams.values():
                    stream.close()
        return done

    def _add(self, memory: Memory, done: Bundled) -> None:
        if memory.kind == ITEM:
            done.items += 1
        elif memory.archived_at is not None:
            done.archived += 1
        elif memory.metadata.get("undone") is True:
            done.undone += 1
        elif memory.kind == "fact":
            self._stream("fact").write(_fact(memory))
            done.facts += 1
        else:
            self._stream("episode").write(_episode(memory))
            done.episodes += 1
            times = [memory.occurred_at, *self._times]
            self._times = [min(times), max(times)]
            if scope := _scope(memory):
                self._contexts.setdefault(scope, memory.created_at)

    def _stream(self, kind: str) -> _Stream:
        if kind not in self._streams:
            self._streams[kind] = _Stream((self._folder / ITEMS / f"{kind}.jsonl").open("wb"))
        return self._streams[kind]

    def _end(self) -> None:
        """Write the contexts, the sums and the manifest."""
        for scope, since in self._contexts.items():
            self._stream("context").write(
                {"id": scope, "label": scope, "archived": False, "createdAt": _stamp(since)}
            )
        streams = {f"{ITEMS}/{kind}.jsonl": each for kind, each in sorted(self._streams.items())}
        sums = "".join(f"{each.sha256}  {file}\n" for file, each in streams.items()).encode()
        (self._folder / SUMS).write_bytes(sums)
        manifest = {
            "format": FORMAT,
            "specURL": SPECIFICATION,
            "generator": f"memoranda/{version('memoranda')}",
            "conformanceLevel": "L0",
            "createdAt": _stamp(self._created_at),
            "exportMode": "full",
            "schemaVersion": 1,
            "embeddingModel": "",
            "embeddingDim": 0,
            "embeddingsIncluded": False,
            "capabilities": ["bitemporal", "ext"],
            "counts": {kind: each.count for kind, each in self._streams.items()},
            "files": [
                {"path": file, "sha256": each.sha256, "bytes": each.bytes} for file, each in streams.items()
            ],
            "bundleDigest": hashlib.sha256(sums).hexdigest(),
        }
        if self._times:
            manifest["coverage"] = dict(zip(("from", "to"), map(_stamp, self._times), strict=True))
        if self._contexts:
            manifest["scopes"] = sorted(self._contexts)
        (self._folder / MANIFEST).write_bytes(_encoded(manifest))


def _episode(memory: Memory) -> dict[str, Any]:
    record = {
        "id": memory.id,
        "eventTime": _stamp(memory.occurred_at),
        "mentionTime": _stamp(memory.occurred_at),
        "ingestionTime": _stamp(memory.created_at),
        "sourceType": SOURCES.get(memory.kind, "note"),
        "actors": [each for each in (memory.user_id, memory.agent_id) if each],
        "summary": memory.content.strip()[:SUMMARY],
        "details": memory.content,
        "sensitivity": "unspecified",
        "metadata": {
            key: each if isinstance(each, str) else compact_json(each)
            for key, each in memory.metadata.items()
        },
        "categories": memory.tags,
        "importance": _importance(memory),
        "confidence": memory.confidence,
        "lifecycleState": "HOT",
        "extractionState": "done",
        "accessCount": memory.access_count,
        "pinned": False,
        "vaultRefs": [],
        "contextID": _scope(memory),
        "lastAccessed": _maybe(memory.last_accessed_at),
        "expirationDate": _maybe(memory.invalid_at),
        "speaker": memory.role,
        OWN: _own(memory),
    }
    return {key: each for key, each in record.items() if each is not None}


def _fact(memory: Memory) -> dict[str, Any]:
    record = {
        "id": memory.id,
        "episodeID": next(iter(memory.source_refs), ""),
        "subject": memory.user_id or memory.agent_id or "",
        "predicate": "states",
        "object": memory.content,
        "text": memory.content,
        "tValidFrom": _stamp(memory.valid_from or memory.occurred_at),
        "tValidTo": _maybe(memory.invalid_at),
        "supersededBy": memory.superseded_by,
        "confidence": memory.confidence,
        "importance": _importance(memory),
        "createdAt": _stamp(memory.created_at),
        "eventTime": _stamp(memory.occurred_at),
        OWN: _own(memory),
    }
    return {key: each for key, each in record.items() if each is not None}


def _own(memory: Memory) -> dict[str, Any]:
    """The fields of a memory as they are, without the metadata in which facts name their versions by id."""
    own = {key: each for key in KEPT if (each := getattr(memory, key)) not in (None, [])}
    metadata = {key: each for key, each in memory.metadata.items() if key not in RESERVED}
    return own | ({"metadata": metadata} if metadata else {})


def _scope(memory: Memory) -> str | None:
    """The narrowest scope of a memory; None for the global one."""
    ids = ((field, getattr(memory, field)) for field in SCOPE_FIELDS)
    return next((f"{field.removesuffix('_id')}:{id_}" for field, id_ in ids if id_ is not None), None)


def _importance(memory: Memory) -> float:
    """The importance from 0 to 1; .5 is that of most memories."""
    return 0.5 + memory.importance / 2_000


def _stamp(value: datetime) -> str:
    """The moment in whole seconds, with its offset from UTC, as the format has it."""
    return value.isoformat(timespec="seconds").replace("+00:00", "Z")


def _maybe(value: datetime | None) -> str | None:
    return None if value is None else _stamp(value)


def _encoded(value: dict[str, Any]) -> bytes:
    return msgspec.json.encode(value, order="sorted")
