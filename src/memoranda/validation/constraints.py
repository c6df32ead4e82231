"""Constraints between the fields of a value: checked where it is read, and part of its JSON schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from memoranda.errors import InvalidInput

Schema = dict[str, Any]
EMPTY: tuple[Any, ...] = (None, "", [], {})
BLANK: tuple[Any, ...] = (None, "")


class Constraint(Protocol):
    """A constraint between fields of a value; `field` is the field of its error, `says` the message. Constraints of an
    object inside a body are only part of the schema: the user of the object checks them."""

    @property
    def field(self) -> str: ...

    @property
    def says(self) -> str: ...

    def holds(self, value_of: Callable[[str], Any]) -> bool:
        """Return True if the constraint is met; a field that is not given has the value UNSET or its default."""

    def schema(self, sent: Callable[[str], str]) -> Schema:
        """Return the constraint as a JSON schema; `sent` is the name of a field in JSON."""


class NotBoth(msgspec.Struct, frozen=True):
    """At most one of two fields is given. With `values` this applies if the first has one of them; a field with a value
    of `empty` counts as not given."""

    field: str
    other: str
    says: str
    values: tuple[Any, ...] = ()
    empty: tuple[Any, ...] = (None,)

    def holds(self, value_of: Callable[[str], Any]) -> bool:
        both = _given(value_of(self.field), self.values, self.empty) and _given(
            value_of(self.other), (), self.empty
        )
        return not both

    def schema(self, sent: Callable[[str], str]) -> Schema:
        first = _schema(sent(self.field), self.values, self.empty)
        return {"not": {"allOf": [first, _schema(sent(self.other), (), self.empty)]}}


class Needs(msgspec.Struct, frozen=True):
    """A field is given only together with another one. With `values` this applies if it has one of them; a field with a
    value of `empty` counts as not given."""

    field: str
    other: str
    says: str
    values: tuple[Any, ...] = ()
    empty: tuple[Any, ...] = (None,)

    def holds(self, value_of: Callable[[str], Any]) -> bool:
        given = _given(value_of(self.field), self.values, self.empty)
        return not given or _given(value_of(self.other), (), self.empty)

    def schema(self, sent: Callable[[str], str]) -> Schema:
        first = _schema(sent(self.field), self.values, self.empty)
        return {"anyOf": [{"not": first}, _schema(sent(self.other), (), self.empty)]}


class OneOf(msgspec.Struct, frozen=True):
    """At least one of the fields is given; one with a value of `empty` counts as not given. An error names the
    first."""

    fields: tuple[str, ...]
    says: str
    empty: tuple[Any, ...] = EMPTY

    @property
    def field(self) -> str:
        return self.fields[0]

    def holds(self, value_of: Callable[[str], Any]) -> bool:
        return any(_given(value_of(field), (), self.empty) for field in self.fields)

    def schema(self, sent: Callable[[str], str]) -> Schema:
        return {"anyOf": [_schema(sent(field), (), self.empty) for field in self.fields]}


class OneAbove(msgspec.Struct, frozen=True):
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


def _given(value: Any, values: tuple[Any, ...], empty: tuple[Any, ...]) -> bool:
    """Return True if a field has one of the values, or without them any that is not empty."""
    return value in values if values else value is not msgspec.UNSET and value not in empty


def _schema(field: str, values: tuple[Any, ...], empty: tuple[Any, ...]) -> Schema:
    """Return an object that has a field with one of the values, or without them with any that is not empty."""
    wanted: Schema = {"enum": list(values)} if values else {"not": {"enum": list(empty)}}
    return {"required": [field], **({"properties": {field: wanted}} if values or empty else {})}


def constraints_of(type_: Any) -> Sequence[Constraint]:
    """Return the constraints of a type, its `constraints`."""
    constraints: Sequence[Constraint] = getattr(type_, "constraints", ())
    return constraints


def check(value: msgspec.Struct, where: str = "") -> None:
    """Refuse a value that breaks a constraint of its type.

    Raises:
        InvalidInput: names the field, below `where`, and the fix.
    """

    for constraint in constraints_of(type(value)):
        if not constraint.holds(partial(getattr, value)):
            field = _sent(value, constraint.field)
            raise InvalidInput(f"{where}.{field}" if where else field, constraint.says)


def schemas(type_: Any) -> list[Schema]:
    """Return the constraints of a type as JSON schemas."""
    return [constraint.schema(lambda field: _sent(type_, field)) for constraint in constraints_of(type_)]


def _sent(type_: Any, field: str) -> str:
    """Return the name of a field in JSON."""
    names = zip(type_.__struct_fields__, type_.__struct_encode_fields__, strict=True)
    return str(dict(names)[field])
