"""Chat completions as a server of another make speaks them: llama.cpp, over HTTP (see real.py for what it serves)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import httpx
import pytest

_spec = spec_from_file_location("recollect_tests_real", Path(__file__).with_name("real.py"))
assert _spec is not None
assert _spec.loader is not None
real = module_from_spec(_spec)
sys.modules[_spec.name] = real
_spec.loader.exec_module(real)

QUESTION = "How long is the warranty of the pump?"
DOCUMENT = "The pump of model K7 has a warranty of three years — counted from the day it is delivered."
FOUND = f"[1] pump.md\n{DOCUMENT}"

Message = dict[str, Any]
SEARCH = {
    "type": "function",
    "function": {
        "name": "file_search",
        "description": "Passages of the documents that answer a question.",
        "parameters": {
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        },
    },
}
ASKED: list[Message] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
CALL = {"name": "file_search", "arguments": json.dumps({"query": QUESTION})}
ANSWERED: list[Message] = [
    *ASKED,
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": CALL}],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": FOUND},
]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with real.served(tmp_path_factory.mktemp("real"), [QUESTION, DOCUMENT]) as served:
        yield served


def streamed(url: str, messages: list[Message], **fields: Any) -> list[dict[str, Any]]:
    """The chunks of an answer, less the closing `[DONE]`, which must be there."""
    body = {
        "model": "copies",
        "messages": messages,
        "temperature": 0,
        "max_tokens": 300,
        "stream": True,
        "stream_options": {"include_usage": True},
        **fields,
    }
    with httpx.stream("POST", f"{url}/chat/completions", json=body, timeout=60) as answer:
        assert answer.status_code == 200, answer.read()
        lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def choices(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [choice for chunk in chunks for choice in chunk["choices"]]


def said(chunks: list[dict[str, Any]]) -> list[str]:
    """The pieces of text."""
    return [choice["delta"]["content"] for choice in choices(chunks) if choice["delta"].get("content")]


def called(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The pieces of tool calls."""
    return [call for choice in choices(chunks) for call in choice["delta"].get("tool_calls", [])]


def arguments(chunks: list[dict[str, Any]]) -> Any:
    return json.loads("".join(call["function"].get("arguments", "") for call in called(chunks)))


def ending(chunks: list[dict[str, Any]]) -> str:
    (reason,) = [choice["finish_reason"] for choice in choices(chunks) if choice["finish_reason"]]
    return str(reason)


def test_an_answer_comes_in_pieces_and_its_tokens_are_counted(url: str) -> None:
    chunks = streamed(url, ASKED)
    assert "".join(said(chunks)) == QUESTION
    assert len(said(chunks)) > 5
    assert ending(chunks) == "stop"
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] >= len(said(chunks))


def test_it_calls_the_tool_it_is_offered(url: str) -> None:
    chunks = streamed(url, ASKED, tools=[SEARCH])
    first, *rest = called(chunks)
    assert first["function"]["name"] == "file_search"
    assert first["id"]
    assert len(rest) > 5
    assert arguments(chunks) == {"query": QUESTION}
    assert ending(chunks) == "tool_calls"
    assert not said(chunks)


def test_what_the_tool_found_is_what_it_answers(url: str) -> None:
    chunks = streamed(url, ANSWERED, tools=[SEARCH])
    assert "".join(said(chunks)) == FOUND
    assert not called(chunks)
    assert ending(chunks) == "stop"


def test_an_answer_is_held_to_a_schema(url: str) -> None:
    schema = {
        "type": "object",
        "properties": {"years": {"type": "integer"}},
        "required": ["years"],
        "additionalProperties": False,
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "warranty", "schema": schema}}
    answer = json.loads("".join(said(streamed(url, ASKED, response_format=wanted))))
    assert list(answer) == ["years"]
    assert isinstance(answer["years"], int)


def test_an_answer_that_is_too_long_ends_with_length(url: str) -> None:
    chunks = streamed(url, ANSWERED, tools=[SEARCH], max_tokens=5)
    assert ending(chunks) == "length"
    assert FOUND.startswith("".join(said(chunks)))


def test_a_prompt_beyond_its_context_is_refused_with_a_reason(url: str) -> None:
    body = {"model": "copies", "messages": [{"role": "user", "content": "é" * 9000}]}
    answer = httpx.post(f"{url}/chat/completions", json=body, timeout=60)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "exceed_context_size_error"
