"""Tombstones of what was forgotten by request, so that importing an older export does not bring it back.

A tombstone is a digest with a time, without ids and text. Its key, `salt`, is random and stored beside it. An archive
has both, so that an import into another folder takes them over.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import TypeAlias

from memoranda.clock import now_micros
from memoranda.storage.sql.base import Connection
from memoranda.store.rows import Record
from memoranda.text.hashing import digest
from memoranda.text.stored import compact_json

FORGOTTEN = "was forgotten after the export was made"
"""The reason for which an import leaves something out."""
FORGOTTEN_WITH = "belongs to what was forgotten after the export was made"
MEMORIES = "memories"
Identity: TypeAlias = tuple[str, ...]
"""What identifies a row: the name of its table, then its key."""


def identities_of(id_: str, dedup_key: str) -> tuple[Identity, Identity]:
    """Return the identities of a memory: by its id, and by its kind, scope and text, whatever id it has."""
    return (MEMORIES, id_), (MEMORIES, "text", dedup_key)


def note(c: Connection, tenant: str, identities: Iterable[Identity]) -> None:
    """Store that these rows were forgotten now."""
    named = [*identities]
    if not named:
        return
    salt, now = next(iter(_salts(c, tenant)), None) or secrets.token_hex(16), now_micros()
    c.many("note_forgotten", [(tenant, salt, _mark(salt, identity), now) for identity in named])


def forgotten_among(c: Connection, tenant: str, identities: Sequence[Identity], since: int) -> set[Identity]:
    """Return those of these identities that were forgotten after a moment (microseconds)."""
    found = set[Identity]()
    for salt in _salts(c, tenant) if identities else ():
        marks = {_mark(salt, identity): identity for identity in identities}
        rows = c.all("forgotten_among", [tenant, compact_json([*marks]), salt, since])
        found |= {marks[mark] for (mark,) in rows}
    return found


def forgotten_rows(c: Connection, tenant: str, rows: Sequence[Record], since: int) -> list[bool]:
    """Return for each memory whether it, or its text in its scope, was forgotten after a moment (microseconds)."""
    named = [identities_of(row.id, row.dedup_key) for row in rows]
    found = forgotten_among(c, tenant, [identity for pair in named for identity in pair], since)
    return [not found.isdisjoint(pair) for pair in named]


def _salts(c: Connection, tenant: str) -> list[str]:
    """Return the keys of the tombstones of a tenant: its own, and those of imported archives."""
    return [str(salt) for (salt,) in c.all("salts_of_forgotten", [tenant])]


def _mark(salt: str, identity: Identity) -> str:
    return blake2b(digest(*identity).encode(), key=salt.encode(), digest_size=16).hexdigest()
