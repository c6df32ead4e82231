"""A fact among its versions: when it holds, what ended it, and what was done to it, kept in its metadata. No I/O.

Under `changes` a fact keeps what became of it: `{"at", "what", "why", "ids"}`, the last 20. A fact that was made of
others has their ids under `consolidates`; one that was told to end by itself has the end under `told_until`
(microseconds); one that somebody took back is `undone`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from memoranda.clock import moment
from memoranda.store.rows import Record
from memoranda.text.json import compact_json

What = Literal["superseded", "consolidated", "restored", "undone"]
KEPT = 20


class FactChange(msgspec.Struct, kw_only=True):
    """What became of a version of a fact. `superseded`: by those of `ids`, because it was contradicted or told more
    exactly (`why`); `consolidated` into them; `restored` when they went or were taken back; `undone`: taken back, so
    that they hold again."""

    at: datetime
    what: What
    why: str | None = None
    ids: list[str] = []


def start_of(row: Record) -> int:
    """When a fact begins to hold: as it was told, else when it was said. Microseconds."""
    return row.occurred_at if row.valid_from is None else row.valid_from


def kept(row: Record) -> dict[str, Any]:
    """The metadata of a row."""
    return {} if row.metadata == "{}" else dict(msgspec.json.decode(row.metadata))


def parts_of(row: Record) -> list[str]:
    """The ids of the facts that a fact was made of; none for one that was learned."""
    held = kept(row).get("consolidates")
    return [id_ for id_ in held if isinstance(id_, str)] if isinstance(held, list) else []


def is_undone(row: Record) -> bool:
    """Whether somebody took this fact back."""
    return kept(row).get("undone") is True


def is_live(row: Record) -> bool:
    """Whether nothing took a fact's place, and nobody took it back."""
    return row.superseded_by is None and not is_undone(row)


def changes_of(row: Record) -> list[FactChange]:
    """What became of a fact, oldest first. What somebody else wrote there is left out."""
    held = kept(row).get("changes")
    found: list[FactChange] = []
    for one in held if isinstance(held, list) else ():
        try:
            found.append(msgspec.convert(one, FactChange))
        except msgspec.ValidationError:
            continue
    return found


def put(row: Record, fields: Mapping[str, Any]) -> Record:
    """The row with these keys in its metadata; None takes one out."""
    merged = {key: value for key, value in {**kept(row), **fields}.items() if value is not None}
    return row._replace(metadata=compact_json(merged))


def noted(row: Record, at: int, what: What, why: str | None, ids: Sequence[str]) -> Record:
    """The row with one more change."""
    change: dict[str, Any] = {"at": moment(at).isoformat(), "what": what, "ids": list(ids)}
    if why is not None:
        change["why"] = why
    held = kept(row).get("changes")
    earlier = held if isinstance(held, list) else []
    return put(row, {"changes": [*earlier, change][-KEPT:]})


def ended(row: Record, by: str, at: int, now: int, what: What, why: str | None = None) -> Record:
    """The row once `by` takes its place from `at` on. An end of its own is kept for when it holds again."""
    if row.invalid_at is not None and row.superseded_by is None and kept(row).get("told_until") is None:
        row = put(row, {"told_until": row.invalid_at})
    return noted(row._replace(superseded_by=by, invalid_at=at), now, what, why, [by])


def restored(row: Record, ids: Sequence[str], now: int, why: str) -> Record:
    """The row once what took its place is no more: it holds until the end that it was told, if any."""
    until = kept(row).get("told_until")
    alive = row._replace(superseded_by=None, invalid_at=until if isinstance(until, int) else None)
    return noted(alive, now, "restored", why, ids)


def taken_back(row: Record, ids: Sequence[str], now: int) -> Record:
    """The row once somebody took it back: it held at no time, and is not looked up."""
    return noted(put(row._replace(invalid_at=start_of(row)), {"undone": True}), now, "undone", None, ids)
