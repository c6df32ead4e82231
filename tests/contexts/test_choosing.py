"""Which memories are told: what says the same, what a chunk or a session covers, variety. Values only."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.contexts import choosing
from memoranda.contexts.choosing import Chosen
from memoranda.store.retrieval.evidence import RELATED
from memoranda.text.instructions import TAG
from memoranda.text.terms import terms
from memoranda.types import Hit, Memory

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
LONG = "The lavender by the wall is cut back after it has flowered, in late summer"


def hit(content: str, score: float = 0.5, id: str = "", **fields: Any) -> Hit:
    given: dict[str, Any] = {"kind": "note", "occurred_at": NOON, **fields}
    memory = Memory(
        id=id or content, content=content, content_hash="", created_at=NOON, updated_at=NOON, **given
    )
    return Hit(memory=memory, score=score, similarity=score)


def chosen(*hits: Hit) -> list[Chosen]:
    return choosing.candidates(hits)


def ids(found: list[Chosen]) -> list[str]:
    return [one.memory.id for one in found]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (LONG, LONG.upper(), True),
        (LONG, f"{LONG} again", True),
        (LONG, LONG.replace("late summer", "winter days"), False),
        (LONG, LONG.replace("has", "has not"), False),
        (f"{LONG} of 2024", f"{LONG} of 2025", False),
        (f"Ann says that {LONG}", f"Bob says that {LONG}", False),
        ("", "", False),
    ],
)
def test_what_says_nearly_the_same_is_in_a_context_once(first: str, second: str, same: bool) -> None:
    """Above four fifths of all terms shared; but numbers, names and negations make two."""
    kept, gone = choosing.distinct(chosen(hit(first, id="1"), hit(second, id="2")))
    assert ids(kept) == (["1"] if same else ["1", "2"])
    assert [(one.id, one.why, one.of) for one in gone] == ([("2", "duplicate", "1")] if same else [])


def test_what_two_people_say_is_two() -> None:
    said = [
        hit("I love the old tea house", id=who, kind="message", metadata={"speaker": who})
        for who in ("Mara", "Bob")
    ]
    assert ids(choosing.distinct(chosen(*said))[0]) == ["Mara", "Bob"]


def test_exactly_four_fifths_is_not_the_same() -> None:
    assert not choosing.alike(frozenset("abcd"), frozenset("abcde"))
    assert choosing.alike(frozenset("abcdefghi"), frozenset("abcdefghij"))


def test_a_chunk_covers_the_memory_that_says_what_it_says() -> None:
    chunks = {"chunk_1": (f"{LONG}.", frozenset(terms(LONG)))}
    alike, other = chosen(hit(LONG), hit(LONG.replace("after", "not before")))
    assert choosing.covered(alike, chunks) == "chunk_1"
    assert choosing.covered(other, chunks) is None


def test_memories_and_sessions_in_one_ranking() -> None:
    """.45 of the score, .25 of recency with a half-life of 72 hours, .30 of the overlap; x 1.25 for a session, x .5 for
    a message in its window."""
    old = NOON - timedelta(hours=72)
    window = {"session_id": "s", "started_at": old.isoformat(), "ended_at": NOON.isoformat()}
    at: dict[str, Any] = {"occurred_at": old}
    memories = chosen(
        hit("nothing of it", 0.8, "out", **at),
        hit("the old bridge", 0.8, "in", kind="message", session_id="s", **at),
        hit("the old bridge", 0.8, "note", session_id="s", **at),
    )
    sessions = chosen(
        hit("a bridge", 0.4, "session", kind="session_summary", session_id="s", metadata=window, **at)
    )
    memories, sessions = choosing.reranked(memories, sessions, "Where is the old bridge?", NOON)
    assert {one.memory.id: one.score for one in [*memories, *sessions]} == pytest.approx(
        {
            "out": 0.45 * 0.8 + 0.125,
            "in": (0.45 * 0.8 + 0.125 + 0.30) * 0.5,
            "note": 0.45 * 0.8 + 0.125 + 0.30,
            "session": (0.45 * 0.4 + 0.125 + 0.15) * 1.25,
        }
    )
    assert ids(memories) == ["note", "out", "in"]
    assert [one.scores["merged.rank"] for one in [*memories, *sessions]] == [1, 3, 4, 2]
    assert memories[2].scores["merged.factor"] == 0.5


@pytest.mark.parametrize(("minutes", "inside"), [(-1, False), (0, True), (30, True), (31, False)])
def test_a_window_covers_messages_of_its_channel(minutes: int, inside: bool) -> None:
    told = {"started_at": NOON.isoformat(), "ended_at": (NOON + timedelta(minutes=30)).isoformat()}
    session = chosen(hit("s", id="s", kind="session_summary", channel_id="c", metadata=told))
    said = NOON + timedelta(minutes=minutes)
    for channel, counts in (("c", inside), ("d", False)):
        message = chosen(
            hit("m", id="m", kind="message", channel_id=channel, session_id="x", occurred_at=said)
        )
        ((one,), _) = choosing.reranked(message, session, "q", NOON)
        assert one.scores["merged.factor"] == (0.5 if counts else 1.0)


def test_what_is_before_the_model_is_not_told_again() -> None:
    found = chosen(
        hit("Fine, at noon.", id="a", kind="message"),
        hit("fine,  at NOON.", id="b", kind="fact"),
        hit("other", id="c"),
    )
    kept, gone = choosing.not_present(found, {"c"}, (), {choosing.plain("fine, at noon.")})
    assert ids(kept) == ["b"]
    assert [(one.id, one.why) for one in gone] == [("a", "present"), ("c", "present")]


def test_a_fact_on_messages_that_the_model_has_is_not_repeated() -> None:
    standing = {"tags": [TAG], "confirmed_at": datetime(2026, 5, 1, tzinfo=UTC)}
    found = chosen(
        hit("Ana likes tea", id="told", kind="fact", source_refs=["said", "resp_1"]),
        hit("Ana lives in Bonn", id="also elsewhere", kind="fact", source_refs=["said", "last year"]),
        hit("Ana has a dog", id="written", kind="fact"),
        hit("Ana wants metric units", id="rule", kind="fact", source_refs=["said"], **standing),
    )
    kept, gone = choosing.not_present(found, {"said", "something else"}, (), ())
    assert ids(kept) == ["also elsewhere", "written", "rule"]
    assert [(one.id, one.why) for one in gone] == [("told", "present")]
    assert ids(choosing.not_present(found, set(), {"said"}, ())[0]) == ids(found), (
        "a recent message may be cut"
    )


def test_variety_prefers_the_other_to_the_same_again() -> None:
    found = chosen(hit("a", 0.9), hit("a again", 0.89), hit("b", 0.5))
    east, north = np.array([1, 0], np.float32), np.array([0, 1], np.float32)
    vectors = {"a": east, "a again": east, "b": north}
    assert ids(choosing.varied(found, vectors, 2, 0.5)) == ["a", "b"]
    assert ids(choosing.varied(found, vectors, 2, 0.0)) == ["a", "a again"]
    assert choosing.varied([], {}, 2, 0.5) == []
    found[0].weak = True
    varied = choosing.varied(found, vectors, 2, 0.5)
    assert ids(varied) == ["b", "a"]
    assert [candidate.score for candidate in varied] == [1.0, 0.5]


def test_two_facts_on_one_matter_come_newest_first() -> None:
    facts = [
        hit(f"Tim lives in {city}", score, city, kind="fact", occurred_at=NOON + timedelta(days=day))
        for city, score, day in (("Oslo", 0.9, 0), ("Bonn", 0.7, 2), ("Rome", 0.5, 1))
    ]
    other = hit("Tim has a dog called Rex, who is old", 0.8, "dog", kind="fact")
    ranked = choosing.relevant_first(chosen(*facts, other), "Where does Tim live?")
    assert ids(ranked) == ["Bonn", "Rome", "Oslo", "dog"]


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.floats(0, 1) | st.none(), st.booleans(), st.integers(0, 9)), max_size=9
    )
)
def test_what_says_nothing_of_the_question_precedes_nothing_that_does(found: Any) -> None:
    hits = []
    for at, (score, similarity, named, day) in enumerate(found):
        one = hit(
            f"the bridge {at}" if named else f"a garden {at}", score, str(at),
            occurred_at=NOON + timedelta(days=day),
        )  # fmt: skip
        one.similarity = similarity
        one.relevance = RELATED if named or (similarity or 0) >= 0.5 else RELATED / 2
        hits.append(one)
    ranked = choosing.relevant_first(chosen(*hits), "Where is the old bridge?")
    about = ["bridge" in one.memory.content or (one.hit.similarity or 0) >= 0.5 for one in ranked]
    assert about == sorted(about, reverse=True)
    for is_about in (True, False):
        keys = [
            (-one.score, -one.memory.occurred_at.timestamp())
            for one, says in zip(ranked, about, strict=True)
            if says is is_about
        ]
        assert keys == sorted(keys)


@pytest.mark.parametrize(
    ("question", "told"),
    [("Where does Mara live?", ["fact"]), ("Since when does Mara live by the old bridge?", ["said"])],
)
def test_a_fact_and_the_message_it_rests_on_are_in_a_context_once(question: str, told: list[str]) -> None:
    found = chosen(
        hit("Mara lives in Bonn", id="fact", kind="fact", source_refs=["said", "elsewhere"]),
        hit("I live in Bonn, Mara said, by the old bridge", id="said", kind="message"),
    )
    kept, gone = choosing.unrepeated(found, question)
    assert ids(kept) == told
    (one,) = gone
    assert (one.why, [one.of]) == ("duplicate", told)


@pytest.mark.parametrize(("of_fact", "of_message"), [(0.2, 0.9), (0.9, 0.2)])
@pytest.mark.parametrize(
    ("question", "told"),
    [("Where does Mara live?", "fact"), ("Since when does Mara live by the old bridge?", "said")],
)
def test_of_a_fact_and_its_message_the_one_told_has_the_better_place(
    question: str, told: str, of_fact: float, of_message: float
) -> None:
    found = chosen(
        hit("Mara lives in Bonn", of_fact, "fact", kind="fact", source_refs=["said"]),
        hit("I live in Bonn, Mara said, by the old bridge", of_message, "said", kind="message"),
        hit("Mara lives with a cat", 0.5, "cat", kind="note"),
    )
    kept, _ = choosing.unrepeated(found, question)
    assert ids(choosing.relevant_first(kept, question)) == [told, "cat"]


def test_a_fact_in_place_of_its_message_keeps_its_own_scores() -> None:
    """It ranks by the better score and similarity of both."""
    found = chosen(
        hit("Mara lives in Bonn", 0.2, "fact", kind="fact", source_refs=["said"]),
        hit("I live in Bonn, Mara said", 0.9, "said", kind="message"),
        hit("Tim has a cat", 0.6, "cat"),
    )
    kept, _ = choosing.unrepeated(found, "Which town is home?")
    ranked = choosing.relevant_first(kept, "Which town is home?")
    assert [(one.memory.id, one.score, one.weak) for one in ranked] == [
        ("fact", 0.9, False),
        ("cat", 0.6, False),
    ]
    fact = ranked[0]
    assert (fact.hit.score, fact.hit.similarity) == (0.2, 0.2)
    assert (fact.ranking.score, fact.ranking.similarity) == (0.9, 0.9)
    assert fact.scores == {"search": 0.2, "similarity": 0.2, "replaced": 0.9}


@pytest.mark.parametrize("order", [("home", "bike", "said"), ("said", "bike", "home")])
def test_no_fact_is_left_out_for_a_message_that_is_left_out_for_another(order: tuple[str, ...]) -> None:
    message = "Mara said: I moved to Bonn, and bought a bike at Kramer"
    found = {
        "home": hit("Mara lives in Bonn", id="home", kind="fact", source_refs=["said"]),
        "bike": hit("Mara bought a bike at Kramer", id="bike", kind="fact", source_refs=["said"]),
        "said": hit(message, id="said", kind="message"),
    }
    kept, gone = choosing.unrepeated(
        chosen(*(found[id_] for id_ in order)), "Where has Mara bought the bike?"
    )
    assert ids(kept) == [id_ for id_ in order if id_ != "said"]
    assert [(one.id, one.of) for one in gone] == [("said", "bike")]


BONN, MOVED = "Mara said: I live in Bonn", "Mara said: I moved to Bonn, and bought a bike at Kramer"


@pytest.mark.parametrize(
    ("message", "told"),
    [(BONN, ["bike", "home"]), ("Mara said: the bike has a bell, here in Bonn", ["bike", "m2"])],
)
@pytest.mark.parametrize("first", ["bike", "home"])
def test_a_fact_whose_best_message_is_left_out_is_one_piece_with_the_next(
    message: str, told: list[str], first: str
) -> None:
    facts = [
        hit("Mara bought a bike at Kramer", 0.9, "bike", kind="fact", source_refs=["m1"]),
        hit("Mara lives in Bonn", 0.8, "home", kind="fact", source_refs=["m1", "m2"]),
    ]
    facts.sort(key=lambda fact: fact.memory.id != first)
    messages = [hit(MOVED, 0.7, "m1", kind="message"), hit(message, 0.95, "m2", kind="message")]
    kept, gone = choosing.unrepeated(chosen(*facts, *messages), "Where has Mara bought the bike?")
    assert sorted(ids(kept)) == told
    left = {"m2", "home"}.difference(told)
    assert {(one.id, one.of) for one in gone} == {("m1", "bike"), *((id_, told[1]) for id_ in left)}
    assert [one.score for one in kept if one.memory.id == told[1]] == [0.95]


def test_no_fact_is_left_out_for_a_message_that_is_left_out_later() -> None:
    """`home` takes the place of m2 once m1 is left out; `move` rests on m2, too."""
    found = chosen(
        hit("They moved in May", id="move", kind="fact", source_refs=["m2"]),
        hit("Mara lives in Bonn", id="home", kind="fact", source_refs=["m1", "m2"]),
        hit("Mara bought a bike at Kramer", id="bike", kind="fact", source_refs=["m1"]),
        hit(MOVED, id="m1", kind="message"),
        hit(BONN, id="m2", kind="message"),
    )
    kept, gone = choosing.unrepeated(found, "Where has Mara bought the bike?")
    assert ids(kept) == ["move", "home", "bike"]
    assert {(one.id, one.of) for one in gone} == {("m1", "bike"), ("m2", "home")}
