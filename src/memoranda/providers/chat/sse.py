"""Parse server-sent events from bytes as they arrive. No I/O.

Reference: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

from __future__ import annotations

MAX_EVENT_BYTES = 16 << 20
_BOM = b"\xef\xbb\xbf"


class TooLong(Exception):
    """An event has more than `MAX_EVENT_BYTES`."""


class Events:
    """The data of events, from bytes cut anywhere. Other fields, comments and events without data are ignored. Lines
    end with LF, CRLF or CR. Feed two more line ends to get an event that the end of a stream left open."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._size = 0
        self._begun = False
        self._after_cr = False

    def feed(self, received: bytes) -> list[bytes]:
        """Return the data of every event that ends in `received`.

        Raises:
            TooLong: one does not end.
        """
        if not self._begun:
            received = self._first(received)
        if self._after_cr and received:
            self._after_cr = False
            received = received.removeprefix(b"\n")
        if b"\r" in received:
            self._after_cr = received.endswith(b"\r")
            received = received.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = received.split(b"\n")
        if len(lines) > 1 and self._line:
            lines[0] = b"".join([*self._line, lines[0]])
            self._line.clear()
        events, rest = [], lines.pop()
        if lines:
            events = self._events(lines)
        if rest:
            self._line.append(rest)
            self._size += len(rest)
            if self._size > MAX_EVENT_BYTES:
                raise TooLong
        return events

    def _first(self, received: bytes) -> bytes:
        """Return the bytes without a byte order mark; b"" while they may be half of one."""
        buffer = b"".join([*self._line, received])
        self._line = []
        if len(buffer) < len(_BOM) and _BOM.startswith(buffer):
            self._line = [buffer]
            return b""
        self._begun = True
        return buffer.removeprefix(_BOM)

    def _events(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        data = self._data
        for line in lines:
            if line[:5] == b"data:":
                data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line:
                self._size = 0
                if data:
                    events.append(data[0] if len(data) == 1 else b"\n".join(data))
                    data.clear()
        return events
