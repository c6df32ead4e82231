"""Opaque values in a product, stored exactly and in order: memories of kind `item` that are not searched.

A record belongs to a thread, which is the session of its memory. Its bytes are in the metadata of that memory, or,
if they are long or rarely read, in separate memories that are written before it in the same batch.
"""

from __future__ import annotations

from base64 import b85decode, b85encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from memoranda.app.blocking import BlockingMemories
from memoranda.errors import Conflict, NotFound
from memoranda.integrations.entries import ATTEMPTS, PAGE, add_in_requests, id_of
from memoranda.store.changes import DRAFTS
from memoranda.store.rows import ITEM
from memoranda.types import Memory, Order

PART_BYTES = 40 << 10
"""Bytes of a value in one memory: as text they stay below the 64 KiB of `limits.max_metadata_bytes`."""
OWN = "record."
"""Begins the metadata keys that are not the record's fields."""
KIND, PLACE, DATA, PARTS, COUNT = (f"{OWN}{name}" for name in ("kind", "place", "data", "parts", "count"))
TEXT = "A record that is not searched."
"""The text of every such memory: one vector serves them all."""


class Record(msgspec.Struct, frozen=True):
    """One value of a thread; `kind` and `place` group those of a thread."""

    id: str
    thread: str
    kind: str
    value: bytes | None
    """None in a record that was read without its value; `Records.value_of` reads it."""
    place: str = ""
    fields: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Small values to filter by."""
    apart: bool = False
    """True if the value has separate memories although it is short."""
    parts: str | None = None
    """The `source` of the memories with the value, in a record that was read."""
    count: int = 0
    """The number of these memories."""


class Records:
    """The records of one store. They belong to the tenant, not to a user. Thread-safe."""

    def __init__(self, memories: BlockingMemories, name: str) -> None:
        self.memories = memories
        self.name = name

    def id_of(self, *parts: Any) -> str:
        """The id of a record that these parts name."""
        return id_of(self.name, *parts)

    # --- writing -----------------------------------------------------------------------------------

    def add(self, records: Sequence[Record]) -> None:
        """Writes records at the end, in their order; one whose id exists already is not changed. Records that fit
        250 memories (10 MB), `limits.max_batch` and `server.max_body_bytes` are written all or none; more are written
        in parts.

        Raises:
            InvalidInput: names the field and the fix. Nothing was written, or, of records in parts, those before it.
        """
        if records:
            add_in_requests(self.memories, [self._rows(record) for record in records])

    def put(self, records: Iterable[Record]) -> None:
        """Writes records, each in the place of the one with its id, if there is one. A reader sees the old one or
        the new one. New records that fit 250 memories (10 MB), `limits.max_batch` and `server.max_body_bytes` are
        written all or none. No two may have the same id.

        Raises:
            InvalidInput: names the field and the fix; records before it may be written.
            Conflict: other processes keep writing and deleting one.
        """
        batch: list[list[dict[str, Any]]] = []
        for rows in map(self._rows, records):
            if batch and sum(map(len, batch)) + len(rows) > DRAFTS:
                self._put(batch)
                batch = []
            batch.append(rows)
        self._put(batch)

    def _put(self, batch: list[list[dict[str, Any]]]) -> None:
        """Writes records, each given as its memories."""
        for _ in range(ATTEMPTS):
            if not batch:
                return
            added = add_in_requests(self.memories, batch)
            present = {outcome.memory.id: outcome.memory for outcome in added if not outcome.created}
            batch = [
                rows
                for rows in batch
                if (old := present.get(rows[-1]["id"])) is not None and not self._replace(old, rows[-1])
            ]
        if batch:
            raise Conflict(f"{batch[0][-1]['id']}: other processes keep writing this record; put it again")

    def _replace(self, old: Memory, row: dict[str, Any]) -> bool:
        """Gives the memory of a record new metadata; returns False if it was deleted meanwhile."""
        try:
            self.memories.update(old.id, metadata=row["metadata"])
        except NotFound:
            return False
        self._delete_parts(_read(old))
        return True

    def delete(self, record: Record) -> bool:
        """Deletes a record that was read; returns False if it was not there."""
        try:
            self.memories.delete(record.id)
        except NotFound:
            return False
        self._delete_parts(record)
        return True

    def clear(self, thread: str) -> None:
        """Erases the records of a thread for good."""
        self.memories.forget(kinds=["item"], scopes=[f"session:{thread}"], tags=[self.name])

    def _delete_parts(self, record: Record) -> None:
        for id_ in [] if record.parts is None else [row.id for row in self._parts(record)]:
            try:
                self.memories.delete(id_)
            except NotFound:  # another caller has deleted the same record
                continue

    # --- reading -----------------------------------------------------------------------------------

    def get(self, id_: str) -> Record | None:
        """The record of that id; None if there is none."""
        try:
            return _read(self.memories.get(id_))
        except NotFound:
            return None

    def listed(
        self,
        kind: str,
        thread: str | None,
        place: str | None = None,
        *,
        filters: Mapping[str, Any] | None = None,
        limit: int | None = None,
        order: Order = "desc",
    ) -> Iterator[Record]:
        """The records of a kind that pass a filter of the product, last written first unless `order` is `asc`; in every
        thread, or every place of a thread, where None is given."""
        selection: dict[str, Any] = {"kinds": [ITEM], "tags": [self.name, kind]}
        selection["scopes"] = [f"channel:{self.name}" if thread is None else f"session:{thread}"]
        if thread is not None and place is not None:
            del selection["tags"]
            selection["source"] = self._source(thread, kind, place)
        if filters is not None:
            selection["filters"] = filters
        yield from map(_read, islice(self._memories(selection, order, limit), limit))

    def value_of(self, record: Record) -> bytes | None:
        """The value of a record that was read; None if it was deleted meanwhile.

        Raises:
            Conflict: other processes keep replacing it.
        """
        now: Record | None = record
        for _ in range(ATTEMPTS):
            if now is None or now.value is not None:
                return None if now is None else now.value
            parts = self._parts(now)
            if len(parts) == now.count:
                return b"".join(b85decode(part.metadata[DATA]) for part in parts)
            now = self.get(record.id)
        raise Conflict(f"{record.id}: other processes keep replacing this record; read it again")

    # --- memories ----------------------------------------------------------------------------------

    def _rows(self, record: Record) -> list[dict[str, Any]]:
        """The memories of a record, itself last."""
        value = record.value or b""
        metadata = {**record.fields, KIND: record.kind, PLACE: record.place}
        source = self._source(record.thread, record.kind, record.place)
        tags = [self.name, record.kind]
        if len(value) <= PART_BYTES and not record.apart:
            metadata[DATA] = _text(value)
            return [self._row(record, record.id, source, tags, metadata)]
        parts = self.id_of(record.id, uuid4().hex)
        pieces = [value[at : at + PART_BYTES] for at in range(0, len(value), PART_BYTES)]
        rows = [
            self._row(record, self.id_of(parts, n), parts, [self.name], {DATA: _text(piece)})
            for n, piece in enumerate(pieces)
        ]
        metadata |= {PARTS: parts, COUNT: len(pieces)}
        return [*rows, self._row(record, record.id, source, tags, metadata)]

    def _row(
        self, record: Record, id_: str, source: str, tags: list[str], metadata: dict[str, Any]
    ) -> dict[str, Any]:
        return {
            "id": id_, "content": TEXT, "kind": ITEM, "user_id": None, "channel_id": self.name,
            "session_id": record.thread, "source": source, "tags": tags, "metadata": metadata,
        }  # fmt: skip

    def _source(self, thread: str, kind: str, place: str) -> str:
        return self.id_of(thread, kind, place)

    def _parts(self, record: Record) -> list[Memory]:
        selection = {"kinds": [ITEM], "scopes": [f"session:{record.thread}"], "source": record.parts}
        return list(self._memories(selection, "asc", None))

    def _memories(self, selection: dict[str, Any], order: Order, first: int | None) -> Iterator[Memory]:
        """The memories of a selection; `first` are read at first."""
        after: str | None = None
        while True:
            limit = PAGE if after or first is None else max(1, min(first, PAGE))
            page = self.memories.list(limit=limit, after=after, order=order, **selection)
            yield from page.data
            if not page.has_more:
                return
            after = page.last_id


def moved(record: Record, id_: str, thread: str, value: bytes) -> Record:
    """A record that was read, for another thread."""
    return replace(record, id=id_, thread=thread, value=value, apart=record.parts is not None, parts=None)


def _read(memory: Memory) -> Record:
    own = memory.metadata
    return Record(
        id=memory.id,
        thread=str(memory.session_id),
        kind=own[KIND],
        value=b85decode(own[DATA]) if DATA in own else None,
        place=own[PLACE],
        fields={name: part for name, part in own.items() if not name.startswith(OWN)},
        parts=own.get(PARTS),
        count=own.get(COUNT, 0),
    )


def _text(value: bytes) -> str:
    return b85encode(value).decode("ascii")
