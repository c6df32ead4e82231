"""The knowledge graph of the official MCP memory server: `memory.jsonl` (earlier `memory.json`).

Source: src/memory/index.ts of modelcontextprotocol/servers.

Each line is an entity (`name`, `entityType`, `observations`) or a relation (`from`, `to`, `relationType`). What the
tool `read_graph` returns, an object with `entities` and `relations`, is read too. The format has no dates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memoranda.importers.fields import items, named, objects, text
from memoranda.importers.sources import Source, each_file, left_out
from memoranda.importers.values import Entry, Item, Skipped
from memoranda.text.hashing import digest

NAME = "mcp-memory"

FILES = (".json", ".jsonl")


def matches(source: Source) -> bool:
    """Return True if the source is such a file."""
    return any(_kind(each) for file in source.ending(*FILES)[:20] for each in source.head(file)[:1])


def read(source: Source) -> Iterator[Item]:
    """Each observation and each relation as a fact."""
    files = source.ending(*FILES)
    yield from each_file(files, lambda file: _read_file(source, file))
    yield from left_out(source, files)


def _kind(value: dict[str, Any]) -> str | None:
    if value.get("type") == "entity" and "entityType" in value:
        return "entity"
    if value.get("type") == "relation" and "relationType" in value:
        return "relation"
    return "graph" if {"entities", "relations"} <= value.keys() else None


def _read_file(source: Source, file: str) -> Iterator[Item]:
    for record in source.records(file):
        place = f"{file}, line {record.number}"
        if record.problem is not None or not isinstance(record.value, dict):
            why = record.problem or "is not an object"
            yield Skipped(kind="record", reason="is damaged", place=f"{place} {why}", failed=True)
            continue
        kind = _kind(record.value)
        if kind == "graph":
            for number, entity in enumerate(objects(record.value["entities"]), 1):
                yield from _entity(entity, f"{file}, entity {number}")
            for number, relation in enumerate(objects(record.value["relations"]), 1):
                yield _relation(relation, f"{file}, relation {number}")
        elif kind == "entity":
            yield from _entity(record.value, place)
        elif kind == "relation":
            yield _relation(record.value, place)
        else:
            yield Skipped(
                kind="record", reason="is neither an entity nor a relation", place=place, failed=True
            )


def _entity(value: dict[str, Any], place: str) -> Iterator[Item]:
    entity, type_ = text(value.get("name")), text(value.get("entityType"))
    if not entity:
        yield Skipped(kind="entity", reason="has no name", place=place, failed=True)
        return
    about = named({"entity": entity, "entity_type": type_})
    observations = items(value.get("observations"))
    for number, each in enumerate(observations, 1):
        if content := text(each):
            said = f"{entity}: {content}"
            yield Entry(
                id=digest("observation", entity, content),
                place=place,
                content=said,
                kind="fact",
                metadata=about,
            )
        else:
            yield Skipped(
                kind="observation", reason="has no text", place=f"{place}, observation {number}", failed=True
            )
    if not observations:
        said = f"{entity} ({type_})" if type_ else entity
        yield Entry(id=digest("entity", entity), place=place, content=said, kind="fact", metadata=about)


def _relation(value: dict[str, Any], place: str) -> Item:
    start, verb, end = (text(value.get(key)) for key in ("from", "relationType", "to"))
    if not (start and verb and end):
        return Skipped(kind="relation", reason="has no from, relationType or to", place=place, failed=True)
    said = f"{start} {verb.replace('_', ' ')} {end}"
    about = {"entity": start, "relation": verb, "target": end}
    return Entry(
        id=digest("relation", start, verb, end), place=place, content=said, kind="fact", metadata=about
    )
