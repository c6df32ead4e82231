"""Messages that answer with what does not hold any more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from memoranda.providers.chat.extractive import UNLIKELY
from memoranda.types import Subject
from support.fact_reader import reading

MOVED = "Jonas moved to Potsdam"
SETTINGS = {"facts": {"extraction": "lazy"}, "embedder": {"url": "hash:256"}}
SAID = [
    ("2026-09-01", "I live in Berlin, and I work at Falcon Systems."),
    ("2026-09-20", "The weather is fine today."),
    ("2026-09-29", "I moved to Potsdam."),
]
pytestmark = pytest.mark.rows_in("sqlite", "postgresql")


@pytest.fixture
def talk(home: Any) -> Iterator[Any]:
    """Jonas said where he lives, and later that he moved."""
    with home.open(**SETTINGS) as rc:
        for day, text in SAID:
            said = {"content": text, "speaker": "Jonas", "occurred_at": f"{day}T12:00:00Z"}
            rc.sessions.observe([said], channel_id="friends", user_id="jonas")
            with reading(rc):
                rc.facts.extract(rc.sessions.list(order="desc").data[0].id)
        yield rc


def lines(rc: Any, question: str, **fields: Any) -> list[str]:
    made = rc.context(question, scopes=["channel:friends"], **fields)
    return [piece.text for piece in made.pieces if piece.part == "memories"]


def test_what_holds_comes_before_the_message_of_what_ended(talk: Any) -> None:
    pieces = lines(talk, "Where does Jonas live?")
    assert MOVED in pieces[0]
    (old,) = [line for line in pieces if "I live in Berlin" in line]
    assert "[01 September 2026 to 29 September 2026] Jonas: " in old


def test_what_the_message_says_beside_it_holds(talk: Any) -> None:
    pieces = lines(talk, "Where does Jonas work?")
    assert not [line for line in pieces if "to 29 September 2026] Jonas:" in line]


def test_a_question_about_the_past_is_answered_as_of_then(talk: Any) -> None:
    before = datetime(2026, 9, 15, tzinfo=UTC)
    pieces = lines(talk, "Where does Jonas live?", as_of=before)
    assert "Berlin" in pieces[0]
    assert not [line for line in pieces if "to 29 September 2026] Jonas:" in line]


def test_a_response_quotes_what_holds(talk: Any) -> None:
    made = talk.responses.create("Where does Jonas live?", memory={"channel_id": "friends", "min_score": 0})
    text = made.output[-1]["content"][0]["text"].removeprefix(UNLIKELY)
    assert text.startswith(MOVED), [made.extensions, text]


def test_a_response_quotes_nothing_that_ended_from_a_summary(talk: Any) -> None:
    homes = [
        "I live in Leeds near the park.",
        "I live in Bath near the old mill.",
        "I live in Hull near the sea.",
    ]
    for day, text in enumerate(homes, 1):
        said = {"content": text, "speaker": "Mara", "occurred_at": f"2026-10-0{day}T12:00:00Z"}
        talk.sessions.observe([said], channel_id="club", user_id="mara")
        with reading(talk):
            talk.facts.extract(talk.sessions.list(order="desc").data[0].id)
    summary = "\n".join(f"Mara: {text}" for text in homes[:2])
    talk.memories.add(summary, channel_id="club", user_id="mara", kind="session_summary")
    made = talk.responses.create("Where does Mara live?", memory={"channel_id": "club", "min_score": 0})
    text = made.output[-1]["content"][0]["text"]
    assert "Hull" in text
    assert not re.search("Leeds|Bath", text), text


def test_a_fact_that_the_asker_does_not_see_ends_nothing(talk: Any) -> None:
    core = talk.inner.core
    core.store.db.write(
        lambda c: c.select("UPDATE memories SET user_id = 'eve' WHERE kind = 'fact' RETURNING id")
    ).result()
    member = talk.inner.as_subject(Subject(user_id="jonas", role="member")).contexts
    pieces = talk.portal.call(member.context("Where does Jonas live?")).pieces
    assert [piece for piece in pieces if "Berlin" in piece.text]
    assert not [piece for piece in pieces if "29 September 2026] Jonas:" in piece.text]
