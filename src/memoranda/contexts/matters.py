"""What a context has of its candidates: those relevant to the question, those about the same thing together with the
newest first, what has ended and what took its place, and the standing instructions of its user.

Whether two are about the same thing is measured by the similarity of their vectors.

A memory is relevant if the probability of that is not far below the best one, or if that of an older one of its author
about the same thing is not: what was said later may hold instead. Where what was found is not likely to answer at all
(`store.retrieval.evidence`), one that is hardly relevant is left out, too. With a model that compares words alone, one
that has any of the question is enough for all; with one whose similarities are not measured, that rule does not apply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.clock import moment, now_micros
from memoranda.contexts.choosing import Chosen, Ended, left
from memoranda.contexts.result_text import since
from memoranda.contexts.values import ContextQuery, LeftOut
from memoranda.filters import all_of, matches
from memoranda.providers.embeddings.base import Calibration, centred
from memoranda.sessions.values import is_person
from memoranda.storage.sql.base import Connection
from memoranda.store.access import scope_filter, selection_filter, visible_to
from memoranda.store.core import Core
from memoranda.store.ids import listed
from memoranda.store.retrieval.evidence import RELATED, Result, evidence
from memoranda.store.retrieval.rerank_features import term_coverage
from memoranda.store.rows import Record, attributes, fetch, memory_speaker, to_memory
from memoranda.text.instructions import is_standing
from memoranda.text.questions import normalise, only_asks
from memoranda.text.terms import query_terms, term_set, terms
from memoranda.types import Hit, Subject

KINDS = ("message", "fact", "note")
FEWEST = 8
"""Memories from whose vectors the direction that all have is estimated, where it is not known of the model."""
Vectors = Mapping[str, NDArray[np.float32]]
Floats = NDArray[np.float64]


def likeness(candidates: Sequence[Chosen], vectors: Vectors, calibration: Calibration) -> Floats:
    """Return (n, n) how similar the vectors of candidates are, as a share of `Calibration.same`: from 1 on, two are
    about the same thing. -inf where that is not known: of summaries, and of what has no vector.

    `vectors` are those of memories, by id.
    """
    alike = np.full((len(candidates), len(candidates)), -np.inf)
    at = [
        place
        for place, candidate in enumerate(candidates)
        if candidate.memory.kind in KINDS and candidate.memory.id in vectors
    ]
    center = calibration.center
    if len(at) < (FEWEST if center is None else 2):
        return alike
    matrix = np.stack([vectors[candidates[place].memory.id] for place in at])
    if center is None:
        center = tuple(centred(matrix, ()).mean(axis=0).tolist())
    units = centred(matrix, center)
    alike[np.ix_(at, at)] = units @ units.T / calibration.same
    return alike


def by_one_author(candidates: Sequence[Chosen]) -> NDArray[np.bool_]:
    """Return (n, n) which candidates are of the same author. A machine is not the person that it talks to: the two may
    say the same of themselves."""
    numbers: dict[tuple[str | None, bool], int] = {}
    who = np.array([numbers.setdefault(_author(one), len(numbers)) for one in candidates], np.int64)
    same: NDArray[np.bool_] = who[:, None] == who[None, :]
    return same


def together(candidates: Sequence[Chosen], vectors: Vectors, calibration: Calibration) -> list[Chosen]:
    """Return the candidates in their order, but those of one author about the same thing at the place of the first of
    them, newest first, which is marked, and what a machine said, or what only asks, behind what a person stated about
    the same thing. Scores stay: what has no place is decided by the question alone.

    Candidates that nothing relates to the question stay where they are.
    """
    joining = np.array([not one.weak and not is_standing(one.memory) for one in candidates], np.bool_)
    near = (likeness(candidates, vectors, calibration) >= 1) & joining[:, None] & joining[None, :]
    of_one = near & by_one_author(candidates)
    ordered: list[int] = []
    taken: set[int] = set()
    for lead in range(len(candidates)):
        if lead in taken:
            continue
        same = [at for at in np.flatnonzero(of_one[lead]).tolist() if at > lead and at not in taken]
        taken.update(same)
        ordered += _newest_first(candidates, [lead, *same])
    return [candidates[at] for at in _stated_first(candidates, ordered, near)]


def _newest_first(candidates: Sequence[Chosen], group: list[int]) -> list[int]:
    """Return the places of a group, newest first, and note in each what is older, and whether the day says which."""
    if len(group) == 1:
        return group
    began = {at: since(candidates[at].memory) for at in group}
    group = sorted(group, key=lambda at: began[at], reverse=True)
    for at in group:
        candidates[at].older = tuple(
            candidates[other].memory.id for other in group if began[other] < began[at]
        )
    candidates[group[0]].latest = bool(candidates[group[0]].older)
    days = Counter(began[at].date() for at in group)
    for at in group:
        candidates[at].hour = days[began[at].date()] > 1
    return group


def _stated_first(candidates: Sequence[Chosen], ordered: list[int], near: NDArray[np.bool_]) -> list[int]:
    """Return the order with what states nothing right behind the last statement of a person about the same thing."""
    states = [_states(candidate) for candidate in candidates]
    for at in [at for at in ordered if not states[at]]:
        place = ordered.index(at)
        behind = [later for later in ordered[place + 1 :] if states[later] and near[at, later]]
        if behind:
            ordered.remove(at)
            ordered.insert(ordered.index(behind[-1]) + 1, at)
            candidates[at].score = min(candidates[at].score, *(candidates[one].score for one in behind))
    return ordered


def _states(candidate: Chosen) -> bool:
    """Return True if a person says something, which is more than to ask."""
    return is_person(candidate.memory.role or "user") and not only_asks(candidate.memory.content)


def _author(candidate: Chosen) -> tuple[str | None, bool]:
    memory = candidate.memory
    if memory.kind != "message":
        return memory.user_id, False
    return memory.user_id or memory_speaker(memory), not is_person(memory.role or "user")


LEAST = 0.02
"""The share of the best probability from which on a memory is relevant."""
GUESSED = 0.003
"""The same share of scores, with a model whose similarities are not measured."""
LIKELY = 0.03
"""The least probability of a relevant memory where none is likely to answer."""


def scores_of_matters(candidates: Sequence[Chosen], vectors: Vectors, calibration: Calibration) -> Floats:
    """Return the probability (n,) that each candidate is relevant, or the greatest of older ones of its author about
    the same thing, if that is greater. `vectors` are those of memories, by id."""
    scores = np.array([candidate.relevance for candidate in candidates])
    began = np.array([since(candidate.memory).timestamp() for candidate in candidates])
    alike = likeness(candidates, vectors, calibration)
    older = (alike >= 1) & by_one_author(candidates) & (began[:, None] < began[None, :])
    inherited: Floats = np.where(older, scores[:, None], 0.0).max(axis=0, initial=0.0)
    greatest: Floats = np.maximum(scores, inherited)
    return greatest


def relevant(
    candidates: Sequence[Chosen],
    question: str,
    vectors: Vectors,
    calibration: Calibration,
    searched: int | None = None,
    *,
    topic: bool = False,
) -> tuple[list[Chosen], list[LeftOut]]:
    """Return the candidates that are relevant to a question, in their order, and the others; `searched` is how many
    there were to compare, None: many. Of a `topic`, which has no answer, it is not asked whether something answers.
    What took the place of what a relevant one says is relevant, and standing instructions are for every question."""
    if not candidates:
        return [], []
    scores = scores_of_matters(candidates, vectors, calibration)
    measured = bool(calibration.center)
    for one, score in zip(candidates, scores.tolist(), strict=True):
        one.weak = one.weak and not (measured and score >= RELATED)
    sure = scores >= (LEAST if measured else GUESSED) * scores.max(initial=0.0)
    shown = _shown(candidates)
    if not topic and calibration.center is not None and evidence(question, shown, searched).level == "none":
        sure &= scores >= LIKELY if measured else _has_a_word(question, shown)
    kept = {
        one.memory.id
        for one, stays in zip(candidates, sure.tolist(), strict=True)
        if stays or is_standing(one.memory)
    }
    kept |= {one.ended.successor for one in candidates if one.memory.id in kept and one.ended is not None}
    return (
        [one for one in candidates if one.memory.id in kept],
        [left(one, "floor") for one in candidates if one.memory.id not in kept],
    )


def _has_a_word(question: str, shown: Sequence[Result]) -> bool:
    texts, said_by = [one.text for one in shown], [one.speaker for one in shown]
    return bool(term_coverage(normalise(question), texts, said_by).max(initial=0.0) > 0)


def _shown(candidates: Sequence[Chosen]) -> list[Result]:
    """Return the candidates as evidence, best first; standing instructions answer nothing."""
    return [
        Result(one.memory.content, memory_speaker(one.memory), one.ranking.similarity, one.ranking.relevance)
        for one in sorted(candidates, key=lambda one: -one.relevance)
        if not is_standing(one.memory)
    ]


LATEST = 1 << 62
MOST_FACTS = 500
"""Facts of the messages of one context that are looked at."""
MOST_STEPS = 20
"""Facts of which each took the place of the one before."""


def note_ended(core: Core, subject: Subject, candidates: Sequence[Chosen], question: str) -> None:
    """Note in messages that what they say of the question was superseded: the facts that rest on them and have the most
    of its words."""
    asked = frozenset(query_terms(question))
    messages = {one.memory.id: one for one in candidates if one.memory.kind == "message"}
    if not messages:
        return
    facts = _facts_of(core, subject, list(messages))
    for id_, candidate in messages.items():
        resting = [row for row in facts if id_ in msgspec.json.decode(row.source_refs)]
        most = max((len(asked & term_set(row.content)) for row in resting), default=0)
        own = [row for row in resting if len(asked & term_set(row.content)) == most]
        if own and all(row.superseded_by and row.invalid_at is not None for row in own):
            last = max(own, key=lambda row: row.invalid_at or 0)
            successor = _successor(core, subject, last)
            if successor is not None:
                candidate.ended = Ended(moment(last.invalid_at or 0), successor)


def _facts_of(core: Core, subject: Subject, ids: Sequence[str]) -> list[Record]:
    tenant = subject.tenant_id

    def read(c: Connection) -> list[Record]:
        seqs = [seq for (seq,) in c.all("facts_made_of", [tenant, listed(ids), LATEST, 0, MOST_FACTS])]
        return list(fetch(c, tenant, seqs).values())

    rows = core.store.db.read(read, tenant)
    return [row for row in core.store.damage.intact(rows) if matches(visible_to(subject), attributes(row))]


def _successor(core: Core, subject: Subject, fact: Record) -> str | None:
    """Return the id of the visible fact that holds in the place of an ended one."""
    for _ in range(MOST_STEPS):
        if fact.superseded_by is None:
            return fact.id if matches(visible_to(subject), attributes(fact)) else None
        following = core.store.by_id(subject.tenant_id, [fact.superseded_by]).get(fact.superseded_by)
        if following is None:
            return None
        fact = following
    return None


LOOKED_AT = 50
MOST = 10
"""Instructions in a context, the latest."""


def standing(core: Core, subject: Subject, asked: ContextQuery, user: str | None) -> list[Chosen]:
    """Return the instructions of a user that are valid at the time of the question and pass the selection of the
    context but for its scopes, the latest first; each scores 1."""
    if user is None:
        return []
    where = all_of(scope_filter(f"user:{user}", subject), selection_filter(asked, subject, now_micros()))

    def read(c: Connection) -> Sequence[Record]:
        seqs = [int(seq) for (seq,) in c.all("instructions_of", [subject.tenant_id, user, LOOKED_AT])]
        rows = fetch(c, subject.tenant_id, seqs)
        return [rows[seq] for seq in seqs if seq in rows]

    rows = core.store.damage.intact(core.store.db.read(read, subject.tenant_id))
    memories = [to_memory(row) for row in rows if matches(where, attributes(row))]
    applying = [memory for memory in memories if is_standing(memory)]
    return [
        Chosen(Hit(memory=memory, score=1.0, similarity=None), frozenset(terms(memory.content)), 1.0, {})
        for memory in applying[:MOST]
    ]
