"""Items as messages: in an order that every server of chat completions takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.errors import InvalidInput
from memoranda.providers.chat.base import Message
from memoranda.responses.items import check_calls, checked
from memoranda.responses.messages import to_messages
from memoranda.responses.values import TEXTS, Item, compaction_item

TEXT = {"type": "text", "text": "some text"}
IDS = st.sampled_from("abc")
ITEMS = st.one_of(
    st.builds(
        lambda role, text: {"role": role, "content": text},
        st.sampled_from(["user", "assistant", "system", "developer"]),
        st.sampled_from(["", "hello"]),
    ),
    st.builds(lambda i: {"type": "function_call", "call_id": i, "name": f"f{i}", "arguments": "{}"}, IDS),
    st.builds(
        lambda i: {"type": "function_call", "call_id": i, "name": "g", "arguments": "{", "status": "incomplete"}, IDS
    ),
    st.builds(lambda i: {"type": "custom_tool_call", "call_id": i, "name": f"f{i}", "input": "raw"}, IDS),
    st.builds(lambda i: {"type": "function_call_output", "call_id": i, "output": f"of {i}"}, IDS),
    st.builds(lambda i: {"type": "custom_tool_call_output", "call_id": i, "output": [TEXT]}, IDS),
    st.builds(lambda i: {"type": "file_search_call", "id": f"fs_{i}", "queries": [i]}, IDS),
    st.builds(lambda i: {"type": "mcp_call", "id": f"mcp_{i}", "name": "m", "server_label": "s", "output": i}, IDS),
    st.just({"type": "reasoning", "summary": []}),
    st.just({"type": "web_search_call"}),
    st.just(compaction_item("before")),
)  # fmt: skip


def check_order(messages: list[Message]) -> None:
    """What chat completions demand: after a message with calls come its answers, all of them and nothing else; an
    answer is nowhere else."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting
            waiting.remove(message["tool_call_id"])
            assert isinstance(message["content"], str)
            continue
        assert waiting == []
        for call in message.get("tool_calls", ()):
            assert message["role"] == "assistant"
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            waiting.append(call["id"])
        assert message["content"] is not None or waiting
    assert waiting == []


@settings(max_examples=100)
@given(st.lists(ITEMS, max_size=10))
def test_any_order_that_is_taken_is_taken_by_models(raw: list[Item]) -> None:
    items = checked(raw)
    try:
        check_calls(items)
    except InvalidInput:
        return
    check_order(to_messages(items))


@given(st.lists(ITEMS, max_size=6))
def test_any_chain_that_is_answered_is_taken(raw: list[Item]) -> None:
    """Every call gets its output somewhere behind all others."""
    asked = [one for one in raw if not one.get("type", "").endswith("_output")]
    answers = [
        {"type": "function_call_output", "call_id": one["call_id"], "output": f"answer {n}"}
        for n, one in enumerate(asked)
        if one.get("type") in ("function_call", "custom_tool_call")
    ]
    items = checked([*asked, *answers])
    check_calls(items)
    check_order(to_messages(items))


def test_calls_of_one_turn_are_one_message() -> None:
    items = checked(
        [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "I look"},
            {"type": "function_call", "call_id": "x", "name": "find", "arguments": '{"q": 1}'},
            {"type": "custom_tool_call", "call_id": "y", "name": "patch", "input": "raw"},
            {
                "type": "mcp_call",
                "id": "mcp_1",
                "name": "memory_search",
                "server_label": "memoranda",
                "output": "none",
            },
            {"type": "function_call_output", "call_id": "y", "output": "patched"},
            {
                "type": "function_call_output",
                "call_id": "x",
                "output": [{"type": "input_text", "text": "found"}],
            },
            {"role": "assistant", "content": "done"},
        ]
    )
    messages = to_messages(items, {("memoranda", "memory_search"): "memory_search_2"})
    assert [message["role"] for message in messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "tool",
        "assistant",
    ]
    calls = [
        (one["id"], one["function"]["name"], one["function"]["arguments"])
        for one in messages[1]["tool_calls"]
    ]
    assert calls == [
        ("x", "find", '{"q": 1}'),
        ("y", "patch", '{"input": "raw"}'),
        ("call_mcp_1", "memory_search_2", "{}"),
    ]
    assert messages[1]["content"] == "I look"
    answers = {message["tool_call_id"]: message["content"] for message in messages[2:5]}
    assert answers == {"x": "found", "y": "patched", "call_mcp_1": "none"}


def test_searches_after_each_other_are_turns_of_their_own() -> None:
    items: list[Item] = [
        {
            "type": "file_search_call",
            "id": f"fs_{n}",
            "queries": ["a", "b"],
            "_call_id": f"c{n}",
            "_told": f"told {n}",
        }
        for n in range(2)
    ]
    assert to_messages(items) == [
        message
        for n in range(2)
        for message in (
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": f"c{n}",
                        "type": "function",
                        "function": {"name": "file_search", "arguments": '{"query": "a b"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"told {n}"},
        )
    ]


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ({"type": "mcp_call", "output": "42"}, "42"),
        ({"type": "mcp_call", "output": None}, "No output."),
        ({"type": "mcp_call", "error": "broke"}, "Error: broke"),
        ({"type": "mcp_call", "error": {"message": "broke"}}, "Error: broke"),
        (
            {
                "type": "mcp_call",
                "error": {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "broke"}]},
            },
            "Error: broke",
        ),
        ({"type": "file_search_call"}, "No results."),
        ({"type": "file_search_call", "results": [{"filename": "a.txt", "text": "boss"}]}, "a.txt: boss"),
    ],
)
def test_what_a_client_sends_back_of_a_call_is_told(item: Item, told: str) -> None:
    raw = {"id": "x", "name": "n", "server_label": "s", "arguments": "not JSON", **item}
    call, answer = to_messages(checked([raw]))
    assert call["tool_calls"][0]["function"]["arguments"] in ('{"input": "not JSON"}', '{"query": ""}')
    assert answer["content"] == told


def test_contents() -> None:
    items = checked(
        [
            {"role": "developer", "content": "be brief"},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "what is"},
                    {"type": "input_file", "file_id": "file_1", "filename": "a.pdf"},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "and"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
                    {"type": "input_image", "file_id": "file_2"},
                    {"type": "input_image", "file_id": "gone"},
                ],
            },
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            {"role": "assistant", "content": ""},
        ]
    )
    items[1][TEXTS] = {"1": "PDF text"}
    messages = to_messages(items, images={"file_2": "data:image/png;base64,BB=="})

    def image(url: str, detail: str) -> dict[str, Any]:
        return {"type": "image_url", "image_url": {"url": url, "detail": detail}}

    assert messages == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "what is\n\nFile a.pdf:\nPDF text"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "and"},
                image("data:image/png;base64,AA==", "low"),
                image("data:image/png;base64,BB==", "auto"),
                {"type": "text", "text": "[an image that is not there any more]"},
            ],
        },
        {"role": "assistant", "content": "no"},
    ]
