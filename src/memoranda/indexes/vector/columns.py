"""The attributes of a partition's rows by key, and filters over them as masks."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import reduce
from itertools import chain
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from memoranda.filters import Attributes, Compare, Filter, Op, Scalar, matches
from memoranda.indexes.vector.growing import Growing, Mask, SeqColumn, Series
from memoranda.storage.dialect import Dialect, Values
from memoranda.storage.numbers import COMPARE, EXACT, as_float, bound, is_number

MISSING, TRUE, FALSE, OTHER, FIRST_STRING = 0, 1, 2, 3, 4


def element_of(value: object) -> tuple[str, Hashable] | None:
    """Return the typed key of a list element; None if nothing can equal it."""
    if value is None:
        return ("none", None)
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, int | float):
        return None if math.isnan(value) else ("number", float(value))
    return ("string", value) if type(value) is str else None


def _huge(value: object) -> bool:
    """Return True for a whole number that no float is, and for a list of one. Lists within lists equal nothing."""
    if isinstance(value, list | tuple):
        return any(_huge(item) for item in value if not isinstance(item, list | tuple))
    return isinstance(value, int) and not -EXACT <= value <= EXACT


def _exact(values: Sequence[Any]) -> NDArray[np.float64] | None:
    """Return the numbers as floats, if floats represent them all exactly and none is NaN; else None."""
    try:
        numbers = np.array(values, np.float64)
    except OverflowError:
        return None
    return numbers if bool((np.abs(numbers) < EXACT).all()) else None


def _either(first: Mask | None, second: Mask | None, n: int) -> Mask:
    if first is None:
        return np.zeros(n, np.bool_) if second is None else second
    return first if second is None else first | second


class Column:
    """The values of one key. `labels` has strings by code, booleans, and a mark for any other present value; `numbers`
    has numbers; `elements` maps a list element to the slots whose list has it; `odd` has, by slot, values that only
    plain Python compares exactly (integers beyond 2**53)."""

    __slots__ = ("codes", "elements", "labels", "numbers", "odd", "strings")

    def __init__(self) -> None:
        self.labels = Series(MISSING, np.uint32)
        self.numbers = Series(math.nan, np.float64)
        self.strings: list[str] = []
        self.codes: dict[str, int] = {}
        self.elements: dict[tuple[str, Hashable], Growing] = {}
        self.odd: dict[int, Any] = {}

    def extend(self, start: int, values: Sequence[Any]) -> None:
        """Append the values of rows `start`, `start` + 1, ...; None is missing."""
        end = start + len(values)
        kinds = set(map(type, values))
        if kinds == {str}:
            codes = [self.codes.get(value) or self._new_code(value) for value in values]
            self.labels.extend(np.arange(start, end), np.array(codes, np.uint32), end)
        elif kinds <= {int, float} and (numbers := _exact(values)) is not None:
            self.numbers.extend(np.arange(start, end), numbers, end)
        else:
            self._extend_mixed(start, end, values)

    def _extend_mixed(self, start: int, end: int, values: Sequence[Any]) -> None:
        labelled: list[int] = []
        labels: list[int] = []
        numbered: list[int] = []
        numbers: list[float] = []
        lists: dict[tuple[str, Hashable], list[int]] = {}
        for slot, value in enumerate(values, start):
            if value is None:
                continue
            if type(value) is str:
                labelled.append(slot)
                labels.append(self.codes.get(value) or self._new_code(value))
            elif is_number(value) and not _huge(value) and not math.isnan(value):
                numbered.append(slot)
                numbers.append(value)
            else:
                labelled.append(slot)
                labels.append(self._mark(slot, value, lists))
        for element, slots in lists.items():
            self.elements.setdefault(element, Growing(np.uint32)).extend(np.array(slots, np.uint32))
        self.labels.extend(np.array(labelled, np.int64), np.array(labels, np.uint32), end)
        self.numbers.extend(np.array(numbered, np.int64), np.array(numbers, np.float64), end)

    def may_hold(self, values: Values) -> bool:
        """Return False if certainly no row equals any of the values; no row is read."""
        return bool(self.odd) or not all(
            type(value) is str and value not in self.codes and ("string", value) not in self.elements
            for value in values.given
        )

    def _new_code(self, value: str) -> int:
        code = FIRST_STRING + len(self.strings)
        self.strings.append(value)
        self.codes[value] = code
        return code

    def _mark(self, slot: int, value: Any, lists: dict[tuple[str, Hashable], list[int]]) -> int:
        if isinstance(value, bool):
            return TRUE if value else FALSE
        if _huge(value):
            self.odd[slot] = value
        elif isinstance(value, list | tuple):
            for element in {element_of(item) for item in value} - {None}:
                assert element is not None
                lists.setdefault(element, []).append(slot)
        return OTHER

    def equal(self, values: Values, n: int) -> Mask:
        """Which of the first `n` rows equal any of the values, by type and value."""
        first, second = self._labelled(values, n), self._numbered(values.numbers, n)
        mask = _either(first, second, n)
        if values.null:
            mask |= ~self._present(n)
        for value in values.given if self.elements else ():
            element = element_of(value)
            postings = self.elements.get(element) if element is not None else None
            if postings is not None:
                slots = postings.view()
                mask[slots[: np.searchsorted(slots, n)]] = True
        return self._add_odd(mask, "in", values.given, n)

    def text_order(self, op: str, value: str, n: int) -> Mask:
        """Which of the first `n` rows are strings that compare so."""
        known = self.strings[:]
        table = np.zeros(FIRST_STRING + len(known), np.bool_)
        table[FIRST_STRING:] = [COMPARE[op](text, value) for text in known]
        return self.labels.hits(lambda labels: table[labels], n)

    def number_order(self, op: str, value: float, n: int) -> Mask:
        """Which of the first `n` rows are numbers that compare so."""
        near, limit = bound(op, value)
        mask = self.numbers.hits(lambda numbers: np.asarray(COMPARE[near](numbers, limit)), n)
        return self._add_odd(mask, op, value, n)

    def _labelled(self, values: Values, n: int) -> Mask | None:
        codes = [self.codes[value] for value in values.texts if value in self.codes]
        codes += [TRUE if value else FALSE for value in values.given if isinstance(value, bool)]
        if not codes:
            return None
        if len(codes) == 1:
            return self.labels.hits(lambda labels: labels == codes[0], n)
        table = np.zeros(FIRST_STRING + len(self.strings), np.bool_)
        table[codes] = True
        return self.labels.hits(lambda labels: table[labels], n)

    def _numbered(self, values: Sequence[float], n: int) -> Mask | None:
        wanted = list(map(as_float, values))
        if not wanted:
            return None
        if len(wanted) == 1:
            return self.numbers.hits(lambda numbers: numbers == wanted[0], n)
        return self.numbers.hits(lambda numbers: np.isin(numbers, [v for v in wanted if v == v]), n)

    def _present(self, n: int) -> Mask:
        numbered = self.numbers.hits(lambda numbers: numbers == numbers, n)
        return numbered | self.labels.hits(lambda labels: labels != MISSING, n)

    def _add_odd(self, mask: Mask, op: str, value: Scalar | tuple[Scalar, ...], n: int) -> Mask:
        for slot, stored in list(self.odd.items()):
            if slot < n and matches(Compare("value", cast(Op, op), value), {"value": stored}):
                mask[slot] = True
        return mask

    @property
    def nbytes(self) -> int:
        """Bytes in memory, strings estimated."""
        texts = sum(180 + len(text) for text in self.strings)
        return (
            self.labels.nbytes + self.numbers.nbytes + texts + sum(p.nbytes for p in self.elements.values())
        )

    def take(self, old: NDArray[np.int64], new_of: NDArray[np.int64]) -> Column:
        """Return the column of only the rows `old`, renumbered from 0.

        `new_of[slot]` is a row's new slot, or -1.
        """
        taken, n, end = Column(), len(new_of), len(old)
        for mine, theirs in ((self.labels, taken.labels), (self.numbers, taken.numbers)):
            slots, values = mine.parts(n)
            slots = np.arange(len(values)) if slots is None else slots
            new = new_of[slots]
            keep = (new >= 0) & (values != MISSING if mine is self.labels else values == values)
            order = np.argsort(new[keep], kind="stable")
            chosen = values[keep][order]
            if mine is self.labels:
                chosen = taken._adopt(chosen, self.strings)
            theirs.extend(new[keep][order], chosen, end)
        for element, postings in self.elements.items():
            new = new_of[postings.view()]
            if (new >= 0).any():
                taken.elements[element] = Growing(np.uint32, np.sort(new[new >= 0]).astype(np.uint32))
        taken.odd = {int(new_of[slot]): value for slot, value in self.odd.items() if new_of[slot] >= 0}
        return taken

    def _adopt(self, labels: NDArray[Any], strings: Sequence[str]) -> NDArray[Any]:
        used = np.unique(labels)
        table = np.arange(FIRST_STRING + len(strings), dtype=np.uint32)
        for code in used[used >= FIRST_STRING].tolist():
            table[code] = self._new_code(strings[code - FIRST_STRING])
        return np.asarray(table[labels])


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
