"""Files of exports: written whole or not at all, read line by line."""

from __future__ import annotations

import os
import tempfile
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec

from memoranda.errors import InvalidInput, StorageError
from memoranda.storage.data_lock import refuse_live_database


def write_file(path: Path, out: Iterator[bytes]) -> int:
    """Write the lines to a temporary file beside `path` and move it there once complete; return the number of memories.

    Raises:
        StorageError: the file cannot be written; an older one stays.
    """
    count = -1
    with replacing(path) as file:
        for line in out:
            file.write(line)
            count += 1
    return count


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Yield a new file that replaces `path` if nothing is raised.

    Raises:
        StorageError: the file cannot be written; an older one stays.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as exc:
        fix = f"the folder {path.parent} must exist and be writable; create it, or give another path"
        raise StorageError(f"{path} could not be written ({exc.strerror}): {fix}") from exc


def read_lines(source: str | Path | Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file or of any source of lines; the items of a JSON array count as lines."""
    if not isinstance(source, str | Path):
        yield from source
        return
    refuse_live_database(Path(source), "source")
    try:
        with open(source, "rb") as file:
            begins = file.read(len(BOM_UTF8) + 1)
            file.seek(0)
            if begins.removeprefix(BOM_UTF8)[:1] == b"[":
                items = file.read().removeprefix(BOM_UTF8)
                yield from (bytes(item) for item in msgspec.json.decode(items, type=list[msgspec.Raw]))
            else:
                yield from file
    except OSError as exc:
        reason = (exc.strerror or str(exc)).lower()
        raise InvalidInput(
            "source", f"{source} cannot be read: {reason}; give the path of an export"
        ) from exc
    except msgspec.DecodeError as exc:
        raise InvalidInput("source", f"{source} is no JSON: {exc}") from exc
