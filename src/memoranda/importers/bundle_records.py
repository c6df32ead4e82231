"""The records of a bundle of Portable Memory as memories. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, cast

from memoranda.importers.dates import moment, unread
from memoranda.importers.fields import items, mapping, metadata, name, named, text
from memoranda.importers.values import Entry, Item, Skipped
from memoranda.text.hashing import digest
from memoranda.text.stored import storable
from memoranda.types import KINDS as MEMORY_KINDS
from memoranda.types import Kind

OWN = "memoranda"
"""The key under which a record that this program wrote has its fields."""
DEEP = 64
"""Levels of metadata that are kept of a record that this program wrote."""
TAGS = 64
Names: TypeAlias = dict[str, dict[str, str]]
"""What records refer to: by kind and id the label of a context, the name of an entity, the title of a resource."""
Values: TypeAlias = dict[str, Any]
WITHOUT_TEXT = {
    "category": "describes a tag",
    "episodeLink": "is a link",
    "factLink": "is a link",
    "secretRef": "is a reference to a secret",
}
"""The reasons for which records of some kinds are no memories."""
_STATE = {
    "id", "sensitivity", "lifecycleState", "extractionState", "accessCount", "lastAccessed", "vaultRefs", "pinned",
    "categories", "metadata", "eventTime", "mentionTime", "ingestionTime", "deletedAt", "createdAt", "updatedAt",
    "created", "modified", "expirationDate", "tValidFrom", "tValidTo", "prunedAt", "reconciledAt", "lastReinforcedAt",
    "confidence", "charBudget", "version", "successCount", "failureCount", "lastUsed", "contentHash",
}  # fmt: skip
"""Fields that are times or the state of a store: they are not kept as metadata."""


def read(kind: str, value: Values, place: str, names: Names) -> Iterator[Item]:
    """The memory of a record, or why there is none."""
    if reason := WITHOUT_TEXT.get(kind):
        yield Skipped(kind=kind, reason=reason, place=place)
    elif kind not in KINDS:
        yield Skipped(kind="record", reason="is of a kind that is not known", place=place)
    elif own := mapping(value.get(OWN)):
        yield from _own(kind, value, own, place)
    elif kind != "context":  # a context is a tag of those that refer to it
        yield from _READERS[kind](value, place, names)


def _own(kind: str, value: Values, own: Values, place: str) -> Iterator[Item]:
    """A memory that this program wrote, as it was."""
    content = value.get("text") if kind == "fact" else value.get("details")
    id_ = name(value.get("id"))
    if id_ is None or not text(content):
        reason = f"has no {'text' if id_ else 'id'}"
        yield Skipped(kind=kind, reason=reason, place=place, failed=True)
        return
    kind_then = own.get("kind")
    was = cast(Kind, kind_then) if kind_then in MEMORY_KINDS and kind_then != "item" else "note"
    about = metadata(mapping(own.get("metadata")), DEEP)
    about |= named({"superseded_by": name(own.get("superseded_by"))})
    yield from unread(place, own.get("occurred_at"))
    yield Entry(
        id=digest(kind, id_),
        place=place,
        content=storable(str(content)),
        kind=was,
        occurred_at=moment(own.get("occurred_at")),
        valid_from=moment(own.get("valid_from")),
        invalid_at=moment(own.get("invalid_at")),
        role=name(own.get("role")),
        importance=own["importance"] if type(own.get("importance")) is int else None,
        confidence=_share(own.get("confidence")),
        tags=[tag for each in items(own.get("tags")) if (tag := name(each))],
        metadata=about,
        memory_id=id_,
        source_refs=[ref for each in items(own.get("source_refs")) if (ref := name(each))],
        user_id=name(own.get("user_id")),
        agent_id=name(own.get("agent_id")),
        channel_id=name(own.get("channel_id")),
        session_id=name(own.get("session_id")),
    )


def _share(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) and 0 <= value <= 1 else None


def _entry(
    record: str, value: Values, place: str, content: str, dates: tuple[str, ...], /, *used: str, **fields: Any
) -> Iterator[Item]:
    """A record with an id as a memory. Its metadata are those of the record, and its fields that are not `used`."""
    id_ = name(value.get("id"))
    if id_ is None or not content:
        reason = f"has no {'text' if id_ else 'id'}"
        yield Skipped(kind=record, reason=reason, place=place, failed=id_ is None)
        return
    left = {key: each for key, each in value.items() if key not in _STATE and key not in used}
    times = [value.get(key) for key in dates]
    yield from unread(place, *times)
    yield Entry(
        id=digest(record, id_),
        place=place,
        content=content,
        occurred_at=moment(*times),
        confidence=_share(value.get("confidence")),
        metadata=named(metadata({**mapping(value.get("metadata")), **left})),
        **fields,
    )


def _episode(value: Values, place: str, names: Names) -> Iterator[Item]:
    summary, details = text(value.get("summary")), text(value.get("details"))
    content = details if details.startswith(summary.removesuffix("…").strip()) else f"{summary}\n\n{details}"
    label = names["context"].get(name(value.get("contextID")) or "")
    tags = [tag for each in (*items(value.get("categories"))[: TAGS - 1], label) if (tag := name(each))]
    yield from unread(place, value.get("expirationDate"))
    yield from _entry(
        "episode", value, place, content.strip(), ("eventTime", "mentionTime", "ingestionTime"),
        "summary", "details",
        tags=tags, invalid_at=moment(value.get("expirationDate")),
    )  # fmt: skip


def _fact(value: Values, place: str, names: Names) -> Iterator[Item]:
    parts = [text(value.get(key)) for key in ("subject", "predicate", "object")]
    content = text(value.get("text")) or " ".join(filter(None, parts)).replace("_", " ")
    yield from _statement("fact", value, place, content, ("eventTime", "tValidFrom", "createdAt"), "text")


def _edge(value: Values, place: str, names: Names) -> Iterator[Item]:
    start, end = (names["entity"].get(name(value.get(key)) or "") for key in ("srcEntityID", "dstEntityID"))
    verb = text(value.get("edgeType")).replace("_", " ")
    if not (start and verb and end):
        reason = "has no edgeType, or no entity that is in the bundle"
        yield Skipped(kind="edge", reason=reason, place=place, failed=True)
        return
    dates = ("tValidFrom", "ingestionTime")
    yield from _statement("edge", value, place, f"{start} {verb} {end}", dates, tags=["relation"])


def _statement(
    record: str,
    value: Values,
    place: str,
    content: str,
    dates: tuple[str, ...],
    /,
    *used: str,
    tags: list[str] | None = None,
) -> Iterator[Item]:
    """A record that holds for some time as a fact. One that was replaced at an unknown time is left out: it would stay
    valid."""
    ends = [value.get("tValidTo"), value.get("prunedAt")]
    if moment(*ends) is None and value.get("supersededBy"):
        yield Skipped(kind=record, reason="is superseded, at a time that is not given", place=place)
        return
    yield from unread(place, *ends)
    since = moment(value.get("tValidFrom"))
    yield from _entry(
        record, value, place, content, dates, *used,
        kind="fact", tags=tags or [], valid_from=since, invalid_at=moment(*ends),
    )  # fmt: skip


def _entity(value: Values, place: str, names: Names) -> Iterator[Item]:
    title, summary = text(value.get("canonicalName")), text(value.get("summary"))
    content = f"{title}: {summary}" if summary else ""
    yield from _entry("entity", value, place, content, ("updatedAt",), "summary")


def _community(value: Values, place: str, names: Names) -> Iterator[Item]:
    title, summary = text(value.get("label")), text(value.get("summary"))
    content = f"{title}: {summary}" if summary else ""
    yield from _entry("community", value, place, content, (), "summary", "memberEntityIDs")


def _resource(value: Values, place: str, names: Names) -> Iterator[Item]:
    title, summary = text(value.get("title")), text(value.get("summary"))
    content = f"{title}\n\n{summary}".strip() if summary else ""
    yield from _entry("resource", value, place, content, ("created", "modified"), "summary")


def _chunk(value: Values, place: str, names: Names) -> Iterator[Item]:
    title = names["resource"].get(name(value.get("resourceID")) or "")
    shown = {"title": title, **value}
    yield from _entry("chunk", shown, place, text(value.get("text")), (), "text", kind="document")


def _procedure(value: Values, place: str, names: Names) -> Iterator[Item]:
    trigger = text(value.get("triggerPattern"))
    steps = [f"{number}. {text(each)}" for number, each in enumerate(items(value.get("steps")), 1)]
    content = "\n".join(filter(None, [text(value.get("name")), trigger, *steps]))
    used = ("name", "triggerPattern", "steps")
    yield from _entry("procedure", value, place, content, ("lastUsed",), *used, tags=["procedure"])


def _core(value: Values, place: str, names: Names) -> Iterator[Item]:
    """A block of a profile. Its id is a label such as `human`, which other bundles have too."""
    label, content = text(value.get("id")), text(value.get("content"))
    yield from _labelled("core", label, content, place, "core-memory")


def _preference(value: Values, place: str, names: Names) -> Iterator[Item]:
    label, setting = text(value.get("key")), text(value.get("value"))
    yield from _labelled("preference", label, setting and f"{label}: {setting}", place, "preference")


def _labelled(record: str, label: str, content: str, place: str, tag: str) -> Iterator[Item]:
    if not (label and content):
        reason = f"has no {'text' if label else 'id'}"
        yield Skipped(kind=record, reason=reason, place=place, failed=not label)
        return
    about = {"label": label}
    yield Entry(id=digest(record, label, content), place=place, content=content, tags=[tag], metadata=about)


_READERS: dict[str, Callable[[Values, str, Names], Iterator[Item]]] = {
    "episode": _episode,
    "entity": _entity,
    "edge": _edge,
    "fact": _fact,
    "resource": _resource,
    "chunk": _chunk,
    "core": _core,
    "procedure": _procedure,
    "community": _community,
    "preference": _preference,
}
KINDS = frozenset({*_READERS, *WITHOUT_TEXT, "context"})
"""The kinds of records that the format has."""
