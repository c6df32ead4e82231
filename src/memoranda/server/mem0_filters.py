"""mem0's filters as ours: `AND`, `OR`, `NOT` over entities, times, categories and metadata. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from memoranda.clock import end_of, micros
from memoranda.clock import moment_of as iso_moment
from memoranda.errors import InvalidInput
from memoranda.filters import MAX_NODES
from memoranda.types import MAX_VALUES

Condition = dict[str, Any]
ENTITIES: dict[str, tuple[str, ...]] = {
    "user_id": ("$user_id",),
    "agent_id": ("$agent_id",),
    "app_id": ("app_id",),
    "run_id": ("$session_id", "run_id"),
}
"""The fields that store an entity. A fact of a user that was learned in a run has the run in its metadata."""
SCOPES = {"user_id": "user", "agent_id": "agent", "run_id": "session"}
TIMES = ("created_at", "timestamp")
NEGATED = {"eq": "ne", "ne": "eq", "in": "nin", "nin": "in"}
NEGATED_ORDER = {"gt": "lte", "gte": "lt", "lt": "gte", "lte": "gt"}
LOGIC = ("AND", "OR", "NOT")
MAX_DEPTH = 12
UNSUPPORTED = {
    "updated_at": "use created_at",
    "keywords": "put the words into the query of a search",
    "memory_ids": "get each memory by its id",
}


def translated(raw: Any, path: str = "filters") -> Condition:
    """Convert a filter of mem0 to a filter of this library.

    Raises:
        InvalidInput: names the condition that is wrong or not supported, and what to write instead.
    """
    return _all(raw, path, False, 0)


def scopes_in(raw: Any) -> set[str] | None:
    """Scopes that together contain every memory that passes the filter; None if the filter names none."""
    if not isinstance(raw, Mapping):
        return None
    scopes: set[str] = set()
    for key, value in raw.items():
        if key == "AND":
            for part in _listed(value):
                scopes |= scopes_in(part) or set()
        elif key == "OR":
            parts = [scopes_in(part) for part in _listed(value)]
            if parts and all(parts):
                scopes |= set().union(*(part for part in parts if part))
        elif key in SCOPES:
            scopes |= {f"{SCOPES[key]}:{name}" for name in _named(value)}
    return scopes or None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _not_longer(value: Any, most: int, path: str) -> None:
    if isinstance(value, list) and len(value) > most:
        raise InvalidInput(path, f"has too many elements; send at most {most}")


def _named(value: Any) -> list[str]:
    """The names that a condition on an entity allows; none where it names none."""
    if isinstance(value, Mapping):
        value = value.get("eq", value.get("in"))
    return [name for name in _listed(value) if isinstance(name, str) and name not in ("", "*")]


def _all(raw: Any, path: str, negated: bool, depth: int) -> Condition:
    """All entries of an object; negated, not all of them."""
    if depth > MAX_DEPTH:
        raise InvalidInput(path, f"filters may nest {MAX_DEPTH} deep")
    if not isinstance(raw, Mapping) or not raw:
        raise InvalidInput(path, 'expected an object such as {"AND": [{"user_id": "alice"}]}')
    parts = [_entry(key, value, f"{path}.{key}", negated, depth) for key, value in raw.items()]
    return _joined("or" if negated else "and", parts)


def _entry(key: Any, value: Any, path: str, negated: bool, depth: int) -> Condition:
    if key in LOGIC:
        inside = negated != (key == "NOT")
        _not_longer(value, MAX_NODES, path)
        parts = [
            _all(part, f"{path}[{i}]" if isinstance(value, list) else path, inside, depth + 1)
            for i, part in enumerate(_listed(value))
        ]
        return _joined("or" if (key == "OR") != negated else "and", parts)
    if key in ENTITIES:
        return _entity(key, value, path, negated)
    if key in TIMES:
        return _operators("$occurred_at", value, path, negated, time=True)
    if key == "categories":
        return _categories(value, path, negated)
    if key == "metadata":
        return _metadata(value, path, negated)
    fix = UNSUPPORTED.get(key)
    if fix is not None:
        raise InvalidInput(path, f"is not supported here; {fix}")
    known = ", ".join([*LOGIC, *ENTITIES, *TIMES, "categories", "metadata"])
    raise InvalidInput(path, f'is unknown; use {known}. Keys of metadata go into {{"metadata": {{...}}}}')


def _entity(key: str, value: Any, path: str, negated: bool) -> Condition:
    """A condition on an entity, which may be in one of two places: in either it must be, or in neither."""
    places = ENTITIES[key]
    parts = [_operators(place, value, path, negated, entity=True) for place in places]
    if len(parts) == 1:
        return parts[0]
    ops = set(_clauses(value))
    if len(ops) != 1:
        raise InvalidInput(path, "takes one operator; write the others as further conditions")
    # `ne None` is how `*` asks for any name
    positive = (ops & {"eq", "in"}) != set()
    return _joined("or" if positive != negated else "and", parts)


def _categories(value: Any, path: str, negated: bool) -> Condition:
    """A category is a tag; `contains` asks for a whole one, too."""
    if isinstance(value, Mapping) and "contains" in value:
        value = {
            **{op: operand for op, operand in value.items() if op != "contains"},
            "eq": value["contains"],
        }
    return _operators("$tags", value, path, negated, entity=True)


def _metadata(value: Any, path: str, negated: bool) -> Condition:
    if not isinstance(value, Mapping) or not value:
        raise InvalidInput(path, 'expected an object such as {"topic": "food"}')
    parts = [_operators(key, condition, f"{path}.{key}", negated) for key, condition in value.items()]
    return _joined("or" if negated else "and", parts)


def _operators(
    key: str, value: Any, path: str, negated: bool, *, entity: bool = False, time: bool = False
) -> Condition:
    """The operators of one field, all of which must hold."""
    ops = _clauses(value)
    if not ops:
        raise InvalidInput(path, "names no operator; use eq, ne, in, gt, gte, lt or lte")
    allowed = {*NEGATED, *(() if entity else NEGATED_ORDER)}
    parts = []
    for op, operand in ops.items():
        if op not in allowed:
            raise InvalidInput(f"{path}.{op}", f"is not supported here; use {', '.join(sorted(allowed))}")
        if isinstance(operand, list) != (op in ("in", "nin")) or isinstance(operand, Mapping):
            what = "a list of values" if op in ("in", "nin") else "one value"
            raise InvalidInput(f"{path}.{op}" if isinstance(value, Mapping) else path, f"takes {what}")
        _not_longer(operand, MAX_VALUES, f"{path}.{op}" if isinstance(value, Mapping) else path)
        if op == "eq" and operand == "*":
            op, operand = "ne", None
        if negated and op in NEGATED_ORDER and not time:
            raise InvalidInput(f"{path}.{op}", "is not supported inside NOT; turn the comparison around")
        meant = {**NEGATED, **NEGATED_ORDER}[op] if negated else op
        if time:
            moments = [micros(_bound(moment, path, op)) for moment in _listed(operand)]
            operand = moments if isinstance(operand, list) else moments[0]
        parts.append({"type": meant, "key": key, "value": operand})
    return _joined("or" if negated else "and", parts)


def _clauses(value: Any) -> Mapping[Any, Any]:
    """The operators of a condition with their operands; a value alone is compared, a list is one of its values."""
    if isinstance(value, Mapping):
        return value
    return {"in" if isinstance(value, list) else "eq": value}


def _bound(value: Any, path: str, op: str) -> datetime:
    """A moment as `moment_of`, but of a day its end, where what is wanted lies up to it or behind it."""
    ends = op in ("gt", "lte") and isinstance(value, str)
    return (end_of(value, inside=True) if ends else None) or moment_of(value, path)


def moment_of(value: Any, path: str) -> datetime:
    """A moment of a date, a date and time, or seconds since 1970.

    Raises:
        InvalidInput: it is none of these.
    """
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        return iso_moment(value)
    except (AttributeError, ValueError, OverflowError, OSError) as exc:
        raise InvalidInput(path, "must be a date such as 2024-05-01 or 2024-05-01T12:00:00Z") from exc


def _joined(kind: str, parts: list[Condition]) -> Condition:
    return parts[0] if len(parts) == 1 else {"type": kind, "filters": parts}
