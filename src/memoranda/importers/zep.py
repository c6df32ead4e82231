"""Graphs of Zep and Graphiti, saved as JSON: edges, nodes and episodes, as their clients return them.

Sources: https://help.getzep.com (graph edges, nodes, episodes) and graphiti_core/edges.py, nodes.py of getzep/graphiti.

An edge has `fact`, `uuid`, `valid_at`, `invalid_at`, `created_at`; a node `name`, `summary`, `labels`; an episode
`content`, `source`, `created_at`, `valid_at`. A file is a list of them, one on each line, or an object with the lists
`edges`, `nodes`, `episodes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memoranda.importers.dates import moment, unread
from memoranda.importers.fields import items, mapping, metadata, name, named, objects, text
from memoranda.importers.sources import Source, each_file, left_out
from memoranda.importers.values import Entry, Item, Skipped

NAME = "zep"
LISTS = ("edges", "nodes", "episodes")
_EMBEDDINGS = ("fact_embedding", "name_embedding")

FILES = (".json", ".jsonl")


def matches(source: Source) -> bool:
    """Return True if the source is such a file."""
    return any(_is_graph(each) for file in source.ending(*FILES)[:20] for each in source.head(file))


def read(source: Source) -> Iterator[Item]:
    """Edges as facts with the times in which they hold, summaries of nodes and episodes as notes."""
    files = source.ending(*FILES)
    yield from each_file(files, lambda file: _read_file(source, file))
    yield from left_out(source, files)


def _is_graph(value: dict[str, Any]) -> bool:
    parts = [value, *(part for key in LISTS for part in objects(value.get(key)))]
    return any(
        "uuid" in part and ("fact" in part or ("summary" in part and "labels" in part) or _is_episode(part))
        for part in parts
    )


def _is_episode(part: dict[str, Any]) -> bool:
    return "source" in part and "content" in part


def _read_file(source: Source, file: str) -> Iterator[Item]:
    for record in source.records(file):
        place = f"{file}, record {record.number}"
        if record.problem is not None or not isinstance(record.value, dict):
            why = record.problem or "is not an object"
            yield Skipped(kind="record", reason="is damaged", place=f"{place} {why}", failed=True)
            continue
        if not any(key in record.value for key in LISTS):
            yield from _part(record.value, place)
            continue
        for key in LISTS:
            for number, part in enumerate(items(record.value.get(key)), 1):
                yield from _part(mapping(part), f"{place}, {key} {number}")


def _part(part: dict[str, Any], place: str) -> Iterator[Item]:
    id_ = name(part.get("uuid"))
    content = text(part.get("fact")) or text(part.get("summary")) or text(part.get("content"))
    if id_ is None:
        yield Skipped(kind="record", reason="has no uuid", place=place, failed=True)
        return
    if not content:
        yield Skipped(kind="record", reason="has no text", place=place)
        return
    yield from unread(place, part.get("valid_at"), part.get("created_at"))
    if text(part.get("fact")):
        yield from unread(place, part.get("invalid_at"), part.get("expired_at"))
        yield _edge(part, id_, place)
        return
    if text(part.get("summary")) and text(part.get("name")):
        content = f"{text(part['name'])}: {content}"
    yield _entry(part, id_, place, content, {"fact", "content", "summary"})


def _edge(part: dict[str, Any], id_: str, place: str) -> Entry:
    entry = _entry(part, id_, place, text(part["fact"]), {"fact"})
    return Entry(
        id=entry.id,
        place=place,
        content=entry.content,
        kind="fact",
        occurred_at=entry.occurred_at,
        invalid_at=moment(part.get("invalid_at"), part.get("expired_at")),
        metadata=entry.metadata,
        user_id=entry.user_id,
    )


def _entry(part: dict[str, Any], id_: str, place: str, content: str, used: set[str]) -> Entry:
    left = {key: value for key, value in part.items() if key not in {*used, *_EMBEDDINGS, "uuid", "user_id"}}
    return Entry(
        id=id_,
        place=place,
        content=content,
        occurred_at=moment(part.get("valid_at"), part.get("created_at")),
        metadata=named(metadata(left)),
        user_id=name(part.get("user_id")),
    )
