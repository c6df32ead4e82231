"""Stored conversations of one subject, and their items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

import msgspec

from memoranda.clock import moment, now_micros
from memoranda.errors import InvalidInput, NotFound
from memoranda.knowledge.checks import metadata_of
from memoranda.responses import records
from memoranda.responses.attachments import Attachments
from memoranda.responses.events import visible
from memoranda.responses.items import PREFIXES, checked
from memoranda.responses.messages import mark
from memoranda.responses.values import Item, Summary
from memoranda.storage.sql.base import Connection
from memoranda.store.access import must_write, owns
from memoranda.store.changes import ROWS, TEXTS, parted
from memoranda.store.core import Core
from memoranda.store.forgotten import note
from memoranda.store.ids import listed, nameable, new_id
from memoranda.store.paging import Listed, Paging, as_page, check_page, leave_place, left_place, page
from memoranda.text.stored import compact_json
from memoranda.types import Subject

T = TypeVar("T")
MAX_ITEMS = 20
"""Items in one call."""
MAX_PAGE = 100


class Conversation(msgspec.Struct, kw_only=True):
    """A conversation. `summary` is of its beginning, if there is one."""

    id: str
    metadata: dict[str, str]
    user_id: str | None
    created_at: datetime
    summary: Summary | None = None


class ConversationRow(NamedTuple):
    """One row of `conversations`. `summary` is JSON: a `Summary`, and `seq`, the place of the last item it covers."""

    tenant_id: str
    id: str
    seq: int
    user_id: str | None
    metadata: str
    summary: str | None
    created_at: int


class Reach(Summary, kw_only=True):
    """A summary and the place of the last item it covers."""

    seq: int


class Conversations:
    """The conversations of one subject. A conversation of another subject, of this tenant or not, does not exist."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self._core = core
        self.subject = subject
        self._tenant = subject.tenant_id

    async def create(
        self, items: Sequence[Item] | None = None, *, metadata: dict[str, str] | None = None
    ) -> Conversation:
        """Makes a conversation that begins with up to 20 items.

        Raises:
            InvalidInput: names the field and the fix.
            Forbidden: the subject writes nothing.
        """
        must_write(self.subject)
        now = now_micros()
        row = ConversationRow(
            self._tenant, new_id("conv_"), 0, self.subject.user_id, metadata_of(metadata), None, now
        )
        taken = await self._taken_in(items or [])

        def work(c: Connection) -> Conversation:
            c.run("add_tenant", [self._tenant, now])
            values = [row.tenant_id, row.id, records.draw(c), row.user_id, row.metadata, row.created_at]
            c.run("add_conversation", values)
            records.add_items(c, self._tenant, row.id, taken)
            return _value(row)

        return await self._write(work)

    async def get(self, id: str) -> Conversation:
        """One conversation.

        Raises:
            NotFound: no such conversation for this subject.
        """
        return await self._read(lambda c: _value(conversation_seen(c, self.subject, id)))

    async def update(self, id: str, *, metadata: dict[str, str] | None) -> Conversation:
        """Replaces the metadata of a conversation; None empties it.

        Raises:
            NotFound: no such conversation for this subject.
            InvalidInput: names the key.
            Forbidden: the subject writes nothing.
        """
        must_write(self.subject)
        metadata_json = metadata_of(metadata)

        def work(c: Connection) -> Conversation:
            row = conversation_seen(c, self.subject, id)
            c.run("set_conversation", [metadata_json, self._tenant, id])
            return _value(row._replace(metadata=metadata_json))

        return await self._write(work)

    async def delete(self, id: str) -> None:
        """Deletes a conversation and its items; the items of a long one first, in steps. If the process dies in
        between, the rest stays; deleting it again continues.

        Raises:
            NotFound: no such conversation for this subject.
            Forbidden: the subject writes nothing.
        """
        must_write(self.subject)
        await self._read(lambda c: conversation_seen(c, self.subject, id))

        def work(c: Connection) -> bool:
            if shortened(c, self._tenant, id):
                return True
            c.run("drop_conversation", [self._tenant, id])
            note(c, self._tenant, [("conversations", id)])
            return False

        while await self._write(work):
            pass

    async def items(
        self,
        id: str,
        *,
        limit: int = 20,
        after: str | None = None,
        order: str = "desc",
        include: Sequence[str] = (),
    ) -> Listed[Item]:
        """One page of the items of a conversation, newest first unless `order` is `asc`. File searches carry their
        results if `include` names `file_search_call.results`.

        Raises:
            NotFound: no such conversation for this subject.
            InvalidInput: a field is wrong, or the cursor names no item of the conversation.
        """
        check_page(limit, order, MAX_PAGE)

        def read(c: Connection) -> Listed[Item]:
            conversation_seen(c, self.subject, id)

            def seq_of(item: str) -> int | None:
                row = c.one("get_item", [self._tenant, id, item]) if nameable(item) else None
                return left_place(c, self.subject, id, item) if row is None else int(row[0])

            select = "SELECT i.id, i.item FROM conversation_items i WHERE i.tenant_id = ? AND i.conversation_id = ?"
            request = Paging(limit, after, None, order == "desc")
            rows, more = page(c, select, [self._tenant, id], "i.seq", seq_of, request)
            data = [_seen(_decoded(row[1]), include) for row in rows]
            return as_page(data, [row[0] for row in rows], more)

        return await self._read(read)

    async def add_items(self, id: str, items: Sequence[Item], *, include: Sequence[str] = ()) -> Listed[Item]:
        """Adds up to 20 items at the end of a conversation; returns the stored items, as `items` shows them.

        Raises:
            NotFound: no such conversation for this subject.
            InvalidInput: names the item, the field and the fix; nothing was added.
            Forbidden: the subject writes nothing.
        """
        must_write(self.subject)
        taken = await self._taken_in(items)
        if not taken:
            raise InvalidInput("items", "must hold at least one item")
        ids = [item["id"] for item in taken]

        def work(c: Connection) -> None:
            conversation_seen(c, self.subject, id)
            there = {row[0] for row in c.all("items_there", [self._tenant, id, listed(ids)])}
            for i, item in enumerate(ids):
                if item in there:
                    says = (
                        f"{item!r} is in the conversation already; leave the id out to add the item once more"
                    )
                    raise InvalidInput(f"items[{i}].id", says)
            records.add_items(c, self._tenant, id, taken)

        await self._write(work)
        return as_page([_seen(item, include) for item in taken], ids, False)

    async def get_item(self, id: str, item_id: str, *, include: Sequence[str] = ()) -> Item:
        """One item of a conversation, seen as `items` shows it.

        Raises:
            NotFound: no such conversation for this subject, or no such item in it.
        """

        def read(c: Connection) -> Item:
            conversation_seen(c, self.subject, id)
            return _seen(_decoded(_item(c, self._tenant, id, item_id)[2]), include)

        return await self._read(read)

    async def delete_item(self, id: str, item_id: str) -> Conversation:
        """Deletes an item of a conversation, and the summary if it covers the item.

        Raises:
            NotFound: no such conversation for this subject, or no such item in it.
            Forbidden: the subject writes nothing.
        """
        must_write(self.subject)

        def work(c: Connection) -> Conversation:
            row = conversation_seen(c, self.subject, id)
            seq = _item(c, self._tenant, id, item_id)[0]
            c.run("drop_item", [self._tenant, id, item_id])
            note(c, self._tenant, [("conversation_items", id, item_id)])
            leave_place(c, self.subject, id, item_id, seq)
            summary = stored_summary(row)
            if summary is not None and seq <= summary.seq:
                c.run("summarize_conversation", [None, self._tenant, id])
                row = row._replace(summary=None)
            return _value(row)

        return await self._write(work)

    async def _taken_in(self, items: Sequence[Item]) -> list[Item]:
        """Items as they are stored, with the texts of their files, and their tokens counted.

        Raises:
            InvalidInput: as `taken_in`; or a file is not there for this subject, cannot be read, or is too much.
        """
        taken = taken_in(items)
        attachments = Attachments(self._core, self.subject)
        await attachments.read(taken, "items")
        await attachments.images(taken, "items")
        await self._core.threads.run(mark, taken)
        return taken

    async def _read(self, work: Callable[[Connection], T]) -> T:
        return await self._core.threads.run(self._core.store.db.read, work, self._tenant)

    async def _write(self, work: Callable[[Connection], T]) -> T:
        return await self._core.threads.result(self._core.store.db.write(work, tenant=self._tenant))


def shortened(c: Connection, tenant: str, id_: str) -> int:
    """Delete the first items of a conversation that is too large for one transaction, with the summary that covers
    them. Return the number of deleted items; 0 if the conversation can be deleted as a whole."""
    sizes = c.all("item_sizes", [tenant, id_, ROWS + 1])
    first = next(parted(sizes[:ROWS], lambda row: int(row[1]), TEXTS), ())
    if len(first) == len(sizes):
        return 0
    c.run("summarize_conversation", [None, tenant, id_])
    return c.run("drop_items", [tenant, id_, compact_json([seq for seq, _ in first])])


def taken_in(items: Sequence[Item], where: str = "items") -> list[Item]:
    """Items as a conversation takes them: an id with the prefix of its type stays, any other is replaced.

    Raises:
        InvalidInput: an item is wrong, an id is repeated, or there are more than 20.
    """
    if not isinstance(items, list | tuple):
        raise InvalidInput(where, "must be a list of items")
    if len(items) > MAX_ITEMS:
        raise InvalidInput(where, f"holds {len(items)} items; send at most {MAX_ITEMS} at a time")
    taken = checked(list(items), where)
    ids: set[str] = set()
    for i, item in enumerate(taken):
        if item["type"] == "item_reference":
            says = "an item_reference names what is kept elsewhere; send the item itself"
            raise InvalidInput(f"{where}[{i}].type", says)
        prefix = PREFIXES.get(item["type"], "")
        if not item["id"].startswith(prefix) or not nameable(item["id"]):
            item["id"] = new_id(prefix)
        if item["id"] in ids:
            raise InvalidInput(f"{where}[{i}].id", f"{item['id']!r} is there twice")
        ids.add(item["id"])
    return taken


def conversation_seen(c: Connection, subject: Subject, id_: str) -> ConversationRow:
    """A conversation that is the subject's.

    Raises:
        NotFound: there is none for this subject.
    """
    row = c.one("get_conversation", [subject.tenant_id, id_]) if nameable(id_) else None
    conversation = None if row is None else ConversationRow._make(row)
    if conversation is None or not owns(subject, conversation.user_id):
        raise NotFound(f"Conversation with id '{id_}' not found.")
    return conversation


def stored_summary(row: ConversationRow) -> Reach | None:
    """The summary of a conversation's beginning, with the place it reaches to."""
    return None if row.summary is None else msgspec.json.decode(row.summary, type=Reach)


def keep_summary(c: Connection, tenant: str, id_: str, summary: Summary, summarized: Sequence[str]) -> bool:
    """Stores a summary of the items `summarized`, the last of which it names. Return False and store nothing if one of
    them was deleted meanwhile, or if another summary reaches further."""
    row = c.one("get_conversation", [tenant, id_])
    last = c.one("get_item", [tenant, id_, summary.summarized_up_to])
    if row is None or last is None:
        return False
    if len(c.all("items_there", [tenant, id_, listed(summarized)])) < len(summarized):
        return False
    earlier = stored_summary(ConversationRow._make(row))
    if earlier is not None and earlier.seq > last[0]:
        return False
    fields = msgspec.structs.asdict(summary)
    c.run("summarize_conversation", [compact_json(fields | {"seq": last[0]}), tenant, id_])
    return True


def _item(c: Connection, tenant: str, id_: str, item_id: str) -> tuple[int, str, str]:
    row = c.one("get_item", [tenant, id_, item_id]) if nameable(item_id) else None
    if row is None:
        raise NotFound(f"No item with id '{item_id}' in conversation '{id_}'.")
    return row[0], row[1], row[2]


def _seen(item: Item, include: Sequence[str]) -> Item:
    return visible(item, "file_search_call.results" in include)


def _decoded(text: str) -> Item:
    item: Item = msgspec.json.decode(text)
    return item


def _value(row: ConversationRow) -> Conversation:
    return Conversation(
        id=row.id,
        metadata=msgspec.json.decode(row.metadata),
        user_id=row.user_id,
        created_at=moment(row.created_at),
        summary=None if row.summary is None else msgspec.json.decode(row.summary, type=Summary),
    )
