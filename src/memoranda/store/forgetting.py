"""Forgetting: which rows of every package a request selects, and their erasure, page by page.

The erasers of the packages go through what is selected. In an `Erasure` it is erased, in a `Preview` it is counted.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import msgspec

from memoranda.clock import in_zone, micros, moment, now_micros
from memoranda.concurrency.threads import Threads
from memoranda.errors import StorageError
from memoranda.filters import EVERYTHING, Filter, all_of, matches
from memoranda.storage.sql.base import Connection, Row
from memoranda.store import listing
from memoranda.store.access import (
    PLACES,
    default_scopes,
    scopes_filter,
    sees_all,
    selection_filter,
    visible_to,
)
from memoranda.store.changes import ROWS
from memoranda.store.job_kinds import RELEASE_JOB
from memoranda.store.jobs import Jobs
from memoranda.store.origins import is_reference
from memoranda.store.rows import Record, attributes
from memoranda.store.store import Store
from memoranda.store.transaction import Writing
from memoranda.text.phrase import Phrase
from memoranda.text.stored import compact_json
from memoranda.types import Forget, Receipt, Subject

log = logging.getLogger("memoranda.forgetting")
PAGE = ROWS
"""Rows per page, and the most rows erased in one transaction."""
PASSES = 5
"""Passes over all packages: a later pass erases what was written during an earlier one."""
MESSAGE = "message"
Work = Callable[[Writing], Mapping[str, int]]
"""Erases rows, and returns how many by kind."""
ErasedCounts = Mapping[str, int | Collection[Hashable]]
"""What is erased, by kind: a number of rows that no other page contains, or identifiers of rows that other pages may
contain as well."""
NOTHING: ErasedCounts = {}


class Aim(msgspec.Struct, frozen=True):
    """What a request to forget selects. `places` are ids by `user`, `session`, `channel`, `agent`; `everything` is all
    of the tenant.

    `own` is the user that the subject is `bound` to. Times are microseconds since 1970. `other_data` is True if the
    rows of other packages than memories are selected, `messages` if the message log is, `logged` if the messages
    among the memories are."""

    subject: Subject
    where: Filter
    ids: tuple[str, ...] | None = None
    everything: bool = False
    places: Mapping[str, frozenset[str]] = msgspec.field(default_factory=dict)
    own: str | None = None
    bound: bool = False
    since: int | None = None
    until: int | None = None
    text: Phrase | None = None
    other_data: bool = False
    messages: bool = False
    logged: bool = False

    @property
    def tenant(self) -> str:
        """The tenant of the subject."""
        return self.subject.tenant_id

    @property
    def whole(self) -> bool:
        """True if everything ever said in these places is selected, and so their configuration, too."""
        return self.other_data and self.since is None and self.until is None and self.text is None

    def condition(
        self,
        *,
        user: str | None = None,
        session: str | None = None,
        channel: str | None = None,
        agent: str | None = None,
        time: str | None = None,
        nobodys: bool = False,
    ) -> tuple[str, list[Any]] | None:
        """Return the selected rows of a table as SQL, by its columns; None if no row can be selected. `nobodys` adds
        rows without a user, which a subject bound to a user may erase if it names their place."""
        columns = {"user": user, "session": session, "channel": channel, "agent": agent}
        parts, values = [], list[Any]()
        if not self.everything:
            named = [(columns[place], ids) for place, ids in self.places.items() if columns[place] and ids]
            if not named:
                return None
            parts.append("(" + " OR ".join(f"{column} IN ({_marks(ids)})" for column, ids in named) + ")")
            values += [id_ for _, ids in named for id_ in sorted(ids)]
        if self.bound:
            if user is None:
                return None
            parts.append(f"({user} = ?{f' OR {user} IS NULL' if nobodys else ''})")
            values.append(self.own)
        for sign, at in ((">=", self.since), ("<", self.until)):
            if at is not None:
                if time is None:
                    return None
                parts.append(f"{time} {sign} ?")
                values.append(at)
        return " AND ".join(parts) or "1 = 1", values


def _marks(ids: frozenset[str]) -> str:
    return ", ".join("?" * len(ids))


def aim_of(subject: Subject, ids: Sequence[str] | None, chosen: Forget) -> Aim:
    """Return what a call of `forget` selects.

    Raises:
        InvalidInput: a field of the selection is wrong.
        Forbidden: `all` is asked for by someone who is not an admin.
    """
    bound = not sees_all(subject)
    own = subject.user_id if bound else None
    if ids is not None:
        return Aim(subject, EVERYTHING, ids=tuple(ids), own=own, bound=bound, messages=True)
    unscoped = chosen.scopes is None and subject.role == "admin"
    where = all_of(
        EVERYTHING if unscoped else scopes_filter(chosen.scopes, subject),
        selection_filter(chosen, subject, None),
    )
    scopes = default_scopes(subject) if chosen.scopes is None else chosen.scopes
    places: dict[str, set[str]] = {place: set() for place in PLACES}
    for place, colon, id_ in (scope.partition(":") for scope in scopes):
        if colon:
            places[place].add(id_)
    if bound:
        places["user"] &= {own} if own is not None else set()
    memories_only = bool(chosen.tags or chosen.filters or chosen.roles)
    other_source = chosen.source not in (None, MESSAGE)
    kinds = chosen.kinds or []
    return Aim(
        subject,
        where,
        everything=unscoped or "all" in scopes,
        places={place: frozenset(values) for place, values in places.items()},
        own=own,
        bound=bound,
        since=None if chosen.since is None else micros(in_zone(chosen.since, subject.time_zone)),
        until=None if chosen.until is None else micros(in_zone(chosen.until, subject.time_zone)),
        text=None if chosen.text is None else Phrase(chosen.text),
        other_data=not memories_only and not kinds and chosen.source is None,
        messages=not memories_only and not other_source and (not kinds or MESSAGE in kinds),
        logged=chosen.source is not None and is_reference(chosen.source),
    )


class Forgetting(ABC):
    """What erasers go through: the selected rows of all packages."""

    erasing: ClassVar[bool]
    """False if nothing may change."""

    def __init__(self, store: Store, jobs: Jobs, threads: Threads, aim: Aim) -> None:
        self.store = store
        self.jobs = jobs
        self.threads = threads
        self.aim = aim
        self.ids: set[str] = set()
        """Erased files, responses, conversations, sessions, ...: jobs about one of them are cancelled."""
        self.sessions: set[str] = set()
        """Sessions in which only the selected users have spoken."""
        self.shortened: set[str] = set()
        """Sessions that lose messages, or their summaries."""

    @abstractmethod
    async def change(self, work: Work, found: ErasedCounts = NOTHING, sources: Collection[str] = ()) -> None:
        """Erase one page by `work`, which erases what is `found`. `sources` are the ids of messages and memories that
        go, with what is made of them."""

    @abstractmethod
    async def memories(self, rows: Sequence[Record]) -> None:
        """Erase a page of memories."""

    def pages(
        self, table: str, columns: str, where: tuple[str, list[Any]] | None, order: str = "seq"
    ) -> _Pages:
        """Return the selected rows of a table, in pages by `order`, a unique column of the table that is `columns`'
        first. Each page is a new query, so rows may be erased between pages."""
        return _Pages(self, table, columns, where, order)


class Erasure(Forgetting):
    """One call of `forget`. `counts` are the rows erased so far, by kind."""

    erasing = True

    def __init__(self, store: Store, jobs: Jobs, threads: Threads, aim: Aim, tombstone: str) -> None:
        super().__init__(store, jobs, threads, aim)
        self.tombstone = tombstone
        self.erased_at = now_micros()
        self.counts: Counter[str] = Counter()

    async def memories(self, rows: Sequence[Record]) -> None:
        """Erase a page of memories."""
        seqs = [row.seq for row in rows]
        await self.change(lambda w: removed(w, seqs))

    async def change(self, work: Work, found: ErasedCounts = NOTHING, sources: Collection[str] = ()) -> None:
        """Erase one page: `work` erases rows and returns how many by kind, in one transaction with the tombstone's
        counts."""

        def whole(w: Writing) -> Counter[str]:
            counts = Counter(self.counts)
            w.by_request = True
            w.by_text = self.aim.text is not None and self.aim.other_data
            counts.update(work(w))
            counts.update(w.also)
            self._note(w.c, counts)
            return counts

        self.counts = await self.threads.result(self.store.transact(self.aim.tenant, whole))
        jobs = await self.jobs.finish(self.aim.tenant, RELEASE_JOB)
        if jobs:
            self.counts += sum((Counter(job.result) for job in jobs), Counter())
            note = self.store.transact(self.aim.tenant, lambda w: self._note(w.c, self.counts))
            await self.threads.result(note)
        if any(job.state != "completed" for job in jobs):
            raise StorageError(
                "what was made of erased memories is not erased yet, a job goes on with it; call forget again"
            )

    def _note(self, c: Connection, counts: Counter[str]) -> None:
        erased = compact_json({kind: number for kind, number in sorted(counts.items()) if number})
        values = [
            self.aim.tenant,
            self.tombstone,
            self.erased_at,
            counts["memories"],
            counts["vectors"],
            erased,
        ]
        c.run("set_tombstone", values)
        c.run("drop_left_places", [self.aim.tenant, self.erased_at])

    async def run(self, erasers: Sequence[Eraser]) -> Receipt:
        """Erase the selected rows of all packages until none is left, then purge files and caches.

        Raises:
            StorageError: something could not be erased; another call continues.
        """
        for _ in range(PASSES):
            before = Counter(self.counts)
            for erase in (*erasers, erase_memories):
                await erase(self)
            await erase_jobs(self)
            if self.counts == before:
                break
        else:
            log.warning("what is being forgotten is still being written; call forget again")
        if not self.counts:
            await self.change(lambda w: {})
        self.jobs.wake_all()
        await self.threads.run(self.store.purge)
        return Receipt(
            tombstone=self.tombstone,
            memories=self.counts["memories"],
            vectors=self.counts["vectors"],
            counts={kind: number for kind, number in sorted(self.counts.items()) if number},
            erased_at=moment(self.erased_at),
            note=self.store.db.erased,
        )


Eraser = Callable[[Forgetting], Awaitable[None]]
"""Goes through the selected rows of one package, and has them erased; called again until none is left."""


class _Pages:
    def __init__(
        self, run: Forgetting, table: str, columns: str, where: tuple[str, list[Any]] | None, order: str
    ) -> None:
        self._run = run
        self._where = where
        self._sql = (
            f"SELECT {columns} FROM {table} WHERE tenant_id = ? AND {{}} ORDER BY {order} LIMIT {PAGE}"
        )
        self._order = order
        self._after: Any = None
        self._ended = where is None

    def __aiter__(self) -> _Pages:
        return self

    async def __anext__(self) -> list[Row]:
        if self._ended or self._where is None:
            raise StopAsyncIteration
        condition, values = self._where
        if self._after is not None:
            condition, values = f"({condition}) AND {self._order} > ?", [*values, self._after]
        sql, tenant = self._sql.format(condition), self._run.aim.tenant
        rows = await self._run.threads.run(
            self._run.store.db.read, lambda c: c.select(sql, [tenant, *values]), tenant
        )
        if not rows:
            raise StopAsyncIteration
        self._ended = len(rows) < PAGE
        self._after = rows[-1][0]
        return list(rows)


# --- memories --------------------------------------------------------------------------------------


async def erase_memories(run: Forgetting) -> None:
    """Erase the selected memories, with their vectors, keyword entries and derived memories."""
    for_page = _named(run) if run.aim.ids is not None else selected_memories(run)
    while (rows := await run.threads.run(next, for_page, None)) is not None:
        if rows:
            await run.memories(rows)


def removed(w: Writing, seqs: Sequence[int], kind: str = "memories") -> dict[str, int]:
    """Remove memory rows (or rows of another kind stored as such); return the counts."""
    rows, vectors = w.remove(seqs)
    return {kind: rows, "vectors": vectors}


def _named(run: Forgetting) -> Iterator[list[Record]]:
    aim = run.aim
    for at in range(0, len(aim.ids or ()), PAGE):
        some = list((aim.ids or ())[at : at + PAGE])
        rows = run.store.by_id(aim.tenant, some)
        mine = visible_to(aim.subject)
        yield [row for row in rows.values() if matches(mine, attributes(row))]


def selected_memories(run: Forgetting) -> Iterator[list[Record]]:
    """Yield the rows of the memories that a selection names, in pages."""
    aim = run.aim
    for rows in listing.scan(run.store.db, aim.tenant, aim.where, size=PAGE):
        yield [row for row in rows if aim.text is None or contains_phrase(row, aim.text)]


def contains_phrase(row: Record, phrase: Phrase) -> bool:
    """Return True if a memory contains a phrase, in its text, tags, metadata, header, source or role."""
    return phrase.within(row.content, row.header, row.source, row.role) or phrase.within_json(
        row.tags, row.metadata
    )


# --- jobs ------------------------------------------------------------------------------------------


async def erase_jobs(run: Erasure) -> None:
    """Cancel jobs about erased objects, or whose payload contains the phrase, and blank their rows. Of jobs whose error
    or result contains it, only these are blanked."""
    aim = run.aim
    if not aim.other_data:
        return
    text = None if aim.bound else aim.text
    everything = aim.everything and aim.whole and not aim.bound
    completing = {kind for kind, declared in run.jobs.kinds.items() if declared.completes_deletion}
    maintenance = {kind for kind, declared in run.jobs.kinds.items() if declared.maintenance}
    async for rows in run.pages("jobs", "seq, id, kind, payload, error, result", ("1 = 1", [])):
        ids, outcomes = [], []
        for _, id_, kind, encoded, *rest in rows:
            if kind in completing or (encoded == "{}" and not any(rest)):
                continue
            payload = msgspec.json.decode(encoded)
            mentioned = text is not None and text.within(*_texts(payload))
            if mentioned or (everything and kind not in maintenance) or _about(run, payload):
                ids.append(id_)
            elif text is not None and text.within(*rest):
                outcomes.append(id_)
        if ids or outcomes:
            await run.change(partial(_cancelled, jobs=run.jobs, ids=ids, outcomes=outcomes))


NAMES = {"user_id": "user", "session_id": "session", "session": "session", "conversation": "session"}
"""Keys of job payloads that name a place."""


def _about(run: Forgetting, value: Any, key: str = "") -> bool:
    """Return True if the payload of a job names an erased object or a selected place."""
    if isinstance(value, dict):
        return any(_about(run, part, name) for name, part in value.items())
    if isinstance(value, list):
        return any(_about(run, part, key) for part in value)
    if not isinstance(value, str):
        return False
    named = run.aim.places.get(NAMES.get(key, ""), frozenset()) if run.aim.whole else frozenset()
    return value in run.ids or value in named


def _texts(value: Any) -> Iterator[str]:
    """Yield the strings of a payload without its keys: most are names of fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def _cancelled(w: Writing, jobs: Jobs, ids: Sequence[str], outcomes: Sequence[str]) -> dict[str, int]:
    for id_ in ids:
        jobs.stop_one(w.c, w.tenant, id_)
    blanked = w.c.run("blank_jobs", [w.tenant, compact_json(ids)])
    return {"jobs": blanked + w.c.run("blank_outcomes", [w.tenant, compact_json(outcomes)])}
