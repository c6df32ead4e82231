"""Tokens of items, messages and tools: texts exactly, the rest by stated constants."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.responses import messages
from memoranda.responses.items import checked
from memoranda.responses.messages import (
    encoding_for,
    mark,
    to_messages,
    tokens_of_item,
    tokens_of_items,
    tokens_of_messages,
)
from memoranda.text.tokens import count

TEXT = "The kettle is green, 3.5 € each. 水は青い。"


def said(role: str, text: str = TEXT) -> dict[str, Any]:
    return {"role": role, "content": text}


def called(name: str = "look", call_id: str = "call_1") -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": '{"a": 1}'}


def answered(call_id: str = "call_1") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": TEXT}


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
@pytest.mark.parametrize("role", ["user", "assistant", "system", "developer"])
def test_a_message_is_its_text_and_what_is_around_it(role: str, encoding: str) -> None:
    (item,) = checked([said(role)])
    assert tokens_of_item(item, encoding) == messages.MESSAGE_TOKENS + count(TEXT, encoding)


def test_the_encodings_differ_here() -> None:
    assert count(TEXT, "o200k_base") != count(TEXT, "cl100k_base")


@pytest.mark.parametrize(
    ("model", "encoding", "known"),
    [
        ("gpt-4o-mini", "o200k_base", True),
        ("gpt-4.1", "o200k_base", True),
        ("gpt-5.2-codex", "o200k_base", True),
        ("openai/gpt-oss-20b", "o200k_base", True),
        ("o4-mini", "o200k_base", True),
        ("gpt-4", "cl100k_base", True),
        ("gpt-4-turbo", "cl100k_base", True),
        ("gpt-3.5-turbo", "cl100k_base", True),
        ("llama3.1:8b", "o200k_base", False),
        ("", "o200k_base", False),
        (None, "o200k_base", False),
    ],
)
def test_the_encoding_of_a_model(model: str | None, encoding: str, known: bool) -> None:
    assert encoding_for(model) == (encoding, known)


def test_images_count_by_their_detail() -> None:
    url = "data:image/png;base64,AAAA"
    parts = [
        {"type": "input_image", "image_url": url},
        {"type": "input_image", "image_url": url, "detail": "low"},
        {"type": "input_text", "text": TEXT},
    ]
    (item,) = checked([{"role": "user", "content": parts}])
    wanted = messages.MESSAGE_TOKENS + messages.IMAGE_TOKENS + messages.SMALL_IMAGE_TOKENS + count(TEXT)
    assert tokens_of_item(item) == wanted


def test_a_call_is_its_name_its_arguments_and_what_is_around_them() -> None:
    call, output = checked([called(), answered()])
    around = messages.MESSAGE_TOKENS + messages.CALL_TOKENS
    assert tokens_of_item(call) == around + count("look") + count('{"a": 1}')
    assert tokens_of_item(output) == messages.MESSAGE_TOKENS + count(TEXT)


def test_what_no_model_is_told_of_counts_nothing() -> None:
    silent = checked(
        [
            {"type": "reasoning"},
            {"type": "web_search_call"},
            {"type": "mcp_list_tools", "server_label": "s", "tools": []},
        ]
    )
    assert tokens_of_items(silent) == 0


def test_a_mark_is_believed_for_its_encoding_alone() -> None:
    (item,) = checked([said("user")])
    exact = {name: tokens_of_item(item, name) for name in ("o200k_base", "cl100k_base")}
    mark([item])
    assert item["_tokens"] == exact["o200k_base"]
    item["content"][0]["text"] = "other"
    assert tokens_of_item(item) == exact["o200k_base"]
    assert tokens_of_item(item, "cl100k_base") == messages.MESSAGE_TOKENS + count("other", "cl100k_base")


def test_no_client_can_send_a_mark() -> None:
    (item,) = checked([{**said("user"), "_tokens": 1}])
    assert "_tokens" not in item


def test_a_tool_is_its_json() -> None:
    tool = {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {}}}
    text = '{"name":"look","description":"Looks.","parameters":{"type":"object","properties":{}}}'
    wanted = messages.CALL_TOKENS + count(text)
    assert messages.tokens_of_tools([{"type": "function", "function": tool}]) == wanted


items = st.lists(
    st.one_of(
        st.builds(said, st.sampled_from(["user", "assistant", "developer"]), st.text(max_size=20)),
        st.builds(called, st.sampled_from(["a", "b"]), st.sampled_from(["c1", "c2"])),
        st.builds(answered, st.sampled_from(["c1", "c2"])),
    ),
    max_size=8,
)


@given(items)
def test_items_never_count_less_than_the_prompt_they_become(raw: list[dict[str, Any]]) -> None:
    held = checked(raw)
    prompt = tokens_of_messages(to_messages(held)) - messages.PRIMING_TOKENS
    assert prompt <= tokens_of_items(held)
    merged = len(held) - len(to_messages(held))
    assert tokens_of_items(held) - prompt <= messages.MESSAGE_TOKENS * merged
