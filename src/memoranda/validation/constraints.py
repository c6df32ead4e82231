"""Constraints between the fields of a value: checked where it is read, and part of its JSON schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from memoranda.errors import InvalidInput

Schema = dict[str, Any]
FILLED = {"minItems": 1, "minProperties": 1, "minLength": 1}


class Constraint(Protocol):
    """What must hold between the fields of a value; `field` is the one that an error names, `says` what it says."""

    @property
    def field(self) -> str: ...

    @property
    def says(self) -> str: ...

    def holds(self, value_of: Callable[[str], Any]) -> bool:
        """Return True if it holds; a field that is not given has the value None."""

    def schema(self, sent: Callable[[str], str]) -> Schema:
        """The constraint as a JSON schema; `sent` is the name of a field in JSON."""


@dataclass(frozen=True, slots=True)
class NotBoth:
    """At most one of two fields is given. With `values` this holds where the first has one of them, and with `blank` an
    empty text counts as not given."""

    field: str
    other: str
    says: str
    values: tuple[Any, ...] = ()
    blank: bool = False

    def holds(self, value_of: Callable[[str], Any]) -> bool:
        both = _holds(value_of(self.field), self.values, self.blank) and _holds(
            value_of(self.other), (), self.blank
        )
        return not both

    def schema(self, sent: Callable[[str], str]) -> Schema:
        first = _given(sent(self.field), self.values, blank=self.blank)
        return {"not": {"allOf": [first, _given(sent(self.other), blank=self.blank)]}}


@dataclass(frozen=True, slots=True)
class Needs:
    """A field is given only together with another one. With `values` this holds where it has one of them, and with
    `blank` an empty text counts as not given."""

    field: str
    other: str
    says: str
    values: tuple[Any, ...] = ()
    blank: bool = False

    def holds(self, value_of: Callable[[str], Any]) -> bool:
        given = _holds(value_of(self.field), self.values, self.blank)
        return not given or _holds(value_of(self.other), (), self.blank)

    def schema(self, sent: Callable[[str], str]) -> Schema:
        first = _given(sent(self.field), self.values, blank=self.blank)
        return {"anyOf": [{"not": first}, _given(sent(self.other), blank=self.blank)]}


@dataclass(frozen=True, slots=True)
class OneOf:
    """At least one of the fields is given, and with `filled` is no empty text, list or object; an error names the
    first."""

    fields: tuple[str, ...]
    says: str
    filled: bool = True

    @property
    def field(self) -> str:
        return self.fields[0]

    def holds(self, value_of: Callable[[str], Any]) -> bool:
        empty: tuple[Any, ...] = (None, "", [], {}) if self.filled else (None,)
        return any(value_of(field) not in empty for field in self.fields)

    def schema(self, sent: Callable[[str], str]) -> Schema:
        return {"anyOf": [_given(sent(field), filled=self.filled) for field in self.fields]}


@dataclass(frozen=True, slots=True)
class OneAbove:
    """At least one of the numbers is more than 0; an error names the first."""

    fields: tuple[str, ...]
    says: str

    @property
    def field(self) -> str:
        return self.fields[0]

    def holds(self, value_of: Callable[[str], Any]) -> bool:
        return any((value_of(field) or 0) > 0 for field in self.fields)

    def schema(self, sent: Callable[[str], str]) -> Schema:
        names = map(sent, self.fields)
        return {
            "anyOf": [{"required": [name], "properties": {name: {"exclusiveMinimum": 0}}} for name in names]
        }


def _holds(value: Any, values: tuple[Any, ...], blank: bool) -> bool:
    """Return True if a field is given and has one of the values, where there are some."""
    return value in values if values else value is not None and not (blank and value == "")


def _given(field: str, values: tuple[Any, ...] = (), *, filled: bool = False, blank: bool = False) -> Schema:
    """An object that has a field which is not null, has one of the values, is not empty."""
    held: Schema = {"enum": list(values)} if values else {"not": {"enum": [None, ""] if blank else [None]}}
    return {"required": [field], "properties": {field: {**held, **(FILLED if filled else {})}}}


def constraints_of(type_: Any) -> Sequence[Constraint]:
    """The constraints of a type, which are its `constraints`."""
    found: Sequence[Constraint] = getattr(type_, "constraints", ())
    return found


def check(value: msgspec.Struct, where: str = "") -> None:
    """Refuse a value that breaks a constraint of its type.

    Raises:
        InvalidInput: names the field, below `where`, and the fix.
    """

    def value_of(field: str) -> Any:
        held = getattr(value, field)
        return None if held is msgspec.UNSET else held

    for constraint in constraints_of(type(value)):
        if not constraint.holds(value_of):
            field = _sent(value, constraint.field)
            raise InvalidInput(f"{where}.{field}" if where else field, constraint.says)


def schemas(type_: Any) -> list[Schema]:
    """The constraints of a type as JSON schemas."""
    return [constraint.schema(lambda field: _sent(type_, field)) for constraint in constraints_of(type_)]


def _sent(type_: Any, field: str) -> str:
    """The name of a field in JSON."""
    names = zip(type_.__struct_fields__, type_.__struct_encode_fields__, strict=True)
    return str(dict(names)[field])
