"""Methods of memories that are no operations: they stream, poll, or are written on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from typing_extensions import Unpack

from memoranda import errors
from memoranda.client.wire import Wire, query_of
from memoranda.memories.export_files import read_lines, write_file
from memoranda.memories.memories import Memories
from memoranda.memories.operations import AT, JOBS
from memoranda.memories.transfer import Imported
from memoranda.providers.embeddings.base import Embedded, Task
from memoranda.store.operations import segment
from memoranda.types import Job, SelectionFields

PART = 4 << 20
"""Bytes of an import sent in one request."""


class _Vector(msgspec.Struct):
    """One embedding: float32, little-endian, in base64."""

    embedding: bytes


class _Embeddings(msgspec.Struct):
    """The answer to texts."""

    data: list[_Vector]
    usage: dict[str, int]


def embed(wire: Wire, texts: Sequence[str], task: Task = "document") -> Embedded:
    """See `Memories.embed`."""
    body = {"input": list(texts), "input_type": task, "encoding_format": "base64"}
    try:
        answer = wire.call("POST", "/v1/embeddings", body=body)
    except errors.InvalidInput as exc:
        says = str(exc).removeprefix(f"{exc.field}: ")
        raise type(exc)(exc.field.replace("input", "texts", 1), says) from exc
    decoded = msgspec.json.decode(answer, type=_Embeddings)
    vectors = np.stack([np.frombuffer(vector.embedding, "<f4") for vector in decoded.data])
    return Embedded(vectors, decoded.usage["total_tokens"])


def stats(wire: Wire, *, scope: str | None = None) -> dict[str, Any]:
    """See `Memories.stats`."""
    answer = wire.call("GET", f"{AT}/stats", query=query_of({"scope": scope}))
    counts: dict[str, Any] = msgspec.json.decode(answer)
    del counts["object"]
    return counts


def export(wire: Wire, *, vectors: bool = False, **fields: Unpack[SelectionFields]) -> Iterator[bytes]:
    """See `Memories.export`."""
    rest = b""
    for piece in wire.pieces("POST", f"{AT}/export", body={"vectors": vectors, **fields}):
        *lines, rest = (rest + piece).split(b"\n")
        yield from (line + b"\n" for line in lines)


def export_to(
    wire: Wire, path: str | Path, *, vectors: bool = False, **fields: Unpack[SelectionFields]
) -> int:
    """See `Memories.export_to`; the file is on this machine."""
    return write_file(Path(path), export(wire, vectors=vectors, **fields))


def import_from(
    wire: Wire,
    source: str | Path | Iterable[bytes],
    *,
    scope: str | None = None,
    include_forgotten: bool = False,
) -> Imported:
    """See `Memories.import_from`; sent in parts, so that no file is too large."""
    query = {} if scope is None else {"scope": scope}
    query |= {"include_forgotten": "true"} if include_forgotten else {}
    total = Imported()
    for shift, part in _parts(read_lines(source)):
        done = _import_part(wire, part, query, shift)
        total.read += done.read
        total.created += done.created
        total.present += done.present
        total.conflicts += done.conflicts
        total.forgotten += done.forgotten
    return total


def _import_part(wire: Wire, part: bytes, query: dict[str, str], shift: int) -> Imported:
    """Send one part of an import; errors name a line by its number in the whole import."""
    try:
        return msgspec.json.decode(wire.call("POST", f"{AT}/import", raw=part, query=query), type=Imported)
    except errors.InvalidInput as exc:
        name, _, number = exc.field.partition(" ")
        if name != "line" or not number.isdecimal():
            raise
        says = str(exc).removeprefix(f"{exc.field}: ")
        raise errors.InvalidInput(f"line {int(number) + shift}", says) from exc


def wait(
    wire: Wire, id: str, *, every: float = 0.25, on_change: Callable[[Job], None] = lambda job: None
) -> Job:
    """Poll a job `every` so many seconds and return it once it has ended; `on_change` gets each earlier state."""
    path = f"{JOBS}/{segment(id)}"
    while (job := msgspec.json.decode(wire.call("GET", path), type=Job)).state in ("queued", "running"):
        on_change(job)
        time.sleep(every)
    return job


WRITTEN: Mapping[Callable[..., Any], Callable[..., Any]] = {
    Memories.embed: embed,
    Memories.stats: stats,
    Memories.export: export,
    Memories.export_to: export_to,
    Memories.import_from: import_from,
    Memories.wait: wait,
}


def _parts(lines: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    """An import in parts of about `PART` bytes. Each begins with the header, if there is one, and comes with the offset
    from a line's number in the part to its number in the whole import."""
    first = next(lines, b"")
    header = [first] if b'"memoranda_export"' in first[:200] else []
    batch, size, sent, shift = [first], len(first), 0, 0
    for line in lines:
        if size + len(line) > PART and len(batch) > len(header):
            yield shift, _joined(batch)
            sent += len(batch) - (len(header) if shift else 0)
            batch, size, shift = [*header], 0, sent - len(header)
        batch.append(line)
        size += len(line)
    yield shift, _joined(batch)


def _joined(lines: Sequence[bytes]) -> bytes:
    return b"\n".join(line.rstrip(b"\n") for line in lines)
