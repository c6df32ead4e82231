"""A newer message that answers instead of an older one ranks before it, whoever wrote neither."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from memoranda.app.blocking import BlockingMemories
from memoranda.providers.embeddings.base import Calibration
from memoranda.store.retrieval.rerank_features import Candidate
from memoranda.store.retrieval.superseding import FEATURES, NONE, TOP, Pairs, lifted, pairs
from memoranda.types import Hit

DAY = datetime(2026, 3, 2, 10, tzinfo=UTC)
MICROS = 1_000_000
SAID = [
    ("Ana", 0, "My phone number is 555-0142."),
    ("Ben", 1, "I bought a kayak for the lake."),
    ("Ana", 30, "They gave me a new number at work, it is 555-0187."),
    ("Ana", 31, "The lake was cold this morning."),
]
QUESTION = "What is Ana's phone number?"


def write(memories: BlockingMemories, said: list[tuple[str, int, str]]) -> None:
    memories.add_many(
        [
            {
                "content": text,
                "kind": "message",
                "session_id": "s",
                "metadata": {"speaker": who},
                "occurred_at": DAY + timedelta(days=day),
            }
            for who, day, text in said
        ]
    )


def found(memories: BlockingMemories, **fields: Any) -> list[Hit]:
    return memories.search(QUESTION, scopes=["session:s"], explain=True, **fields).results


def test_the_newer_message_ranks_before_the_older_one(home: Any) -> None:
    with home.open(embedder={"url": "local:arctic-embed-s"}) as opened:
        write(opened.memories, SAID)
        first, second, *rest = found(opened.memories)
        assert "0187" in first.memory.content
        assert "0142" in second.memory.content
        assert first.explanation.factors["newer"] > 1
        assert {hit.explanation.factors["newer"] for hit in (second, *rest)} == {1.0}
        assert "newer" in first.explanation.formula
        assert 1 >= first.score > second.score


def test_without_the_second_stage_the_older_one_is_first(home: Any) -> None:
    with home.open(embedder={"url": "local:arctic-embed-s"}) as opened:
        write(opened.memories, SAID)
        first = found(opened.memories, rerank="off")[0]
        assert "0142" in first.memory.content
        assert "newer" not in first.explanation.factors


def test_a_message_of_another_author_supersedes_none(home: Any) -> None:
    said = [(("Ben" if "0187" in text else who), day, text) for who, day, text in SAID]
    with home.open(embedder={"url": "local:arctic-embed-s"}) as opened:
        write(opened.memories, said)
        assert "0142" in found(opened.memories)[0].memory.content


def row(seq: int, day: int, text: str = "x", user: str | None = "ana") -> Candidate:
    at = day * 86_400 * MICROS
    return Candidate(seq, "message", "s", None, "user", at, at, None, 0, "{}", text, user, None, None)


def units(*angles: float) -> list[np.ndarray[Any, np.dtype[np.float32]]]:
    return [np.array([np.cos(angle), np.sin(angle)], np.float32) for angle in angles]


EXACT = Calibration(same=0.5, center=())
SCORES = np.array([0.9, 0.6, 0.5])


def test_pairs_are_of_one_author_the_newer_one_below_the_older() -> None:
    rows = [row(1, 3), row(2, 5), row(3, 9)]
    vectors = dict(zip((1, 2, 3), units(0.0, 0.1, 0.2), strict=True))
    made = pairs("what?", vectors[1], rows, vectors, SCORES, EXACT)
    assert list(zip(made.older.tolist(), made.newer.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 2)]
    features = dict(zip(FEATURES, made.features[1].tolist(), strict=True))
    assert features["same"] == pytest.approx(np.cos(0.2) / 0.5, rel=1e-3)
    assert features["lead"] == pytest.approx(0.4)
    assert features["apart"] == 1.0
    assert features["closer"] == pytest.approx(np.log(2))
    later_first = [row(1, 9), row(2, 5), row(3, 3)]
    assert not len(pairs("what?", vectors[1], later_first, vectors, SCORES, EXACT).older)
    others = [row(1, 3), row(2, 5, user="ben"), row(3, 9, user="eve")]
    assert not len(pairs("what?", vectors[1], others, vectors, SCORES, EXACT).older)


@pytest.mark.parametrize(
    ("rows", "angles", "calibration"),
    [
        ([row(1, 3), None, None], (0.0, 0.1, 0.2), EXACT),
        ([row(1, 3), row(2, 5), row(3, 9)], (0.0, 1.5, 1.5), EXACT),
        ([row(1, 3), row(2, 5), row(3, 9)], (0.0, 0.1, 0.2), Calibration(same=0.5, center=None)),
    ],
)
def test_no_pairs_without_rows_likeness_or_a_known_direction(
    rows: list[Candidate | None], angles: tuple[float, ...], calibration: Calibration
) -> None:
    vectors = dict(zip((1, 2, 3), units(*angles), strict=True))
    made = pairs("what?", vectors[1], rows, vectors, SCORES, calibration)
    assert 0 not in made.older.tolist()


def test_only_the_first_candidates_are_superseded() -> None:
    rows: list[Candidate | None] = [row(n + 1, n) for n in range(TOP + 4)]
    vectors = dict(zip(range(1, TOP + 5), units(*np.linspace(0, 0.1, TOP + 4)), strict=True))
    made = pairs("what?", vectors[1], rows, vectors, np.linspace(0.9, 0.5, TOP + 4), EXACT)
    assert set(made.older.tolist()) == set(range(TOP))


def test_a_newer_one_stands_right_above_the_best_that_it_supersedes() -> None:
    probable = (1.5, 1.2, 1.0, 0.1, 1.0, 0.0, 1.0, 1.0)
    improbable = (0.7, 0.0, 1.0, 0.9, 0.0, 2.0, 1.0, 0.0)
    found = Pairs(np.array([0, 1, 0]), np.array([2, 2, 1]), np.array([probable, probable, improbable]))
    risen = lifted(SCORES, found)
    assert risen.tolist()[:2] == SCORES.tolist()[:2]
    assert 0.9 < risen[2] <= 0.9 * 1.001
    assert lifted(SCORES, NONE).tolist() == SCORES.tolist()
