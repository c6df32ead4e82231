"""Methods of memories that are no operations: they stream, poll, or are written on this machine."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Unpack

import msgspec
import numpy as np

from memoranda import errors
from memoranda.arguments import SelectionFields
from memoranda.client.remote import Remote
from memoranda.client.wire import query_of
from memoranda.memories.export_files import read_lines, replacing
from memoranda.memories.memories import Memories
from memoranda.memories.operations import AT
from memoranda.memories.transfer import Imported
from memoranda.providers.embeddings.base import Embedded, Task
from memoranda.types import Job

PART = 4 << 20
"""Bytes of an import sent in one request."""


class _Vector(msgspec.Struct):
    """One embedding: float32, little-endian, in base64."""

    embedding: bytes


class _Embeddings(msgspec.Struct):
    """The answer to texts."""

    data: list[_Vector]
    usage: dict[str, int]


class RemoteMemories(Remote, Memories):
    """The memories of a server."""

    async def embed(self, texts: Sequence[str], task: Task = "document") -> Embedded:
        """See `Memories.embed`."""
        body = {"input": list(texts), "input_type": task, "encoding_format": "base64"}
        try:
            answer = await self._wire.call("POST", "/v1/embeddings", body=body)
        except errors.InvalidInput as exc:
            says = str(exc).removeprefix(f"{exc.field}: ")
            raise type(exc)(exc.field.replace("input", "texts", 1), says) from exc
        decoded = msgspec.json.decode(answer, type=_Embeddings)
        vectors = np.stack([np.frombuffer(vector.embedding, "<f4") for vector in decoded.data])
        return Embedded(vectors, decoded.usage["total_tokens"])

    async def stats(self, *, scope: str | None = None) -> dict[str, Any]:
        """See `Memories.stats`."""
        answer = await self._wire.call("GET", f"{AT}/stats", query=query_of({"scope": scope}))
        counts: dict[str, Any] = msgspec.json.decode(answer)
        del counts["object"]
        return counts

    async def export(
        self, *, vectors: bool = False, **fields: Unpack[SelectionFields]
    ) -> AsyncGenerator[bytes, None]:
        """See `Memories.export`."""
        rest = b""
        async for piece in self._wire.pieces("POST", f"{AT}/export", body={"vectors": vectors, **fields}):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield line + b"\n"

    async def export_to(
        self, path: str | Path, *, vectors: bool = False, **fields: Unpack[SelectionFields]
    ) -> int:
        """See `Memories.export_to`; the file is on this machine."""
        count = -1
        with replacing(Path(path)) as file:
            async for line in self.export(vectors=vectors, **fields):
                file.write(line)
                count += 1
        return count

    async def import_from(
        self,
        source: str | Path | Iterable[bytes],
        *,
        scope: str | None = None,
        include_forgotten: bool = False,
    ) -> Imported:
        """See `Memories.import_from`; sent in parts, so that no file is too large."""
        query = {} if scope is None else {"scope": scope}
        query |= {"include_forgotten": "true"} if include_forgotten else {}
        total = Imported()
        parts = _parts(read_lines(source))
        while (part := await self._wire.on_thread(next, parts, None)) is not None:
            done = await self._import_part(*part, query)
            total.read += done.read
            total.created += done.created
            total.present += done.present
            total.conflicts += done.conflicts
            total.forgotten += done.forgotten
        return total

    async def _import_part(self, shift: int, part: bytes, query: dict[str, str]) -> Imported:
        """Send one part of an import; errors name a line by its number in the whole import."""
        try:
            answer = await self._wire.call("POST", f"{AT}/import", raw=part, query=query)
            return msgspec.json.decode(answer, type=Imported)
        except errors.InvalidInput as exc:
            name, _, number = exc.field.partition(" ")
            if name != "line" or not number.isdecimal():
                raise
            says = str(exc).removeprefix(f"{exc.field}: ")
            raise errors.InvalidInput(f"line {int(number) + shift}", says) from exc

    async def wait(self, id: str, *, every: float = 0.25) -> Job:
        """Poll a job `every` so many seconds and return it once it has ended."""
        while (job := await self.job(id)).state in ("queued", "running"):
            await self._wire.sleep(every)
        return job


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
