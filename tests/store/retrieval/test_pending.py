"""Searches while embeddings are pending: new rows are found as if they were embedded, and `degraded` says when not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from operator import not_
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.app.blocking import BlockingMemoranda
from memoranda.store.retrieval.candidates import AT_ONCE, LOOKED_AT, cosines
from memoranda.store.retrieval.fusion import estimated
from memoranda.types import Subject
from support.waiting import until

FILLER = "the committee met again to discuss the {} agenda"
NUMBER = st.floats(-1, 1)


@pytest.fixture
def idle(home: Any) -> Iterator[BlockingMemoranda]:
    """A product without workers: what is observed stays without vectors until `settle`."""
    with home.open(jobs={"workers": 0}) as opened:
        yield opened


def settle(rc: BlockingMemoranda) -> None:
    """Embed what is pending."""
    core, tenant = rc.inner.core, Subject().tenant_id
    while rows := core.store.pending_rows(tenant, core.store.space, 64):
        rc.portal.call(core.ingest.embed_pending(rows, tenant, reuse=True))


def observe(rc: BlockingMemoranda, *texts: str, session: str = "talk") -> list[str]:
    kept = rc.sessions.observe([{"content": text} for text in texts], session_id=session)
    return [one.message.id for one in kept]


def found(rc: BlockingMemoranda, query: str, **fields: Any) -> tuple[list[str], list[str]]:
    result = rc.memories.search(query, **{"scopes": ["session:talk"], "limit": 5} | fields)
    return [hit.memory.id for hit in result.results], result.degraded


@pytest.mark.parametrize("mode", ["hybrid", "dense"])
def test_a_row_is_found_by_its_meaning_before_it_is_embedded(idle: Any, mode: str) -> None:
    observe(idle, *(FILLER.format(n) for n in range(40)))
    settle(idle)
    said, _ = observe(idle, "Biscuit is a beagle", "nothing of the kind")
    ids, degraded = found(idle, "a beagle called Biscuit", mode=mode)
    assert (ids[0], degraded) == (said, [])
    before = idle.memories.search("a beagle called Biscuit", scopes=["session:talk"], mode=mode, limit=5)
    settle(idle)
    after = idle.memories.search("a beagle called Biscuit", scopes=["session:talk"], mode=mode, limit=5)
    assert [(hit.memory.id, hit.score, hit.similarity) for hit in before.results] == [
        (hit.memory.id, hit.score, hit.similarity) for hit in after.results
    ]


def test_more_than_are_embedded_at_once_are_estimated_and_reported(idle: Any) -> None:
    observe(idle, *(FILLER.format(n) for n in range(40)))
    settle(idle)
    many = AT_ONCE + 10
    rare = [f"the committee met again and Biscuit barked {n} times" for n in range(many)]
    said = observe(idle, *rare)
    ids, degraded = found(idle, "Biscuit barked at the committee", limit=50)
    assert degraded == ["embedding"]
    assert set(said) <= set(ids)
    settle(idle)
    after, degraded = found(idle, "Biscuit barked at the committee", limit=50)
    assert (set(said) <= set(after), degraded) == (True, [])


def test_pending_rows_behind_thousands_of_newer_ones_are_found_and_reported(idle: Any) -> None:
    asked = "the old amber heron"
    said = observe(idle, *(f"{asked} {n}" for n in range(3 * AT_ONCE)))
    newer = [f"the committee met {n} times" for n in range(LOOKED_AT + 1)]
    for at in range(0, len(newer), 500):
        observe(idle, *newer[at : at + 500], session="import")
    ids, degraded = found(idle, "of feathers and resin", mode="dense")
    assert (set(ids) < set(said), len(ids), degraded) == (True, 5, ["embedding"])
    assert found(idle, asked)[1] == ["embedding"]
    none = {
        "key": "n",
        "type": "eq",
        "value": 1,
    }  # SQL cannot decide it, and more rows wait than are looked at
    assert found(idle, asked, filters=none) == ([], [])
    assert found(idle, asked, filters=none, scopes=["all"]) == ([], ["embedding"])
    assert set(found(idle, asked, limit=3 * AT_ONCE)[0]) == set(said)


def test_pending_rows_elsewhere_degrade_nothing(idle: Any) -> None:
    said = observe(idle, "Biscuit is a beagle")
    settle(idle)
    observe(idle, *(f"Biscuit {n}" for n in range(2 * AT_ONCE)), session="other")
    assert found(idle, "Biscuit") == (said, [])
    assert found(idle, "Biscuit", filters={"key": "n", "type": "eq", "value": 1}) == ([], [])
    assert found(idle, "Biscuit", scopes=["session:other"])[1] == ["embedding"]
    store = idle.knowledge.stores.create(name="papers")
    assert idle.knowledge.stores.search(store.id, "Biscuit").degraded == []


def test_the_previous_turn_is_embedded_before_the_next_is_answered(idle: Any) -> None:
    observe(idle, *(FILLER.format(n) for n in range(20)))
    settle(idle)
    for n in range(3):
        observe(idle, f"question {n}", f"answer {n}")
        assert found(idle, "something else")[1] == []
        settle(idle)


def test_the_previous_turn_is_embedded_beside_many_rows_with_the_words(idle: Any) -> None:
    observe(idle, *(f"the committee met {n} times" for n in range(60)))
    turn = observe(idle, "Biscuit is a beagle", "a fine dog")
    assert found(idle, "the committee met")[1] == ["embedding"]
    pending = "SELECT m.id FROM unembedded u JOIN memories m ON m.tenant_id = u.tenant_id AND m.seq = u.seq"
    left = until(
        lambda: idle.inner.core.store.db.read(lambda c: c.select(pending)),
        "the vectors of the search",
        accept=lambda rows: len(rows) == 62 - AT_ONCE,
    )
    assert {id_ for (id_,) in left}.isdisjoint(turn)


def test_nothing_of_others_comes_with_pending_rows(idle: Any) -> None:
    mine, theirs = (idle.as_subject(Subject(user_id=user, role="member")).sessions for user in ("ada", "bob"))
    (own,) = mine.observe([{"content": "Biscuit is mine"}], channel_id="c")
    theirs.observe([{"content": "Biscuit is theirs"}], channel_id="c")
    seen = idle.as_subject(Subject(user_id="ada", role="member")).memories.search("Biscuit", limit=10)
    assert [hit.memory.id for hit in seen.results] == [own.message.id]
    assert seen.degraded == []


def test_a_row_that_is_deleted_meanwhile_is_not_found(idle: Any) -> None:
    gone, kept = observe(idle, "Biscuit is a beagle", "Biscuit is a dog")
    idle.sessions.delete_message("talk", gone)
    assert found(idle, "Biscuit") == ([kept], [])


def test_a_row_is_found_by_its_vector_between_the_commit_and_the_index(
    idle: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    observe(idle, *(FILLER.format(n) for n in range(40)))
    settle(idle)
    (said,) = observe(idle, "Biscuit is a beagle")
    store = idle.inner.core.store
    after = store.derived.after

    def late(applied: Any) -> None:
        time.sleep(0.1)
        after(applied)

    monkeypatch.setattr(store.derived, "after", late)
    with ThreadPoolExecutor(1) as pool:
        settling = pool.submit(settle, idle)
        until(
            lambda: store.db.read(lambda c: c.select("SELECT 1 FROM unembedded")),
            "the commit of the vector",
            accept=not_,
            every=0.002,
        )
        result = idle.memories.search("a beagle called Biscuit", scopes=["session:talk"], limit=5)
        settling.result()
    assert (result.results[0].memory.id, result.degraded) == (said, [])
    assert result.results[0].similarity is not None


def test_cosines_are_those_of_the_best_window() -> None:
    query = np.array([1.0, 0.0], np.float32)
    rows = {7: np.array([[0.0, 2.0], [3.0, 3.0]], np.float32), 9: np.zeros((1, 2), np.float32)}
    seqs, made = cosines(query, rows)
    assert seqs.tolist() == [7, 9]
    assert made == pytest.approx([0.5**0.5, 0.0])


@given(
    st.lists(st.tuples(st.floats(0, 30), NUMBER), min_size=1, max_size=20),
    st.lists(st.floats(0, 30), max_size=9),
)
def test_estimates_rise_with_the_keyword_score_and_stay_between(known: Any, asked: list[float]) -> None:
    bm25, dense = (np.array(side, np.float64) for side in zip(*known, strict=True))
    made = estimated(bm25, dense, np.array(sorted(asked)))
    assert len(made) == len(asked)
    assert (np.diff(made) >= -1e-12).all()
    assert (made >= dense.min() - 1e-12).all()
    assert (made <= dense.max() + 1e-12).all()


def test_nothing_is_estimated_from_nothing() -> None:
    assert np.isnan(estimated(np.empty(0), np.empty(0), np.array([1.0]))).all()
