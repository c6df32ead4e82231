"""The two derived indexes, kept in step with the rows.

An index is in one of three places. An index **inside** the database takes a change in the change's own transaction and
is never behind. A **local** index belongs to this process: it takes the changes of this process right after each
commit, on the writing thread and in commit order; if other processes write to the database too, it replays the rows
that they changed. A **shared** index in a server of its own takes each change from the process that made it; the
database records which changes have not arrived, so that any process can replay them after a crash.

All processes of a database must be configured with the same inside and shared indexes. A process that detects another
index of another process reports it in every answer, and leaves its changes in the journal for the other process. A
process with a local index does so too, but misses no change itself.

An index that fails is marked behind, searches report it, and `catch_up` replays the rows. So is a local keyword index
that lacks many rows when it is opened, since nothing waits for that; it takes the changes made meanwhile.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError

import msgspec

from memoranda.clock import now_micros
from memoranda.errors import Conflict, IndexUnavailable, MemorandaError, StorageError
from memoranda.indexes.keyword.base import Words
from memoranda.indexes.vector.base import Index
from memoranda.storage.sql.base import Connection, Database
from memoranda.store.changes import Applied, extent, lacks_more, replay, to_index, to_words, with_vectors
from memoranda.text.stored import compact_json

log = logging.getLogger("memoranda.store")
KEPT_REMOVALS = 1_000_000
"""Revisions for which a database with several processes records removals."""
SETTLED_WITHIN = 10_000_000
"""Microseconds after which any process replays a change that has not reached a shared index."""
CHANGE_SECONDS = 2.0
"""For how long a search waits until the indexes have taken a change of this process."""
BEYOND = 1 << 62
FEW = 2_500
"""Rows that a keyword index may lack and still be brought up to date at opening, which takes a fifth of a second."""
STEP = 10_000
"""Revisions between two records of how far a keyword index has been filled."""
UNCLEARED = -1
"""In `behind`: the index is to be cleared before every row is replayed."""


class Mirror(msgspec.Struct, frozen=True):
    """An index that is being filled and takes every change meanwhile, and its vector space."""

    index: Index
    space: int


class Live(msgspec.Struct, frozen=True):
    """The vector index that answers searches, with the number and model of its vector space. Replaced as a whole, so
    that one search never mixes two indexes."""

    index: Index
    space: int
    model: str


class Derived:
    """One vector index and one keyword index of one database, for one vector space.

    `applied` is a revision up to which both have every change. `behind` names the sides (`index` or `words`) that miss
    changes, with the revision from which they are replayed.
    """

    def __init__(self, db: Database, index: Index, words: Words) -> None:
        self.db = db
        self.words = words
        self.live = Live(index, 0, "")
        self.mirror: Mirror | None = None
        self.behind: dict[str, int] = {}
        self.applied = 0
        self.on_purged: Callable[[], None] = lambda: None
        """Called when another process has erased rows."""
        self.on_behind: Callable[[str], None] = lambda side: None
        self.displaced: dict[str, str] = {}
        """The sides for which another process is configured with another index, and the identity of that index."""
        self.failed: set[str] = set()
        """The sides that did not take a change since they were last replayed."""
        self.stopped = threading.Event()
        """Set when the process is asked to end: a keyword index that is being filled is left as far as it is."""
        self._catching_up: set[str] = set()
        self._filling: dict[str, str] = {}
        self._purged = ""
        self._catching = threading.RLock()

    @property
    def index(self) -> Index:
        """The vector index that answers."""
        return self.live.index

    @property
    def space(self) -> int:
        """The number of the vector space of the vector index."""
        return self.live.space

    @property
    def put_limit(self) -> int | None:
        """The most vectors that one transaction should put; None: any number."""
        mirror = self.mirror
        indexes = [self.index] if mirror is None else [self.index, mirror.index]
        return min((limit for index in indexes if (limit := index.put_limit)), default=None)

    def index_of(self, side: str) -> Index | Words:
        """The index of a side: `index` or `words`."""
        return self.index if side == "index" else self.words

    @property
    def follows(self) -> bool:
        """True if other processes make changes that must be replayed here."""
        return self.db.shared and any(
            not index.inside and not index.shared for index in (self.index, self.words)
        )

    def _journalled(self) -> bool:
        indexes: list[Index | Words] = [self.index, self.words]
        if self.mirror is not None:
            indexes.append(self.mirror.index)
        return self.db.shared and any(index.shared and not index.inside for index in indexes)

    # --- one change --------------------------------------------------------------------------------

    def inside(self, c: Connection, applied: Applied) -> None:
        """Apply the part of a write that belongs in its transaction."""
        applied.live = self.live
        if self.mirror is not None:
            self._mirror(c, self.mirror, applied)
        if not applied.rev:
            return
        if self.index.inside:
            to_index(self.index.within(c), applied.removed, applied.puts)
        if self.words.inside:
            to_words(self.words.within(c), applied)
        applied.journalled = self.db.shared and self._displaced_now(c)
        if applied.journalled or self._journalled():
            for tenant in applied.puts.keys() | applied.removed.keys():
                c.run("note_unsettled", [tenant, applied.rev, applied.first, now_micros()])

    def after(self, applied: Applied) -> None:
        """Apply the part of a write that follows its commit, on the writing thread."""
        mirror, took = self.mirror, True
        switched = applied.live is not self.live  # by an earlier write of the same commit group
        if mirror is not None and not mirror.index.inside:
            took = self._step("mirror", lambda: to_index(mirror.index, applied.removed, applied.mirrored))
        if not applied.rev and not switched:
            return
        if not self.index.inside:
            puts = applied.mirrored if switched else applied.puts
            took &= self._step("index", lambda: to_index(self.index, applied.removed, puts))
        if not applied.rev:
            return
        if not self.words.inside:
            took &= self._step("words", lambda: to_words(self.words, applied))
        if took and self._journalled() and not applied.journalled:
            self._settle(applied)
        self._advance(applied)

    def _step(self, side: str, step: Callable[[], None]) -> bool:
        """Apply a change to one index, or mark the index behind for repair: the rows are safe either way. An index that
        is behind takes no change until it is repaired, so an unavailable server delays one write only."""
        if side in self.behind and side not in self._catching_up:
            return False
        try:
            step()
        except BaseException as exc:  # a panic in a native index is no Exception
            _log_failure("the %s did not take a change, it will be repaired: %s", side, exc)
            self.failed.add(side)
            if side != "mirror":
                self.behind.setdefault(side, min(self.applied, self._watermark(side)))
                self.on_behind(side)
            return False
        return True

    def _watermark(self, side: str) -> int:
        index = self.index_of(side)
        return BEYOND if index.inside else index.watermark

    def _advance(self, applied: Applied) -> None:
        """Advance `applied`, and flush the indexes; if other processes write too, only if none of their changes lies
        between."""
        gap = self.follows and applied.first != self.applied + 1
        if gap or self.behind:
            return
        rev = max(self.applied, applied.rev)
        if all([self._flush("index", rev), self._flush("words", rev)]):
            self.applied = rev

    def _flush(self, side: str, rev: int) -> bool:
        index = self.index_of(side)
        return index.inside or self._step(side, lambda: index.flush(rev))

    def _settle(self, applied: Applied) -> None:
        """Delete the change from the journal, unless another process has changed or removed one of its rows since: the
        changes may have arrived in the other order, so the current rows must be replayed."""
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
        """Return True if all processes of the database write to the index of a side."""
        return self.db.shared and (self.index_of(side).inside or self.index_of(side).shared)

    def _displaced_now(self, c: Connection) -> bool:
        """Return True if writes of this process do not reach an index that other processes use."""
        configured = {str(key): str(value) for key, value in c.all("keepers")}
        missed = False
        for side in ("index", "words"):
            other = configured.get(f"keeps.{side}", "")
            mine = self.identity(side, self.index_of(side), self.space)
            missed |= other not in ("", mine)
            if not self._elsewhere(side) or other in ("", mine):
                self.displaced.pop(side, None)  # a local index replays the changes of every process
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
        """Record that the index of this process is the one that follows the rows, and that it is being filled. No write
        of another process is under way meanwhile."""

        def work(c: Connection) -> None:
            c.one("draw_revs", [1])  # waits for writes that have begun
            c.run("set_meta", [f"keeps.{side}", identity])
            self._note_filling(c, side)

        self.db.write(work).result()

    def _note_filling(self, c: Connection, side: str) -> None:
        """Record that an index without a watermark is being filled: if this process dies, the next start fills it."""
        if self.index_of(side).inside or self._elsewhere(side):
            self._filling[side] = secrets.token_hex(8)
            c.run("set_meta", [f"filling.{side}", self._filling[side]])

    # --- an index that is being filled ---------------------------------------------------------------

    def _mirror(self, c: Connection, mirror: Mirror, applied: Applied) -> None:
        """Add the change with the vectors of the mirror's space."""
        for tenant, puts in applied.puts.items():
            rows = [put.row for put in puts]
            applied.mirrored[tenant] = with_vectors(c, tenant, mirror.space, rows)
        if mirror.index.inside:
            to_index(mirror.index.within(c), applied.removed, applied.mirrored)

    def begin_mirror(self, mirror: Mirror) -> None:
        """Start the mirror: it takes every change from the next write on.

        Raises:
            Conflict: another index is being filled.
        """

        def begin(_: object) -> None:
            if self.mirror is not None:
                raise Conflict("another move is under way; wait for it, or cancel it")
            self.failed.discard("mirror")
            self.mirror = mirror

        self._clear(mirror.index)
        self.db.write(lambda c: None, begin).result()

    def end_mirror(self, mirror: Mirror) -> None:
        """Drop the mirror. Idempotent."""

        def end(_: object) -> None:
            if self.mirror is mirror:
                self.mirror = None

        self.db.write(lambda c: None, end).result()

    def last_rev(self) -> int:
        """Return the last committed revision."""
        return self.db.read(extent)[1]

    def tenants(self) -> list[str]:
        """Return the tenants that have rows."""
        return self.db.read(extent)[0]

    def take_over(self, mirror: Mirror, model: str) -> Index:
        """Make the mirror the live index and return the old one. Runs on the writing thread."""
        old, self.live, self.mirror = self.index, Live(mirror.index, mirror.space, model), None
        self.behind.pop("index", None)
        if not self.index.inside:
            self.index.flush(self.applied)
        return old

    # --- many changes ------------------------------------------------------------------------------

    def open(self) -> dict[str, int]:
        """Bring both indexes up to date with the rows; return the rows replayed, by side."""
        rev = self.db.read(extent)[1]  # concurrent writes of others may be in one side only
        counts = {side: self._open_side(side) for side in ("index", "words")}
        self.applied = max(self.applied, rev)
        return counts

    def identity(self, side: str, index: Index | Words, space: int) -> str:
        """Return the identity of an index and its space; the database records which index is in step."""
        return f"{index.identity} {space}" if side == "index" else index.identity

    def _open_side(self, side: str) -> int:
        index = self.index_of(side)
        identity = self.identity(side, index, self.space)
        elsewhere = index.inside or self._elsewhere(side)
        if not elsewhere:
            clear = not index.watermark
            if isinstance(index, Words) and not self.db.shared and self._deferred(index, clear):
                return 0
            return self.catch_up(side, index.watermark, clear=clear)
        keys = f"keeps.{side}", f"filling.{side}"
        configured, filling = self.db.read(lambda c: [c.one("get_meta", [key]) for key in keys])
        new = configured is None or configured[0] != identity
        if not new and filling is None:
            return 0
        if new and configured is not None:
            self._clear(index)
        self._keep(side, identity)
        return self.catch_up(side, 0)

    def _deferred(self, words: Words, clear: bool) -> bool:
        """Mark a keyword index behind if it lacks more than a few rows, and empty it if it cannot be kept. `repair`
        fills it; meanwhile it takes every change, so that no file keeps a word that is removed before that."""
        _, rev, floor = self.db.read(extent)
        since = words.watermark
        clear = clear or since > rev or since < floor
        since = 0 if clear else since
        if not self.db.read(lambda c: lacks_more(c, since, rev, FEW)):
            return False
        if clear:
            self._clear(words)
        self.behind["words"] = since
        self._catching_up.add("words")
        return True

    def repair(self) -> dict[str, int]:
        """Replay the missed changes into the sides that are behind; return the rows replayed, by side.

        Raises:
            IndexUnavailable: an index still does not answer.
        """
        done = {}
        for side in list(self.behind):
            self.index_of(side).health()  # checked first: no write waits for an unavailable index
            with self._catching:  # another thread may be filling it again
                if (since := self.behind.get(side)) is not None:
                    done[side] = self.catch_up(side, since)
        return done

    def follow(self, tenant: str) -> list[str]:
        """Bring the committed changes of a tenant's rows to the indexes; return the sides that may still lack some.

        Changes of other processes are replayed. Those of this process are applied by its writing thread, for which this
        waits `CHANGE_SECONDS` at most."""
        if self.follows:
            self.replay_others()
        elif self.db.called.is_set() or self.behind:
            return []
        elif self._missing(tenant) and not self.db.called.wait(CHANGE_SECONDS):
            return [side for side in ("index", "words") if not self.index_of(side).inside]
        return []

    def _missing(self, tenant: str) -> bool:
        """Return True if rows of a tenant have changed since `applied`."""
        after = [tenant, self.applied]
        return self.db.read(lambda c: c.one("changed_beyond", after * 2), tenant) is not None

    def replay_others(self) -> None:
        """Replay what other processes have changed since `applied`."""
        row = self.db.read(lambda c: c.one("last_rev"))
        rev = int(row[0]) if row else 0
        if rev <= self.applied:
            return
        with self._catching:
            since = self.applied
            if rev <= since:
                return
            for side in ("index", "words"):
                index = self.index_of(side)
                if not index.inside and not index.shared and side not in self.behind:
                    self.follow_side(side, since)
            if not self.behind:
                self.applied = max(self.applied, rev)

    def follow_side(self, side: str, since: int) -> None:
        """Replay what others changed after revision `since` into one side, which is marked behind if that fails."""
        try:
            self.catch_up(side, since)
        except StorageError:
            raise
        except BaseException as exc:  # a panic in a native index is no Exception
            _log_failure("the %s does not follow, it will be repaired: %s", side, exc)
            self.behind.setdefault(side, since)
            self.on_behind(side)

    def refresh(self) -> None:
        """Periodic maintenance if other processes write too: follow their changes, repair local indexes that are
        behind, replay what a dead process left, and compact when another process has erased rows.

        Raises:
            IndexUnavailable: an index still cannot be repaired.
            StorageError: the rows cannot be read.
        """
        row = self.db.read(lambda c: c.one("get_meta", ["purged"]))
        purged = row[0] if row else ""  # read first: compaction below covers every earlier removal
        if self.follows:
            self.replay_others()
        if self.behind:
            self.repair()
        self.db.read(self._displaced_now)
        self.take_up()
        if purged != self._purged:
            self.on_purged()
            self.compact()
            self._purged = purged
        self.index.refresh()

    def purge(self) -> None:
        """Compact the files of this process's indexes after removals, and ask other processes to do the same."""
        self.compact()
        if self.db.shared:
            self._purged = secrets.token_hex(8)
            mark = ["purged", self._purged]
            self.db.write(lambda c: c.run("set_meta", mark)).result()

    def take_up(self) -> int:
        """Replay into shared indexes the changes that a dead process left in the journal; return their number."""
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
        """Clear both indexes and rebuild them from the rows; return the rows replayed, by side."""
        return {side: self.catch_up(side, 0, clear=True) for side in ("index", "words")}

    def catch_up(self, side: str, since: int, *, clear: bool = False) -> int:
        """Replay the rows changed after revision `since` into one side; return the rows replayed. Other writes go on
        between its pages. If other processes write, the caller sets `applied`: the other side may have less.

        Raises:
            IndexUnavailable: the index failed; it stays behind.
            CancelledError: the process ends; the index stays behind, and takes changes.
        """
        with self._catching:
            index = self.index_of(side)
            clear = clear or (isinstance(index, Words) and index.stuck)
            self.db.write(lambda c: None, lambda _: self._catching_up.add(side)).result()
            try:
                count = self._catch_up(side, index, since, clear)
            except CancelledError:
                raise
            except BaseException:
                self._catching_up.discard(side)
                if side in self.behind:
                    self.on_behind(side)
                raise
            self._catching_up.discard(side)
            return count

    def _catch_up(self, side: str, index: Index | Words, since: int, clear: bool) -> int:
        self.failed.discard(side)  # first: what fails from here on may not be replayed
        _, rev, floor = self.db.read(extent)
        # a watermark beyond `rev`: an older database was restored
        if clear or since < 0 or since > rev or 0 < since < floor:
            # behind until it has every row: what is written meanwhile must not advance its watermark
            self.db.write(
                lambda c: self._note_filling(c, side), lambda _: self.behind.update({side: UNCLEARED})
            ).result()
            self._clear(index)
            since = self.behind[side] = 0
        count = 0
        if isinstance(index, Words) and not index.inside and not self.db.shared:
            count = self._fill(index, since, rev)
        elif since < rev:
            space = None if side == "words" else self.space
            for (tenant,) in self.db.read(lambda c: c.all("changed_tenants", [since])):
                count += replay(self.db, index, space, tenant, since)
        self.db.write(lambda c: self._last(c, rev), lambda last: self._caught_up(side, last)).result()
        if side in self._filling and side not in self.behind:
            filled = [f"filling.{side}", self._filling.pop(side)]  # unless another process fills it now
            self.db.write(lambda c: c.run("end_filling", filled)).result()
        return count

    def _fill(self, words: Words, since: int, rev: int) -> int:
        """Replay the rows of all tenants changed after `since` into a keyword index of this process, by seq, and record
        after each step how far it is: a process that ends in the middle goes on from there."""
        count, after, upto = 0, 0, since + STEP
        tenants = self.db.read(lambda c: c.all("changed_tenants", [since]))
        while tenants:
            for (tenant,) in tenants:
                if self.stopped.is_set():
                    raise CancelledError
                count += replay(self.db, words, None, tenant, since, (after, upto))
            if upto >= rev:
                break
            # a row has no revision below its seq: every row of a revision up to `upto` is in
            self.db.write(lambda c: None, lambda _, done=upto: self._filled(words, done)).result()  # type: ignore[misc]
            after, upto = upto, upto + STEP
        return count

    def _filled(self, words: Words, rev: int) -> None:
        if "words" in self.behind:
            self.behind["words"] = rev
        words.flush(rev)

    def _clear(self, index: Index | Words) -> None:
        if index.inside:
            self.db.write(lambda c: index.within(c).clear()).result()
        else:
            self.db.write(lambda c: None, lambda _: index.clear()).result()

    def _last(self, c: Connection, rev: int) -> int:
        """Return the revision up to which everything is replayed: the last one, unless other processes write too."""
        row = c.one("last_rev")
        return rev if self.db.shared or row is None else int(row[0])

    def _caught_up(self, side: str, rev: int) -> None:
        if side in self.failed:
            self.failed.discard(side)
            return
        self.behind.pop(side, None)
        self._catching_up.discard(side)
        if not self.behind and not self.db.shared:
            self.applied = max(self.applied, rev)
        if not self.index_of(side).inside:
            self.index_of(side).flush(rev)

    def forget_removals(self) -> None:
        """Delete the records of removed rows that no index needs any more."""

        def drop(c: Connection) -> None:
            row = c.one("last_rev")
            rev = int(row[0]) if row else 0
            done = min(rev, self._watermark("index"), self._watermark("words"))
            if self.db.shared:
                done = min(done, rev - KEPT_REMOVALS)
            if done > 0:
                c.run("drop_removals", [done])
                c.run("set_meta", ["removals_from", str(done)])

        self.db.write(drop).result()

    def compact(self) -> None:
        """Remove the words and vectors of removed rows from every file of a local index. The database erases those of
        the indexes inside it."""
        for side in ("index", "words"):
            index = self.index_of(side)
            if index.inside:
                continue
            try:
                index.compact()
            except IndexUnavailable as exc:
                if not (isinstance(index, Words) and index.stuck):
                    raise
                _log_failure("the %s cannot commit, it is built anew from the rows: %s", side, exc)
                self.catch_up(side, 0, clear=True)
                index.compact()

    def close(self) -> None:
        """Save and close both indexes."""
        try:
            self.index.close()
        finally:
            self.words.close()


def _log_failure(message: str, side: str, exc: BaseException) -> None:
    """Log that an index failed; with the traceback only if the error is not one of Memoranda's, which say all."""
    log.error(message, side, exc, exc_info=None if isinstance(exc, MemorandaError) else exc)
