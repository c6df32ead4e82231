"""memory-stores: what it answers, and how it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memoranda.app.blocking.features import BlockingStoreMemories

CALLS = pytest.mark.parametrize("calls", ["run", pytest.param("served", marks=pytest.mark.slow)])
"""Commands work with a folder, or with a server."""


@CALLS
def test_a_store_is_created_changed_archived_and_deleted(calls: str, request: pytest.FixtureRequest) -> None:
    run = request.getfixturevalue(calls)
    words = ("--description", "How reports look", "--metadata", '{"team": "support", "old": "yes"}')
    created = run.json("memory-stores", "create", "Preferences", *words)
    assert created["metadata"] == {"team": "support", "old": "yes"}
    change = ("--name", "Style", "--metadata", '{"old": null}')
    changed = run.json("memory-stores", "update", "Preferences", *change)
    assert (changed["name"], changed["description"]) == ("Style", "How reports look")
    assert changed["metadata"] == {"team": "support"}
    id_ = created["id"]
    assert run.json("memory-stores", "show", id_) == run.json("memory-stores", "show", "Style") == changed
    assert "  team  support\n" in run("memory-stores", "show", "Style").stdout
    assert run("memory-stores").stdout == f"{id_}  Style  How reports look\n"
    other = run.json("memory-stores", "create", "Style")["id"]
    page = run("memory-stores", "list", "--limit", "1")
    assert page.stdout == f"{other}  Style\n"
    token = page.stderr.strip().rpartition("there are more: add --page ")[2]
    assert run("memory-stores", "list", "--page", token).stdout.startswith(id_)
    refused = run("memory-stores", "delete", "Style")
    assert refused.exit_code == 2
    assert f"ID|NAME: 2 memory stores are named 'Style'; use an id: {other}, {id_}" in refused.stderr
    assert run("memory-stores", "archive", other).stdout == f"{other}  Style  archived\n"
    assert [store["id"] for store in run.json("memory-stores")["data"]] == [id_]
    for each in (id_, other):
        assert run.json("memory-stores", "delete", each) == {"id": each, "deleted": True}
    assert "no memory stores; memoranda memory-stores create makes one" in run("memory-stores").stderr


@CALLS
def test_a_memory_is_written_shown_and_deleted_at_its_path(
    calls: str, request: pytest.FixtureRequest
) -> None:
    run = request.getfixturevalue(calls)
    store = run.json("memory-stores", "create", "Preferences")["id"]
    at = ("Preferences", "/style/reports.md")
    first = run.json("memory-stores", "write-memory", *at, "Metric units.")
    again = run.json("memory-stores", "write-memory", *at, "-", given="Metric units, in English.")
    assert again["id"] == first["id"]
    shown = run("memory-stores", "show-memory", *at).stdout
    assert "path                /style/reports.md\n" in shown
    assert shown.endswith("\n\nMetric units, in English.\n")
    assert run.json("memory-stores", "show-memory", store, first["id"])["path"] == "/style/reports.md"
    top = run.json("memory-stores", "write-memory", store, "/top.md", "")["id"]
    line = f"{first['id']}  /style/reports.md  25 bytes\n"
    assert run("memory-stores", "memories", store).stdout == f"{line}{top}  /top.md  0 bytes\n"
    assert run("memory-stores", "memories", store, "--depth", "1").stdout.startswith("/style/\n")
    assert run("memory-stores", "memories", store, "--path-prefix", "/style/").stdout == line
    page = run("memory-stores", "memories", store, "--limit", "1")
    token = page.stderr.strip().rpartition("there are more: add --page ")[2]
    assert run("memory-stores", "memories", store, "--page", token).stdout == f"{top}  /top.md  0 bytes\n"
    taken = run("memory-stores", "write-memory", store, "/top.md/below.md", "text")
    assert (taken.exit_code, top in taken.stderr) == (1, True)
    assert run.json("memory-stores", "delete-memory", *at) == {"id": first["id"], "deleted": True}
    gone = run("memory-stores", "show-memory", *at)
    assert gone.exit_code == 1
    assert "no memory is at '/style/reports.md'; memoranda memory-stores memories ID|NAME" in gone.stderr
    assert "'nope'" in run("memory-stores", "delete-memory", store, "nope").stderr
    wrong = run("memory-stores", "write-memory", store, "top.md", "text")
    assert wrong.exit_code == 2
    assert "PATH: must be / and 1 to 20 segments, such as /notes/todo.md" in wrong.stderr
    run.json("memory-stores", "delete", store)


def test_a_store_has_a_name_that_begins_as_an_id(run: Any) -> None:
    store = run.json("memory-stores", "create", "memstore_of_ada")
    assert run.json("memory-stores", "show", "memstore_of_ada") == store
    missing = run("memory-stores", "show", "memstore_of_bob")
    assert missing.exit_code == 1
    assert "no memory store 'memstore_of_bob'; memoranda memory-stores lists them" in missing.stderr


def test_a_memory_is_written_without_a_list_of_its_directory(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*words: Any, **fields: Any) -> None:
        raise AssertionError("the directory is listed")

    run.json("memory-stores", "create", "Preferences")
    monkeypatch.setattr(BlockingStoreMemories, "list", refuse)
    write = ("memory-stores", "write-memory", "Preferences", "/note.md")
    first = run.json(*write, "one")
    again = run.json(*write, "two")
    assert again["id"] == first["id"]
    assert again["content_sha256"] != first["content_sha256"]


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ({"k" * 65: "v"}, "--metadata: a key must be 1 to 64 characters, without NUL"),
        ({"a": 1}, "--metadata[...]: must be text, not a whole number"),
    ],
)
def test_wrong_metadata_is_refused_with_the_option_and_the_rule(
    run: Any, metadata: dict[str, Any], says: str
) -> None:
    refused = run("memory-stores", "create", "Preferences", "--metadata", json.dumps(metadata))
    assert (refused.exit_code, refused.stderr) == (2, f"memoranda: {says}\n")


def test_a_memory_is_found_beyond_the_first_page(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoranda.cli.memory_stores.ALL", 2)
    run.json("memory-stores", "create", "Preferences")
    for name in "abcde":
        run.json("memory-stores", "write-memory", "Preferences", f"/{name}.md", name)
    assert run.json("memory-stores", "show-memory", "Preferences", "/e.md")["content"] == "e"
    assert run("memory-stores", "show-memory", "Preferences", "/bb.md").exit_code == 1
