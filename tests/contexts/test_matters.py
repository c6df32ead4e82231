"""Memories about the same thing stand together in a context, the newest first; none is left out for an older one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

import numpy as np
import pytest

from memoranda.contexts.choosing import Chosen, distinct, unrepeated
from memoranda.contexts.matters import together
from memoranda.contexts.result_text import memory_text
from memoranda.providers.embeddings.base import Calibration
from memoranda.types import Hit, Memory

MAY = datetime(2026, 5, 1, tzinfo=UTC)
EXACT = Calibration(same=0.9, center=())
HOME, WORK = [1.0, 0.0], [0.0, 1.0]


def chosen(id_: str, day: int, score: float, **fields: Any) -> Chosen:
    """A candidate of Mara's."""
    given = {"kind": "message", "content": f"text of {id_}", "user_id": "mara", "role": "user"} | fields
    at = MAY + timedelta(days=day)
    memory = Memory(id=id_, content_hash=id_, occurred_at=at, created_at=at, updated_at=at, **given)
    return Chosen(Hit(memory=memory, score=score, similarity=0.8), frozenset(), score, {})


def order(candidates: list[Chosen], vectors: dict[str, list[float]]) -> list[str]:
    """The ids as they stand in a context, the marked ones with an asterisk."""
    made = {id_: np.array(vector, np.float32) for id_, vector in vectors.items()}
    return [f"{one.memory.id}{'*' if one.latest else ''}" for one in together(candidates, made, EXACT)]


def test_the_newest_stands_first_and_is_marked() -> None:
    some = [chosen("old", 1, 0.9), chosen("job", 2, 0.8), chosen("new", 5, 0.3), chosen("mid", 3, 0.4)]
    vectors = {"old": HOME, "new": HOME, "mid": [2.0, 0.1], "job": WORK}
    assert order(some, vectors) == ["new*", "mid", "old", "job"]
    assert {one.memory.id: one.score for one in some} == {"old": 0.9, "job": 0.8, "new": 0.3, "mid": 0.4}


@pytest.mark.parametrize(
    "fields",
    [
        {"user_id": "ben"},
        {"role": "assistant"},
        {"kind": "session_summary"},
        {"kind": "fact", "user_id": None},
    ],
)
def test_what_others_say_stands_by_itself(fields: dict[str, Any]) -> None:
    assert order([chosen("a", 1, 0.9), chosen("b", 2, 0.8, **fields)], {"a": HOME, "b": HOME}) == ["a", "b"]


def test_without_a_vector_a_relation_or_a_later_date_nothing_is_marked() -> None:
    assert order([chosen("a", 1, 0.9), chosen("b", 2, 0.8)], {"a": HOME}) == ["a", "b"]
    assert order([chosen("a", 1, 0.9), chosen("b", 1, 0.8)], {"a": HOME, "b": HOME}) == ["a", "b"]
    weak = chosen("b", 2, 0.8)
    weak.weak = True
    assert order([chosen("a", 1, 0.9), weak], {"a": HOME, "b": HOME}) == ["a", "b"]


def test_a_fact_and_a_message_are_one_matter() -> None:
    fact = chosen("fact", 1, 0.9, kind="fact", role=None)
    assert order([fact, chosen("said", 4, 0.5)], {"fact": HOME, "said": HOME}) == ["said*", "fact"]


def test_the_mark_stands_behind_the_date() -> None:
    message = chosen("a", 1, 0.9, metadata={"speaker": "Mara"}).memory
    assert memory_text(message, latest=True) == "[02 May 2026, latest] Mara: text of a"
    fact, note = (chosen("a", 1, 0.9, kind=kind).memory for kind in ("fact", "note"))
    assert memory_text(fact, latest=True) == "[since 02 May 2026, latest] text of a"
    assert (memory_text(note, latest=True), memory_text(note)) == (
        "[02 May 2026, latest] text of a",
        "text of a",
    )


def test_a_message_that_is_newer_than_its_fact_stays() -> None:
    fact = chosen("fact", 1, 0.9, kind="fact", source_refs=["first", "later"])
    first, later = chosen("first", 1, 0.8), chosen("later", 6, 0.7)
    left, gone = unrepeated([fact, first, later], "anything")
    assert [one.memory.id for one in left] == ["fact", "later"]
    assert [(one.id, one.of) for one in gone] == [("first", "fact")]


def test_of_two_that_say_the_same_the_newer_stays_in_the_better_place() -> None:
    words = frozenset(["mara", "drinks", "green", "tea", "in", "the", "morning"])
    old, new = chosen("old", 1, 0.9), chosen("new", 5, 0.4)
    for one in (old, new):
        one.terms = words
    left, gone = distinct([old, chosen("else", 2, 0.6), new])
    assert [(one.memory.id, one.score) for one in left] == [("new", 0.9), ("else", 0.6)]
    assert [(one.id, one.of) for one in gone] == [("old", "new")]


@pytest.fixture
def rc(home: Any) -> Iterator[Any]:
    with home.open(embedder={"url": "hash:256"}) as opened:
        yield opened


@pytest.mark.rows_in("sqlite")
def test_a_context_marks_what_is_latest(rc: Any) -> None:
    for day, floor in ((1, "third"), (9, "fifth")):
        said = {
            "content": f"My desk is on the {floor} floor of the library.",
            "user_id": "mara",
            "speaker": "Mara",
        }
        rc.observe([said | {"occurred_at": MAY + timedelta(days=day)}], channel_id="work")
    pieces = rc.context("On which floor is the desk of Mara?", scopes=["channel:work"]).pieces
    assert [piece.text for piece in pieces if piece.part == "memories"] == [
        "- [1] [10 May 2026, latest] Mara: My desk is on the fifth floor of the library.",
        "- [2] [02 May 2026] Mara: My desk is on the third floor of the library.",
    ]


@pytest.mark.rows_in("sqlite")
def test_what_is_not_stored_yet_is_put_together_too(home: Any) -> None:
    """Vectors that a search makes are stored in the background, here behind a write that does not end."""
    release = Event()
    with home.open(embedder={"url": "hash:256"}, jobs={"workers": 0}) as rc:
        for day, floor in ((1, "third"), (9, "fifth")):
            said = {"content": f"My desk is on the {floor} floor of the library.", "user_id": "mara"}
            rc.observe([said | {"occurred_at": MAY + timedelta(days=day)}], channel_id="work")
        writing = rc.inner.core.store.db.write(lambda _: release.wait(30))
        try:
            pieces = rc.context("On which floor is the desk?", scopes=["channel:work"]).pieces
        finally:
            release.set()
        writing.result()
    first, second = [piece.text for piece in pieces if piece.part == "memories"]
    assert "10 May 2026, latest" in first
    assert "02 May 2026]" in second
