"""LangGraph's store on the memories of a product."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Literal, TypedDict, cast

from langgraph.store.base import (
    BaseStore,
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)

from memoranda.errors import InvalidInput, NotFound
from memoranda.integrations.entries import PAGE, Entries
from memoranda.integrations.langgraph import conditions, items
from memoranda.integrations.langgraph.sweeping import Sweeper
from memoranda.integrations.products import Product, memories_of
from memoranda.types import Hit, Memory


class Index(TypedDict, total=False):
    """How items are searched. The product's own model embeds them (`embedder.url`)."""

    fields: list[str]
    """Paths of the value to embed, each text with a vector of its own; `["$"]`, the default, is the whole value as
    one."""
    mode: Literal["hybrid", "dense"]
    """`hybrid`, the default, ranks by vectors and by keywords, with the product's score in 0..1; `dense` by vectors
    alone, with the cosine as score."""


class MemorandaStore(BaseStore):
    """LangGraph's long-term memory in a folder or on a server of Memoranda.

    Items are memories of kind `item`, which other searches of the product see only if they name that kind. They belong
    to the tenant of the product's subject; `name` keeps several stores in one tenant apart. `index` is False where no
    query is to find anything. `ttl` is LangGraph's; expired items are never returned, and deleted by `sweep_ttl` or by
    the sweeper.

    Reads of one batch see the state before the batch. Thread-safe.
    """

    supports_ttl = True

    def __init__(
        self,
        product: Product,
        *,
        name: str = "langgraph",
        index: Index | Literal[False] | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        self._entries = Entries(memories_of(product), name)
        self._name = name
        self.index_config = _index(index)
        self.ttl_config = ttl
        self._sweeper = Sweeper(self.sweep_ttl)

    # --- batches -----------------------------------------------------------------------------------

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """The results of operations, in their order; see `BaseStore.batch`.

        Raises:
            InvalidNamespaceError: a namespace is wrong; nothing was done.
            InvalidInput: a value, a filter or a query is wrong; what other operations wrote may be stored.
        """
        given = list(ops)
        for op in given:
            validate_op_namespace(op)
        results: list[Result] = [None if isinstance(op, PutOp) else self._read(op) for op in given]
        puts = {(op.namespace, op.key): op for op in given if isinstance(op, PutOp)}
        if puts:
            self._put(list(puts.values()))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """`batch`, awaited."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            return self._get(op)
        if isinstance(op, SearchOp):
            return self._search(op)
        return self._list_namespaces(cast(ListNamespacesOp, op))

    # --- writing -----------------------------------------------------------------------------------

    def _put(self, ops: Sequence[PutOp]) -> None:
        now, fields = items.utc_now(), self.index_config.get("fields", [])
        drafts = [
            items.memory_of(op, self._name, _fields(op, fields), now) for op in ops if op.value is not None
        ]
        for op in ops:
            if op.value is None:
                self._entries.delete(items.id_of(self._name, op.namespace, op.key))
        if drafts:
            self._entries.put(drafts, "value")

    # --- reading -----------------------------------------------------------------------------------

    def _get(self, op: GetOp) -> Result:
        memory, now = self._entries.get(items.id_of(self._name, op.namespace, op.key)), items.utc_now()
        if memory is None or items.expired(memory, now):
            return None
        if op.refresh_ttl:
            self._refresh([memory], now)
        return items.item_of(memory)

    def _search(self, op: SearchOp) -> list[SearchItem]:
        wanted = op.filter or {}
        conditions.check(wanted)
        stop = op.offset + op.limit
        if op.query and op.query.strip() and self.index_config:
            page = [(hit.memory, _score(hit)) for hit in self._hits(op, wanted, stop)[op.offset :]]
        else:
            listed = islice(self._listed(op.namespace_prefix, wanted, stop), op.offset, stop)
            page = [(memory, None) for memory in listed]
        if op.refresh_ttl:
            self._refresh([memory for memory, _ in page], items.utc_now())
        return [items.search_item_of(memory, score) for memory, score in page]

    def _hits(self, op: SearchOp, wanted: dict[str, Any], stop: int) -> list[Hit]:
        """The hits for a query that pass its filter, best first: `stop` of them, if there are as many among the first
        thousand."""
        mode = self.index_config.get("mode", "hybrid")
        searchable = {"type": "ne", "key": items.SEARCHABLE, "value": False}
        fields = self._selection(op.namespace_prefix, wanted, searchable)
        limit = min(max(stop, 1), PAGE)
        while True:
            result = self._entries.memories.search(
                op.query or "", limit=limit, mode=mode, threshold=0.0, explain=mode == "dense", **fields
            )
            passing = [hit for hit in result.results if conditions.passes(items.value_of(hit.memory), wanted)]
            if len(passing) >= stop or len(result.results) < limit or limit == PAGE:
                return passing[:stop]
            limit = min(2 * limit, PAGE)

    def _listed(self, prefix: Sequence[str], wanted: dict[str, Any], first: int = PAGE) -> Iterator[Memory]:
        """The items below a namespace that pass a filter, newest first; `first` are read at first."""
        for memory in self._entries.listed(first, **self._selection(prefix, wanted)):
            if conditions.passes(items.value_of(memory), wanted):
                yield memory

    def _selection(
        self, prefix: Sequence[str], wanted: dict[str, Any], *more: dict[str, Any]
    ) -> dict[str, Any]:
        filters = [*conditions.narrowing(wanted, items.OWN), *more]
        chosen = {**self._entries.selection}
        if prefix:
            chosen["tags"] = [items.path(prefix)]
        if filters:
            chosen["filters"] = {"type": "and", "filters": filters}
        return chosen

    def _list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        matched = op.match_conditions or ()
        prefix = next(
            (each.path for each in matched if each.match_type == "prefix" and "*" not in each.path), ()
        )
        spaces = {items.namespace_of(memory) for memory in self._listed(prefix, {})}
        matching = {space for space in spaces if all(_matches(each, space) for each in matched)}
        cut = sorted({space if op.max_depth is None else space[: op.max_depth] for space in matching})
        return cut[op.offset : op.offset + op.limit]

    # --- time to live ------------------------------------------------------------------------------

    def _refresh(self, memories: Iterable[Memory], now: datetime) -> None:
        """Restarts the time to live of items that were read."""
        for memory in memories:
            if (ttl := items.ttl_of(memory)) is not None:
                try:
                    self._entries.memories.update(memory.id, invalid_at=items.expiry(now, ttl))
                except NotFound:
                    continue

    def sweep_ttl(self) -> int:
        """Deletes the expired items; returns how many there were."""
        limited = {"type": "ne", "key": items.TTL, "value": None}
        lines = self._entries.memories.export(**self._entries.selection, filters=limited)
        now = items.utc_now()
        ids = [line["id"] for line in map(json.loads, lines) if _over(line.get("invalid_at"), now)]
        swept = 0
        for id_ in ids:
            with self._entries.writing:
                memory = self._entries.get(id_)
                if memory is not None and items.expired(memory, items.utc_now()):
                    swept += self._entries.delete(id_)
        return swept

    def start_ttl_sweeper(self, interval_minutes: float | None = None) -> None:
        """Sweeps in its own thread, every `interval_minutes`, else every `ttl["sweep_interval_minutes"]`, else every
        five minutes. Does nothing if it runs already."""
        configured = (self.ttl_config or {}).get("sweep_interval_minutes")
        self._sweeper.start(interval_minutes or configured)

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Ends the sweeper; returns False if it still ran after `timeout` seconds."""
        return self._sweeper.stop(timeout)


def _index(index: Index | Literal[False] | None) -> Index:
    """The index configuration with its defaults; an empty one where nothing is searched.

    Raises:
        InvalidInput: it has a key or a mode that is unknown here.
    """
    if index is False:
        return {}
    for key in index or {}:
        if key not in ("fields", "mode"):
            raise InvalidInput(
                f"index.{key}", "is unknown; the product's model embeds (embedder.url): use fields, mode"
            )
    full = Index(fields=["$"], mode="hybrid")
    full.update(index or {})
    if full["mode"] not in ("hybrid", "dense"):
        raise InvalidInput("index.mode", "must be hybrid or dense")
    return full


def _fields(op: PutOp, configured: Sequence[str]) -> Sequence[str]:
    if op.index is False or not configured:
        return ()
    return configured if op.index is None else op.index


def _score(hit: Hit) -> float | None:
    """The cosine, of a search that was explained; else the product's score."""
    cosine = None if hit.explanation is None else hit.explanation.cosine
    return hit.score if cosine is None else cosine


def _matches(condition: MatchCondition, namespace: Sequence[str]) -> bool:
    path = condition.path
    if len(path) > len(namespace):
        return False
    part = (
        namespace[: len(path)]
        if condition.match_type == "prefix"
        else namespace[len(namespace) - len(path) :]
    )
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


def _over(moment: str | None, now: datetime) -> bool:
    return moment is not None and datetime.fromisoformat(moment) <= now
