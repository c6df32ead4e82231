"""Consolidation of equivalent facts: which belong together, the merged text, and the row that replaces them."""

from __future__ import annotations

import logging
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.clock import moment, now_micros
from memoranda.errors import ModelBroken, ModelRefused
from memoranda.facts import versions
from memoranda.facts.grounding import grounded
from memoranda.facts.parsing import parsed_merge
from memoranda.memories.duplicates import lacks
from memoranda.providers.chat.base import Model
from memoranda.providers.chat.completion import complete, instructed
from memoranda.store.core import Core
from memoranda.store.origins import inherited
from memoranda.store.rows import CONTEXT, LEFT, Draft, Record, context_of, fetch, refs_of, start_of
from memoranda.store.transaction import Writing
from memoranda.store.validation import MOST_REFS, Bounds, draft
from memoranda.text import prompts
from memoranda.text.hashing import digest
from memoranda.text.instructions import TAG
from memoranda.text.sentences import spans
from memoranda.text.stored import compact_json
from memoranda.text.terms import terms
from memoranda.types import NewMemory, Subject

log = logging.getLogger("memoranda.facts")
SOURCE = "consolidation"
"""The `source` of a consolidated fact."""
MOST_PARTS = 8
MOST_CHARS = 900
"""The most parts of a consolidated fact, and characters of all of them."""
RELATED = 0.75
"""The calibrated similarity from which on two facts belong together."""
SHARED = 0.34
"""The same by terms, as a Jaccard index of stemmed terms."""
EXTRA_TOKENS = 2_000


class Fact(msgspec.Struct, frozen=True):
    """A fact that may be joined with others, with its vector if it has one."""

    row: Record
    vector: NDArray[np.float32] | None


Scope = tuple[str | None, str | None, str | None, str | None]


def scope_of(row: Record) -> Scope:
    """Return the scope of a row; only facts of exactly the same scope are joined."""
    return row.user_id, row.agent_id, row.channel_id, row.session_id


def may_join(row: Record) -> bool:
    """Return True if a fact may become a part of another.

    It is a single fact that holds, without an end, that was not split off a consolidated one before, and no standing
    instruction."""
    alone = (
        not versions.parts_of(row)
        and versions.metadata_of(row).get("apart") is not True
        and TAG not in msgspec.json.decode(row.tags)
    )
    return alone and versions.is_live(row) and row.archived_at is None and row.invalid_at is None


def clusters(facts: Sequence[Fact], cosine_from: float) -> Iterator[list[Fact]]:
    """Yield groups of at least two facts that may belong together.

    The oldest fact leads. Those of its scope follow, oldest first and within bounds, that are near it by cosine
    (`cosine_from` and more) or by shared terms. The facts that remain lead in their turn. A group that the model has
    left as it is comes no second time.
    """
    by_scope: dict[Scope, list[Fact]] = defaultdict(list)
    for fact in sorted(facts, key=lambda fact: (start_of(fact.row), fact.row.seq)):
        by_scope[scope_of(fact.row)].append(fact)
    for group in by_scope.values():
        if len(group) > 1:
            yield from _in_scope(group, _Near(group, cosine_from))


def _in_scope(facts: Sequence[Fact], near: _Near) -> Iterator[list[Fact]]:
    taken: set[int] = set()
    for lead, first in enumerate(facts):
        if lead in taken:
            continue
        chosen, size = [first], len(first.row.content)
        for place in near.after(lead):
            fact = facts[place]
            fits = len(chosen) < MOST_PARTS and size + len(fact.row.content) <= MOST_CHARS
            if fits and place not in taken:
                chosen.append(fact)
                size += len(fact.row.content)
                taken.add(place)
        if len(chosen) > 1 and versions.metadata_of(first.row).get(LEFT) != group_key(chosen):
            yield chosen


def group_key(facts: Sequence[Fact]) -> str:
    """Return what identifies a group: its facts and their texts."""
    return digest(*(part for fact in facts for part in (fact.row.id, fact.row.content_hash)))


class _Near:
    """The facts of a scope that are near each other, without comparing all pairs: by cosine in one product, by terms
    where they share one of their rarer terms, as two facts of such a Jaccard must."""

    def __init__(self, facts: Sequence[Fact], cosine_from: float) -> None:
        self.cosine_from = cosine_from
        self.terms = [frozenset(terms(fact.row.content)) for fact in facts]
        often = Counter(term for each in self.terms for term in each)
        self.rare = [sorted(each, key=lambda term: (often[term], term)) for each in self.terms]
        self.places: dict[str, list[int]] = defaultdict(list)
        for place, each in enumerate(self.rare):
            for term in each[: _prefix(len(each))]:
                self.places[term].append(place)
        dim = max((len(fact.vector) for fact in facts if fact.vector is not None), default=1)
        self.vectors = np.zeros((len(facts), dim), np.float32)
        for place, fact in enumerate(facts):
            if fact.vector is not None and (size := float(np.linalg.norm(fact.vector))):
                self.vectors[place] = fact.vector / size

    def after(self, lead: int) -> list[int]:
        """Return the places after `lead` of facts near it, in order."""
        cosines = self.vectors[lead + 1 :] @ self.vectors[lead]
        places = {int(place) + lead + 1 for place in np.flatnonzero(cosines >= self.cosine_from)}
        mine = self.terms[lead]
        for term in self.rare[lead][: _prefix(len(mine))]:
            for place in self.places[term]:
                if place > lead and place not in places:
                    other = self.terms[place]
                    if len(mine & other) >= SHARED * len(mine | other):
                        places.add(place)
        return sorted(places)


def _prefix(size: int) -> int:
    """Return how many of the rarest of `size` terms must include one shared with every fact that is near by terms."""
    return size - math.ceil(SHARED * size) + 1


async def merged(model: Model, name: str | None, facts: Sequence[Fact]) -> tuple[list[Fact], str, str]:
    """Return those of the facts that the model reads as one, at least two, one text that says what they say, and the
    name of the model; no facts if it leaves them as they are, or its text is not `faithful`.

    Raises:
        ModelUnavailable: the model does not answer.
    """
    lines = [f"{moment(start_of(fact.row)):%Y-%m-%d}: {fact.row.content}" for fact in facts]
    material, most, form = prompts.numbered_facts(lines), MOST_CHARS + EXTRA_TOKENS, prompts.MERGING_FORM
    ask = instructed(prompts.MERGING, material, most, model=name, response_format=form)
    try:
        answer = await complete(model, ask)
    except (ModelBroken, ModelRefused) as exc:
        log.warning("facts stay apart: %s", exc)
        return [], "", ""
    numbers, text = parsed_merge(answer.text)
    chosen = [fact for number, fact in enumerate(facts, 1) if number in numbers]
    texts = [fact.row.content for fact in chosen]
    if len(chosen) < 2 or len(text) > 2 * MOST_CHARS or not faithful(text, texts):
        return [], "", ""
    return chosen, text, answer.name or model.name


def leave(w: Writing, group: Sequence[Fact]) -> None:
    """Note that the model has left a group of facts as it is, until one of them changes."""
    w.mark([group[0].row.seq], lambda row: versions.put(row, {LEFT: group_key(group)}))


def faithful(text: str, texts: Sequence[str]) -> bool:
    """Return True if a text has at least half of each fact's terms, all of its numbers and names, and each of its
    sentences rests on the facts."""
    mine = set(terms(text))
    for fact in texts:
        words = set(terms(fact))
        if len(mine & words) < 0.5 * len(words) or lacks(text, fact):
            return False
    return all(grounded(text[start:stop], texts) for start, stop in spans(text))


def composed(parts: Sequence[Record], text: str, by: str, bounds: Bounds, now: int) -> Draft:
    """Return the draft of a fact that replaces others: with all their sources and tags, beginning where the last of
    them begins."""
    first = parts[0]
    refs = [ref for row in parts for ref in refs_of(row)]
    tags = [tag for row in parts for tag in msgspec.json.decode(row.tags)]
    metadata: dict[str, Any] = {"extracted_by": by, "consolidates": [row.id for row in parts]}
    if context := list(dict.fromkeys(ref for row in parts for ref in context_of(row))):
        metadata[CONTEXT] = context[:MOST_REFS]
    new = NewMemory(
        content=text,
        kind="fact",
        user_id=first.user_id,
        agent_id=first.agent_id,
        channel_id=first.channel_id,
        session_id=first.session_id,
        source=SOURCE,
        tags=list(dict.fromkeys(tags))[: bounds.tags],
        metadata=metadata,
        importance=max(row.importance for row in parts),
        confidence=round(sum(row.confidence for row in parts) / len(parts), 4),
        source_refs=list(dict.fromkeys([*(row.id for row in parts), *refs]))[:MOST_REFS],
        occurred_at=moment(max(start_of(row) for row in parts)),
    )
    through = inherited(row.metadata for row in parts)
    replacement = draft(new, Subject(tenant_id=first.tenant_id, through=through), now, bounds, "")
    key = digest(replacement.row.dedup_key, *sorted(row.id for row in parts))
    used = max((row.last_accessed_at or 0 for row in parts), default=0)
    replacement.row = replacement.row._replace(
        dedup_key=key, access_count=sum(row.access_count for row in parts), last_accessed_at=used or None
    )
    return replacement


def put(w: Writing, parts: Sequence[Record], replacement: Draft) -> Record | None:
    """Write a fact in place of others; return None if one of them has changed since it was read."""
    current = fetch(w.c, w.tenant, [row.seq for row in parts])
    same = all(row.seq in current and _fits(current[row.seq], row) for row in parts)
    if not same:
        return None
    (outcome,) = w.insert([replacement])
    now, at = now_micros(), outcome.row.occurred_at
    w.mark(current, lambda row: versions.ended(row, outcome.row.id, at, now, "consolidated"))
    return outcome.row


def _fits(now: Record, read: Record) -> bool:
    return may_join(now) and now.content == read.content and now.source_refs == read.source_refs


def read_vectors(core: Core, tenant: str, rows: Sequence[Record]) -> Mapping[int, NDArray[np.float32]]:
    """Return the vectors of rows that have one, by seq."""
    key = [tenant, core.store.space, compact_json([row.seq for row in rows])]
    embeddings = core.store.db.read(lambda c: c.all("embeddings_of", key), tenant)
    return {seq: np.frombuffer(data, dtype="<f4") for seq, part, _, _, data in embeddings if part == 0}
