"""The bytes of uploaded files are compared with their SHA-256."""

from __future__ import annotations

import random

from memoranda.errors import DamagedData, NotFound
from memoranda.storage.sql.base import Row
from memoranda.store.core import Core
from memoranda.store.integrity import PIECE, Compared, verified

PAGE = 100


def compare_files(core: Core, tenant: str, *, everything: bool) -> Compared:
    """Compare the files of a tenant with their hashes: all, or one. Missing bytes count as damage."""
    if not everything:
        newest, _ = core.store.extent(tenant)
        some = _hashes(core, tenant, random.randrange(newest + 1), 1) or _hashes(core, tenant, 0, 1)
        return _compared(core, tenant, some)
    total, damaged, after = 0, list[str](), 0
    while files := _hashes(core, tenant, after, PAGE):
        compared = _compared(core, tenant, files)
        total, damaged, after = total + len(files), [*damaged, *compared.damaged], files[-1][0]
    return Compared(total, damaged)


def _hashes(core: Core, tenant: str, after: int, most: int) -> list[Row]:
    """Return seq, id and SHA-256 of the next files after a seq."""
    return core.store.db.read(lambda c: c.all("hashes_of_files", [tenant, after, most]), tenant)


def _compared(core: Core, tenant: str, files: list[Row]) -> Compared:
    return Compared(
        len(files), [id_ for _, id_, sha256 in files if not _is_intact(core, tenant, id_, sha256)]
    )


def _is_intact(core: Core, tenant: str, id_: str, sha256: str) -> bool:
    try:
        for _ in verified(core.blobs.read(tenant, id_, PIECE), sha256, lambda: None):
            pass
    except (NotFound, DamagedData):
        core.store.damage.note("file", id_)
        return False
    return True
