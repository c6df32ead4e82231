"""Tools of the client in the shapes that clients send: in namespaces, nested as in chat completions; fields for the
model's server; a request by its fields alone."""

from __future__ import annotations

from typing import Any

import pytest

from memoranda.errors import InvalidInput
from memoranda.providers.chat.request import refused_parameter
from memoranda.responses.declared import in_namespace
from memoranda.responses.offers import offers

pytestmark = pytest.mark.rows_in("sqlite")
FIND = {"type": "function", "name": "find", "parameters": {"type": "object", "properties": {}}}
SPACE = {
    "type": "namespace",
    "name": "crm",
    "description": "customers",
    "tools": [FIND, {"type": "custom", "name": "note"}],
}


def test_functions_of_a_namespace_are_offered_and_called_with_it(desk: Any) -> None:
    desk.script(
        {"offered": "crm__find", "calls": [{"name": "crm__find", "arguments": {"q": 1}, "id": "call_1"}]},
    )
    first = desk.create("Find Ada", tools=[FIND, SPACE])
    (call,) = [item for item in first.output if item["type"] == "function_call"]
    assert (call["name"], call["namespace"], call["arguments"]) == ("find", "crm", '{"q":1}')
    assert first.tools[1] == SPACE
    offered = [one["function"]["name"] for one in desk.model.asked[0].tools]
    assert offered == ["find", "crm__find", "crm__note"]
    desk.script({"text": "There she is."})
    answer = {"type": "function_call_output", "call_id": call["call_id"], "output": "Ada"}
    second = desk.create([answer], previous_response_id=first.id, tools=[SPACE])
    assert second.output[-1]["content"][0]["text"] == "There she is."
    (said,) = [one for one in desk.model.asked[0].messages if one.get("tool_calls")]
    assert said["tool_calls"][0]["function"]["name"] == "crm__find"


def test_a_choice_names_a_function_in_its_namespace(desk: Any) -> None:
    desk.script({"calls": [{"name": "crm__find", "arguments": {}}]})
    choice = {"type": "function", "name": "find", "namespace": "crm"}
    desk.create("Find Ada", tools=[FIND, SPACE], tool_choice=choice)
    assert desk.model.asked[0].tool_choice == {"type": "function", "function": {"name": "crm__find"}}


@pytest.mark.parametrize(
    ("tool", "says"),
    [
        ({"type": "namespace", "name": "a b", "tools": []}, r"tools\[0\]\.name: must be letters"),
        ({"type": "namespace", "name": "a"}, r"tools\[0\]\.tools: must be a list"),
        ({"type": "namespace", "name": "a", "tools": [{"type": "mcp"}]}, r"tools\[0\]\.tools\[0\]\.type"),
        ({"type": "namespace", "name": "a", "tools": [FIND, FIND]}, r"tools\[0\]\.tools\[1\]\.name.*twice"),
    ],
)
def test_a_namespace_that_is_none_is_named(tool: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        offers([tool], [])


def test_long_names_stay_apart_and_short() -> None:
    names = {in_namespace("s" * 60, f"{'f' * 60}{n}") for n in range(9)}
    assert len(names) == 9
    assert max(map(len, names)) <= 64


def test_functions_nested_as_in_chat_completions_are_taken(desk: Any) -> None:
    nested = {"type": "function", "function": {key: FIND[key] for key in ("name", "parameters")}}
    desk.script({"offered": "find", "calls": [{"name": "find", "arguments": {}}]})
    made = desk.create(
        "Find Ada", tools=[nested], tool_choice={"type": "function", "function": {"name": "find"}}
    )
    assert [item["name"] for item in made.output] == ["find"]
    assert (made.tools[0]["name"], "function" in made.tools[0]) == ("find", False)
    assert desk.model.asked[0].tool_choice == {"type": "function", "function": {"name": "find"}}


def test_what_is_the_model_servers_business_is_forwarded(desk: Any) -> None:
    fields = {"service_tier": "flex", "prompt_cache_key": "k", "safety_identifier": "s", "user": "u"}
    desk.script({"text": "Hello."}, {"text": "Hello."})
    desk.create("hello", **fields)
    desk.create("hello")
    assert [one.extra for one in desk.model.asked] == [fields, {}]
    body = {"messages": [], **fields}
    assert (
        refused_parameter(body, "Unrecognized request argument: prompt_cache_key", "", ())
        == "prompt_cache_key"
    )
    assert refused_parameter(body, "unknown parameter", "user", ()) == "user"


def test_a_request_by_its_fields_alone(desk: Any) -> None:
    desk.script({"text": "Hello."})
    made = desk.run(desk.responses.create(input="hello"))
    assert made.output[-1]["content"][0]["text"] == "Hello."
    with pytest.raises(TypeError, match="once"):
        desk.run(desk.responses.create("hello", input="hello"))
