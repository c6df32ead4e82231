"""What is said in stored responses is in the message log, found at once, and gone with them."""

from __future__ import annotations

from typing import Any

import pytest

from memoranda.types import Subject

pytestmark = pytest.mark.rows_in("sqlite", "postgresql")
ECHO = {"text": "you said: {question}", "repeat": True}


def words(desk: Any, query: str) -> list[str]:
    memories = desk.rc.acting_as(Subject(tenant_id=desk.tenant))
    hits = memories.search(query, mode="words", scopes=["all"], kinds=["message"]).results
    return [hit.memory.content for hit in hits]


def test_what_was_asked_and_answered_is_found_on_return(desk: Any) -> None:
    desk.script(ECHO)
    first = desk.create("the kettle is green", by=desk.by("ada"), memory={"channel_id": "kitchen"})
    second = desk.create(
        "and the pan is red", previous_response_id=first.id, by=desk.by("ada"), background=True
    )
    desk.ended(second.id)
    sessions = desk.rc.sessions_as(Subject(tenant_id=desk.tenant, user_id="ada", role="member"))
    (session,) = sessions.list().data
    assert (session.id, session.named, session.channel_id, session.user_id) == (
        first.id,
        True,
        "kitchen",
        "ada",
    )
    said = sessions.messages(session.id).data
    assert [(one.role, one.content) for one in said] == [
        ("user", "the kettle is green"),
        ("assistant", "you said: the kettle is green"),
        ("user", "and the pan is red"),
        ("assistant", "you said: and the pan is red"),
    ]
    assert [one.response_id for one in said] == [first.id] * 2 + [second.id] * 2
    assert said[1].id == first.output[-1]["id"]
    assert sorted(words(desk, "kettle")) == ["the kettle is green", "you said: the kettle is green"]
    desk.run(desk.responses.delete(first.id))
    assert words(desk, "kettle") == []
    assert [one.content for one in sessions.messages(session.id).data] == [
        "and the pan is red",
        "you said: and the pan is red",
    ]


def test_what_is_not_stored_and_what_was_said_before_is_not_kept_again(desk: Any) -> None:
    desk.script(ECHO)
    desk.create("a secret about the kettle", store=False)
    assert words(desk, "kettle") == []
    history = [
        {"role": "user", "content": "the first about the kettle"},
        {"role": "assistant", "content": "the answer about the kettle"},
        {"role": "user", "content": "the second about the kettle"},
    ]
    desk.create(history)
    assert sorted(words(desk, "kettle")) == [
        "the second about the kettle",
        "you said: the second about the kettle",
    ]


def test_an_id_that_is_taken_keeps_no_response_from_being_stored(desk: Any) -> None:
    desk.script(ECHO)
    for text in ("the kettle is green", "the pan is red"):
        asked = {"type": "message", "id": "msg_mine", "role": "user", "content": text}
        assert desk.run(desk.responses.get(desk.create([asked]).id)).status == "completed"
    assert "the pan is red" in words(desk, "pan")


def test_without_indexing_memory_is_as_it_was_and_the_log_goes_on(home: Any, tmp_path: Any) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"turns": [{"text": "quite so", "repeat": true}]}')
    with home.empty(model={"url": f"scripted:{script}"}, sessions={"index_messages": False}) as r:
        made = r.responses.create("the kettle is green")
        assert r.memories.count() == 0
        assert [one.content for one in r.sessions.messages(made.id).data] == [
            "the kettle is green",
            "quite so",
        ]
