"""Files as texts: which files of a folder can be read, and why the rest cannot."""

from __future__ import annotations

import fnmatch
import os
import stat
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from memoranda.storage.data_lock import is_data_folder, is_live_database
from memoranda.text.decoding import NotText, decoded

JUNK = frozenset(
    ["node_modules", "__pycache__", "venv", "env", "site-packages", "target", "dist", "build", "vendor"]
)
"""Folders of third-party or generated files."""
GENERATED = ("*.min.js", "*.min.css", "*.map", "*.lock", "package-lock.json")
DOCUMENTS = frozenset(
    (
        *(".pdf", ".docx", ".docm", ".doc", ".pptx", ".pptm", ".ppt", ".xlsx", ".xlsm", ".xls"),
        *(".odt", ".ods", ".odp", ".epub", ".rtf", ".msg", ".eml"),
    )
)
"""Documents that need a reader of their own: vector stores have them, memories take plain texts."""
LIVE = "an SQLite database in use"
MAX_BYTES = 10_000_000


class Text(msgspec.Struct, frozen=True):
    """A file's text. `guessed` is True if neither a byte order mark nor valid UTF-8 gives the encoding."""

    path: Path
    text: str
    encoding: str
    guessed: bool = False


class Skipped(msgspec.Struct, frozen=True):
    """A file or folder that was left out, and why. What is `unreadable` may be unchanged."""

    path: Path
    reason: str
    unreadable: bool = False


def walk(root: Path, *, exclude: Sequence[str] = (), hidden: bool = False) -> Iterator[Path | Skipped]:
    """Yield every file of a folder that may be a text, in order, and what is left out.

    Left out are hidden names, folders of `JUNK`, generated files, links, what git ignores when the folder is in a git
    repository, what a pattern of `exclude` matches (a name, or a path below `root`), data folders and SQLite databases
    in use. A file given as `root` is itself, whatever its name.
    """
    if root.is_file():
        yield root
        return
    ignored = git_ignored(root)
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        entered = []
        for name in sorted(folders):
            reason = _unwanted(here / name, root, exclude, hidden, ignored, JUNK)
            if reason:
                yield Skipped(here / name, reason)
            elif not os.access(here / name, os.R_OK | os.X_OK):
                yield Skipped(here / name, "cannot be read: permission denied", unreadable=True)
            else:
                entered.append(name)
        folders[:] = entered
        for name in sorted(names):
            reason = _unwanted(here / name, root, exclude, hidden, ignored, frozenset())
            if not reason and any(fnmatch.fnmatch(name, pattern) for pattern in GENERATED):
                reason = "generated"
            yield Skipped(here / name, reason) if reason else here / name


def _unwanted(
    path: Path, root: Path, exclude: Sequence[str], hidden: bool, ignored: set[Path], junk: frozenset[str]
) -> str | None:
    name = path.name
    if path.is_symlink():
        return "a link"
    if name.startswith(".") and (not hidden or name == ".git"):
        return "hidden"
    if name in junk:
        return f"a {name} folder"
    below = path.relative_to(root).as_posix()
    if any(fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(below, pattern) for pattern in exclude):
        return "excluded"
    if path in ignored:
        return "ignored by git"
    if is_data_folder(path):
        return "a data folder"
    return LIVE if is_live_database(path) else None


def git_ignored(root: Path) -> set[Path]:
    """Return files and folders under `root` that git ignores; empty without git or outside a repository."""
    listing = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"]
    try:
        # Settings of a repository may name programs to run; reading a folder must not start them.
        listed = subprocess.run(
            ["git", "-C", str(root), "-c", "core.fsmonitor=false", *listing], capture_output=True, check=False
        )
    except OSError:
        return set()
    if listed.returncode:
        return set()
    names = os.fsdecode(listed.stdout).split("\0")
    return {root / name.rstrip("/") for name in names if name}


def sized(path: Path, max_bytes: int | None = None) -> int | Skipped:
    """Return the bytes of a file; why it is left out if it is an SQLite database in use, no regular file, larger than
    `max_bytes`, or cannot be read."""
    if is_live_database(path):
        return Skipped(path, LIVE)
    try:
        status = path.stat()
    except OSError as exc:
        return unreadable(path, exc)
    if not stat.S_ISREG(status.st_mode):
        return Skipped(path, "not a regular file")
    if max_bytes is not None and status.st_size > max_bytes:
        return Skipped(path, f"larger than {max_bytes} bytes")
    return status.st_size


def unreadable(path: Path, exc: OSError) -> Skipped:
    """Return a file that is left out because it cannot be read."""
    return Skipped(path, f"cannot be read: {(exc.strerror or str(exc)).lower()}", unreadable=True)


def read(path: Path, max_bytes: int = MAX_BYTES) -> Text | Skipped:
    """Return the text of a file: decoded by its byte order mark, else as UTF-8, else by a guess.

    Offsets into the text count characters after decoding; line ends stay as they are.
    """
    size = sized(path, max_bytes)
    if isinstance(size, Skipped):
        return size
    try:
        data = path.read_bytes()
    except OSError as exc:
        return unreadable(path, exc)
    if path.suffix.lower() in DOCUMENTS or data.startswith(b"%PDF-"):
        return Skipped(path, f"{path.suffix.lower() or 'pdf'} is no plain text; index it into a store")
    return _text(path, data)


def _text(path: Path, data: bytes) -> Text | Skipped:
    try:
        content = decoded(data)
    except NotText as exc:
        return Skipped(path, str(exc))
    if "\0" in content.text:
        return Skipped(path, "binary")
    if content.replaced and not content.guessed:
        return Skipped(path, f"begins with a {content.encoding} mark but is not {content.encoding}")
    return Text(path, content.text, content.encoding, content.guessed)
