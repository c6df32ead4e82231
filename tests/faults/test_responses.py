"""Servers that are killed, asked to end, and left by their clients while they answer: no response is lost."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from memoranda.providers.chat.scripted_app import ScriptedApp, scripted_app
from memoranda.responses.background import INTERRUPTED
from memoranda.responses.runs import ENDING
from support.leaving import post_and_leave
from support.waiting import until

from . import indexer

WORDS = " ".join(f"word{n}" for n in range(30))
SCRIPT: list[dict[str, Any]] = [
    {"when": "quick", "text": "done at once", "repeat": True},
    {"when": "speak", "text": WORDS, "delay": 0.01, "repeat": True},
    {"when": "think", "first": 0.4, "text": "thought about it", "repeat": True},
    {"when": "hang", "text": "half a", "hang": True, "repeat": True},
    {"when": "silent", "first": 600, "text": "never", "repeat": True},
]
ENDS = ("response.completed", "response.incomplete", "response.failed")
SAID = {"quick": "done at once", "speak": WORDS, "think": "thought about it"}


def settings(folder: Path, script: list[dict[str, Any]] = SCRIPT, **more: Any) -> str:
    """What a server is told."""
    path = folder.parent / "script.json"
    path.write_text(json.dumps(script))
    given = {
        "embedder": {"url": "hash:64"},
        "data": str(folder),
        "server": {"port": 0},
        "model": {"url": f"scripted:{path}"},
        "jobs": {"max_attempts": 1_000},
        **more,
    }
    return json.dumps(given)


class Asking:
    """A client of one life of a server."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=20)

    def begin(self, input: str) -> str:
        """The id of a background response."""
        made = self.http.post("/v1/responses", json={"input": input, "background": True})
        assert made.status_code == 200, made.text
        return str(made.json()["id"])

    def get(self, id_: str) -> dict[str, Any]:
        found = self.http.get(f"/v1/responses/{id_}")
        assert found.status_code == 200, found.text
        return dict(found.json())

    def ended(self, id_: str) -> dict[str, Any]:
        found: dict[str, Any] = until(
            lambda: self.get(id_),
            "the end of a response",
            accept=lambda found: found["status"] not in ("queued", "in_progress"),
        )
        return found

    def events(self, id_: str) -> list[dict[str, Any]]:
        with self.http.stream("GET", f"/v1/responses/{id_}", params={"stream": "true"}) as answer:
            assert answer.status_code == 200, answer.read()
            return list(events_of(answer))


def events_of(answer: httpx.Response) -> Iterator[dict[str, Any]]:
    for line in answer.iter_lines():
        if line.startswith("data: ") and line != "data: [DONE]":
            yield json.loads(line.removeprefix("data: "))


def text(response: dict[str, Any]) -> str:
    return "".join(part["text"] for item in response["output"] for part in item.get("content", ()))


def check(asking: Asking, id_: str, asked: str) -> str:
    """It has ended, whole or with a reason, and its events tell that; its status."""
    found = asking.ended(id_)
    told = asking.events(id_)
    assert [event["sequence_number"] for event in told] == list(range(len(told)))
    assert [event["type"] in ENDS for event in told] == [False] * (len(told) - 1) + [True]
    assert told[-1]["response"]["status"] == found["status"]
    assert told[-1]["response"]["output"] == found["output"]
    if found["status"] == "completed":
        assert text(found) == SAID[asked]
        deltas = [event["delta"] for event in told if event["type"].endswith("text.delta")]
        assert "".join(deltas) == SAID[asked]
    else:
        assert (found["status"], found["error"]["message"]) == ("failed", INTERRUPTED)
        assert any(event["type"] == "response.output_item.added" for event in told)
    return str(found["status"])


def kill_again_and_again(tmp_path: Path, lives: int, **more: Any) -> dict[str, int]:
    """Lives of a server on one folder, each killed while it makes responses; how those ended."""
    seed = random.randrange(1_000_000)
    rng = random.Random(seed)
    print(f"seed {seed}")
    asked: dict[str, str] = {}
    given = settings(tmp_path / "data", **more)
    for _ in range(lives):
        with indexer.living(tmp_path / "said.log", "serve", given) as life:
            asking = Asking(life.ready())
            for _ in range(6):
                word = rng.choice(list(SAID))
                asked[asking.begin(word)] = word
                time.sleep(rng.random() * 0.05)
            time.sleep(rng.random() * 0.4)
            life.end()
    with indexer.living(tmp_path / "said.log", "serve", given) as life:
        asking = Asking(life.ready())
        ended = [check(asking, id_, word) for id_, word in asked.items()]
    return {status: ended.count(status) for status in set(ended)}


@pytest.mark.slow
def test_killed_while_it_answers(tmp_path: Path) -> None:
    """What told nothing yet is made by the next life; what was being told has failed, and says so."""
    ended = kill_again_and_again(tmp_path, 2)
    assert ended.get("completed", 0) > 0


@pytest.mark.slow
def test_killed_fifty_times(tmp_path: Path) -> None:
    ended = kill_again_and_again(tmp_path, 50)
    assert set(ended) == {"completed", "failed"}


@pytest.mark.slow
def test_another_process_takes_over_from_one_that_is_killed(tmp_path: Path, postgres_url: str) -> None:
    shared = {"database": {"url": postgres_url}, "jobs": {"lease_seconds": 2, "max_attempts": 100}}
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    slow = [*SCRIPT[:2], {**SCRIPT[2], "first": 3.0}]
    first = settings(tmp_path / "a" / "data", slow, **shared)
    second = settings(tmp_path / "b" / "data", SCRIPT, **shared)
    with indexer.living(tmp_path / "first.log", "serve", first) as one:
        asking = Asking(one.ready())
        spoken, waiting = asking.begin("speak"), asking.begin("think")
        until(lambda: asking.get(waiting)["status"] == "in_progress", "its start", every=0.05)
        until(lambda: asking.get(spoken)["status"] != "queued", "its start")
        with indexer.living(tmp_path / "second.log", "serve", second) as two:
            other = Asking(two.ready())
            with other.http.stream("GET", f"/v1/responses/{waiting}", params={"stream": "true"}) as followed:
                one.end()
                told = list(events_of(followed))
            assert told[-1]["type"] == "response.completed"
            assert text(told[-1]["response"]) == SAID["think"]
            assert [event["sequence_number"] for event in told] == list(range(len(told)))
            found = other.ended(spoken)
            assert found["status"] in ("completed", "failed")
            check(other, waiting, "think")
            check(other, spoken, "speak")


@pytest.mark.slow
def test_asked_to_end_while_it_answers(tmp_path: Path) -> None:
    """Though its model would say nothing for ten minutes, it ends. Everybody who waits is told; what said nothing is
    made by the next life."""
    given = settings(tmp_path / "data", server={"port": 0, "request_timeout": 5})
    with indexer.living(tmp_path / "said.log", "serve", given) as life:
        asking = Asking(life.ready())
        spoken, waiting = asking.begin("hang"), asking.begin("think")
        silent = asking.begin("silent")
        heard: dict[str, Any] = {}

        def listen(name: str, **body: Any) -> None:
            with httpx.stream(
                "POST", f"{asking.http.base_url}/v1/responses", json=body, timeout=20
            ) as answer:
                heard[name] = list(events_of(answer)) if body.get("stream") else json.loads(answer.read())

        listeners = [
            threading.Thread(target=listen, args=["streamed"], kwargs={"input": "hang", "stream": True}),
            threading.Thread(target=listen, args=["whole"], kwargs={"input": "hang"}),
        ]
        for one in listeners:
            one.start()
        until(
            lambda: {asking.get(id_)["status"] for id_ in (spoken, silent)},
            "the start of both",
            accept=lambda states: states == {"in_progress"},
        )
        time.sleep(0.2)
        assert life.end(signal.SIGTERM) == 0, life.log.read_text()
        for one in listeners:
            one.join()
    assert heard["streamed"][-1]["type"] == "response.failed"
    assert heard["streamed"][-1]["response"]["error"]["message"] == ENDING
    assert heard["whole"]["error"]["message"] == ENDING
    settings(tmp_path / "data", [{"when": "silent", "text": "now"}, *SCRIPT])
    with indexer.living(tmp_path / "said.log", "serve", given) as life:
        asking = Asking(life.ready())
        found = asking.get(spoken)
        assert (found["status"], found["error"]["message"], text(found)) == ("failed", ENDING, "half a")
        assert text(asking.ended(waiting)) == SAID["think"]
        assert text(asking.ended(silent)) == "now"
        for id_ in (spoken, waiting, silent):
            told = asking.events(id_)
            assert [event["sequence_number"] for event in told] == list(range(len(told)))
        streamed = asking.get(heard["streamed"][-1]["response"]["id"])
        assert (streamed["status"], streamed["error"]["message"]) == ("failed", ENDING)


# --- clients that go away --------------------------------------------------------------------------


@pytest.fixture
def model() -> Iterator[tuple[str, ScriptedApp]]:
    """A language model behind HTTP: its URL, and what it was asked."""
    app = scripted_app([])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    until(lambda: server.started, "the server listens")
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}/v1", app
    server.should_exit = True
    thread.join(10)


def test_a_client_that_goes_away_stops_the_model(tmp_path: Path, model: tuple[str, ScriptedApp]) -> None:
    """Streaming or not; what was said so far is stored."""
    url, app = model
    app.play.add({"text": WORDS, "delay": 0.02, "repeat": True})
    given = settings(tmp_path / "data", model={"url": url, "name": "scripted"})
    with indexer.living(tmp_path / "said.log", "serve", given) as life:
        asking = Asking(life.ready())
        with asking.http.stream("POST", "/v1/responses", json={"input": "go", "stream": True}) as answer:
            id_ = ""
            for event in events_of(answer):
                id_ = event.get("response", {}).get("id") or id_
                if event["type"].endswith("text.delta"):
                    break
        until(
            lambda: [one.outcome for one in app.received] == ["left"], "the model hears that its client left"
        )
        until(lambda: asking.http.get(f"/v1/responses/{id_}").status_code == 200, "the stored response")
        found = asking.get(id_)
        assert (found["status"], found["output"][0]["status"]) == ("cancelled", "incomplete")
        assert WORDS.startswith(text(found))
        asked = f"{str(asking.http.base_url).rstrip('/')}/v1/responses"
        post_and_leave(asked, {"input": "go"}, lambda: len(app.received) > 1, "a question of the model")
        until(
            lambda: [one.outcome for one in app.received] == ["left", "left"],
            "the model hears that its client left",
        )
        followed = asking.begin("go")
        with asking.http.stream("GET", f"/v1/responses/{followed}", params={"stream": "true"}) as answer:
            next(events_of(answer))
        assert text(asking.ended(followed)) == WORDS, "nobody waits for a background response"
        asking.http.close()
        assert life.end(signal.SIGTERM) == 0
