"""The fields of a record that are its text, date and owner: named by the caller, else by the conventions of
frameworks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from memoranda.errors import InvalidInput
from memoranda.importers.dates import moment, unread
from memoranda.importers.fields import mapping as object_of
from memoranda.importers.fields import metadata, name, named, text
from memoranda.importers.values import Entry, Item, Skipped
from memoranda.text.hashing import digest

Fields = Mapping[str, str]
"""The names of fields by what they are: `NAMES`."""
NAMES = ("table", "id", "text", "date", "user", "agent", "session")
_TEXTS = ("text", "page_content", "document", "content", "memory", "data", "chunk", "body")
DATES = ("created_at", "timestamp", "date", "updated_at")
_OWNERS = {"user": ("user_id",), "agent": ("agent_id",), "session": ("run_id", "session_id")}
_NODE = "_node_content"
"""The field in which LlamaIndex stores a node as JSON."""


def parsed(pairs: Iterable[str]) -> dict[str, str]:
    """`text=body` as a name and a field.

    Raises:
        InvalidInput: it has another form, or the name is unknown.
    """
    fields = {}
    for pair in pairs:
        what, _, field = pair.partition("=")
        if what not in NAMES or not field:
            raise InvalidInput("map", f"{pair!r} must be NAME=FIELD, with one of {', '.join(NAMES)}")
        fields[what] = field
    return fields


def has_text(payload: Mapping[str, Any], fields: Fields) -> bool:
    """Return True if a record has a text, so that `entry` yields a memory."""
    flat = _flat(payload)
    return bool(text(flat.get(_text_field(flat, fields))))


def entry(
    id_: str,
    payload: Mapping[str, Any],
    place: str,
    fields: Fields,
    inserted_at: str | None = None,
    *,
    source: str,
    **about: Any,
) -> Iterator[Item]:
    """A record as a memory. Its metadata are `about` and all fields that are not its text or owner. `inserted_at` is
    its date if none of its fields has one; `source` is the name of its database."""
    flat = _flat(payload)
    key = _text_field(flat, fields)
    content = text(flat.get(key))
    if not content:
        yield Skipped(kind="note", reason="has no text; name its field with --map text=FIELD", place=place)
        return
    used = {key, _NODE}
    owners: dict[str, str | None] = {}
    for what, keys in _OWNERS.items():
        owner = fields.get(what) or next((each for each in keys if name(flat.get(each))), "")
        owners[what] = name(flat.get(owner))
        used |= {owner}
    dates = [flat.get(each) for each in ([fields["date"]] if "date" in fields else DATES)]
    yield from unread(place, *dates)
    left = {"created_at": inserted_at} | {each: value for each, value in flat.items() if each not in used}
    yield Entry(
        id=digest(id_),
        source=source,
        place=place,
        content=content,
        occurred_at=moment(*dates, inserted_at),
        metadata=named(metadata({each: _plain(value) for each, value in left.items()} | about)),
        user_id=owners["user"],
        agent_id=owners["agent"],
        session_id=owners["session"],
    )


def _text_field(flat: Mapping[str, Any], fields: Fields) -> str:
    return fields.get("text") or _text_key(flat)


def _text_key(record: Mapping[str, Any]) -> str:
    return next((each for each in _TEXTS if text(record.get(each))), "")


def _flat(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record with those of its `metadata`, and the text of a node of LlamaIndex."""
    flat = {**object_of(payload.get("metadata")), **payload}
    if isinstance(payload.get("metadata"), dict):
        del flat["metadata"]
    if isinstance(flat.get(_NODE), str):
        try:
            node = object_of(msgspec.json.decode(flat[_NODE]))
        except (msgspec.DecodeError, RecursionError):
            node = {}
        flat.setdefault("text", node.get("text"))
    return flat if _text_key(flat) else _unwrapped(flat)


def _unwrapped(flat: dict[str, Any]) -> dict[str, Any]:
    """The fields with those of the object that stands in the place of the text, as in the memories of langmem."""
    wrapped = next((each for each in _TEXTS if _text_key(object_of(flat.get(each)))), None)
    if wrapped is None:
        return flat
    return {**flat[wrapped], **named({key: value for key, value in flat.items() if key != wrapped})}


def _plain(value: Any) -> Any:
    """A value that JSON has; any other one as text."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return str(value)
    return value
