"""The scripted model as its script says, in process and over HTTP, asked by a client of another make."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest

from memoranda.config.agent_sections import Model as Settings
from memoranda.errors import ConfigError, ModelUnavailable
from memoranda.providers.chat import open_model
from memoranda.providers.chat.base import (
    Ask,
    Ended,
    Piece,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)
from memoranda.providers.chat.script import Call, Script, Turn, script_of
from memoranda.providers.chat.scripted import ScriptedModel
from support.chat_server import playing, serving
from support.waiting import until, until_async

HI: list[Any] = [{"role": "user", "content": "hi there"}]
FIND: list[Any] = [{"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}]


def pieces(scripted: ScriptedModel, **fields: Any) -> list[Piece]:
    async def test() -> list[Piece]:
        return [piece async for piece in scripted.answer(Ask(**{"messages": HI} | fields))]

    return asyncio.run(test())


def client(url: str, **settings: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=url, api_key="any", **{"max_retries": 0, "timeout": 5.0} | settings)


def test_a_turn_says_its_parts_in_order() -> None:
    turn = Turn(
        reasoning="hm", text="Hello {question}", refusal=["no"], calls=[Call(name="find", arguments="{oops")]
    )
    assert pieces(ScriptedModel([turn])) == [
        ReasoningDelta("hm"),
        TextDelta("Hello"),
        TextDelta(" hi there"),
        RefusalDelta("no"),
        ToolCallDelta(0, "", "call_1_0", "find"),
        ToolCallDelta(0, "{oops"),
        Ended("tool_calls", TokenUsage(input=2, output=4), "scripted"),
    ]


def test_the_first_turn_that_fits_and_is_not_used_up_answers() -> None:
    result = [*HI, {"role": "tool", "tool_call_id": "1", "content": "found 7"}]
    model = ScriptedModel(
        [
            {"after": "found \\d", "text": "result"},
            {"when": "^bye", "text": "bye"},
            {"offered": "find", "text": "tool"},
            {"text": "once"},
            {"text": "always", "repeat": True},
        ]
    )
    asked = [{"messages": result}, {"messages": result}, {"tools": FIND}, {"tools": FIND}, {}]
    first = [pieces(model, **fields)[0] for fields in asked]
    assert first == [TextDelta(text) for text in ("result", "once", "tool", "always", "always")]
    assert [turn.text for turn in model.play.left] == ["bye", "always"]
    assert [len(ask.tools) for ask in model.asked] == [0, 0, 1, 1, 0]


def test_usage_and_the_reason_can_be_said() -> None:
    usage = {"input": 10, "output": 5, "cached": 8}
    model = ScriptedModel([{"text": "x", "finish": "length", "usage": usage}, {"text": "x", "usage": False}])
    assert pieces(model)[-1] == Ended("length", TokenUsage(input=10, output=5, cached=8), "scripted")
    assert pieces(model, model="other")[-1] == Ended("stop", None, "other")


def test_an_answer_that_is_left_is_counted() -> None:
    model = ScriptedModel([{"text": "a b"}, {"text": "a b"}])

    async def leave() -> None:
        answer = model.answer(Ask(messages=HI))
        await anext(answer)
        await answer.aclose()  # type: ignore[attr-defined]

    asyncio.run(leave())
    pieces(model)
    assert model.left == 1


def test_a_script_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text('[{"text": "from a file"}]')
    model = open_model(Settings(url=f"scripted:{path}", timeout=0.05))
    assert isinstance(model, ScriptedModel)
    assert pieces(model)[0] == TextDelta("from")
    model.play.add({"hang": True})
    with pytest.raises(ModelUnavailable, match=r"within 0\.05 s"):
        pieces(model)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is no script"),
        ("{", "is no script"),
        ('{"turns": [{"txt": "x"}]}', r"unknown field `txt` - at `\$.turns"),
        ('{"turns": 3}', "is no script"),
        ('[{"when": "("}]', "is no script: missing \\)"),
    ],
)
def test_what_is_no_script_is_refused(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match=says) as refused:
        open_model(Settings(url=f"scripted:{path}"))
    assert str(path) in str(refused.value)
    with pytest.raises(ConfigError, match="cannot be read"):
        script_of(tmp_path / "none.json")


def test_another_client_hears_the_same_over_http() -> None:
    script = Script(turns=[Turn(text="It is {question}.", repeat=True)], models=("a", "b"))
    with serving(script) as (url, received):
        asked = client(url)
        assert [model.id for model in asked.models.list()] == ["a", "b"]
        whole = asked.chat.completions.create(model="m", messages=HI)
        parts = asked.chat.completions.create(
            model="m", messages=HI, stream=True, stream_options={"include_usage": True}, tools=FIND
        )
        chunks = list(parts)
    assert whole.choices[0].message.content == "It is hi there."
    assert (whole.model, whole.usage and whole.usage.prompt_tokens) == ("m", 2)
    texts = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert texts == ["", "It", " is", " hi there.", None]
    assert chunks[-1].usage is not None
    assert [request.outcome for request in received] == ["done", "done"]
    assert received[1].messages == HI
    assert received[1].tools == ["find"]
    assert received[0].headers["authorization"] == "Bearer any"


def test_calls_reach_another_client_whole() -> None:
    turn = Turn(
        calls=[Call(name="find", arguments={"query": "x" * 50}, id="mine"), Call(name="find")], repeat=True
    )
    with serving([turn]) as (url, _):
        message = client(url).chat.completions.create(model="m", messages=HI, tools=FIND).choices[0].message
        with client(url).chat.completions.stream(model="m", messages=HI, tools=FIND) as parts:
            streamed = parts.get_final_completion().choices[0].message
    for said in (message, streamed):
        assert said.tool_calls is not None
        assert [call.id for call in said.tool_calls] == [
            "mine",
            "call_1_1" if said is message else "call_2_1",
        ]
        functions = [getattr(call, "function").arguments for call in said.tool_calls]  # noqa: B009
        assert [json.loads(arguments) for arguments in functions] == [{"query": "x" * 50}, {}]


def test_failures_reach_another_client_as_such() -> None:
    script = [
        {"status": 429, "message": "slowly", "headers": {"retry-after-ms": "10"}},
        {"text": "after that"},
        {"hang": True},
        {"text": "x", "garbage": "<html>"},
        {"text": "x", "garbage": "<html>"},
        {"text": "a b", "cut": True},
    ]
    with playing(script) as (url, app):
        again = client(url, max_retries=1)
        assert (
            again.chat.completions.create(model="m", messages=HI).choices[0].message.content == "after that"
        )
        with pytest.raises(openai.APITimeoutError):
            client(url, timeout=0.2).chat.completions.create(model="m", messages=HI)
        with pytest.raises(json.JSONDecodeError):
            client(url).chat.completions.create(model="m", messages=HI)
        assert [chunk.choices[0].delta.content for chunk in parts(url)] == ["", "x"]
        with pytest.raises(openai.APIConnectionError):
            client(url).chat.completions.create(model="m", messages=HI)
        with pytest.raises(openai.BadRequestError, match="no turn of the script fits 'hi there'"):
            client(url).chat.completions.create(model="m", messages=HI)
        app.play.add({"text": "more"})
        assert (
            client(url).chat.completions.create(model="m", messages=HI).choices[0].message.content == "more"
        )
    outcomes = [request.outcome for request in app.received]
    assert outcomes == ["broken", "done", "left", "broken", "broken", "broken", "broken", "done"]


def parts(url: str) -> list[Any]:
    return list(client(url).chat.completions.create(model="m", messages=HI, stream=True))


@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_turn_pauses_until_it_is_resumed(at: int) -> None:
    scripted = ScriptedModel([{"text": "a b c", "pause_at": at}])
    heard: list[Piece] = []

    async def listen() -> None:
        async for piece in scripted.answer(Ask(messages=HI)):
            heard.append(piece)

    async def test() -> None:
        listening = asyncio.create_task(listen())
        await until_async(lambda: scripted.play.paused, "the pause")
        assert len(heard) == at
        scripted.play.resume()
        await listening

    asyncio.run(test())
    assert heard[:-1] == [TextDelta("a"), TextDelta(" b"), TextDelta(" c")]
    assert scripted.play.paused == 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_pauses_over_http(stream: bool) -> None:
    with playing([{"text": "a b", "pause_at": 1}]) as (url, app), ThreadPoolExecutor(1) as pool:
        answer = pool.submit(parts if stream else whole, url)
        until(lambda: app.play.paused, "the pause")
        assert not answer.done()
        app.play.resume()
        assert answer.result()
        assert app.received[0].outcome == "done"


def whole(url: str) -> Any:
    return client(url).chat.completions.create(model="m", messages=HI)


def test_a_client_that_leaves_is_noticed_before_the_next_piece() -> None:
    with serving([{"text": "a b c", "pause_at": 1}]) as (url, received):
        parts = client(url).chat.completions.create(model="m", messages=HI, stream=True)
        next(iter(parts))
        parts.close()
        until(lambda: received[0].outcome, "the end of the request", accept=lambda now: now != "under way")
        assert received[0].outcome == "left"


def test_other_addresses_and_bodies_are_answered_as_errors() -> None:
    with serving([{"text": "x"}]) as (url, received):
        with pytest.raises(openai.NotFoundError, match="no such address: /v1/embeddings"):
            client(url).embeddings.create(model="m", input="x")
        with pytest.raises(openai.BadRequestError, match="is no JSON object"):
            client(url).post("/chat/completions", body=[], cast_to=object)
        assert received == []
