"""Facts over time: each with the versions that it superseded, and which of them were valid at a moment."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

import msgspec

from memoranda.clock import moment
from memoranda.filters import Filter, matches
from memoranda.storage.sql.base import Connection
from memoranda.storage.sql.where import compile_where
from memoranda.store.rows import COLUMNS, Record, attributes, fetch, start_of, to_memory
from memoranda.text.stored import compact_json
from memoranda.types import AnyScopes, Memory, Moment

SCAN = 100
"""Facts whose versions are read together."""
PASSED = 5_000
"""Facts that one page looks at."""
MOST = 10_000
"""Versions that are followed from `SCAN` facts."""


class DatedFact(msgspec.Struct, kw_only=True):
    """A version of a fact: from when to when it was valid (`ends` is None if it still is), and whether it was valid at
    the moment that was asked for."""

    memory: Memory
    begins: datetime
    ends: datetime | None
    holds: bool


class FactChain(msgspec.Struct, kw_only=True):
    """A fact with the versions that it superseded, in the order in which they began; `id` is that of the fact that no
    selected one supersedes."""

    id: str
    facts: list[DatedFact]


class Timeline(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.timeline"):
    """A page of chains of facts, those stored last first; `after=last_id` asks for the next one, also where few or none
    of many facts have the words. `total` facts are selected, whatever the words, of which `holding` were valid
    at the moment; the first of them began at `since`."""

    data: list[FactChain]
    first_id: str | None
    last_id: str | None
    has_more: bool
    total: int
    holding: int
    since: datetime | None


class TimelineQuery(msgspec.Struct, kw_only=True):
    """Which facts, and the moment."""

    scopes: AnyScopes | None = None
    at: Moment | None = None


NOTHING = Timeline(data=[], first_id=None, last_id=None, has_more=False, total=0, holding=0, since=None)


class Chains:
    """The chains of the facts that pass `where`; `valid` is the filter of those valid at the moment, `words` are
    words that some version of a chain must contain, each, in its text or tags."""

    def __init__(
        self, c: Connection, tenant: str, where: Filter, valid: Filter, words: Sequence[str]
    ) -> None:
        self._c = c
        self._tenant = tenant
        self._where = where
        self._valid = valid
        self._words = words

    def page(self, after: int | None, limit: int) -> tuple[list[FactChain], str | None]:
        """Return the next chains beyond the seq of a fact, and the id of the fact beyond which there may be more, or
        None. Facts without the words are passed over, at most `PASSED`."""
        chains: list[FactChain] = []
        for _ in range(PASSED // SCAN):
            heads = self._heads(after)
            chains += [self._chain(rows) for rows in self._versions(heads) if self._has_words(rows)]
            if len(chains) > limit:
                return chains[:limit], chains[limit - 1].id
            if len(heads) < SCAN:
                return chains, None
            after = heads[-1].seq
        return chains, heads[-1].id

    def since(self) -> datetime | None:
        """Return when the first fact began."""
        compiled = compile_where(self._where)
        sql = f"SELECT min(COALESCE(valid_from, occurred_at)) FROM memories WHERE tenant_id = ? AND ({compiled.sql})"
        ((first,),) = self._c.select(sql, [self._tenant, *compiled.params])
        return None if first is None else moment(first)

    def _heads(self, after: int | None) -> list[Record]:
        """Return the next facts that none of the selected ones supersedes."""
        compiled = compile_where(self._where)
        beyond, values = ("", []) if after is None else (" AND seq < ?", [after])
        later = (
            "SELECT 1 FROM memories AS later WHERE later.tenant_id = memories.tenant_id"
            f" AND later.id = memories.superseded_by AND ({compiled.sql})"
        )
        rows = self._c.select(
            f"SELECT {COLUMNS} FROM memories WHERE tenant_id = ? AND ({compiled.sql})"
            f" AND (superseded_by IS NULL OR NOT EXISTS ({later})){beyond} ORDER BY seq DESC LIMIT {SCAN}",
            [self._tenant, *compiled.params, *compiled.params, *values],
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
            sorted(rows, key=lambda row: (row.id in chains, start_of(row), row.seq))
            for rows in chains.values()
        ]

    def _has_words(self, rows: Sequence[Record]) -> bool:
        texts = [" ".join([row.content, *json.loads(row.tags)]).casefold() for row in rows]
        return not self._words or any(all(word in text for word in self._words) for text in texts)

    def _chain(self, rows: Sequence[Record]) -> FactChain:
        return FactChain(
            id=rows[-1].id,
            facts=[
                DatedFact(
                    memory=to_memory(row),
                    begins=moment(start_of(row)),
                    ends=None if row.invalid_at is None else moment(row.invalid_at),
                    holds=matches(self._valid, attributes(row)),
                )
                for row in rows
            ],
        )
