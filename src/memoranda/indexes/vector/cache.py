"""The memory index on disk: a cache that is either complete or missing.

`manifest.json` is replaced last and names every file that counts, with size and checksum; anything else in the
folder is left over from a crash and is removed. `p7.f32` is the float sidecar of partition 7, `p7-3.columns` and
`p7-3.codes` are what checkpoint 3 wrote of it.
"""

from __future__ import annotations

import json
import logging
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.indexes.vector.columns import Columns
from memoranda.indexes.vector.floats import FileFloats, Floats, RamFloats
from memoranda.indexes.vector.growing import Growing, SeqColumn
from memoranda.indexes.vector.partition import Partition, View
from memoranda.indexes.vector.quantised import Blocks, Engine, Sealed
from memoranda.storage.durable import Buffer, sync_folder, write_file

SPAN = 4096
SPANS = 1024


class Damaged(ValueError):
    """A file of the cache is missing, truncated, changed, or of another format."""


def read_file(folder: Path, name: str, size: int, crc: int) -> bytes:
    """Return the bytes that `durable.write_file` wrote.

    Raises:
        Damaged: the bytes have changed.
    """
    data = (folder / name).read_bytes()
    if len(data) != size or zlib.crc32(data) != crc:
        raise Damaged(f"{name} is not as it was written")
    return data


def sampled_crc(path: Path, size: int) -> int:
    """A crc32 over 1024 spans of 4 KiB spread over the first `size` bytes: over all of up to 4 MiB.

    It detects a file that is torn, foreign or partly lost, not every single flipped byte of a large one.

    Raises:
        Damaged: the file is shorter than that.
    """
    crc = 0
    with path.open("rb", buffering=0) as file:
        if file.seek(0, os.SEEK_END) < size:
            raise Damaged(f"{path.name} is cut short")
        whole = size <= SPAN * SPANS
        for offset in (
            range(0, size, SPAN) if whole else np.linspace(0, size - SPAN, SPANS).astype(int).tolist()
        ):
            file.seek(offset)
            crc = zlib.crc32(file.read(min(SPAN, size - offset)), crc)
    return crc


def pack(facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> list[Buffer]:
    """Facts (JSON-able) and one-dimensional arrays as chunks of one file."""
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    shapes = [[name, array.dtype.str, len(array)] for name, array in contiguous.items()]
    header = json.dumps({"facts": facts, "arrays": shapes}).encode()
    return [
        len(header).to_bytes(8, "little"),
        header,
        *(array.view(np.uint8).data for array in contiguous.values()),
    ]


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The facts and arrays that were packed; arrays are copies."""
    offset = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:offset])
    arrays: dict[str, NDArray[Any]] = {}
    for name, dtype, count in header["arrays"]:
        arrays[name] = np.frombuffer(data, dtype, count, offset).copy()
        offset += arrays[name].nbytes
    return header["facts"], arrays


VERSION = 1
MANIFEST = "manifest.json"
log = logging.getLogger("memoranda.indexes")

Entry = dict[str, Any]


class Loaded(msgspec.Struct, frozen=True):
    """The content of a cache: its durable revision, and the partitions by tenant."""

    rev: int
    partitions: dict[str, Partition]


class Saved(msgspec.Struct, frozen=True):
    """The manifest entry of a partition, and the view that it describes."""

    entry: Entry
    view: View


class Cache:
    """The folder of one index."""

    def __init__(self, folder: Path, dim: int, engine: Engine | None) -> None:
        self.folder = folder
        self.make = {"version": VERSION, "dim": dim, "engine": engine.name if engine else "float"}
        self._dim = dim
        self._engine = engine
        self._saved: dict[int, Saved] = {}
        self._checkpoint = 0
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def sidecar(self, serial: int) -> Path:
        """Return the path of the float vectors of a partition."""
        return self.folder / f"p{serial}.f32"

    def load(self) -> Loaded:
        """Load what was saved last. A cache that is damaged or of another format is dropped with a warning."""
        if not (self.folder / MANIFEST).exists():
            self.wipe()
            return Loaded(0, {})
        try:
            loaded = self._read()
        except (OSError, ValueError, KeyError, TypeError, IndexError) as exc:
            log.warning("The index cache in %s cannot be used and is made again: %s", self.folder, exc)
            self.wipe()
            return Loaded(0, {})
        self._sweep()
        return loaded

    def save(self, rev: int, partitions: Mapping[str, Partition]) -> None:
        """Make these partitions durable as revision `rev`; those unchanged since the last time cost nothing."""
        self._checkpoint += 1
        saved = {partition.serial: self._save(tenant, partition) for tenant, partition in partitions.items()}
        entries = [item.entry for item in saved.values()]
        body = json.dumps({**self.make, "rev": rev, "checkpoint": self._checkpoint, "partitions": entries})
        write_file(self.folder / MANIFEST, [f"{zlib.crc32(body.encode()):08x}\n".encode(), body.encode()])
        sync_folder(self.folder)
        self._saved = saved
        self._sweep()

    def wipe(self) -> None:
        """Remove every file of the cache."""
        (self.folder / MANIFEST).unlink(missing_ok=True)
        self._saved = {}
        self._sweep()

    @property
    def nbytes(self) -> int:
        """Bytes on disk, holes not counted."""
        return sum(path.stat().st_blocks * 512 for path in self.folder.iterdir())

    def _save(self, tenant: str, partition: Partition) -> Saved:
        view, before = partition.view, self._saved.get(partition.serial)
        if before is not None and before.view is view:
            return before
        stem = f"p{partition.serial}-{self._checkpoint}"
        n = view.n
        facts, arrays = partition.columns.dump(n)
        arrays |= {"seqs": partition.seqs.seqs.view()[:n], "parts": partition.parts.view()[:n]}
        arrays["alive"] = np.packbits(view.alive[:n])
        entry: Entry = {"tenant": tenant, "serial": partition.serial, "n": n}
        if isinstance(partition.floats, FileFloats):
            partition.floats.sync()
            entry["floats"] = sampled_crc(partition.floats.path, n * self._dim * 4)
        else:
            arrays["floats"] = partition.floats.rows()[:n].reshape(-1)
        entry["blocks"] = self._save_blocks(stem, view, before)
        entry["columns"] = write_file(self.folder / f"{stem}.columns", pack(facts, arrays))
        return Saved(entry, view)

    def _save_blocks(self, stem: str, view: View, before: Saved | None) -> list[Entry]:
        written: dict[int, Entry] = {}
        if before is not None:
            pieces = before.view.blocks.pieces
            written = {id(piece): entry for piece, entry in zip(pieces, before.entry["blocks"], strict=True)}
        entries = []
        for i, piece in enumerate(view.blocks.pieces):
            entry = written.get(id(piece))
            if entry is None:
                file = write_file(self.folder / f"{stem}-{i}.codes", [piece.block.dump()])
                entry = {"start": piece.start, "fitted": piece.fitted, "file": file}
            entries.append(entry)
        return entries

    def _read(self) -> Loaded:
        first, _, body = (self.folder / MANIFEST).read_text().partition("\n")
        if int(first, 16) != zlib.crc32(body.encode()):
            raise Damaged("the manifest is not as it was written")
        manifest = json.loads(body)
        if not manifest["rev"]:
            raise Damaged("no revision was ever flushed")
        if any(manifest[key] != value for key, value in self.make.items()):
            raise Damaged(f"it was made for other settings than {self.make}")
        partitions = {entry["tenant"]: self._restore(entry) for entry in manifest["partitions"]}
        self._checkpoint = manifest["checkpoint"]
        return Loaded(manifest["rev"], partitions)

    def _restore(self, entry: Entry) -> Partition:
        n, serial = entry["n"], entry["serial"]
        facts, arrays = unpack(read_file(self.folder, *entry["columns"]))
        floats: Floats
        if "floats" in entry:
            if sampled_crc(self.sidecar(serial), n * self._dim * 4) != entry["floats"]:
                raise Damaged(f"{self.sidecar(serial).name} is not as it was written")
            floats = FileFloats(self.sidecar(serial), self._dim, n)
        else:
            floats = RamFloats(self._dim, arrays["floats"].reshape(n, self._dim))
        partition = Partition(floats, self._engine, serial)
        partition.seqs = SeqColumn(arrays["seqs"])
        partition.parts = Growing(np.int32, arrays["parts"])
        partition.columns = Columns.load(facts, arrays, partition.seqs)
        alive = np.unpackbits(arrays["alive"], count=n).astype(np.bool_)
        dead = n - int(np.count_nonzero(alive))
        partition.view = View(n, alive, dead, Blocks(tuple(self._restore_block(b) for b in entry["blocks"])))
        self._saved[serial] = Saved(entry, partition.view)
        return partition

    def _restore_block(self, entry: Entry) -> Sealed:
        if self._engine is None:
            raise Damaged("it holds codes that nothing here can read")
        block = self._engine.load(read_file(self.folder, *entry["file"]))
        return Sealed(entry["start"], block, entry["fitted"])

    def _sweep(self) -> None:
        keep = {MANIFEST} if self._saved or (self.folder / MANIFEST).exists() else set()
        for saved in self._saved.values():
            files = [saved.entry["columns"], *(block["file"] for block in saved.entry["blocks"])]
            keep |= {file[0] for file in files} | {self.sidecar(saved.entry["serial"]).name}
        for path in self.folder.iterdir():
            if path.name not in keep and path.name.startswith(("p", MANIFEST)):
                path.unlink(missing_ok=True)
