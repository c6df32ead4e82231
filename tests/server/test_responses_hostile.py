"""Requests for responses and chat completions that are nearly right: each is answered or refused by name, none is a
mistake of ours."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

JUNK: list[Any] = [
    None, True, False, 0, -1, 1.5, 10**30, "", "x", "a\u0000b", " ", [], [[]], {}, {"type": 1}, {"type": "x"}, [None],
    ["x"], [{}], {"a": {"b": [1]}}, "data:text/plain;base64,!!!", "../../etc/passwd", "é" * 300,
]  # fmt: skip
FUNCTION = {
    "type": "function",
    "name": "f",
    "description": "d",
    "parameters": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
    "strict": True,
}
REQUESTS: list[dict[str, Any]] = [
    {
        "input": [
            {"role": "developer", "content": "Be kind."},
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "what?"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"},
                    {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,aGVsbG8="},
                ],
            },
            {
                "id": "msg_1",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [
                    {
                        "type": "output_text",
                        "text": "It is [1].",
                        "annotations": [
                            {"type": "file_citation", "file_id": "file-1", "filename": "a", "index": 6}
                        ],
                        "logprobs": [],
                    },
                    {"type": "refusal", "refusal": "no"},
                ],
            },
            {"role": "user", "content": "and then?"},
        ],
        "instructions": "Be brief.",
        "text": {
            "format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True},
            "verbosity": "low",
        },
        "reasoning": {"effort": "low", "summary": "auto"},
        "metadata": {"a": "b"},
        "include": ["file_search_call.results"],
        "stream_options": {"include_obfuscation": False},
        "memory": {"retrieval": True, "max_results": 3, "min_score": 0.5, "kinds": ["fact"], "user_id": "ada"},
        "temperature": 0.5,
        "top_logprobs": 3,
        "truncation": "auto",
        "store": False,
    },
    {
        "input": [
            {"role": "user", "content": "call it"},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{\"a\": 1}"},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "rain"}]},
            {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "a"},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": "A"},
            {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["q"], "results": None},
            {
                "type": "mcp_call",
                "id": "mcp_1",
                "server_label": "memoranda",
                "name": "memory_search",
                "arguments": "{}",
                "output": "none",
                "error": None,
            },
            {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "t", "arguments": "{}"},
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": False},
            {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
            {"role": "user", "content": "so?"},
        ],
        "tools": [
            FUNCTION,
            {"type": "custom", "name": "g", "format": {"type": "text"}},
            {"type": "memory_search"},
            {"type": "memory_write"},
            {"type": "web_search", "search_context_size": "low"},
            {"type": "namespace", "name": "n", "tools": [FUNCTION]},
        ],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
        "parallel_tool_calls": True,
        "max_tool_calls": 3,
        "store": False,
    },
    {
        "input": "what?",
        "tools": [
            {
                "type": "file_search",
                "vector_store_ids": ["STORE"],
                "max_num_results": 3,
                "filters": {"type": "and", "filters": [{"type": "eq", "key": "mark", "value": "x"}]},
                "ranking_options": {
                    "ranker": "auto",
                    "score_threshold": 0.1,
                    "hybrid_search": {"embedding_weight": 1, "text_weight": 1},
                },
            }
        ],
        "tool_choice": {"type": "file_search"},
        "conversation": None,
        "previous_response_id": None,
        "user": "ada",
        "service_tier": "auto",
        "prompt_cache_key": "k",
        "stream": True,
        "store": False,
    },
]  # fmt: skip
CHAT: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": [{"type": "text", "text": "Be kind."}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "what?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
                {
                    "type": "file",
                    "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,aGVsbG8="},
                },
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "hm"}, {"type": "refusal", "refusal": "no"}],
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "rain"}]},
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "so?"},
    ],
    "tools": [
        {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}},
        {"type": "memory_search"},
        {"type": "file_search", "vector_store_ids": ["STORE"]},
    ],
    "tool_choice": {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
    },
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
    "memory": {"max_results": 3, "min_score": 0.5, "kinds": ["fact"], "session_id": "s"},
    "logprobs": True,
    "top_logprobs": 2,
    "max_tokens": 10,
    "stop": ["x"],
    "logit_bias": {"1": 2},
    "n": 1,
    "user": "ada",
    "verbosity": "low",
}
PATHS = ["/v1/responses"] * len(REQUESTS) + ["/v1/chat/completions"]
ROUNDS = 50


def places(node: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a body."""
    if at:
        yield at
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in inner:
        yield from places(value, (*at, key))


def spoilt(body: dict[str, Any], chance: random.Random) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The body with another value in one place, or without the place."""
    made = copy.deepcopy(body)
    at = chance.choice(list(places(body)))
    holder: Any = made
    for step in at[:-1]:
        holder = holder[step]
    if chance.random() < 0.15:
        del holder[at[-1]]
    else:
        holder[at[-1]] = chance.choice(JUNK)
    return at, made


@pytest.fixture(scope="module")
def answering(houses: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A house whose model answers everything, and calls what it is offered."""
    script = tmp_path_factory.mktemp("script") / "script.json"
    call = {"offered": "memory_search", "calls": [{"name": "memory_search", "arguments": {"query": "what?"}}]}
    turns = [{"after": "", "text": "It is [1]."}, call, {"text": '{"a": 1}'}]
    script.write_text(json.dumps([turn | {"repeat": True} for turn in turns]))
    return houses(model={"url": f"scripted:{script}"})


@pytest.mark.rows_in("sqlite")
@pytest.mark.parametrize("which", range(len(PATHS)))
def test_what_is_nearly_right_is_no_mistake_of_ours(answering: Any, which: int) -> None:
    store = answering.stock()["store_id"]
    body = json.loads(json.dumps([*REQUESTS, CHAT][which]).replace("STORE", store))
    answer = answering.request("POST", PATHS[which], json=body)
    assert answer.status_code == 200, answer.text
    chance = random.Random(which)
    seen: set[int] = set()
    for _ in range(ROUNDS):
        at, asked = spoilt(body, chance)
        answer = answering.request("POST", PATHS[which], json=asked)
        seen.add(answer.status_code)
        says = f"{at}: {answer.text[:500]}"
        assert answer.status_code in (200, 400, 404), says
        assert "wrote it to its log" not in answer.text, says
        if answer.status_code == 400:
            told = answer.json()["error"]
            assert told["type"] == "invalid_request_error"
            assert told["message"], says
    assert seen >= {200, 400}
