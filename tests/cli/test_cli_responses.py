"""agents: what they answer, and how they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


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


@pytest.mark.usefixtures("empty_folder")
def test_agents_of_the_configuration_are_changed_there(run: Any, tmp_path: Path) -> None:
    (tmp_path / "memoranda.yaml").write_text("agents: [{id: agent_desk, name: Desk}]\n")
    assert run("agents").stdout == "agent_desk  Desk  configured\n"
    refused = run("agents", "update", "Desk", "--model", "small")
    assert refused.exit_code == 1
    assert "the agent 'agent_desk' is of the configuration; change it there" in refused.stderr
