"""Files that are changed as a whole or not at all, with the one from before beside them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from difflib import unified_diff
from pathlib import Path

import msgspec

from memoranda.errors import Conflict, InvalidInput

BACKUP = ".before-memoranda"
"""What the name of a backup ends with."""


class Change(msgspec.Struct, frozen=True):
    """A file and its text, before and after; None where there is no file."""

    path: Path
    before: str | None
    after: str | None

    @property
    def needed(self) -> bool:
        """Return True if the texts differ."""
        return self.before != self.after

    def diff(self) -> Iterator[str]:
        """Yield the lines of a unified diff."""
        old, new = ("/dev/null" if text is None else str(self.path) for text in (self.before, self.after))
        yield from unified_diff(
            (self.before or "").splitlines(), (self.after or "").splitlines(), old, new, lineterm=""
        )

    def write(self, *, undo: bool = False) -> None:
        """Write the text; `undo` removes the backup, which is made otherwise unless there is one. A folder such as
        `.claude` that is empty without the file goes, too.

        Raises:
            Conflict: the file has been changed since it was read.
        """
        if read(self.path) != self.before:
            raise Conflict(f"{self.path} was changed by another program meanwhile; run the command again")
        place = self.path.resolve()  # a link to the file stays
        backup = backup_of(self.path)
        if self.before is not None and not undo and not backup.exists():
            _replace(backup, self.before, place)
        if self.after is None:
            place.unlink()
        else:
            _replace(place, self.after, place)
        if undo:
            backup.unlink(missing_ok=True)
        if self.after is None:
            own = place.parent.name == "hooks" and place.parent.parent.name in (".copilot", ".github")
            with suppress(OSError):  # a folder has other files
                if own or place.parent.name.startswith("."):
                    place.parent.rmdir()
                if own:
                    place.parent.parent.rmdir()


def backup_of(path: Path) -> Path:
    """Return where the backup of a file stands."""
    place = path.resolve()
    return place.with_name(place.name + BACKUP)


def read(path: Path) -> str | None:
    """Return the text of a file with its line ends as they are; None if there is no file.

    Raises:
        InvalidInput: it is not UTF-8.
    """
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as exc:
        raise InvalidInput(str(path), "is not UTF-8 text; repair it, or move it away") from exc


def _replace(place: Path, text: str, like: Path) -> None:
    """Put a text in the place of a file in one step, with the permissions of `like`, or the user's alone."""
    place.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(number)
        with suppress(FileNotFoundError):
            os.chmod(name, like.stat().st_mode & 0o777)
        os.replace(name, place)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise
