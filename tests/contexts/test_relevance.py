"""A context has what is relevant to its question, and nothing to fill it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from memoranda.contexts import choosing, matters
from memoranda.providers.embeddings.base import Calibration
from memoranda.types import Hit, Memory

MAY = datetime(2026, 5, 1, tzinfo=UTC)
NOWHERE = Calibration(center=(0.0, 0.0))
SAID = [
    "My desk is on the third floor of the library.",
    "I had soup for lunch, and it was too salty.",
    "The bicycle needs a new chain before the summer.",
    "Rent for the flat is 940 euros, paid on the first of each month.",
    "My sister plays the cello in an orchestra in Graz.",
    "They painted the staircase yellow last week.",
    "I read a novel about a lighthouse on Sunday.",
    "The dentist moved my appointment to Friday morning.",
]


@pytest.fixture
def rc(home: Any) -> Iterator[Any]:
    with home.open(embedder={"url": "local:arctic-embed-s"}) as opened:
        said = [
            {"content": text, "user_id": "mara", "speaker": "Mara", "occurred_at": MAY + timedelta(days=day)}
            for day, text in enumerate(SAID)
        ]
        opened.observe(said, channel_id="work")
        yield opened


def memory_texts(rc: Any, question: str, **fields: Any) -> list[str]:
    made = rc.context(question, scopes=["channel:work"], **fields)
    return [piece.text for piece in made.pieces if piece.part == "memories"]


@pytest.mark.rows_in("sqlite")
def test_what_is_not_relevant_is_left_out_whatever_the_budget(rc: Any) -> None:
    shown = memory_texts(rc, "How much is the rent for Mara's flat?", budget=2_000)
    assert "940 euros" in shown[0]
    assert len(shown) <= 3
    made = rc.context("How much is the rent for Mara's flat?", scopes=["channel:work"], budget=2_000)
    assert {one.why for one in made.left_out} == {"floor"}
    assert len(memory_texts(rc, "How much is the rent for Mara's flat?", threshold=0.0)) == len(SAID)
    assert memory_texts(rc, "Write a haiku about autumn") == []


def one(id_: str, similarity: float, score: float, **fields: Any) -> Hit:
    memory = Memory(
        id=id_,
        kind="message",
        content=f"text {id_}",
        content_hash=id_,
        occurred_at=MAY,
        created_at=MAY,
        updated_at=MAY,
        **fields,
    )
    return Hit(memory=memory, score=score, similarity=similarity, relevance=score)


def kept(*hits: Hit) -> list[str]:
    chosen, _ = matters.relevant(choosing.candidates(hits), "Where is the key?", {}, NOWHERE, topic=True)
    return [candidate.memory.id for candidate in chosen]


def test_what_is_far_behind_the_best_is_left_out() -> None:
    best, near, far = one("a", 0.8, 0.6), one("b", 0.78, 0.1), one("c", 0.4, 0.6 * matters.LEAST / 2)
    assert kept(best, near, far) == ["a", "b"]
    assert kept(far) == ["c"], "of nothing better"


def test_what_took_the_place_of_something_relevant_is_relevant() -> None:
    old, new, others = (
        one("a", 0.8, 0.6, user_id="mara"),
        one("b", 0.4, 1e-4, user_id="mara"),
        one("c", 0.4, 1e-4, user_id="tim"),
    )
    for hit in (new, others):
        hit.memory.occurred_at = MAY + timedelta(days=3)
    vectors = dict.fromkeys("abc", np.array([1.0, 0.0], np.float32))
    scores = matters.scores_of_matters(choosing.candidates([old, new, others]), vectors, NOWHERE)
    assert scores.tolist() == pytest.approx([0.6, 0.6, 1e-4])
