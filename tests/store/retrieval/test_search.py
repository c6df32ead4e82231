"""Searching and listing: floors, limits, validity, scores that add up, pages that miss nothing."""

from __future__ import annotations

import itertools
import math
import random
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.app.blocking import BlockingMemoranda, BlockingMemories
from memoranda.providers.embeddings.base import Embedded, Task
from memoranda.providers.embeddings.hash import HashEmbedder
from memoranda.types import Hit, Query, Subject

DAY = datetime(2024, 5, 1, 12, tzinfo=UTC)
pytestmark = pytest.mark.rows_in("sqlite", "postgresql", "postgresql-local")


def at_angle(cosine: float) -> np.ndarray[Any, Any]:
    """A vector with this cosine to the first axis, neither of them of length 1."""
    vector = np.zeros(64, np.float32)
    vector[0], vector[1] = cosine, np.sqrt(1 - cosine * cosine)
    return vector * np.float32(7.5)


class Axis(HashEmbedder):
    """Every question is the first axis."""

    def compute(self, texts: Sequence[str], task: Task) -> Embedded:
        if task == "document":
            return super().compute(texts, task)
        return Embedded(np.stack([at_angle(1.0)] * len(texts)), len(texts))


@pytest.fixture
def ladder(rc: BlockingMemoranda) -> BlockingMemories:
    """Eleven rows whose cosines to any question are 1.0, 0.9, ..., 0.0, and no word in common with it."""
    for step in range(11):
        rc.memories.add(
            f"rung {step}", embedding=at_angle(step / 10), metadata={"step": step}, tags=[f"t{step}"]
        )
    rc.inner.core.embedder.inner = Axis(64, 1)
    return rc.memories


def steps(hits: list[Hit]) -> list[int]:
    return [hit.memory.metadata["step"] for hit in hits]


# --- floors and limits ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("threshold", "lowest"), [(None, 0), (0.0, 0), (0.05, 1), (0.45, 5), (0.55, 6), (0.99, 10), (1e-9, 1)]
)
def test_a_threshold_is_a_floor_on_the_cosine(
    ladder: BlockingMemories, threshold: float | None, lowest: int
) -> None:
    for mode in ("dense", "hybrid"):
        found = ladder.search("question", threshold=threshold, limit=100, mode=mode).results
        assert steps(found) == list(range(10, lowest - 1, -1))
        for hit in found:
            assert hit.similarity == pytest.approx(hit.memory.metadata["step"] / 10, abs=1e-5)


def test_none_takes_the_configured_floor_and_zero_is_no_floor(home: Any) -> None:
    with home.open(search={"default_threshold": 0.5, "default_limit": 3}) as opened:
        opened.memories.add("alpha beta")
        for n in range(6):
            opened.memories.add(f"gamma delta{n}")
        assert len(opened.memories.search("alpha beta").results) == 1
        assert len(opened.memories.search("alpha beta", threshold=0).results) == 3
        assert len(opened.memories.search("alpha beta", threshold=0.0, limit=100).results) == 7
        assert len(opened.memories.search(Query(query="alpha beta", threshold=0.0, limit=5)).results) == 5


SPEAKERS, WORDS = (
    ("Ada", "Ben", "Cy"),
    ["tea", "rain", "boat", "kite", "lamp", "moss", "fern", "dune", "wolf", "pear"],
)
LIMITS = (1, 3, 10, 13, 50, 60, 140, 1_000)


@settings(max_examples=8, deadline=None)
@given(
    count=st.integers(1, 150),
    seed=st.integers(0, 1_000),
    how=st.sampled_from(
        [
            {},
            {"mode": "dense"},
            {"mode": "keyword"},
            {"threshold": 0.3},
            {"rerank": "sessions"},
            {"recency": "boost"},
            {"hierarchy": {"session": "s1", "user": "ada"}},
        ]
    ),
)
def test_hits_and_scores_do_not_depend_on_the_limit(
    anew: Any, count: int, seed: int, how: dict[str, Any]
) -> None:
    """The hits of a small limit are the first ones of a greater one, and what is said of them is the same."""
    memories, rng = anew(), random.Random(seed)
    memories.add_many(
        {
            "content": f"{rng.choice(SPEAKERS)} {n}: {' '.join(rng.choices(WORDS, k=4))}",
            "kind": rng.choice(["message", "note", "fact"]),
            "session_id": rng.choice(["s1", "s2", None]),
            "user_id": rng.choice(["ada", None]),
            "metadata": {"speaker": rng.choice(SPEAKERS)},
            "occurred_at": DAY + timedelta(minutes=n),
        }
        for n in range(count)
    )
    # a commit between two searches adds up the scores of words in another order: the sixth digit may change
    memories.inner._core.store.words.compact()
    found = [memories.search("Ada tea rain", as_of=DAY + timedelta(days=9), limit=n, **how) for n in LIMITS]
    shown = [[(hit.memory.id, hit.score, hit.similarity) for hit in one.results] for one in found]
    for few, limit in zip(shown, LIMITS, strict=True):
        assert few == shown[-1][:limit]
    assert len({(one.evidence, one.evidence_probability) for one in found}) == 1
    scores = [hit.score for hit in found[-1].results]
    assert scores == sorted(scores, reverse=True)
    assert len(shown[-1]) == len({id_ for id_, _, _ in shown[-1]})


def test_conditions_go_before_the_limit(ladder: BlockingMemories) -> None:
    for mode in ("dense", "hybrid"):
        assert steps(ladder.search("question", limit=1, mode=mode, filters={"step": 2}).results) == [2]
        assert steps(ladder.search("question", limit=1, mode=mode, tags=["t0"]).results) == [0]
        lower = {"type": "lt", "key": "step", "value": 4}
        assert steps(ladder.search("question", limit=2, mode=mode, filters=lower).results) == [3, 2]
    assert steps(ladder.search("rung", limit=1, mode="keyword", filters={"step": 2}).results) == [2]
    former = ladder.search("rung", limit=1, mode="words", filters={"step": 2})
    assert steps(former.results) == [2], "`words` is what `keyword` was called"
    assert steps(ladder.search("question", limit=3, threshold=0.15, filters=lower).results) == [3, 2]


def test_more_rows_than_candidates_are_all_reachable(memories: BlockingMemories) -> None:
    memories.add_many([f"heap {n}" for n in range(900)])
    for mode in ("dense", "keyword", "hybrid"):
        assert len(memories.search("heap", limit=1000, mode=mode).results) == 900
        last = memories.search("heap", limit=1, mode=mode, filters={"x": None}).results
        assert len(last) == 1


def test_a_query_of_nothing_known_finds_by_meaning_only(memories: BlockingMemories) -> None:
    memories.add_many(["alpha", "beta"])
    assert memories.search("the and of", mode="keyword").results == []
    assert memories.search("!!! ???").degraded == []
    assert memories.search("zzzz", mode="keyword").results == []


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "a AND b OR",
        "content:x",
        "(((",
        "x*",
        "~x^9",
        "-x +y",
        "\\",
        "日本",
        "👩‍👩‍👧",
        "\x00",
        "a\nb",
        "'; DROP",
        "%_",
        "[1 TO 2]",
    ],
)
def test_any_string_is_a_query(memories: BlockingMemories, query: str) -> None:
    memories.add("content x y a b")
    for mode in ("dense", "keyword", "hybrid"):
        assert memories.search(query, mode=mode).degraded == []


# --- validity ------------------------------------------------------------------------------------------


def test_as_of_asks_the_past(memories: BlockingMemories) -> None:
    memories.add(
        "lives in Oslo", kind="fact", valid_from=DAY, invalid_at=DAY + timedelta(days=100), occurred_at=DAY
    )
    memories.add(
        "lives in Rome",
        kind="fact",
        valid_from=DAY + timedelta(days=100),
        occurred_at=DAY + timedelta(days=100),
    )
    memories.add("likes tea", occurred_at=DAY + timedelta(days=50))
    was = DAY - timedelta(days=9)  # told later than it was so
    memories.add(
        "lives in Pisa", kind="fact", valid_from=was, invalid_at=DAY, occurred_at=DAY + timedelta(days=120)
    )

    def lived(as_of: datetime | None) -> set[str]:
        ways = [
            {hit.memory.content for hit in memories.search("lives tea", mode=mode, as_of=as_of).results}
            for mode in ("dense", "keyword", "hybrid")
        ]
        listed = {row.content for row in memories.list(as_of=as_of).data}
        assert ways == [listed] * 3
        return listed

    assert lived(None) == {"lives in Rome", "likes tea"}
    assert lived(was - timedelta(seconds=1)) == set()
    assert lived(DAY - timedelta(seconds=1)) == {"lives in Pisa"}
    assert lived(DAY) == {"lives in Oslo"}
    assert lived(DAY + timedelta(days=99)) == {"lives in Oslo", "likes tea"}
    assert lived(DAY + timedelta(days=100)) == {"lives in Rome", "likes tea"}


def test_what_will_be_valid_is_not_yet(memories: BlockingMemories) -> None:
    soon = datetime.now(UTC) + timedelta(days=1)
    memories.add("from tomorrow", valid_from=soon)
    assert memories.search("tomorrow").results == []
    assert len(memories.search("tomorrow", as_of=soon).results) == 1


def test_an_update_ends_a_row_in_every_index(memories: BlockingMemories) -> None:
    id_ = memories.add("works at the mill").memory.id
    memories.update(id_, invalid_at=DAY)
    for mode in ("dense", "keyword", "hybrid"):
        assert memories.search("works mill", mode=mode).results == []
    assert memories.get(id_).invalid_at == DAY
    memories.update(id_, invalid_at=None)
    assert len(memories.search("works mill").results) == 1


# --- scores --------------------------------------------------------------------------------------------


def test_an_explanation_adds_up(memories: BlockingMemories) -> None:
    rng = np.random.default_rng(3)
    words = [f"w{n}" for n in range(40)]
    memories.add_many([" ".join(rng.choice(words, 6)) for _ in range(45)])
    found = memories.search("w1 w2 w3", limit=50, explain=True)
    for n, hit in enumerate(found.results):
        one = hit.explanation
        assert one is not None
        assert hit.score == pytest.approx(1 / (1 + math.exp(-sum(one.added.values()))), abs=1e-6)
        assert all(f"{part:+.3f} {name}" in one.formula for name, part in one.added.items())
        assert one.rank_after == n + 1
        assert 0.0 <= hit.score <= 1.0
        assert hit.similarity == pytest.approx(max(0.0, one.cosine or 0.0), abs=1e-5)
    scores = [hit.score for hit in found.results]
    assert scores == sorted(scores, reverse=True)


def test_weights_of_one_side_are_that_side(memories: BlockingMemories) -> None:
    memories.add_many(
        [f"{a} {b}" for a, b in itertools.product(["red", "blue", "green"], ["door", "gate", "wall"])]
    )
    for mode, weights in (("dense", {"words": 0.0}), ("keyword", {"dense": 0.0})):
        alone = memories.search("red door", mode=mode, limit=100)
        weighed = memories.search("red door", weights=weights, limit=100)
        best = [hit.memory.id for hit in alone.results if hit.score > 0]
        assert [hit.memory.id for hit in weighed.results][: len(best)] == best


def test_a_word_counts_more_than_a_cosine_that_tells_nothing(ladder: BlockingMemories) -> None:
    """Of equally similar texts the one with the word comes first, and a much more similar one before it."""
    zebra = ladder.add("A zebra.", embedding=at_angle(0.5)).memory.id
    found = ladder.search("zebra", limit=12).results
    at = [hit.memory.id for hit in found].index(zebra)
    assert steps(found[:at]) + steps(found[at + 1 :]) == list(range(10, -1, -1))
    assert 9 in steps(found[:at])
    assert 5 in steps(found[at + 1 :])
    scores = [hit.score for hit in found]
    assert scores == sorted(scores, reverse=True)
    assert [hit.score for hit in ladder.search("zebra", limit=3).results] == scores[:3]


def test_equal_scores_keep_the_order_of_writing(memories: BlockingMemories) -> None:
    ids = [memories.add("same words here", session_id=str(n)).memory.id for n in range(40)]
    for mode in ("dense", "keyword", "hybrid"):
        assert [hit.memory.id for hit in memories.search("same words", mode=mode, limit=100).results] == ids
        assert [hit.memory.id for hit in memories.search("same words", mode=mode, limit=7).results] == ids[:7]


def test_the_same_question_gets_the_same_answer(memories: BlockingMemories) -> None:
    memories.add_many([f"entry {n} about {n % 7}" for n in range(200)])
    first = memories.search("entry about 3", limit=50).results
    for _ in range(3):
        assert memories.search("entry about 3", limit=50).results == first


# --- pages ---------------------------------------------------------------------------------------------


def walk(memories: BlockingMemories, **how: Any) -> list[str]:
    """Every id, page by page."""
    ids: list[str] = []
    after = None
    while True:
        page = memories.list(after=after, **how)
        ids += [row.id for row in page.data]
        assert (page.first_id, page.last_id) == (
            (page.data[0].id, page.data[-1].id) if page.data else (None, None)
        )
        if not page.has_more:
            return ids
        after = page.last_id


@settings(max_examples=12, deadline=None)
@given(count=st.integers(0, 23), limit=st.integers(1, 25), order=st.sampled_from(["asc", "desc"]))
def test_pages_hold_every_row_once(anew: Any, count: int, limit: int, order: str) -> None:
    memories = anew()
    if count:
        memories.add_many([{"content": str(n), "metadata": {"n": n % 3}} for n in range(count)])
    for how in ({}, {"filters": {"n": 1}}):
        everything = [row.id for row in memories.list(limit=1000, order=order, **how).data]
        assert walk(memories, limit=limit, order=order, **how) == everything
        backwards: list[str] = []
        before = None
        while everything:
            anchor = before or everything[-1]
            page = memories.list(before=anchor, limit=limit, order=order, **how)
            backwards = [row.id for row in page.data] + backwards
            if not page.has_more:
                assert backwards == everything[:-1]
                break
            before = page.first_id


def test_the_last_full_page_knows_that_it_is_the_last(memories: BlockingMemories) -> None:
    memories.add_many([str(n) for n in range(10)])
    assert memories.list(limit=10).has_more is False
    assert memories.list(limit=9).has_more is True
    first = memories.list(limit=5)
    second = memories.list(limit=5, after=first.last_id)
    assert second.has_more is False
    assert memories.list(after=second.last_id).data == []
    assert memories.list(before=second.first_id, limit=5).data == first.data


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.gate("desc")
def test_pages_miss_nothing_while_others_write(memories: BlockingMemories, order: str) -> None:
    """Rows that were there all along come once each, whatever is added and deleted beside them."""
    batch = [{"content": f"row {n}", "metadata": {"stays": n % 3 != 1}} for n in range(900)]
    added = [one.memory for one in memories.add_many(batch)]
    kept = [row.id for row in added if row.metadata["stays"]]
    doomed = [row.id for row in added if not row.metadata["stays"]]
    stop = threading.Event()
    failures: list[BaseException] = []

    def disturb() -> None:
        try:
            for n in itertools.count():
                if stop.is_set():
                    return
                memories.add(f"new {n}", metadata={"stays": True})
                if doomed:
                    memories.delete(doomed.pop(n * 7919 % len(doomed)))
                memories.update(kept[n % len(kept)], importance=n % 100)
        except BaseException as exc:
            failures.append(exc)

    other = threading.Thread(target=disturb)
    other.start()
    try:
        seen = walk(memories, limit=7, order=order, filters={"stays": True})
    finally:
        stop.set()
        other.join(60)
    assert failures == []
    assert len(seen) == len(set(seen))
    known = set(kept)
    assert [id_ for id_ in seen if id_ in known] == (kept if order == "asc" else kept[::-1])


@pytest.mark.rows_in("sqlite")
@pytest.mark.parametrize("scope", ["session", "channel", "agent", "user", "global", "all"])
def test_a_configured_scope_never_breaks_a_search_without_one(home: Any, scope: str) -> None:
    """Where the request cannot mean it, the search is as without it."""
    with home.open(search={"default_scope": scope}, embedder={"url": "hash:64"}) as opened:
        opened.memories.add("the kettle is green", session_id="s", user_id="ada")
        opened.memories.add("the kettle is blue")
        found = {
            subject.user_id: [
                hit.memory.content for hit in opened.as_subject(subject).memories.search("kettle").results
            ]
            for subject in (Subject(), Subject(user_id="ada", role="member"))
        }
        own, everybodys = "the kettle is green", "the kettle is blue"
        assert set(found[None]) == ({everybodys} if scope == "global" else {own, everybodys})
        expected = {"global": {everybodys}, "user": {own}}
        assert set(found["ada"]) == expected.get(scope, {own, everybodys})
        assert opened.as_subject(Subject(user_id="ada", role="member")).contexts.context("kettle").text


# --- numbers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "words_first"),
    [
        ("What is the status of order ORD-12222?", True),
        ("invoice 4711", True),
        ("the budget of 2023 and that of 1999", False),
        ("1,000 people in 24 towns", False),
        ("Where does Ada live?", False),
    ],
)
def test_words_count_more_for_a_question_with_a_number(
    rc: BlockingMemoranda, question: str, words_first: bool
) -> None:
    rc.memories.add("Order ORD-12222 of 2023 was shipped to Ada, with invoice 4711, in 1,000 boxes.")
    (hit,) = rc.memories.search(question, explain=True).results
    assert hit.explanation is not None
    weights = hit.explanation.weights
    assert (weights["words"] > weights["dense"]) is words_first
    (hit,) = rc.memories.search(question, explain=True, weights={"dense": 0.9, "words": 0.1}).results
    assert hit.explanation is not None
    assert hit.explanation.weights == {"dense": 0.9, "words": 0.1}
