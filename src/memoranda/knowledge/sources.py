"""Sources of files: a path, bytes, an open file, or pieces as they arrive."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, TypeAlias, cast

from memoranda.errors import InvalidInput
from memoranda.storage.data_lock import refuse_live_database

PIECE = 1 << 20
"""Bytes read at once."""
BlockingSource: TypeAlias = str | Path | bytes | BinaryIO
"""A path (a string is one, too), the bytes themselves, or a file that was opened for reading bytes."""
Source: TypeAlias = BlockingSource | AsyncIterable[bytes]


def name_of(source: Source, filename: str | None) -> str:
    """Return the name of the file: the given one, else that of the path.

    Raises:
        InvalidInput: none was given, and the source has none.
    """
    if filename is not None:
        return filename
    path = source if isinstance(source, str | Path) else getattr(source, "name", None)
    if not isinstance(path, str | Path):
        raise InvalidInput("filename", "is required where the source is no path; its extension is the format")
    return os.fsencode(Path(path).name).decode("utf-8", "replace")


@contextmanager
def opened(source: BlockingSource) -> Iterator[BinaryIO]:
    """Yield the source as an open file; a file opened here is closed here.

    Raises:
        InvalidInput: the path cannot be read, or is an SQLite database in use.
    """
    if isinstance(source, bytes):
        yield BytesIO(source)
    elif isinstance(source, str | Path):
        with _open(Path(source)) as file:
            yield file
    elif hasattr(source, "read"):
        yield source
    else:
        raise InvalidInput(
            "source", f"is {type(source).__name__}; give a path, bytes or a file opened for reading bytes"
        )


def _open(path: Path) -> BinaryIO:
    refuse_live_database(path, "source")
    try:
        return path.open("rb")
    except OSError as exc:
        raise InvalidInput("source", f"{path} cannot be read: {(exc.strerror or str(exc)).lower()}") from exc


@asynccontextmanager
async def spooled(source: Source) -> AsyncIterator[BinaryIO]:
    """Yield the source as an open file, after pieces that arrive are all in a temporary file. Errors as `opened`."""
    if not isinstance(source, AsyncIterable):
        with opened(source) as file:
            yield file
        return
    with SpooledTemporaryFile(PIECE) as whole:
        async for piece in source:
            whole.write(piece)
        whole.seek(0)
        yield cast(BinaryIO, whole)


async def pieces_of(source: Source) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a source, a megabyte at a time, read on a thread.

    Raises:
        InvalidInput: the path cannot be read, or the file gives no bytes.
    """
    if isinstance(source, AsyncIterable):
        async for piece in source:
            yield piece
        return
    source_file = opened(source)
    file = await asyncio.to_thread(source_file.__enter__)
    try:
        while piece := await asyncio.to_thread(file.read, PIECE):
            if not isinstance(piece, bytes):
                raise InvalidInput("source", "gives text; open the file for reading bytes, with mode 'rb'")
            yield piece
    finally:
        source_file.__exit__(None, None, None)
