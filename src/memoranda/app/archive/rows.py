"""Writes rows of one table into one tenant, in one transaction: those that are new, with new numbers in the order of
the archive."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from memoranda.app.archive.tables import (
    ASK_MEMORIES,
    ASK_SUMMARIES,
    ATTACHED,
    MESSAGES,
    SESSIONS,
    STORE_MEMORIES,
    STORES,
    Table,
)
from memoranda.clock import now_micros
from memoranda.errors import InvalidInput
from memoranda.knowledge.attaching import INDEX_JOB
from memoranda.knowledge.quotas import quotas_of
from memoranda.memory_stores.rows import overlap, path_taken
from memoranda.memory_stores.values import checked_path
from memoranda.responses.conversations import ConversationRow
from memoranda.sessions.records import messages_by_id, sessions_by_id
from memoranda.sessions.summary_memories import schedule_rollups
from memoranda.storage.sql.base import Connection
from memoranda.store.changes import ROWS
from memoranda.store.core import Core
from memoranda.store.forgotten import FORGOTTEN, forgotten_among
from memoranda.text.stored import compact_json

Fields = dict[str, Any]
GONE = "belongs to what is not restored"
TAKEN = "has the id of something else that is here"
ELSEWHERE = "is here already, in another scope"
TAKEN_PATH = "has the path of another memory that is here, or one above or below it"


class Written(msgspec.Struct):
    """The results of rows, by their place: new, present already, or refused for a reason."""

    created: list[int] = msgspec.field(default_factory=list)
    present: list[int] = msgspec.field(default_factory=list)
    refused: dict[int, str] = msgspec.field(default_factory=dict)


def write_rows(
    c: Connection,
    core: Core,
    tenant: str,
    table: Table,
    rows: Sequence[Fields],
    *,
    dry: bool,
    moved: Collection[str] = (),
    since: int | None = None,
) -> Written:
    """Insert rows that are missing; with `dry`, only report them. `moved` are the columns of the scope that the rows
    were moved to: a row of another scope is not the same. Those that were forgotten after `since` (microseconds) are
    refused."""
    done = Written()
    scope = [name for name in table.places if name in moved]
    same = (*table.same, *scope)
    _resolve(c, tenant, table, rows, done, dry)
    left = [at for at in range(len(rows)) if at not in done.refused]
    if not dry:
        _without_orphans(c, tenant, table, rows, left, done)
    there = _there(c, tenant, table, [rows[at] for at in left if at not in done.refused], same)
    keys = {at: tuple(rows[at].get(name) for name in table.key) for at in left if at not in done.refused}
    named = {at: (table.name, *map(str, key)) for at, key in keys.items()}
    forgotten = set() if since is None else forgotten_among(c, tenant, [*named.values()], since)
    places: dict[tuple[Any, ...], int] = {}
    for at, key in keys.items():
        other, own = there.get(key), tuple(rows[at][name] for name in same)
        if other == own:
            done.present.append(at)
        elif named[at] in forgotten:
            done.refused[at] = FORGOTTEN
        elif other is not None:
            size = len(table.same)
            done.refused[at] = ELSEWHERE if other[:size] == own[:size] else TAKEN
        elif key in places:
            done.present.append(at)
        else:
            places[key] = at
    new = _NewRows(c, tenant, table, rows, places, done)
    new.remove_known_messages()
    new.refuse_taken_paths()
    new.refuse_beyond_quotas(core)
    done.created = list(places.values())
    if places and not dry:
        _insert(c, core, tenant, table, [rows[at] for at in done.created])
        if table is SESSIONS and moved:
            _schedule_rollups(c, tenant, [rows[at] for at in done.created])
    return done


def _resolve(
    c: Connection, tenant: str, table: Table, rows: Sequence[Fields], done: Written, dry: bool
) -> None:
    """Replace ids by the row numbers that they stand for."""
    if table not in (ASK_MEMORIES, ASK_SUMMARIES):
        return
    column = "seq" if table is ASK_MEMORIES else "through"
    seqs: dict[str, int] = dict(
        c.all("queries_by_id", [tenant, json.dumps([row["query_id"] for row in rows])])
    )
    for at, row in enumerate(rows):
        if row["query_id"] in seqs:
            row[column] = seqs[row["query_id"]]
        elif dry:
            row[column] = -1 - at  # it will be restored by then
        else:
            done.refused[at] = GONE


def _without_orphans(
    c: Connection, tenant: str, table: Table, rows: Sequence[Fields], left: Sequence[int], done: Written
) -> None:
    for column, parent in table.parents.items():
        ids = json.dumps(sorted({rows[at][column] for at in left}))
        sql = f"SELECT p.id FROM {{texts ?2}} wanted {{join}} {parent} p ON p.tenant_id = ?1 AND p.id = wanted.value"
        there = {id_ for (id_,) in c.select(sql, [tenant, ids])}
        done.refused |= {at: GONE for at in left if rows[at][column] not in there}


def _there(
    c: Connection, tenant: str, table: Table, rows: Sequence[Fields], same: Sequence[str]
) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Return the fields `same`, which distinguish rows of the same key, by key."""
    if not rows:
        return {}
    wanted = ", ".join(f"CAST(? AS {table.sql_type(name)})" for name in table.key)
    keys = [row[name] for row in rows for name in table.key]
    existing = c.select(
        f"SELECT {', '.join((*table.key, *same))} FROM {table.name}"
        f" WHERE tenant_id = ? AND ({', '.join(table.key)}) IN (VALUES {', '.join([f'({wanted})'] * len(rows))})",
        [tenant, *keys],
    )
    size = len(table.key)
    return {tuple(row[:size]): tuple(row[size:]) for row in existing}


class _NewRows(msgspec.Struct, frozen=True):
    """The rows of one table that an import is about to insert: `places` in `rows`, by key. Each method removes those
    that are not inserted, and adds them to `written`."""

    c: Connection
    tenant: str
    table: Table
    rows: Sequence[Fields]
    places: dict[tuple[Any, ...], int]
    written: Written

    def remove_known_messages(self) -> None:
        """Remove messages that are stored under another id: the same text, of the same person, at the same time."""
        if self.table is not MESSAGES or not self.places:
            return
        keys = json.dumps([self.rows[at]["key"] for at in self.places.values()])
        known = {row[3] for row in self.c.all("messages_by_key", [self.tenant, keys])}
        for key, at in list(self.places.items()):
            if self.rows[at]["key"] in known:
                del self.places[key]
                self.written.present.append(at)
            known.add(self.rows[at]["key"])

    def refuse_taken_paths(self) -> None:
        """Refuse memories at a path that another memory of the store has, or that is above or below it, and invalid
        paths."""
        if self.table is not STORE_MEMORIES:
            return
        restored: dict[str, list[str]] = {}
        for key, at in list(self.places.items()):
            store, path = self.rows[at]["store_id"], self.rows[at]["path"]
            others = restored.setdefault(store, [])
            if path is None:
                continue
            try:
                checked_path(path)
            except InvalidInput as exc:
                self._refuse(key, str(exc))
                continue
            if path_taken(self.c, self.tenant, store, path) or any(overlap(path, other) for other in others):
                self._refuse(key, TAKEN_PATH)
            else:
                others.append(path)

    def refuse_beyond_quotas(self, core: Core) -> None:
        """Refuse vector stores, and files in them, beyond the quotas of the tenant."""
        if self.table not in (STORES, ATTACHED) or not self.places:
            return
        c, tenant = self.c, self.tenant
        name = "max_stores" if self.table is STORES else "max_files_per_store"
        most: int = getattr(quotas_of(c, tenant, core.quotas), name)
        counts: dict[str, int] = {}
        for key, at in list(self.places.items()):
            store = "" if self.table is STORES else self.rows[at]["store_id"]
            if store not in counts:
                row = (
                    c.one("count_store_files", [tenant, store]) if store else c.one("count_stores", [tenant])
                )
                counts[store] = int(row[0]) if row else 0
            counts[store] += 1
            if counts[store] > most:
                self._refuse(key, f"exceeds the quota {name}")

    def _refuse(self, key: tuple[Any, ...], reason: str) -> None:
        self.written.refused[self.places.pop(key)] = reason


def _insert(c: Connection, core: Core, tenant: str, table: Table, rows: Sequence[Fields]) -> None:
    c.run("add_tenant", [tenant, now_micros()])
    first = 0
    if table.numbered:
        revs = c.one("draw_revs", [len(rows)])
        assert revs is not None
        first = int(revs[0]) - len(rows) + 1
    extra = _extra(c, core, tenant, table, rows, first)
    columns = ("tenant_id", *table.columns, *extra[0])
    c.load(
        table.name,
        columns,
        [
            (tenant, *(row[name] for name in table.columns), *more.values())
            for row, more in zip(rows, extra, strict=True)
        ],
    )
    if table is ATTACHED:
        _read_again(c, core, tenant, [row | more for row, more in zip(rows, extra, strict=True)])


def _extra(
    c: Connection, core: Core, tenant: str, table: Table, rows: Sequence[Fields], first: int
) -> list[Fields]:
    """Return the columns that an archive does not have: the numbers of rows and of referenced rows."""
    extra: list[Fields] = [{"seq": first + at} if table.numbered else {} for at in range(len(rows))]
    for row, more in zip(rows, extra, strict=True):
        if table is STORES:
            more |= {"model": core.store.model, "dim": core.store.index.dim}
        elif table is ATTACHED:
            more["writing"] = int(row["status"] == "completed" and row["chunk_count"] > 0)
        elif table is ASK_MEMORIES:
            more["seq"] = row["seq"]
        elif table is ASK_SUMMARIES:
            more["through"] = row["through"]
    if table is SESSIONS:
        _session_numbers(c, tenant, rows, extra)
    return extra


def _session_numbers(c: Connection, tenant: str, rows: Sequence[Fields], extra: Sequence[Fields]) -> None:
    """Set up to which message facts were extracted from sessions, and whether facts and summaries are current."""
    read = messages_by_id(c, tenant, [row["facts_upto"] for row in rows if row["facts_upto"] is not None])
    for row, more in zip(rows, extra, strict=True):
        rev, current = more["seq"], row["summary_current"]
        message = read.get(row["facts_upto"])
        more |= {
            "rev": rev,
            "facts_seq": 0 if message is None else message.seq,
            "facts_rev": rev if row["facts_current"] else 0,
            "summary_rev": None if current is None else rev if current else 0,
        }


def _schedule_rollups(c: Connection, tenant: str, rows: Sequence[Fields]) -> None:
    """Schedule the rollups of the weeks of summarized sessions."""
    summarized = sessions_by_id(c, tenant, [row["id"] for row in rows if row["summary_id"] is not None])
    schedule_rollups(c, tenant, summarized.values(), now_micros())


def _read_again(c: Connection, core: Core, tenant: str, rows: Sequence[Fields]) -> None:
    """Enqueue files whose indexing was not complete when the archive was written."""
    payloads = [
        {"store": row["store_id"], "file": row["file_id"], "attached": row["seq"]}
        for row in rows
        if row["status"] == "in_progress"
    ]
    if payloads:
        core.jobs.place_many(c, tenant, INDEX_JOB, payloads)


def settle_attachments(c: Connection, core: Core, tenant: str, stores: str) -> bool:
    """Make restored files of these stores visible to searches, at most `ROWS`; those with missing chunks are read
    again. Return True if there may be more."""
    rows, missing = c.all("unsettled_attachments", [tenant, stores, ROWS]), []
    for store, file, seq, complete in rows:
        c.run("settle_attachment" if complete else "read_attachment_again", [tenant, store, file, seq])
        if not complete:
            missing.append({"store": store, "file": file, "attached": seq})
    if missing:
        core.jobs.place_many(c, tenant, INDEX_JOB, missing)
    return len(rows) == ROWS


def restore_summaries(c: Connection, tenant: str, rows: Sequence[Fields]) -> None:
    """Give conversations without a summary that of the archive, now that their items are stored."""
    for row in rows:
        if row["summary"] is None:
            continue
        summary = msgspec.json.decode(row["summary"])
        item = summary.pop("item", None)
        last = c.one("get_item", [tenant, row["id"], item]) if isinstance(item, str) else None
        conversation = c.one("get_conversation", [tenant, row["id"]])
        if (
            last is not None
            and conversation is not None
            and ConversationRow._make(conversation).summary is None
        ):
            c.run("summarize_conversation", [compact_json(summary | {"seq": last[0]}), tenant, row["id"]])
