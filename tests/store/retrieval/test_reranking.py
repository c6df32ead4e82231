"""Scores through the product: they add up, they see what their subject may see, and off is off."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memoranda.app.blocking import BlockingMemoranda, BlockingMemories
from memoranda.store.retrieval.scoring import PARTS
from memoranda.types import Hit, Subject

DAY = datetime(2023, 5, 8, 10, tzinfo=UTC)
TALK = [
    ("Ana", "Did you see the heron?"),
    ("Ben", "Yes, on the jetty, at noon."),
    ("Ana", "I bought a kayak yesterday."),
    ("Ben", "The heron is a bird with long legs, my cousin told me so."),
    ("Ana", "Lovely weather."),
]


def talk(memories: BlockingMemories, **more: Any) -> list[str]:
    return [
        added.memory.id
        for added in memories.add_many(
            [
                {
                    "content": text,
                    "kind": "message",
                    "session_id": "s",
                    "metadata": {"speaker": who},
                    "occurred_at": DAY + timedelta(minutes=n),
                    **more,
                }
                for n, (who, text) in enumerate(TALK)
            ]
        )
    ]


def plain(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.memory.id, hit.score) for hit in hits]


def test_every_part_of_a_score_adds_up(memories: BlockingMemories) -> None:
    talk(memories)
    memories.add("A heron was seen on the jetty in 1990.", kind="note", session_id="s")
    found = memories.search(
        "Where was the heron that Ben saw?",
        hierarchy={"session": "s"},
        weights={"session": 0.8},
        explain=True,
    ).results
    assert len(found) == 6
    for place, hit in enumerate(found, start=1):
        told = hit.explanation
        assert told is not None
        assert (told.preset, told.rank_after) == ("people", place)
        assert told.added.keys() <= {*PARTS}
        assert told.added["intercept"] < 0 < told.added["similarity"]
        assert ("sitting" in told.added) == (hit.memory.kind == "message")
        total = sum(told.added.values())
        assert hit.score == pytest.approx(told.scope_weight / (1 + math.exp(-total)), abs=1e-5)
        assert 0.0 <= hit.score <= 1.0
        assert f"{told.scope_weight:g} x logistic" in told.formula
    assert sorted(hit.explanation.rank_before for hit in found if hit.explanation) == [1, 2, 3, 4, 5, 6]


def test_what_stands_beside_a_message_brings_it_up(memories: BlockingMemories) -> None:
    """`Yes, on the jetty` answers a question about a heron though it names none."""
    ids = talk(memories)
    asked = "Where did Ben see the heron?"
    with_it = [hit.memory.id for hit in memories.search(asked, scopes=["session:s"]).results]
    without = [hit.memory.id for hit in memories.search(asked, scopes=["session:s"], rerank="off").results]
    assert with_it.index(ids[1]) < without.index(ids[1])


def test_off_counts_similarity_and_keywords_alone(rc: BlockingMemoranda) -> None:
    """What differs between two scores is their similarity and their BM25, which counts relative to the best one."""
    talk(rc.memories)
    question = "Where did Ben see the heron in May 2023?"
    found = rc.memories.search(question, rerank="off", recency="off", times=False, enrich=False, explain=True)
    told = [hit.explanation for hit in found.results if hit.explanation]
    assert len(told) == len(TALK)
    assert {one.preset for one in told} == {None}
    best = max(told, key=lambda one: one.bm25 or 0.0)
    for one in told:
        shared = {"similarity", "coverage", "behind"}
        assert {name: part for name, part in one.added.items() if name not in shared} == {
            name: part for name, part in best.added.items() if name not in shared
        }
        assert one.added.get("coverage", 0.0) == pytest.approx(
            best.added["coverage"] * (one.bm25 or 0.0) / (best.bm25 or 1.0)
        )
    similar = [(one.similarity, one.added.get("similarity", 0.0)) for one in told]
    assert sorted(similar) == sorted(similar, key=lambda pair: pair[1])


def test_one_side_alone_ranks_by_that_side(memories: BlockingMemories) -> None:
    memories.add_many([f"note {n} about the heron and jetty {n % 3}" for n in range(30)])
    talk(memories)
    for mode, part in (("dense", "cosine"), ("keyword", "bm25")):
        found = memories.search("heron on the jetty", mode=mode, explain=True).results
        assert found == memories.search("heron on the jetty", mode=mode, rerank="off", explain=True).results
        values = [getattr(hit.explanation, part) for hit in found]
        assert values == sorted(values, reverse=True)
        assert all(0.0 < hit.score < 1.0 for hit in found)


def test_equal_texts_score_the_same_whatever_else_is_found(memories: BlockingMemories) -> None:
    """A score is no place in a range: what is relevant in one search is so in another."""
    memories.add("The heron nests at the mill.", session_id="a")
    memories.add("The heron nests at the mill.", session_id="b")
    memories.add("The heron is grey.", session_id="b")

    def score(session: str) -> float:
        return memories.search("Where does the heron nest?", scopes=[f"session:{session}"]).results[0].score

    both = memories.search("Where does the heron nest?").results
    assert both[0].score == both[1].score > both[2].score
    assert score("b") == pytest.approx(score("a"), abs=0.1)


def test_nobody_elses_words_have_a_say(rc: BlockingMemoranda) -> None:
    """A neighbour that the subject may not see, that has ended, or that the search leaves out, is not looked at."""
    for n, (user, text) in enumerate([("ana", "Did the heron land?"), ("ben", "Yes, on the jetty.")]):
        rc.memories.add(
            text,
            kind="message",
            session_id="s",
            user_id=user,
            metadata={"speaker": user.title(), "who": user},
            occurred_at=DAY + timedelta(minutes=n),
        )

    def around(memories: BlockingMemories, **how: Any) -> tuple[float, float]:
        hits = memories.search("Where did the heron land?", scopes=["session:s"], explain=True, **how).results
        added = next(
            hit.explanation.added for hit in hits if "jetty" in hit.memory.content and hit.explanation
        )
        return added.get("around", 0.0), added.get("answers", 0.0)

    seen = around(rc.memories)
    alone = around(rc.as_subject(Subject(user_id="ben", role="member")).memories)
    assert alone[0] == 0 < seen[0]
    assert alone[1] == 0 < seen[1]
    assert around(rc.memories, filters={"who": "ben"}) == pytest.approx(alone)
    other = rc.as_subject(Subject(tenant_id="other")).memories
    other.add(
        "Yes, on the jetty.", kind="message", session_id="s", metadata={"speaker": "Ben"}, occurred_at=DAY
    )
    assert around(other) == pytest.approx(alone)


def test_a_time_that_is_asked_about_counts(memories: BlockingMemories) -> None:
    for month in (2, 5, 8):
        memories.add(
            f"We went to the lake with {month} friends.",
            kind="message",
            channel_id="c",
            metadata={"speaker": "Ana"},
            occurred_at=datetime(2023, month, 9, tzinfo=UTC),
        )
    as_of = datetime(2023, 9, 1, tzinfo=UTC)

    def first(question: str, **how: Any) -> int:
        hits = memories.search(question, scopes=["channel:c"], rerank="people", **how).results
        assert len(hits) == 3
        return hits[0].memory.occurred_at.month

    for question, month in (
        ("Who went to the lake last May?", 5),
        ("the lake in February", 2),
        ("lake on 9 August 2023", 8),
    ):
        assert first(question, as_of=as_of) == month
    scores = [
        hit.explanation.added.get("when", 0.0)
        for hit in memories.search("lake last May", times=False, explain=True).results
        if hit.explanation
    ]
    assert set(scores) == {0.0}


def test_unused_facts_fade_and_nothing_else_does(memories: BlockingMemories) -> None:
    fact = memories.add("The heron sleeps on one leg.", kind="fact").memory
    note = memories.add("The heron sleeps on one leg, as is known.", kind="note").memory
    later = datetime.now(UTC) + timedelta(days=90)

    def found(**how: Any) -> dict[str, Hit]:
        return {
            hit.memory.id: hit for hit in memories.search("heron sleeps leg", explain=True, **how).results
        }

    now, then, off = found(), found(as_of=later), found(as_of=later, recency="off")
    assert then[fact.id].explanation.factors["decay"] == pytest.approx(0.5, abs=1e-3)  # type: ignore[union-attr]
    assert then[fact.id].score == pytest.approx(now[fact.id].score / 2, rel=1e-2)
    assert then[note.id].score == pytest.approx(off[note.id].score)
    assert off[fact.id].score == pytest.approx(now[fact.id].score, rel=1e-3)
    assert found(as_of=later + timedelta(days=200))[fact.id].score == 0.0
    memories.search("heron sleeps leg", limit=2, count_access=True)
    assert found()[fact.id].explanation.factors["decay"] == pytest.approx(1.0, abs=1e-3)  # type: ignore[union-attr]


def test_importance_and_age_boost_within_bounds(memories: BlockingMemories) -> None:
    old = memories.add("The heron nests here.", occurred_at=DAY).memory.id
    dear = memories.add("The heron nests here", occurred_at=DAY, importance=3, session_id="x").memory.id
    vast = memories.add("The heron nests here!", importance=100, session_id="y").memory.id
    hits = {
        hit.memory.id: hit.explanation
        for hit in memories.search("heron nests", recency="boost", explain=True).results
    }
    factors = {id_: told.factors["boost"] for id_, told in hits.items() if told}
    assert factors == pytest.approx({old: 1.0, dear: 1.15, vast: 1.25}, abs=1e-3)
    assert max(hit.score for hit in memories.search("heron nests", recency="boost").results) <= 1.0


def likely(hit: Hit) -> float:
    assert hit.explanation is not None
    return 1 / (1 + math.exp(-sum(hit.explanation.added.values())))


def test_a_boost_changes_no_score_but_its_own(memories: BlockingMemories) -> None:
    """Where it makes more than 1 of the best one, the others keep their scores."""
    memories.add("The heron nests here.", occurred_at=DAY)
    vast = memories.add("The heron nests here", importance=100, session_id="y").memory.id
    first, second = memories.search("heron nests", recency="boost", explain=True).results
    assert first.memory.id == vast
    assert first.score == pytest.approx(min(1.0, 1.25 * likely(first)), abs=1e-5)
    assert second.score == pytest.approx(likely(second), abs=1e-5)


def test_hits_of_a_deeper_search_are_scored_as_the_first_ones(memories: BlockingMemories) -> None:
    memories.add_many([f"The heron of pond {n} nests in tree {n * 7}." for n in range(130)])
    found = memories.search("Where does the heron of pond 12 nest?", limit=120, explain=True).results
    assert len(found) == 120
    scores = [hit.score for hit in found]
    assert scores == sorted(scores, reverse=True)
    assert all(hit.explanation and hit.explanation.added for hit in found)
    assert all(hit.score <= likely(hit) + 1e-5 for hit in found)
    assert [hit.score for hit in found[:50]] == pytest.approx([likely(hit) for hit in found[:50]], abs=1e-5)


def test_sessions_and_messages_merge_as_their_source_has_it(memories: BlockingMemories) -> None:
    inside = memories.add("The heron landed.", kind="message", session_id="s", occurred_at=DAY).memory.id
    summary = memories.add(
        "They saw a heron land.", kind="session_summary", session_id="s", occurred_at=DAY
    ).memory.id
    outside = memories.add("A heron, again.", kind="message", session_id="t", occurred_at=DAY).memory.id
    of_channel = memories.add("heron talk", kind="message", channel_id="c", occurred_at=DAY).memory.id
    window = {"started_at": (DAY - timedelta(hours=1)).isoformat(), "ended_at": DAY.isoformat()}
    memories.add(
        "Of the heron in c.", kind="session_summary", channel_id="c", occurred_at=DAY, metadata=window
    )
    hits = memories.search(
        "heron landed", rerank="sessions", as_of=DAY + timedelta(hours=72), explain=True, recency="off"
    ).results
    told = {hit.memory.id: hit.explanation for hit in hits if hit.explanation}
    assert {
        id_: one.factors["kind"] for id_, one in told.items() if id_ in (inside, summary, outside, of_channel)
    } == {
        inside: 0.5,
        summary: 1.25,
        outside: 1.0,
        of_channel: 0.5,
    }
    base = {id_: one.fused for id_, one in told.items()}
    assert told[inside].added["recency"] == pytest.approx(0.125)
    assert told[inside].added["base"] == pytest.approx(0.45 * base[inside])
    assert told[inside].added["overlap"] == pytest.approx(0.3)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_weights_of_a_file_are_used(home: Any, tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    path.write_text(json.dumps({"people": {"intercept": -3, "weights": {"asks": 5.0}}}))
    with home.open(search={"rerank_weights": str(path)}) as opened:
        ids = talk(opened.memories)
        first = opened.memories.search("lovely weather", scopes=["session:s"], explain=True).results[0]
        assert first.memory.id == ids[0]
        assert first.explanation.added == {"intercept": -3.0, "asks": 5.0}
    with home.open("other", search={"rerank": "off", "recency": "off"}) as opened:
        talk(opened.memories)
        hits = opened.memories.search("lovely weather", scopes=["session:s"], explain=True).results
        assert {hit.explanation.preset for hit in hits} == {None}
