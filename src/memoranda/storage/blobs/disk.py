"""Names that are safe on every file system, folders and files that only their owner reads, and full disks."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import unquote

from memoranda.errors import InvalidInput, NotFound, StorageError

SETTING = "files.url"
PART = ".part"
"""What the ids of bytes end with that were never committed."""
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_KEPT = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_")
_LONGEST = 200
_FIXES = {
    errno.ENOSPC: "the disk is full; free some space there",
    errno.EDQUOT: "the disk quota is used up; free some space there, or raise the quota",
    errno.EFBIG: "the file is larger than may be written there; raise the limit (ulimit -f), or use another disk",
}


def checked(id: str) -> str:
    """The id, when it is one of ours.

    Raises:
        InvalidInput: it is not; as a file name it could lead anywhere.
    """
    if not _ID.fullmatch(id):
        raise InvalidInput("id", "must be 1 to 128 letters, digits, `-` or `_`")
    return id


def folder_names(tenant: str) -> list[str]:
    """The folders, one in another, that stand for a tenant. What is no small letter, digit, `-` or `_` is written as
    `%` and two hex digits a byte, so that no two tenants meet, not where case is ignored either. A long name goes on
    in a folder below; all but the last then end with `+`."""
    name = "".join(chr(byte) if byte in _KEPT else f"%{byte:02x}" for byte in tenant.encode()) or "%"
    cut = [name[start : start + _LONGEST] for start in range(0, len(name), _LONGEST)]
    return [f"{part}+" for part in cut[:-1]] + cut[-1:]


def tenant_folders(root: Path, before: str = "") -> Iterator[tuple[str, Path]]:
    """Every tenant that has a folder below `root`, and that folder."""
    for path in listed(root):
        name = before + path.name.removesuffix("+")
        if path.name.endswith("+"):
            yield from tenant_folders(path, name)
            continue
        tenant = "" if name == "%" else unquote(name)
        if "".join(part.removesuffix("+") for part in folder_names(tenant)) == name:
            yield tenant, path


def listed(folder: Path) -> list[Path]:
    """What is in a folder; nothing when it is none, or is gone."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return sorted(folder.iterdir())
    return []


@contextmanager
def told(place: Path, doing: str) -> Iterator[None]:
    """Turns the errors of the file system into ours, which name the place and the fix."""
    try:
        yield
    except FileNotFoundError as exc:
        raise NotFound(f"{doing} {place}: nothing is there") from exc
    except OSError as exc:
        fix = _FIXES.get(exc.errno or 0) or exc.strerror or str(exc)
        raise StorageError(f"{doing} {place} failed: {fix}") from exc


def make_folder(folder: Path) -> None:
    """Makes a folder that only its owner enters, and those above it, to stay."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(held)
    finally:
        os.close(held)
