"""Requests made from an OpenAPI document: every field with values at and beyond each limit, one field at a time."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Schema = Mapping[str, Any]
Path = tuple[str | int, ...]
DEEPEST = 4
LENGTHS = (257, 513, 4_097, 10_001)
LONGEST, MOST = 20_000, 1_001
"""Characters of a text and elements of a list that are sent at most: beyond them only time is lost."""
NUMBERS = (-1_001, -3, -1, 0, 1, 11, 51, 101, 1_001, 10**9)
TEXTS = ("", " ", "\x00", "nope", "2026-03-02")
KEYS = ("", "$a", "a" * 65, "no key")


class Probe(NamedTuple):
    """A body that differs from a valid one at `place`."""

    place: str
    body: Any


class LimitedList(NamedTuple):
    """A list in a body that may have `most` elements, of the schema `items`; `base` has all that stands around it."""

    path: Path
    most: int
    items: Schema
    base: Any

    @property
    def place(self) -> str:
        """Its place, as errors name it."""
        return _shown(self.path)

    def body(self, elements: list[Any]) -> Any:
        """The body with these elements."""
        return _put(self.base, self.path, elements)


class Prober:
    """The probes of one OpenAPI document."""

    def __init__(self, document: Schema) -> None:
        self._schemas = document["components"]["schemas"]

    def probes(self, schema: Schema, base: Any) -> Iterator[Probe]:
        """Probes of a body with this schema; `base` is valid."""
        for path, value in self._at((), schema, base):
            yield Probe(_shown(path), _put(base, path, value))
        for left_out in ([*base], *([name] for name in base)):
            yield Probe(
                f"without {', '.join(left_out)}", {k: v for k, v in base.items() if k not in left_out}
            )

    def lists(self, schema: Schema, base: Any, path: Path = ()) -> Iterator[LimitedList]:
        """The lists with a limit in a body with this schema; `base` is valid."""
        for kind in self._kinds(schema):
            if "maxItems" in kind:
                for narrower in kind.get("anyOf", [{}]):
                    narrow = {**kind, **narrower}
                    yield LimitedList(path, narrow["maxItems"], narrow.get("items", {}), base)
            if len(path) >= DEEPEST:
                continue
            if isinstance(items := kind.get("items"), dict):
                for item in self._kinds(items):
                    here = _value(base, (*path, 0))
                    around = base if here is not None else _put(base, (*path, 0), self.sample(item))
                    yield from self.lists(item, around, (*path, 0))
            if "properties" in kind or isinstance(kind.get("additionalProperties"), dict):
                yield from self._lists_inside(kind, base, path)

    def _lists_inside(self, kind: Schema, base: Any, path: Path) -> Iterator[LimitedList]:
        """The lists in an object."""
        if not isinstance(_value(base, path), dict):
            base = _put(base, path, self.sample({"type": "object", **kind}))
        for name, inner in kind.get("properties", {}).items():
            yield from self.lists(inner, base, (*path, name))
        if isinstance(more := kind.get("additionalProperties"), dict):
            yield from self.lists(more, base, (*path, "a"))

    def sample(self, schema: Schema, depth: int = 0) -> Any:
        """A small value that the schema describes."""
        one = next((kind for kind in self._kinds(schema) if kind.get("type") != "null"), {})
        if "const" in one or one.get("enum"):
            return one.get("const", (one.get("enum") or [None])[0])
        if one.get("examples"):
            return one["examples"][0]
        match one.get("type"):
            case "string":
                return "2026-03-02T10:00:00Z" if one.get("format") else "a" * max(1, one.get("minLength", 1))
            case "integer" | "number":
                return one.get("minimum", one.get("exclusiveMinimum", 0) + ("exclusiveMinimum" in one))
            case "boolean":
                return True
            case "array":
                few = one.get("minItems", 0)
                return [self.sample(one.get("items", {}), depth + 1)] * few
            case "object":
                named = one.get("properties", {})
                return {name: self.sample(named[name], depth + 1) for name in one.get("required", ())}
        return "a"

    def values(self, schema: Schema) -> Iterator[Any]:
        """Values of the schema's types, at and beyond its limits, and where limits are usual."""
        for kind in self._kinds(schema):
            if "enum" in kind or "const" in kind:
                yield "nope"
                continue
            match kind.get("type"):
                case "string":
                    yield from TEXTS
                    yield from ("a" * size for size in self._sizes(kind, "Length", LENGTHS, LONGEST))
                case "integer" | "number":
                    yield from self._numbers(kind)
                case "array":
                    item = self.sample(kind.get("items", {}))
                    yield from ([item] * size for size in self._sizes(kind, "Items", (0, 65), MOST))
                case "object" if isinstance(kind.get("additionalProperties"), dict):
                    item = self.sample(kind["additionalProperties"])
                    yield from ({key: item} for key in KEYS)
                    for size in self._sizes(kind, "Properties", (0, 9, 17, 65), MOST):
                        yield {f"k{number}": item for number in range(size)}
                case "object" if "properties" not in kind:
                    yield from ({key: "a"} for key in KEYS)
                case "null":
                    yield None

    def _at(self, path: Path, schema: Schema, base: Any) -> Iterator[tuple[Path, Any]]:
        if path:
            yield from ((path, value) for value in self.values(schema))
        if len(path) >= DEEPEST:
            return
        for kind in self._kinds(schema):
            if kind.get("type") == "object":
                held = base if isinstance(base, dict) else self.sample(kind)
                for name, inner in kind.get("properties", {}).items():
                    for below, value in self._at((*path, name), inner, held.get(name)):
                        yield self._filled(path, kind, base, below, value)
                if (
                    isinstance(more := kind.get("additionalProperties"), dict)
                    and kind.get("properties") is None
                ):
                    key = next(iter(base), "a") if isinstance(base, dict) else "a"
                    yield from self._at((*path, key), more, None)
            elif kind.get("type") == "array" and isinstance(kind.get("items"), dict):
                first = base[0] if isinstance(base, list) and base else self.sample(kind["items"])
                yield from self._at((*path, 0), kind["items"], first)

    def _filled(self, path: Path, kind: Schema, base: Any, below: Path, value: Any) -> tuple[Path, Any]:
        """The change at a place; of an object that the base does not have, with what else it requires."""
        if isinstance(base, dict) or not path:
            return below, value
        return path, _put(self.sample(kind), below[len(path) :], value)

    def _numbers(self, kind: Schema) -> Iterator[int | float]:
        edges = [kind[name] for name in ("minimum", "maximum", "exclusiveMinimum") if name in kind]
        step = 1 if kind["type"] == "integer" else 0.5
        near = [edge + way for edge in edges for way in (-step, 0, step)]
        yield from dict.fromkeys([*NUMBERS, *near])

    def _sizes(self, kind: Schema, what: str, usual: tuple[int, ...], most_sent: int) -> list[int]:
        least, most = kind.get(f"min{what}"), kind.get(f"max{what}")
        edges = [size for size in (least, most) if size is not None]
        sizes = {*usual, *edges, *(size - 1 for size in edges), *(size + 1 for size in edges)}
        return sorted(size for size in sizes if 0 <= size <= most_sent)

    def _kinds(self, schema: Schema) -> Iterator[Schema]:
        """The alternatives of a schema, references followed."""
        if "$ref" in schema:
            schema = self._schemas[schema["$ref"].rpartition("/")[2]]
        nested = schema.get("anyOf") or schema.get("oneOf")
        if not nested or schema.get("type"):
            yield schema
        else:
            for one in nested:
                yield from self._kinds(
                    {**{k: v for k, v in schema.items() if k not in ("anyOf", "oneOf")}, **one}
                )


def _value(base: Any, path: Path) -> Any:
    """What a body has at `path`; None if it has nothing there."""
    for step in path:
        if isinstance(step, int):
            base = base[step] if isinstance(base, list) and step < len(base) else None
        else:
            base = base.get(step) if isinstance(base, dict) else None
    return base


def _put(base: Any, path: Path, value: Any) -> Any:
    """A copy of `base` with another value at `path`."""
    if not path:
        return value
    name, rest = path[0], path[1:]
    if isinstance(name, int):
        held = list(base) if isinstance(base, list) else []
        inner = held[name] if name < len(held) else None
        return [*held[:name], _put(inner, rest, value), *held[name + 1 :]]
    whole = dict(base) if isinstance(base, dict) else {}
    whole[name] = _put(copy.deepcopy(whole.get(name)), rest, value)
    return whole


def _shown(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
