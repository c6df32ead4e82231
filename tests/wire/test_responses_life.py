"""Responses and those who wait for them: clients that leave, silences, servers that end."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from support.leaving import post_and_leave
from support.waiting import until

MODEL = "scripted"
UNDER_WAY = ("queued", "in_progress")


@pytest.fixture(scope="module")
def http(stage: Any) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{stage.url}/v1", timeout=30) as made:
        yield made


def body(text: str, **fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "input": text, **fields}


def heard(answer: httpx.Response) -> Iterator[dict[str, Any]]:
    """The events of a stream as they come."""
    for line in answer.iter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def ended(http: httpx.Client, id_: str) -> Any:
    """The stored response, once there is one that has ended."""

    def look() -> Any:
        answer = http.get(f"/responses/{id_}")
        return answer.json() if answer.status_code == 200 else {"status": "queued"}

    return until(look, "the end of a response", accept=lambda found: found["status"] not in UNDER_WAY)


def test_a_client_that_leaves_a_stream_stops_the_model(stage: Any, http: httpx.Client) -> None:
    stage.says({"text": "said so far", "hang": True})
    with http.stream("POST", "/responses", json=body("go on", stream=True)) as answer:
        events = heard(answer)
        id_ = next(events)["response"]["id"]
        text = ""
        while text != "said so far":
            text += next(events).get("delta", "")
    found = ended(http, id_)
    assert stage.model.received[-1].outcome == "left"
    assert found["status"] == "cancelled"
    assert found["output"][0]["content"][0]["text"] == "said so far"
    assert found["output"][0]["status"] == "incomplete"
    stage.says("and more")
    after = http.post("/responses", json=body("go on", previous_response_id=id_)).json()
    assert after["status"] == "completed"
    assert [one["content"] for one in stage.asked["messages"]][-3:] == ["go on", "said so far", "go on"]


def test_a_client_that_does_not_wait_for_an_answer_stops_the_model(stage: Any, http: httpx.Client) -> None:
    stage.says({"text": "said so far", "hang": True})
    before = len(stage.model.received)
    url, asked = f"{stage.url}/v1/responses", body("go on")
    post_and_leave(url, asked, lambda: len(stage.model.received) > before, "a question of the model")
    until(lambda: stage.model.received[-1].outcome == "left", "the model hears that its client left")


def test_a_background_response_goes_on_without_its_client(stage: Any, http: httpx.Client) -> None:
    stage.says({"text": "one two three four", "pause_at": 1})
    with http.stream("POST", "/responses", json=body("go on", stream=True, background=True)) as answer:
        id_ = next(heard(answer))["response"]["id"]
    stage.model.play.resume()
    found = ended(http, id_)
    assert (found["status"], found["output"][0]["content"][0]["text"]) == ("completed", "one two three four")


def test_the_first_event_does_not_wait_for_the_model(stage: Any, http: httpx.Client) -> None:
    stage.says({"text": "late", "pause_at": 0})
    with http.stream("POST", "/responses", json=body("go on", stream=True)) as answer:
        first = next(heard(answer))
        assert first["type"] == "response.created"
    assert ended(http, first["response"]["id"])["status"] == "cancelled"


def test_a_silent_model_does_not_make_a_silent_stream(stage: Any, http: httpx.Client) -> None:
    stage.says({"text": "late", "first": 0.9, "when": "^silently"})
    told = http.post("/responses", json=body("silently", stream=True)).text
    before, _, after = told.partition("event: response.output_item.added")
    assert before.count(": keep-alive\n\n") >= 3
    assert after.rstrip().endswith("}")


@pytest.mark.slow
def test_a_server_that_ends_waits_for_what_ends_and_tells_the_rest(stages: Any) -> None:
    """One stream ends in time and is whole; one does not, is told, and what it had said is kept. So for one that is
    not streamed, and over a WebSocket, which is closed then."""
    with stages(server={"request_timeout": 1.0}) as stage:
        stage.says(
            {"when": "short", "text": "a b c d", "delay": 0.15},
            {"when": "long", "text": "said so far", "hang": True},
            {"when": "plain", "text": "said so far", "hang": True},
            {"when": "socket", "text": "said so far", "hang": True},
        )
        told: dict[str, Any] = {}

        def ask(name: str, **fields: Any) -> None:
            told[name] = httpx.post(f"{stage.url}/v1/responses", json=body(name, **fields), timeout=30)

        def talk() -> None:
            frames = told["socket"] = []
            with connect(f"{stage.url.replace('http', 'ws')}/v1/responses") as socket:
                socket.send(json.dumps({"type": "response.create", **body("socket")}))
                try:
                    while True:
                        frames.append(json.loads(socket.recv(timeout=20)))
                except ConnectionClosed as exc:
                    told["closed"] = exc.rcvd and exc.rcvd.code

        threads = [
            threading.Thread(target=talk),
            threading.Thread(target=ask, args=("short",), kwargs={"stream": True}),
            threading.Thread(target=ask, args=("long",), kwargs={"stream": True}),
            threading.Thread(target=ask, args=("plain",)),
        ]
        for thread in threads:
            thread.start()
        until(lambda: len(stage.model.received) == 4, "four requests")
        time.sleep(0.1)
        assert stage.process.end() == 0
        for thread in threads:
            thread.join()
        assert "Traceback" not in stage.process.said()
    short, long = (list(heard(told[name])) for name in ("short", "long"))
    assert told["closed"] == 1012
    assert short[-1]["type"] == "response.completed"
    assert short[-1]["response"]["output"][0]["content"][0]["text"] == "a b c d"
    for last in (long[-1], told["socket"][-1]):
        assert last["type"] == "response.failed"
        assert "asked to end" in last["response"]["error"]["message"]
        assert last["response"]["output"][0]["content"][0]["text"] == "said so far"
    plain = told["plain"].json()
    assert (plain["status"], plain["output"][0]["content"][0]["text"]) == ("failed", "said so far")
