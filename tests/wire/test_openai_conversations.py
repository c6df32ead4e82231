"""`client.conversations` of the official client, unchanged, and conversations that responses go on from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from agents import OpenAIConversationsSession

from support.waiting import until

AT = "/v1/conversations"
ITEMS: list[Any] = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "input_text", "text": "What stands on the stove?"}]},
    {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": '{"at": "stove"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": "a kettle"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A kettle."}]},
]


@pytest.fixture(scope="module")
def client(stage: Any) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{stage.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def test_a_life(client: openai.OpenAI) -> None:
    made = client.conversations.create(metadata={"topic": "kettles"}, items=ITEMS[:2])
    assert made.id.startswith("conv_")
    assert (made.object, made.metadata) == ("conversation", {"topic": "kettles"})
    assert client.conversations.retrieve(made.id) == made
    changed = client.conversations.update(made.id, metadata={"topic": "stoves"})
    assert changed.metadata == {"topic": "stoves"}
    assert client.conversations.update(made.id, metadata=None).metadata == {}
    added = client.conversations.items.create(made.id, items=ITEMS[2:])
    assert (added.object, added.has_more, len(added.data)) == ("list", False, 3)
    assert (added.first_id, added.last_id) == (added.data[0].id, added.data[2].id)
    held = list(client.conversations.items.list(made.id, order="asc"))
    assert [item.type for item in held] == [item.get("type", "message") for item in ITEMS]
    last: Any = held[-1]
    assert last.content[0].model_dump() == {
        "type": "output_text", "text": "A kettle.", "annotations": [], "logprobs": [],
    }  # fmt: skip
    assert client.conversations.items.retrieve(held[1].id or "", conversation_id=made.id) == held[1]
    assert client.conversations.items.delete(held[1].id or "", conversation_id=made.id).id == made.id
    with pytest.raises(openai.NotFoundError):
        client.conversations.items.retrieve(held[1].id or "", conversation_id=made.id)
    gone = client.conversations.delete(made.id)
    assert (gone.id, gone.object, gone.deleted) == (made.id, "conversation.deleted", True)
    with pytest.raises(openai.NotFoundError) as caught:
        client.conversations.retrieve(made.id)
    assert caught.value.body == {
        "message": f"Conversation with id '{made.id}' not found.", "type": "invalid_request_error",
        "param": None, "code": "not_found",
    }  # fmt: skip


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_the_client_pages_through_all_items(client: openai.OpenAI, order: Any) -> None:
    made = client.conversations.create()
    for start in range(0, 45, 15):
        items: Any = [{"role": "user", "content": str(start + i)} for i in range(15)]
        client.conversations.items.create(made.id, items=items)
    held: list[Any] = list(client.conversations.items.list(made.id, limit=7, order=order))
    numbers = [int(item.content[0].text) for item in held]
    assert numbers == (list(range(45)) if order == "asc" else list(range(44, -1, -1)))
    assert list(client.conversations.items.list(client.conversations.create().id)) == []


def test_answers_are_as_the_official_description_says(stage: Any, official: Any) -> None:
    with httpx.Client(base_url=f"{stage.url}/v1") as http:
        made = http.post("/conversations", json={"metadata": {"a": "b"}}).json()
        at = f"/conversations/{made['id']}"
        official.check(made, "ConversationResource")
        official.check(http.get(f"{at}/items").json(), "ConversationItemList")
        added = http.post(f"{at}/items", json={"items": ITEMS}).json()
        official.check(added, "ConversationItemList")
        official.check(http.get(f"{at}/items", params={"limit": 2}).json(), "ConversationItemList")
        for item in added["data"]:
            official.check(http.get(f"{at}/items/{item['id']}").json(), "ConversationItem")
        official.check(http.post(at, json={"metadata": {}}).json(), "ConversationResource")
        official.check(http.delete(f"{at}/items/{added['last_id']}").json(), "ConversationResource")
        official.check(http.delete(at).json(), "DeletedConversationResource")


@pytest.mark.parametrize(
    ("method", "path", "body", "param"),
    [
        ("POST", "", {"items": [{"role": "king", "content": "x"}]}, "items[0].role"),
        ("POST", "", {"items": [{"role": "user", "content": "x"}] * 21}, "items"),
        ("POST", "", {"items": "x"}, "items"),
        ("POST", "", {"items": [7]}, "items[0]"),
        ("POST", "", {"metadata": {"a": 7}}, "metadata.a"),
        ("POST", "/{id}", {}, "metadata"),
        ("POST", "/{id}/items", {}, "items"),
        ("POST", "/{id}/items", {"items": []}, "items"),
        ("GET", "/{id}/items?limit=0", None, "limit"),
        ("GET", "/{id}/items?order=up", None, "order"),
        ("GET", "/{id}/items?after=msg_nope", None, "after"),
    ],
)
def test_what_is_wrong_is_named(stage: Any, method: str, path: str, body: Any, param: str) -> None:
    with httpx.Client(base_url=stage.url) as http:
        id_ = http.post(AT, json={}).json()["id"]
        answer = http.request(method, AT + path.replace("{id}", id_), json=body)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert set(error) == {"message", "type", "param", "code"}


def test_unknown_fields_are_ignored(stage: Any) -> None:
    with httpx.Client(base_url=stage.url) as http:
        answer = http.post(f"{AT}?beta=true", json={"name": "x", "items": None, "metadata": None})
    assert answer.status_code == 200
    assert answer.json()["metadata"] == {}


def test_responses_go_on_in_a_conversation(client: openai.OpenAI, stage: Any) -> None:
    made = client.conversations.create(items=ITEMS)
    stage.says("It is green.", {"text": "Three litres."})
    first = client.responses.create(input="What colour is it?", conversation=made.id)
    assert first.conversation is not None
    assert first.conversation.id == made.id
    second = client.responses.create(input="How large?", conversation={"id": made.id})
    assert second.output_text == "Three litres."
    told = json.dumps(stage.asked["messages"])
    for text in ("Be brief.", "a kettle", "A kettle.", "What colour is it?", "It is green.", "How large?"):
        assert told.count(f'"{text}"') == 1, (text, told)
    held: list[Any] = list(client.conversations.items.list(made.id, order="asc"))
    assert [item.content[0].text for item in held[len(ITEMS) :]] == [
        "What colour is it?", "It is green.", "How large?", "Three litres.",
    ]  # fmt: skip
    with pytest.raises(openai.NotFoundError):
        client.responses.create(input="x", conversation="conv_nope")
    with pytest.raises(openai.BadRequestError):
        client.responses.create(input="x", conversation=made.id, previous_response_id=first.id)


def test_the_agents_sdk_keeps_its_session_here(stage: Any) -> None:
    async def life() -> None:
        async with openai.AsyncOpenAI(base_url=f"{stage.url}/v1", api_key="none", max_retries=0) as client:
            session = OpenAIConversationsSession(openai_client=client)
            sent: Any = [{"role": "user", "content": str(i)} for i in range(25)]
            await session.add_items(sent)
            held: Any = await session.get_items()
            assert [item["content"][0]["text"] for item in held] == [str(i) for i in range(25)]
            few: Any = await session.get_items(limit=3)
            assert [item["content"][0]["text"] for item in few] == ["22", "23", "24"]
            last: Any = await session.pop_item()
            assert last["content"][0]["text"] == "24"
            assert len(await session.get_items()) == 24
            await session.clear_session()

    asyncio.run(life())


def told_of(client: openai.OpenAI, response: str) -> Any:
    """The summary that a job stores with a response."""

    def extensions() -> Any:
        return (client.responses.retrieve(response).model_extra or {})["extensions"]

    return until(extensions, "a stored summary", accept=lambda found: "conversation_summary" in found)[
        "conversation_summary"
    ]


@pytest.mark.slow
def test_a_long_chain_is_told_as_a_summary_and_a_too_long_one_refused(stages: Any) -> None:
    """The first question is long gone when it is told as notes; what does not fit is refused, or cut when asked."""
    settings = {
        "summarization": {
            "enabled": True,
            "token_threshold": 100,
            "window_size": 2,
            "summary_max_tokens": 60,
        },
        "model": {"context_tokens": 1_000, "max_output_tokens": 200},
    }
    question = "How is the kettle called, which stands on the stove beside the window? Question {}."
    with stages(**settings) as stage:
        http = {"base_url": f"{stage.url}/v1", "api_key": "none", "max_retries": 0}
        with openai.OpenAI(**http) as client:
            stage.says({"when": "The notes:", "text": "Notes: the kettle is called Bertha.", "repeat": True},
                       {"text": "It is called Bertha, as was said before.", "repeat": True})  # fmt: skip
            previous: str | None = None
            for n in range(5):
                made = client.responses.create(input=question.format(n), previous_response_id=previous)
                previous = made.id
            asked = [request.body["messages"] for request in stage.model.received]
            answered = [messages for messages in asked if messages[-1]["content"] == question.format(4)][-1]
            assert "Notes: the kettle is called Bertha." in answered[0]["content"]
            told = json.dumps(answered)
            assert [f"Question {n}." in told for n in (0, 3, 4)] == [False, True, True]
            summary = told_of(client, str(made.previous_response_id))
            assert set(summary) == {"summary", "summarized_up_to", "token_count", "created_at", "by"}
            assert summary["summary"] == "Notes: the kettle is called Bertha."
            assert summary["summarized_up_to"].startswith("resp_")
            long = "word " * 700
            with pytest.raises(openai.BadRequestError) as caught:
                client.responses.create(input=long, previous_response_id=previous)
            assert caught.value.code == "context_length_exceeded"
            cut: Any = client.responses.create(input=long, previous_response_id=previous, truncation="auto")
            assert cut.status == "completed"
            assert cut.extensions["history"]["dropped"] > 0


def test_items_are_deleted_while_they_are_listed(client: openai.OpenAI) -> None:
    made = client.conversations.create(items=[{"role": "user", "content": str(n)} for n in range(5)]).id
    for item in client.conversations.items.list(made, limit=2):
        client.conversations.items.delete(str(item.id), conversation_id=made)
    assert list(client.conversations.items.list(made)) == []
