"""Every command that prints data prints JSON with `--json`, in a folder and through a server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .test_cli_documented import TREE

NO_DATA = {"serve", "mcp", "connect", "console", "hook", "worker", "conversations"}
ELSEWHERE = {
    "demo", "doctor", "stores attach", "jobs retry",
    "responses cancel", "conversations show", "conversations items", "conversations delete",
}  # fmt: skip
"""Commands whose JSON other tests read."""
FACT = "Mara lives in Munich."


def walk(run: Any, write: Callable[[str, str], Path]) -> set[str]:
    """Calls the commands one after the other; the names of those whose answer was JSON."""
    seen = set()

    def told(*words: str) -> Any:
        answer = run.json(*words)
        seen.add(max((name for name in TREE if " ".join(words).startswith(name)), key=len))
        return answer

    write("docs/kettles.md", "# Kettles\n\nThe kettle holds one litre and a half.\n")
    file, exported = str(write("note.txt", "The meter is read in June.")), str(write("out.jsonl", ""))
    told("version")
    id_ = told("add", "The spare key is under the pot.", "--user", "mara", "--tag", "house")["memory"]["id"]
    fact = told("add", FACT, "--kind", "fact", "--user", "mara")["memory"]["id"]
    told("update", id_, "--importance", "3", "--occurred-at", "2026-03-31T23:30:00Z")
    assert told("get", id_)["data"][0]["importance"] == 3
    assert [one["id"] for one in told("list", "--kind", "note", "--tag", "house")["data"]] == [id_]
    assert not told("list", "--until", "2020-01-01")["data"]
    assert told("list", "--limit", "1", "--order", "asc", "--scope", "user:mara")["has_more"]
    assert told("search", "key")["results"]
    told("context", "Where is the key?")
    told("ask", "Where is the key?", "--user", "mara")
    told("stats")
    told("duplicates")
    assert told("facets", "--limit", "1")["scopes"] == [{"value": "user:mara", "count": 2}]
    for zone, month in ((), "2026-03"), (("--time-zone", "Asia/Tokyo"), "2026-04"):
        assert month in [one["value"] for one in told("facets", *zone)["months"]]
    assert told("facts", "timeline", "--text", "nothing")["data"] == []

    spoon = told("add", "The spoon is silver.")["memory"]["id"]
    assert spoon in [one["id"] for one in told("memories")["data"]]
    assert told("memories", "pin", spoon)["pinned"]
    assert not told("memories", "unpin", spoon)["pinned"]
    assert told("memories", "show", spoon)["content"] == "The spoon is silver."
    assert told("memories", "delete", spoon)["deleted"]

    said = told(
        "sessions", "add", "s1", "I prefer green tea.", "--speaker", "Mara", "--user", "mara", "--extract"
    )
    message = said["message"]["id"]
    assert [one["id"] for one in told("sessions")["data"]] == ["s1"]
    assert [one["id"] for one in told("sessions", "list", "--participant", "Mara")["data"]] == ["s1"]
    assert told("sessions", "show", "s1")["message_count"] == 1
    assert [one["id"] for one in told("sessions", "messages", "s1")["data"]] == [message]
    told("sessions", "update-message", "s1", message, "I prefer black tea.")
    told("facts", "extract", "s1")
    assert {one["content"] for one in told("facts")["data"]} == {FACT, "Mara: I prefer black tea."}
    assert told("facts", "list", "--tag", "preference")["data"]
    assert told("facts", "history", fact)["data"][0]["live"]
    assert told("facts", "confirm", fact)["confidence"] == 1.0
    assert told("facts", "undo", fact)["undone"] is None
    told("facts", "consolidate")
    told("facts", "sweep")
    told("sessions", "summarize", "s1")
    told("sessions", "close", "s1")
    told("sessions", "delete-message", "s1", message)
    told("sessions", "add", "s2", "It rains.")
    told("sessions", "delete", "s2")

    told("index", "docs")
    assert (
        [one["name"] for one in told("stores")]
        == [one["name"] for one in told("stores", "list")]
        == ["documents"]
    )
    told("stores", "show", "documents")
    (kettles,) = told("stores", "files", "documents")
    assert "one litre" in told("stores", "text", "documents", kettles["id"])["text"]
    told("stores", "create", "empty")
    assert told("stores", "update", "empty", "--description", "nothing")["name"] == "empty"
    told("stores", "detach", "documents", kettles["id"])
    uploaded = told("files", "upload", file)["id"]
    assert {one["id"] for one in told("files")["data"]} == {uploaded, kettles["id"]}
    assert told("files", "list", "--limit", "1")["has_more"]
    assert told("files", "show", uploaded)["filename"] == "note.txt"
    told("files", "download", uploaded, "--output", "again.txt")
    assert Path("again.txt").read_text() == "The meter is read in June."
    assert run("files", "download", uploaded).stdout == "The meter is read in June."
    assert told("files", "delete", uploaded, kettles["id"])["deleted"] == [uploaded, kettles["id"]]
    told("stores", "delete", "documents")

    asked = told("ask", "Where is the key?", "--session", "s3")["id"]
    assert [one["question"] for one in told("responses")["data"]] == ["Where is the key?"]
    assert [one["id"] for one in told("responses", "list", "--status", "completed")["data"]] == [asked]
    assert told("responses", "show", asked)["status"] == "completed"
    assert told("responses", "delete", asked)["deleted"]

    agent = told("agents", "create", "Support", "--instructions", "Be brief.")["id"]
    assert told("agents", "update", agent, "--name", "Desk")["instructions"] == "Be brief."
    assert told("agents", "show", "Desk")["id"] == agent
    assert [one["id"] for one in told("agents")["data"]] == [agent]
    assert not told("agents", "list", "--order", "asc")["has_more"]
    assert told("agents", "delete", "Desk")["deleted"]

    store = told("memory-stores", "create", "Prefs")["id"]
    assert told("memory-stores", "update", "Prefs", "--description", "reports")["id"] == store
    assert told("memory-stores", "show", "Prefs")["description"] == "reports"
    written = told("memory-stores", "write-memory", "Prefs", "/a.md", "Metric.")["id"]
    assert told("memory-stores", "show-memory", "Prefs", "/a.md")["content"] == "Metric."
    assert [one["id"] for one in told("memory-stores", "memories", "Prefs")["data"]] == [written]
    assert told("memory-stores", "archive", "Prefs")["archived_at"]
    assert told("memory-stores") == {"data": [], "next_page": None}
    assert [one["id"] for one in told("memory-stores", "list", "--archived")["data"]] == [store]
    assert told("memory-stores", "delete-memory", "Prefs", "/a.md") == {"id": written, "deleted": True}
    assert told("memory-stores", "delete", "Prefs") == {"id": store, "deleted": True}

    told("export", "--output", exported)
    told("import", exported)
    told("backfill")
    for what in ("embeddings", "summaries", "query-logs"):
        told("backfill", what)
    (job, *_) = told("jobs")
    assert told("jobs", "list", "--limit", "1") == [job]
    assert told("jobs", "show", job["id"]) == told("jobs", "cancel", job["id"]) == job
    told("usage")
    assert told("quotas")["quotas"]["max_stores"] == 1000
    told("switches")
    told("compact")
    preview = told("forget", "--text", "spare KEY")
    assert (preview["dry_run"], preview["counts"]) == (True, {"memories": 1})
    assert preview["kinds"][0]["examples"][0]["id"] == id_
    assert told("forget", "--text", "spare KEY", "--yes")["memories"] == 1
    assert run("get", id_).exit_code == 1
    assert told("delete", fact)["deleted"] == [fact]
    told("reindex")
    return seen


def test_every_command_that_prints_data_has_json(run: Any, write: Callable[[str, str], Path]) -> None:
    assert walk(run, write) == TREE.keys() - NO_DATA - ELSEWHERE


@pytest.mark.slow
def test_through_a_server_the_same(served: Any, write: Callable[[str, str], Path]) -> None:
    assert walk(served, write) == TREE.keys() - NO_DATA - ELSEWHERE
