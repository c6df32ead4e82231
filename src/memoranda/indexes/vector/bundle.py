"""Files of the index cache: checksummed, written atomically."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoranda.storage.durable import Buffer

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
