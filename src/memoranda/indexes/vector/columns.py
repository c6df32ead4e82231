"""The attributes of a partition's rows by key, and filters over them as masks."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoranda.filters import Attributes, Filter
from memoranda.indexes.vector.column import MISSING, Column
from memoranda.indexes.vector.growing import Growing, Mask, Series
from memoranda.indexes.vector.seqs import SeqColumn
from memoranda.storage.dialect import Dialect, Values

Arrays = dict[str, NDArray[Any]]
SEQ = "$seq"


class Columns:
    """The column of every key. `mask` equals `filters.matches` row by row; `$seq` is the row's sequence number."""

    def __init__(self, seqs: SeqColumn) -> None:
        self.seqs = seqs
        self.by_key: dict[str, Column] = {}

    def extend(self, start: int, rows: Sequence[Attributes]) -> None:
        """Append the attributes of slots `start`, `start` + 1, ... ."""
        for key in dict.fromkeys(chain.from_iterable(rows)):
            if key == SEQ:
                continue
            column = self.by_key.get(key) or Column()
            column.extend(start, [row.get(key) for row in rows])
            self.by_key[key] = column

    def mask(self, where: Filter, n: int) -> Mask | None:
        """Which of the first `n` slots pass; None when all do."""
        return _Masks(self, n).condition(where)

    def take(self, slots: NDArray[np.int64], seqs: SeqColumn) -> Columns:
        """Return the columns of only these slots, renumbered in this order, without keys that none of them has."""
        n = self.seqs.seqs.count
        new_of = np.full(n, -1, np.int64)
        new_of[slots] = np.arange(len(slots))
        taken = Columns(seqs)
        for key, column in self.by_key.items():
            chosen = column.take(slots, new_of)
            if len(chosen.labels.parts(n)[1]) or len(chosen.numbers.parts(n)[1]):
                taken.by_key[key] = chosen
        return taken

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(column.nbytes for column in self.by_key.values())

    def dump(self, n: int) -> tuple[dict[str, Any], Arrays]:
        """Return the input of `load`: JSON-able facts, and arrays by name."""
        facts: dict[str, Any] = {}
        arrays: Arrays = {}
        for i, (key, column) in enumerate(self.by_key.items()):
            for name, series in (("labels", column.labels), ("numbers", column.numbers)):
                slots, values = series.parts(n)
                arrays[f"{i}.{name}"] = values
                if slots is not None:
                    arrays[f"{i}.{name}.slots"] = slots
            postings = [p.view() for p in column.elements.values()]
            arrays[f"{i}.elements"] = np.concatenate([np.empty(0, np.uint32), *postings])
            facts[key] = {
                "strings": column.strings,
                "elements": [
                    [*element, len(p)] for element, p in zip(column.elements, postings, strict=True)
                ],
                "odd": list(column.odd.items()),
            }
        return facts, arrays

    @classmethod
    def load(cls, facts: dict[str, Any], arrays: Arrays, seqs: SeqColumn) -> Columns:
        """Return the columns that `dump` described."""
        columns = cls(seqs)
        for i, (key, fact) in enumerate(facts.items()):
            column = Column()
            for text in fact["strings"]:
                column._new_code(text)
            column.labels = _series(arrays, f"{i}.labels", MISSING)
            column.numbers = _series(arrays, f"{i}.numbers", np.nan)
            column.odd = {int(slot): value for slot, value in fact["odd"]}
            start = 0
            for kind, value, count in fact["elements"]:
                element: tuple[str, Hashable] = (kind, value)
                column.elements[element] = Growing(np.uint32, arrays[f"{i}.elements"][start : start + count])
                start += count
            columns.by_key[key] = column
        return columns


class _Masks(Dialect[Mask | None]):
    """Which of the first `n` slots pass; None when all do."""

    def __init__(self, columns: Columns, n: int) -> None:
        self._by_key, self._seqs, self._n = columns.by_key, columns.seqs, n

    def all_of(self, parts: Sequence[Mask | None]) -> Mask | None:
        masks = [part for part in parts if part is not None]
        return reduce(np.bitwise_and, masks) if masks else None

    def any_of(self, parts: Sequence[Mask | None]) -> Mask | None:
        masks = [part for part in parts if part is not None]
        return reduce(np.bitwise_or, masks, self._none()) if len(masks) == len(parts) else None

    def equal(self, key: str, values: Values) -> Mask:
        column = self._column(key)
        return np.full(self._n, values.null) if column is None else column.equal(values, self._n)

    def unequal(self, key: str, values: Values) -> Mask | None:
        column = self._column(key)
        if isinstance(column, Column) and not column.may_hold(values):
            return None
        return ~self.equal(key, values)

    def text_order(self, key: str, op: str, value: str) -> Mask:
        column = self._by_key.get(key)
        return self._none() if column is None else column.text_order(op, value, self._n)

    def number_order(self, key: str, op: str, value: float) -> Mask:
        column = self._column(key)
        return self._none() if column is None else column.number_order(op, value, self._n)

    def _column(self, key: str) -> Column | SeqColumn | None:
        return self._seqs if key == SEQ else self._by_key.get(key)

    def _none(self) -> Mask:
        return np.zeros(self._n, np.bool_)


def _series(arrays: Arrays, name: str, fill: object) -> Series:
    values = arrays[name]
    return Series(fill, values.dtype, arrays.get(f"{name}.slots"), values)
