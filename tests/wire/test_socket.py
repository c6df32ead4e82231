"""`/v1/responses` as a WebSocket: the official client, and frames as they are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import openai
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from support.waiting import until

MODEL = "scripted"


class Talk:
    """One connection of plain frames."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket

    def say(self, kind: str = "response.create", **fields: Any) -> None:
        self.socket.send(json.dumps({"type": kind, **fields}))

    def hear(self) -> Any:
        return json.loads(self.socket.recv(timeout=10))

    def until_end(self, stream_id: str | None = None) -> list[Any]:
        """The events of one response."""
        heard: list[Any] = []
        while not heard or heard[-1]["type"] not in ENDS:
            heard.append(self.hear())
            assert heard[-1].get("stream_id") == stream_id
        return heard

    def answer(self, **fields: Any) -> Any:
        """The response at its end."""
        self.say(**fields)
        return self.until_end()[-1]["response"]


ENDS = ("response.completed", "response.failed", "response.incomplete", "error")


@contextmanager
def talking(url: str, **headers: str) -> Iterator[Talk]:
    address = f"{url.replace('http', 'ws', 1)}/v1/responses"
    with connect(address, additional_headers=headers, close_timeout=1) as socket:
        yield Talk(socket)


def text_of(response: Any) -> str:
    return "".join(
        part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"]
    )


def test_the_official_client(stage: Any) -> None:
    stage.says("Hello Ada.", "You are Ada.")
    with (
        openai.OpenAI(base_url=f"{stage.url}/v1", api_key="none", max_retries=0) as client,
        client.responses.connect() as connection,
    ):
        connection.response.create(model=MODEL, input="I am Ada.")
        first: list[Any] = []
        for event in connection:
            first.append(event)
            if event.type == "response.completed":
                break
        connection.response.create(model=MODEL, input="Who am I?", previous_response_id=first[-1].response.id)
        second: Any = None
        while second is None or second.type != "response.completed":
            second = connection.recv()
        assert client.responses.retrieve(second.response.id).output_text == "You are Ada."
    assert [event.sequence_number for event in first] == list(range(len(first)))
    deltas = [event.delta for event in first if event.type == "response.output_text.delta"]
    assert deltas == ["Hello", " Ada."]


def test_the_official_client_without_threads(stage: Any) -> None:
    stage.says("one two three")

    async def go() -> str:
        async with (
            openai.AsyncOpenAI(base_url=f"{stage.url}/v1", api_key="none", max_retries=0) as client,
            client.responses.connect() as connection,
        ):
            await connection.response.create(model=MODEL, input="count")
            async for event in connection:
                if event.type == "response.completed":
                    return event.response.output_text
        return ""

    assert asyncio.run(go()) == "one two three"


def test_the_same_events_as_over_http(stage: Any) -> None:
    stage.says("one two", "one two")
    with talking(stage.url) as talk:
        talk.say(model=MODEL, input="count")
        over_socket = talk.until_end()
    body = {"model": MODEL, "input": "count", "stream": True}
    told = httpx.post(f"{stage.url}/v1/responses", json=body).text
    over_http = [json.loads(line[6:]) for line in told.splitlines() if line.startswith("data: ")]
    assert [event["type"] for event in over_socket] == [event["type"] for event in over_http]
    assert [sorted(event) for event in over_socket] == [sorted(event) for event in over_http]


def test_a_request_may_be_nested(stage: Any) -> None:
    stage.says("fine")
    with talking(stage.url) as talk:
        talk.say(response={"model": MODEL, "input": "how are you?", "metadata": {"a": "b"}})
        assert talk.until_end()[-1]["response"]["metadata"] == {"a": "b"}


def test_a_response_that_is_not_stored_is_gone_on_from(stage: Any) -> None:
    """Only on its own connection; under the id that the client knows; over several turns."""
    stage.says("Hello Ada.", "And forty.", "You are Ada, forty.")
    with talking(stage.url) as talk:
        first = talk.answer(model=MODEL, input="I am Ada.", store=False)
        second = talk.answer(model=MODEL, input="I am forty.", store=False, previous_response_id=first["id"])
        assert second["previous_response_id"] == first["id"]
        talk.answer(model=MODEL, input="Who am I?", previous_response_id=second["id"], store=False)
        said = [(one["role"], one["content"]) for one in stage.asked["messages"]][-5:]
        assert said == [
            ("user", "I am Ada."), ("assistant", "Hello Ada."), ("user", "I am forty."),
            ("assistant", "And forty."), ("user", "Who am I?"),
        ]  # fmt: skip
    with talking(stage.url) as talk:
        talk.say(model=MODEL, input="Who am I?", previous_response_id=second["id"])
        assert talk.hear()["error"]["code"] == "previous_response_not_found"


def test_a_failed_continuation_ends_what_it_went_on_from(stage: Any) -> None:
    """Whether it is refused or fails while it is made: who tries again sends its items."""
    for failing in ({"input": "Who am I?", "temperature": 9}, {"input": "Who am I?"}):
        stage.says("Hello Ada.", {"status": 400, "repeat": True})
        with talking(stage.url) as talk:
            first = talk.answer(model=MODEL, input="I am Ada.", store=False)
            talk.say(model=MODEL, previous_response_id=first["id"], **failing)
            assert talk.until_end()[-1]["type"] in ("error", "response.failed")
            talk.say(model=MODEL, input="Who am I?", previous_response_id=first["id"])
            assert talk.hear()["error"]["code"] == "previous_response_not_found"


def test_a_function_is_answered(stage: Any) -> None:
    tool = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}
    stage.says({"calls": [{"name": "weather", "id": "call_1"}]}, {"text": "It rains.", "after": "rain"})
    with talking(stage.url) as talk:
        first = talk.answer(model=MODEL, input="The weather?", store=False, tools=[tool])
        result = {"type": "function_call_output", "call_id": "call_1", "output": "rain"}
        second = talk.answer(
            model=MODEL, input=[result], store=False, tools=[tool], previous_response_id=first["id"]
        )
        assert text_of(second) == "It rains."


def test_a_search_of_a_response_that_is_not_stored_is_told_again(stage: Any) -> None:
    """With its passages, which can be cited, and which the client was not shown."""
    with openai.OpenAI(base_url=f"{stage.url}/v1", api_key="none", max_retries=0) as client:
        store = client.vector_stores.create(name="manuals")
        manual = ("manual.txt", b"The belt is changed every six months.")
        client.vector_stores.files.upload_and_poll(vector_store_id=store.id, file=manual, poll_interval_ms=50)
    search = {"calls": [{"name": "file_search", "arguments": {"query": "belt"}}]}
    stage.says(search, {"text": "In summer.", "after": "six months"}, {"text": "As it wears out [1]."})
    asked = {
        "model": MODEL,
        "store": False,
        "tools": [{"type": "file_search", "vector_store_ids": [store.id]}],
    }
    with talking(stage.url) as talk:
        first = talk.answer(input="When is the belt changed?", **asked)
        assert first["output"][0]["results"] is None
        second = talk.answer(input="And why?", previous_response_id=first["id"], **asked)
    (told,) = [message["content"] for message in stage.asked["messages"] if message["role"] == "tool"]
    assert "every six months" in told
    (citation,) = second["output"][-1]["content"][0]["annotations"]
    assert citation["filename"] == "manual.txt"


def test_input_may_come_ahead_of_its_turn(stage: Any) -> None:
    stage.says("You are Ada.")
    with talking(stage.url) as talk:
        ahead = talk.answer(model=MODEL, input="I am Ada.", generate=False)
        assert (ahead["status"], ahead["output"]) == ("completed", [])
        after = talk.answer(model=MODEL, input="Who am I?", previous_response_id=ahead["id"])
        assert text_of(after) == "You are Ada."
    assert [one["content"] for one in stage.asked["messages"]][-2:] == ["I am Ada.", "Who am I?"]


def test_one_stream_waits_and_two_do_not(stage: Any) -> None:
    stage.says(
        {"when": "slow", "text": "a b c", "pause_at": 1},
        {"when": "next", "text": "d"},
        {"when": "beside", "text": "e"},
    )
    with talking(stage.url) as talk:
        talk.say(model=MODEL, input="slow", stream_id="one")
        talk.say(model=MODEL, input="next", stream_id="one")
        talk.say(model=MODEL, input="beside", stream_id="two")
        heard = []
        while sum(event["type"] == "response.completed" for event in heard) < 3:
            heard.append(talk.hear())
            if (heard[-1]["stream_id"], heard[-1]["type"]) == ("two", "response.completed"):
                stage.model.play.resume()
    ends = [(one["stream_id"], text_of(one["response"])) for one in heard if one["type"] == ENDS[0]]
    assert ends == [("two", "e"), ("one", "a b c"), ("one", "d")]
    of_one = [event for event in heard if event["stream_id"] == "one"]
    again = [i for i, event in enumerate(of_one) if event["type"] == "response.created"]
    assert of_one[again[1] - 1]["type"] == "response.completed"


WRONG: list[tuple[str | bytes, str | None, str | None]] = [
    ("{", "invalid_value", "body"),
    (b"\xff\xfe", "invalid_value", "body"),
    ("[]", "invalid_value", "body"),
    ('{"type": "response.cancel"}', "invalid_value", "type"),
    ('{"type": "response.create"}', "invalid_value", "input"),
    ('{"type": "response.create", "input": "a", "temperature": "b"}', "invalid_value", "temperature"),
    ('{"type": "response.create", "input": "a", "background": true}', "invalid_value", "background"),
    (
        '{"type": "response.create", "input": "a", "previous_response_id": "resp_none"}',
        "previous_response_not_found",
        "previous_response_id",
    ),
]


def test_what_is_wrong_is_a_frame_and_no_end(stage: Any) -> None:
    with talking(stage.url) as talk:
        for frame, code, param in WRONG:
            talk.socket.send(frame)
            heard = talk.hear()
            assert (heard["type"], heard["status"]) == ("error", 400)
            assert (heard["error"]["code"], heard["error"]["param"]) == (code, param)
            assert heard["error"]["type"] == "invalid_request_error"
        talk.say(model=MODEL, input="a", temperature=9, stream_id="one")
        heard = talk.hear()
        assert (heard["error"]["param"], heard["stream_id"]) == ("temperature", "one")
        stage.says("still here")
        assert text_of(talk.answer(model=MODEL, input="hello")) == "still here"


def test_a_response_is_not_steered(stage: Any) -> None:
    with talking(stage.url) as talk:
        talk.say("response.steer", previous_response_id="resp_1", input="more")
        heard = talk.hear()
    assert (heard["type"], heard["error"]["code"]) == ("response.steer.failed", "steering_not_supported")
    assert heard["steer"] == {"previous_response_id": "resp_1", "input": "more"}


def test_too_many_requests_at_once_are_refused(stage: Any) -> None:
    stage.says({"text": "a", "hang": True, "repeat": True})
    with talking(stage.url) as talk:
        for i in range(33):
            talk.say(model=MODEL, input="wait", stream_id=str(i), store=False)
        heard = talk.hear()
        while heard["type"] != "error":
            heard = talk.hear()
        assert (heard["status"], heard["stream_id"]) == (429, "32")


def test_a_model_that_fails(stage: Any) -> None:
    stage.says({"text": "half of", "cut": True}, "whole")
    with talking(stage.url) as talk:
        failed = talk.answer(model=MODEL, input="hello")
        assert (failed["status"], failed["error"]["code"]) == ("failed", "server_error")
        assert text_of(talk.answer(model=MODEL, input="hello")) == "whole"


def test_a_client_that_leaves_stops_the_model(stage: Any) -> None:
    stage.says({"text": "this far", "hang": True})
    with talking(stage.url) as talk:
        talk.say(model=MODEL, input="go on")
        heard = talk.hear()
        while heard["type"] != "response.output_text.delta":
            heard = talk.hear()
        id_ = heard["item_id"].replace("msg_", "resp_")[:-4]
    until(lambda: stage.model.received[-1].outcome == "left", "the model hears that its client left")
    found = httpx.get(f"{stage.url}/v1/responses/{id_}").json()
    assert found["status"] == "cancelled"
    assert text_of(found).startswith("this")


def test_no_key_no_connection(stages: Any) -> None:
    keys = [
        {"name": "a", "role": "member", "tenant": "a", "key": "key-a"},
        {"name": "b", "role": "member", "tenant": "b", "key": "key-b"},
        {"name": "r", "role": "reader", "tenant": "a", "key": "key-r"},
    ]
    with stages(keys=keys) as stage:
        for headers, status in (
            ({}, 401),
            ({"Authorization": "Bearer no"}, 401),
            ({"Authorization": "Bearer key-r"}, 403),
        ):
            with pytest.raises(InvalidStatus) as caught, talking(stage.url, **headers):
                pass
            assert caught.value.response.status_code == status
            assert json.loads(caught.value.response.body)["error"]["message"]
            assert caught.value.response.headers["x-request-id"]
        stage.says("mine")
        with talking(stage.url, Authorization="Bearer key-a") as talk:
            made = talk.answer(model=MODEL, input="whose?")
        path = f"{stage.url}/v1/responses/{made['id']}"
        assert httpx.get(path, headers={"Authorization": "Bearer key-a"}).status_code == 200
        assert httpx.get(path, headers={"Authorization": "Bearer key-b"}).status_code == 404
        with talking(stage.url, Authorization="Bearer key-b") as talk:
            talk.say(model=MODEL, input="whose?", previous_response_id=made["id"])
            assert talk.hear()["error"]["code"] == "previous_response_not_found"
        told = stage.process.said()
    lines = [json.loads(line) for line in told.splitlines()]
    seen = [(one["status"], one["tenant"]) for one in lines if one.get("method") == "websocket"]
    assert seen[:3] == [(401, None), (401, None), (403, None)]
    assert (101, "a") in seen


def test_a_page_of_another_site_gets_no_connection(stage: Any) -> None:
    with pytest.raises(InvalidStatus) as caught, talking(stage.url, Origin="http://evil.example"):
        pass
    assert caught.value.response.status_code == 403
