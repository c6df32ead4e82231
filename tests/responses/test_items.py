"""Items as clients send them: whatever comes, it is refused by name or complete afterwards."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.errors import InvalidInput
from memoranda.responses.items import NEEDED, PREFIXES, SILENT, check_calls, checked
from memoranda.responses.messages import to_messages, tokens_of_items
from memoranda.responses.values import Item, compaction_item, last_question, output_text, text_of

WORDS = st.sampled_from(
    ["", "x", "find", "call_1", "{}", "{bad", "\ud800", "Grüße 語", "data:,", "completed"]
)
LEAVES = st.none() | st.booleans() | st.integers(-5, 2**70) | st.floats() | WORDS
PART_TYPES = st.sampled_from(
    ["input_text", "output_text", "text", "refusal", "input_image", "input_file", "summary_text", "else"]
)
KINDS = st.sampled_from([*PREFIXES, *sorted(SILENT), "else"])
FIELDS = st.sampled_from(
    [
        "id", "role", "content", "status", "call_id", "name", "arguments", "input", "output", "queries", "results",
        "error", "server_label", "tools", "summary", "encrypted_content", "approval_request_id", "approve", "text",
        "refusal", "annotations", "logprobs", "image_url", "file_id", "file_data", "file_url", "filename", "detail",
        "_told", "_call_id", "other",
    ]
)  # fmt: skip
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=8,
)
PARTS = st.fixed_dictionaries({"type": PART_TYPES | LEAVES}) | st.builds(
    lambda kind, rest: {**rest, "type": kind}, PART_TYPES, st.dictionaries(FIELDS, ANYTHING, max_size=4)
)
NEAR = st.builds(
    lambda kind, needed, rest, content: {
        **{key: "call_1" for key in NEEDED.get(kind, ()) if needed},
        **({"role": "user", "content": content} if kind == "message" and needed else {}),
        **({"name": "find", "server_label": "s", "tools": []} if kind.startswith("mcp") and needed else {}),
        **({"output": "done"} if kind.endswith("output") and needed else {}),
        **rest,
        "type": kind,
    },
    KINDS,
    st.booleans(),
    st.dictionaries(FIELDS, ANYTHING | st.lists(PARTS, max_size=3), max_size=3),
    WORDS | st.lists(PARTS, max_size=3),
)


@settings(max_examples=75)
@given(st.lists(NEAR | ANYTHING, max_size=4) | ANYTHING)
def test_whatever_comes_is_refused_or_complete(raw: Any) -> None:
    try:
        items = checked(raw)
    except InvalidInput as exc:
        assert exc.field.startswith("input")  # noqa: PT017 - either outcome is right
        return
    msgspec.json.encode(items)
    for item in items:
        assert item["type"] in PREFIXES or item["type"] in SILENT
        assert isinstance(item["id"], str)
        assert not any(key.startswith("_") for key in item)
        for key in NEEDED.get(item["type"], ()):
            assert isinstance(item[key], str)
        if item["type"] == "message":
            assert all(isinstance(part, dict) for part in item["content"])
        assert isinstance(text_of(item) if item["type"] == "message" else output_text(item), str)
    last_question(items)
    for message in to_messages(items):
        content = message["content"]
        assert content is None or isinstance(content, str | list)
    assert tokens_of_items(items) >= 0


def test_a_text_is_what_the_user_says() -> None:
    (item,) = checked("hello")
    assert item == {
        "id": item["id"],
        "type": "message",
        "status": "completed",
        "role": "user",
        "content": [{"type": "input_text", "text": "hello"}],
    }
    assert item["id"].startswith("msg_")


def test_what_is_left_out_is_filled_in() -> None:
    items = checked(
        [
            {"role": "assistant", "content": ["hi", {"type": "output_text", "text": "there"}]},
            {
                "role": "user",
                "content": [{"type": "input_image", "image_url": "http://x/y.png", "file_id": None}],
            },
            {"type": "function_call_output", "call_id": "c", "output": {"found": 3, "ü": None}},
            {"type": "file_search_call", "id": "fs_1", "queries": None},
            {"type": "mcp_call", "name": "n", "server_label": "s", "_told": "private"},
            {"type": "reasoning", "summary": None},
        ]
    )
    said, image, output, search, call, reasoning = items
    assert [part["type"] for part in said["content"]] == ["output_text", "output_text"]
    assert [(part["annotations"], part["logprobs"]) for part in said["content"]] == [([], []), ([], [])]
    assert image["content"][0] == {"type": "input_image", "image_url": "http://x/y.png", "detail": "auto"}
    assert output["output"] == '{"found": 3, "ü": null}'
    assert (search["queries"], search["results"], search["status"]) == ([], None, "completed")
    assert (call["arguments"], call["output"], "_told" in call) == ("{}", None, False)
    assert reasoning["summary"] == []


def said(part: Item) -> Item:
    return {"role": "user", "content": [part]}


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (5, "input"),
        ([5], "input[0]"),
        ([{"type": ["message"]}], "input[0].type"),
        ([{"type": "telepathy"}], "input[0].type"),
        ([{"role": "king", "content": ""}], "input[0].role"),
        ([{"role": "user", "content": 5}], "input[0].content"),
        ([{"role": "user", "content": [{"type": "input_text"}]}], "input[0].content[0].text"),
        ([{"role": "user", "content": [{"type": "smell"}]}], "input[0].content[0].type"),
        ([{"role": "user", "content": [{"type": "input_image"}]}], "input[0].content[0].image_url"),
        ([{"role": "user", "content": [{"type": "input_file"}]}], "input[0].content[0].file_id"),
        ([{"role": "user", "content": [{"type": "input_file", "file_url": "u"}]}], "input[0].content[0].file_url"),
        ([said({"type": "input_file", "file_id": "f", "filename": 5})], "input[0].content[0].filename"),
        ([said({"type": "output_text", "text": "", "annotations": 5})], "input[0].content[0].annotations"),
        ([{"type": "function_call", "call_id": "c", "name": "n"}], "input[0].arguments"),
        ([{"type": "function_call_output", "call_id": "c"}], "input[0].output"),
        ([{"type": "file_search_call", "queries": "boss"}], "input[0].queries"),
        ([{"type": "file_search_call", "results": [5]}], "input[0].results[0]"),
        ([{"type": "mcp_call", "server_label": "s"}], "input[0].name"),
        ([{"type": "mcp_call", "server_label": "s", "name": "n", "arguments": {}}], "input[0].arguments"),
        ([{"type": "mcp_list_tools", "server_label": "s", "tools": [{}]}], "input[0].tools[0].name"),
        ([{"type": "mcp_approval_response", "approval_request_id": "a"}], "input[0].approve"),
        ([{"type": "compaction", "encrypted_content": "no"}], "input[0].encrypted_content"),
        ([{"role": "user", "content": ["a"] * 10_001}], "input[0].content"),
        ([{"role": "user", "content": "", "id": ""}], "input[0].id"),
        ([{"role": "user", "content": "half \ud83d"}], "input[0]"),
        ([{"role": "user", "content": "", "note": object()}], "input[0]"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(raw: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked(raw)
    assert refused.value.field == field


def call(id_: str, **more: Any) -> Item:
    return {
        "type": "function_call",
        "id": f"fc_{id_}",
        "call_id": id_,
        "name": "find",
        "arguments": "{}",
        **more,
    }


def output(id_: str) -> Item:
    return {"type": "function_call_output", "id": f"fco_{id_}", "call_id": id_, "output": "found"}


def test_calls_and_outputs_go_together() -> None:
    check_calls([call("a"), call("b"), output("b"), output("a")])
    check_calls([call("a"), output("a"), call("a"), output("a")])
    check_calls([call("a", status="incomplete")])
    with pytest.raises(InvalidInput, match="No tool output found for function call b"):
        check_calls([call("a"), call("b"), output("a")])
    with pytest.raises(InvalidInput, match="No tool output found for function call a"):
        check_calls([call("a"), output("a"), call("a")])
    with pytest.raises(InvalidInput, match="No tool call found for function call output with call_id c"):
        check_calls([call("a"), output("a"), output("c")])
    with pytest.raises(InvalidInput, match="No tool call found"):
        check_calls([call("a"), output("a"), output("a")])


def test_a_compaction_item_is_taken_back() -> None:
    item = compaction_item("what was said")
    assert checked([item]) == [item]
