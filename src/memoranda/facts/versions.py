"""A fact among its versions: when it holds, what ended it, and what was done to it, kept in its metadata. No I/O.

Under `changes` a fact keeps what became of it: `{"at", "what", "why", "ids"}`, the last 20. A consolidated fact has the
ids of its parts under `consolidates`; one that had an end of its own has it under `told_until` (microseconds); one that
was undone is `undone`. Messages that are no sources of it, and have words of it that its sources do not have, are under
`context_refs`. A fact that ended others in the words of a message has these under `quotes`: lists of the id of the
ended one, the id of the message, and the words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from typing import Any, Literal

import msgspec

from memoranda.clock import moment
from memoranda.store.origins import CONFIRMED
from memoranda.store.rows import CONTEXT, QUOTES, Record, context_of, refs_of, start_of
from memoranda.text.stored import compact_json

What = Literal["superseded", "consolidated", "restored", "undone", "confirmed"]
KEPT = 20


class FactChange(msgspec.Struct, kw_only=True):
    """What became of a version of a fact. `superseded` by those of `ids`, which have another value in its place, or say
    that it is over (`why`: `replaced`, `ended`), in the quoted words of a message, or without a `quote` at the word of
    the caller; `consolidated` into them; `restored` when they went or were taken back; `undone`: taken back, so that
    they hold again; `confirmed` by a person."""

    at: datetime
    what: What
    why: str | None = None
    ids: list[str] = []
    quote: str | None = None


def metadata_of(row: Record) -> dict[str, Any]:
    """Return the metadata of a row."""
    return {} if row.metadata == "{}" else dict(msgspec.json.decode(row.metadata))


def parts_of(row: Record) -> list[str]:
    """Return the ids of the parts of a consolidated fact; empty for any other."""
    parts = metadata_of(row).get("consolidates")
    return [id_ for id_ in parts if isinstance(id_, str)] if isinstance(parts, list) else []


def is_undone(row: Record) -> bool:
    """Return True if this fact was undone."""
    return metadata_of(row).get("undone") is True


def is_live(row: Record) -> bool:
    """Return True if a fact is neither superseded nor undone."""
    return row.superseded_by is None and not is_undone(row)


def quotes_of(row: Record) -> list[list[str]]:
    """Return the words in which a fact ended others: (id of the ended, id of the message, words)."""
    quotes = metadata_of(row).get(QUOTES)
    return [quote for quote in quotes if _is_quote(quote)] if isinstance(quotes, list) else []


def _is_quote(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(isinstance(text, str) for text in value)


def quoting(row: Record, ended: str, message: str, words: str) -> Record:
    """Return the row with the words of a message in which it ended a fact."""
    return put(
        row, {QUOTES: [*(quote for quote in quotes_of(row) if quote[0] != ended), [ended, message, words]]}
    )


def changes_of(row: Record) -> list[FactChange]:
    """Return the changes of a fact, oldest first. Entries of another form are left out."""
    entries = metadata_of(row).get("changes")
    changes: list[FactChange] = []
    for entry in entries if isinstance(entries, list) else ():
        try:
            changes.append(msgspec.convert(entry, FactChange))
        except msgspec.ValidationError:
            continue
    return changes


def put(row: Record, fields: Mapping[str, Any]) -> Record:
    """Return the row with these keys in its metadata; None removes a key."""
    merged = {key: value for key, value in {**metadata_of(row), **fields}.items() if value is not None}
    return row._replace(metadata=compact_json(merged))


def without(row: Record, gone: Set[str]) -> Record:
    """Return the row without these sources, in its context too, and without what it quotes of them."""
    refs, context, quotes = refs_of(row), context_of(row), quotes_of(row)
    if gone & set(context):
        row = put(row, {CONTEXT: [ref for ref in context if ref not in gone] or None})
    if any(message in gone for _, message, _ in quotes):
        row = put(row, {QUOTES: [quote for quote in quotes if quote[1] not in gone] or None})
    return row._replace(source_refs=compact_json([ref for ref in refs if ref not in gone]))


def noted(row: Record, at: int, what: What, why: str | None, ids: Sequence[str]) -> Record:
    """Return the row with one more change."""
    change: dict[str, Any] = {"at": moment(at).isoformat(), "what": what, "ids": list(ids)}
    if why is not None:
        change["why"] = why
    entries = metadata_of(row).get("changes")
    earlier = entries if isinstance(entries, list) else []
    return put(row, {"changes": [*earlier, change][-KEPT:]})


def ended(row: Record, by: str, at: int, now: int, what: What, why: str | None = None) -> Record:
    """Return the row as superseded by `by` from `at` on. An end of its own is kept for a later restore."""
    if (
        row.invalid_at is not None
        and row.superseded_by is None
        and metadata_of(row).get("told_until") is None
    ):
        row = put(row, {"told_until": row.invalid_at})
    return noted(row._replace(superseded_by=by, invalid_at=at), now, what, why, [by])


def restored(row: Record, ids: Sequence[str], now: int, why: str) -> Record:
    """Return the row as restored: valid again, until its own end if it had one."""
    until = metadata_of(row).get("told_until")
    alive = row._replace(superseded_by=None, invalid_at=until if isinstance(until, int) else None)
    return noted(alive, now, "restored", why, ids)


def taken_back(row: Record, ids: Sequence[str], now: int) -> Record:
    """Return the row as undone: valid at no time, and not looked up."""
    return noted(put(row._replace(invalid_at=start_of(row)), {"undone": True}), now, "undone", None, ids)


def confirmed(row: Record, now: int) -> Record:
    """Return the row as confirmed at this time: with full confidence, and used. Its last change says so once."""
    used = row._replace(confidence=1.0, access_count=row.access_count + 1, last_accessed_at=now)
    sure = put(used, {CONFIRMED: now})
    last = changes_of(row)[-1:]
    return sure if last and last[0].what == "confirmed" else noted(sure, now, "confirmed", None, [])
