"""Facts over time: each with the versions that it superseded, and which of them held at a moment."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from memoranda.clock import moment
from memoranda.facts import versions
from memoranda.filters import Filter, matches
from memoranda.storage.sql.base import Connection
from memoranda.storage.sql.where import compile_where
from memoranda.store.rows import COLUMNS, Record, attributes, fetch, to_memory
from memoranda.text.json import compact_json
from memoranda.types import Memory

SCAN = 100
"""Facts whose versions are read together."""
MOST = 10_000
"""Versions that are followed from `SCAN` facts."""


class DatedFact(msgspec.Struct, kw_only=True):
    """A version of a fact: when it began to hold and when it ended (None: it holds), and whether it held at the moment
    that was asked for."""

    memory: Memory
    begins: datetime
    ends: datetime | None
    holds: bool


class FactChain(msgspec.Struct, kw_only=True):
    """A fact with the versions that it superseded, in the order in which they began; `id` is that of the fact that
    nothing supersedes."""

    id: str
    facts: list[DatedFact]


class Timeline(msgspec.Struct, kw_only=True):
    """A page of chains of facts, those stored last first; `after=last_id` asks for the next one. `total` facts are
    selected, whatever the words, of which `holding` held at the moment; the first of them began at `since`."""

    data: list[FactChain]
    first_id: str | None
    last_id: str | None
    has_more: bool
    total: int
    holding: int
    since: datetime | None


class Chains:
    """The chains of the facts that pass `where`; `held` is the filter of those that held at the moment, `words` are
    words that some version of a chain must contain, each, in its text or tags."""

    def __init__(self, c: Connection, tenant: str, where: Filter, held: Filter, words: Sequence[str]) -> None:
        self._c = c
        self._tenant = tenant
        self._where = where
        self._held = held
        self._words = words

    def page(self, after: int | None, limit: int) -> tuple[list[FactChain], bool]:
        """Return the next chains beyond the seq of a fact, and True if there are more."""
        chains: list[FactChain] = []
        while len(chains) <= limit:
            heads = self._heads(after)
            chains += [self._chain(rows) for rows in self._versions(heads) if self._has_words(rows)]
            if len(heads) < SCAN:
                break
            after = heads[-1].seq
        return chains[:limit], len(chains) > limit

    def since(self) -> datetime | None:
        """Return when the first fact began."""
        compiled = compile_where(self._where)
        sql = f"SELECT min(COALESCE(valid_from, occurred_at)) FROM memories WHERE tenant_id = ? AND ({compiled.sql})"
        ((first,),) = self._c.select(sql, [self._tenant, *compiled.params])
        return None if first is None else moment(first)

    def _heads(self, after: int | None) -> list[Record]:
        """Return the next facts that nothing supersedes."""
        compiled = compile_where(self._where)
        beyond, values = ("", []) if after is None else (" AND seq < ?", [after])
        rows = self._c.select(
            f"SELECT {COLUMNS} FROM memories WHERE tenant_id = ? AND ({compiled.sql}) AND superseded_by IS NULL{beyond}"
            f" ORDER BY seq DESC LIMIT {SCAN}",
            [self._tenant, *compiled.params, *values],
        )
        return [Record._make(row) for row in rows]

    def _versions(self, heads: Sequence[Record]) -> list[list[Record]]:
        """Return the versions of each fact, itself last."""
        chains = {head.id: [head] for head in heads}
        head_of = {head.id: head.id for head in heads}
        new = list(head_of)
        while new and len(head_of) < MOST:
            found = self._c.all("facts_ended_by", [self._tenant, compact_json(new)])
            rows = fetch(self._c, self._tenant, [int(seq) for (seq,) in found]).values()
            fresh = [row for row in rows if row.id not in head_of and matches(self._where, attributes(row))]
            for row in fresh:
                head_of[row.id] = head_of[row.superseded_by or ""]
                chains[head_of[row.id]].append(row)
            new = [row.id for row in fresh]
        return [
            sorted(rows, key=lambda row: (row.id in chains, versions.start_of(row), row.seq))
            for rows in chains.values()
        ]

    def _has_words(self, rows: Sequence[Record]) -> bool:
        texts = [f"{row.content} {row.tags}".casefold() for row in rows]
        return not self._words or any(all(word in text for word in self._words) for text in texts)

    def _chain(self, rows: Sequence[Record]) -> FactChain:
        return FactChain(
            id=rows[-1].id,
            facts=[
                DatedFact(
                    memory=to_memory(row),
                    begins=moment(versions.start_of(row)),
                    ends=None if row.invalid_at is None else moment(row.invalid_at),
                    holds=matches(self._held, attributes(row)),
                )
                for row in rows
            ],
        )
