"""The files that the PATH arguments of a command select."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from memoranda.app.folder_sync.scan import Skipped, sized, unreadable, walk
from memoranda.cli.output import plain, short_path
from memoranda.errors import InvalidInput
from memoranda.readers.base import Unreadable
from memoranda.readers.detect import media_type
from memoranda.storage.data_lock import data_folder_of, refuse_live_database

NAMED = 3


def find_files(
    roots: list[Path], exclude: list[str], hidden: bool, missing: bool
) -> tuple[list[Path], list[Skipped]]:
    """Return the files to read, each once, in order, and those that are skipped.

    Raises:
        InvalidInput: a path does not exist and `missing` is false; a path is in a data folder, or is a SQLite
            database in use.
    """
    files: dict[Path, None] = {}
    skipped: dict[Path, Skipped] = {}
    for root in roots:
        if not root.exists() and not missing:
            raise InvalidInput("PATH", f"{root} is not there; with --prune its chunks are deleted")
        _refuse_data_folder(root)
        refuse_live_database(root, "PATH")
        for entry in walk(root, exclude=exclude, hidden=hidden):
            if isinstance(entry, Skipped):
                skipped[entry.path] = entry
            else:
                files[entry] = None
    return list(files), list(skipped.values())


def _refuse_data_folder(path: Path) -> None:
    folder = data_folder_of(path)
    if folder is not None:
        place = "a data folder" if folder == path else f"part of the data folder {folder}"
        raise InvalidInput("PATH", f"{path} is {place}; name the files and folders that hold the documents")


def documents(
    files: Sequence[Path], roots: Sequence[Path], max_bytes: int | None, skipped: list[Skipped]
) -> Iterator[Path]:
    """Yield the files that are documents or texts by their first bytes; append the others to `skipped`.

    Files in `roots` are always yielded.
    """
    for path in files:
        entry = path if path in roots else _document(path, max_bytes)
        if isinstance(entry, Skipped):
            skipped.append(entry)
        else:
            yield entry


def _document(path: Path, max_bytes: int | None) -> Path | Skipped:
    size = sized(path, max_bytes)
    if isinstance(size, Skipped):
        return size
    if not size:
        return Skipped(path, "empty")
    try:
        media_type(path, path.name)
    except OSError as exc:
        return unreadable(path, exc)
    except Unreadable as exc:
        if exc.code == "unsupported_file":
            return Skipped(path, str(exc).partition(";")[0].removeprefix("is "))
    return path  # what is damaged or locked fails in the store, where it can be looked up


def left_out(skipped: Sequence[Skipped]) -> Iterator[str]:
    """Yield a line for each reason, most frequent first, with some of the names."""
    for reason, count in Counter(skip.reason for skip in skipped).most_common():
        names = [plain(short_path(str(skip.path))) for skip in skipped if skip.reason == reason]
        yield f"  left out, {reason}: {count} ({', '.join(names[:NAMED])}{', ...' if count > NAMED else ''})"
