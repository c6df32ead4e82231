"""Whether the answer is among the results: what counts, and what a search, a context and a response report."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memoranda
from memoranda.app.blocking import BlockingMemoranda
from memoranda.store.retrieval.evidence import NONE, STRONG, Result, evidence, features, level_of

UNIT = st.floats(0, 1)
TEXTS = st.sampled_from(["the old bridge is closed", "a kettle", "the bridge by the mill", ""])
RESULTS = st.lists(
    st.builds(Result, TEXTS, st.sampled_from([None, "user", "Ana", "Ben"]), UNIT | st.none()), max_size=14
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


@given(RESULTS, st.sampled_from(["Where is the old bridge?", "What did Ana say?", "?", "the"]))
def test_a_probability_is_one_and_its_level_goes_by_it(results: list[Result], question: str) -> None:
    level, probability = evidence(question, results)
    assert 0.0 <= probability <= 1.0
    assert level == level_of(probability)
    assert evidence(question, results[:10]) == (level, probability), "only the first ten count"
    if results:
        shown = features(question, results)
        assert all(0.0 <= value <= 1.0 for value in shown)


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


def test_a_missing_similarity_is_guessed_from_the_terms() -> None:
    some = features("Where is the old bridge?", [Result("the old bridge is closed", None, None)])
    none = features("Where is the old bridge?", [Result("the kettle is loud", None, None)])
    assert some.similarity > none.similarity > 0.0


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
