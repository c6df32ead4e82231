"""Entries of a key-value store in a product: memories of kind `item` in a channel of their own, written by id."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from memoranda.app.blocking import BlockingMemories
from memoranda.errors import Conflict, InvalidInput, NotFound
from memoranda.store.rows import ITEM
from memoranda.text.hashing import digest
from memoranda.text.stored import compact_json
from memoranda.types import Added, Memory

PAGE = 1_000
"""Rows of one request."""
ATTEMPTS = 5
"""Attempts to write one entry while other processes write or delete it."""
RESERVED = "extracted_by"
"""A metadata key that has a meaning of its own in facts."""
REST = "rest"
FIXED = ("id", "agent_id", "session_id", "embedding")
"""Fields of an entry that an update leaves out."""
TOO_MUCH = ("memories", "body")
"""Fields of the errors for more memories than `limits.max_batch` and more bytes than `server.max_body_bytes`."""


def id_of(*parts: Any) -> str:
    """The id of the memory for an entry that these parts name."""
    return f"item_{digest(compact_json(parts))}"


def metadata_of(value: Mapping[str, Any], own: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The metadata of an entry: the keys of its value, and those of `own` behind `prefix`. Keys that metadata
    cannot have are stored together under one of them."""
    metadata = {name: part for name, part in value.items() if is_attribute(name, prefix)}
    rest = {name: part for name, part in value.items() if not is_attribute(name, prefix)}
    own = {**own, REST: rest} if rest else own
    return metadata | {f"{prefix}{name}": part for name, part in own.items()}


def value_of(memory: Memory, prefix: str) -> dict[str, Any]:
    """The value that `metadata_of` was given."""
    value = {name: part for name, part in memory.metadata.items() if not name.startswith(prefix)}
    value.update(memory.metadata.get(f"{prefix}{REST}", {}))
    return value


def is_attribute(name: str, prefix: str) -> bool:
    """Return True if a key of a value can be a key of metadata unchanged."""
    return bool(name) and name != RESERVED and not name.startswith(("$", prefix))


def add_in_requests(memories: BlockingMemories, groups: Sequence[Sequence[dict[str, Any]]]) -> list[Added]:
    """Add groups of memories in one request. If they are too many or too large for one, add each half of the groups; of
    a group alone each half of its memories, the last ones last."""
    rows = [row for group in groups for row in group]
    try:
        return memories.add_many(rows)
    except InvalidInput as exc:
        if exc.field not in TOO_MUCH or len(rows) == 1:
            raise
    parts = groups if len(groups) > 1 else [[row] for row in rows]
    half = len(parts) // 2
    return add_in_requests(memories, parts[:half]) + add_in_requests(memories, parts[half:])


class Entries:
    """The entries of one store, of the tenant or of the user `user_id`; a listing has those of every user unless its
    filters name one. An entry is of kind `item`, or of the kind of its draft, one of `kinds`. Thread-safe."""

    def __init__(
        self,
        memories: BlockingMemories,
        channel: str,
        *,
        user_id: str | None = None,
        kinds: Sequence[str] = (ITEM,),
    ) -> None:
        self.memories = memories
        self.channel = channel
        self.user_id = user_id
        self.selection: dict[str, Any] = {"kinds": list(kinds), "scopes": [f"channel:{channel}"]}
        self.writing = threading.Lock()

    def get(self, id_: str) -> Memory | None:
        """The memory of that id; None if there is none."""
        try:
            return self.memories.get(id_)
        except NotFound:
            return None

    def listed(self, first: int = PAGE, **fields: Any) -> Iterator[Memory]:
        """The entries of a selection, newest first. `first` is how many are read at first. If the last entry of a page
        is deleted before the next page is read, reading begins again; none is yielded twice."""
        after: str | None = None
        yielded: set[str] = set()
        while True:
            limit = PAGE if yielded else max(1, min(first, PAGE))
            try:
                page = self.memories.list(limit=limit, after=after, **{**self.selection, **fields})
            except InvalidInput as exc:
                if exc.field != "after" or after is None:
                    raise
                after = None
                continue
            yield from (memory for memory in page.data if memory.id not in yielded)
            if not page.has_more:
                return
            yielded |= {memory.id for memory in page.data}
            after = page.last_id

    def add(self, drafts: Sequence[dict[str, Any]], value: str) -> list[bool]:
        """Writes the entries that do not exist yet; returns which were written. See `put`.

        Raises:
            InvalidInput: one is wrong; others may be written.
            Conflict: other processes keep writing them.
        """
        written = [False] * len(drafts)
        with self.writing, naming(value):
            for place, draft in enumerate(drafts):
                if self.get(draft["id"]) is None:
                    written[place] = self._create(draft)
        return written

    def put(self, drafts: Sequence[dict[str, Any]], value: str) -> None:
        """Writes entries, each given as the fields of its memory with its id; an existing one is replaced. `value` is
        the caller's name for the part that becomes metadata.

        Raises:
            InvalidInput: one is wrong; others may be written.
            Conflict: other processes keep writing one of them.
        """
        with self.writing, naming(value):
            self._put(drafts)

    def create(self, drafts: Sequence[dict[str, Any]]) -> None:
        """Writes new entries in one transaction.

        Raises:
            InvalidInput: one is wrong; none is written.
            Conflict: one exists already; it is not changed.
        """
        added = self.memories.add_many([self._new(draft) for draft in drafts])
        present = next((outcome.memory.id for outcome in added if not outcome.created), None)
        if present is not None:
            raise Conflict(f"{present}: this entry is there already")

    def _put(self, drafts: Sequence[dict[str, Any]]) -> None:
        missing = [draft for draft in drafts if self.get(draft["id"]) is None]
        created: set[str] = set()
        for start in range(0, len(missing), PAGE):
            part = [[self._new(draft)] for draft in missing[start : start + PAGE]]
            try:
                outcomes = add_in_requests(self.memories, part)
                created |= {outcome.memory.id for outcome in outcomes if outcome.created}
            except Conflict:  # another process has put one of them meanwhile
                continue
        for draft in drafts:
            if draft["id"] not in created:
                self._replace(draft)

    def _replace(self, draft: dict[str, Any]) -> None:
        changes = {name: part for name, part in draft.items() if name not in FIXED}
        for _ in range(ATTEMPTS):
            try:
                self.memories.update(draft["id"], **changes)
                return
            except NotFound:
                pass
            if self._create(draft):
                return
        raise Conflict(f"{draft['id']}: other processes keep writing this entry; put it again")

    def _create(self, draft: dict[str, Any]) -> bool:
        """Writes an entry; returns False if it exists."""
        try:
            return self.memories.add_many([self._new(draft)])[0].created
        except Conflict:  # with another text
            return False

    def _new(self, draft: dict[str, Any]) -> dict[str, Any]:
        return {"kind": ITEM, **draft, "user_id": self.user_id, "channel_id": self.channel}

    def delete(self, id_: str) -> bool:
        """Deletes an entry; returns False if it was not there."""
        try:
            self.memories.delete(id_)
        except NotFound:
            return False
        return True


@contextmanager
def naming(value: str) -> Iterator[None]:
    """Errors about metadata use the caller's name for it."""
    try:
        yield
    except InvalidInput as exc:
        if "metadata" not in exc.field:
            raise
        says = str(exc).removeprefix(f"{exc.field}: ")
        raise InvalidInput(value, f"{says} (its limit is limits.max_metadata_bytes)") from exc
