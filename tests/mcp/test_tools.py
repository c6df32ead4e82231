"""The tools of the MCP server, called by the official client over HTTP."""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

import httpx
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from memoranda.mcp.sets import SETS
from memoranda.text.tokens import count
from support.server_process import Process

MOST_TOKENS = 1_800
"""Tokens that the definitions of the core tools may take of every prompt."""


def told() -> str:
    """A text that no other test writes."""
    return f"The code word of round {uuid.uuid4().hex} is marmalade."


def test_the_core_tools_leave_room_in_a_prompt() -> None:
    shown = [
        {"name": tool.name, "description": tool.description, "parameters": tool.definition.input_schema}
        for tool in SETS["core"].values()
    ]
    assert sum(count(json.dumps(one)) for one in shown) <= MOST_TOKENS


@pytest.mark.parametrize("name", SETS)
def test_every_set_says_what_its_tools_do(name: str) -> None:
    for tool in SETS[name].values():
        definition = tool.definition
        assert definition.title
        assert definition.output_schema is not None
        assert definition.annotations is not None
        assert definition.annotations.read_only_hint is not tool.changes
        assert "$ref" not in json.dumps(definition.model_dump(mode="json"))
        assert name != "read" or not tool.changes


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_a_client_of_each_version_remembers_and_recalls(using: Any, mode: str) -> None:
    text = told()

    async def work(client: Client) -> Any:
        names = [tool.name for tool in (await client.list_tools()).tools]
        kept = (await client.call_tool("remember", {"text": text, "tags": ["words"]})).structured_content
        found = (await client.call_tool("recall", {"query": text})).structured_content
        read = (await client.call_tool("get", {"id": kept["id"]})).structured_content
        return names, kept, found, read, client.protocol_version

    names, kept, found, read, version = using(work, mode=mode)
    assert names == list(SETS["core"])
    assert version == ("2025-11-25" if mode == "legacy" else mode)
    assert (kept["created"], kept["scope"]) == (True, "user")
    assert found["scopes"] == ["user:ada", "global"]
    assert found["results"][0]["text"] == text
    assert found["results"][0]["source"] == "mcp"
    assert read["memory"]["user_id"] == "ada"
    assert read["memory"]["tags"] == ["words"]


def test_a_message_that_is_recalled_names_its_speaker(call: Any, server: Process) -> None:
    text = told()
    said = {"content": text, "role": "user", "speaker": "Priya"}
    httpx.post(
        f"{server.url}/v1/sessions/{uuid.uuid4().hex}/messages",
        json={"messages": [said]},
        headers={"authorization": "Bearer south-admin"},
    ).raise_for_status()
    call("remember", {"text": f"Noted: {text}"}, key="south-admin")
    found = call("recall", {"query": text}, key="south-admin")["results"]
    assert {(one["kind"], one["speaker"]) for one in found[:2]} == {("message", "Priya"), ("note", None)}


def test_the_same_text_is_remembered_once(call: Any) -> None:
    text = told()
    first, second = call("remember", {"text": text}), call("remember", {"text": text, "tags": None})
    assert second == first | {"created": False}


def test_a_fact_has_versions(call: Any) -> None:
    name = f"Ada{uuid.uuid4().hex[:6]}"
    old = call("remember", {"text": f"{name} lives in Bonn.", "kind": "fact"})
    new = call("remember", {"text": f"{name} lives in Porto now.", "kind": "fact", "replaces": [old["id"]]})
    versions = call("get", {"id": new["id"]})["versions"]
    assert [(one["id"], one["current"]) for one in versions] == [(old["id"], False), (new["id"], True)]
    assert call("history", {"id": old["id"]}, query="?tools=full")["versions"] == versions
    undone = call("undo", {"id": new["id"]}, query="?tools=full")
    assert undone == {"undone": new["id"], "restored": [old["id"]]}


def test_results_keep_to_the_tokens_that_are_asked_for(call: Any) -> None:
    for number in range(4):
        call("remember", {"text": f"Lap {number}: " + "more words " * 30, "tags": ["laps"]})
    found = call("recall", {"query": "lap", "tags": ["laps"], "limit": 4, "max_tokens": 150})
    assert 1 <= len(found["results"]) < 4
    assert found["omitted"] == 4 - len(found["results"])
    assert sum(count(one["text"]) for one in found["results"]) <= 150


def test_forgetting_by_words_needs_ids_or_a_confirmation(call: Any) -> None:
    text = told()
    kept = call("remember", {"text": text})
    listed = call("forget", {"query": text})
    assert listed["matches"][0]["id"] == kept["id"]
    assert (listed["deleted"], "ids" in listed["next"]) == (0, True)
    broad = call("forget", {"text": text})
    assert (broad["deleted"], broad["matching"], broad["counts"]) == (0, 1, {"memories": 1})
    assert "confirm=true" in broad["next"]
    assert call("get", {"id": kept["id"]})["memory"]["content"] == text
    assert call("forget", {"text": text, "confirm": True})["deleted"] == 1
    assert call("get", {"id": kept["id"]}) == f"no memory {kept['id']!r}"
    again = call("remember", {"text": text})
    assert call("forget", {"ids": [again["id"]]})["deleted"] == 1


def test_forgetting_by_tags_counts_first_and_spares_others(call: Any) -> None:
    tag = uuid.uuid4().hex
    mine = call("remember", {"text": told(), "tags": [tag]})
    ours = call("remember", {"text": told(), "tags": [tag], "scope": "global"}, key="north-admin")
    preview = call("forget", {"tags": [tag]})
    assert (preview["matching"], [one["id"] for one in preview["matches"]]) == (1, [mine["id"]])
    assert call("forget", {"tags": [tag], "confirm": True})["deleted"] == 1
    assert call("get", {"id": ours["id"]})["memory"]["id"] == ours["id"]


@pytest.mark.parametrize("arguments", [{}, {"query": "x", "ids": ["y"]}, {"text": "x", "query": "y"}])
def test_forgetting_is_told_one_way(call: Any, arguments: Any) -> None:
    assert call("forget", arguments).startswith("ids: give one of: ids, query, or a selection")


def test_documents_are_indexed_searched_and_listed(call: Any) -> None:
    word = uuid.uuid4().hex
    text = f"# Kettle {word}\n\nThe kettle of house {word} is descaled every March.\n"
    done = call("index_text", {"text": text, "filename": "kettle.md"}, query="?tools=full")
    assert done["status"] == "completed"
    assert done["store_id"] in [one["id"] for one in call("stores", query="?tools=full")["stores"]]
    found = call("search_documents", {"query": f"When is the kettle of {word} descaled?"})
    assert found["results"][0]["filename"] == "kettle.md"
    assert word in found["results"][0]["text"]
    made = call("context", {"query": f"When is the kettle of {word} descaled?"})
    assert word in made["text"]
    assert found["results"][0]["id"] in made["ids"]
    hits = call("search", {"query": f"kettle of {word}"}, query="?tools=chatgpt")["results"]
    read = call("fetch", {"id": hits[0]["id"]}, query="?tools=chatgpt")
    assert (read["title"], read["metadata"]["filename"]) == (f"Kettle {word}", "kettle.md")
    assert word in read["text"]
    assert call("search_documents", {"query": word}, key="south-admin")["results"] == []


def test_what_was_indexed_twice_is_found_once(call: Any) -> None:
    word = uuid.uuid4().hex
    for _ in range(2):
        call(
            "index_text", {"text": f"Lamp {word} is by the door.", "filename": "lamp.md"}, query="?tools=full"
        )
    found = call("search_documents", {"query": f"Where is lamp {word}?", "limit": 50})["results"]
    assert [word in one["text"] for one in found].count(True) == 1


def test_lists_are_of_the_caller(call: Any) -> None:
    kept = call("remember", {"text": told()})
    listed = call("list", {"limit": 50}, query="?tools=read")
    assert listed["memories"][0]["id"] == kept["id"]
    sessions = call("sessions", query="?tools=read")
    assert sessions == {"sessions": []}


# --- who calls -------------------------------------------------------------------------------------------


def test_no_tenant_and_no_user_sees_another(call: Any) -> None:
    text = told()
    kept = call("remember", {"text": text})
    for key in ("south-admin", "eve-key"):
        assert text not in json.dumps(call("recall", {"query": text, "limit": 50}, key=key))
        assert call("get", {"id": kept["id"]}, key=key) == f"no memory {kept['id']!r}"
    assert "a reader writes nothing" in call("remember", {"text": text}, key="eve-key")


def test_the_user_and_the_agent_come_from_the_address(call: Any) -> None:
    text = told()
    kept = call("remember", {"text": text}, key="north-admin", query="?user=ben&agent=coder")
    assert call("get", {"id": kept["id"]}, key="north-admin")["memory"]["user_id"] == "ben"
    of_agent = call(
        "remember", {"text": text, "scope": "agent"}, key="north-admin", query="?user=ben&agent=coder"
    )
    assert call("get", {"id": of_agent["id"]}, key="north-admin")["memory"]["agent_id"] == "coder"
    found = call("recall", {"query": text}, key="north-admin", query="?user=ben&agent=coder")
    assert found["scopes"] == ["user:ben", "agent:coder", "global"]
    says = call("recall", {"query": text, "scopes": ["agent"]})
    assert says == "scopes: 'agent' is no scope here; use user, global, session:ID or channel:ID"


def test_no_tool_takes_a_user_a_tenant_or_metadata() -> None:
    names = {name for tool in SETS["full"].values() for name in tool.definition.input_schema["properties"]}
    assert names.isdisjoint({"user", "user_id", "tenant", "tenant_id", "agent", "agent_id", "metadata"})


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("recall", {"qery": "x"}, "qery: is not a field that is known here; did you mean `query`?"),
        (
            "context",
            {"task": "x"},
            "task: is not a field that is known here; use query, max_tokens, documents",
        ),
        ("recall", {}, "query: is required"),
        ("recall", {"query": "x", "limit": 0}, "limit: must be between 1 and "),
        ("recall", {"query": "x", "kinds": ["memo"]}, "kinds[0]: must be one of document, fact"),
        (
            "recall",
            {"query": "x", "since": "yesterday"},
            "since: must be a date, or a date and time, such as",
        ),
        (
            "search_documents",
            {"query": "x", "stores": ["none"]},
            "stores: 'none' is no store here; use one of: ",
        ),
    ],
)
def test_a_wrong_argument_is_an_error_that_says_the_fix(
    call: Any, tool: str, arguments: Any, says: str
) -> None:
    assert call(tool, arguments).startswith(says)


def test_an_unknown_tool_names_those_that_are_offered(using: Any) -> None:
    async def work(client: Client) -> None:
        with pytest.raises(MCPError, match="no tool 'list' is offered here; use recall, remember"):
            await client.call_tool("list", {})

    using(work)


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"accept": "application/json, text/event-stream"}


def posted(server: Process, path: str = "/mcp", **headers: str) -> httpx.Response:
    return httpx.post(f"{server.url}{path}", json=PING, headers=ACCEPT | headers)


def test_without_a_key_the_answer_says_where_to_read_how(server: Process) -> None:
    refused = posted(server)
    assert refused.status_code == 401
    found = re.fullmatch(r'Bearer resource_metadata="(.+)"', refused.headers["www-authenticate"])
    assert found is not None
    document = httpx.get(found[1]).json()
    assert document["resource"] == f"{server.url}/mcp"
    assert document["bearer_methods_supported"] == ["header"]


def test_pages_of_other_sites_and_other_methods_are_refused(server: Process) -> None:
    key = {"authorization": "Bearer ada-key"}
    assert posted(server, **key).status_code == 200
    assert posted(server, **key, origin=server.url).status_code == 200
    refused = posted(server, **key, origin="https://evil.example")
    assert (refused.status_code, "mcp.allowed_origins" in refused.text) == (403, True)
    ask = {"origin": "https://app.example", "access-control-request-method": "POST"}
    asked = httpx.options(
        f"{server.url}/mcp", headers=ask | {"access-control-request-headers": "authorization"}
    )
    assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (200, "https://app.example")
    assert asked.headers["access-control-allow-headers"] == "authorization"
    shown = posted(server, **key, origin="https://app.example")
    assert (shown.status_code, shown.headers["access-control-allow-origin"]) == (200, "https://app.example")
    assert (
        httpx.options(f"{server.url}/mcp", headers=ask | {"origin": "https://evil.example"}).status_code
        == 400
    )
    assert "access-control-allow-origin" not in refused.headers
    got = httpx.get(f"{server.url}/mcp", headers=key)
    assert (got.status_code, got.headers["allow"]) == (405, "POST")
    assert posted(server, "/mcp?user=ben", **key).status_code == 403
    wrong = posted(server, "/mcp?tools=all", **key)
    assert wrong.status_code == 400
    assert "must be one of chatgpt, core, full, read" in wrong.text


def test_resources_and_prompts(using: Any, call: Any) -> None:
    text = told()
    fact = call("remember", {"text": text, "kind": "fact"})

    async def work(client: Client) -> Any:
        uris = [one.uri for one in (await client.list_resources()).resources]
        templates = [one.uri_template for one in (await client.list_resource_templates()).resource_templates]
        read = [(await client.read_resource(uri)).contents[0].text for uri in uris]
        one = (await client.read_resource(f"memoranda://memories/{fact['id']}")).contents[0].text
        prompts = [one.name for one in (await client.list_prompts()).prompts]
        made = await client.get_prompt("answer_from_memory", {"question": text})
        with pytest.raises(MCPError, match="no resource 'memoranda://memories/none'"):
            await client.read_resource("memoranda://memories/none")
        with pytest.raises(MCPError, match="question: is required"):
            await client.get_prompt("answer_from_memory", {})
        return templates, read, one, prompts, made.messages[0].content.text

    templates, read, one, prompts, made = using(work)
    assert len(templates) == 2
    assert text in read[0]
    assert one == text
    assert prompts == ["answer_from_memory", "remember_session"]
    assert text in made


def test_calls_are_counted_by_outcome(server: Process, call: Any) -> None:
    def counted(outcome: str) -> float:
        text = httpx.get(f"{server.url}/metrics", headers={"authorization": "Bearer operator-key"}).text
        line = f'memoranda_mcp_calls_total{{outcome="{outcome}"}} '
        return float(text.split(line)[1].split()[0])

    completed, refused = counted("completed"), counted("refused")
    call("recall", {"query": "a fence"})
    call("recall", {})
    assert (counted("completed"), counted("refused")) == (completed + 1, refused + 1)
