"""Pinned memories: they neither decay nor are archived by themselves, and are found by listing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from memoranda.clock import moment, now_micros
from memoranda.errors import NotFound

DAY = 86_400_000_000
MADE = "UPDATE memories SET created_at = ? WHERE tenant_id = ? AND id = ?"


def test_a_pinned_memory_is_listed_until_it_is_unpinned(talk: Any) -> None:
    boat, kite = (
        talk.memories.add(f"Mara owns a {what}", kind="fact", user_id="mara", metadata={"by": "hand"}).memory
        for what in ("boat", "kite")
    )
    assert not boat.pinned
    pinned = talk.memories.pin(boat.id)
    assert (pinned.pinned, pinned.metadata, pinned.content) == (True, {"by": "hand"}, boat.content)
    assert talk.memories.pin(boat.id).pinned

    def listed(pinned: bool | None) -> list[str]:
        return [one.id for one in talk.memories.list(scopes=["user:mara"], pinned=pinned, order="asc").data]

    assert (listed(True), listed(False), listed(None)) == ([boat.id], [kite.id], [boat.id, kite.id])
    assert talk.memories.update(boat.id, metadata={"by": "mail"}).pinned
    assert not talk.memories.unpin(boat.id).pinned
    assert talk.memories.get(boat.id).metadata == {"by": "mail"}
    assert (listed(True), listed(False)) == ([], [boat.id, kite.id])
    for change in (talk.memories.pin, talk.memories.unpin):
        with pytest.raises(NotFound):
            change("mem_none")


def test_a_pinned_fact_is_not_archived_and_does_not_count(talk: Any) -> None:
    now = now_micros()
    ids = [
        talk.memories.add(f"Mara owns {what}", kind="fact", user_id="mara", confidence=confidence).memory.id
        for what, confidence in [("a boat", 0.1), ("a kite", 0.9), ("a lamp", 0.8)]
    ]
    for id_ in ids:
        talk.memories.pin(id_)
    talk.change(MADE, now - 400 * DAY, talk.tenant, ids[0])
    talk.rc.knowledge.admin.set_quotas({"max_entries": 1}, talk.tenant)
    assert talk.facts.sweep().unused == 0
    assert len(talk.live()) == 3
    talk.memories.unpin(ids[0])
    done = talk.facts.sweep()
    assert (done.unused, done.over) == (1, 0)
    for id_ in ids[1:]:
        talk.memories.unpin(id_)
    assert talk.facts.sweep().over == 1


def test_a_pinned_fact_keeps_its_score(talk: Any) -> None:
    fact = talk.memories.add("Mara owns a boat", kind="fact", user_id="mara").memory
    later = moment(now_micros()) + timedelta(days=60)

    def score() -> float:
        (hit,) = talk.memories.search("Who owns a boat?", scopes=["user:mara"], as_of=later).results
        return float(hit.score)

    before = score()
    talk.memories.pin(fact.id)
    pinned = score()
    talk.memories.unpin(fact.id)
    assert pinned > score() == before


def test_an_export_has_what_is_pinned(talk: Any, home: Any) -> None:
    fact = talk.memories.add("Mara owns a boat", kind="fact", user_id="mara").memory
    talk.memories.pin(fact.id)
    lines = list(talk.memories.export(scopes=["user:mara"]))
    talk.memories.forget([fact.id])
    talk.memories.import_from(lines, include_forgotten=True)
    assert talk.memories.get(fact.id).pinned
