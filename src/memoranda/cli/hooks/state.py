"""What hooks store beside the memories: a log of failures, and how far each transcript was read.

It is in the folder `hooks` of the data folder, which is no part of what the application manages there
(`storage.data_lock.PARTS`). Losing it costs a second reading of transcripts, which changes nothing, and the end of
sessions that ended without a hook.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress

FOLDER, LOG = "hooks", "hooks.log"
LOG_BYTES = 1 << 18
"""Of the log; as much again is in the one before."""
SESSIONS = 200
"""Sessions whose positions are there at least; the oldest of twice as many are removed."""
RECENT = 20
"""Sessions whose transcripts are looked at again when another session stops."""
QUIET = 3_600.0
"""Seconds without a change after which a transcript is taken to be that of a session that has ended."""
IDS = 200
"""Ids of the last messages of a session that a prompt excludes, because the client has them before it."""


class Position:
    """How far the transcript of a session was read, in bytes. `ids` are its last messages, `introduced` says whether
    the session got the introduction, `absent` whether a hook waited for a transcript that never came. `owner` is a
    digest of whom its messages are stored for."""

    def __init__(self, folder: str, session_id: str, owner: str) -> None:
        name = "".join(c if c.isalnum() or c in "-_" else "_" for c in session_id)[:100]
        self._path = os.path.join(folder, FOLDER, f"{name}.json")
        self.transcript = ""
        self.absent = False
        self.offset = 0
        self.ids: list[str] = []
        self.introduced = False
        try:
            with open(self._path, encoding="utf-8") as file:
                self.__dict__.update(json.load(file))
        except (OSError, ValueError):
            pass  # a new session, or a file that was cut short: it is read from its beginning again
        self.session_id, self.owner = session_id, owner

    def follow(self, transcript: str) -> None:
        """Read this transcript from now on, from its beginning if it is another one."""
        if self.transcript != transcript:
            self.transcript, self.offset, self.absent = transcript, 0, False

    @property
    def left(self) -> bool:
        """True if the transcript has more, and nothing was added for a long time: its session has ended, most
        likely."""
        try:
            found = os.stat(self.transcript)
        except OSError:
            return False
        return found.st_size > self.offset and found.st_mtime < time.time() - QUIET

    def save(self) -> None:
        """Write it in one step."""
        self.ids = self.ids[-IDS:]
        values = {name: value for name, value in self.__dict__.items() if not name.startswith("_")}
        os.makedirs(os.path.dirname(self._path), 0o700, exist_ok=True)
        new = not os.path.exists(self._path)
        temporary = f"{self._path}.{os.getpid()}"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(values, file)
        os.replace(temporary, self._path)
        if new:
            _prune(os.path.dirname(self._path))


def others_left(folder: str, own: Position) -> list[Position]:
    """Return the positions of other sessions of the same owner whose transcripts have more, of those that were read
    last, the newest first."""
    found = []
    for path in reversed(_by_age(os.path.join(folder, FOLDER))[-RECENT:]):
        with suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
            known = json.load(file)
            if known.get("owner") == own.owner and known.get("session_id") not in (None, own.session_id):
                found.append(Position(folder, known["session_id"], own.owner))
    return [position for position in found if position.left]


def _prune(folder: str) -> None:
    """Remove the oldest positions."""
    paths = _by_age(folder)
    if len(paths) > 2 * SESSIONS:
        for path in paths[:-SESSIONS]:
            with suppress(FileNotFoundError):  # another hook removes them, too
                os.unlink(path)


def _by_age(folder: str) -> list[str]:
    """Return the files of positions, the oldest first."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return sorted((os.path.join(folder, name) for name in names if not name.startswith(LOG)), key=_changed)


def _changed(path: str) -> float:
    try:
        return os.path.getmtime(path)
    except OSError:  # another hook has removed it
        return 0.0


def log(folder: str, event: str, reason: str) -> None:
    """Add a line to the log of a data folder that is there; the log before is removed when this one is full."""
    if not os.path.isdir(folder):
        return
    path = os.path.join(folder, FOLDER, LOG)
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    if os.path.exists(path) and os.path.getsize(path) > LOG_BYTES:
        os.replace(path, f"{path}.1")
    line = f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {event}: {' '.join(reason.split())[:1_000]}\n"
    with open(path, "a", encoding="utf-8") as file:
        file.write(line)
