"""The sequence number of every slot, and the lookup of slots by number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memoranda.indexes.vector.growing import Growing, Mask, Slots
from memoranda.storage.dialect import Values
from memoranda.storage.numbers import COMPARE, whole_bound, wholes


class SeqColumn:
    """Sequence numbers by slot: mostly ascending, so a number is found by binary search.

    `tops` is the running maximum; a slot below it is a straggler (a row that was updated), found by `late`.
    """

    def __init__(self, seqs: NDArray[np.int64] | None = None) -> None:
        self.seqs = Growing(np.int64)
        self.tops = Growing(np.int64)
        self.late: dict[int, tuple[int, ...]] = {}
        if seqs is not None:
            self.extend(seqs)

    def extend(self, seqs: NDArray[np.int64]) -> None:
        """Append the numbers of the next slots."""
        if not len(seqs):
            return
        start = self.seqs.count
        tops = np.maximum.accumulate(seqs)
        if start:
            tops = np.maximum(tops, self.tops.view()[-1])
        for i in np.flatnonzero(seqs < tops).tolist():
            seq = int(seqs[i])
            self.late[seq] = (*self.late.get(seq, ()), start + i)
        self.tops.extend(tops)
        self.seqs.extend(seqs)

    def find(self, wanted: NDArray[np.int64], n: int) -> Slots:
        """Return the slots below `n` with any of these numbers, ascending."""
        tops, seqs = self.tops.view()[:n], self.seqs.view()[:n]
        if not n or not len(wanted) or wanted.min() > tops[-1]:
            return np.empty(0, np.int64)  # new rows, as almost always
        wanted = np.unique(wanted)
        first = np.searchsorted(tops, wanted, "left")
        runs = np.searchsorted(tops, wanted, "right") - first
        offsets = np.arange(int(runs.sum())) - np.repeat(np.cumsum(runs) - runs, runs)
        slots = np.repeat(first, runs) + offsets
        slots = slots[seqs[slots] == np.repeat(wanted, runs)]
        if self.late:
            late = [slot for seq in wanted.tolist() for slot in self.late.get(seq, ()) if slot < n]
            slots = np.union1d(slots, np.array(late, np.int64))
        return np.asarray(slots, np.int64)

    def equal(self, values: Values, n: int) -> Mask:
        """Which of the first `n` slots carry any of the values."""
        mask = np.zeros(n, np.bool_)
        mask[self.find(np.array(wholes(values.numbers), np.int64), n)] = True
        return mask

    def number_order(self, op: str, value: float, n: int) -> Mask:
        """Which of the first `n` slots compare so with the value."""
        return np.asarray(COMPARE[op](self.seqs.view()[:n], whole_bound(op, value)), np.bool_)
