"""What the server says, held against the official OpenAPI description: every kind of response, event and list."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from support.waiting import until

MODEL = "scripted"
WEATHER = {
    "type": "function",
    "name": "weather",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
}
CUSTOM = {"type": "custom", "name": "shout", "description": "Says it loud."}
SEARCH = {"calls": [{"name": "file_search", "arguments": {"query": "green kettle"}}]}


class Caller:
    """Asks the server, and holds every answer against the description."""

    def __init__(self, stage: Any, official: Any) -> None:
        self.stage = stage
        self.official = official
        self.http = httpx.Client(base_url=f"{stage.url}/v1", timeout=30)

    def ask(self, method: str, path: str, schema: str | None, **options: Any) -> Any:
        answer = self.http.request(method, path, **options)
        assert answer.status_code == 200, answer.text
        if schema == "Response":
            self.official.check_response(answer.json())
        elif schema is not None:
            self.official.check(answer.json(), schema)
        return answer.json()

    def create(self, *turns: Any, **fields: Any) -> Any:
        """A response, checked, and the same when it is fetched again."""
        self.stage.says(*turns)
        made = self.ask("POST", "/responses", "Response", json={"model": MODEL, "input": "hello", **fields})
        if fields.get("store") is not False:
            self.ask("GET", f"/responses/{made['id']}", "Response")
            self.ask("GET", f"/responses/{made['id']}/input_items", "ResponseItemList")
        return made

    def stream(self, *turns: Any, **fields: Any) -> list[Any]:
        """The events of a response, each checked, their sequence too."""
        self.stage.says(*turns)
        body = {"model": MODEL, "input": "hello", "stream": True, **fields}
        return self.events("POST", "/responses", json=body)

    def events(self, method: str, path: str, **options: Any) -> list[Any]:
        heard = self.heard(method, path, **options)
        check_sequence(heard)
        return heard

    def heard(self, method: str, path: str, **options: Any) -> list[Any]:
        """The events of an answer, each checked."""
        told = self.http.request(method, path, **options)
        assert told.status_code == 200, told.text
        blocks = [block for block in told.text.split("\n\n") if block and block[0] != ":"]
        heard = []
        for block in blocks:
            kind, data = block.split("\n")
            event = json.loads(data.removeprefix("data: "))
            assert kind == f"event: {event['type']}"
            self.official.check_event(event)
            heard.append(event)
        return heard


def check_sequence(events: list[Any]) -> None:
    """Numbers without a gap; items and parts that begin before they grow, and end as they were told piece by piece."""
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[-1]["type"] in ("response.completed", "response.failed", "response.incomplete")
    texts: dict[tuple[str, int], str] = {}
    arguments: dict[str, str] = {}
    opened: dict[int, str] = {}
    done: dict[int, Any] = {}
    for event in events:
        kind = event["type"]
        if kind == "response.output_item.added":
            assert event["output_index"] == len(opened)
            opened[event["output_index"]] = event["item"]["id"]
        elif "item_id" in event:
            assert opened[event["output_index"]] == event["item_id"]
            assert event["output_index"] not in done
        if kind == "response.output_item.done":
            done[event["output_index"]] = event["item"]
        elif kind == "response.output_text.delta":
            where = (event["item_id"], event["content_index"])
            texts[where] = texts.get(where, "") + event["delta"]
        elif kind == "response.output_text.done":
            assert texts.pop((event["item_id"], event["content_index"])) == event["text"]
        elif kind.endswith("_arguments.delta"):
            arguments[event["item_id"]] = arguments.get(event["item_id"], "") + event["delta"]
        elif kind.endswith("_arguments.done"):
            assert arguments.pop(event["item_id"], "") == event["arguments"]
    assert not texts
    assert not arguments
    assert events[-1]["response"]["output"] == [done[i] for i in range(len(opened))]


@pytest.fixture(scope="module")
def caller(stage: Any, official: Any) -> Caller:
    return Caller(stage, official)


@pytest.fixture(scope="module")
def store(caller: Caller) -> str:
    files = {"file": ("kettles.md", b"# Kettles\n\nThe green kettle holds one litre and a half.\n")}
    file = caller.ask("POST", "/files", None, files=files, data={"purpose": "assistants"})["id"]
    made: str = caller.ask("POST", "/vector_stores", None, json={"file_ids": [file]})["id"]
    counts = until(
        lambda: caller.ask("GET", f"/vector_stores/{made}", None)["file_counts"],
        "no file in progress",
        accept=lambda counts: not counts["in_progress"],
    )
    assert counts["completed"] == 1, caller.ask("GET", f"/vector_stores/{made}/files/{file}", None)[
        "last_error"
    ]
    return made


FIELDS: list[dict[str, Any]] = [
    {},
    {"instructions": "Be brief.", "metadata": {"a": "b"}, "user": "ada", "safety_identifier": "s"},
    {"temperature": 0.2, "top_p": 0.5, "max_output_tokens": 40, "max_tool_calls": 3, "truncation": "auto"},
    {"text": {"format": {"type": "json_object"}, "verbosity": "low"}, "parallel_tool_calls": False},
    {"reasoning": {"effort": "low", "summary": "auto"}, "service_tier": "auto", "prompt_cache_key": "k"},
    {"tools": [WEATHER, CUSTOM], "tool_choice": "none", "store": False},
    {"tools": [WEATHER], "tool_choice": {"type": "function", "name": "weather"}},
    {
        "text": {
            "format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True},
        }
    },
    {"tools": [{"type": "web_search"}], "include": ["message.output_text.logprobs"], "top_logprobs": 2},
]


@pytest.mark.parametrize("fields", FIELDS, ids=lambda fields: ",".join(fields) or "plain")
def test_what_was_asked_comes_back(caller: Caller, fields: dict[str, Any]) -> None:
    made = caller.create('{"kettle": "green"}', **fields)
    for name, value in fields.items():
        if name == "tools":
            assert [tool | told for tool, told in zip(made[name], value, strict=True)] == made[name]
        elif name not in ("include", "text", "reasoning", "service_tier"):
            assert made[name] == value, name
    heard = caller.stream('{"kettle": "green"}', **fields)
    assert heard[-1]["type"] == "response.completed"


MODEL_TURNS: dict[str, Any] = {
    "reasoning": {"reasoning": "Let me think.", "text": "Green."},
    "a refusal": {"refusal": "I would rather not."},
    "a length": {"text": "one two", "finish": "length"},
    "a filter": {"text": "one", "finish": "content_filter"},
    "a break": {"text": "half of", "cut": True},
    "a broken thought": {"reasoning": "Let me", "cut": True},
    "nonsense": {"text": "half of", "garbage": "}{"},
    "a call": {"text": "Wait.", "calls": [{"name": "weather", "arguments": {"place": "Oslo"}}]},
    "two calls": {"calls": [{"name": "weather", "arguments": {"place": p}} for p in ("Oslo", "Rome")]},
    "no arguments": {"calls": [{"name": "weather", "arguments": ""}]},
    "a custom call": {"calls": [{"name": "shout", "arguments": {"input": "hello"}}]},
    "no usage": {"text": "Green.", "usage": False},
    "nothing": {"text": ""},
}


@pytest.mark.parametrize("name", MODEL_TURNS)
def test_whatever_the_model_does(caller: Caller, name: str) -> None:
    heard = caller.stream(MODEL_TURNS[name], tools=[WEATHER, CUSTOM])
    response = heard[-1]["response"]
    caller.ask("GET", f"/responses/{response['id']}", "Response")
    if response["status"] in ("completed", "incomplete"):
        again = caller.create(MODEL_TURNS[name], tools=[WEATHER, CUSTOM])
        assert [item["type"] for item in again["output"]] == [item["type"] for item in response["output"]]
        assert again["status"] == response["status"]


def test_a_model_that_is_away(caller: Caller) -> None:
    heard = caller.stream(*[{"status": 500, "message": "out of memory"}] * 5)
    assert heard[-1]["type"] == "response.failed"
    assert heard[-1]["response"]["error"]["code"] == "server_error"


def test_a_search(caller: Caller, store: str) -> None:
    tool = {
        "type": "file_search",
        "vector_store_ids": [store],
        "max_num_results": 3,
        "ranking_options": {"ranker": "auto", "score_threshold": 0.0},
    }
    said = {"text": "It holds a litre and a half [1].", "after": "green kettle"}
    for include in ([], ["file_search_call.results"]):
        heard = caller.stream(SEARCH, said, tools=[tool], include=include)
        assert any(event["type"] == "response.output_text.annotation.added" for event in heard)
        search = heard[-1]["response"]["output"][0]
        assert (search["results"] is not None) == bool(include)
        made = caller.create(SEARCH, said, tools=[tool], include=include)
        assert made["output"][1]["content"][0]["annotations"][0]["type"] == "file_citation"
        path = f"/responses/{made['id']}"
        caller.ask("GET", path, "Response", params={"include[]": "file_search_call.results"})


def test_memory(caller: Caller) -> None:
    turn = {"calls": [{"name": "memory_write", "arguments": {"content": "Ada likes green kettles."}}]}
    heard = caller.stream(turn, "Noted.", tools=[{"type": "memory_write"}, {"type": "memory_search"}])
    assert heard[-1]["response"]["output"][0]["type"] == "mcp_call"


INPUTS: dict[str, list[dict[str, Any]]] = {
    "texts": [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": "hello"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "again"}]},
    ],
    "an image": [
        {
            "role": "user",
            "content": [
                {"type": "input_image", "image_url": "https://a.example/b.png", "detail": "low"},
                {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
            ],
        }
    ],
    "a file": [
        {
            "role": "user",
            "content": [
                {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,aGVsbG8="}
            ],
        }
    ],
    "calls": [
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "rain"},
        {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "sun"}]},
        {"type": "custom_tool_call", "call_id": "c3", "name": "shout", "input": "a"},
        {"type": "custom_tool_call_output", "call_id": "c3", "output": "A"},
        {"role": "user", "content": "so?"},
    ],
    "reasoning": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc"},
        {"role": "user", "content": "so?"},
    ],
}


@pytest.mark.parametrize("name", INPUTS)
def test_what_was_said_is_listed(caller: Caller, name: str) -> None:
    made = caller.create("fine", input=INPUTS[name], tools=[WEATHER, CUSTOM])
    path = f"/responses/{made['id']}/input_items"
    for params in ({"order": "asc"}, {"limit": "1"}, {"limit": "1", "order": "asc"}):
        caller.ask("GET", path, "ResponseItemList", params=params)


def test_the_background(caller: Caller) -> None:
    heard = caller.stream("slowly", background=True)
    assert [event["type"] for event in heard[:3]] == [
        "response.created", "response.queued", "response.in_progress",
    ]  # fmt: skip
    path = f"/responses/{heard[0]['response']['id']}"
    assert caller.events("GET", path, params={"stream": "true"}) == heard
    assert caller.heard("GET", path, params={"stream": "true", "starting_after": "3"}) == heard[4:]
    made = caller.create("fine")["id"]
    for id_, last in ((heard[0]["response"]["id"], heard[-1]), (made, {"sequence_number": 9_999})):
        after = str(last["sequence_number"])
        params = {"stream": "true", "starting_after": after}
        assert caller.heard("GET", f"/responses/{id_}", params=params) == []
    made = caller.create({"text": "this", "hang": True}, background=True)
    ended = caller.ask("POST", f"/responses/{made['id']}/cancel", "Response")
    assert ended["status"] == "cancelled"
    assert caller.events("GET", f"/responses/{made['id']}", params={"stream": "true"})[-1]["response"]


def test_a_conversation(caller: Caller, store: str) -> None:
    items = [{"type": "message", "role": "user", "content": "I am Ada."}]
    talk = caller.ask("POST", "/conversations", "ConversationResource", json={"items": items})
    path = f"/conversations/{talk['id']}"
    caller.create("Hello Ada.", conversation=talk["id"])
    tool = {"type": "file_search", "vector_store_ids": [store]}
    caller.create(SEARCH, "It is green [1].", conversation={"id": talk["id"]}, tools=[tool])
    caller.create(MODEL_TURNS["reasoning"], conversation=talk["id"])
    held = caller.ask("GET", f"{path}/items", "ConversationItemList", params={"limit": "100"})
    assert len(held["data"]) == 9
    for item in held["data"]:
        caller.ask("GET", f"{path}/items/{item['id']}", "ConversationItem")
    more = {"items": [{"role": "user", "content": "One more."}]}
    added = caller.ask("POST", f"{path}/items", "ConversationItemList", json=more)
    caller.ask("DELETE", f"{path}/items/{added['data'][0]['id']}", "ConversationResource")
    caller.ask("POST", path, "ConversationResource", json={"metadata": {"a": "b"}})
    caller.ask("DELETE", path, "DeletedConversationResource")


def test_what_is_beside(caller: Caller) -> None:
    body = {"model": MODEL, "input": "I am Ada."}
    caller.ask("POST", "/responses/input_tokens", "TokenCountsResource", json=body)
    caller.stage.says("Ada said who she is.")
    short = caller.ask("POST", "/responses/compact", "CompactResource", json=body)
    caller.create("Hello Ada.", input=[*short["output"], {"role": "user", "content": "Who am I?"}])
    caller.ask("GET", "/models", "ListModelsResponse")
    caller.ask("GET", f"/models/{MODEL}", "Model")


def test_errors_have_their_shape(caller: Caller) -> None:
    for path, body in (
        ("/responses", {"input": "a", "temperature": 9}),
        ("/responses", {"input": "a", "previous_response_id": "resp_none"}),
        ("/responses/compact", {}),
    ):
        answer = caller.http.post(path, json={"model": MODEL, **body})
        assert answer.status_code == 400
        caller.official.check(answer.json()["error"], "Error")
