"""Append-only arrays that one thread extends while others read; in one are the sequence numbers of slots, with the
lookup of slots by number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from memoranda.storage.dialect import Values
from memoranda.storage.numbers import COMPARE, whole_bound, wholes

Mask = NDArray[np.bool_]
Slots = NDArray[np.int64]


class Growing:
    """A one-dimensional array that only grows at its end.

    A reader that calls `view` sees whole values, whatever the writer is doing: values are written before
    `count` moves, and growth swaps in a larger copy.
    """

    __slots__ = ("_array", "count")

    def __init__(self, dtype: DTypeLike, values: NDArray[Any] | None = None) -> None:
        self._array: NDArray[Any] = (
            np.empty(0, dtype) if values is None else np.ascontiguousarray(values, dtype)
        )
        self.count = len(self._array)

    def view(self) -> NDArray[Any]:
        """Return the values written so far, without a copy."""
        count = self.count
        return self._array[:count]

    def extend(self, values: NDArray[Any]) -> None:
        """Append the values."""
        end = self.count + len(values)
        self._reserve(end)
        self._array[self.count : end] = values
        self.count = end

    def scatter(self, end: int, slots: Slots, values: NDArray[Any], fill: object) -> None:
        """Grow to `end` values: `fill` everywhere, `values` at `slots`, which lie in [count, end)."""
        self._reserve(end)
        self._array[self.count : end] = fill
        self._array[slots] = values
        self.count = end

    @property
    def nbytes(self) -> int:
        """Bytes reserved."""
        return int(self._array.nbytes)

    def _reserve(self, end: int) -> None:
        if end > len(self._array):
            larger = np.empty(max(end, 2 * len(self._array), 4), self._array.dtype)
            larger[: self.count] = self._array[: self.count]
            self._array = larger


class Series:
    """One value per slot for some of the slots: pairs while they are few, a plain array once they are many.

    `fill` stands for "no value" in the plain array and must not be stored.
    """

    __slots__ = ("_state", "fill")

    DENSE_FROM = 4
    """A plain array when more than one slot in this many has a value."""

    def __init__(
        self, fill: object, dtype: DTypeLike, slots: Slots | None = None, values: NDArray[Any] | None = None
    ) -> None:
        self.fill = fill
        dense = slots is None and values is not None
        self._state = (None if dense else Growing(np.uint32, slots), Growing(dtype, values))

    def extend(self, slots: Slots, values: NDArray[Any], end: int) -> None:
        """Append values at ascending `slots` below `end`, all beyond those already there."""
        if not len(slots):
            return
        positions, stored = self._state
        if positions is None:
            stored.scatter(end, slots, values, self.fill)
            return
        positions.extend(slots)
        stored.extend(values)
        if stored.count * self.DENSE_FROM > end:
            dense = Growing(stored.view().dtype)
            dense.scatter(end, positions.view().astype(np.int64), stored.view(), self.fill)
            self._state = (None, dense)

    def hits(self, test: Callable[[NDArray[Any]], Mask], n: int) -> Mask:
        """Return which of the first `n` slots have a value that passes `test`; `fill` must not pass."""
        mask = np.zeros(n, np.bool_)
        slots, values = self.parts(n)
        if slots is None:
            mask[: len(values)] = test(values)
        else:
            mask[slots[test(values)]] = True
        return mask

    def parts(self, n: int) -> tuple[NDArray[Any] | None, NDArray[Any]]:
        """(slots, values) of the values below slot `n`; slots None when values start at slot 0 without gaps."""
        positions, stored = self._state
        values = stored.view()
        if positions is None:
            return None, values[:n]
        slots = positions.view()[: len(values)]
        end = int(np.searchsorted(slots, n))
        return slots[:end], values[:end]

    @property
    def nbytes(self) -> int:
        """Bytes reserved."""
        positions, stored = self._state
        return stored.nbytes + (positions.nbytes if positions is not None else 0)


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
