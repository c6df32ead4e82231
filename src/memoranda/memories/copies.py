"""Copies of memories in another scope: their ids, and the links between them. An import makes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from memoranda.store.ids import listed
from memoranda.store.rows import (
    CONTEXT,
    ITEM,
    QUOTES,
    Draft,
    Record,
    context_of,
    linked_to,
    refs_of,
    scope_ids,
)
from memoranda.store.store import Store
from memoranda.store.validation import keyed
from memoranda.text.hashing import digest
from memoranda.text.stored import compact_json


def copy_of(original: Draft) -> Draft:
    """Return the draft under an id of its own, see `_copy_id`."""
    row = original.row
    original.row = keyed(row._replace(id=_copy_id(row.id, scope_ids(row))))
    return original


def _copy_id(id_: str, scope: tuple[str | None, ...]) -> str:
    """Return the id of the copy of a memory in another scope, which is deterministic."""
    return f"mem_{digest(id_, compact_json(scope))[:25]}"


def link_copies(store: Store, tenant: str, drafts: Sequence[Draft]) -> None:
    """Let links to memories of another scope name their copies in this one. The versions of a fact always do: a later
    line may be the copy, and without one the fact stays superseded. Sources do if the copy is stored or in `drafts`."""
    originals = store.by_id(tenant, sorted({id_ for item in drafts for id_ in _versions(item.row)}))
    copies = {_copy_id(ref, scope_ids(item.row)) for item in drafts for ref in linked_to(item.row)}
    stored = store.db.read(lambda c: c.all("memories_by_id", [tenant, listed(sorted(copies))]), tenant)
    here = {item.row.id for item in drafts} | {id_ for id_, _, _ in stored}
    for item in drafts:
        scope = scope_ids(item.row)
        names = {
            id_: _copy_id(id_, scope)
            for id_ in _versions(item.row)
            if id_ in originals and originals[id_].kind != ITEM and scope_ids(originals[id_]) != scope
        }
        names |= {ref: copy for ref in linked_to(item.row) if (copy := _copy_id(ref, scope)) in here}
        if names:
            item.row = _renamed(item.row, names)


def _versions(row: Record) -> Iterator[str]:
    """Yield the ids of other versions of a fact and of its parts; see `facts.versions`."""
    if row.superseded_by is not None:
        yield row.superseded_by
    for ids in _lists(row, msgspec.json.decode(row.metadata)):
        yield from (id_ for id_ in ids if isinstance(id_, str))


def _lists(row: Record, metadata: dict[str, Any]) -> Iterator[list[Any]]:
    """Yield the lists of ids of versions and parts in the metadata of a fact."""
    changes = metadata.get("changes")
    entries = changes if isinstance(changes, list) else []
    changed = [entry.get("ids") for entry in entries if isinstance(entry, dict)]
    quotes = metadata.get(QUOTES)
    for ids in (metadata.get("consolidates"), *changed, *(quotes if isinstance(quotes, list) else ())):
        if row.kind == "fact" and isinstance(ids, list):
            yield ids


def _renamed(row: Record, names: Mapping[str, str]) -> Record:
    """Return the row with other ids in its links."""
    metadata = msgspec.json.decode(row.metadata)
    context = metadata.get(CONTEXT)
    lists = [*_lists(row, metadata), *([context] if context_of(row) else [])]
    for ids in lists:
        ids[:] = [names.get(id_, id_) if isinstance(id_, str) else id_ for id_ in ids]
    return row._replace(
        superseded_by=names.get(row.superseded_by or "", row.superseded_by),
        source_refs=compact_json([names.get(ref, ref) for ref in refs_of(row)]),
        metadata=compact_json(metadata) if lists else row.metadata,
    )
