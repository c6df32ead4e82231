"""One attribute key of every row, as numpy arrays on which filter conditions are evaluated."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from memoranda.filters import Compare, Op, Scalar, matches
from memoranda.indexes.vector.growing import Growing, Mask, Series
from memoranda.storage.dialect import Values
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
