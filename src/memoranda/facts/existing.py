"""The stored facts that new messages, or new facts, may be about: the nearest by vector and by keyword."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from itertools import zip_longest

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.clock import moment, now_micros
from memoranda.facts import versions
from memoranda.filters import Compare, Filter, all_of
from memoranda.indexes.keyword.base import WordMatches
from memoranda.indexes.vector.base import Matches
from memoranda.sessions.records import MessageRow, messages_by_id
from memoranda.storage.sql.base import Connection
from memoranda.store.access import selection_filter
from memoranda.store.core import Core
from memoranda.store.listing import page
from memoranda.store.retrieval.questions import embed_questions
from memoranda.store.rows import Home, Record, fetch, fetch_ids, linked_to, start_of
from memoranda.text.stored import compact_json
from memoranda.types import Selection, Subject

Vectors = dict[str, NDArray[np.float32]]
FACT = Compare("$kind", "eq", "fact")
MOST = 20
"""The most existing facts in one prompt."""
NEAREST = 8
"""Facts that are looked up for one text by vector, and as many by keyword."""
QUERY_CHARS = 2_000
"""Characters of a text by which facts are looked up."""


class Existing(msgspec.Struct, frozen=True):
    """A stored fact, and the messages that it rests on or has words of."""

    row: Record
    messages: tuple[MessageRow, ...] = ()

    @property
    def line(self) -> str:
        """The fact as a prompt shows it: since when it holds, and its text."""
        return f"{moment(start_of(self.row)):%Y-%m-%d}: {self.row.content}"


def at_home(home: Home) -> Filter:
    """Return a filter for the facts of a home, see `keeping.home_at`, valid or not."""
    user, agent, channel, session = home
    both = all_of(FACT, Compare("$user_id", "eq", user), Compare("$agent_id", "eq", agent))
    if user is not None:
        return both
    return all_of(both, Compare("$channel_id", "eq", channel), Compare("$session_id", "eq", session))


async def existing_facts(
    core: Core,
    tenant: str,
    home: Home,
    texts: Mapping[str, str],
    *,
    purpose: str,
    without: Set[str] = frozenset(),
) -> list[Existing]:
    """Return at most 20 facts of a home that hold now, the nearest to any of the `texts` first, which have the ids of
    memories. Consolidated facts come as their parts. The facts `without` are left out.

    Raises:
        IndexUnavailable: an index does not answer.
    """
    valid = selection_filter(Selection(), Subject(tenant_id=tenant), now_micros())
    where = all_of(at_home(home), valid)

    def any_fact(c: Connection) -> bool:
        return bool(page(c, tenant, where, limit=1, after=None, descending=True))

    if not await core.threads.run(core.store.db.read, any_fact, tenant):
        return []
    vectors = await _vectors(core, tenant, texts, purpose)
    return await core.threads.run(_nearest, core, tenant, where, texts, vectors, without)


async def _vectors(core: Core, tenant: str, texts: Mapping[str, str], purpose: str) -> Vectors:
    """Return the vectors of texts: those that are stored, else made now, as far as the model answers."""

    def read(c: Connection) -> tuple[Vectors, list[Record]]:
        rows = fetch_ids(c, tenant, list(texts))
        seqs = {row.seq: row for row in rows.values()}
        stored = c.all("embeddings_of", [tenant, core.store.space, compact_json(list(seqs))])
        vectors = {seqs[seq].id: np.frombuffer(data, "<f4") for seq, part, _, _, data in stored if part == 0}
        return vectors, [row for row in rows.values() if row.id not in vectors]

    vectors, rows = await core.threads.run(core.store.db.read, read, tenant)
    made = await core.ingest.embed_first(tenant, rows, purpose) if rows else {}
    vectors |= {row.id: made[row.seq][0] for row in rows if row.seq in made}
    if other := [id_ for id_ in texts if id_ not in vectors]:
        cut = [texts[id_][:QUERY_CHARS] for id_ in other]
        embedded, _ = await embed_questions(core.costs, core.embedder, cut, tenant, purpose)
        vectors |= {id_: made.vector for id_, made in zip(other, embedded or (), strict=embedded is not None)}
    return vectors


def _nearest(
    core: Core, tenant: str, where: Filter, texts: Mapping[str, str], vectors: Vectors, without: Set[str]
) -> list[Existing]:
    core.store.derived.follow(tenant)
    near: dict[int, float] = {}
    shared: dict[int, float] = {}
    for id_, text in texts.items():
        if id_ in vectors:
            _best(near, core.store.index.search(tenant, vectors[id_], NEAREST, where))
        _best(shared, core.store.words.search(tenant, text[:QUERY_CHARS], NEAREST, where))
    order = list(_in_turns(near, shared))

    def read(c: Connection) -> list[Existing]:
        rows = fetch(c, tenant, order)
        single = [row for seq in order if seq in rows for row in _parts(c, tenant, rows[seq])]
        kept = list({row.id: row for row in single if row.id not in without}.values())[:MOST]
        messages = messages_by_id(c, tenant, {ref for row in kept for ref in linked_to(row)})
        return [Existing(row, tuple(messages[r] for r in linked_to(row) if r in messages)) for row in kept]

    return core.store.db.read(read, tenant)


def _best(scores: dict[int, float], matches: Matches | WordMatches) -> None:
    for seq, score in zip(matches.seqs.tolist(), matches.scores.tolist(), strict=True):
        scores[seq] = max(score, scores.get(seq, score))


def _in_turns(first: dict[int, float], second: dict[int, float]) -> Iterable[int]:
    """Return the keys of both, best first, in turns, each once."""
    ranked = (sorted(scores, key=lambda seq: (-scores[seq], -seq)) for scores in (first, second))
    return dict.fromkeys(seq for pair in zip_longest(*ranked) for seq in pair if seq is not None)


def _parts(c: Connection, tenant: str, row: Record) -> list[Record]:
    """Return a fact, or the parts of a consolidated one, if it holds."""
    if not versions.is_live(row):
        return []
    parts = versions.parts_of(row)
    if not parts:
        return [row]
    return [part for part in fetch_ids(c, tenant, parts).values() if part.superseded_by == row.id]
