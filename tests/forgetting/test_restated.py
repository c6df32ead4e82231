"""What a deleted message said is in no fact that another message restates more shortly."""

from __future__ import annotations

from typing import Any

import pytest

from memoranda.app.blocking import BlockingMemoranda
from memoranda.facts import provenance
from support import live_files
from support.fact_reader import reading

from .places import settled
from .test_preview import counted
from .test_proof import lines_of_postgres, lines_of_sqlite

STREET = "Kantstrasse"
SESSION = "home"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages that are left are read again after half a second instead of two."""
    monkeypatch.setattr(provenance, "READ_AGAIN_AFTER", 0.5)


def say(rc: BlockingMemoranda, text: str, day: int) -> str:
    message = {
        "content": text,
        "speaker": "Tim",
        "user_id": "tim",
        "occurred_at": f"2026-01-{day:02}T10:00:00Z",
    }
    (kept,) = rc.observe([message], session_id=SESSION)
    settled(rc)
    return kept.message.id


def holding(rc: BlockingMemoranda, home: Any) -> set[str]:
    """Return the tables with the name of the street, and the places where a caller reads it."""
    sqlite = home.rows_in == "sqlite"
    lines = (
        lines_of_sqlite(home.folder / "data" / "memoranda.db") if sqlite else lines_of_postgres(home.url())
    )
    told = {name for name, line in lines if STREET.lower().encode() in line.lower()}
    facts = rc.memories.list(kinds=["fact"], scopes=["all"], include_archived=True).data
    read = {
        "export": b"\n".join(rc.memories.export(scopes=["all"])).decode(),
        "history": str([rc.facts.history(fact.id) for fact in facts]),
        "list": str(facts),
        "search": str([hit.memory for hit in rc.memories.search(STREET, scopes=["all"]).results]),
        "timeline": str(rc.facts.timeline(scopes=["all"]).data),
    }
    return told | {place for place, text in read.items() if STREET.lower() in text.lower()}


@pytest.mark.parametrize("how", ["delete", "forget", "text", "edit"])
def test_a_restated_fact_keeps_nothing_of_a_deleted_message(home: Any, how: str) -> None:
    with home.open(facts={"extraction": "eager"}) as rc, reading(rc):
        first = say(rc, f"I live in Berlin, {STREET} 5.", 1)
        second = say(rc, "I live in Berlin.", 2)
        (fact,) = rc.memories.list(kinds=["fact"], scopes=["all"]).data
        assert (fact.content, fact.source_refs) == (f"Tim lives in Berlin, {STREET} 5", [first, second])
        assert {"memories", "messages", "export", "history", "list", "search", "timeline"} <= holding(
            rc, home
        )

        if how == "delete":
            rc.sessions.delete_message(SESSION, first)
        elif how == "edit":
            rc.sessions.update_message(SESSION, first, "I like tea.")
        else:
            aim: dict[str, Any] = {"ids": [first]} if how == "forget" else {"text": f"{STREET} 5"}
            preview = rc.memories.preview_forget(**aim)
            assert preview.counts == {"memories": 2, "messages": 1}
            assert counted(rc.memories.forget(**aim)) == preview.counts
        assert holding(rc, home) == set()
        settled(rc)
        assert holding(rc, home) == set()
        again = {fact.content: fact for fact in rc.memories.list(kinds=["fact"], scopes=["all"]).data}
        assert {*again} == {"Tim lives in Berlin", *(["Tim likes tea"] if how == "edit" else [])}
        found = again["Tim lives in Berlin"]
        assert found.source_refs == [second]
        assert found.occurred_at.day == 2
        if how in ("forget", "text"):
            assert live_files.holding(home.folder / "data", STREET.encode(), STREET.lower().encode()) == set()


def test_a_restated_fact_goes_with_all_of_its_messages(home: Any) -> None:
    """A page with both of them leaves no job that reads one again."""
    with home.open(facts={"extraction": "eager"}) as rc, reading(rc):
        for day, text in enumerate((f"I live in Berlin, {STREET} 5.", "I live in Berlin."), 1):
            say(rc, text, day)
        preview = rc.memories.preview_forget(scopes=["user:tim"])
        assert counted(rc.memories.forget(scopes=["user:tim"])) == preview.counts
        settled(rc)
        assert rc.memories.list(scopes=["all"], kinds=["fact"], include_archived=True).data == []
        assert holding(rc, home) == set()


def test_what_a_fact_refined_holds_again(home: Any) -> None:
    with home.open(facts={"extraction": "eager"}) as rc, reading(rc):
        first, second, third = (
            say(rc, text, day)
            for day, text in enumerate(
                ("I live in Berlin.", f"I live in Berlin, {STREET} 5.", "I live in Berlin."), 1
            )
        )
        rc.sessions.delete_message(SESSION, second)
        settled(rc)
        (fact,) = rc.memories.list(kinds=["fact"], scopes=["all"]).data
        assert (fact.content, fact.source_refs) == ("Tim lives in Berlin", [first, third])
        assert holding(rc, home) == set()


@pytest.mark.parametrize("how", ["delete", "archive", "end"])
def test_what_a_person_took_out_of_the_same_sentence_stays_out(home: Any, how: str) -> None:
    with home.open(facts={"extraction": "eager"}) as rc, reading(rc):
        first = say(rc, f"I live in Berlin, {STREET} 5.", 1)
        say(rc, "I live in Berlin and I work at Acme.", 2)
        facts = {fact.content: fact for fact in rc.memories.list(kinds=["fact"], scopes=["all"]).data}
        assert {*facts} == {f"Tim lives in Berlin, {STREET} 5", "Tim works at Acme"}
        if how == "delete":
            rc.memories.delete(facts["Tim works at Acme"].id)
        elif how == "archive":
            rc.memories.update(facts["Tim works at Acme"].id, archived=True)
        else:
            rc.memories.update(
                facts[f"Tim lives in Berlin, {STREET} 5"].id, invalid_at="2026-02-01T00:00:00Z"
            )
        rc.sessions.delete_message(SESSION, first)
        settled(rc)
        left = [fact.content for fact in rc.memories.list(kinds=["fact"], scopes=["all"]).data]
        assert left == (["Tim works at Acme"] if how == "end" else ["Tim lives in Berlin"])
