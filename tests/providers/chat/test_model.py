"""What every model promises. Another one joins by adding how it is opened to `OPENED`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memoranda.config.agent_sections import Model as Settings
from memoranda.errors import ConfigError, ModelBroken, ModelError, ModelRefused, ModelUnavailable
from memoranda.providers.chat import MODELS, Model, open_model
from memoranda.providers.chat.base import Ask, Ended, Piece, Source, TextDelta, ToolCallDelta
from memoranda.providers.chat.script import Play, script_of
from memoranda.providers.chat.scripted import ScriptedModel
from support import chat_server

QUESTION = "How long is the warranty of the pump?"
TEXT = "The pump has a warranty of three years. It is delivered in a box. The box is brown."
SOURCES = [Source(number=1, text=TEXT, title="pump.md"), Source(number=2, text="Nothing else.", title="b.md")]
SEARCH = {
    "name": "file_search",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
}
TOOLS = [{"type": "function", "function": SEARCH}]
CALL = {"name": "file_search", "arguments": {"query": QUESTION}}
SCRIPT: list[dict[str, Any]] = [
    {"after": "", "text": "It is three years [1].", "repeat": True},
    {"offered": "file_search", "calls": [CALL], "repeat": True},
    {"when": "warranty", "text": "It is three years [1].", "repeat": True},
    {"when": "slowly", "text": "one two three four five", "delay": 0.02, "repeat": True},
    {"text": "You said {question}", "repeat": True},
]


@pytest.fixture(scope="module", autouse=True)
def _served() -> Iterator[None]:
    """One server for all scripts, which take turns."""
    with chat_server.playing([]) as SERVED[:]:
        yield


SERVED: list[Any] = []


@contextmanager
def chat(script: list[dict[str, Any]], **settings: Any) -> Iterator[Model]:
    url, app = SERVED
    before, app.play = app.play, Play(script_of(script))
    model = open_model(Settings(url=url, name="scripted", retries=0, **settings))
    yield model
    model.close()
    app.play = before


@contextmanager
def scripted(script: list[dict[str, Any]], **settings: Any) -> Iterator[Model]:
    yield ScriptedModel(script, **settings)


@contextmanager
def extractive(script: list[dict[str, Any]]) -> Iterator[Model]:
    yield open_model(Settings())


OPENED: dict[str, Callable[..., Any]] = {"chat": chat, "scripted": scripted, "extractive": extractive}
FAILING = ["chat", "scripted"]
"""Those that a script can make fail."""


@pytest.fixture(scope="module", params=OPENED)
def model(request: pytest.FixtureRequest) -> Iterator[Model]:
    with OPENED[request.param](SCRIPT) as opened:
        yield opened


def asking(text: str = QUESTION, **fields: Any) -> Ask:
    given = {"messages": [{"role": "user", "content": text}], "question": text, "sources": SOURCES}
    return Ask(**given | fields)


async def pieces(model: Model, ask: Ask) -> list[Piece]:
    return [piece async for piece in model.answer(ask)]


def answered(model: Model, ask: Ask) -> list[Piece]:
    return asyncio.run(pieces(model, ask))


def said(found: list[Piece]) -> str:
    return "".join(piece.text for piece in found if isinstance(piece, TextDelta))


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_is_text_that_cites_and_one_end(model: Model, stream: bool) -> None:
    found = answered(model, asking(stream=stream))
    assert "three years" in said(found)
    assert "[1]" in said(found)
    assert all(piece.text for piece in found if isinstance(piece, TextDelta))
    assert [isinstance(piece, Ended) for piece in found] == [False] * (len(found) - 1) + [True]
    assert isinstance(found[-1], Ended)
    assert found[-1].reason == "stop"


def test_the_end_names_the_model_that_answered(model: Model) -> None:
    end = answered(model, asking())[-1]
    assert isinstance(end, Ended)
    assert end.model == model.name


def test_the_same_ask_has_the_same_answer(model: Model) -> None:
    assert answered(model, asking()) == answered(model, asking())


@pytest.mark.parametrize("stream", [True, False])
def test_a_tool_that_is_offered_is_called_and_its_result_answered_from(model: Model, stream: bool) -> None:
    ask = asking(tools=TOOLS, sources=[], stream=stream)
    found = answered(model, ask)
    calls = [piece for piece in found if isinstance(piece, ToolCallDelta)]
    assert {call.index for call in calls} == {0}
    assert calls[0].id
    assert calls[0].name == "file_search"
    assert all(call.name is None for call in calls[1:])
    arguments = "".join(call.arguments for call in calls)
    assert json.loads(arguments) == {"query": QUESTION}
    assert isinstance(found[-1], Ended)
    assert found[-1].reason == "tool_calls"
    call = {
        "id": calls[0].id,
        "type": "function",
        "function": {"name": "file_search", "arguments": arguments},
    }
    ask.messages += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": calls[0].id, "content": f"[1] pump.md\n{TEXT}"},
    ]
    ask.sources = SOURCES
    after = answered(model, ask)
    assert "three years" in said(after)
    assert not any(isinstance(piece, ToolCallDelta) for piece in after)


def test_answers_at_once_do_not_mix(model: Model) -> None:
    async def many() -> list[str]:
        asks = [asking(f"word{number}", sources=[source(number)]) for number in range(20)]
        return [said(found) for found in await asyncio.gather(*(pieces(model, ask) for ask in asks))]

    def source(number: int) -> Source:
        return Source(number=1, text=f"This tells of word{number} alone.", title="a")

    for number, text in enumerate(asyncio.run(many())):
        assert [other for other in range(20) if f"word{other}" in text.replace(".", " ").split()] == [number]


def test_an_answer_can_be_left_in_the_middle_and_the_next_one_comes(model: Model) -> None:
    async def leave() -> str:
        answer = model.answer(asking("slowly: how long is the warranty?"))
        first = await anext(answer)  # type: ignore[arg-type]
        assert isinstance(first, TextDelta)
        await answer.aclose()  # type: ignore[attr-defined]
        return said(await pieces(model, asking()))

    assert "three years" in asyncio.run(leave())


def test_one_model_serves_one_event_loop_after_another(model: Model) -> None:
    for _ in range(3):
        assert said(answered(model, asking()))


ODD: list[list[dict[str, Any]]] = [
    [],
    [{"role": "user", "content": ""}],
    [{"role": "user", "content": None}],
    [{"role": "system", "content": "only this"}],
    [{"role": "user", "content": "a\ud800b \0 \U0001f642 \u202e"}],
    [
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "data:,"}}, {"type": "text", "text": "x"}],
        }
    ],
    [{"role": "user", "content": "x " * 100_000}],
]


@pytest.mark.parametrize("messages", ODD, ids=range(len(ODD)))
def test_odd_messages_have_an_answer(model: Model, messages: list[dict[str, Any]]) -> None:
    for sources in (
        [],
        SOURCES,
        [Source(number=1, text="", title=""), Source(number=2, text="\ud800 \n", title="")],
    ):
        found = answered(model, Ask(messages=messages, sources=sources))
        assert isinstance(found[-1], Ended)
        said(found).encode()


def test_it_knows_its_names_and_counts(model: Model) -> None:
    assert model.name in asyncio.run(model.names())
    assert all(isinstance(count, int) for count in model.usage().values())


@pytest.mark.parametrize("opened", FAILING)
@pytest.mark.parametrize(
    ("turn", "kind"),
    [
        ({"status": 400}, ModelRefused),
        ({"status": 401}, ModelRefused),
        ({"status": 404}, ModelRefused),
        ({"status": 429}, ModelUnavailable),
        ({"status": 500}, ModelUnavailable),
        ({"hang": True}, ModelUnavailable),
        ({"text": "so far", "hang": True}, ModelBroken),
        ({"text": "so far", "cut": True}, ModelBroken),
        ({"text": "so far", "garbage": "data: <html>\n\n"}, ModelBroken),
    ],
)
def test_failures_are_told_apart(opened: str, turn: dict[str, Any], kind: type[ModelError]) -> None:
    heard: list[Piece] = []

    async def hear() -> None:
        async for piece in failing.answer(asking()):
            heard.append(piece)

    with OPENED[opened]([turn], timeout=0.15) as failing:
        with pytest.raises(kind):
            asyncio.run(hear())
        assert said(heard) == turn.get("text", "")
        assert len(heard) == len(turn.get("text", "").split())


@pytest.mark.parametrize("opened", FAILING)
def test_a_script_that_has_no_turn_left_says_so(opened: str) -> None:
    with (
        OPENED[opened]([]) as model,
        pytest.raises(ModelRefused, match="no turn of the script fits 'How long"),
    ):
        answered(model, asking())


@pytest.mark.parametrize("opened", OPENED)
def test_closing_twice_is_closing_once(opened: str) -> None:
    with OPENED[opened](SCRIPT) as model:
        answered(model, asking())
        model.close()
        model.close()


def test_every_scheme_opens_or_says_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"turns": SCRIPT, "models": ["one", "two"]}))
    urls = {
        "http": "http://h/v1",
        "https": "https://h/v1",
        "scripted": f"scripted:{path}",
        "extractive": "extractive:",
    }
    assert urls.keys() == MODELS.keys()
    for url in urls.values():
        assert open_model(Settings(url=url, name="small")).name
    with pytest.raises(ConfigError, match="'ftp' is unknown; use one of http, https, scripted, extractive"):
        open_model(Settings(url="ftp://h"))
