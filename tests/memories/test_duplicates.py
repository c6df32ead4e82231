"""Near-duplicates: what counts as saying the same, and what never does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.app.blocking import BlockingMemories
from memoranda.errors import InvalidInput
from memoranda.memories.duplicates import contradict, jaccard

WORDS = st.lists(
    st.sampled_from(["red", "kite", "river", "stone", "garden", "Oslo", "7"]), min_size=1, max_size=8
)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Ann is 41 years old", "Ann is 42 years old"),
        ("The meeting is on 2024-05-01", "The meeting is on 2024-05-02"),
        ("The meeting is at 10:30", "The meeting is at 10:45"),
        ("It costs 1.5 euros", "It costs 1,5 euros"),
        ("A garden of two large old apple trees", "A garden of three large old apple trees"),
        ("She likes tea", "She does not like tea"),
        ("He can swim", "He cannot swim"),
        ("They will come", "They won't come"),
        ("They will come", "They won’t come"),
        ("He never smokes", "He smokes"),
        ("A trip with Bob", "A trip with Carol"),
        ("Ann likes green tea every single morning", "Bob likes green tea every single morning"),
        ("It rains. Ann likes green tea every morning", "It rains. Bob likes green tea every morning"),
        ("A long trip to the sea with Émile", "A long trip to the sea with Øystein"),
        ("A long trip to the sea with Анна", "A long trip to the sea with Ольга"),
        ("They moved to Oslo", "They moved to Rome"),
        ("There are 3 apples and 4 pears", "There are 3 apples and 5 pears"),
        ("No sugar in the coffee", "Sugar in the coffee"),
    ],
)
def test_a_number_a_date_a_name_or_a_negation_keeps_texts_apart(
    memories: BlockingMemories, a: str, b: str
) -> None:
    assert contradict(a, b)
    assert contradict(b, a)
    memories.add_many([a, b])
    assert memories.near_duplicates().data == []


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("The red kite flies over the hill", "the red kite flies over the hill!"),
        ("The red kite flies over the hill", "A red kite flying over the hills"),
        ("Ann likes green tea in the morning", "In the morning Ann likes green tea"),
        ("We met on 2024-05-01 in Oslo", "On 2024-05-01 we met in Oslo"),
    ],
)
def test_the_same_said_again_is_reported(memories: BlockingMemories, a: str, b: str) -> None:
    assert not contradict(a, b)
    first, second = (one.memory.id for one in memories.add_many([a, b]))
    (pair,) = memories.near_duplicates().data
    assert (pair.first, pair.second) == (first, second)
    assert pair.reason in ("cosine", "jaccard")
    assert pair.jaccard == pytest.approx(jaccard(a, b), abs=1e-4)


def test_jaccard_counts_stemmed_terms() -> None:
    assert jaccard("running dogs", "the dog runs") == 1.0
    assert jaccard("red kite", "red stone") == pytest.approx(1 / 3)
    assert jaccard("", "") == 0.0
    assert jaccard("the of and", "the of and") == 0.0


@settings(max_examples=21, deadline=None)
@given(a=WORDS, b=WORDS)
def test_likeness_has_no_direction(a: list[str], b: list[str]) -> None:
    first, second = " ".join(a), " ".join(b)
    assert jaccard(first, second) == jaccard(second, first)
    assert 0.0 <= jaccard(first, second) <= 1.0
    assert jaccard(first, first) == 1.0 or not set(a) - {"7"}
    assert contradict(first, second) == contradict(second, first)
    assert not contradict(first, first)


@pytest.mark.parametrize("other", [{"session_id": "t"}, {"user_id": "u"}, {"kind": "fact"}])
def test_another_scope_or_kind_is_no_duplicate(memories: BlockingMemories, other: dict[str, str]) -> None:
    memories.add("the red kite flies")
    memories.add("the red kite flies!", **other)
    assert memories.near_duplicates().data == []


def test_the_most_alike_come_first_and_the_limit_holds(memories: BlockingMemories) -> None:
    memories.add_many(
        [
            "the river stone garden kite hill",
            "the river stone garden kite hill lamp",
            "the river stone garden kite hill lamp door",
        ]
    )
    pairs = memories.near_duplicates().data
    alike = [max(pair.cosine or 0.0, pair.jaccard) for pair in pairs]
    assert len(pairs) == 3
    assert alike == sorted(alike, reverse=True)
    assert memories.near_duplicates(limit=1).data == [pairs[0]]


def test_a_selection_cuts_the_report(memories: BlockingMemories) -> None:
    memories.add_many(
        [{"content": text, "session_id": "s"} for text in ("red kite flies", "red kite flies!")]
    )
    memories.add_many(["blue kite swims", "blue kite swims!"])
    assert len(memories.near_duplicates().data) == 2
    (pair,) = memories.near_duplicates(scopes=["session:s"]).data
    assert memories.get(pair.first).session_id == "s"
    memories.update(pair.first, archived=True)
    assert memories.near_duplicates(scopes=["session:s"]).data == []


@pytest.mark.rows_in("sqlite")
def test_a_report_finds_pairs_far_apart(memories: BlockingMemories) -> None:
    first = memories.add("the walnut floorboard hides a necklace").memory.id
    memories.add_many([f"filler number{n} of many" for n in range(600)])
    last = memories.add("a necklace hides the walnut floorboard").memory.id
    pairs = memories.near_duplicates(limit=1000).data
    assert (first, last) in [(pair.first, pair.second) for pair in pairs]


def test_a_large_set_is_compared_page_by_page(
    memories: BlockingMemories, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every pair comes once, whatever the limit, also if the memory where a page ended is deleted meanwhile."""
    shapes = ("kite", "river", "stone", "garden")
    memories.add_many(
        [f"the {shape} of number{n % 2} is old" + "!" * n for n in range(7) for shape in shapes]
    )
    whole = memories.near_duplicates(limit=1000)
    assert (whole.compared, whole.has_more) == (28, False)
    assert len(whole.data) > 30
    monkeypatch.setattr("memoranda.memories.duplicates.COMPARED", 5)
    for limit in (10, 1000):
        found, compared, page = [], 0, memories.near_duplicates(limit=limit)
        while True:
            assert page.compared <= 5
            assert len(page.data) <= limit
            found += page.data
            compared += page.compared
            if not page.has_more:
                break
            page = memories.near_duplicates(limit=limit, after=page.last_id)
        assert compared == 28
        assert sorted((pair.second, pair.first) for pair in found) == sorted(
            (pair.second, pair.first) for pair in whole.data
        )
    first = memories.near_duplicates()
    assert first.last_id
    memories.delete(first.last_id)
    assert memories.near_duplicates(after=first.last_id).compared == 5
    with pytest.raises(InvalidInput, match="after"):
        memories.near_duplicates(after="nowhere")
    assert len(memories.near_duplicates(limit=1).data) == 1
