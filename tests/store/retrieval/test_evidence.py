"""Whether the answer is among the results: what counts, and what a search, a context and a response report."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memoranda
from memoranda.app.blocking import BlockingMemoranda
from memoranda.store.retrieval.evidence import NONE, STRONG, Result, evidence, features, level_of

UNIT = st.floats(0, 1)
TEXTS = st.sampled_from(["the old bridge is closed", "a kettle", "the bridge by the mill", ""])
RESULTS = st.lists(
    st.builds(
        Result, TEXTS, st.sampled_from([None, "user", "Ana", "Ben"]), UNIT | st.none(), UNIT | st.none()
    ),
    max_size=14,
)
TALK = [
    "I moved to Lisbon in March because of my new job at the aquarium.",
    "Biscuit, my beagle, is afraid of thunder.",
    "My sister Clara plays the cello in an orchestra.",
    "We painted the kitchen green last weekend.",
    "I am allergic to walnuts, so no cake with nuts please.",
]


def test_no_results_are_no_evidence() -> None:
    assert evidence("Where is the bridge?", []) == ("none", 0.0)


@given(
    RESULTS,
    st.sampled_from(["Where is the old bridge?", "What did Ana say?", "?", "the"]),
    st.none() | st.integers(0, 99),
)
def test_a_probability_is_one_and_its_level_goes_by_it(
    results: list[Result], question: str, searched: int | None
) -> None:
    level, probability = evidence(question, results, searched)
    assert 0.0 <= probability <= 1.0
    assert level == level_of(probability)
    assert evidence(question, results[:10], searched) == (level, probability), "only the first ten count"
    if results:
        shown = features(question, results, searched)
        assert -14.0 < shown.best < 14.0
        assert 0.0 <= shown.coverage <= 1.0
        assert shown.other in (0.0, 1.0)


@pytest.mark.parametrize(
    ("probability", "level"),
    [(0.0, "none"), (NONE - 1e-4, "none"), (NONE, "weak"), (STRONG - 1e-4, "weak"), (STRONG, "strong")],
)
def test_levels_begin_where_they_are_said_to(probability: float, level: str) -> None:
    assert level_of(probability) == level


def test_what_is_more_similar_or_has_more_of_the_terms_is_more_likely() -> None:
    def chance(text: str, similarity: float) -> float:
        filler = [Result("the kettle is loud", None, 0.4)] * 3
        return evidence("Where is the old bridge?", [Result(text, None, similarity), *filler]).probability

    assert chance("the old bridge is closed", 0.8) > chance("the old bridge is closed", 0.6)
    assert chance("the old bridge is closed", 0.7) > chance("a new road is closed", 0.7)


def test_what_another_speaker_says_answers_less() -> None:
    def chance(first: str) -> float:
        return evidence(
            "What did Ana do after the charity race?",
            [
                Result("I thought about myself after the charity race", first, 0.8),
                Result("I met a friend", "Ana", 0.6),
                Result("Good luck at the weekend", "Ben", 0.55),
            ],
        ).probability

    assert chance("Ana") > chance("Ben")


def test_of_few_texts_less_similarity_is_enough() -> None:
    def chance(similarity: float, searched: int | None) -> float:
        results = [Result("I have moved to Lisbon.", None, similarity)]
        return evidence("Where do I live?", results, searched).probability

    few = [chance(0.65, searched) for searched in (1, 10, 30, 49)]
    assert few == sorted(few, reverse=True)
    assert few[-1] > chance(0.65, 50) == chance(0.65, 500) == chance(0.65, None)
    assert chance(0.65, 1) > NONE > chance(0.65, None)
    assert chance(0.3, 1) < NONE


def test_a_missing_similarity_is_guessed_from_the_terms() -> None:
    some = features("Where is the old bridge?", [Result("the old bridge is closed", None, None)])
    none = features("Where is the old bridge?", [Result("the kettle is loud", None, None)])
    assert some.best > none.best


def test_a_question_answers_none() -> None:
    asked = "How heavy is a blue whale?"
    again = [Result(f"{asked} And how long?", "user", 1.0), Result(asked, "user", 1.0)]
    assert evidence(asked, again) == ("none", 0.0)
    told = Result("A blue whale is about 150 tonnes heavy. Why?", "assistant", 0.8)
    assert evidence(asked, [*again, told]).level == "strong"


@pytest.fixture(scope="module")
def product() -> Iterator[BlockingMemoranda]:
    with memoranda.open(":memory:") as opened:
        opened.memories.add_many([{"content": text, "kind": "message", "role": "user"} for text in TALK])
        yield opened


@pytest.mark.parametrize(
    ("question", "levels"),
    [
        ("Which city did I move to because of my new job?", {"strong"}),
        ("What is my beagle afraid of?", {"strong"}),
        ("What is the boiling point of mercury?", {"none"}),
        ("How many seats does the parliament of Norway have?", {"none"}),
    ],
)
def test_a_search_and_a_context_say_whether_they_answer(
    product: BlockingMemoranda, question: str, levels: set[str]
) -> None:
    found = product.memories.search(question)
    made = product.context(question)
    assert found.evidence in levels
    assert made.evidence in levels
    assert level_of(found.evidence_probability) == found.evidence


@pytest.mark.parametrize(
    ("fields", "searched"),
    [
        ({}, len(TALK)),
        ({"limit": 1}, len(TALK)),
        ({"threshold": 0.9}, len(TALK)),
        ({"mode": "dense"}, len(TALK)),
        ({"mode": "keyword"}, None),
        ({"tags": ["nowhere"]}, 0),
        ({"hierarchy": {"user_id": "mara"}}, len(TALK)),
    ],
)
def test_a_search_says_how_many_memories_it_compared(
    product: BlockingMemoranda, fields: dict[str, Any], searched: int | None
) -> None:
    assert product.memories.search("Where is the kitchen?", **fields).searched == searched


def test_a_search_in_an_index_that_is_behind_does_not_say_how_many_memories_there_are(
    product: BlockingMemoranda, monkeypatch: pytest.MonkeyPatch
) -> None:
    derived = product.inner.core.store.derived
    monkeypatch.setattr(derived, "follow", lambda tenant: {"index"})
    found = product.memories.search("Where is the kitchen?")
    assert (found.searched, found.degraded) == (None, ["index"])


def test_a_search_in_many_memories_does_not_say_how_many_there_are() -> None:
    with memoranda.open(":memory:") as rc:
        rc.memories.add_many([f"The {n}th bell rings at noon" for n in range(49)])
        assert rc.memories.search("Which bell?").searched == 49
        rc.memories.add("The last bell rings at noon")
        assert rc.memories.search("Which bell?").searched is None


def test_the_only_memory_answers_a_question_in_other_words() -> None:
    with memoranda.open(":memory:") as rc:
        rc.observe({"content": "I have moved to Lisbon.", "role": "user"}, user_id="mara", session_id="s")
        assert rc.memories.search("Where do I live?").evidence != "none"
        assert rc.context("Where do I live?").evidence != "none"
        assert rc.memories.search("How tall is the Eiffel tower?").evidence == "none"


def test_a_search_in_stores_says_whether_it_answers(product: BlockingMemoranda) -> None:
    stores = product.knowledge.stores
    store = stores.create(name="talk").id
    put = stores.upload(store, "\n\n".join(TALK).encode(), "talk.txt")
    stores.wait_file(store, put.id)
    assert stores.search(store, "What is my beagle afraid of?").evidence == "strong"
    found = stores.search(store, ["boiling point of mercury", "seats in the parliament of Norway"])
    assert found.evidence == "none"
    assert found.data
    both = stores.search(store, ["boiling point of mercury", "What is my beagle afraid of?"])
    assert both.evidence == "strong", "the query that they answer counts"


def test_another_order_is_no_evidence(product: BlockingMemoranda) -> None:
    product.memories.add_many(
        [f"The status of order ORD-12{n} is that it was shipped to Ada." for n in range(100, 120)]
    )
    for asked in ("ORD-12105", "ord 12105", "ORD12105"):
        assert product.memories.search(f"What is the status of order {asked}?").evidence == "strong"
    found = product.memories.search("What is the status of order ORD-99105?")
    assert found.results
    assert found.evidence == "none"


def test_another_error_code_is_weak_evidence(product: BlockingMemoranda) -> None:
    product.memories.add_many(
        [f"What error E0{n} means: the pump number {n} is too warm." for n in range(1, 7)]
    )
    assert product.memories.search("What does error E04 mean?").evidence == "strong"
    other = product.memories.search("What does error E09 mean?")
    assert other.evidence == "weak"
    assert all(hit.score < 0.5 for hit in other.results)


def test_a_fact_about_the_speaker_that_is_named_is_evidence() -> None:
    fact = Result("Mara is allergic to hazelnuts", None, 0.9)
    said = Result("I bought bread", "Mara", 0.3)
    other = Result("Jonas is allergic to cats", None, 0.9)
    asked = "What is Mara allergic to?"
    assert evidence(asked, [fact, said]).level == "strong"
    assert evidence(asked, [other, said]).probability < evidence(asked, [fact, said]).probability
    assert features(asked, [fact, said]).best > features(asked, [other, said]).best


def test_several_that_may_be_relevant_are_more_likely_to_answer() -> None:
    def chance(*scores: float) -> float:
        return evidence("heron?", [Result("tea", None, 0.5, score) for score in scores]).probability

    assert chance(0.3, 0.3) > chance(0.3) > chance(0.2)
    assert chance(0.9) > STRONG > NONE > chance(0.02)


def test_evidence_is_not_of_what_a_search_prefers(product: BlockingMemoranda) -> None:
    """A fact that nobody used for half a year, and one of a scope that counts little, answer as well as ever."""
    search = product.memories.search
    product.memories.add("Otto has called his sailing boat Pelican.", kind="fact", agent_id="a")
    asked = "What is the name of Otto's boat?"
    now = search(asked)
    assert now.evidence == "strong"
    later = search(asked, as_of=datetime.now(UTC) + timedelta(days=170))
    little = search(asked, hierarchy={"agent": "a"}, weights={"agent": 0.05})
    for found in (later, little):
        assert found.evidence_probability == pytest.approx(now.evidence_probability, abs=1e-3)
        assert found.results[0].score < now.results[0].score / 10
        assert found.results[0].relevance == pytest.approx(now.results[0].relevance, abs=1e-3)
    told = product.context(asked, as_of=datetime.now(UTC) + timedelta(days=170))
    assert (told.evidence, "Pelican" in told.text) == ("strong", True)
