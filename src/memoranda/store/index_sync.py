"""The two derived indexes, kept in step with the rows.

An index is in one of three places. One **inside** the database takes a change in the change's own transaction and is
never behind. A **local** one belongs to this process: it takes its own changes right after each commit, on the
writing thread and in commit order, and where other processes write to the database too it follows them by replaying
what they changed. A **shared** one in a server of its own takes each change from the process that made it; the
database remembers which have not arrived, so that any process can bring them after a crash.

All processes of a database must keep the same inside and shared indexes. One that finds that another keeps others says
so in every answer, and leaves its changes in the journal for the other. So does one whose index is its own, which
misses nothing itself.

Whatever fails is marked behind, searches say so, and `catch_up` replays the rows.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memoranda.clock import now_micros
from memoranda.errors import Conflict, IndexUnavailable, StorageError
from memoranda.filters import Compare
from memoranda.indexes.keyword.base import Words
from memoranda.indexes.vector.base import Index
from memoranda.storage.sql.base import Connection, Database
from memoranda.store.changes import Applied, Put
from memoranda.store.index_batches import PAGE, changed_page, put_vectors, put_words, with_vectors
from memoranda.store.rows import fetch
from memoranda.text.json import compact_json

log = logging.getLogger("memoranda.store")
KEPT_REMOVALS = 1_000_000
"""Revisions for which a database with several processes remembers what was removed."""
SETTLED_WITHIN = 10_000_000
"""Microseconds after which a change that has not reached a shared index is taken up by any process."""
BEYOND = 1 << 62
SAME = 0.99
"""The least cosine of a stored vector with itself in an index, which may keep halves of floats."""


@dataclass(frozen=True, slots=True)
class Mirror:
    """An index that is being filled and takes every change meanwhile, and the vector space that it is for."""

    index: Index
    space: int


@dataclass(frozen=True, slots=True)
class Live:
    """What answers dense searches: an index, and the number and model of its vector space. Replaced as a whole, so
    that a search that takes it once never mixes two."""

    index: Index
    space: int
    model: str


class Derived:
    """One vector index and one word index of one database, for one vector space.

    `applied` is a revision up to which both have every change. `behind` names the sides that miss some, with the
    revision from which they are replayed.
    """

    def __init__(self, db: Database, index: Index, words: Words) -> None:
        self.db = db
        self.words = words
        self.live = Live(index, 0, "")
        self.mirror: Mirror | None = None
        self.behind: dict[str, int] = {}
        self.applied = 0
        self.on_purged: Callable[[], None] = lambda: None
        """Called when another process has forgotten something."""
        self.on_behind: Callable[[str], None] = lambda side: None
        self.displaced: dict[str, str] = {}
        """The sides for which another process keeps another index, and which."""
        self._failed: set[str] = set()
        self._catching_up: set[str] = set()
        self._purged = ""
        self._catching = threading.RLock()

    @property
    def index(self) -> Index:
        """The vector index that answers."""
        return self.live.index

    @property
    def space(self) -> int:
        """The number of its vector space."""
        return self.live.space

    def door(self, side: str) -> Index | Words:
        """The index of a side: `index` or `words`."""
        return self.index if side == "index" else self.words

    @property
    def follows(self) -> bool:
        """Whether other processes make changes that must be replayed here."""
        return self.db.shared and any(
            not door.inside and not door.shared for door in (self.index, self.words)
        )

    def _journalled(self) -> bool:
        doors: list[Index | Words] = [self.index, self.words]
        if self.mirror is not None:
            doors.append(self.mirror.index)
        return self.db.shared and any(door.shared and not door.inside for door in doors)

    # --- one change --------------------------------------------------------------------------------

    def inside(self, c: Connection, applied: Applied) -> None:
        """The part of a write that belongs into its transaction."""
        applied.live = self.live
        if self.mirror is not None:
            self._mirror(c, self.mirror, applied)
        if not applied.rev:
            return
        if self.index.inside:
            _to_index(self.index.within(c), applied.removed, applied.puts)
        if self.words.inside:
            _to_words(self.words.within(c), applied)
        applied.kept = self.db.shared and self._displaced_now(c)
        if applied.kept or self._journalled():
            for tenant in applied.puts.keys() | applied.removed.keys():
                c.run("note_unsettled", [tenant, applied.rev, applied.first, now_micros()])

    def after(self, applied: Applied) -> None:
        """The part of a write that comes after its commit, on the writing thread."""
        mirror, took = self.mirror, True
        switched = applied.live is not self.live  # by an earlier write of the same commit group
        if mirror is not None and not mirror.index.inside:
            took = self._step("mirror", lambda: _to_index(mirror.index, applied.removed, applied.mirrored))
        if not applied.rev and not switched:
            return
        if not self.index.inside:
            puts = applied.mirrored if switched else applied.puts
            took &= self._step("index", lambda: _to_index(self.index, applied.removed, puts))
        if not applied.rev:
            return
        if not self.words.inside:
            took &= self._step("words", lambda: _to_words(self.words, applied))
        if took and self._journalled() and not applied.kept:
            self._settle(applied)
        self._advance(applied)

    def _step(self, side: str, step: Callable[[], None]) -> bool:
        """One index takes the change, or is marked behind for the repair: the rows are safe either way. One that is
        behind is left alone until it is repaired, so that a server that is away holds up one write and no more."""
        if side in self.behind and side not in self._catching_up:
            return False
        try:
            step()
        except BaseException:  # a panic in a native index is no Exception
            log.exception("the %s did not take a change; it will be repaired", side)
            self._failed.add(side)
            if side != "mirror":
                self.behind.setdefault(side, min(self.applied, self._watermark(side)))
                self.on_behind(side)
            return False
        return True

    def _watermark(self, side: str) -> int:
        door = self.door(side)
        return BEYOND if door.inside else door.watermark

    def _advance(self, applied: Applied) -> None:
        """Moves `applied` on, and tells the indexes; where other processes write, only when none of their changes
        lies between."""
        gap = self.follows and applied.first != self.applied + 1
        if gap or self.behind:
            return
        rev = max(self.applied, applied.rev)
        if all([self._flush("index", rev), self._flush("words", rev)]):
            self.applied = rev

    def _flush(self, side: str, rev: int) -> bool:
        door = self.door(side)
        return door.inside or self._step(side, lambda: door.flush(rev))

    def _settle(self, applied: Applied) -> None:
        """Takes the change out of the journal, unless another process has changed one of its rows since: its put may
        have come before ours, so the rows are to be replayed as they are now."""
        touched = {
            tenant: [put.row.seq for put in applied.puts.get(tenant, [])] + applied.removed.get(tenant, [])
            for tenant in applied.puts.keys() | applied.removed.keys()
        }
        for tenant, seqs in touched.items():
            key = [tenant, applied.rev, compact_json(seqs)]
            moved = self.db.read(lambda c, key=key: c.all("moved_since", key), tenant)  # type: ignore[misc]
            if moved:
                return
            self.db.write(lambda c, t=tenant: c.run("settle", [t, applied.rev]), tenant=tenant)  # type: ignore[misc]

    # --- processes that are configured otherwise -----------------------------------------------------

    def _elsewhere(self, side: str) -> bool:
        """Whether the index of a side is one that all processes of a database write to."""
        return self.db.shared and (self.door(side).inside or self.door(side).shared)

    def _displaced_now(self, c: Connection) -> bool:
        """Whether what is written here does not reach an index that other processes keep."""
        held = {str(key): str(value) for key, value in c.all("keepers")}
        missed = False
        for side in ("index", "words"):
            other = held.get(f"keeps.{side}", "")
            mine = self.identity(side, self.door(side), self.space)
            missed |= other not in ("", mine)
            if not self._elsewhere(side) or other in ("", mine):
                self.displaced.pop(side, None)  # one of this process alone has everything, whoever wrote it
            elif self.displaced.get(side) != other:
                self.displaced[side] = other
                log.error(
                    "the %s of another process is %s, here it is %s: give all processes of one database the same"
                    " configuration; this one misses what the other writes until it is started again",
                    side,
                    other,
                    mine,
                )
        return missed

    def _keep(self, side: str, identity: str) -> None:
        """Notes that the index of this process is the one that is kept in step, between two writes of the others."""

        def work(c: Connection) -> None:
            c.one("draw_revs", [1])  # waits for writes that have begun
            c.run("set_meta", [f"keeps.{side}", identity])

        self.db.write(work).result()

    # --- an index that is being filled ---------------------------------------------------------------

    def _mirror(self, c: Connection, mirror: Mirror, applied: Applied) -> None:
        """Notes the change as the mirror takes it: with the vectors of its own space."""
        for tenant, puts in applied.puts.items():
            rows = [put.row for put in puts]
            applied.mirrored[tenant] = with_vectors(c, tenant, mirror.space, rows)
        if mirror.index.inside:
            _to_index(mirror.index.within(c), applied.removed, applied.mirrored)

    def begin_mirror(self, mirror: Mirror) -> None:
        """From the next write on, the mirror takes every change.

        Raises:
            Conflict: another index is being filled.
        """

        def begin(_: object) -> None:
            if self.mirror is not None:
                raise Conflict("another move is under way; wait for it, or cancel it")
            self._failed.discard("mirror")
            self.mirror = mirror

        self._clear(mirror.index)
        self.db.write(lambda c: None, begin).result()

    def end_mirror(self, mirror: Mirror) -> None:
        """Gives the mirror up. Idempotent."""

        def end(_: object) -> None:
            if self.mirror is mirror:
                self.mirror = None

        self.db.write(lambda c: None, end).result()

    def last_rev(self) -> int:
        """The last revision that was committed."""
        return self.db.read(_extent)[1]

    def tenants(self) -> list[str]:
        """Everybody who has rows."""
        return self.db.read(_extent)[0]

    def fill(self, mirror: Mirror, tenant: str) -> int:
        """Puts all vectors of a tenant into the mirror; rows put."""
        return self.replay(mirror.index, mirror.space, tenant, 0)

    def check(self, mirror: Mirror) -> int:
        """The vectors that the mirror holds, after comparing them with the rows, tenant by tenant.

        Raises:
            IndexUnavailable: it holds fewer or more, or missed a change.
        """

        def wanted(c: Connection) -> list[tuple[str, int]]:
            found = []
            for (tenant,) in c.all("tenants"):
                row = c.one("count_embeddings", [tenant, mirror.space])
                found.append((str(tenant), int(row[0]) if row else 0))
            return found

        held: dict[str, int] = {}

        def count(found: list[tuple[str, int]]) -> None:
            held.update((tenant, mirror.index.count(tenant)) for tenant, _ in found)

        if mirror.index.inside:
            found = self.db.read(wanted)
            count(found)
        else:
            found = self.db.write(wanted, count).result()
        wrong = [f"{held[tenant]} of {count} of {tenant}" for tenant, count in found if held[tenant] != count]
        if wrong or "mirror" in self._failed:
            raise IndexUnavailable(
                f"the new index missed changes, it has {', '.join(wrong) or 'failed'}; move again"
            )
        return sum(held.values())

    def take_over(self, mirror: Mirror, model: str) -> Index:
        """The mirror answers from here on; the index that did. On the writing thread."""
        old, self.live, self.mirror = self.index, Live(mirror.index, mirror.space, model), None
        self.behind.pop("index", None)
        if not self.index.inside:
            self.index.flush(self.applied)
        return old

    # --- many changes ------------------------------------------------------------------------------

    def open(self) -> dict[str, int]:
        """Brings both indexes up to the rows; rows replayed, by side."""
        rev = self.db.read(_extent)[1]  # what others write meanwhile may be in one side only
        counts = {side: self._open_side(side) for side in ("index", "words")}
        self.applied = max(self.applied, rev)
        return counts

    def identity(self, side: str, door: Index | Words, space: int) -> str:
        """What an index holds, by which the database knows the one that was kept in step last."""
        return f"{door.identity} {space}" if side == "index" else door.identity

    def _open_side(self, side: str) -> int:
        door = self.door(side)
        identity = self.identity(side, door, self.space)
        elsewhere = door.inside or self._elsewhere(side)
        held = self.db.read(lambda c: c.one("get_meta", [f"keeps.{side}"]))
        new = held is None or held[0] != identity
        if new and elsewhere:
            self._keep(side, identity)
        if not elsewhere:
            return self.catch_up(side, door.watermark, clear=not door.watermark)
        return self.catch_up(side, 0, clear=held is not None) if new else 0

    def repair(self) -> dict[str, int]:
        """Replays what the sides that are behind have not taken; rows replayed, by side.

        Raises:
            IndexUnavailable: one still does not answer.
        """
        done = {}
        for side, since in list(self.behind.items()):
            self.door(side).health()  # asked here first: no write waits for one that is away
            done[side] = self.catch_up(side, since)
        return done

    def follow(self) -> None:
        """Takes in what other processes have changed."""
        row = self.db.read(lambda c: c.one("last_rev"))
        rev = int(row[0]) if row else 0
        if rev <= self.applied:
            return
        with self._catching:
            since = self.applied
            if rev <= since:
                return
            for side in ("index", "words"):
                door = self.door(side)
                if not door.inside and not door.shared and side not in self.behind:
                    self.follow_side(side, since)
            if not self.behind:
                self.applied = max(self.applied, rev)

    def follow_side(self, side: str, since: int) -> None:
        """Takes what others changed after revision `since` into one side, which is behind if it does not take it."""
        try:
            self.catch_up(side, since)
        except StorageError:
            raise
        except BaseException:  # a panic in a native index is no Exception
            log.exception("the %s does not follow; it will be repaired", side)
            self.behind.setdefault(side, since)
            self.on_behind(side)

    def refresh(self) -> None:
        """What a process does again and again where others write too: follows them, repairs what is behind here,
        brings what a dead one left, and compacts when another one has forgotten something.

        Raises:
            IndexUnavailable: an index still does not take what it missed.
            StorageError: the rows cannot be read.
        """
        row = self.db.read(lambda c: c.one("get_meta", ["purged"]))
        purged = row[0] if row else ""  # read first: what follows takes out all that was removed before
        if self.follows:
            self.follow()
        if self.behind:
            self.repair()
        self.db.read(self._displaced_now)
        self.take_up()
        if purged != self._purged:
            self.on_purged()
            self.compact()
            self._purged = purged

    def purge(self) -> None:
        """Takes removed words and vectors out of the files of this process's indexes, and asks the others to."""
        self.compact()
        if self.db.shared:
            self._purged = secrets.token_hex(8)
            mark = ["purged", self._purged]
            self.db.write(lambda c: c.run("set_meta", mark)).result()

    def take_up(self) -> int:
        """Brings to a shared index what a process that died had not brought; changes taken up."""
        if not any(self._elsewhere(side) for side in ("index", "words")) or self.displaced:
            return 0
        before = now_micros() - SETTLED_WITHIN
        rev, left = self.last_rev(), self.db.read(lambda c: c.one("unsettled_before", [before]))
        if left is None or not left[0]:
            return 0
        for side in ("index", "words"):
            if self._elsewhere(side):
                self.catch_up(side, int(left[1]) - 1)
        return self.db.write(lambda c: c.run("settle_before", [before, rev])).result()

    def rebuild(self) -> dict[str, int]:
        """Drops both indexes and makes them again from the rows; rows replayed, by side."""
        return {side: self.catch_up(side, 0, clear=True) for side in ("index", "words")}

    def catch_up(self, side: str, since: int, *, clear: bool = False) -> int:
        """Replays the rows changed after revision `since` into one side; rows replayed. Other writes go on between
        its pages. Where other processes write, `applied` is left to the caller: the other side may have less.

        Raises:
            IndexUnavailable: the index does not take them; it stays behind.
        """
        with self._catching:
            door = self.door(side)
            self.db.write(lambda c: None, lambda _: self._catching_up.add(side)).result()
            try:
                return self._catch_up(side, door, since, clear)
            finally:
                self._catching_up.discard(side)

    def _catch_up(self, side: str, door: Index | Words, since: int, clear: bool) -> int:
        _, rev, floor = self.db.read(_extent)
        if clear or (0 < since < floor):
            self._clear(door)
            since = 0
        self._failed.discard(side)
        count = 0
        if since < rev:
            space = None if side == "words" else self.space
            for (tenant,) in self.db.read(lambda c: c.all("changed_tenants", [since])):
                count += self.replay(door, space, tenant, since)
        self.db.write(lambda c: self._last(c, rev), lambda last: self._caught_up(side, last)).result()
        return count

    def _clear(self, door: Index | Words) -> None:
        if door.inside:
            self.db.write(lambda c: door.within(c).clear()).result()
        else:
            self.db.write(lambda c: None, lambda _: door.clear()).result()

    def replay(self, door: Index | Words, space: int | None, tenant: str, since: int) -> int:
        """Puts one tenant's rows changed after `since` into an index, a page to a transaction; rows put. `space` is
        that of the vectors, None for words."""
        count = after = 0
        while True:
            page = self._one_page(door, tenant, space, since, after)
            count += len(page)
            if len(page) < PAGE:
                return count
            after = page[-1].row.seq

    def _one_page(
        self, door: Index | Words, tenant: str, space: int | None, since: int, after: int
    ) -> Sequence[Put]:
        def read(c: Connection) -> tuple[list[int], list[Put]]:
            gone = [] if after else [int(seq) for (seq,) in c.all("removals_after", [tenant, since])]
            return gone, changed_page(c, tenant, space, since, after)

        def take(door: Any, found: tuple[list[int], list[Put]]) -> None:
            gone, page = found
            if gone:
                door.remove(tenant, gone)
            if page and space is None:
                put_words(door, tenant, page)
            elif page:
                put_vectors(door, tenant, page)

        if not door.inside:
            return self.db.write(read, lambda found: take(door, found), tenant).result()[1]

        def whole(c: Connection) -> tuple[list[int], list[Put]]:
            found = read(c)
            take(door.within(c), found)
            return found

        return self.db.write(whole, tenant=tenant).result()[1]

    def _last(self, c: Connection, rev: int) -> int:
        """Up to where everything has been replayed: all there is, unless other processes write too."""
        row = c.one("last_rev")
        return rev if self.db.shared or row is None else int(row[0])

    def _caught_up(self, side: str, rev: int) -> None:
        if side in self._failed:
            self._failed.discard(side)
            return
        self.behind.pop(side, None)
        self._catching_up.discard(side)
        if not self.behind and not self.db.shared:
            self.applied = max(self.applied, rev)
        if not self.door(side).inside:
            self.door(side).flush(rev)

    def sample(self, tenant: str, size: int = 25) -> tuple[int, int]:
        """Looks some of a tenant's rows up in the vector index: how many stored vectors were looked for, and how many
        of them it has as they are stored."""

        def some(c: Connection) -> list[Put]:
            newest = [int(seq) for (seq,) in c.all("newest", [tenant, size // 2])]
            rows = list(fetch(c, tenant, newest).values())
            return (
                with_vectors(c, tenant, self.space, rows)
                + changed_page(c, tenant, self.space, 0, 0)[: size // 2]
            )

        looked = there = 0
        for put in self.db.read(some, tenant):
            for vector in put.vectors:
                found = self.index.search(tenant, vector, 1, Compare("$seq", "eq", put.row.seq))
                looked += 1
                there += len(found) == 1 and bool(found.scores[0] >= SAME or not np.any(vector))
        return looked, there

    def forget_removals(self) -> None:
        """Lets go of the notes about removed rows that no index needs any more."""

        def drop(c: Connection) -> None:
            row = c.one("last_rev")
            rev = int(row[0]) if row else 0
            done = min(rev, self._watermark("index"), self._watermark("words"))
            if self.db.shared:
                done = min(done, rev - KEPT_REMOVALS)
            if done > 0:
                c.run("drop_removals", [done])
                if self.db.shared:
                    c.run("set_meta", ["removals_from", str(done)])

        self.db.write(drop).result()

    def compact(self) -> None:
        """No file of a local index holds words or vectors of removed rows afterwards. Those inside the database are
        the database's to erase."""
        for door in (self.index, self.words):
            if not door.inside:
                door.compact()

    def close(self) -> None:
        """Saves both indexes and lets go of them."""
        try:
            self.index.close()
        finally:
            self.words.close()


def _extent(c: Connection) -> tuple[list[str], int, int]:
    """The tenants, the last revision, and the revision from which removals are remembered."""
    row, floor = c.one("last_rev"), c.one("get_meta", ["removals_from"])
    tenants = [str(tenant) for (tenant,) in c.all("tenants")]
    return tenants, int(row[0]) if row else 0, int(floor[0]) if floor else 0


def _to_index(index: Index, removed: Mapping[str, Sequence[int]], puts: Mapping[str, Sequence[Put]]) -> None:
    for tenant, seqs in removed.items():
        index.remove(tenant, seqs)
    for tenant, some in puts.items():
        put_vectors(index, tenant, some)


def _to_words(words: Words, applied: Applied) -> None:
    for tenant, seqs in applied.removed.items():
        words.remove(tenant, seqs)
    for tenant, puts in applied.puts.items():
        put_words(words, tenant, puts)
