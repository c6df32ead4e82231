"""What helps a question beside searching: its header, an imagined passage, a model's order; and their failures."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.app.blocking import BlockingMemoranda
from memoranda.errors import InvalidInput, ModelBroken
from memoranda.store.retrieval.query_expansion import (
    HYDE,
    IMAGINE,
    JUDGE,
    MODEL_RERANK,
    arranged,
    channel_of,
    headed,
    ordered,
    unsure,
)
from memoranda.types import Explanation, Hit, Memory, Query, SearchResult

NOW = datetime(2023, 9, 1, tzinfo=UTC)
pytestmark = pytest.mark.rows_in("sqlite")


def hit(name: str, score: float, similarity: float | None = None) -> Hit:
    memory = Memory(
        id=name, kind="note", content=name, content_hash="", occurred_at=NOW, created_at=NOW, updated_at=NOW
    )
    return Hit(memory=memory, score=score, similarity=similarity, explanation=Explanation(rank_after=9))


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What did Ana say on 8 May 2023?", "[08 May 2023] Ana: What did Ana say on 8 May 2023?"),
        ("What did Ana Lima buy last May?", "[01 May 2023] Ana Lima: What did Ana Lima buy last May?"),
        ("what did Ana and Ben buy?", "what did Ana and Ben buy?"),
        ("What was it in May or June 2022?", "[01 June 2022] What was it in May or June 2022?"),
        ("where is the tea", "where is the tea"),
    ],
)
def test_a_question_gets_the_header_that_messages_have(question: str, said: str) -> None:
    assert headed(question, NOW) == said


def test_a_question_to_one_channel_has_it_in_the_header_as_summaries_have() -> None:
    assert headed("where is the tea", NOW, "garden") == "garden: where is the tea"
    assert headed("What did Ana say on 8 May 2023?", NOW, "garden") == (
        "[08 May 2023] garden, Ana: What did Ana say on 8 May 2023?"
    )
    assert channel_of(Query(query="q", scopes=["channel:a:b", "global"])) == "a:b"
    assert channel_of(Query(query="q", hierarchy={"channel": "c", "session": "s"})) == "c"
    assert channel_of(Query(query="q", scopes=["channel:a", "channel:b"])) is None
    assert channel_of(Query(query="q")) is None


def test_an_answer_is_unsure_when_nothing_is_similar() -> None:
    def of(*similarities: float | None) -> SearchResult:
        return SearchResult(
            results=[hit("x", 1.0, one) for one in similarities], total_count=1, query_time=0.0
        )

    assert unsure(of(), 0.5)
    assert unsure(of(0.49, None), 0.5)
    assert not unsure(of(0.1, 0.5), 0.5)


@pytest.mark.parametrize(
    ("answer", "order"),
    [
        ("[3, 1]", [2, 0, 1, 3]),
        ("```json\n[2]\n```", [1, 0, 2, 3]),
        ("I think [1] is less good than these: [4, 2, 1]", [3, 1, 0, 2]),
        ("4. and then 3", [3, 2, 0, 1]),
        ("[9, 0, 2, 2]", [1, 0, 2, 3]),
    ],
)
def test_an_order_is_read_from_what_a_model_says(answer: str, order: list[int]) -> None:
    assert ordered(answer, 4) == order


@settings(max_examples=40)
@given(st.text(alphabet="0123456789[], abc", max_size=40), st.integers(1, 6))
def test_any_answer_is_an_order_or_refused(answer: str, count: int) -> None:
    with suppress(ModelBroken):
        assert sorted(ordered(answer, count)) == list(range(count))


def test_scores_go_on_falling_when_hits_change_places() -> None:
    moved = arranged([hit("a", 0.9), hit("b", 0.5), hit("c", 0.1)], [1, 0])
    assert [(one.memory.id, one.score) for one in moved] == [("b", 0.9), ("a", 0.5), ("c", 0.1)]
    told = [one.explanation for one in moved if one.explanation]
    assert [(one.rank_after, one.model_rank) for one in told] == [(1, 1), (2, 2), (3, None)]


# --- through the product -------------------------------------------------------------------------------

TEXTS = ["the heron landed on the jetty", "tea is ready in the kitchen", "the oboe needs a new reed"]
Opened = Callable[..., BlockingMemoranda]


@pytest.fixture
def scripted(home: Any, tmp_path: Path) -> Opened:
    """A product with three notes whose model plays these turns."""

    def opened(*turns: dict[str, Any], **search: Any) -> BlockingMemoranda:
        path = tmp_path / "script.json"
        path.write_text(json.dumps({"turns": list(turns)}))
        product: BlockingMemoranda = home.empty(model={"url": f"scripted:{path}"}, search=search)
        product.memories.add_many(TEXTS)
        return product

    return opened


def asked(product: BlockingMemoranda) -> list[str]:
    """The instructions of what the model was asked."""
    return [one.messages[0]["content"] for one in product.inner.core.model.asked]  # type: ignore[attr-defined]


def first(
    product: BlockingMemoranda, question: str = "which bird arrived?", **how: Any
) -> tuple[str, list[str]]:
    found = product.memories.search(question, **how)
    return found.results[0].memory.content, found.degraded


def test_a_model_is_asked_only_when_it_is_wanted(scripted: Opened) -> None:
    with scripted({"text": "no", "repeat": True}) as product:
        product.memories.search("which bird arrived?")
        product.memories.search("the heron landed on the jetty", hyde=True)  # sure of it
        product.memories.search("which bird arrived?", hyde=True, mode="keyword")
        product.memories.search("oboe", model_rerank=1)
        assert asked(product) == []


def test_an_imagined_passage_finds_what_the_question_does_not(scripted: Opened) -> None:
    with scripted({"text": "A heron landed on the jetty.", "repeat": True}, hyde=True) as product:
        assert first(product) == (TEXTS[0], [])
        assert asked(product) == [IMAGINE]
        product.memories.search("which bird arrived?", hyde=False)
        assert asked(product) == [IMAGINE]


def test_a_model_puts_the_first_hits_in_order(scripted: Opened) -> None:
    with scripted({"text": "[2, 1]", "repeat": True}) as product:
        plain = product.memories.search("tea jetty")
        found = product.memories.search("tea jetty", model_rerank=2, explain=True)
        assert [one.memory.id for one in found.results] == [plain.results[i].memory.id for i in (1, 0, 2)]
        assert [one.score for one in found.results] == [one.score for one in plain.results]
        assert asked(product) == [JUDGE]


@pytest.mark.parametrize("turn", [{"status": 503}, {"text": ""}, {"text": "cannot say"}, {"hang": True}])
def test_a_model_that_fails_leaves_the_plain_answer(turn: dict[str, Any], scripted: Opened) -> None:
    with scripted(turn | {"repeat": True}, model_rerank=3, hyde=True, model_seconds=0.1) as product:
        plain = product.memories.search("which bird arrived?", hyde=False, model_rerank=0)
        found = product.memories.search("which bird arrived?")
        failed = {MODEL_RERANK} if turn.get("text") else {HYDE, MODEL_RERANK}
        assert set(found.degraded) == failed
        if HYDE in failed:
            assert found.results == plain.results


def test_a_quoting_model_is_not_asked(home: Any) -> None:
    with home.empty() as product:
        product.memories.add_many(TEXTS)
        assert first(product, "tea kitchen", hyde=True, model_rerank=3) == (TEXTS[1], [])


def test_numbers_out_of_range_are_refused(scripted: Opened) -> None:
    with scripted() as product, pytest.raises(InvalidInput, match="model_rerank"):
        product.memories.search("tea", model_rerank=51)


def test_a_header_goes_to_the_embedder_and_not_to_the_words(scripted: Opened) -> None:
    with scripted() as product:
        question = "What did Ana say about tea?"
        plain, headed_ = (product.memories.search(question, enrich=on, explain=True) for on in (False, True))
        cosines = [
            [hit.explanation.cosine for hit in one.results if hit.explanation] for one in (plain, headed_)
        ]
        words = [[hit.explanation.bm25 for hit in one.results if hit.explanation] for one in (plain, headed_)]
        assert cosines[0] != cosines[1]
        assert sorted(map(str, words[0])) == sorted(map(str, words[1]))
