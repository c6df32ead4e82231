"""Configurations of a search compared on questions about stored memories, and on bundled sets."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from memoranda import Memoranda
from memoranda.app import blocking
from memoranda.app.blocking import BlockingMemoranda
from memoranda.app.evals.bundled import evaluate_bundled
from memoranda.app.evals.evaluation import Evaluation, EvaluationQuestion, SearchConfiguration
from memoranda.cli.app import app
from memoranda.errors import InvalidInput
from memoranda.providers.embeddings.base import Embedded, Embedder, Span, Task
from memoranda.providers.embeddings.hash import HashEmbedder
from memoranda.types import Subject

TEXTS = ("the kettle is green", "the kettle is loud", "the car is red", "a green car")
WAYS = ({"name": "both"}, {"mode": "keyword", "name": "keywords"})


@pytest.fixture
async def product() -> AsyncIterator[Memoranda]:
    async with await Memoranda.open(":memory:", embedder={"url": "hash:64"}) as opened:
        await opened.memories.add_many([{"content": text, "id": str(n)} for n, text in enumerate(TEXTS)])
        yield opened


async def test_each_configuration_answers_as_its_search_does(product: Memoranda) -> None:
    question = {
        "query": "Which kettle is green?",
        "relevant": ["0"],
        "misleading": ["1"],
        "category": "kettles",
    }
    compared = await product.evaluate([question], WAYS, limit=3)
    (asked,) = compared.questions
    assert (asked.query, asked.category, asked.relevant) == ("Which kettle is green?", "kettles", ["0"])
    for answer, mode in zip(asked.answers, ("hybrid", "keyword"), strict=True):
        hits = (await product.memories.search(asked.query, mode=mode, threshold=0, limit=3)).results
        assert answer.ids == [hit.memory.id for hit in hits]
        assert answer.scores == [hit.score for hit in hits]
        assert answer.rank == 1 + answer.ids.index("0")
        assert answer.recall == 1
    assert [scored.name for scored in compared.configurations] == ["both", "keywords"]
    for scored, answer in zip(compared.configurations, asked.answers, strict=True):
        assert scored.scores["all"] == scored.scores["kettles"]
        assert scored.scores["all"]["mrr"] == 1 / (answer.rank or 0)
        assert scored.scores["all"]["noise@3"] == answer.ids.count("1") / 3
    named = {"0", "1"}.union(*(answer.ids for answer in asked.answers))
    assert compared.texts == {id_: TEXTS[int(id_)] for id_ in named}


async def test_without_configurations_the_configured_search_is_evaluated(product: Memoranda) -> None:
    compared = await product.evaluate([EvaluationQuestion(query="red car", relevant=["2"])])
    assert [scored.name for scored in compared.configurations] == ["configured"]
    assert compared.configurations[0].scores.keys() == {"all"}


async def test_a_scope_of_a_question_is_where_it_is_asked(product: Memoranda) -> None:
    await product.memories.add("the kettle of the session is green", id="s", session_id="x")
    compared = await product.evaluate([{"query": "kettle", "relevant": ["0"], "scopes": ["session:x"]}])
    (answer,) = compared.questions[0].answers
    assert (answer.ids, answer.rank, answer.recall) == (["s"], None, 0)


@pytest.mark.parametrize(
    ("questions", "configurations", "limit", "says"),
    [
        ([], WAYS, 10, "questions: must hold 1 to 500, not 0"),
        ([{"query": "x", "relevant": ["0"]}] * 501, WAYS, 10, "questions: must hold 1 to 500, not 501"),
        ([{"query": "x", "relevant": ["0"]}], (), 10, "configurations: must hold 1 to 4, not 0"),
        ([{"query": "x", "relevant": []}], WAYS, 10, r"questions\[0\].relevant: must not be empty"),
        ([{"query": " ", "relevant": ["0"]}], WAYS, 10, r"questions\[0\].query: must hold some text"),
        (
            [EvaluationQuestion(query="x", relevant=[])],
            WAYS,
            10,
            r"questions\[0\].relevant: must not be empty",
        ),
        ([{"query": "x", "relevant": ["0", "9"]}], WAYS, 10, r"questions\[0\].relevant: '9' is no memory"),
        (
            [{"query": "x", "relevant": ["0"]}, {"query": "x", "relevant": ["0"], "misleading": ["9"]}],
            WAYS,
            10,
            r"questions\[1\].misleading: '9' is no memory",
        ),
        (
            [{"query": "x", "relevant": ["0"]}],
            [{"mode": "magic"}],
            10,
            r"configurations\[0\].mode: must be one of",
        ),
        (
            [{"query": "x", "relevant": ["0"]}],
            [{}, {}],
            10,
            r"configurations\[1\].name: 'hybrid' is the name of",
        ),
        ([{"query": "x", "relevant": ["0"]}], WAYS, 101, "limit: must be a whole number between 1 and 100"),
        (
            [{"query": "x", "relevant": ["0"]}] * 400,
            WAYS,
            100,
            "limit: x questions x configurations is above 50,000",
        ),
        ([{"query": "x" * 10_000_000, "relevant": ["0"]}], WAYS, 10, r"questions\[0\].query: is longer than"),
        (
            [{"query": "x", "relevant": ["0"], "category": "all"}],
            WAYS,
            10,
            r"questions\[0\].category: 'all' is the name",
        ),
        ([{"query": "x\ud800", "relevant": ["0"]}], WAYS, 10, r"questions\[0\].query: "),
    ],
)
async def test_what_is_wrong_is_named(
    product: Memoranda, questions: list[Any], configurations: Any, limit: int, says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        await product.evaluate(questions, configurations, limit=limit)


async def test_a_bundled_set_is_written_elsewhere_at_the_cost_of_the_tenant(product: Memoranda) -> None:
    subject = Subject(tenant_id="acme", role="reader")
    compared = await evaluate_bundled(product, subject, "synthetic", [SearchConfiguration()], limit=5)
    assert (compared.set, compared.limit, len(compared.questions)) == ("synthetic", 5, 48)
    assert {question.category for question in compared.questions} == compared.configurations[
        0
    ].scores.keys() - {"all"}
    assert all(set(question.relevant) <= compared.texts.keys() for question in compared.questions)
    assert await product.memories.count() == len(TEXTS)
    assert await product.as_subject(Subject(tenant_id="acme")).memories.count() == 0
    spent = (await product.costs.usage(tenant="acme")).data  # of two days, if midnight passes
    assert {row.purpose for row in spent} == {"embeddings"}
    assert sum(row.texts_embedded for row in spent) == 302 + 48
    with pytest.raises(InvalidInput, match="set: must be one of synthetic, assistant"):
        await evaluate_bundled(product, subject, "mine", [SearchConfiguration()])


async def test_a_bundled_set_scores_the_same_each_time(product: Memoranda) -> None:
    ways = [SearchConfiguration(), SearchConfiguration(mode="dense")]
    first, second = [await evaluate_bundled(product, Subject(), "assistant", ways) for _ in range(2)]
    assert without_ids(first) == without_ids(second)


def without_ids(evaluation: Evaluation) -> list[Any]:
    ranks = [[answer.rank for answer in question.answers] for question in evaluation.questions]
    return [[scored.scores for scored in evaluation.configurations], ranks]


def test_the_command_compares_the_configured_search_with_its_options(tmp_path: Path) -> None:
    def run(*words: str) -> Any:
        return CliRunner().invoke(
            app, [*words, "--data", str(tmp_path / "data"), "--set", "embedder.url=hash:64"]
        )

    for text in TEXTS:
        assert run("add", text).exit_code == 0
    ids = {row["content"]: row["id"] for row in json.loads(run("list", "--json").stdout)["data"]}
    file = tmp_path / "own.jsonl"
    question = {"query": "green kettle", "relevant": [ids[TEXTS[3]]]}
    file.write_text(f"{json.dumps(question)}\n\n")
    measured = run("eval", "own", str(file), "--mode", "keyword", "--depth", "1", "--json")
    evaluation = json.loads(measured.stdout)
    assert [scored["name"] for scored in evaluation["configurations"]] == ["configured", "options"]
    assert [len(answer["ids"]) for answer in evaluation["questions"][0]["answers"]] == [1, 1]
    plain = run("eval", "own", str(file)).stdout.splitlines()
    assert [line.split()[0] for line in plain] == ["questions", "configured"]
    with file.open("a") as more:
        more.write('{"query": "x"}\n')
    refused = run("eval", "own", str(file))
    assert (refused.exit_code, refused.output) == (2, "memoranda: own.jsonl, line 3.relevant: is required\n")
    file.write_text(f"{json.dumps(question)}\n\n{json.dumps(question | {'relevant': ['gone']})}\n")
    assert "own.jsonl, line 3.relevant: 'gone' is no memory" in run("eval", "own", str(file)).output
    file.write_text("green\n")
    assert "own.jsonl, line 1: is not JSON; write {" in run("eval", "own", str(file)).output
    assert "none: cannot be read: no such file" in run("eval", "own", str(tmp_path / "none")).output


class Own(Embedder):
    """A model of a caller, which counts the texts that it reads."""

    def __init__(self) -> None:
        self.inner = HashEmbedder(32, threads=1)
        self.model, self.dim = "mine", 32
        self.max_tokens, self.calibration = self.inner.max_tokens, self.inner.calibration
        self.texts = 0
        self.closed = False

    async def embed(self, texts: Any, task: Task = "document") -> Embedded:
        self.texts += len(texts)
        return await self.inner.embed(texts, task)

    def split(self, text: str) -> list[Span]:
        return self.inner.split(text)

    def close(self) -> None:
        self.closed = True


async def test_a_model_of_ones_own_embeds(tmp_path: Any) -> None:
    own = Own()
    async with await Memoranda.open(tmp_path, embedder=own) as product:
        await product.memories.add_many(list(TEXTS))
        hits = (await product.memories.search("green kettle", mode="dense")).results
        assert hits[0].memory.content == TEXTS[0]
        stats = await product.memories.stats()
        assert (stats["model"], stats["dimension"], stats["vectors"]) == ("mine", 32, len(TEXTS))
    assert (own.texts, own.closed) == (len(TEXTS) + 1, True)
    again = Own()
    async with await Memoranda.open(tmp_path, embedder=again) as product:
        await product.memories.search("green kettle")
        assert (await product.memories.stats())["unembedded"] == 0
    assert again.texts == 1


@pytest.fixture(scope="module")
def shared() -> Iterator[BlockingMemoranda]:
    """A product that no test changes."""
    with blocking.open(":memory:", embedder={"url": "hash:64"}) as opened:
        opened.memories.add_many([{"content": text, "id": str(n)} for n, text in enumerate(TEXTS)])
        yield opened


@given(st.lists(st.sampled_from("0123"), min_size=1, max_size=4, unique=True), st.integers(1, 4))
def test_the_rank_is_that_of_the_first_relevant_id(
    shared: BlockingMemoranda, relevant: list[str], limit: int
) -> None:
    compared = shared.evaluate([{"query": "green kettle", "relevant": relevant}], limit=limit)
    (answer,) = compared.questions[0].answers
    ranks = [at for at, id_ in enumerate(answer.ids, start=1) if id_ in relevant]
    assert answer.rank == (ranks[0] if ranks else None)
    assert answer.recall == len(ranks) / len(relevant)
