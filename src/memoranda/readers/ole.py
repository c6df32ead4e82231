"""The names in an OLE compound file (.doc, .ppt, .xls, .msg, locked .docx): they identify its type."""

from __future__ import annotations

import struct

MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENTRY = 128
_LAST = 0xFFFFFFFA
_IN_HEADER = 109


def names(data: bytes) -> set[str]:
    """Return streams and storages directly under the root; empty if the file is damaged or no compound file."""
    if not data.startswith(MAGIC) or len(data) < 512:
        return set()
    directory = _directory(data)
    if len(directory) < _ENTRY:
        return set()
    entries: set[str] = set()
    waiting, seen = [_links(directory, 0)[2]], set()
    while waiting:
        entry = waiting.pop()
        if entry in seen or (entry + 1) * _ENTRY > len(directory):
            continue
        seen.add(entry)
        size = struct.unpack_from("<H", directory, entry * _ENTRY + 64)[0]
        raw = directory[entry * _ENTRY : entry * _ENTRY + max(0, min(size, 64) - 2)]
        entries.add(raw.decode("utf-16-le", "ignore"))
        waiting.extend(_links(directory, entry)[:2])
    return entries


def _links(directory: bytes, entry: int) -> tuple[int, int, int]:
    """Return the entries left and right of one, and the first below it."""
    left, right, child = struct.unpack_from("<3I", directory, entry * _ENTRY + 68)
    return left, right, child


def tangled(data: bytes) -> bool:
    """Return True if a sector of the file follows two others: its chains have cycles, in which parsers hang."""
    if not data.startswith(MAGIC) or len(data) < 512:
        return False
    following = [sector for sector in _table(data) if sector < _LAST]
    return len(following) != len(set(following))


def _directory(data: bytes) -> bytes:
    """Return the sectors of the directory, one after the other."""
    size, table = _size(data), _table(data)
    sector = struct.unpack_from("<I", data, 48)[0]
    parts: list[bytes] = []
    seen: set[int] = set()
    while sector < len(table) and sector not in seen:
        seen.add(sector)
        parts.append(_sector(data, sector, size))
        sector = table[sector]
    return b"".join(parts)


def _table(data: bytes) -> list[int]:
    """Return for every sector the one that follows it. The table's own sectors are named in the header and in a
    chain."""
    size = _size(data)
    places = list(struct.unpack_from(f"<{_IN_HEADER}I", data, 76))
    more: int = struct.unpack_from("<I", data, 68)[0]
    seen: set[int] = set()
    while more < _LAST and more not in seen:
        seen.add(more)
        named = _numbers(_sector(data, more, size))
        if not named:
            break
        places.extend(named[:-1])
        more = named[-1]
    table: list[int] = []
    for place in dict.fromkeys(sector for sector in places if sector < _LAST):
        table.extend(_numbers(_sector(data, place, size)))
    return table


def _size(data: bytes) -> int:
    """Bytes of a sector: 512 or 4 096."""
    return 4_096 if struct.unpack_from("<H", data, 30)[0] == 12 else 512


def _sector(data: bytes, number: int, size: int) -> bytes:
    return data[(number + 1) * size : (number + 2) * size]


def _numbers(sector: bytes) -> list[int]:
    return list(struct.unpack_from(f"<{len(sector) // 4}I", sector))
