"""LangChain's ChatOpenAI, by the Responses API, against a server as users run it: streamed and not."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings, custom_tool
from pydantic import BaseModel


class Thing(BaseModel):
    """What the model is asked to fill in."""

    name: str
    price: int


@tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


@pytest.fixture(scope="module")
def chat(kitchen: Any) -> Any:
    """A chat model with these settings."""

    def made(**settings: Any) -> ChatOpenAI:
        at = {"base_url": f"{kitchen.url}/v1", "api_key": "none", "max_retries": 0}
        return ChatOpenAI(**{"model": "scripted", "use_responses_api": True, **at, **settings})

    return made


def whole(chunks: Any) -> AIMessage:
    """The chunks of a stream as one message, of which there was more than one."""
    held = list(chunks)
    assert len(held) > 1
    message = held[0]
    for chunk in held[1:]:
        message += chunk
    assert isinstance(message, AIMessage)
    return message


VERSIONS = pytest.mark.parametrize("version", ["v0", "responses/v1", "v1"])
"""The shapes in which LangChain gives answers back."""


@VERSIONS
def test_an_answer(chat: Any, kitchen: Any, version: str) -> None:
    model = chat(output_version=version)
    asked = [SystemMessage("Be kind."), HumanMessage("Where is the kettle?")]
    for answer in (model.invoke(asked), whole(model.stream(asked))):
        assert answer.text == "It is in the kitchen."
        assert answer.response_metadata["id"].startswith("resp_")
        assert answer.usage_metadata is not None
        assert answer.usage_metadata["output_tokens"] > 0
    assert kitchen.told("Where is the kettle?")[-1] == ["Be kind.", "Where is the kettle?"]


def test_tokens_come_one_by_one(chat: Any) -> None:
    texts = [chunk.text for chunk in chat().stream("Where is the kettle?") if chunk.text]
    assert len(texts) == 5
    assert "".join(texts) == "It is in the kitchen."


@VERSIONS
def test_messages_that_are_sent_again(chat: Any, kitchen: Any, version: str) -> None:
    model = chat(output_version=version)
    first = [HumanMessage(f"My name is Ada, {version}.")]
    for answer in (model.invoke(first), whole(model.stream(first))):
        again = model.invoke([*first, answer, HumanMessage(f"What is my name, {version}?")])
        assert again.text == "You are Ada."
    told = [f"My name is Ada, {version}.", "Hello Ada.", f"What is my name, {version}?"]
    assert kitchen.told(told[-1]) == [told, told]


def test_turns_by_the_response_before(chat: Any, kitchen: Any) -> None:
    model = chat(use_previous_response_id=True)
    first = [HumanMessage("My name is Ada, linked.")]
    answer = model.invoke(first)
    second = whole(model.stream([*first, answer, HumanMessage("What is my name, linked?")]))
    assert second.text == "You are Ada."
    explicit = chat().invoke("What is my name, linked?", previous_response_id=answer.response_metadata["id"])
    assert explicit.text == "You are Ada."
    told = ["My name is Ada, linked.", "Hello Ada.", "What is my name, linked?"]
    assert kitchen.told(told[-1]) == [told, told]


def test_a_conversation(chat: Any, kitchen: Any) -> None:
    client = openai.OpenAI(base_url=f"{kitchen.url}/v1", api_key="none")
    held = client.conversations.create().id
    model = chat(extra_body={"conversation": held})
    model.invoke("My name is Ada, talking.")
    assert model.invoke("What is my name, talking?").text == "You are Ada."
    assert len(client.conversations.items.list(held).data) == 4


@VERSIONS
@pytest.mark.parametrize("linked", [False, True], ids=["sent again", "linked"])
def test_tools(chat: Any, version: str, linked: bool) -> None:
    model = chat(output_version=version, use_previous_response_id=linked).bind_tools([get_weather])
    asked: list[Any] = [HumanMessage("The weather in two cities?")]
    for answer in (model.invoke(asked), whole(model.stream(asked))):
        assert [call["args"] for call in answer.tool_calls] == [{"city": "Paris"}, {"city": "Rome"}]
        results = [get_weather.invoke(call) for call in answer.tool_calls]
        assert all(isinstance(result, ToolMessage) for result in results)
        assert model.invoke([*asked, answer, *results]).text == "Sunny in both."


def test_structured_output(chat: Any) -> None:
    for method in ("json_schema", "function_calling"):
        asked = chat().with_structured_output(Thing, method=method)
        said = "The kettle as JSON" if method == "json_schema" else "Fill in a Thing"
        assert asked.invoke(said) == Thing(name="kettle", price=30)
        assert list(asked.stream(said))[-1] == Thing(name="kettle", price=30)


@VERSIONS
def test_file_search(chat: Any, kitchen: Any, version: str) -> None:
    searching = {"type": "file_search", "vector_store_ids": [kitchen.store]}
    model = chat(output_version=version, include=["file_search_call.results"]).bind_tools([searching])
    asked: list[Any] = [HumanMessage("How is the kettle cleaned?")]
    for answer in (model.invoke(asked), whole(model.stream(asked))):
        assert answer.text == "Fill it with vinegar [1]."
        cited = [one for block in answer.content_blocks for one in block.get("annotations", [])]
        assert "manual.txt" in str(cited)
        again = [*asked, answer, HumanMessage("Where is the kettle?")]
        assert model.invoke(again).text == "It is in the kitchen."


def test_tools_that_run_at_the_server_and_here(chat: Any, kitchen: Any) -> None:
    searching = {"type": "file_search", "vector_store_ids": [kitchen.store]}
    model = chat(output_version="responses/v1").bind_tools([searching, get_weather])
    asked: list[Any] = [HumanMessage("How is the kettle cleaned in Paris?")]
    answer = model.invoke(asked)
    results = [get_weather.invoke(call) for call in answer.tool_calls]
    ended = model.invoke([*asked, answer, *results])
    assert ended.text == "With vinegar [1], in the sun."
    assert "manual.txt" in str(ended.content)


@VERSIONS
def test_reasoning_is_passed_on(chat: Any, version: str) -> None:
    for settings in ({}, {"store": False, "include": ["reasoning.encrypted_content"]}):
        model = chat(output_version=version, **settings)
        for answer in (model.invoke("Think"), whole(model.stream("Think"))):
            assert answer.text == "Forty-two."
            again = [HumanMessage("Think"), answer, HumanMessage("Where is the kettle?")]
            assert model.invoke(again).text == "It is in the kitchen."


def test_remote_tools(chat: Any, kitchen: Any) -> None:
    server = {"type": "mcp", "server_label": "small", "server_url": kitchen.mcp}
    model = chat(output_version="responses/v1")
    never = model.bind_tools([{**server, "require_approval": "never"}])
    for answer in (never.invoke("Please echo"), whole(never.stream("Please echo"))):
        assert answer.text == "It said tiny."
    always = chat(output_version="responses/v1", use_previous_response_id=True).bind_tools(
        [{**server, "require_approval": "always"}]
    )
    answer = always.invoke("Please echo")
    (asking,) = (block for block in answer.content if block["type"] == "mcp_approval_request")
    approved = {"type": "mcp_approval_response", "approve": True, "approval_request_id": asking["id"]}
    ended = always.invoke([HumanMessage("Please echo"), answer, HumanMessage([approved])])
    assert ended.text == "It said tiny."


def test_a_custom_tool(chat: Any) -> None:
    @custom_tool
    def write_sql(sql: str) -> str:
        """Runs SQL."""
        return "3"

    model = chat(output_version="responses/v1").bind_tools([write_sql])
    answer = model.invoke("Write SQL")
    (call,) = answer.tool_calls
    assert call["args"] == {"__arg1": "select 1"}
    ended = model.invoke([HumanMessage("Write SQL"), answer, write_sql.invoke(call)])
    assert ended.text == "There are three."


def test_an_image(chat: Any) -> None:
    image = {"type": "image", "base64": "aGVsbG8=", "mime_type": "image/png"}
    asked = HumanMessage([{"type": "text", "text": "What is in the picture?"}, image])
    assert chat().invoke([asked]).text == "A pixel."


def test_a_refusal(chat: Any) -> None:
    answer = chat(output_version="responses/v1").invoke("Tell me a secret")
    assert [block["refusal"] for block in answer.content] == ["I cannot tell."]


def test_an_answer_that_is_not_whole(chat: Any) -> None:
    answer = chat(max_tokens=16).invoke("Go on and on")
    assert answer.response_metadata["status"] == "incomplete"


def test_errors(chat: Any) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        chat().invoke("hello", previous_response_id="resp_none")
    assert caught.value.code == "previous_response_not_found"
    with pytest.raises(openai.APIStatusError) as away:
        chat().invoke("Model away")
    assert away.value.status_code == 503
    with pytest.raises(ValueError, match="loading"):
        list(chat().stream("Model away"))
    with pytest.raises(ValueError, match="broke off"):
        chat().invoke("Break off")


def test_embeddings(kitchen: Any) -> None:
    at: Any = {"base_url": f"{kitchen.url}/v1", "api_key": "none"}
    vectors = OpenAIEmbeddings(model="hash-64", check_embedding_ctx_length=False, **at).embed_documents(["a"])
    assert [len(vector) for vector in vectors] == [64]


def test_the_example(kitchen: Any) -> None:
    printed = kitchen.example("langchain_chat.py", kitchen.store, "How is the kettle cleaned?")
    assert printed.splitlines() == ["Fill it with vinegar [1].", "manual.txt", "Vinegar does it."]
