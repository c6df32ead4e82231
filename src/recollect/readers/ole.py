"""The names in an OLE compound file (.doc, .ppt, .xls, .msg, locked .docx): they tell what the file is."""

from __future__ import annotations

import struct

MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENTRY = 128
_LAST = 0xFFFFFFFA
_IN_HEADER = 109


def names(data: bytes) -> set[str]:
    """Streams and storages directly under the root; none where the file is damaged or no compound file."""
    if not data.startswith(MAGIC) or len(data) < 512:
        return set()
    directory = _directory(data)
    if len(directory) < _ENTRY:
        return set()
    found: set[str] = set()
    waiting, seen = [_links(directory, 0)[2]], set()
    while waiting:
        entry = waiting.pop()
        if entry in seen or (entry + 1) * _ENTRY > len(directory):
            continue
        seen.add(entry)
        size = struct.unpack_from("<H", directory, entry * _ENTRY + 64)[0]
        raw = directory[entry * _ENTRY : entry * _ENTRY + max(0, min(size, 64) - 2)]
        found.add(raw.decode("utf-16-le", "ignore"))
        waiting.extend(_links(directory, entry)[:2])
    return found


def _links(directory: bytes, entry: int) -> tuple[int, int, int]:
    """The entries left and right of one, and the first below it."""
    left, right, child = struct.unpack_from("<3I", directory, entry * _ENTRY + 68)
    return left, right, child


def _directory(data: bytes) -> bytes:
    """The sectors of the directory, one after the other."""
    size = 1 << min(struct.unpack_from("<H", data, 30)[0], 12)
    tables = [sector for sector in struct.unpack_from(f"<{_IN_HEADER}I", data, 76) if sector < _LAST]
    sector = struct.unpack_from("<I", data, 48)[0]
    parts: list[bytes] = []
    seen: set[int] = set()
    while sector < _LAST and sector not in seen:
        seen.add(sector)
        parts.append(data[(sector + 1) * size : (sector + 2) * size])
        table, at = divmod(sector, size // 4)
        place = (tables[table] + 1) * size + at * 4 if table < len(tables) else len(data)
        if place + 4 > len(data):
            break
        sector = struct.unpack_from("<I", data, place)[0]
    return b"".join(parts)
