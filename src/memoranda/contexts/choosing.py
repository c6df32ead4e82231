"""Selection and ranking of memories for a context. Arithmetic on values, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from memoranda.contexts.result_text import SUMMARIES, since, window
from memoranda.contexts.values import LeftOut, PartName
from memoranda.memories.duplicates import contradict
from memoranda.store.retrieval.evidence import unrelated
from memoranda.store.retrieval.fusion import COVERED_PENALTY, SESSION_BONUS, blended, mmr
from memoranda.store.rows import memory_speaker
from memoranda.text.instructions import RULES, is_standing
from memoranda.text.terms import query_terms, terms
from memoranda.types import Hit, Memory

COVERED = 0.8
"""Above this Jaccard index two texts say the same."""

ONE_MATTER = 0.5
"""Above this Jaccard index two facts are about one matter; the newer comes first."""


class Ended(msgspec.Struct, frozen=True):
    """Since when what a message says does not hold, and the id of the fact that holds instead."""

    at: datetime
    successor: str


class Chosen(msgspec.Struct):
    """A memory for a context, with the parts of its score. `weak` if it is about something else than the question.
    `older` are the ids of older ones about the same thing, `latest` says that it is the newest of these, `hour` that
    another one is of the same day, `replaces` are the hits of those left out for it."""

    hit: Hit
    terms: frozenset[str]
    score: float
    scores: dict[str, float]
    weak: bool = False
    older: tuple[str, ...] = ()
    latest: bool = False
    hour: bool = False
    ended: Ended | None = None
    replaces: list[Hit] = []

    @property
    def memory(self) -> Memory:
        """The memory."""
        return self.hit.memory

    @property
    def ranking(self) -> Hit:
        """What it ranks by: its hit with the best score, similarity and probability of the memory and of those that it
        replaces."""
        if not self.replaces:
            return self.hit
        hits = [self.hit, *self.replaces]
        known = [hit.similarity for hit in hits if hit.similarity is not None]
        likely = [hit.relevance for hit in hits if hit.relevance is not None]
        return replace(
            self.hit,
            score=max(hit.score for hit in hits),
            similarity=max(known, default=None),
            relevance=max(likely, default=None),
        )

    @property
    def relevance(self) -> float:
        """The probability that it is relevant; its score where that is not known."""
        relevance = self.ranking.relevance
        return self.score if relevance is None else relevance

    @property
    def until(self) -> datetime | None:
        """Until when what a message says was valid; None if it may still be."""
        return None if self.ended is None else self.ended.at

    @property
    def part(self) -> PartName:
        """The part of the prompt."""
        return part_of(self.memory)


class Choice(msgspec.Struct):
    """The memories and summaries for the context, best first, and those left out."""

    memories: list[Chosen] = msgspec.field(default_factory=list)
    sessions: list[Chosen] = msgspec.field(default_factory=list)
    left_out: list[LeftOut] = msgspec.field(default_factory=list)


def part_of(memory: Memory) -> PartName:
    """Return the part of a prompt that a memory goes into."""
    return "sessions" if memory.kind in SUMMARIES else "memories"


def candidates(hits: Iterable[Hit]) -> list[Chosen]:
    """Return hits as candidates, with the parts of their scores; the first of two hits of one memory. A context has a
    newer memory beside the older one, and scores it as if it superseded none."""
    by_id: dict[str, Chosen] = {}
    for hit in hits:
        if hit.memory.id not in by_id:
            words, parts = frozenset(terms(hit.memory.content)), parts_of(hit)
            score = round(hit.score / parts.get("newer", 1.0), 6)
            by_id[hit.memory.id] = Chosen(hit, words, score, parts)
    return list(by_id.values())


def relevant_first(
    candidates: Sequence[Chosen], question: str, weights: Mapping[str, float] | None = None
) -> list[Chosen]:
    """Return the candidates in their order, weak ones last; equal scores newest first.

    Scores are first multiplied by the weight of the memory's kind, 1 if it has none.

    Of two facts about one matter the newer comes first, in the place of the better one.
    """
    asked = frozenset(query_terms(question))
    for candidate in candidates:
        ranking = candidate.ranking
        candidate.score = round(candidate.score * (weights or {}).get(candidate.memory.kind, 1.0), 6)
        candidate.weak = unrelated(ranking.relevance, asked, candidate.terms, ranking.similarity)
    waiting = sorted(
        candidates,
        key=lambda candidate: (candidate.weak, -candidate.score, -candidate.memory.occurred_at.timestamp()),
    )
    ranked: list[Chosen] = []
    facts = [place for place, candidate in enumerate(waiting) if candidate.memory.kind == "fact"]
    for place, candidate in enumerate(waiting):
        if candidate.memory.kind != "fact":
            ranked.append(candidate)
        while place in facts:
            matter = [other for other in facts if _one_matter(candidate, waiting[other])]
            newest = max(matter, key=lambda other: since(waiting[other].memory))
            facts.remove(newest)
            ranked.append(waiting[newest])
    return ranked


def _one_matter(first: Chosen, second: Chosen) -> bool:
    shared = len(first.terms & second.terms)
    return first.memory.user_id == second.memory.user_id and (
        first is second or shared >= ONE_MATTER * (len(first.terms) + len(second.terms) - shared)
    )


def current_first(candidates: Sequence[Chosen]) -> list[Chosen]:
    """Return the candidates in their order, but each fact before the messages of which it took the place."""
    ordered = list(candidates)
    for candidate in candidates:
        if candidate.ended is None:
            continue
        at = ordered.index(candidate)
        later = [one for one in ordered[at:] if one.memory.id == candidate.ended.successor]
        for successor in later:
            ordered.remove(successor)
            ordered.insert(at, successor)
    return ordered


def unrepeated(candidates: Sequence[Chosen], question: str) -> tuple[list[Chosen], list[LeftOut]]:
    """Return the candidates without the messages whose fact is among them, or without the fact where the message has
    terms of the question that the fact lacks, or the fact is only a note that a rule made; and those left out. A fact
    whose message is left out for another fact is compared with its other messages, and stays if it has none. What stays
    has the best score of both. A message that is newer than its fact stays beside it: it may say more."""
    asked = frozenset(query_terms(question))
    messages = {
        candidate.memory.id: candidate for candidate in candidates if candidate.memory.kind == "message"
    }
    facts = [
        (candidate, sources)
        for candidate in candidates
        if candidate.memory.kind == "fact" and (sources := _sources(candidate, messages))
    ]
    gone: dict[str, LeftOut] = {}
    while whole := [
        (fact, sources)
        for fact, sources in facts
        if fact.memory.metadata.get("extracted_by") != RULES
        and asked & _closest(sources, asked).terms <= fact.terms
    ]:
        for fact, sources in whole:
            gone |= {source.memory.id: left(source, "duplicate", fact.memory.id) for source in sources}
            _replace(fact, sources)
        facts = [
            (fact, remaining)
            for fact, sources in facts
            if (remaining := [source for source in sources if source.memory.id not in gone])
        ]
    for fact, sources in facts:
        message = _closest(sources, asked)
        gone[fact.memory.id] = left(fact, "duplicate", message.memory.id)
        _replace(message, [fact])
    return [candidate for candidate in candidates if candidate.memory.id not in gone], list(gone.values())


def _sources(fact: Chosen, messages: Mapping[str, Chosen]) -> list[Chosen]:
    """Return the messages that a fact rests on and that are not newer than it."""
    said = fact.memory.occurred_at
    found = (messages[id_] for id_ in fact.memory.source_refs if id_ in messages)
    return [message for message in found if message.memory.occurred_at <= said]


def _closest(messages: Sequence[Chosen], asked: AbstractSet[str]) -> Chosen:
    """Return the message with most terms of the question."""
    return max(messages, key=lambda message: len(asked & message.terms))


def _replace(candidate: Chosen, others: Sequence[Chosen]) -> None:
    """Rank a candidate by the best score and similarity of those that it stands for, if better than its own."""
    best = max(other.score for other in others)
    if best > candidate.score:
        candidate.score = candidate.scores["replaced"] = best
    candidate.replaces = [*candidate.replaces, *(other.hit for other in others)]


def parts_of(hit: Hit) -> dict[str, float]:
    """Return the known parts of a hit's score."""
    scores = {"search": hit.score}
    if hit.similarity is not None:
        scores["similarity"] = hit.similarity
    explanation = hit.explanation
    if explanation is not None:
        if explanation.words_normalised is not None:
            scores["lexical"] = round(explanation.words_normalised, 6)
        scores |= {name: round(part, 6) for name, part in (explanation.added | explanation.factors).items()}
        scores["scope_weight"] = explanation.scope_weight
        scores["rank_before"] = explanation.rank_before
        scores["rank_after"] = explanation.rank_after
    return scores


def left(candidate: Chosen, why: str, of: str | None = None) -> LeftOut:
    """Return the entry of a candidate that is left out of the context."""
    memory = candidate.memory
    return LeftOut(part=candidate.part, id=memory.id, kind=memory.kind, why=why, of=of, score=candidate.score)  # type: ignore[arg-type]


def not_present(
    candidates: Sequence[Chosen], excluded: AbstractSet[str], recent: Collection[str], said: Collection[str]
) -> tuple[list[Chosen], list[LeftOut]]:
    """Return the candidates that are not in the prompt already, and the others: excluded or recent ones by id, messages
    with a text that was `said`, and facts that rest on excluded memories alone. Recent messages may be cut to the
    budget, so that facts on them count as not present."""
    remaining, gone = [], []
    for candidate in candidates:
        memory = candidate.memory
        again = memory.kind == "message" and plain(memory.content) in said
        present = memory.id in excluded or memory.id in recent
        if (
            again
            or present
            or (memory.kind == "fact" and not is_standing(memory) and _rests(memory, excluded))
        ):
            gone.append(left(candidate, "present"))
        else:
            remaining.append(candidate)
    return remaining, gone


def without_summary_of(
    candidates: Sequence[Chosen], session_id: str | None
) -> tuple[list[Chosen], list[LeftOut]]:
    """Return the candidates without the stored summary of a session, which is in the prompt already, and that."""
    own = [
        candidate
        for candidate in candidates
        if candidate.memory.kind == "session_summary" and candidate.memory.session_id == session_id
    ]
    if session_id is None or not own:
        return list(candidates), []
    return [one for one in candidates if one not in own], [left(one, "present") for one in own]


def _rests(fact: Memory, excluded: AbstractSet[str]) -> bool:
    """Return True if all messages that a fact was extracted from are excluded; its other sources are responses."""
    messages = {ref for ref in fact.source_refs if not ref.startswith("resp_")}
    return bool(messages) and messages <= excluded


def plain(text: str) -> str:
    """Return the text of a message for comparing copies."""
    return " ".join(text.split()).casefold()


def distinct(candidates: Sequence[Chosen]) -> tuple[list[Chosen], list[LeftOut]]:
    """Return the newest of all candidates that say nearly the same, in the place of the first, and the others. Two that
    differ in a number, a name or a negation, or are from different speakers, are distinct."""
    remaining: list[int] = []
    gone: list[tuple[Chosen, Chosen]] = []
    near = _all_alike([candidate.terms for candidate in candidates])
    for number, candidate in enumerate(candidates):
        at = None
        if near[number]:
            same = (other in near[number] and _same(candidate, candidates[other]) for other in remaining)
            at = next((place for place, is_same in enumerate(same) if is_same), None)
        if at is None:
            remaining.append(number)
            continue
        other = candidates[remaining[at]]
        if candidate.memory.occurred_at > other.memory.occurred_at:
            _replace(candidate, [other])
            gone.append((other, candidate))
            remaining[at] = number
        else:
            gone.append((candidate, other))
    chosen = [candidates[number] for number in remaining]
    return chosen, [left(other, "duplicate", same.memory.id) for other, same in gone]


def _all_alike(texts: Sequence[frozenset[str]]) -> list[set[int]]:
    """Return for each set of terms the places of the others that are `alike`."""
    numbers: dict[str, int] = {}
    columns = [numbers.setdefault(term, len(numbers)) for terms_of in texts for term in terms_of]
    has = np.zeros((len(texts), len(numbers)))
    has[np.repeat(np.arange(len(texts)), list(map(len, texts))), columns] = 1.0
    shared = has @ has.T
    sizes = shared.diagonal()
    near = shared > COVERED * (sizes[:, None] + sizes[None, :] - shared)
    np.fill_diagonal(near, False)
    others: list[set[int]] = [set() for _ in texts]
    for first, second in np.argwhere(near).tolist():
        others[first].add(second)
    return others


def _same(candidate: Chosen, other: Chosen) -> bool:
    """Return True if two that are `alike` say the same."""
    first, second = candidate.memory, other.memory
    if candidate.part != other.part:
        return False
    if "message" in (first.kind, second.kind) and memory_speaker(first) != memory_speaker(second):
        return False
    return not contradict(first.content, second.content)


def alike(first: frozenset[str], second: frozenset[str]) -> bool:
    """Return True if two sets of terms have a Jaccard index above `COVERED`."""
    if not first or min(len(first), len(second)) <= COVERED * max(len(first), len(second)):
        return False
    shared = len(first & second)
    return shared > COVERED * (len(first) + len(second) - shared)


def covered(candidate: Chosen, chunks: Mapping[str, tuple[str, frozenset[str]]]) -> str | None:
    """Return the id of the chunk that says what a memory says; `chunks` are texts with their terms."""
    for id_, (text, words) in chunks.items():
        if alike(candidate.terms, words) and not contradict(candidate.memory.content, text):
            return id_
    return None


def varied(
    candidates: Sequence[Chosen], vectors: Mapping[str, NDArray[np.float32]], limit: int, diversity: float
) -> list[Chosen]:
    """Return at most `limit` candidates by maximal marginal relevance, weak ones last, scored by their place. One
    without a vector is similar to none."""
    if not candidates:
        return []
    dim = max((len(vector) for vector in vectors.values()), default=1)
    matrix = np.zeros((len(candidates), dim), np.float32)
    for at, candidate in enumerate(candidates):
        if candidate.memory.id in vectors:
            matrix[at] = vectors[candidate.memory.id]
    order = mmr(np.array([candidate.score for candidate in candidates]), matrix, limit, diversity)
    picked = sorted((candidates[at] for at in order), key=lambda candidate: candidate.weak)
    for place, candidate in enumerate(picked, 1):
        candidate.scores["marginal_rank"] = place
        candidate.score = round(1.0 / place, 6)
    return picked


def reranked(
    memories: Sequence[Chosen], sessions: Sequence[Chosen], question: str, now: datetime
) -> tuple[list[Chosen], list[Chosen]]:
    """Rank memories and summaries of sessions together, see `fusion.blended`; return each kind in that order."""
    both = [*memories, *sessions]
    asked = frozenset(query_terms(question))
    ages = np.array([(now - candidate.memory.occurred_at).total_seconds() / 3600 for candidate in both])
    overlap = np.array([len(asked & candidate.terms) / len(asked) if asked else 0.0 for candidate in both])
    is_session = np.array([candidate.part == "sessions" for candidate in both])
    windows = [(candidate.memory, *window(candidate.memory)) for candidate in sessions]
    inside = np.array([_inside(candidate.memory, windows) for candidate in both])
    base = np.array([candidate.score for candidate in both])
    added = blended(base, ages, overlap)
    factors = np.where(is_session, SESSION_BONUS, 1.0) * np.where(inside, COVERED_PENALTY, 1.0)
    for at, candidate in enumerate(both):
        for name, part in zip(("base", "recency", "overlap"), added[at], strict=True):
            candidate.scores[f"merged.{name}"] = round(float(part), 6)
        candidate.scores["merged.factor"] = float(factors[at])
        candidate.score = round(float(added[at].sum() * factors[at]), 6)
    order: Callable[[Chosen], tuple[bool, float]] = lambda candidate: (candidate.weak, -candidate.score)  # noqa: E731
    for place, candidate in enumerate(sorted(both, key=order), 1):
        candidate.scores["merged.rank"] = place
    return sorted(memories, key=order), sorted(sessions, key=order)


def _inside(memory: Memory, windows: Sequence[tuple[Memory, datetime, datetime]]) -> bool:
    """Return True if a message is from a session whose summary is in the context."""
    if memory.kind != "message":
        return False
    return any(
        memory.session_id == session.session_id
        if session.session_id is not None and memory.session_id is not None
        else session.channel_id is not None
        and memory.channel_id == session.channel_id
        and began <= memory.occurred_at <= ended
        for session, began, ended in windows
        if session.kind == "session_summary"
    )
