"""What is said in stored responses is in the message log, found at once, and gone with them."""

from __future__ import annotations

from typing import Any

import pytest

from memoranda.responses.values import Exchange, MemoryUse, ResponseRequest, shown
from memoranda.types import Subject

pytestmark = pytest.mark.rows_in("sqlite", "postgresql")
ECHO = {"text": "you said: {question}", "repeat": True}
FIND = {"type": "function", "name": "find", "parameters": {"type": "object"}}


def words(desk: Any, query: str) -> list[str]:
    memories = desk.rc.as_subject(Subject(tenant_id=desk.tenant)).memories
    hits = memories.search(query, mode="keyword", scopes=["all"], kinds=["message"]).results
    return [hit.memory.content for hit in hits]


def test_what_was_asked_and_answered_is_found_on_return(desk: Any) -> None:
    desk.script(ECHO)
    first = desk.create("the kettle is green", by=desk.by("ada"), memory={"channel_id": "kitchen"})
    second = desk.create(
        "and the pan is red", previous_response_id=first.id, by=desk.by("ada"), background=True
    )
    desk.ended(second.id)
    sessions = desk.rc.as_subject(Subject(tenant_id=desk.tenant, user_id="ada", role="member")).sessions
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


def test_a_question_that_is_answered_with_a_call_is_logged_once(desk: Any) -> None:
    """Whether the client goes on from the response, sends its whole history with the call, or makes up a call."""
    call = {"calls": [{"name": "find", "id": "call_1"}]}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "flour, walnuts"}
    made_up = {"type": "function_call", "call_id": "call_1", "name": "find", "arguments": "{}"}

    desk.script(call, {"text": "a fine boat"}, call, {"text": "a fine canoe"}, {"text": "a fine raft"})
    first = desk.create("my boat is the Albatros", tools=[FIND])
    assert words(desk, "albatros") == ["my boat is the Albatros"]
    second = desk.create([output], previous_response_id=first.id, tools=[FIND])
    log = desk.rc.as_subject(Subject(tenant_id=desk.tenant)).sessions.messages(first.id).data
    assert [(message.role, message.content, message.response_id) for message in log] == [
        ("user", "my boat is the Albatros", first.id),
        ("assistant", "a fine boat", second.id),
    ]
    asked = {"role": "user", "content": "my canoe is the Otter"}
    first = desk.create([asked], tools=[FIND])
    desk.create([asked, *map(shown, first.output), output], tools=[FIND])
    assert words(desk, "otter") == ["my canoe is the Otter"]
    assert sorted(words(desk, "canoe")) == ["a fine canoe", "my canoe is the Otter"]
    desk.create([{"role": "user", "content": "my raft is the Heron"}, made_up, output], tools=[FIND])
    assert words(desk, "heron") == ["my raft is the Heron"]


def test_a_call_in_a_conversation_that_is_sent_as_a_whole_is_logged_once(desk: Any) -> None:
    desk.script({"calls": [{"name": "find", "id": "call_1"}]}, {"text": "a fine boat"})
    asked = {"role": "user", "content": "my boat is the Albatros"}
    rest = [
        {"type": "function_call", "call_id": "call_1", "name": "find", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "flour, walnuts"},
    ]

    async def send(items: list[Any]) -> None:
        request = ResponseRequest(input=items, tools=[FIND], store=False, memory=MemoryUse(session_id="talk"))
        run = await desk.by("ada").start(request, Exchange())
        await run.done()

    for items in ([asked], [asked, *rest]):
        desk.run(send(items))
        assert words(desk, "albatros") == ["my boat is the Albatros"]
    log = desk.rc.as_subject(Subject(tenant_id=desk.tenant)).sessions.messages("talk").data
    assert [message.content for message in log] == ["my boat is the Albatros", "a fine boat"]


def test_a_call_that_broke_off_logs_nothing(desk: Any) -> None:
    desk.script({"calls": [{"name": "find", "arguments": '{"a'}], "finish": "length"})
    assert desk.create("my boat is the Albatros", tools=[FIND]).status == "incomplete"
    assert words(desk, "albatros") == []


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


def test_what_no_database_stores_keeps_no_message_out_of_the_log(desk: Any) -> None:
    desk.script(ECHO)
    made = desk.create("the kettle\x00 is green")
    assert "messages" not in made.extensions["degraded"]
    assert "the kettle\ufffd is green" in words(desk, "kettle")


@pytest.mark.parametrize("background", [False, True])
def test_a_response_says_that_its_messages_are_not_logged(desk: Any, background: bool) -> None:
    desk.script({"text": "quite so", "repeat": True})
    made = desk.create("kettle" + " " * (1 << 20) + "pan", background=background)
    stored = desk.ended(made.id) if background else desk.run(desk.responses.get(made.id))
    assert "messages" in stored.extensions["degraded"]
    assert words(desk, "kettle") == []


def test_quotes_are_in_the_log_and_never_found(home: Any) -> None:
    with home.empty(embedder={"url": "hash:64"}) as r:
        r.memories.add("The kettle is green and stands by the stove.")
        made = r.responses.create("Which colour is the kettle?")
        assert "green" in str(made.output)
        assert [one.role for one in r.sessions.messages(made.id).data] == ["user", "assistant"]
        found = r.memories.search("kettle", mode="keyword", scopes=["all"]).results
        assert sorted(hit.memory.content for hit in found) == [
            "The kettle is green and stands by the stove.",
            "Which colour is the kettle?",
        ]


def test_without_memory_nothing_is_looked_up_or_kept(desk: Any) -> None:
    desk.script(ECHO)
    first = desk.create("the kettle is green", memory=False)
    second = desk.create("and the pan is red", memory=False, previous_response_id=first.id, background=True)
    desk.ended(second.id)
    assert words(desk, "kettle") == words(desk, "pan") == []
    assert desk.rc.as_subject(Subject(tenant_id=desk.tenant)).sessions.list().data == []
    desk.create("what is red?", previous_response_id=second.id, memory=MemoryUse(retrieval=False))
    assert sorted(words(desk, "red")) == ["what is red?", "you said: what is red?"]
    assert desk.model.asked[-1].messages[0]["content"] == "the kettle is green", "the chain goes on"
