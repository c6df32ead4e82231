"""A model server of another make, llama.cpp, over HTTP: what it says on the wire, then whole responses by way of it.

The network only copies (see `support.small_model`). The tests prove that both sides understand each other and that
results reach the model, not that a model calls tools or cites well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from memoranda.responses.tools import memory
from memoranda.text import prompts
from support import small_model
from support.server_process import Process

pytestmark = pytest.mark.slow

QUESTION = "How long is the warranty of the pump?"
DOCUMENT = "The pump of model K7 has a warranty of three years — counted from the day it is delivered."
OTHER = "The kettle is green and holds two litres."
ALLERGY = "I am allergic to walnuts."
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
    ours = [Path(str(module.__file__)).read_text("utf-8") for module in (prompts, memory)]
    with small_model.served(
        tmp_path_factory.mktemp("real"), [QUESTION, DOCUMENT, OTHER, ALLERGY, *ours]
    ) as served:
        yield served


@pytest.fixture(scope="module")
def client(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    """The official client of a server of ours that asks it."""
    settings = {
        "model": {"url": url, "name": "copies"},
        "responses": {"file_min_score": 0.0, "memory": False},
    }
    process = Process(tmp_path_factory.mktemp("asking") / "data", settings)
    with openai.OpenAI(base_url=f"{process.url}/v1", api_key="none", max_retries=0, timeout=60) as made:
        yield made
    process.end()


@pytest.fixture(scope="module")
def store(client: openai.OpenAI) -> str:
    """The id of a vector store of two files."""
    made = client.vector_stores.create(name="things").id
    for name, text in (("pump.md", DOCUMENT), ("kettle.md", OTHER)):
        kept = client.vector_stores.files.upload_and_poll(vector_store_id=made, file=(name, text.encode()))
        assert kept.status == "completed"
    return made


def asked(client: openai.OpenAI, question: Any, **fields: Any) -> Any:
    """A response to `question`; no more than 300 tokens of it."""
    return client.responses.create(
        model="copies", input=question, temperature=0, max_output_tokens=300, **fields
    )


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


# --- whole responses -------------------------------------------------------------------------------


def searching(store: str, **fields: Any) -> Any:
    return [{"type": "file_search", "vector_store_ids": [store], **fields}]


def passage(number: int, result: Any) -> str:
    """A result of a search as the model reads it."""
    return f"[{number}] {result.filename} ({result.file_id}, score {result.score:.2f})\n{result.text}"


def test_a_question_is_searched_for_and_answered_with_a_citation(client: openai.OpenAI, store: str) -> None:
    made = asked(
        client,
        QUESTION,
        tools=searching(store, max_num_results=1),
        include=["file_search_call.results"],
    )
    search, message = made.output
    assert (made.status, search.type, search.status) == ("completed", "file_search_call", "completed")
    assert search.queries == [QUESTION]
    (result,) = search.results
    assert (result.filename, result.text) == ("pump.md", DOCUMENT)
    assert made.output_text == passage(1, result)
    (cited,) = message.content[0].annotations
    assert (cited.type, cited.file_id, cited.filename) == ("file_citation", result.file_id, "pump.md")
    assert made.output_text[cited.start_index : cited.end_index] == "[1]"


def test_the_second_passage_is_cited_as_the_second(client: openai.OpenAI, store: str) -> None:
    made = asked(client, QUESTION, tools=searching(store), include=["file_search_call.results"])
    assert made.output_text == passage(2, made.output[0].results[1])
    assert OTHER in made.output_text
    (cited,) = made.output[-1].content[0].annotations
    assert cited.filename == "kettle.md"


def test_a_cited_answer_comes_as_the_model_says_it(client: openai.OpenAI, store: str) -> None:
    include = ["file_search_call.results"]
    one = searching(store, max_num_results=1)
    events = list(asked(client, QUESTION, tools=one, include=include, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type for event in events]
    assert kinds.index("response.file_search_call.completed") < kinds.index("response.output_text.delta")
    pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(pieces) == passage(1, events[-1].response.output[0].results[0])
    assert len(pieces) > 5
    assert kinds.count("response.output_text.annotation.added") == 1
    assert events[-1].type == "response.completed"
    assert events[-1].response.usage.output_tokens >= len(pieces)


def test_what_it_remembers_is_found_later_in_the_conversation(client: openai.OpenAI) -> None:
    told = asked(client, ALLERGY, tools=[{"type": "memory_write"}])
    wrote = told.output[0]
    assert (wrote.type, wrote.name, wrote.error) == ("mcp_call", "memory_write", None)
    assert json.loads(wrote.arguments) == {"content": ALLERGY}
    made = asked(
        client,
        "allergic to walnuts?",
        tools=[{"type": "memory_search"}],
        previous_response_id=told.id,
    )
    assert made.output[0].name == "memory_search"
    assert ALLERGY in made.output_text


def test_a_tool_of_the_client_is_called_and_its_output_answered_in_every_turn(client: openai.OpenAI) -> None:
    properties = {"city": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": ["city"]}
    tools = [{"type": "function", "name": "weather", "parameters": schema}]
    before = None
    for city, weather in (("Bern", "Rain until noon."), ("Basel", "Fog, then sun.")):
        called = asked(client, city, tools=tools, previous_response_id=before)
        (call,) = called.output
        assert (call.type, call.name, json.loads(call.arguments)) == (
            "function_call",
            "weather",
            {"city": city},
        )
        output = [{"type": "function_call_output", "call_id": call.call_id, "output": weather}]
        made = asked(client, output, tools=tools, previous_response_id=called.id)
        assert made.output_text == weather
        before = made.id


def test_an_answer_that_is_cut_is_incomplete(client: openai.OpenAI) -> None:
    made = client.responses.create(model="copies", input=QUESTION, temperature=0, max_output_tokens=3)
    assert (made.status, made.output_text) == ("incomplete", "How long is")
    assert made.incomplete_details is not None
    assert made.incomplete_details.reason == "max_output_tokens"


def test_a_question_longer_than_the_model_reads_is_the_clients_to_mend(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="context size"):
        asked(client, "é" * 9000)
