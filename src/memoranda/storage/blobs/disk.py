"""Names that are safe on every file system, folders and files that only their owner reads, and full disks."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import unquote

from memoranda.errors import InvalidInput, NotFound, StorageError
from memoranda.storage.durable import sync_folder

SETTING = "files.url"
PART = ".part"
"""The suffix of ids of bytes that were never committed."""
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_KEPT = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_")
_LONGEST = 200
_FIXES = {
    errno.ENOSPC: "the disk is full; free some space there",
    errno.EDQUOT: "the disk quota is used up; free some space there, or raise the quota",
    errno.EFBIG: "the file is larger than may be written there; raise the limit (ulimit -f), or use another disk",
}


def checked(id: str) -> str:
    """Return the id if it is valid.

    Raises:
        InvalidInput: it is not; as a file name it could lead anywhere.
    """
    if not _ID.fullmatch(id):
        raise InvalidInput("id", "must be 1 to 128 letters, digits, `-` or `_`")
    return id


def folder_names(tenant: str) -> list[str]:
    """Return the nested folders of a tenant. Characters other than small letters, digits, `-` and `_` are written as
    `%` and two hex digits per byte, so that no two tenants share a folder, even if the file system ignores case. A long
    name continues in a folder below; all but the last then end with `+`."""
    name = "".join(chr(byte) if byte in _KEPT else f"%{byte:02x}" for byte in tenant.encode()) or "%"
    cut = [name[start : start + _LONGEST] for start in range(0, len(name), _LONGEST)]
    return [f"{part}+" for part in cut[:-1]] + cut[-1:]


def tenant_folders(root: Path, before: str = "") -> Iterator[tuple[str, Path]]:
    """Yield every tenant that has a folder below `root`, and that folder."""
    for path in listed(root):
        name = before + path.name.removesuffix("+")
        if path.name.endswith("+"):
            yield from tenant_folders(path, name)
            continue
        tenant = "" if name == "%" else unquote(name)
        if "".join(part.removesuffix("+") for part in folder_names(tenant)) == name:
            yield tenant, path


def listed(folder: Path) -> list[Path]:
    """Return the entries of a folder; empty if it is no folder, or does not exist."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return sorted(folder.iterdir())
    return []


@contextmanager
def file_errors(place: Path, doing: str) -> Iterator[None]:
    """Turn the errors of the file system into ours, which name the path and the fix."""
    try:
        yield
    except FileNotFoundError as exc:
        raise NotFound(f"{doing} {place}: nothing is there") from exc
    except OSError as exc:
        fix = _FIXES.get(exc.errno or 0) or exc.strerror or str(exc)
        raise StorageError(f"{doing} {place} failed: {fix}") from exc


def make_folder(folder: Path) -> None:
    """Create a folder that only its owner can enter, and its parents, durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        sync_folder(folder.parent)
