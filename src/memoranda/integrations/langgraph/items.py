"""An item of LangGraph as a memory of kind `item`, and back.

The memory's text is what is embedded; its metadata is the item's value, so that filters see its keys, with the item's
key and namespace beside it; its tags are the namespace and every namespace above it; its id follows from both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from langgraph.store.base import Item, PutOp, SearchItem, get_text_at_path

from memoranda.errors import InvalidInput
from memoranda.integrations import entries
from memoranda.store.rows import TEXT_SEPARATOR
from memoranda.types import MAX_ID_CHARS, Memory

OWN = "langgraph."
"""Begins the metadata keys that are not the value's."""
NAMESPACE, KEY, TTL, SEARCHABLE = (f"{OWN}{name}" for name in ("namespace", "key", "ttl", "searchable"))
UNSEARCHABLE = "An item without texts to search."
"""The text of an item that no query finds."""


def id_of(store: str, namespace: Sequence[str], key: str) -> str:
    """The id of the memory for an item of the store of that name."""
    return entries.id_of(store, list(namespace), key)


def path(namespace: Sequence[str]) -> str:
    """A namespace as one string; no label contains a period."""
    return ".".join(namespace)


def memory_of(op: PutOp, store: str, fields: Sequence[str], now: datetime) -> dict[str, Any]:
    """The fields of the memory for an item that is put; `fields` are the paths to embed.

    Raises:
        InvalidInput: the namespace is too long.
    """
    value = dict(op.value or {})
    paths = [path(op.namespace[: depth + 1]) for depth in range(len(op.namespace))]
    if paths and len(paths[-1]) > MAX_ID_CHARS:
        raise InvalidInput("namespace", f"is longer than {MAX_ID_CHARS} characters, joined by periods")
    texts = _texts(value, fields)
    own: dict[str, Any] = {"namespace": list(op.namespace), "key": op.key, "searchable": bool(texts)}
    if op.ttl is not None:
        own["ttl"] = op.ttl
    return {
        "id": id_of(store, op.namespace, op.key),
        "content": TEXT_SEPARATOR.join(texts) or UNSEARCHABLE,
        "tags": paths,
        "metadata": entries.metadata_of(value, own, OWN),
        "occurred_at": now,
        "invalid_at": None if op.ttl is None else expiry(now, op.ttl),
    }


def item_of(memory: Memory) -> Item:
    """The item that a memory stores."""
    return Item(**_parts(memory))


def search_item_of(memory: Memory, score: float | None) -> SearchItem:
    """The item that a memory stores, as a search returns it; `score` is None without a query."""
    return SearchItem(**_parts(memory), score=score)


def value_of(memory: Memory) -> dict[str, Any]:
    """The value of the item that a memory stores."""
    return entries.value_of(memory, OWN)


def namespace_of(memory: Memory) -> tuple[str, ...]:
    """The namespace of the item that a memory stores."""
    return tuple(memory.metadata[NAMESPACE])


def ttl_of(memory: Memory) -> float | None:
    """For how many minutes after its last use the item is kept; None is for ever."""
    ttl: float | None = memory.metadata.get(TTL)
    return ttl


def expired(memory: Memory, now: datetime) -> bool:
    """Return True if the item has expired."""
    return memory.invalid_at is not None and memory.invalid_at <= now


def expiry(now: datetime, ttl: float) -> datetime:
    """When an item that is used now expires; `ttl` is in minutes."""
    return now + timedelta(minutes=ttl)


def utc_now() -> datetime:
    """This moment, in UTC."""
    return datetime.now(UTC)


def _parts(memory: Memory) -> dict[str, Any]:
    return {
        "value": value_of(memory),
        "key": memory.metadata[KEY],
        "namespace": namespace_of(memory),
        "created_at": memory.created_at,
        "updated_at": memory.occurred_at,
    }


def _texts(value: Mapping[str, Any], fields: Sequence[str]) -> list[str]:
    texts = [text for field in fields for text in get_text_at_path(value, field)]
    return [text for text in dict.fromkeys(texts) if text.strip()]
