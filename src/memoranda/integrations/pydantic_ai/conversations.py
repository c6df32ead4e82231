"""Conversations of Pydantic AI in a product."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from pydantic import ConfigDict, TypeAdapter
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, TextPart, UserPromptPart

from memoranda.errors import Conflict
from memoranda.integrations import entries, payloads
from memoranda.integrations.entries import Entries
from memoranda.integrations.products import Product, memories_of
from memoranda.types import Memory

RECORD, ENTRY, REPLACED = "record", "entry", "replaced"
"""The kinds of rows: the state of a conversation, a part of a message, or a replaced state."""
_BYTES = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
_RECORDS: TypeAdapter[list[ConversationRecord]] = TypeAdapter(list[ConversationRecord], config=_BYTES)


class MemorandaConversationStore(ConversationStore):
    """Pydantic AI's conversations in a folder or on a server of Memoranda.

    A message is one memory of kind `item`, or several if it is long, found by its text; other searches of the product
    see items only if they name that kind. Conversations belong to the user `user_id`, or to the tenant; `name` keeps
    several stores apart. A save is one transaction, and of two writers with the same revision one gets a
    ConversationConflict, also across processes. Methods run in worker threads.

    Deleting a conversation deletes the entries that no other one uses. Entries that another process forks at this very
    moment may be deleted with it.
    """

    def __init__(
        self, product: Product, *, user_id: str | None = None, name: str = "pydantic-ai-conversations"
    ) -> None:
        self._entries = Entries(memories_of(product), name, user_id=user_id)
        self._place = (name, user_id)
        self._changing = threading.Lock()

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """The record of a conversation; None if there is none."""
        return await asyncio.to_thread(lambda: _record(self._newest(conversation_id)))

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """The records, of one scope if it is named, the last saved first."""
        records = await asyncio.to_thread(self._records)
        matching = [record for record in records if scope is None or record.scope == scope]
        return sorted(matching, key=lambda record: record.updated_at, reverse=True)[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Stores a record with its new entries.

        Raises:
            ConversationConflict: the stored record has another revision, or its newest entry is gone.
            InvalidInput: the record is larger than `limits.max_metadata_bytes`.
        """
        await asyncio.to_thread(self._write, record, list(new_entries), expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Deletes a record, and the entries that no other record reaches.

        Raises:
            ConversationConflict: the stored record has another revision, or there is none.
        """
        await asyncio.to_thread(self._delete, conversation_id, expected_revision)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """An entry.

        Raises:
            KeyError: there is none of this id.
        """
        return await asyncio.to_thread(self._entry, entry_id)

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """The entries up to one, in their order; the last `limit` of them."""
        return await asyncio.to_thread(self._history, head_id, limit)

    # --- records -----------------------------------------------------------------------------------

    def _newest(self, conversation_id: str) -> Memory | None:
        """The row of a conversation's last change, which may be its deletion."""
        return next(self._rows(1, holds=RECORD, conversation=conversation_id), None)

    def _records(self) -> list[ConversationRecord]:
        newest: dict[str, Memory] = {}
        for row in self._rows(holds=RECORD):
            newest.setdefault(row.metadata["conversation"], row)
        return [record for record in map(_record, newest.values()) if record is not None]

    def _write(self, record: ConversationRecord, new: list[ConversationEntry], expected: str | None) -> None:
        drafts = [draft for entry in new for draft in self._drafts(entry)]
        with self._changing:
            ids = {entry.id for entry in new}
            if record.head_id not in {None, *ids} and self._part(str(record.head_id), 0) is None:
                raise ConversationConflict(record.conversation_id)
            value = _RECORDS.dump_json([record]).decode()
            self._change(record.conversation_id, record.revision, expected, value, drafts)

    def _delete(self, conversation_id: str, expected: str) -> None:
        with self._changing:
            gone = _record(self._newest(conversation_id))
            self._change(conversation_id, str(uuid4()), expected, None, [])
            if gone is not None:
                self._release(gone)

    def _change(
        self,
        conversation_id: str,
        revision: str,
        expected: str | None,
        value: str | None,
        drafts: list[dict[str, Any]],
    ) -> None:
        """Replaces a record with `value`, None where it is deleted. The id of the new row is a digest of the revision
        that it replaces, so that one of two concurrent writers gets a conflict.

        Raises:
            ConversationConflict: the record has another revision.
        """
        old = self._newest(conversation_id)
        live = None if old is None or old.metadata["parts"] is None else old.metadata["revision"]
        if live != expected:
            raise ConversationConflict(conversation_id)
        before = None if old is None else old.metadata["revision"]
        row = {
            "id": self._id(RECORD, conversation_id, before),
            "content": f"Conversation {conversation_id}, {revision}",
            "metadata": {
                "holds": RECORD,
                "conversation": conversation_id,
                "revision": revision,
                "parts": None if value is None else payloads.parts_of(value),
            },
        }
        try:
            self._entries.create([*drafts, row])
        except Conflict as exc:
            raise ConversationConflict(conversation_id) from exc
        if old is not None:
            self._entries.memories.update(old.id, metadata={"holds": REPLACED})

    def _release(self, gone: ConversationRecord) -> None:
        """Deletes the entries that only a deleted record reaches."""
        used: set[str] = set()
        for record in self._records():
            self._reach(record, used)
        released: set[str] = set(used)
        for entry in self._reach(gone, released):
            for memory in self._parts(entry):
                self._entries.delete(memory.id)

    def _reach(self, record: ConversationRecord, seen: set[str]) -> list[str]:
        """The entries of a record and its branches that are not in `seen`, which they are added to."""
        reached = []
        for tip in [record.head_id, *record.branches]:
            at = tip
            while at is not None and at not in seen:
                seen.add(at)
                reached.append(at)
                row = self._part(at, 0)
                at = None if row is None else row.metadata["parent"]
        return reached

    # --- entries -----------------------------------------------------------------------------------

    def _drafts(self, entry: ConversationEntry) -> list[dict[str, Any]]:
        parts = payloads.parts_of(ModelMessagesTypeAdapter.dump_json([entry.message]).decode())
        content = payloads.searchable(_texts(entry.message), f"{entry.message.kind} {entry.id}")
        common = {"holds": ENTRY, "entry": entry.id, "parent": entry.parent_id, "of": len(parts)}
        return [
            {
                "id": self._id(ENTRY, entry.id, number),
                "content": f"{entry.id}, part {number + 1}" if number else content,
                "metadata": {**common, "part": part},
            }
            for number, part in enumerate(parts)
        ]

    def _part(self, entry_id: str, number: int) -> Memory | None:
        return self._entries.get(self._id(ENTRY, entry_id, number))

    def _parts(self, entry_id: str) -> list[Memory]:
        first = self._part(entry_id, 0)
        if first is None:
            return []
        rest = [self._part(entry_id, number) for number in range(1, first.metadata["of"])]
        return [first, *(row for row in rest if row is not None)]

    def _entry(self, entry_id: str) -> ConversationEntry:
        rows = self._parts(entry_id)
        if not rows or len(rows) < rows[0].metadata["of"]:
            raise KeyError(entry_id)
        (message,) = ModelMessagesTypeAdapter.validate_json("".join(row.metadata["part"] for row in rows))
        return ConversationEntry(id=entry_id, parent_id=rows[0].metadata["parent"], message=message)

    def _history(self, head_id: str | None, limit: int | None) -> list[ConversationEntry]:
        history: list[ConversationEntry] = []
        at = head_id
        while at is not None and (limit is None or len(history) < limit):
            history.append(self._entry(at))
            at = history[-1].parent_id
        return history[::-1]

    def _rows(self, first: int = entries.PAGE, **keys: str) -> Any:
        """Rows, newest first."""
        return self._entries.listed(first, filters={**keys, "$user_id": self._entries.user_id})

    def _id(self, *parts: Any) -> str:
        return entries.id_of(*self._place, *parts)


def _record(row: Memory | None) -> ConversationRecord | None:
    if row is None or row.metadata["parts"] is None:
        return None
    (record,) = _RECORDS.validate_json("".join(row.metadata["parts"]))
    return record


def _texts(message: Any) -> list[str]:
    """The texts of the user or the model in a message."""
    kinds = UserPromptPart if isinstance(message, ModelRequest) else TextPart
    texts = [part.content for part in message.parts if isinstance(part, kinds)]
    return [text for text in texts if isinstance(text, str)]
