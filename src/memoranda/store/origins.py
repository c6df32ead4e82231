"""Who wrote a row, in what role, and what had been read before: keys of stored metadata that no caller can write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec

from memoranda.errors import InvalidInput
from memoranda.filters import STAMPS, Compare, Filter, any_of
from memoranda.text.stored import compact_json
from memoranda.types import MACHINES, Origin, Subject, Through

ORIGIN, BY, READ = STAMPS


CONFIRMED = "$confirmed"
"""The key of when a person confirmed a fact, microseconds since 1970."""


QUARANTINED = "quarantined"
"""The tag of a row that is archived until a person confirms it."""


TOOLS = frozenset({"tool", "function"})
"""Roles of results of tools, in lower case."""


MADE = frozenset({"summary", "session_summary", "rollup", "qa_turn"})
"""Kinds of memories that an assistant writes."""


CLASSES: tuple[Origin, ...] = ("tool", "document", "import")
"""The classes that are stored where a role does not say them."""


_REFERENCES = ("user:", "key:", "tool:", "import:", "file-", "file_", "resp_")


DIRECT = Through()


def stamped(metadata: str, subject: Subject, user_id: str | None) -> str:
    """Return metadata (JSON) with who writes it: the subject's user unless it is the row's own, its key, and what
    writes for it."""
    through = subject.through or DIRECT
    by = [] if subject.user_id in (None, user_id) else [f"user:{subject.user_id}"]
    by += [] if subject.key is None else [f"key:{subject.key}"]
    return with_origin(metadata, through.origin, [*by, *through.by], through.read)


def with_origin(metadata: str, origin: str | None, by: Iterable[str], read: Iterable[str]) -> str:
    """Return metadata (JSON) with these values under their keys; what is empty has none."""
    values = {ORIGIN: origin, BY: list(dict.fromkeys(by)), READ: list(dict.fromkeys(read))}
    added = {key: value for key, value in values.items() if value}
    return compact_json(msgspec.json.decode(metadata) | added) if added else metadata


def hidden(metadata: str) -> dict[str, Any]:
    """Return the keys of stored metadata (JSON) that callers do not see."""
    if '"$' not in metadata:
        return {}
    return {key: value for key, value in msgspec.json.decode(metadata).items() if key.startswith("$")}


def inherited(sources: Iterable[str]) -> Through:
    """Return what writes a row that is made of others with this metadata (JSON): what wrote these."""
    stamps = [hidden(metadata) for metadata in sources]
    classes = {stamp[ORIGIN] for stamp in stamps if ORIGIN in stamp}
    return Through(
        origin=next((name for name in CLASSES if name in classes), None),
        by=tuple(dict.fromkeys(name for stamp in stamps for name in stamp.get(BY, ()))),
        read=tuple(dict.fromkeys(name for stamp in stamps for name in stamp.get(READ, ()))),
    )


def origin_of(stamp: Mapping[str, Any], kind: str, role: str | None) -> Origin:
    """Return the class of a row: as its keys say, else as its kind and role do."""
    if ORIGIN in stamp:
        return cast(Origin, stamp[ORIGIN])
    said = (role or "").lower()
    if kind == "document":
        return "document"
    if said in TOOLS:
        return "tool"
    return "assistant" if kind in MADE or said in MACHINES else "user"


def is_reference(source: str) -> bool:
    """Return True if a source names who wrote a row, or what was read before, see `selected`."""
    return source.startswith(_REFERENCES)


def selected(source: str) -> Filter:
    """Return the rows from a source: those with this `source`; for `origin:tool`, `origin:document` or `origin:import`
    also those of the class, for an id of a file or response, or `user:X`, `key:X`, `tool:X`, `import:X`, those that it
    wrote, or that were written after it was read.

    Raises:
        InvalidInput: it is another `origin:`, or one of the prefixes alone.
    """
    named = Compare("$source", "eq", source)
    if source.startswith("origin:"):
        name = source.removeprefix("origin:")
        if name not in CLASSES:
            known = ", ".join(f"origin:{name}" for name in CLASSES)
            raise InvalidInput(
                "source", f"{source!r} is no class of memories that can be selected; use {known}"
            )
        kind = [Compare("$kind", "eq", name)] if name == "document" else []
        return any_of(named, Compare(ORIGIN, "eq", name), *kind)
    if source in _REFERENCES:
        raise InvalidInput("source", f"{source!r} is only a prefix; add an id or a name")
    if not is_reference(source):
        return named
    return any_of(named, Compare(BY, "eq", source), Compare(READ, "eq", source))
