"""Vector stores by id or name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memoranda.cli.invocation import all_rows
from memoranda.cli.output import plain
from memoranda.cli.usage_errors import not_found_fix
from memoranda.errors import InvalidInput, NotFound
from memoranda.knowledge.values import VectorStore

if TYPE_CHECKING:
    from memoranda.app.blocking.features import BlockingKnowledge


def find_store(knowledge: BlockingKnowledge, name: str) -> VectorStore:
    """Return the vector store with this id or name.

    Raises:
        NotFound: there is none; the message lists the stores.
        InvalidInput: several stores have the name.
    """
    store = find_store_or_none(knowledge, name)
    if store is None:
        known = ", ".join(dict.fromkeys(each.name or each.id for each in all_stores(knowledge))) or "none"
        raise NotFound(f"no vector store is named {name!r}; there are: {plain(known)}")
    return store


def find_store_or_none(knowledge: BlockingKnowledge, name: str) -> VectorStore | None:
    """Return the vector store with this id or name; None if no store has the name.

    Raises:
        NotFound: it is an id, and there is no such store.
        InvalidInput: several stores have the name.
    """
    if name.startswith("vs_"):
        with not_found_fix("memoranda stores lists them"):
            return knowledge.stores.get(name)
    stores = [store for store in all_stores(knowledge) if store.name == name and store.status != "expired"]
    if len(stores) > 1:
        ids = ", ".join(store.id for store in stores)
        raise InvalidInput("--store", f"{len(stores)} vector stores are named {name!r}; use an id: {ids}")
    return stores[0] if stores else None


def all_stores(knowledge: BlockingKnowledge) -> list[VectorStore]:
    """Return all vector stores, newest first."""
    return list(all_rows(knowledge.stores.list))
