"""The report of an import: what was read, what is new, what was left out and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from memoranda.importers.values import Skipped
from memoranda.store.forgotten import FORGOTTEN
from memoranda.text.stored import storable

Stored: TypeAlias = Literal["created", "present", "ended", "read", "forgotten"]
"""What became of a part: it is new, was there already, or was there and has ended since, or it was forgotten since the
export. In a dry run that does not look at the store, it is only `read`."""
PLACES = 20
"""The most places listed for one reason, but for what was forgotten: all of it is."""
PLACE_CHARS = 400
MOST_REASONS = 200
TAKEN = "is stored already, with another text or in another scope"
"""The reason for which an item is left out whose id is that of another one."""
OTHER = "is left out for another reason"


class Tally(msgspec.Struct, kw_only=True):
    """What was read of one kind. `read` = `created` + `present`; after a dry run through a server, or of an archive,
    `read` alone is counted. `ended` are
    those of `present` that have ended in the other system since an earlier import, and now here, too."""

    read: int = 0
    created: int = 0
    present: int = 0
    ended: int = 0


class LeftOut(msgspec.Struct, kw_only=True):
    """What was left out of one kind for one reason, and where the first of it stands. `failed` says that it is damaged
    or could not be stored, not that it is of no interest."""

    kind: str
    reason: str
    failed: bool
    count: int = 0
    places: list[str] = []


class HistoryImported(msgspec.Struct, kw_only=True):
    """The report of an import. `imported` has a tally for each kind: `conversation`, and kinds of memories."""

    format: str
    dry_run: bool
    imported: dict[str, Tally] = {}
    skipped: list[LeftOut] = []

    @property
    def failed(self) -> int:
        """The number of items that are damaged or could not be stored."""
        return sum(each.count for each in self.skipped if each.failed)

    @property
    def read(self) -> int:
        """The number of items read of all kinds."""
        return sum(each.read for each in self.imported.values())

    def count(self, kind: str, created: Sequence[bool], ended: int = 0) -> None:
        """Count what was stored; `created` has True for each that is new, and `ended` of the others have ended now."""
        tally = self._tally(kind)
        tally.read += len(created)
        tally.created += sum(created)
        tally.present += len(created) - sum(created)
        tally.ended += ended

    def count_stored(self, kind: str, stored: Sequence[Stored]) -> None:
        """Like `count`, by what became of each."""
        if stored:
            self._tally(kind).read += stored.count("read")
            known = [state for state in stored if state != "read"]
            self.count(kind, [state == "created" for state in known], stored.count("ended"))

    def _tally(self, kind: str) -> Tally:
        return self.imported.setdefault(kind, Tally())

    def skip(self, skipped: Skipped) -> None:
        """Count something that was left out."""
        group = self._group(skipped.kind, skipped.reason, skipped.failed)
        group.count += 1
        if len(group.places) < PLACES or skipped.reason == FORGOTTEN:
            group.places.append(storable(skipped.place[:PLACE_CHARS]))

    def _group(self, kind: str, reason: str, failed: bool) -> LeftOut:
        for each in self.skipped:
            if (each.kind, each.reason, each.failed) == (kind, reason, failed):
                return each
        if len(self.skipped) >= MOST_REASONS and reason != OTHER:
            return self._group(kind, OTHER, failed)
        self.skipped.append(LeftOut(kind=kind, reason=reason, failed=failed))
        return self.skipped[-1]
