"""`client.chat.completions` of the official client, and LangChain's ChatOpenAI, with nothing but another base URL:
what is said in one request is known in the next."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from memoranda.text.prompts import QUOTED
from support.server_process import Stage, staged
from support.waiting import until

MODEL = "scripted"
ECHO = {"text": "you said: {question}", "repeat": True}
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    },
}
KEYS = [
    {"name": "app", "role": "service", "tenant": "acme", "key": "app"},
    {"name": "ada", "role": "member", "tenant": "acme", "user": "ada", "key": "ada"},
    {"name": "ben", "role": "member", "tenant": "acme", "user": "ben", "key": "ben"},
    {"name": "other", "role": "service", "tenant": "other", "key": "other"},
    {"name": "reader", "role": "reader", "tenant": "acme", "key": "reader"},
]
REMEMBERING = {"memory": True, "memory_min_score": 0.0}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A server without keys."""
    with staged(tmp_path_factory.mktemp("local") / "data", responses=REMEMBERING) as made:
        yield made


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A server with keys of two tenants."""
    folder = tmp_path_factory.mktemp("keyed") / "data"
    with staged(folder, responses=REMEMBERING, keys=KEYS) as made:
        yield made


def client(stage: Stage, key: str = "none") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{stage.url}/v1", api_key=key, max_retries=0)


def ask(stage: Stage, *said: Any, key: str = "none", **fields: Any) -> Any:
    """The answer to messages, its chunks where it is streamed: texts are the user's and the assistant's in turns."""
    messages = [
        {"role": ("user", "assistant")[i % 2], "content": one} if isinstance(one, str) else one
        for i, one in enumerate(said)
    ]
    extra = {name: fields.pop(name) for name in ("memory", "agent") if name in fields}
    with client(stage, key) as made:
        answer = made.chat.completions.create(model=MODEL, messages=messages, extra_body=extra, **fields)
        return list(answer) if fields.get("stream") else answer


def told(stage: Stage) -> str:
    """What was quoted to the model before the last message."""
    quoted = (str(message["content"]) for message in stage.asked["messages"][:-1])
    return "\n\n".join(text for text in quoted if text.startswith(QUOTED))


def log(stage: Stage, key: str = "none", **where: str) -> list[tuple[str, str]]:
    """All that was observed, session by session."""
    headers = {"authorization": f"Bearer {key}"}
    with httpx.Client(base_url=f"{stage.url}/v1", headers=headers) as http:
        sessions = http.get("/sessions", params={"order": "asc", "limit": 100, **where}).json()["data"]
        pages = [
            http.get(f"/sessions/{one['id']}/messages", params={"limit": 100}).json()["data"]
            for one in sessions
        ]
    return [(one["role"], one["content"]) for page in pages for one in page]


@pytest.mark.slow
def test_a_fact_of_one_invocation_is_known_in_the_next_by_langchain(local: Stage) -> None:
    local.says(ECHO)
    chat = ChatOpenAI(model=MODEL, base_url=f"{local.url}/v1", api_key="none", max_retries=0)
    chat.invoke("My sister Vera is allergic to walnuts.")
    answer = chat.invoke([SystemMessage("Be kind."), HumanMessage("What must not go into Vera's cake?")])
    assert answer.text == "you said: What must not go into Vera's cake?"
    assert told(local).startswith("Be kind.\n\nPrevious context:")
    assert "My sister Vera is allergic to walnuts." in told(local)
    chunks = list(chat.stream("And into Vera's salad?", stream_usage=True))
    assert "".join(chunk.text for chunk in chunks) == "you said: And into Vera's salad?"
    assert "walnuts" in told(local)
    (usage,) = (chunk.usage_metadata for chunk in chunks if chunk.usage_metadata)
    assert usage["output_tokens"] > 0


def test_tools_and_structured_output_by_langchain(local: Stage) -> None:
    @tool
    def weather(place: str) -> str:
        """The weather of a place."""
        return f"sunny in {place}"

    calls = [{"name": "weather", "arguments": {"place": place}} for place in ("Paris", "Rome")]
    chat = ChatOpenAI(model=MODEL, base_url=f"{local.url}/v1", api_key="none", max_retries=0)
    for streamed in (False, True):
        local.says({"text": "Let me see.", "calls": calls}, "Sunny in both.", '{"colour": "green"}')
        asked: list[Any] = [HumanMessage(f"The weather in two towns? {streamed}")]
        bound = chat.bind_tools([weather])
        answer: Any = None
        if streamed:
            for chunk in bound.stream(asked):
                answer = chunk if answer is None else answer + chunk
        else:
            answer = bound.invoke(asked)
        assert isinstance(answer, AIMessage)
        assert [call["args"] for call in answer.tool_calls] == [{"place": "Paris"}, {"place": "Rome"}]
        results = [weather.invoke(call) for call in answer.tool_calls]
        assert bound.invoke([*asked, answer, *results]).text == "Sunny in both."
        assert [one["role"] for one in local.asked["messages"]][-4:] == ["user", "assistant", "tool", "tool"]
        kettle = {"title": "Kettle", "type": "object", "properties": {"colour": {"type": "string"}}}
        assert chat.with_structured_output(kettle).invoke("The kettle?") == {"colour": "green"}
        assert local.asked["response_format"]["json_schema"]["schema"]["properties"] == kettle["properties"]


def test_an_answer_with_every_field(local: Stage) -> None:
    local.says("Green, as ever.")
    made = ask(
        local,
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Which colour is the kettle?"}]},
        user="fields",
        temperature=0.5,
        top_p=0.9,
        presence_penalty=0.1,
        max_completion_tokens=50,
        reasoning_effort="low",
        verbosity="low",
        seed=7,
        stop=["\n\n"],
        logit_bias={"1": 2},
        response_format={"type": "json_object"},
        tools=[WEATHER],
        tool_choice={"type": "function", "function": {"name": "weather"}},
        parallel_tool_calls=False,
    )
    choice = made.choices[0]
    assert (made.object, choice.finish_reason, choice.message.content) == (
        "chat.completion",
        "stop",
        "Green, as ever.",
    )
    assert made.id.startswith("chatcmpl-")
    assert made.usage.total_tokens == made.usage.prompt_tokens + made.usage.completion_tokens
    assert made.extensions["answered_by"] == MODEL
    assert made.extensions["degraded"] == ["tool_choice"]
    sent = local.asked
    assert sent["messages"][0] == {"role": "system", "content": "Be brief."}
    assert sent["messages"][-1] == {"role": "user", "content": "Which colour is the kettle?"}
    assert {name: sent[name] for name in ("temperature", "top_p", "presence_penalty", "seed", "stop")} == {
        "temperature": 0.5, "top_p": 0.9, "presence_penalty": 0.1, "seed": 7, "stop": ["\n\n"],
    }  # fmt: skip
    assert (sent["reasoning_effort"], sent["verbosity"], sent["user"]) == ("low", "low", "fields")
    assert (sent["logit_bias"], sent["response_format"]) == ({"1": 2}, {"type": "json_object"})
    assert sent["max_tokens"] == 50
    assert sent["tool_choice"] == WEATHER | {"function": {"name": "weather"}}
    assert sent["tools"][0]["function"] == WEATHER["function"]


def test_a_stream(local: Stage) -> None:
    local.says({"reasoning": "Hm.", "text": "one two three"}, "four")
    chunks = ask(local, "count", user="stream", stream=True, stream_options={"include_usage": True})
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    deltas = [chunk.choices[0].delta for chunk in chunks[:-1]]
    assert [delta.content for delta in deltas if delta.content] == ["one", " two", " three"]
    assert [thought for delta in deltas if (thought := getattr(delta, "reasoning_content", None))] == ["Hm."]
    assert [chunk.usage for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-2].extensions["memory"] == {"retrieved": [], "tokens": 0}
    assert (chunks[-1].choices, chunks[-1].usage.completion_tokens > 0) == ([], True)
    body = {"messages": [{"role": "user", "content": "and then?"}], "stream": True, "user": "stream"}
    answer = httpx.post(f"{local.url}/v1/chat/completions", json=body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in answer.text.splitlines() if line]
    assert lines[-1] == "data: [DONE]"
    assert all(line.startswith("data: {") for line in lines[:-1])
    assert not any('"usage"' in line for line in lines)


def test_tools_of_the_client_streamed(local: Stage) -> None:
    local.says(
        {"calls": [{"name": "weather", "arguments": {"place": "Oslo"}, "id": "c1"}, {"name": "weather"}]}
    )
    chunks = ask(local, "The weather?", user="tools", tools=[WEATHER], stream=True)
    calls = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
    assert (calls[0].index, calls[0].id, calls[0].function.name) == (0, "c1", "weather")
    arguments = ["".join(call.function.arguments for call in calls if call.index == i) for i in (0, 1)]
    assert arguments == ['{"place":"Oslo"}', "{}"]
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_a_user_is_remembered_in_every_conversation_and_no_other(local: Stage) -> None:
    local.says(ECHO)
    ask(local, "The spare key is under the blue pot.", user="kim")
    made = ask(local, "Where is the spare key?", user="kim")
    found = made.extensions["memory"]["retrieved"]
    assert found[0].keys() == {"id", "kind", "score", "similarity", "used"}
    assert "blue pot" in told(local)
    for fields in ({"user": "lou"}, {"user": "kim", "memory": False}):
        other = ask(local, "Where is the spare key?", **fields)
        assert "blue pot" not in told(local)
        assert "blue pot" not in str(other.extensions)
    ask(local, "Where is the spare key?")
    assert "blue pot" in told(local), "a request that names nobody uses everything"
    off = {"retrieval": False}
    ask(local, "The meter is in the cellar.", user="kim", memory=off)
    assert told(local) == ""
    ask(local, "Where is the meter?", user="kim")
    assert "cellar" in told(local)


def test_what_is_turned_off_is_not_kept(local: Stage) -> None:
    local.says(ECHO)
    ask(local, "A secret about the cellar.", user="off", memory=False)
    ask(local, "A secret about the attic.", user="off", store=False)
    assert log(local, participant="off") == []


def not_over_midnight(seconds: int = 120) -> None:
    """Wait until so many seconds of the day (UTC) are left: a message that is repeated tomorrow is another one."""
    until(lambda: time.time() % 86_400 < 86_400 - seconds, "a new day", 2.0 * seconds)


def test_a_conversation_that_is_sent_again_is_observed_once(local: Stage) -> None:
    not_over_midnight()
    call = {"text": "I look it up.", "calls": [{"name": "weather", "arguments": {}, "id": "c1"}]}
    local.says("Good day, Ada.", "You are Ada.", "You are Ada.", call, "It rains.", "Yes, take one.")
    said: list[Any] = ["I am Ada.", "Good day, Ada.", "Who am I?"]
    for count in (1, 3, 3):  # the last one is a request that is repeated
        ask(local, *said[:count], user="again")
    said += ["You are Ada.", "How is the weather?"]
    first = ask(local, *said, user="again", tools=[WEATHER]).choices[0]
    assert first.finish_reason == "tool_calls"
    said += [
        first.message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    ]
    assert ask(local, *said, user="again").choices[0].message.content == "It rains."
    ask(
        local,
        *said,
        {"role": "assistant", "content": "It rains."},
        {"role": "user", "content": "An umbrella?"},
        user="again",
    )
    assert log(local, participant="again") == [
        ("user", "I am Ada."),
        ("assistant", "Good day, Ada."),
        ("user", "Who am I?"),
        ("assistant", "You are Ada."),
        ("user", "How is the weather?"),
        ("assistant", "I look it up."),
        ("assistant", "It rains."),
        ("user", "An umbrella?"),
        ("assistant", "Yes, take one."),
    ]
    assert told(local) == "", "what the conversation shows is told again as a memory"


def test_a_session_by_its_name(local: Stage) -> None:
    local.says(ECHO)
    ask(local, "The fence will be red.", user="sam", memory={"session_id": "fence"})
    ask(local, "And the gate?", user="sam", extra_headers={"X-Memoranda-Session": "fence"})
    sessions = httpx.get(f"{local.url}/v1/sessions", params={"participant": "sam"}).json()["data"]
    assert [(one["id"], one["user_id"], one["message_count"]) for one in sessions] == [("fence", "sam", 4)]
    theirs = ask(local, "Let me in.", user="eve", memory={"session_id": "fence"})
    assert theirs.extensions["degraded"] == ["messages"]
    assert "red" not in told(local)


def test_the_key_says_who_is_remembered(keyed: Stage) -> None:
    keyed.says(ECHO)
    ask(keyed, "My bicycle is in the blue shed.", key="ada", user="ben")
    asked = "Where is the bicycle?"
    seen = {}
    for key, fields in {
        "ada": {},
        "ben": {"user": "ada"},
        "app": {"user": "ada"},
        "other": {"user": "ada"},
    }.items():
        ask(keyed, asked, key=key, **fields)
        seen[key] = "blue shed" in told(keyed)
    ask(keyed, asked, key="app", extra_headers={"X-Memoranda-User": "ada"})
    seen["header"] = "blue shed" in told(keyed)
    assert seen == {"ada": True, "ben": False, "app": True, "other": False, "header": True}
    ask(keyed, "My pin is four four.", key="app")
    ask(keyed, "My pin is four four?", key="app")
    assert told(keyed) == "", "a key without a user remembers what nobody in particular said"
    for key in ("app", "other"):
        ask(keyed, "My pin is five five.", key=key, memory={"session_id": "pins"})
        assert told(keyed) == "", "another tenant has a session of the same name"
    with pytest.raises(openai.PermissionDeniedError):
        ask(keyed, asked, key="reader")


def test_files_are_searched_and_cited(local: Stage) -> None:
    with client(local) as made:
        store = made.vector_stores.create(name="manuals")
        file = ("manual.txt", b"Fill the kettle with vinegar to clean it.")
        made.vector_stores.files.upload_and_poll(vector_store_id=store.id, file=file, poll_interval_ms=50)
    search = {"name": "file_search", "arguments": {"query": "cleaning the kettle"}}
    turns = ({"text": "One moment.", "calls": [search]}, "Use vinegar [1].")
    tools: Any = [{"type": "file_search", "vector_store_ids": [store.id]}]
    local.says(*turns, *turns)
    whole = ask(local, "How is the kettle cleaned?", user="files", tools=tools)
    chunks = ask(local, "How is the kettle cleaned?", user="files", tools=tools, stream=True)
    text = whole.choices[0].message.content
    assert text == "One moment.\n\nUse vinegar [1]."
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == text
    for told_of in (whole.extensions, chunks[-1].extensions):
        (note,) = told_of["citations"]
        assert (note["filename"], text[note["start_index"] : note["end_index"]]) == ("manual.txt", "[1]")
        assert [one["filename"] for one in told_of["passages"]] == ["manual.txt"]


@pytest.mark.parametrize(
    ("fields", "param", "says"),
    [
        ({"n": 2}, "n", "must be 1"),
        ({"functions": [{"name": "f"}]}, "functions", "use `tools`"),
        ({"modalities": ["text", "audio"]}, "modalities[1]", "text"),
        ({"max_tokens": 0}, "max_tokens", "between"),
        ({"response_format": {"type": "xml"}}, "response_format.type", "json_schema"),
        ({"tools": [{"type": "custom", "custom": {"name": "a"}}]}, "tools[0].type", "function"),
        ({"messages": []}, "messages", "must not be empty"),
        ({"messages": [{"role": "function", "content": "a"}]}, "messages[0].role", "developer"),
        (
            {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]},
            "messages[0].content[0].type",
            "image_url",
        ),
        (
            {
                "messages": [
                    {"role": "system", "content": "a"},
                    {"role": "user", "content": [{"type": "image_url", "image_url": {}}]},
                ]
            },
            "messages[1].content[0].image_url",
            "URL",
        ),
        ({"messages": [{"role": "tool", "content": "a", "tool_call_id": "c"}]}, "messages", "call_id c"),
        ({"memory": {"min_score": 2}}, "memory.min_score", "between 0 and 1"),
        ({"memory": {"user": "a"}}, "memory.user", "not a field"),
    ],
)
def test_what_is_wrong_is_named_as_the_client_wrote_it(
    local: Stage, fields: dict[str, Any], param: str, says: str
) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hello"}]} | fields
    for stream in (False, True):
        answer = httpx.post(f"{local.url}/v1/chat/completions", json=body | {"stream": stream})
        error = answer.json()["error"]
        assert (answer.status_code, error["param"], error["type"]) == (400, param, "invalid_request_error")
        assert says in error["message"]


def test_a_model_that_fails(local: Stage) -> None:
    local.says({"status": 503, "message": "loading", "repeat": True})
    with pytest.raises(openai.APIStatusError) as away:
        ask(local, "hello", user="fails")
    assert (away.value.status_code, away.value.code) == (503, "model_unavailable")
    with pytest.raises(openai.APIError, match="loading"):
        ask(local, "hello", user="fails", stream=True)
    local.says({"text": "so far", "cut": True})
    with pytest.raises(openai.APIError, match="broke off"):
        ask(local, "hello", user="fails", stream=True)
    local.says({"text": "so far and no", "finish": "length"})
    assert ask(local, "hello", user="fails").choices[0].finish_reason == "length"


def test_a_client_that_leaves_stops_the_model(local: Stage) -> None:
    local.says({"text": "one two three", "pause_at": 1})
    with client(local) as made:
        stream = made.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "count"}], stream=True, user="leaves"
        )
        texts = (chunk.choices[0].delta.content for chunk in stream)
        assert next(text for text in texts if text) == "one"
        stream.close()
    until(lambda: local.model.received[-1].outcome == "left", "the model is left")
    until(lambda: log(local, participant="leaves"), "what was said is kept")
    assert log(local, participant="leaves") == [("user", "count"), ("assistant", "one")]
