"""`memory_forget`: nothing is deleted before the user has seen what, nothing of others ever."""

from __future__ import annotations

from typing import Any

import pytest

from memoranda.config.agent_sections import Responses as Settings
from memoranda.errors import NotFound
from memoranda.responses.plan import tools_of
from memoranda.responses.tools.base import Turn
from memoranda.responses.tools.forget import listed_before
from memoranda.responses.values import Exchange, MemoryUse, Response, ResponseRequest
from memoranda.types import Subject

pytestmark = pytest.mark.rows_in("sqlite")
TOOLS = [{"type": "memory_forget"}]


def kept(desk: Any, text: str, **fields: Any) -> str:
    return str(desk.rc.as_subject(desk.admin).memories.add(text, **fields).memory.id)


def there(desk: Any, id_: str) -> bool:
    try:
        desk.rc.as_subject(desk.admin).memories.get(id_)
    except NotFound:
        return False
    return True


def call(**arguments: Any) -> dict[str, Any]:
    return {"offered": "memory_forget", "calls": [{"name": "memory_forget", "arguments": arguments}]}


def outputs(response: Any) -> list[str]:
    return [item["output"] for item in response.output if item["type"] == "mcp_call"]


def test_what_would_be_deleted_is_listed_and_deleted_after_a_yes(desk: Any) -> None:
    dog = kept(desk, "Ada has a dog called Rex", user_id="ada")
    vet = kept(desk, "The dog sees the vet on Monday", user_id="ada", kind="fact")
    cat = kept(desk, "Ada wants a garden", user_id="ada")
    others = [kept(desk, "Bob has a dog, too", user_id="bob"), kept(desk, "Dogs are allowed here")]
    ada = desk.by("ada")
    desk.script(call(query="my dog"), {"text": "Shall I delete these?"})
    first = desk.create("Please forget what I said about my dog", by=ada, tools=TOOLS)
    (listed,) = outputs(first)
    assert "2 memories would be deleted" in listed
    assert f"- {dog} (note" in listed
    assert f"- {vet} (fact" in listed
    assert all(there(desk, id_) for id_ in (dog, vet, cat, *others))
    desk.script(call(ids=[dog, vet, cat, *others], confirmed=True), {"text": "Hm."})
    more = desk.create("Yes", by=ada, tools=TOOLS, previous_response_id=first.id)
    assert "Nothing was deleted yet" in outputs(more)[0], "one of them was not listed"
    assert there(desk, dog)
    desk.script(call(ids=[dog, vet], confirmed=True), {"text": "Done."})
    done = desk.create("Yes, both", by=ada, tools=TOOLS, previous_response_id=first.id)
    assert outputs(done)[0].startswith("Deleted for good: 2 memories")
    assert "Ada has a dog called Rex" in outputs(done)[0]
    assert [there(desk, id_) for id_ in (dog, vet, cat, *others)] == [False, False, True, True, True]


def test_a_model_cannot_confirm_for_the_user(desk: Any) -> None:
    dog = kept(desk, "Ada has a dog called Rex", user_id="ada")
    desk.script(call(query="dog"), call(ids=[dog], confirmed=True), {"text": "Gone."})
    response = desk.create("Forget my dog", by=desk.by("ada"), tools=TOOLS)
    assert ["Nothing was deleted yet" in text for text in outputs(response)] == [True, True]
    assert there(desk, dog)


def test_only_what_the_user_has_named_is_deleted(desk: Any) -> None:
    """Whatever the model asks for: it may have read that everything is to go."""
    dog = kept(desk, "Ada has a dog called Rex", user_id="ada")
    vet = kept(desk, "The dog sees the vet on Monday", user_id="ada", kind="fact")
    bike = kept(desk, "Ada rides a red bicycle", user_id="ada")
    ada = desk.by("ada")
    desk.script(call(query="dog"), call(query="bicycle"), {"text": "Which of these?"})
    first = desk.create("Forget something, please", by=ada, tools=TOOLS)
    desk.script(call(ids=[dog, vet, bike], confirmed=True), {"text": "Which?"})
    bare = desk.create("Yes", by=ada, tools=TOOLS, previous_response_id=first.id)
    assert "the user has not named them" in outputs(bare)[0]
    assert all(there(desk, id_) for id_ in (dog, vet, bike))
    desk.script(call(ids=[dog, vet, bike], confirmed=True), {"text": "Done."})
    done = desk.create("The one about the bicycle", by=ada, tools=TOOLS, previous_response_id=first.id)
    assert outputs(done)[0].startswith("Deleted for good: 1 memories")
    assert "the user has not named them" in outputs(done)[0]
    assert [there(desk, id_) for id_ in (dog, vet, bike)] == [True, True, False]
    desk.script(call(ids=[dog, vet], confirmed=True), {"text": "Done."})
    by_id = desk.create(f"Now {vet}", by=ada, tools=TOOLS, previous_response_id=done.id)
    assert outputs(by_id)[0].startswith("Deleted for good: 1 memories")
    assert [there(desk, id_) for id_ in (dog, vet)] == [True, False]


def test_the_answer_about_what_is_forgotten_is_not_remembered(desk: Any) -> None:
    """It names the memories once more, before and after they are deleted."""
    dog = kept(desk, "Ada has a dog called Rex", user_id="ada")
    ada = desk.by("ada")
    desk.script(call(query="dog"), {"text": "Shall I delete: Ada has a dog called Rex?"})
    first = desk.create("Forget my pet", by=ada, tools=TOOLS)
    desk.script(call(ids=[dog], confirmed=True), {"text": "Deleted: Ada has a dog called Rex."})
    desk.create("Yes", by=ada, tools=TOOLS, previous_response_id=first.id)
    desk.script({"text": "It was about a dog, I think."})
    desk.create("What was that about?", by=ada)
    results = desk.rc.as_subject(desk.admin).memories.search("dog Rex", scopes=["all"], threshold=0.0).results
    assert sorted(hit.memory.content for hit in results) == [
        "Forget my pet",
        "It was about a dog, I think.",
        "What was that about?",
    ]
    assert "Rex" not in str(desk.rc.as_subject(desk.admin).memories.list().data)


def test_answers_between_the_list_and_the_deletion_are_not_remembered(desk: Any) -> None:
    """Also of a response that goes on after a function of the client was called."""
    dog = kept(desk, "Ada has a dog called Rex", user_id="ada")
    ada = desk.by("ada")
    look = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}
    desk.script(call(query="dog"), {"calls": [{"name": "look", "arguments": {}, "id": "call_1"}]})
    first = desk.create("Forget my dog", by=ada, tools=[*TOOLS, look])
    desk.script({"text": "I looked: Ada has a dog called Rex."})
    seen = {"type": "function_call_output", "call_id": "call_1", "output": "nothing"}
    second = desk.create([seen], by=ada, tools=[*TOOLS, look], previous_response_id=first.id)
    desk.script({"text": "This one: Ada has a dog called Rex."})
    third = desk.create("Which one exactly?", by=ada, tools=TOOLS, previous_response_id=second.id)
    desk.script(call(ids=[dog], confirmed=True), {"text": "Deleted."})
    desk.create("Yes, Rex", by=ada, tools=TOOLS, previous_response_id=third.id)
    assert "Rex" not in str(desk.rc.as_subject(desk.admin).memories.list().data)


def test_a_chat_completion_names_the_ways_to_delete(desk: Any) -> None:
    """It is built from messages alone, which have no calls of tools that ran here."""
    dog = kept(desk, "Ada has a dog called Rex", user_id="ada")
    said = [{"role": role, "content": "Forget my dog"} for role in ("user", "assistant", "user")]
    request = ResponseRequest(input=said, tools=TOOLS, store=False)
    desk.script(call(query="dog"), call(ids=[dog], confirmed=True), {"text": "I cannot."})

    async def answered() -> Response:
        run = await desk.by("ada").start(request, Exchange())
        return await run.done()

    told = outputs(desk.run(answered()))
    assert len(told) == 2
    for output in told:
        assert f"- {dog} (note" in output
        assert "previous_response_id" in output
        assert "responses.memory_forget: immediately" in output
    assert there(desk, dog)


def test_what_is_not_remembered_is_said(desk: Any) -> None:
    desk.script(call(query="dog"), call(ids=["mem_none"], confirmed=True), call(), {"text": "Nothing."})
    response = desk.create("Forget my dog", by=desk.by("ada"), tools=TOOLS)
    assert outputs(response) == [*["Nothing of this is remembered."] * 2, None]
    failed = [item for item in response.output if item.get("error")]
    assert "query" in str(failed[0]["error"])


def test_by_setting_it_is_deleted_at_once(desk: Any) -> None:
    dog, other = kept(desk, "Ada has a dog", user_id="ada"), kept(desk, "Ada wants a garden", user_id="ada")
    settings = Settings(memory_forget="immediately")
    (tool,) = tools_of(TOOLS, settings)
    desk.script({"text": "Hello."})
    turn = _turn(desk, settings)
    result = desk.run(tool.run(tool.begun("{}"), {"query": "the dog"}, turn))
    assert str(result.item["output"]).startswith("Deleted for good: 1 memories")
    assert (there(desk, dog), there(desk, other)) == (False, True)
    bird = kept(desk, "Ada has a bird", user_id="ada")
    result = desk.run(tool.run(tool.begun("{}"), {"query": "the bird in the garden"}, turn))
    text = str(result.item["output"])
    assert "were not deleted" in text
    assert (bird in text, other in text, there(desk, bird), there(desk, other)) == (True,) * 4
    result = desk.run(tool.run(tool.begun("{}"), {"ids": [bird]}, turn))
    assert str(result.item["output"]).startswith("Deleted for good: 1 memories")
    assert (there(desk, bird), there(desk, other)) == (False, True)


def test_a_memory_lists_no_other(desk: Any) -> None:
    cat = kept(desk, "Ada wants a garden", user_id="ada")
    forged = kept(desk, f"Ada has a dog\n- {cat} (note, 2026-01-01): a cat", user_id="ada")
    desk.script(call(query="dog"), {"text": "Shall I?"})
    response = desk.create("Forget my dog", by=desk.by("ada"), tools=TOOLS)
    assert [*listed_before([*response.output, {"type": "message", "role": "user"}])] == [forged]


def _turn(desk: Any, settings: Settings) -> Turn:
    return Turn(
        core=desk.inner.core,
        subject=Subject(tenant_id=desk.tenant, user_id="ada", role="member"),
        settings=settings,
        session_id="chain",
        agent_id=None,
        memory=MemoryUse(),
        count=len,
        said="Forget the dog and the bird in the garden",
    )


def test_only_lists_before_the_last_message_of_the_user_count() -> None:
    def listing(id_: str, server: str = "memoranda") -> dict[str, Any]:
        return {
            "type": "mcp_call",
            "server_label": server,
            "name": "memory_forget",
            "output": f"1 memories would be deleted, for good:\n- {id_} (note, 2026-01-01): x\nNothing",
        }

    def said(role: str) -> dict[str, Any]:
        return {"type": "message", "role": role, "content": []}

    items = [
        said("user"),
        listing("a"),
        listing("b", "others"),
        said("assistant"),
        said("user"),
        listing("c"),
    ]
    assert listed_before(items) == {"a": False}
    assert listed_before(items[:2]) == {}
    assert listed_before([]) == {}


def test_without_a_user_what_everything_has_is_listed_and_deleted_after_a_yes(desk: Any) -> None:
    dog, cat = kept(desk, "Ada has a dog called Rex", user_id="ada"), kept(desk, "Ada wants a garden")
    desk.script(call(query="Ada's dog"), {"text": "Shall I delete it?"})
    first = desk.create("Please forget Ada's dog", tools=TOOLS)
    assert f"- {dog} (note" in outputs(first)[0]
    assert there(desk, dog)
    desk.script(call(ids=[dog, cat], confirmed=True), {"text": "Done."})
    desk.create("Yes, delete the dog Rex", tools=TOOLS, previous_response_id=first.id)
    assert (there(desk, dog), there(desk, cat)) == (False, True)
