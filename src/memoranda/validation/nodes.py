"""The types of the values inside a value, as msgspec describes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import inspect

STEPS = re.compile(r"[^.\[\]]+")


@lru_cache(512)
def described(type_: Any) -> Any | None:
    """Return the description of a type; None if msgspec has none."""
    try:
        return inspect.type_info(type_)
    except TypeError:
        return None


def nodes_at(type_: Any, path: str) -> list[tuple[Any, dict[str, Any]]]:
    """Return the possible types at a path such as `messages[3].role`, each with the `extra` of its `Meta`."""
    top = described(type_)
    nodes = [] if top is None else [top]
    for step in STEPS.findall(path):
        nodes = [inner for node, _ in alternatives(nodes) for inner in inside(node, step)]
    return list(alternatives(nodes))


def keys_at(type_: Any, path: str) -> list[tuple[Any, dict[str, Any]]]:
    """Return the possible types of the keys of an object at a path, each with the `extra` of its `Meta`."""
    return list(alternatives(node.key_type for node, _ in nodes_at(type_, path) if hasattr(node, "key_type")))


def alternatives(
    nodes: Iterable[Any], extra: dict[str, Any] | None = None
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the members of unions, without their `Annotated` wrappers."""
    for node in nodes:
        if isinstance(node, inspect.Metadata):
            yield from alternatives([node.type], {**(extra or {}), **(node.extra or {})})
        elif isinstance(node, inspect.UnionType):
            yield from alternatives(node.types, extra)
        else:
            yield node, extra or {}


def inside(node: Any, step: str) -> Iterator[Any]:
    """Yield the types at a step of a path, which is a name or an index."""
    fields = getattr(node, "fields", None)
    if fields is not None:
        yield from (field.type for field in fields if field.encode_name == step)
    for name in ("item_type", "value_type"):
        if hasattr(node, name):
            yield getattr(node, name)


def structs_in(type_: Any) -> list[Any]:
    """Return a struct and all structs in its fields, itself first."""
    structs: dict[Any, None] = {}
    todo = [described(type_)]
    while todo:
        for node, _ in alternatives([todo.pop()]):
            if isinstance(node, inspect.StructType):
                if node.cls not in structs:
                    todo += [field.type for field in node.fields]
                structs[node.cls] = None
            else:
                todo += inside(node, "0")
    return list(structs)


def value_at(raw: Any, path: str) -> Any:
    """Return the value at a path; UNSET if a key in the path is not named, as in `metadata[...]`."""
    for step in STEPS.findall(path):
        try:
            raw = raw[int(step)] if isinstance(raw, list) else raw[step]
        except (KeyError, IndexError, TypeError, ValueError):
            return msgspec.UNSET
    return raw
