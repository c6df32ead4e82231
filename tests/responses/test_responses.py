"""Responses in chains and conversations, for one subject and not for another, with what the model is told of them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.errors import Forbidden, InvalidInput, ModelRefused, ModelUnavailable, NotFound
from memoranda.providers.chat.extractive import UNLIKELY
from memoranda.responses.history import UnknownResponse
from memoranda.responses.values import MemoryUse, Response
from memoranda.text.prompts import QUOTED, UNREMEMBERED
from memoranda.types import Subject

FIND = {"type": "function", "name": "find", "parameters": {"type": "object"}}
ECHO = {"text": "you said {question}", "repeat": True}
TABLES = ("responses", "response_events", "conversations", "conversation_items", "jobs", "memories")


def said(desk: Any, call: int = -1) -> list[str]:
    """What the model was told, message by message."""
    return [f"{message['role']}: {message['content']}" for message in desk.told(call)]


def text(response: Response) -> str:
    return "".join(part["text"] for item in response.output for part in item.get("content", ()))


# --- chains ----------------------------------------------------------------------------------------


def test_a_chain_is_told_in_order(desk: Any) -> None:
    desk.script(ECHO)
    last = None
    for word in ("one", "two", "three"):
        last = desk.create(word, previous_response_id=last and last.id)
    assert said(desk) == [
        "user: one",
        "assistant: you said one",
        "user: two",
        "assistant: you said two",
        "user: three",
    ]
    assert last.extensions["history"]["turns"] == 2


def test_a_chain_branches(desk: Any) -> None:
    desk.script(ECHO)
    root = desk.create("root")
    left = desk.create("left", previous_response_id=root.id)
    desk.create("right", previous_response_id=root.id, memory=False)
    assert said(desk) == ["user: root", "assistant: you said root", "user: right"]
    desk.create("more", previous_response_id=left.id, memory=False)
    assert said(desk)[2] == "user: left"


def test_instructions_are_not_carried_along(desk: Any) -> None:
    desk.script(ECHO)
    first = desk.create("one", instructions="be brief")
    assert said(desk)[0] == "system: be brief"
    desk.create("two", previous_response_id=first.id)
    assert said(desk)[0] == "user: one"


def test_a_response_that_was_deleted_breaks_the_chain(desk: Any) -> None:
    """What came after it is still told, and the answer says that something is missing."""
    desk.script(ECHO)
    ids: list[str] = []
    for word in ("one", "two", "three"):
        ids.append(desk.create(word, previous_response_id=ids[-1] if ids else None).id)
    desk.run(desk.responses.delete(ids[1]))
    last = desk.create("four", previous_response_id=ids[2], memory=False)
    assert said(desk) == ["user: three", "assistant: you said three", "user: four"]
    assert last.extensions["history"]["broken"] is True
    with pytest.raises(UnknownResponse):
        desk.create("five", previous_response_id=ids[1])
    with pytest.raises(NotFound):
        desk.run(desk.responses.delete(ids[1]))


def test_a_circle_ends(desk: Any) -> None:
    desk.script(ECHO)
    first = desk.create("one")
    second = desk.create("two", previous_response_id=first.id)
    desk.change(
        "UPDATE responses SET previous_id = ? WHERE tenant_id = ? AND id = ?",
        second.id,
        desk.tenant,
        first.id,
    )
    desk.create("three", previous_response_id=second.id)
    assert said(desk)[-1] == "user: three"
    assert len(said(desk)) == 5


def test_one_that_is_still_made_is_no_beginning(desk: Any) -> None:
    desk.script({"text": "slow", "hang": True})
    made = desk.create("go", background=True)
    with pytest.raises(InvalidInput, match="still being made") as refused:
        desk.create("next", previous_response_id=made.id)
    assert refused.value.field == "previous_response_id"
    desk.run(desk.responses.cancel(made.id))
    desk.script(ECHO)
    assert desk.create("next", previous_response_id=made.id).status == "completed"


def test_nobody_goes_on_from_another_ones(desk: Any) -> None:
    desk.script(ECHO)
    ada = desk.by("ada")
    mine = desk.create("a secret", by=ada)
    for other in (desk.by("bob"), desk.by("ada", tenant=f"{desk.tenant}-other"), desk.by(tenant="elsewhere")):
        with pytest.raises(UnknownResponse):
            desk.create("go on", by=other, previous_response_id=mine.id)
        for verb in (other.get, other.delete, other.cancel, other.input_items, other.events):
            with pytest.raises(NotFound):
                desk.run(verb(mine.id))
        reference = [{"type": "item_reference", "id": mine.output[0]["id"]}, {"role": "user", "content": "x"}]
        with pytest.raises(InvalidInput, match="not found"):
            desk.create(reference, by=other)
    for unknown in ("resp_none", "", "\x00", "x" * 500):
        with pytest.raises(UnknownResponse):
            desk.create("go on", previous_response_id=unknown)
    assert desk.create("go on", by=ada, previous_response_id=mine.id).status == "completed"
    assert desk.create("go on", previous_response_id=mine.id).status == "completed", "an admin sees all"


def test_a_reader_makes_none(desk: Any) -> None:
    with pytest.raises(Forbidden):
        desk.create("hi", by=desk.by("ada", role="reader"))


def test_what_is_not_stored_leaves_nothing(desk: Any) -> None:
    desk.script(ECHO, ECHO)
    before = {table: desk.rows(f"SELECT count(*) FROM {table}") for table in TABLES}
    made = desk.create("a secret", store=False, metadata={"note": "secret"})
    assert (made.store, text(made)) == (False, "you said a secret")
    desk.stream("another secret", store=False)
    assert {table: desk.rows(f"SELECT count(*) FROM {table}") for table in TABLES} == before
    with pytest.raises(NotFound):
        desk.run(desk.responses.get(made.id))
    with pytest.raises(UnknownResponse):
        desk.create("next", previous_response_id=made.id)


def test_a_stored_response_is_fetched_as_it_was_told(desk: Any) -> None:
    desk.script(
        {"text": "see", "reasoning": "hm", "usage": {"input": 5, "output": 6, "cached": 2, "reasoning": 1}}
    )
    asked = {
        "instructions": "be brief", "metadata": {"a": "b"}, "temperature": 0.5, "top_p": 0.9, "user": "u",
        "max_output_tokens": 50, "max_tool_calls": 3, "tools": [FIND], "tool_choice": "auto", "truncation": "auto",
        "parallel_tool_calls": False, "text": {"verbosity": "low"}, "reasoning": {"effort": "low"},
        "safety_identifier": "s", "prompt_cache_key": "k", "service_tier": "auto", "top_logprobs": 2,
        "presence_penalty": 0.1, "frequency_penalty": 0.2,
    }  # fmt: skip
    made = desk.create("go", **asked)
    assert desk.run(desk.responses.get(made.id)) == made
    for name, value in asked.items():
        shown = getattr(made, name)
        assert shown == (value if name not in ("text", "tools") else shown), name
    assert made.text == {"format": {"type": "text"}, "verbosity": "low"}
    ask = desk.model.asked[0]
    assert (ask.temperature, ask.top_p, ask.max_tokens, ask.parallel_tool_calls) == (0.5, 0.9, 50, False)
    assert (ask.reasoning_effort, ask.verbosity, ask.top_logprobs) == ("low", "low", 2)
    assert (ask.presence_penalty, ask.frequency_penalty) == (0.1, 0.2)


# --- tools of the client ---------------------------------------------------------------------------


def test_a_function_is_called_and_answered(desk: Any) -> None:
    desk.script(
        {"text": "I look", "calls": [{"name": "find", "arguments": {"q": "x"}, "id": "call_7"}]},
        {"after": "found it", "text": "There it is"},
    )
    first = desk.create("where is x?", tools=[FIND])
    assert [item["type"] for item in first.output] == ["message", "function_call"]
    with pytest.raises(InvalidInput, match="No tool output found for function call call_7"):
        desk.create("and?", previous_response_id=first.id)
    answer = {"type": "function_call_output", "call_id": "call_7", "output": "found it"}
    second = desk.create([answer], previous_response_id=first.id, tools=[FIND])
    assert text(second) == "There it is"
    with pytest.raises(InvalidInput, match="No tool call found"):
        desk.create([answer, {**answer, "call_id": "call_8"}], previous_response_id=first.id)


def test_the_same_without_anything_stored(desk: Any) -> None:
    """The client sends everything again, reasoning and ids included."""
    desk.script(
        {"reasoning": "hm", "calls": [{"name": "find", "id": "c"}]}, {"after": "found", "text": "done"}
    )
    first = desk.create("go", tools=[FIND], store=False)
    again = [
        {"role": "user", "content": "go"},
        *first.output,
        {"type": "function_call_output", "call_id": "c", "output": "found"},
    ]
    assert text(desk.create(again, tools=[FIND], store=False)) == "done"
    assert [message["role"] for message in desk.told()] == ["user", "assistant", "tool"]


def test_ids_that_a_model_gives_twice(desk: Any) -> None:
    """Small servers number the calls of every answer from 0."""
    desk.script(*({"calls": [{"name": "find", "arguments": {"n": n}, "id": "call_0"}]} for n in range(3)))
    answer = {"type": "function_call_output", "call_id": "call_0"}
    last = desk.create("go", tools=[FIND])
    for n in range(2):
        last = desk.create([{**answer, "output": f"answer {n}"}], previous_response_id=last.id, tools=[FIND])
    assert [message["content"] for message in desk.told() if message["role"] == "tool"] == [
        "answer 0",
        "answer 1",
    ]
    assert [message["role"] for message in desk.told()] == ["user", "assistant", "tool", "assistant", "tool"]


def test_a_chain_goes_on_after_the_response_with_its_call_is_deleted(desk: Any) -> None:
    desk.script({"calls": [{"name": "find", "id": "call_1"}]}, {"text": "42 it is"}, ECHO)
    first = desk.create("what is it?", tools=[FIND])
    output = {"type": "function_call_output", "call_id": "call_1", "output": "42"}
    second = desk.create([output], previous_response_id=first.id, tools=[FIND])
    desk.run(desk.responses.delete(first.id))
    third = desk.create("go on", previous_response_id=second.id, memory=False)
    assert said(desk) == ["assistant: 42 it is", "user: go on"]
    assert third.extensions["history"]["broken"]


def test_a_call_that_broke_off_does_not_stop_the_conversation(desk: Any) -> None:
    desk.script(
        {"text": "I", "calls": [{"name": "find", "arguments": '{"a'}], "finish": "length"}, {"text": "better"}
    )
    first = desk.create("go", tools=[FIND])
    assert (first.status, first.output[1]["status"]) == ("incomplete", "incomplete")
    assert text(desk.create("again", previous_response_id=first.id)) == "better"
    assert said(desk) == ["user: go", "assistant: I", "user: again"]


# --- conversations ---------------------------------------------------------------------------------


def test_a_conversation_grows_by_what_is_said_and_answered(desk: Any) -> None:
    desk.script(ECHO)
    conversations = desk.inner.as_subject(desk.admin).conversations
    held = desk.run(conversations.create([{"role": "system", "content": "a note"}]))
    for word in ("one", "two"):
        made = desk.create(word, conversation=held.id)
        assert made.conversation == {"id": held.id}
    assert said(desk) == ["system: a note", "user: one", "assistant: you said one", "user: two"]
    items = desk.run(conversations.items(held.id, order="asc")).data
    assert [item["role"] for item in items] == ["system", "user", "assistant", "user", "assistant"]
    assert items[-1]["id"] == made.output[0]["id"]


def test_a_conversation_survives_what_goes_wrong_in_it(desk: Any) -> None:
    """A call that broke off, a model that was away, an answer that nobody waited for."""
    conversation = desk.run(desk.inner.as_subject(desk.admin).conversations.create()).id
    desk.script(
        {"when": "one", "text": "I", "calls": [{"name": "find", "arguments": '{"a'}], "cut": True},
        {"when": "two", "status": 503},
        {"when": "three", "text": "half a", "hang": True},
        {"when": "four", "text": "fine"},
    )
    assert desk.create("one", conversation=conversation, tools=[FIND]).status == "failed"
    with pytest.raises(ModelUnavailable):
        desk.create("two", conversation=conversation, tools=[FIND])

    async def abandon() -> None:
        run = await desk.start("three", conversation=conversation)
        async for batch in run:
            if any(event["type"].endswith("text.delta") for event in batch):
                run.abandon()

    desk.run(abandon())
    assert text(desk.create("four", conversation=conversation)) == "fine"
    told = said(desk)
    assert told[:3] == ["user: one", "assistant: I", "user: three"]
    assert told[-1] == "user: four"


def test_a_response_without_an_answer_or_call_adds_nothing_to_its_conversation(desk: Any) -> None:
    """Refused, unavailable, or abandoned while the model thinks; a retry does not repeat the question."""
    conversations = desk.inner.as_subject(desk.admin).conversations
    conversation = desk.run(conversations.create()).id
    desk.script(
        {"status": 503},
        {"status": 503},
        {"when": "^I owe", "text": "noted"},
        {"reasoning": "one two", "hang": True},
        {"text": "cut off", "finish": "length"},
    )
    for _ in range(2):
        with pytest.raises(ModelUnavailable):
            desk.create("I owe Ben 50 euros", conversation=conversation, memory=False)
    desk.create("I owe Ben 50 euros", conversation=conversation, memory=False)
    with pytest.raises(InvalidInput, match="tokens"):
        desk.create("word " * 200_000, conversation=conversation, memory=False)

    async def abandon() -> None:
        run = await desk.start("and Ann?", conversation=conversation, memory=False)
        async for batch in run:
            if any(event["type"].endswith("reasoning_text.delta") for event in batch):
                run.abandon()
        assert (run.response.status, run.response.output[0]["type"]) == ("cancelled", "reasoning")

    desk.run(abandon())
    assert desk.create("tell me all", conversation=conversation, memory=False).status == "incomplete"
    items = desk.run(conversations.items(conversation, order="asc")).data
    assert [item["content"][0]["text"] for item in items] == [
        "I owe Ben 50 euros",
        "noted",
        "tell me all",
        "cut off",
    ]


def test_conversations_that_are_not_there(desk: Any) -> None:
    ada = Subject(tenant_id=desk.tenant, user_id="ada", role="member")
    mine = desk.run(desk.inner.as_subject(ada).conversations.create()).id
    for by, id_ in (
        (desk.by("bob"), mine),
        (desk.responses, "conv_none"),
        (desk.by(tenant="elsewhere"), mine),
    ):
        with pytest.raises(NotFound):
            desk.create("hi", by=by, conversation=id_)
    with pytest.raises(InvalidInput, match="goes without"):
        desk.create("hi", conversation=mine, previous_response_id="resp_1")


def test_a_conversation_that_is_deleted_meanwhile(desk: Any) -> None:
    conversations = desk.inner.as_subject(desk.admin).conversations
    held = desk.run(conversations.create())
    desk.script({"text": "one two", "pause_at": 1})

    async def test() -> Response:
        run = await desk.start("hi", conversation=held.id)
        await conversations.delete(held.id)
        desk.model.play.resume()
        return await run.done()

    assert desk.run(test()).status == "completed"
    assert desk.rows("SELECT count(*) FROM conversation_items WHERE tenant_id = ?", desk.tenant) == [(0,)]


# --- items of before -------------------------------------------------------------------------------


def test_items_by_reference(desk: Any) -> None:
    desk.script(ECHO)
    first = desk.create("one")
    reference = {"type": "item_reference", "id": first.output[0]["id"]}
    desk.create([reference, {"role": "user", "content": "two"}])
    assert said(desk) == ["assistant: you said one", "user: two"]
    again = [reference, {"role": "user", "content": "two"}]
    desk.create(again, previous_response_id=first.id, memory=False)
    assert said(desk) == ["user: one", "assistant: you said one", "user: two"]
    with pytest.raises(InvalidInput, match=r"input\[0\].id: Item with id 'msg_none' not found"):
        desk.create([{"type": "item_reference", "id": "msg_none"}])


def test_input_items(desk: Any) -> None:
    desk.script(ECHO)
    made = desk.create([{"role": "user", "content": f"line {n}"} for n in range(5)])

    def lines(**asked: Any) -> tuple[list[str], bool]:
        page = desk.run(desk.responses.input_items(made.id, **asked))
        return [item["content"][0]["text"][-1] for item in page.data], page.has_more

    assert lines() == (["4", "3", "2", "1", "0"], False)
    assert lines(order="asc", limit=2) == (["0", "1"], True)
    first = desk.run(desk.responses.input_items(made.id, order="asc", limit=2))
    assert lines(order="asc", limit=2, after=first.last_id) == (["2", "3"], True)
    assert not any(key.startswith("_") for item in first.data for key in item)
    with pytest.raises(InvalidInput):
        lines(after="msg_none")


# --- the model -------------------------------------------------------------------------------------


def test_structured_output_reaches_the_model(desk: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    desk.script(ECHO)
    desk.create(text={"format": {"type": "json_schema", "name": "n", "schema": schema, "strict": True}})
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": True}}
    assert desk.model.asked[0].response_format == wanted
    desk.create(text={"format": {"type": "json_object"}})
    assert desk.model.asked[1].response_format == {"type": "json_object"}
    for wrong in ({"type": "xml"}, {"type": "json_schema"}, 5, {"type": ["text"]}):
        with pytest.raises(InvalidInput, match=r"text\.format"):
            desk.create(text={"format": wrong})


def test_a_model_that_is_away_before_it_said_anything(desk: Any) -> None:
    """The caller hears of it as an error; what was asked is stored as failed."""
    for status, error in ((503, ModelUnavailable), (400, ModelRefused)):
        desk.script({"status": status})
        with pytest.raises(error):
            desk.create()
        events = [
            (e["type"], e.get("response", {}).get("error"))
            for e in (desk.script({"status": status}), desk.stream())[1]
        ]
        assert [kind for kind, _ in events] == ["response.created", "response.in_progress", "response.failed"]
        assert events[-1][1]["code"] == ("invalid_prompt" if status == 400 else "server_error")
    assert desk.rows(
        "SELECT status, count(*) FROM responses WHERE tenant_id = ? GROUP BY status", desk.tenant
    ) == [("failed", 4)]


def test_what_was_found_is_quoted_while_the_model_is_away(desk: Any) -> None:
    store = desk.store("The boss of the house is Ada Lovelace. She likes tea.")
    tools = [{"type": "file_search", "vector_store_ids": [store]}]
    desk.script({"status": 503, "repeat": True})
    made = desk.create("Who is the boss of the house?", tools=tools)
    assert made.status == "completed"
    assert "Ada Lovelace" in text(made)
    assert made.extensions["answered_by"] == "extractive"
    assert "model" in made.extensions["degraded"]
    assert made.output[-1]["content"][0]["annotations"][0]["filename"] == "file 0.txt"
    with pytest.raises(ModelUnavailable):
        desk.create("Who is the boss of the house?")
    desk.script({"status": 400, "repeat": True})
    with pytest.raises(ModelRefused):
        desk.create("Who is the boss?", tools=tools)


def test_a_response_reports_whether_what_was_found_answers(desk: Any) -> None:
    store = desk.store("The boss of the house is Ada Lovelace. She likes tea.")
    tools = [{"type": "file_search", "vector_store_ids": [store]}]
    desk.script({"status": 503, "repeat": True})
    made = desk.create("Who is the boss of the house?", tools=tools)
    assert made.extensions["evidence"] == "strong"
    assert made.extensions["evidence_probability"] > 0.6
    away = desk.create("How heavy is a blue whale?", tools=tools)
    assert away.extensions["evidence"] == "none"
    assert text(away).startswith(UNLIKELY)
    desk.script({"text": "Good morning."})
    assert "evidence" not in desk.create("Hello", memory={"retrieval": False}).extensions


def test_a_model_is_told_that_memories_are_not_likely_to_answer(desk: Any) -> None:
    desk.rc.as_subject(desk.admin).memories.add("Ada has a dog called Rex", user_id="ada")
    for question, doubtful in (("How heavy is a blue whale?", True), ("Has Ada a dog called Rex?", False)):
        desk.script({"text": "Hm."})
        desk.create(question, by=desk.by("ada"))
        told = desk.told()
        assert "Ada has a dog called Rex" in told[-2]["content"]
        assert (told[-2]["role"], told[-1]["role"]) == ("user", "user")
        assert [UNREMEMBERED in one["content"] for one in told if one["role"] == "system"] == [
            True
        ] * doubtful


def test_a_model_that_goes_away_after_its_search(desk: Any) -> None:
    """What it had found is quoted; what it had called counts as called."""
    store = desk.store("The boss of the house is Ada Lovelace. She likes tea.")
    desk.script(
        {
            "offered": "file_search",
            "calls": [{"name": "file_search", "arguments": {"query": "boss of the house"}}],
        },
        {"status": 503},
    )
    tools = [{"type": "file_search", "vector_store_ids": [store]}]
    made = desk.create("Who is the boss of the house?", tools=tools, max_tool_calls=1)
    assert made.status == "completed"
    assert [item["type"] for item in made.output] == ["file_search_call", "message"]
    assert "Ada Lovelace" in text(made)
    assert (made.extensions["answered_by"], made.extensions["degraded"]) == ("extractive", ["model"])


@pytest.mark.rows_in("sqlite")
def test_nothing_is_quoted_where_that_is_switched_off(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('[{"status": 503, "repeat": true}]')
    model = {"url": f"scripted:{script}", "fallback": False}
    with memoranda.open(":memory:", embedder={"url": "hash:64"}, model=model) as opened:
        store = opened.knowledge.stores.create().id
        tools = [{"type": "file_search", "vector_store_ids": [store]}]
        with pytest.raises(ModelUnavailable):
            opened.portal.call(opened.inner.responses.create("boss?", tools=tools))


def test_a_search_in_files_and_what_it_cites(desk: Any) -> None:
    store = desk.store("The boss of the house is Ada Lovelace.", "The canteen serves soup.")
    desk.script(
        {
            "offered": "file_search",
            "calls": [{"name": "file_search", "arguments": {"query": "who is the boss"}}],
        },
        {"after": "Ada", "text": "It is Ada Lovelace [1]."},
        {"text": "As I said [1]."},
    )
    tools = [{"type": "file_search", "vector_store_ids": [store]}]
    made = desk.create("boss?", tools=tools, include=["file_search_call.results"])
    search, message = made.output
    assert search["queries"] == ["who is the boss"]
    assert search["results"][0]["filename"] == "file 0.txt"
    (cited,) = message["content"][0]["annotations"]
    assert (cited["type"], cited["filename"]) == ("file_citation", "file 0.txt")
    assert made.extensions["answered_by"] == "scripted"
    assert desk.run(desk.responses.get(made.id)).output[0]["results"] is None
    assert desk.run(desk.responses.get(made.id, ["file_search_call.results"])).output == made.output
    again = desk.create("sure?", previous_response_id=made.id)
    assert again.output[0]["content"][0]["annotations"][0]["file_id"] == cited["file_id"]
    with pytest.raises(NotFound):
        desk.create("boss?", tools=[{"type": "file_search", "vector_store_ids": ["vs_none"]}])


# --- memory ----------------------------------------------------------------------------------------


def test_memories_are_told_before_the_first_call(desk: Any) -> None:
    memories = desk.inner.as_subject(desk.admin).memories
    kept = desk.run(memories.add("The user drinks green tea in the morning", user_id="ada")).memory
    desk.script(ECHO, ECHO)
    made = desk.create("What does the user drink in the morning?", by=desk.by("ada"), instructions="be brief")
    system, quoted, _ = said(desk)
    assert system == "system: be brief"
    assert quoted.startswith(f"user: {QUOTED}")
    assert "green tea" in quoted
    (told,) = made.extensions["memory"]["retrieved"]
    assert (told["id"], told["used"]) == (kept.id, True)
    assert made.extensions["memory"]["tokens"] > 0
    off = desk.create("What does the user drink in the morning?", by=desk.by("ada"), memory=False)
    assert "tea" not in "".join(said(desk)[:1])
    assert off.extensions["memory"] == {"retrieved": [], "tokens": 0}


def test_nobody_is_told_what_is_anothers(desk: Any) -> None:
    everyone = desk.inner.as_subject(desk.admin).memories
    for user in ("ada", "bob"):
        desk.run(everyone.add(f"The secret number of {user} is {user}123", user_id=user))
    other = desk.inner.as_subject(Subject(tenant_id=f"{desk.tenant}-other")).memories
    desk.run(other.add("The secret number of the other tenant is other123", user_id="ada"))
    search = {"name": "memory_search", "arguments": {"query": "secret number"}}
    desk.script(*[{"offered": "memory_search", "calls": [search]}] * 3, {**ECHO, "text": "ok"})
    tools = [{"type": "memory_search"}]
    desk.create("What is the secret number?", by=desk.by("ada"), tools=tools)
    told = str([ask.messages for ask in desk.model.asked])
    assert "ada123" in told
    assert "bob123" not in told
    assert "other123" not in told
    for use in (MemoryUse(user_id="bob"), MemoryUse(user_id="nobody")):
        with pytest.raises(Forbidden):
            desk.create("What is the secret number?", by=desk.by("ada"), memory=use)


# --- requests that make no sense -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"input": None}, "input"),
        ({"temperature": 3.0}, "temperature"),
        ({"top_p": float("nan")}, "top_p"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"max_tool_calls": 0}, "max_tool_calls"),
        ({"truncation": "perhaps"}, "truncation"),
        ({"metadata": {"k": "v" * 513}}, "metadata.k"),
        ({"metadata": {str(n): "" for n in range(17)}}, "metadata"),
        ({"instructions": "half \ud83d"}, "instructions"),
        ({"user": "half \ud83d"}, "user"),
        ({"model": "half \ud83d"}, "model"),
        ({"tools": [{"type": "function", "name": "f", "description": "half \ud83d"}]}, "tools"),
        ({"reasoning": {"effort": "half \ud83d"}}, "reasoning"),
        ({"tool_choice": "must"}, "tool_choice"),
        ({"memory": MemoryUse(min_score=2.0)}, "memory.min_score"),
        ({"memory": MemoryUse(kinds=["nonsense"])}, "memory.kinds"),
    ],
)
@pytest.mark.rows_in("sqlite")
def test_what_makes_no_sense_is_named_and_nothing_is_stored(
    desk: Any, fields: dict[str, Any], field: str
) -> None:
    desk.script(ECHO)
    with pytest.raises(InvalidInput) as refused:
        desk.create(**{"input": "hi", **fields})
    assert refused.value.field.startswith(field)
    assert desk.rows("SELECT count(*) FROM responses WHERE tenant_id = ?", desk.tenant) == [(0,)]
    assert desk.model.asked == []


def test_tokens_are_counted_without_asking_the_model(desk: Any) -> None:
    desk.script(ECHO)
    first = desk.create("one two three")
    alone = desk.run(desk.responses.input_tokens("four", memory=False))
    behind = desk.run(
        desk.responses.input_tokens(
            "four", previous_response_id=first.id, instructions="be brief", memory=False
        )
    )
    assert 0 < alone < behind
    assert len(desk.model.asked) == 1


def test_many_go_on_from_one_at_once(desk: Any) -> None:
    desk.script(ECHO)
    first = desk.create("root")

    async def test() -> list[Response]:
        asked = (desk.responses.create(f"n{n}", previous_response_id=first.id) for n in range(20))
        return await asyncio.gather(*asked)

    made = desk.run(test())
    assert {text(one) for one in made} == {f"you said n{n}" for n in range(20)}


def test_a_stored_response_tells_its_events_again(desk: Any) -> None:
    """Those of the stream it was made with, but for the pieces that its texts came in."""

    def kinds(events: list[dict[str, Any]]) -> list[str]:
        told = [event["type"] for event in events]
        return [kind for at, kind in enumerate(told) if not at or kind != told[at - 1]]

    store = desk.store("The boss of the house is Ada Lovelace.", "The canteen serves soup.")
    tools = [
        {"type": "file_search", "vector_store_ids": [store]},
        {"type": "function", "name": "ring", "parameters": {"type": "object", "properties": {}}},
    ]
    desk.script(
        {
            "offered": "file_search",
            "calls": [{"name": "file_search", "arguments": {"query": "who is the boss"}}],
        },
        {"text": "It is Ada Lovelace [1].", "calls": [{"name": "ring", "arguments": {"times": 2}}]},
    )
    streamed = desk.stream("boss?", tools=tools)
    made = streamed[-1]["response"]

    async def again(**fields: Any) -> list[dict[str, Any]]:
        return [event async for batch in await desk.responses.events(made["id"], **fields) for event in batch]

    events = desk.run(again())
    assert kinds(events) == kinds(streamed)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert {**events[-1]["response"], "extensions": 0} == {**made, "extensions": 0}
    items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert items == made["output"]
    assert desk.run(again(after=4)) == events[5:]
    found = desk.run(again(include=["file_search_call.results"]))[-1]["response"]["output"][0]
    assert found["results"][0]["filename"] == "file 0.txt"


# --- the list --------------------------------------------------------------------------------------


def test_a_list_says_what_was_asked_and_what_it_took(desk: Any) -> None:
    note = {"name": "memory_write", "arguments": {"content": "The key is under the pot."}}
    desk.script(
        {"offered": "memory_write", "calls": [note]}, {"text": "noted"}, {"text": "ok", "repeat": True}
    )
    first = desk.create("Where? " + "x" * 400, tools=[{"type": "memory_write"}])
    others = [desk.create(f"question {n}").id for n in range(3)]
    unstored = desk.create("unstored", store=False)

    page = desk.run(desk.responses.list(limit=3))
    assert [one.id for one in page.data] == others[::-1]
    assert page.has_more
    (oldest,) = desk.run(desk.responses.list(after=page.last_id)).data
    assert unstored.id not in {oldest.id, *others}
    assert oldest.question == ("Where? " + "x" * 400)[:300]
    assert (oldest.tool_calls, oldest.failed_tool_calls) == ({"memory_write": 1}, 0)
    assert oldest.usage == first.usage
    assert (oldest.status, oldest.answered_by) == ("completed", "scripted")
    timings = first.extensions["timings"]
    assert oldest.timings == timings
    assert set(timings) == {"retrieval", "model", "tools", "total"}
    assert timings["total"] >= max(timings["retrieval"], timings["model"], timings["tools"]) > 0

    backwards = desk.run(desk.responses.list(order="asc", limit=2))
    assert [one.id for one in backwards.data] == [first.id, others[0]]
    assert [one.id for one in desk.run(desk.responses.list(before=others[0])).data] == others[:0:-1]
    assert desk.run(desk.responses.list(status="failed")).data == []
    for wrong, field in (
        ({"status": "broken"}, "status"), ({"limit": 0}, "limit"), ({"after": "nope"}, "after"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=field):
            desk.run(desk.responses.list(**wrong))


def test_a_list_shows_what_failed(desk: Any) -> None:
    desk.script({"status": 400})
    with pytest.raises(ModelRefused):
        desk.create("this fails")
    (failed,) = desk.run(desk.responses.list(status="failed")).data
    assert failed.error is not None
    assert failed.timings["total"] >= failed.timings["model"]


@pytest.mark.parametrize("configured", [None, True, False])
def test_files_are_searched_before_a_small_model_is_asked(desk: Any, configured: bool | None) -> None:
    tools = [{"type": "file_search", "vector_store_ids": [desk.store("The kettle holds one litre.")]}]
    demanded = {"tool_choice": {"type": "file_search"}}
    with desk.set("responses", search_first=configured):
        for model, by_default in (("kettle-3b", True), ("kettle-70b", False), (None, False)):
            desk.script({"text": "One litre.", "repeat": True})
            searches = by_default if configured is None else configured
            for fields in ({}, demanded):
                made = desk.create("How much does the kettle hold?", model=model, tools=tools, **fields)
                kinds = [item["type"] for item in made.output]
                assert kinds == ["file_search_call"] * searches + ["message"], (model, fields)
                missed = bool(fields) and not searches
                assert made.extensions["degraded"] == ["tool_choice"] * missed, (model, fields)
