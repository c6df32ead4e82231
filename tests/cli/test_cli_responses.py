"""agents, conversations, responses: what they answer, and how they refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.client import Client

ITEMS = [
    {"role": "user", "content": "Where is the key?"},
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": "pot"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "It is there."},
    {"role": "assistant", "content": "Under the pot."},
]
ODD = [
    {"type": "tool_search_call", "name": {"a": 1}},
    {"type": "program_output", "output": [{"stdout": "x"}]},
]
"""Items that the server keeps as they are."""


@pytest.fixture(params=["folder", pytest.param("server", marks=pytest.mark.slow)])
def opened(request: pytest.FixtureRequest, run: Any, tmp_path: Path) -> Iterator[Callable[[], Any]]:
    """Opens what commands work with: a folder, or a server."""
    if request.param == "folder":
        yield lambda: memoranda.open(tmp_path / "memoranda-data")
    else:
        request.getfixturevalue("served")
        yield lambda: Client(request.getfixturevalue("server")[0])


@pytest.mark.parametrize("calls", ["run", pytest.param("served", marks=pytest.mark.slow)])
def test_an_agent_is_created_changed_and_deleted_by_name(calls: str, request: pytest.FixtureRequest) -> None:
    run = request.getfixturevalue(calls)
    fields = '{"variables": {"company": "Acme"}, "temperature": 0.5}'
    words = ("--id", "agent_support", "--description", "answers customers", "--fields", fields)
    made = run.json("agents", "create", "Support", "--instructions", "-", *words, given="Help {{company}}.")
    assert (made["id"], made["instructions"], made["temperature"]) == (
        "agent_support",
        "Help {{company}}.",
        0.5,
    )
    changed = run.json("agents", "update", "Support", "--model", "small", "--fields", '{"temperature": null}')
    assert (changed["model"], changed["temperature"]) == ("small", None)
    assert (changed["variables"], changed["instructions"]) == (made["variables"], made["instructions"])
    assert run.json("agents", "show", "agent_support") == run.json("agents", "show", "Support") == changed
    assert run("agents").stdout == "agent_support  Support  small  answers customers\n"
    shown = run("agents", "show", "Support").stdout
    assert "created_at   20" in shown
    assert shown.endswith("\n\nHelp {{company}}.\n")
    assert run("ask", "Where is the key?", "--agent", "Support").exit_code == 0
    other = run.json("agents", "create", "Support")["id"]
    refused = run("agents", "delete", "Support")
    assert refused.exit_code == 2
    assert f"ID|NAME: 2 agents are named 'Support'; use an id: {other}, agent_support" in refused.stderr
    run.json("agents", "delete", other)
    assert run.json("agents", "delete", "Support") == {"id": "agent_support", "deleted": True}
    assert run.json("agents")["data"] == []


def test_of_many_agents_an_error_names_the_newest(run: Any, opened: Callable[[], Any]) -> None:
    with opened() as product:
        for n in range(21):
            product.agents.create({"name": f"A{n}"})
    assert run("agents", "show", "A0").exit_code == 0
    refused = run("agents", "show", "nope")
    assert refused.exit_code == 1
    known = ", ".join(f"A{n}" for n in range(20, 0, -1))
    assert f"no agent is named 'nope'; there are: {known} and more\n" in refused.stderr


@pytest.mark.usefixtures("empty_folder")
def test_agents_of_the_configuration_are_changed_there(run: Any, tmp_path: Path) -> None:
    (tmp_path / "memoranda.yaml").write_text("agents: [{id: agent_desk, name: Desk}]\n")
    assert run("agents").stdout == "agent_desk  Desk  configured\n"
    refused = run("agents", "update", "Desk", "--model", "small")
    assert refused.exit_code == 1
    assert "the agent 'agent_desk' is of the configuration; change it there" in refused.stderr


def test_a_conversation_is_shown_and_deleted(run: Any, opened: Callable[[], Any]) -> None:
    with opened() as product:
        id_ = product.conversations.create(ITEMS, metadata={"topic": "keys"}).id
        ids = [item["id"] for item in product.conversations.items(id_, order="asc").data]
    assert run.json("conversations", "show", id_)["metadata"] == {"topic": "keys"}
    assert "topic  keys" in run("conversations", "show", id_).stdout
    assert run("conversations", "items", id_).stdout.splitlines() == [
        f"{ids[0]}  user: Where is the key?",
        f'{ids[1]}  function_call  look  {{"at": "pot"}}',
        f"{ids[2]}  function_call_output  It is there.",
        f"{ids[3]}  assistant: Under the pot.",
    ]
    with opened() as product:
        odd = product.conversations.create(ODD).id
    assert [line.split("  ")[1] for line in run("conversations", "items", odd).stdout.splitlines()] == [
        "tool_search_call",
        "program_output",
    ]
    page = run("conversations", "items", id_, "--order", "desc", "--limit", "1")
    assert page.stdout == f"{ids[3]}  assistant: Under the pot.\n"
    assert f"add --after {ids[3]}" in page.stderr
    assert [item["id"] for item in run.json("conversations", "items", id_, "--after", ids[2])["data"]] == ids[
        3:
    ]
    assert run.json("conversations", "delete", id_) == {"id": id_, "deleted": True}
    assert run("conversations", "show", id_).exit_code == 1


def test_a_response_is_listed_shown_cancelled_and_deleted(run: Any, opened: Callable[[], Any]) -> None:
    with opened() as product:
        asked = product.responses.create("Where is the key?")
        for _ in product.responses.stream("Where is the pot?", background=True):
            pass
    behind, first = run.json("responses", "list")["data"]
    assert (behind["question"], first["id"]) == ("Where is the pot?", asked.id)
    page = run("responses", "list", "--limit", "1", "--order", "asc")
    assert page.stdout.startswith(f"{asked.id}  completed  20")
    assert page.stdout.endswith("  extractive  Where is the key?\n")
    assert f"add --after {asked.id}" in page.stderr
    shown = run("responses", "show", asked.id).stdout
    assert "completed_at  20" in shown
    assert shown.endswith(
        f"\n\n{asked.output[0]['id']}  assistant: {asked.output[0]['content'][0]['text']}\n"
    )
    assert run("responses", "cancel", behind["id"]).stdout == f"{behind['id']}  completed\n"
    assert run.json("responses", "cancel", behind["id"])["status"] == "completed"
    refused = run("responses", "cancel", asked.id)
    assert refused.exit_code == 2
    assert "Cannot cancel a synchronous response" in refused.stderr
    for id_ in (asked.id, behind["id"]):
        assert run.json("responses", "delete", id_) == {"id": id_, "deleted": True}
    assert "no responses; " in run("responses").stderr
