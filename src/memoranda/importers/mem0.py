"""Memories of mem0: what `get_all` returns, saved as JSON.

Sources: https://docs.mem0.ai/api-reference/memory/v1-get-memories and mem0/memory/main.py of mem0ai/mem0.

The result is a list of memories, or an object with the list as `results` and, from graph memory, `relations`. A memory
has `memory` (its text), `user_id`, `agent_id`, `run_id`, `metadata`, `categories`, `created_at` and perhaps
`expiration_date`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memoranda.importers.dates import moment, unread
from memoranda.importers.fields import items, mapping, metadata, name, named, objects, text
from memoranda.importers.sources import Source, each_file, left_out
from memoranda.importers.values import Entry, Item, Skipped
from memoranda.text.hashing import digest

NAME = "mem0"

FILES = (".json", ".jsonl")


def matches(source: Source) -> bool:
    """Return True if the source is such a file."""
    return any(
        _is_memory(memory)
        for file in source.ending(*FILES)[:20]
        for each in source.head(file)
        for memory in _memories(each)
    )


def read(source: Source) -> Iterator[Item]:
    """The memories as facts, and the relations as facts."""
    files = source.ending(*FILES)
    yield from each_file(files, lambda file: _read_file(source, file))
    yield from left_out(source, files)


def _is_memory(value: dict[str, Any]) -> bool:
    return isinstance(value.get("memory"), str) and "id" in value


def _memories(value: dict[str, Any]) -> list[dict[str, Any]]:
    results = list(objects(value.get("results")))
    return results or [value]


def _read_file(source: Source, file: str) -> Iterator[Item]:
    for record in source.records(file):
        place = f"{file}, memory {record.number}"
        if record.problem is not None or not isinstance(record.value, dict):
            why = record.problem or "is not an object"
            yield Skipped(kind="memory", reason="is damaged", place=f"{place} {why}", failed=True)
        elif isinstance(record.value.get("results"), list):
            for number, each in enumerate(record.value["results"], 1):
                yield from _memory(mapping(each), f"{file}, memory {number}")
            for number, each in enumerate(items(record.value.get("relations")), 1):
                yield _relation(mapping(each), f"{file}, relation {number}")
        else:
            yield from _memory(record.value, place)


def _memory(value: dict[str, Any], place: str) -> Iterator[Item]:
    id_, content = name(value.get("id")), text(value.get("memory"))
    if id_ is None or not content:
        yield Skipped(
            kind="memory", reason=f"has no {'id' if content else 'memory'}", place=place, failed=True
        )
        return
    yield from unread(place, value.get("created_at"))
    yield from unread(place, value.get("expiration_date"))
    categories = value.get("categories")
    yield Entry(
        id=id_,
        place=place,
        content=content,
        kind="fact",
        occurred_at=moment(value.get("created_at")),
        invalid_at=moment(value.get("expiration_date")),
        tags=[tag for each in items(categories)[:64] if (tag := name(each))],
        metadata=named({**metadata(mapping(value.get("metadata"))), "actor": text(value.get("actor_id"))}),
        user_id=name(value.get("user_id")),
        agent_id=name(value.get("agent_id")) or name(value.get("app_id")),
        session_id=name(value.get("run_id")),
    )


def _relation(value: dict[str, Any], place: str) -> Item:
    parts = [text(value.get("source")), text(value.get("relationship") or value.get("relation"))]
    parts.append(text(value.get("destination") or value.get("target")))
    if not all(parts):
        return Skipped(
            kind="relation", reason="has no source, relationship or target", place=place, failed=True
        )
    content = " ".join(part.replace("_", " ") for part in parts)
    return Entry(id=digest("relation", *parts), place=place, content=content, kind="fact", tags=["relation"])
