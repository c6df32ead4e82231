"""Chat completions without a language model, and where no user is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memoranda.providers.chat.script import Script, Turn
from support import chat_server

pytestmark = pytest.mark.rows_in("sqlite")
KEYS = [{"name": "app", "role": "service", "tenant": "acme", "key": "app"}]


def ask(house: Any, text: str, key: str | None = None, **fields: Any) -> Any:
    """The answer to one question."""
    body = {"messages": [{"role": "user", "content": text}], **fields}
    answer = house.request("POST", "/v1/chat/completions", key=key, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("key", [None, "app"])
def test_what_was_said_is_quoted_where_no_model_answers(opened: Callable[..., Any], key: str | None) -> None:
    house = opened(keys=KEYS if key else [], responses={"memory_min_score": 0.0})
    user = {"user": "ada"} if key else {}
    ask(house, "My sister Vera is allergic to walnuts.", key, **user)
    made = ask(house, "What is Vera allergic to?", key, **user)
    assert "allergic to walnuts" in made["choices"][0]["message"]["content"]
    assert made["choices"][0]["finish_reason"] == "stop"
    assert made["extensions"]["answered_by"] == "extractive"
    assert made["extensions"]["evidence"] in ("strong", "weak", "none")
    assert all(one["used"] for one in made["extensions"]["memory"]["retrieved"])


def test_with_keys_and_no_user_a_session_or_channel_is_remembered(opened: Callable[..., Any]) -> None:
    house = opened(keys=KEYS, responses={"memory_min_score": 0.0})
    for place in ({}, {"session_id": "one"}, {"channel_id": "team"}):
        ask(house, f"The door code is {len(place)} four.", "app", memory=place)
        made = ask(house, "What is the door code?", "app", memory=place)
        assert bool(made["extensions"]["memory"]["retrieved"]) is bool(place)


def test_a_message_that_is_too_long_is_to_be_shortened(opened: Callable[..., Any]) -> None:
    house = opened(model={"context_tokens": 2_000})
    said = [{"role": "user", "content": "word " * 300}, {"role": "assistant", "content": "yes"}] * 8
    for messages in ([{"role": "user", "content": "word " * 3_000}], [*said, said[0]]):
        for more in ({}, {"truncation": "auto"}):
            answer = house.request("POST", "/v1/chat/completions", json={"messages": messages, **more})
            error = answer.json()["error"]
            assert (answer.status_code, error["code"], error["param"]) == (
                400,
                "context_length_exceeded",
                "messages",
            )
            assert error["message"].endswith("answer; the context of the model is 2000 tokens: shorten it")


def test_what_a_tenant_has_spent_is_said_as_to_every_client(
    opened: Callable[..., Any], tmp_path: Any
) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"turns": [{"text": "Good day.", "repeat": true}]}')
    house = opened(
        model={"url": f"scripted:{script}", "fallback": False}, spending={"model_calls_per_day": 1}
    )
    assert ask(house, "Hello?", memory=False)["choices"][0]["message"]["content"] == "Good day."
    body = {"messages": [{"role": "user", "content": "Hello?"}], "memory": False}
    refused = house.request("POST", "/v1/chat/completions", json=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "insufficient_quota")


@pytest.mark.parametrize(
    ("path", "asking"),
    [
        ("/v1/responses", {"input": "Hello?"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hello?"}]}),
    ],
)
def test_a_model_that_the_server_refuses_and_does_not_list_is_not_found(
    opened: Callable[..., Any], path: str, asking: dict[str, Any]
) -> None:
    litellm = "/chat/completions: Invalid model name passed in model={}. Call `/v1/models` to view the models"
    turns = [
        Turn(status=400, message=litellm.format("gpt-9")),
        Turn(status=404, message="Not Found"),
        Turn(status=422, message="temperature is out of range"),
        Turn(status=400, message=litellm.format("large")),
    ]
    script = Script(turns=turns, models=("small", "folder/large:latest", "text-embedding-3-small"))

    def refused(model: str) -> tuple[int, dict[str, Any]]:
        answer = house.request("POST", path, json={"model": model, "memory": False, **asking})
        return answer.status_code, answer.json()["error"]

    with chat_server.serving(script) as (url, received):
        house = opened(model={"url": url, "name": "small", "fallback": False})
        for _ in range(2):
            status, error = refused("gpt-9")
            assert (status, error["code"], error["param"]) == (404, "model_not_found", "model")
            assert "'gpt-9'" in error["message"]
            assert error["message"].endswith("; known: small, folder/large:latest")
        for model in ("gpt-9", "large"):
            status, error = refused(model)
            assert (status, error["code"]) == (400, "model_refused")
        assert len(received) == 4


FORGET = {
    "offered": "memory_forget",
    "calls": [{"name": "memory_forget", "arguments": {"query": "live Berlin"}}],
}
PLEASE = "Please forget that I live in Berlin"


def kept(house: Any, key: str | None = None) -> set[str]:
    """What is left of the memories about places."""
    body = {"query": "live", "threshold": 0}
    found = house.request("POST", "/v1/memories/search", key=key, json=body).json()["results"]
    return {one["memory"]["content"] for one in found if one["memory"]["kind"] == "note"}


@pytest.mark.parametrize("user", [{}, {"user": "ada"}])
def test_a_request_to_forget_is_told_what_deletes(opened: Callable[..., Any], user: dict[str, str]) -> None:
    with chat_server.serving([FORGET, Turn(text="I cannot, but this deletes it.")]) as (url, received):
        house = opened(model={"url": url, "name": "m"}, responses={"memory_min_score": 0.0})
        id_ = house.add("I live in Berlin", user_id="ada")
        ask(house, PLEASE, **user)
    output = received[-1].messages[-1]["content"]
    assert f"- {id_} (note" in output
    assert "DELETE /v1/memories/{id}" in output
    assert "memoranda forget ID --yes" in output
    assert kept(house) == {"I live in Berlin"}


def test_a_request_to_forget_deletes_at_once_by_setting(opened: Callable[..., Any]) -> None:
    bound = [{"name": name, "role": "member", "user": name, "key": name} for name in ("ada", "bob")]
    keys = [*bound, {"name": "root", "role": "admin", "key": "root"}]
    with chat_server.serving([FORGET, Turn(text="Done.")]) as (url, _):
        settings = {"memory_min_score": 0.0, "memory_forget": "immediately"}
        house = opened(keys=keys, model={"url": url, "name": "m"}, responses=settings)
        for user in ("ada", "bob"):
            body = {"content": f"I live in Berlin, says {user}", "user_id": user}
            assert house.request("POST", "/v1/memories", key=user, json=body).status_code == 200
        answer = ask(house, PLEASE, "ada")
    assert answer["choices"][0]["message"]["content"] == "Done."
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert kept(house, "root") == {"I live in Berlin, says bob"}


def test_forgetting_is_offered_where_the_model_chooses_its_tools(opened: Callable[..., Any]) -> None:
    function = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    with chat_server.serving([Turn(text="Good day.", repeat=True)]) as (url, received):
        house = opened(model={"url": url, "name": "m"})
        agent = house.request("POST", "/v1/agents", json={"name": "guide"}).json()["id"]
        for fields, offered in (
            ({}, ["memory_forget"]),
            ({"tools": [function]}, ["weather", "memory_forget"]),
            ({"tools": [{"type": "memory_forget"}]}, ["memory_forget"]),
            ({"memory": {"user_id": "ada"}, "tool_choice": "auto"}, ["memory_forget"]),
            ({"tools": [function], "tool_choice": "required"}, ["weather"]),
            ({"tools": [function], "tool_choice": "none"}, ["weather"]),
            ({"memory": False}, []),
            ({"memory": {"retrieval": False}}, []),
            ({"response_format": {"type": "json_object"}}, []),
            ({"agent": agent}, []),
        ):
            ask(house, "Hello.", **fields)
            assert received[-1].tools == offered, fields


def test_a_model_that_takes_no_tools_is_asked_without(opened: Callable[..., Any]) -> None:
    refuses = Turn(offered="memory_forget", status=400, message="small does not support tools", repeat=True)
    with chat_server.serving([refuses, Turn(text="Good day.", repeat=True)]) as (url, received):
        house = opened(model={"url": url, "name": "small", "fallback": False})
        for _ in range(2):
            assert ask(house, "Hello.")["choices"][0]["message"]["content"] == "Good day."
        assert [one.tools for one in received] == [["memory_forget"], [], []]


def test_a_request_that_is_refused_without_tools_stays_refused(opened: Callable[..., Any]) -> None:
    refusals = [Turn(status=422, message="temperature is out of range") for _ in range(2)]
    script = [*refusals, Turn(text="Good day.", repeat=True)]
    with chat_server.serving(script) as (url, received):
        house = opened(model={"url": url, "name": "m", "fallback": False})
        body = {"messages": [{"role": "user", "content": "Hello."}]}
        assert house.request("POST", "/v1/chat/completions", json=body).status_code == 400
        assert ask(house, "Hello.")["choices"][0]["message"]["content"] == "Good day."
        assert [one.tools for one in received] == [["memory_forget"], [], ["memory_forget"]]
