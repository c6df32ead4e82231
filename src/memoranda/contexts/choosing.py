"""What of the memories that were found is told, and in what order. Arithmetic on values, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memoranda.contexts.telling import SUMMARIES, since, window
from memoranda.contexts.values import LeftOut, PartName
from memoranda.memories.duplicates import contradict
from memoranda.store.retrieval.evidence import unrelated
from memoranda.store.retrieval.fusion import COVERED_PENALTY, SESSION_BONUS, blended, mmr
from memoranda.store.rows import memory_speaker
from memoranda.text.instructions import applies, is_standing
from memoranda.text.terms import query_terms, terms
from memoranda.types import Hit, Memory

COVERED = 0.8
"""Above this Jaccard index two texts say the same."""

ONE_MATTER = 0.5
"""Above this Jaccard index two facts are about one matter, of which the newer comes first."""


@dataclass(slots=True)
class Chosen:
    """A memory for a context, with what its score is made of. `weak` if nothing says that it is about the question."""

    hit: Hit
    terms: frozenset[str]
    score: float
    scores: dict[str, float]
    weak: bool = False

    @property
    def memory(self) -> Memory:
        """The memory."""
        return self.hit.memory

    @property
    def part(self) -> PartName:
        """Where it stands."""
        return part_of(self.memory)


@dataclass(slots=True)
class Choice:
    """The memories and summaries to be told, best first, and those that are not."""

    memories: list[Chosen] = field(default_factory=list)
    sessions: list[Chosen] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)


def part_of(memory: Memory) -> PartName:
    """The part of a prompt that a memory goes into."""
    return "sessions" if memory.kind in SUMMARIES else "memories"


def candidates(hits: Iterable[Hit]) -> list[Chosen]:
    """Hits as candidates, with the parts of their scores; the first of two hits of one memory."""
    held: dict[str, Chosen] = {}
    for hit in hits:
        if hit.memory.id not in held:
            words = frozenset(terms(hit.memory.content))
            held[hit.memory.id] = Chosen(hit, words, hit.score, parts_of(hit))
    return list(held.values())


def relevant_first(
    found: Sequence[Chosen], question: str, weights: Mapping[str, float] | None = None
) -> list[Chosen]:
    """Return the candidates in their order, the weak ones behind all others; equal scores newest first.

    Scores are first multiplied by the weight of the memory's kind, 1 where it has none.

    Of two facts about one matter the newer comes first, in the place of the better one.
    """
    asked = frozenset(query_terms(question))
    for one in found:
        one.score = round(one.score * (weights or {}).get(one.memory.kind, 1.0), 6)
        one.weak = unrelated(asked, one.terms, one.hit.similarity)
    waiting = sorted(found, key=lambda one: (one.weak, -one.score, -one.memory.occurred_at.timestamp()))
    ranked = []
    while waiting:
        matter = [
            place
            for place, one in enumerate(waiting)
            if not place or (one.memory.kind == "fact" and _one_matter(waiting[0], one))
        ]
        newest = max(matter, key=lambda place: since(waiting[place].memory))
        ranked.append(waiting.pop(newest if waiting[0].memory.kind == "fact" else 0))
    return ranked


def _one_matter(one: Chosen, other: Chosen) -> bool:
    shared = len(one.terms & other.terms)
    return one.memory.user_id == other.memory.user_id and (
        one is other or shared >= ONE_MATTER * (len(one.terms) + len(other.terms) - shared)
    )


def unrepeated(found: Sequence[Chosen], question: str) -> tuple[list[Chosen], list[LeftOut]]:
    """Return the candidates without the messages whose fact is among them, or without the fact where the message has
    terms of the question that the fact has not; and what is left out."""
    asked = frozenset(query_terms(question))
    messages = {one.memory.id: one for one in found if one.memory.kind == "message"}
    gone: dict[str, LeftOut] = {}
    for fact in found:
        sources = [messages[id_] for id_ in fact.memory.source_refs if id_ in messages]
        if fact.memory.kind != "fact" or not sources:
            continue
        best = max(sources, key=lambda one: len(asked & one.terms))
        if (asked & best.terms) - fact.terms:
            gone[fact.memory.id] = left(fact, "duplicate", best.memory.id)
        else:
            gone |= {one.memory.id: left(one, "duplicate", fact.memory.id) for one in sources}
    return [one for one in found if one.memory.id not in gone], list(gone.values())


def parts_of(hit: Hit) -> dict[str, float]:
    """The parts of a hit's score that are known."""
    scores = {"search": hit.score}
    if hit.similarity is not None:
        scores["similarity"] = hit.similarity
    made = hit.explanation
    if made is not None:
        if made.words_normalised is not None:
            scores["lexical"] = round(made.words_normalised, 6)
        scores |= {name: round(part, 6) for name, part in (made.added | made.factors).items()}
        scores["scope_weight"] = made.scope_weight
        scores["rank_before"] = made.rank_before
        scores["rank_after"] = made.rank_after
    return scores


def left(one: Chosen, why: str, of: str | None = None) -> LeftOut:
    """A candidate that is not told."""
    memory = one.memory
    return LeftOut(part=one.part, id=memory.id, kind=memory.kind, why=why, of=of, score=one.score)  # type: ignore[arg-type]


def untold(
    found: Sequence[Chosen], ids: Collection[str], said: Collection[str]
) -> tuple[list[Chosen], list[LeftOut]]:
    """Those that the model has not before it: not one of these ids, and no message whose words it has."""
    kept, gone = [], []
    for one in found:
        again = one.memory.kind == "message" and plain(one.memory.content) in said
        if again or one.memory.id in ids:
            gone.append(left(one, "told"))
        else:
            kept.append(one)
    return kept, gone


def plain(text: str) -> str:
    """What two copies of a message have in common."""
    return " ".join(text.split()).casefold()


def applicable(found: Sequence[Chosen], question: str) -> tuple[list[Chosen], list[LeftOut]]:
    """Return the candidates without instructions that are for other questions, and those."""
    others = {
        one.memory.id
        for one in found
        if is_standing(one.memory) and not applies(one.memory.content, question)
    }
    kept = [one for one in found if one.memory.id not in others]
    return kept, [left(one, "condition") for one in found if one.memory.id in others]


def distinct(found: Sequence[Chosen]) -> tuple[list[Chosen], list[LeftOut]]:
    """The first of all that say nearly the same. Two that differ in a number, a name or a negation, or that different
    people said, are two."""
    kept: list[Chosen] = []
    gone: list[LeftOut] = []
    for one in found:
        same = next((other for other in kept if _same(one, other)), None)
        if same is None:
            kept.append(one)
        else:
            gone.append(left(one, "duplicate", same.memory.id))
    return kept, gone


def _same(one: Chosen, other: Chosen) -> bool:
    first, second = one.memory, other.memory
    if not alike(one.terms, other.terms) or one.part != other.part:
        return False
    if "message" in (first.kind, second.kind) and memory_speaker(first) != memory_speaker(second):
        return False
    return not contradict(first.content, second.content)


def alike(first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether two sets of terms have a Jaccard index above `COVERED`."""
    if not first or min(len(first), len(second)) <= COVERED * max(len(first), len(second)):
        return False
    shared = len(first & second)
    return shared > COVERED * (len(first) + len(second) - shared)


def covered(one: Chosen, chunks: Mapping[str, tuple[str, frozenset[str]]]) -> str | None:
    """The chunk that says what a memory says, by id; `chunks` are texts with their terms."""
    for id_, (text, words) in chunks.items():
        if alike(one.terms, words) and not contradict(one.memory.content, text):
            return id_
    return None


def varied(
    found: Sequence[Chosen], vectors: Mapping[str, NDArray[np.float32]], limit: int, diversity: float
) -> list[Chosen]:
    """At most `limit` of them by maximal marginal relevance, each with its place as its score. One without a vector
    resembles nothing."""
    if not found:
        return []
    dim = max((len(vector) for vector in vectors.values()), default=1)
    matrix = np.zeros((len(found), dim), np.float32)
    for at, one in enumerate(found):
        if one.memory.id in vectors:
            matrix[at] = vectors[one.memory.id]
    order = mmr(np.array([one.score for one in found]), matrix, limit, diversity)
    picked = [found[at] for at in order]
    for place, one in enumerate(picked, 1):
        one.scores["marginal_rank"] = place
        one.score = round(1.0 / place, 6)
    return picked


def reranked(
    memories: Sequence[Chosen], sessions: Sequence[Chosen], question: str, now: datetime
) -> tuple[list[Chosen], list[Chosen]]:
    """Memories and summaries of sessions in one ranking, see `fusion.blended`; each kind in its order."""
    both = [*memories, *sessions]
    asked = frozenset(query_terms(question))
    ages = np.array([(now - one.memory.occurred_at).total_seconds() / 3600 for one in both])
    overlap = np.array([len(asked & one.terms) / len(asked) if asked else 0.0 for one in both])
    is_session = np.array([one.part == "sessions" for one in both])
    windows = [(one.memory, *window(one.memory)) for one in sessions]
    inside = np.array([_inside(one.memory, windows) for one in both])
    base = np.array([one.score for one in both])
    added = blended(base, ages, overlap)
    factors = np.where(is_session, SESSION_BONUS, 1.0) * np.where(inside, COVERED_PENALTY, 1.0)
    for at, one in enumerate(both):
        for name, part in zip(("base", "recency", "overlap"), added[at], strict=True):
            one.scores[f"merged.{name}"] = round(float(part), 6)
        one.scores["merged.factor"] = float(factors[at])
        one.score = round(float(added[at].sum() * factors[at]), 6)
    order: Callable[[Chosen], tuple[bool, float]] = lambda one: (one.weak, -one.score)  # noqa: E731
    for place, one in enumerate(sorted(both, key=order), 1):
        one.scores["merged.rank"] = place
    return sorted(memories, key=order), sorted(sessions, key=order)


def _inside(memory: Memory, windows: Sequence[tuple[Memory, datetime, datetime]]) -> bool:
    """Whether a message was said in a session whose summary is told."""
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
