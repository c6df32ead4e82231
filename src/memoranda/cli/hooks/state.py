"""What hooks store beside the memories: a log of failures, and how far each transcript was read.

It is in the folder `hooks` of the data folder, which is no part of what the application manages there
(`storage.data_lock.PARTS`). Losing it costs a second reading of transcripts, which changes nothing.
"""

from __future__ import annotations

import json
import os
import time

FOLDER, LOG = "hooks", "hooks.log"
LOG_BYTES = 1 << 18
"""Of the log; as much again is in the one before."""
SESSIONS = 200
"""Sessions whose positions are there at least; the oldest of twice as many are removed."""
IDS = 200
"""Ids of the last messages of a session that a prompt excludes, because the client has them before it."""


class Position:
    """How far the transcript of a session was read, in bytes. `ids` are its last messages, `introduced` says whether
    the session got the introduction."""

    def __init__(self, folder: str, session_id: str) -> None:
        name = "".join(c if c.isalnum() or c in "-_" else "_" for c in session_id)[:100]
        self._path = os.path.join(folder, FOLDER, f"{name}.json")
        self.transcript = ""
        self.offset = 0
        self.ids: list[str] = []
        self.introduced = False
        try:
            with open(self._path, encoding="utf-8") as file:
                self.__dict__.update(json.load(file))
        except (OSError, ValueError):
            pass  # a new session, or a file that was cut short: it is read from its beginning again

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


def _prune(folder: str) -> None:
    """Remove the oldest positions."""
    names = [os.path.join(folder, name) for name in os.listdir(folder) if not name.startswith(LOG)]
    if len(names) > 2 * SESSIONS:
        for path in sorted(names, key=os.path.getmtime)[:-SESSIONS]:
            os.unlink(path)


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
