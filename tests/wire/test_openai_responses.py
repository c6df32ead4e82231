"""`client.responses` of the official client, unchanged, against the server and a model that plays a script."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from memoranda.text.prompts import QUOTED, SUMMARY
from support.waiting import until

MODEL = "scripted"
WEATHER: Any = {
    "type": "function",
    "name": "weather",
    "description": "The weather of a place.",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
}
PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
        "0000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
    )
).decode()


@pytest.fixture(scope="module")
def client(stage: Any) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{stage.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def reached(client: openai.OpenAI, id_: str, state: str) -> Any:
    """The response once it is in this state."""
    return until(
        lambda: client.responses.retrieve(id_),
        f"a response that is {state}",
        accept=lambda found: found.status == state,
    )


def test_an_answer(client: openai.OpenAI, stage: Any) -> None:
    stage.says("Green, as ever.")
    made = client.responses.create(
        model=MODEL,
        instructions="Be brief.",
        input="Which colour is the kettle?",
        metadata={"a": "b"},
        temperature=0.5,
        top_p=0.9,
        max_output_tokens=50,
    )
    assert (made.status, made.output_text, made.error) == ("completed", "Green, as ever.", None)
    assert (made.model, made.metadata, made.temperature, made.top_p) == (MODEL, {"a": "b"}, 0.5, 0.9)
    assert made.usage is not None
    assert made.usage.output_tokens == 3
    assert [one["role"] for one in stage.asked["messages"]][-2:] == ["system", "user"]
    assert stage.asked["messages"][-1]["content"] == "Which colour is the kettle?"
    assert "Be brief." in stage.asked["messages"][0]["content"]
    kept = client.responses.retrieve(made.id)
    assert kept.to_dict() == made.to_dict()


def test_a_stream(client: openai.OpenAI, stage: Any) -> None:
    stage.says("one two three four")
    with client.responses.create(model=MODEL, input="count", stream=True) as stream:
        events = list(stream)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        *["response.output_text.delta"] * 4,
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    deltas: Any = [event for event in events if event.type == "response.output_text.delta"]
    assert [delta.delta for delta in deltas] == ["one", " two", " three", " four"]
    last: Any = events[-1]
    assert last.response.output_text == "one two three four"
    assert client.responses.retrieve(last.response.id).output_text == "one two three four"


def test_the_stream_helper(client: openai.OpenAI, stage: Any) -> None:
    stage.says("one two three")
    with client.responses.stream(model=MODEL, input="count") as stream:
        snapshots = [event.snapshot for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert snapshots == ["one", "one two", "one two three"]
    assert final.output_text == "one two three"


class Kettle(BaseModel):
    colour: str
    litres: float


def test_structured_output(client: openai.OpenAI, stage: Any) -> None:
    stage.says('{"colour": "green", "litres": 1.5}', '{"colour": "red", "litres": 2}')
    made = client.responses.parse(model=MODEL, input="the kettle?", text_format=Kettle)
    assert made.output_parsed == Kettle(colour="green", litres=1.5)
    told = stage.asked["response_format"]
    assert (told["type"], told["json_schema"]["name"]) == ("json_schema", "Kettle")
    assert told["json_schema"]["schema"]["required"] == ["colour", "litres"]
    with client.responses.stream(model=MODEL, input="and the other?", text_format=Kettle) as stream:
        assert stream.get_final_response().output_parsed == Kettle(colour="red", litres=2)


def test_a_chain(client: openai.OpenAI, stage: Any) -> None:
    stage.says("Hello Ada.", "You are Ada.")
    first = client.responses.create(model=MODEL, input="I am Ada.")
    second = client.responses.create(model=MODEL, input="Who am I?", previous_response_id=first.id)
    assert second.previous_response_id == first.id
    said = [(one["role"], one["content"]) for one in stage.asked["messages"]]
    assert said[-3:] == [("user", "I am Ada."), ("assistant", "Hello Ada."), ("user", "Who am I?")]


def test_a_conversation(client: openai.OpenAI, stage: Any) -> None:
    stage.says("Hello Ada.", "You are Ada.")
    talk = client.conversations.create(metadata={"about": "names"})
    first = client.responses.create(model=MODEL, input="I am Ada.", conversation=talk.id)
    assert first.conversation is not None
    assert first.conversation.id == talk.id
    client.responses.create(model=MODEL, input="Who am I?", conversation={"id": talk.id})
    said = [(one["role"], one["content"]) for one in stage.asked["messages"]]
    assert said[-3:] == [("user", "I am Ada."), ("assistant", "Hello Ada."), ("user", "Who am I?")]
    held: Any = list(client.conversations.items.list(talk.id, order="asc"))
    assert [one.content[0].text for one in held] == ["I am Ada.", "Hello Ada.", "Who am I?", "You are Ada."]
    stage.says("Nobody.")
    client.conversations.delete(talk.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model=MODEL, input="Who am I?", conversation=talk.id)


def test_a_function(client: openai.OpenAI, stage: Any) -> None:
    stage.says(
        {
            "calls": [{"name": "weather", "arguments": {"place": "Oslo"}, "id": "call_1"}],
            "offered": "weather",
        },
        {"text": "It rains.", "after": "rain"},
    )
    asked: Any = [{"role": "user", "content": "What is the weather in Oslo?"}]
    made = client.responses.create(model=MODEL, input=asked, tools=[WEATHER])
    call: Any = made.output[0]
    assert (call.type, call.name, call.call_id, json.loads(call.arguments)) == (
        "function_call", "weather", "call_1", {"place": "Oslo"},
    )  # fmt: skip
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}
    after = client.responses.create(
        model=MODEL, input=[result], previous_response_id=made.id, tools=[WEATHER]
    )
    assert after.output_text == "It rains."
    # The same without the server's memory: what was said is sent again, as it came.
    stage.says({"text": "It rains.", "after": "rain"})
    again = [*asked, *(one.to_dict() for one in made.output), result]
    assert client.responses.create(model=MODEL, input=again, tools=[WEATHER], store=False).output_text


def test_a_function_streamed(client: openai.OpenAI, stage: Any) -> None:
    stage.says({"calls": [{"name": "weather", "arguments": {"place": "Reykjavik, Iceland"}}]})
    with client.responses.stream(
        model=MODEL, input="weather?", tools=[{**WEATHER, "strict": True}]
    ) as stream:
        events: list[Any] = list(stream)
        final: Any = stream.get_final_response()
    pieces = [one.delta for one in events if one.type == "response.function_call_arguments.delta"]
    assert len(pieces) > 1
    done = next(one for one in events if one.type == "response.function_call_arguments.done")
    assert json.loads("".join(pieces)) == json.loads(done.arguments) == {"place": "Reykjavik, Iceland"}
    assert final.output[0].parsed_arguments == {"place": "Reykjavik, Iceland"}


@pytest.fixture(scope="module")
def store(client: openai.OpenAI) -> str:
    """A store with one short document."""
    made = client.vector_stores.create(name="kettles")
    text = "# Kettles\n\nThe green kettle holds one litre and a half. The red kettle holds two litres.\n"
    client.vector_stores.files.upload_and_poll(vector_store_id=made.id, file=("kettles.md", text.encode()))
    return made.id


def test_a_search_in_files(client: openai.OpenAI, stage: Any, store: str) -> None:
    stage.says(
        {
            "calls": [{"name": "file_search", "arguments": {"query": "green kettle litres"}}],
            "offered": "file_search",
        },
        {"text": "It holds a litre and a half [1].", "after": "one litre and a half"},
    )
    made: Any = client.responses.create(
        model=MODEL,
        input="How much does the green kettle hold?",
        tools=[{"type": "file_search", "vector_store_ids": [store]}],
        include=["file_search_call.results"],
    )
    search, message = made.output
    assert (search.type, search.status, search.queries) == (
        "file_search_call", "completed", ["green kettle litres"],
    )  # fmt: skip
    assert search.results[0].filename == "kettles.md"
    assert "one litre and a half" in search.results[0].text
    assert 0 <= search.results[0].score <= 1
    cited = message.content[0].annotations[0]
    assert (cited.type, cited.filename, cited.file_id) == (
        "file_citation", "kettles.md", search.results[0].file_id,
    )  # fmt: skip
    assert message.content[0].text[cited.start_index : cited.end_index] == cited.text == "[1]"
    without: Any = client.responses.retrieve(made.id)
    assert without.output[0].results is None
    with_: Any = client.responses.retrieve(made.id, include=["file_search_call.results"])
    assert with_.output[0].results[0].text == search.results[0].text


def test_a_search_streamed(client: openai.OpenAI, stage: Any, store: str) -> None:
    stage.says(
        {"calls": [{"name": "file_search", "arguments": {"query": "red kettle"}}]},
        {"text": "Two litres [1].", "after": "two litres"},
    )
    with client.responses.stream(
        model=MODEL, input="And the red one?", tools=[{"type": "file_search", "vector_store_ids": [store]}]
    ) as stream:
        types = [event.type for event in stream]
        final: Any = stream.get_final_response()
    progress = [name for name in types if "file_search_call" in name]
    assert progress == [f"response.file_search_call.{s}" for s in ("in_progress", "searching", "completed")]
    assert types.count("response.output_text.annotation.added") == 1
    assert final.output[1].content[0].annotations[0].filename == "kettles.md"


def test_a_background_response(client: openai.OpenAI, stage: Any) -> None:
    stage.says({"text": "slowly but surely", "pause_at": 1})
    made = client.responses.create(model=MODEL, input="take your time", background=True)
    assert made.status in ("queued", "in_progress")
    assert made.background
    stage.model.play.resume()
    done = reached(client, made.id, "completed")
    assert done.output_text == "slowly but surely"
    again: list[Any] = list(client.responses.retrieve(made.id, stream=True))
    assert [event.sequence_number for event in again] == list(range(len(again)))
    assert [event.type for event in again[:3]] == [
        "response.created", "response.queued", "response.in_progress",
    ]  # fmt: skip
    assert again[-1].type == "response.completed"
    rest = list(client.responses.retrieve(made.id, stream=True, starting_after=4))
    assert [event.to_dict() for event in rest] == [event.to_dict() for event in again[5:]]


def test_a_background_stream_is_taken_up_again(client: openai.OpenAI, stage: Any) -> None:
    stage.says({"text": "one two three four five six", "pause_at": 1})
    stream = client.responses.create(model=MODEL, input="count", background=True, stream=True)
    seen: list[Any] = []
    for event in stream:
        seen.append(event)
        if event.type == "response.output_text.delta":
            break
    stream.close()
    stage.model.play.resume()
    id_, number = seen[0].response.id, seen[-1].sequence_number
    rest: list[Any] = list(client.responses.retrieve(id_, stream=True, starting_after=number))
    assert [one.sequence_number for one in rest] == list(range(number + 1, number + 1 + len(rest)))
    deltas = [one.delta for one in [*seen, *rest] if one.type == "response.output_text.delta"]
    assert "".join(deltas) == "one two three four five six"
    assert rest[-1].response.status == "completed"


def test_a_cancelled_background_response(client: openai.OpenAI, stage: Any) -> None:
    stage.says({"text": "this is", "hang": True})
    made = client.responses.create(model=MODEL, input="wait", background=True)
    reached(client, made.id, "in_progress")
    assert client.responses.cancel(made.id).status == "cancelled"
    assert client.responses.cancel(made.id).status == "cancelled"
    assert client.responses.retrieve(made.id).status == "cancelled"


def test_a_synchronous_response_is_not_cancelled(client: openai.OpenAI, stage: Any) -> None:
    stage.says("done")
    made = client.responses.create(model=MODEL, input="quick")
    with pytest.raises(openai.BadRequestError, match="Cannot cancel a synchronous response"):
        client.responses.cancel(made.id)
    events = list(client.responses.retrieve(made.id, stream=True))
    assert (events[-1].type, events[-1].response.output_text) == ("response.completed", "done")  # type: ignore[union-attr]


def test_input_items(client: openai.OpenAI, stage: Any) -> None:
    stage.says("ok")
    said: Any = [{"role": "user", "content": f"number {i}"} for i in range(3)]
    made = client.responses.create(model=MODEL, input=said)
    items: Any = list(client.responses.input_items.list(made.id, limit=2, order="asc"))
    assert [item.content[0].text for item in items] == ["number 0", "number 1", "number 2"]
    assert [item.id for item in client.responses.input_items.list(made.id)] == [i.id for i in items[::-1]]
    with pytest.raises(openai.BadRequestError):
        client.responses.input_items.list(made.id, after="nothing")


def test_a_deleted_response(client: openai.OpenAI, stage: Any) -> None:
    stage.says("ok")
    made = client.responses.create(model=MODEL, input="forget this")
    client.responses.delete(made.id)
    for ask in (client.responses.retrieve, client.responses.delete, client.responses.cancel):
        with pytest.raises(openai.NotFoundError):
            ask(made.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.input_items.list(made.id)


def test_what_is_not_stored(client: openai.OpenAI, stage: Any) -> None:
    stage.says("ok")
    made = client.responses.create(model=MODEL, input="do not keep this", store=False)
    assert made.store is False  # type: ignore[attr-defined]
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)


def test_tokens_are_counted(client: openai.OpenAI, stage: Any) -> None:
    short = client.responses.input_tokens.count(model=MODEL, input="a b c").input_tokens
    tools = client.responses.input_tokens.count(model=MODEL, input="a b c", tools=[WEATHER]).input_tokens
    long = client.responses.input_tokens.count(model=MODEL, input="a b c " * 100).input_tokens
    assert 3 <= short < tools
    assert long >= short + 290


def test_compaction(client: openai.OpenAI, stage: Any) -> None:
    stage.says("Hello Ada, who likes kettles.", {"text": "Ada likes kettles.", "repeat": True})
    first = client.responses.create(model=MODEL, input="I am Ada and I like kettles.")
    short = client.responses.compact(model=MODEL, previous_response_id=first.id)
    assert short.object == "response.compaction"
    assert any(item.type == "compaction" for item in short.output)
    items: Any = [item.to_dict(warnings=False) for item in short.output]
    after = client.responses.create(
        model=MODEL, input=[*items, {"role": "user", "content": "What do I like?"}]
    )
    assert after.status == "completed"
    assert "kettles" in json.dumps(stage.asked["messages"][:-1])


def test_a_compacted_conversation_is_a_response_to_go_on_from(client: openai.OpenAI, stage: Any) -> None:
    stage.says("Hello Ada, who likes kettles.", {"text": "Ada likes kettles.", "repeat": True})
    first = client.responses.create(model=MODEL, input="I am Ada and I like kettles.")
    short = client.responses.compact(model=MODEL, previous_response_id=first.id)
    assert short.id.startswith("resp_")
    held = client.responses.retrieve(short.id)
    assert [item.id for item in held.output] == [item.id for item in short.output]
    again = list(client.responses.retrieve(short.id, stream=True))
    assert again[-1].type == "response.completed"
    client.responses.create(model=MODEL, input="What do I like?", previous_response_id=short.id)
    said = [(one["role"], one["content"]) for one in stage.asked["messages"]]
    summary = f"{QUOTED}\n\n{SUMMARY}\nAda likes kettles."
    assert said[-3:] == [
        ("user", "I am Ada and I like kettles."), ("user", summary), ("user", "What do I like?"),
    ]  # fmt: skip
    kept = client.responses.compact(model=MODEL, input="I am Ada.", extra_body={"store": False})
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(kept.id)
    with pytest.raises(openai.BadRequestError) as caught:
        client.post("/responses/compact", body={"input": "I am Ada."}, cast_to=object)
    assert caught.value.param == "model"


def test_images_and_files(client: openai.OpenAI, stage: Any) -> None:
    stage.says("A pixel, and a kettle.")
    uploaded = client.files.create(file=("note.txt", b"the kettle is green"), purpose="user_data")
    sent = base64.b64encode(b"the car is red").decode()
    content: Any = [
        {"type": "input_text", "text": "What is in these?"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
        {"type": "input_file", "file_id": uploaded.id},
        {"type": "input_file", "filename": "car.txt", "file_data": f"data:text/plain;base64,{sent}"},
    ]
    made = client.responses.create(model=MODEL, input=[{"role": "user", "content": content}])
    assert made.output_text
    parts = stage.asked["messages"][-1]["content"]
    assert any(part["type"] == "image_url" and PIXEL in part["image_url"]["url"] for part in parts)
    text = json.dumps(parts)
    assert "the kettle is green" in text
    assert "the car is red" in text


def refused(ask: Any, **fields: Any) -> tuple[Any, Any]:
    with pytest.raises(openai.BadRequestError) as caught:
        ask(**{"model": MODEL, "input": "hello", **fields})
    assert caught.value.type == "invalid_request_error"
    return caught.value.code, caught.value.param


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"previous_response_id": "resp_a", "conversation": "conv_a"}, "previous_response_id"),
    ({"temperature": "warm"}, "temperature"),
    ({"temperature": 3}, "temperature"),
    ({"tools": [{"type": "file_search", "vector_store_ids": "vs_1"}]}, "tools[0].vector_store_ids"),
    ({"tools": ["file_search"]}, "tools[0]"),
    ({"input": ["a"]}, "input[0]"),
    ({"input": [{"role": "user", "content": [{"type": "input_smell"}]}]}, "input[0].content[0].type"),
    (
        {"input": [{"role": "user", "content": "a"}] * 2 + [{"role": "nobody", "content": "b"}]},
        "input[2].role",
    ),
    ({"input": 3}, "input"),
    ({"max_output_tokens": 0}, "max_output_tokens"),
    ({"metadata": {"a": 1}}, "metadata"),
    ({"truncation": "some"}, "truncation"),
    ({"stream": "yes"}, "stream"),
    ({"background": True, "store": False}, "background"),
]


@pytest.mark.parametrize(("fields", "param"), WRONG, ids=lambda value: str(value)[:50])
def test_what_is_wrong_is_named(client: openai.OpenAI, fields: dict[str, Any], param: str) -> None:
    _, told = refused(client.responses.create, **fields)
    assert str(told).startswith(param), told


def test_an_unknown_previous_response(client: openai.OpenAI, stage: Any) -> None:
    said = ("previous_response_not_found", "previous_response_id")
    assert refused(client.responses.create, previous_response_id="resp_none") == said
    assert refused(client.responses.create, previous_response_id="resp_none", stream=True) == said
    assert refused(client.responses.create, previous_response_id="resp_none", background=True) == said


def test_what_is_not_known_is_ignored(client: openai.OpenAI, stage: Any) -> None:
    stage.says("fine")
    tools: Any = [{"type": "web_search"}, {"type": "namespace", "name": "n", "tools": []}, WEATHER]
    made = client.responses.create(
        model=MODEL,
        input=[{"role": "developer", "content": "Be kind."}, {"role": "user", "content": "hello"}],
        tools=tools,
        include=["reasoning.encrypted_content"],
        store=False,
        extra_body={"client_metadata": {"a": "b"}, "of_the_future": [1]},
    )
    assert made.output_text == "fine"


def test_a_model_that_fails(client: openai.OpenAI, stage: Any) -> None:
    stage.says({"status": 400, "message": "no such model"})
    with pytest.raises(openai.BadRequestError):
        client.responses.create(model=MODEL, input="hello")
    stage.says({"text": "half of", "cut": True})
    with client.responses.create(model=MODEL, input="hello", stream=True) as stream:
        events: list[Any] = list(stream)
    assert events[-1].type == "response.failed"
    assert events[-1].response.error.code == "server_error"
    assert client.responses.retrieve(events[-1].response.id).output_text == "half of"


def test_a_length_that_is_reached(client: openai.OpenAI, stage: Any) -> None:
    stage.says({"text": "one two", "finish": "length"})
    made = client.responses.create(model=MODEL, input="count", max_output_tokens=16)
    assert made.status == "incomplete"
    assert made.incomplete_details is not None
    assert made.incomplete_details.reason == "max_output_tokens"


def test_many_streams_at_once(stage: Any) -> None:
    """Every stream of forty gets its own text, whole and in order."""
    stage.says({"text": "a b c d e f g h i j: {question}", "delay": 0.002, "repeat": True, "when": "^stream"})

    async def one(client: openai.AsyncOpenAI, i: int) -> tuple[list[int], str]:
        numbers, text = [], ""
        async for event in await client.responses.create(model=MODEL, input=f"stream {i}", stream=True):
            numbers.append(event.sequence_number)
            if event.type == "response.output_text.delta":
                text += event.delta
        return numbers, text

    async def go() -> list[tuple[list[int], str]]:
        async with openai.AsyncOpenAI(base_url=f"{stage.url}/v1", api_key="none", max_retries=0) as client:
            return await asyncio.gather(*(one(client, i) for i in range(40)))

    for i, (numbers, text) in enumerate(asyncio.run(go())):
        assert numbers == list(range(len(numbers)))
        assert text == f"a b c d e f g h i j: stream {i}"


def test_models_are_listed(client: openai.OpenAI) -> None:
    assert {model.id for model in client.models.list()} >= {"hash-64", MODEL}
    assert client.models.retrieve(MODEL).object == "model"
