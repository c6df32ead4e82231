"""Logs of JSON values in a product: transcripts of sessions, histories of chats."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from memoranda.app.blocking import BlockingMemories
from memoranda.errors import Conflict
from memoranda.integrations import entries, payloads
from memoranda.integrations.entries import Entries
from memoranda.types import Memory

LINE, HEAD = "line", "head"
"""The kinds of rows: a part of a line, or the adapter's state of a log."""


class Line(msgspec.Struct, frozen=True):
    """A value of a log. `id` names it in its log; `content` is the text that searches match."""

    id: str
    value: Any
    content: str


class Logs:
    """The logs of one user, or of the tenant; `place` names a log by metadata keys. A line is a memory of kind `item`,
    or several if it is long. `name` keeps several sets of logs in one tenant apart. Thread-safe."""

    def __init__(self, memories: BlockingMemories, name: str, user_id: str | None) -> None:
        self.entries = Entries(memories, name, user_id=user_id)
        self._place = (name, user_id)

    def append(self, place: Mapping[str, str], lines: Sequence[Line], session_id: str | None) -> None:
        """Adds lines to the end of a log in one transaction, those whose ids it does not have.

        Raises:
            InvalidInput: a line or the place cannot be stored.
        """
        drafts = [draft for line in lines for draft in self._drafts(place, line, session_id)]
        last = list({draft["id"]: draft for draft in drafts}.values())
        try:
            self.entries.create(last)
        except Conflict:
            missing = [draft for draft in last if self.entries.get(draft["id"]) is None]
            if missing:
                self.entries.create(missing)

    def read(self, place: Mapping[str, str]) -> list[Any]:
        """The values of a log, in the order in which they were added."""
        rows = self.rows(holds=LINE, **place)
        return [
            json.loads("".join(row.metadata["part"] for row in parts))
            for _, parts in groupby(rows, lambda row: row.metadata["line"])
        ]

    def rows(self, **keys: str) -> Iterator[Memory]:
        """The rows with these metadata keys, oldest first."""
        filters = {**keys, "$user_id": self.entries.user_id}
        return self.entries.listed(order="asc", filters=filters)

    def erase(self, place: Mapping[str, str]) -> None:
        """Erases the rows with these metadata keys for good."""
        filters = {**place, "$user_id": self.entries.user_id}
        self.entries.memories.forget(**self.entries.selection, filters=filters)

    def id_of(self, *parts: Any) -> str:
        """The id of a row that these parts name."""
        return entries.id_of(*self._place, *parts)

    def _drafts(
        self, place: Mapping[str, str], line: Line, session_id: str | None
    ) -> Iterator[dict[str, Any]]:
        for number, part in enumerate(payloads.parts_of(payloads.text_of(line.value))):
            yield {
                "id": self.id_of(LINE, place, line.id, number),
                "content": f"{line.id}, part {number + 1}" if number else line.content,
                "session_id": session_id,
                "metadata": {**place, "holds": LINE, "line": line.id, "part": part},
            }
