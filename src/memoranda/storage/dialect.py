"""A filter in the language of an index: one walk over its tree, and a class for each dialect that writes the parts.

Every dialect has the meaning of `filters.matches`. The walk decides which order comparisons can be true at all, so that
a dialect compares only texts, and numbers other than NaN.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar, cast

import msgspec

from memoranda.filters import AllOf, Compare, Filter, Scalar
from memoranda.storage.numbers import COMPARE, is_number, whole_bound, wholes

T = TypeVar("T")
TEXT = {
    "$kind": "kind",
    "$user_id": "user_id",
    "$agent_id": "agent_id",
    "$channel_id": "channel_id",
    "$session_id": "session_id",
    "$role": "role",
    "$source": "source",
}
NUMBERS = {
    "$seq": "seq",
    "$occurred_at": "occurred_at",
    "$valid_from": "valid_from",
    "$invalid_at": "invalid_at",
    "$archived_at": "archived_at",
}
"""A row's own fields that are columns of texts, and of whole numbers."""
OWN = (*TEXT, *(key for key in NUMBERS if key != "$seq"))
ORDER = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
DEEP = 8
"""The most conditions joined in a row."""


class Values(msgspec.Struct, frozen=True):
    """What an equality compares with: one value, or those of a list."""

    given: tuple[Scalar, ...]

    @property
    def null(self) -> bool:
        """True if a missing key is equal."""
        return None in self.given

    @property
    def present(self) -> list[str | float]:
        """The values that are not null."""
        return [value for value in self.given if value is not None]

    @property
    def texts(self) -> list[str]:
        """The strings."""
        return [value for value in self.given if isinstance(value, str)]

    @property
    def numbers(self) -> list[float]:
        """The numbers; True and False are none."""
        return [
            value for value in self.given if isinstance(value, int | float) and not isinstance(value, bool)
        ]


class Dialect(ABC, Generic[T]):
    """Compiles filters to conditions of one kind."""

    def condition(self, where: Filter) -> T:
        """Return the filter as a condition."""
        if isinstance(where, Compare):
            return self._compare(where)
        parts = [self.condition(part) for part in where.parts]
        return self.all_of(parts) if isinstance(where, AllOf) else self.any_of(parts)

    def _compare(self, where: Compare) -> T:
        key, op, value = where.key, where.op, where.value
        if op in COMPARE:
            if isinstance(value, str):
                return self.text_order(key, op, value)
            if is_number(value) and value == value:
                return self.number_order(key, op, cast(float, value))
            return self.any_of([])
        values = Values(value if isinstance(value, tuple) else (value,))
        return self.equal(key, values) if op in ("eq", "in") else self.unequal(key, values)

    @abstractmethod
    def all_of(self, parts: Sequence[T]) -> T:
        """True if every part is; with no parts, always."""

    @abstractmethod
    def any_of(self, parts: Sequence[T]) -> T:
        """True if some part is; with no parts, never."""

    @abstractmethod
    def equal(self, key: str, values: Values) -> T:
        """True if the value of `key`, or an element of its list, equals one of the values by type and value."""

    @abstractmethod
    def unequal(self, key: str, values: Values) -> T:
        """The negation of `equal`."""

    @abstractmethod
    def text_order(self, key: str, op: str, value: str) -> T:
        """Compare a string by code points."""

    @abstractmethod
    def number_order(self, key: str, op: str, value: float) -> T:
        """Compare a number; `value` is not NaN."""


class ColumnDialect(Dialect[T]):
    """A dialect in which own fields of rows are columns, each of one type, and all other keys are coded together."""

    def equal(self, key: str, values: Values) -> T:
        if key in TEXT:
            texts = [text for text in values.texts if self.fits(text)]
            return self.column_equal(TEXT[key], texts, values.null)
        if key in NUMBERS:
            return self.column_equal(NUMBERS[key], wholes(values.numbers), values.null)
        return self.coded_equal(key, values)

    def text_order(self, key: str, op: str, value: str) -> T:
        if key in TEXT:
            return self.column_order(TEXT[key], op, value)
        return self.any_of([]) if key in NUMBERS else self.coded_text_order(key, op, value)

    def number_order(self, key: str, op: str, value: float) -> T:
        if key in NUMBERS:
            return self.column_order(NUMBERS[key], op, whole_bound(op, value))
        return self.any_of([]) if key in TEXT else self.coded_number_order(key, op, value)

    @abstractmethod
    def fits(self, text: str) -> bool:
        """Return True if a column can contain the text."""

    @abstractmethod
    def column_equal(self, column: str, values: Sequence[str] | Sequence[int], null: bool) -> T:
        """True if the column has one of the values, or is NULL and `null` is True."""

    @abstractmethod
    def column_order(self, column: str, op: str, value: str | int) -> T:
        """Compare a column with a value of its type."""

    @abstractmethod
    def coded_equal(self, key: str, values: Values) -> T:
        """`equal` for the other keys."""

    @abstractmethod
    def coded_text_order(self, key: str, op: str, value: str) -> T:
        """`text_order` for the other keys."""

    @abstractmethod
    def coded_number_order(self, key: str, op: str, value: float) -> T:
        """`number_order` for the other keys."""


def joined(parts: Sequence[str], word: str, none: str) -> str:
    """Return conditions of SQL joined by a word, as a balanced tree: SQLite refuses expressions that nest 1 000 deep,
    and each AND is one level."""
    if len(parts) > DEEP:
        half = len(parts) // 2
        parts = [joined(parts[:half], word, none), joined(parts[half:], word, none)]
    return f" {word} ".join(f"({part})" for part in parts) if len(parts) > 1 else "".join(parts) or none
