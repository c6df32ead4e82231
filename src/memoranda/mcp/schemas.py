"""JSON schemas of the arguments and results of tools, without references between their parts."""

from __future__ import annotations

from typing import Any

import msgspec

_REF = "#/$defs/"
_NULL = {"type": "null"}


def arguments_schema(type_: type[Any]) -> dict[str, Any]:
    """Return the schema of arguments. An optional one has the schema of its value: models leave it out."""
    return _schema(type_, nullable=False) | {"additionalProperties": False}


def result_schema(type_: type[Any]) -> dict[str, Any]:
    """Return the schema of a result, in which null is null."""
    return _schema(type_, nullable=True)


def _schema(type_: type[Any], nullable: bool) -> dict[str, Any]:
    (root,), parts = msgspec.json.schema_components((type_,), ref_template=_REF + "{name}")

    def inlined(node: Any) -> Any:
        if isinstance(node, list):
            return [inlined(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return inlined(
                parts[node["$ref"].removeprefix(_REF)] | {k: v for k, v in node.items() if k != "$ref"}
            )
        copy = {name: inlined(value) for name, value in node.items() if not _dropped(name, value)}
        if not nullable and _NULL in copy.get("anyOf", ()):
            others = [option for option in copy.pop("anyOf") if option != _NULL]
            copy |= others[0] if len(others) == 1 else {"anyOf": others}
        return copy

    schema = inlined(root)
    assert isinstance(schema, dict)
    return schema


def _dropped(name: str, value: Any) -> bool:
    """Return True for keywords without information: titles (names of classes), a default of null."""
    return (name == "title" and isinstance(value, str)) or (name == "default" and value is None)
