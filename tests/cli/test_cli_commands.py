"""add, search, stats, export, import, compact, reindex: what they answer, and how they refuse."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.app.maintenance import Maintenance
from memoranda.cli.new_folder import remove_unused
from memoranda.cli.serve import welcome
from memoranda.client import Client
from memoranda.config import load
from memoranda.memory_stores.values import StoreMemory
from memoranda.store import index_sync
from support.exports import undated
from support.server_process import Process


def test_add_then_search(run: Any) -> None:
    added = run.json("add", "The spare key is under the blue pot.", "--tag", "house", "--meta", "level=3")
    assert added["created"]
    assert added["embedded"]
    assert added["memory"]["metadata"] == {"level": 3}
    found = run.json("search", "where is the spare key?")
    assert found["results"][0]["memory"]["id"] == added["memory"]["id"]
    assert 0 <= found["results"][0]["score"] <= 1


def test_a_memory_is_shown_pinned_and_deleted(run: Any) -> None:
    id_ = run.json("add", "The spare key is under the blue pot.")["memory"]["id"]
    assert run.json("memories", "pin", id_)["pinned"]
    assert "pinned" in run("memories", "show", id_).stdout
    assert [one["id"] for one in run.json("memories")["data"]] == [id_]
    assert not run.json("memories", "unpin", id_)["pinned"]
    assert run("memories", "delete", id_).stdout == f"{id_}  deleted\n"
    assert run("memories", "show", id_).exit_code == 1


def test_a_command_waits_for_the_words_that_are_filled_in_the_background(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.json("add", "The spare key is under the blue pot.")
    shutil.rmtree(tmp_path / "memoranda-data" / "words-tantivy")
    monkeypatch.setattr(index_sync, "FEW", 0)

    async def held(upkeep: Maintenance) -> None:
        """Fill nothing: the index is behind when the command looks."""

    monkeypatch.setattr(Maintenance, "_fill", held)
    found = run("search", "pot", "--mode", "keyword", "--json")
    assert "bringing them up to date" in found.stderr
    answer = json.loads(found.stdout)
    assert (len(answer["results"]), answer["degraded"]) == (1, [])
    assert "bringing" not in run("search", "pot").stderr


def test_the_same_text_is_stored_once(run: Any) -> None:
    first = run.json("add", "once")
    again = run.json("add", "once")
    assert not again["created"]
    assert again["memory"]["id"] == first["memory"]["id"]
    assert "was there already" in run("add", "once").stdout


def test_add_reads_standard_input_and_every_field(run: Any) -> None:
    words = (
        "--kind",
        "message",
        "--user",
        "u",
        "--agent",
        "a",
        "--channel",
        "c",
        "--session",
        "s",
        "--role",
        "user",
    )
    given = "\ufeffÜber den Bächen\n".encode()
    memory = run.json("add", "-", *words, "--occurred-at", "2026-05-01T09:00:00+02:00", given=given)["memory"]
    assert memory["content"] == "Über den Bächen\n"
    assert [memory[f"{name}_id"] for name in ("user", "agent", "channel", "session")] == ["u", "a", "c", "s"]
    assert (memory["kind"], memory["role"]) == ("message", "user")
    assert memory["occurred_at"] == "2026-05-01T09:00:00+02:00"


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["add", "-"], "TEXT"),
        (["sessions", "add", "talk", "-"], "TEXT"),
        (["agents", "create", "Desk", "--instructions", "-"], "--instructions"),
        (["memory-stores", "write-memory", "Preferences", "/note.md", "-"], "TEXT"),
    ],
)
def test_standard_input_is_read_as_utf_8_without_changes(run: Any, words: list[str], name: str) -> None:
    run.json("memory-stores", "create", "Preferences")
    refused = run(*words, given=b"\xff\xfe")
    assert (refused.exit_code, refused.stderr) == (
        2,
        f"memoranda: {name}: standard input is not UTF-8 text\n",
    )
    run.json(*words, given="\ufeffÜber\r\nden Bächen\n".encode())
    with memoranda.open("memoranda-data") as product:
        kept = [
            *(memory.content for memory in product.memories.list().data),
            *(profile.instructions for profile in product.agents.list().data),
            *(
                item.content
                for store in product.memory_stores.list().data
                for item in product.memory_stores.memories(store.id).list(view="full").data
                if isinstance(item, StoreMemory)
            ),
        ]
    assert "Über\r\nden Bächen\n" in kept


def test_scope_flags_choose_where_to_look(run: Any) -> None:
    run.json("add", "the code is 1234", "--session", "s1")
    run.json("add", "the code is 5678", "--session", "s2")
    run.json("add", "the code is 9999")

    def codes(*words: str) -> set[str]:
        return {hit["memory"]["content"][-4:] for hit in run.json("search", "code", *words)["results"]}

    assert codes("--scope", "session", "--scope-id", "s1") == {"1234"}
    assert codes("--scope", "session:s2") == {"5678"}
    assert codes("--scope", "global") == {"9999"}
    assert codes("--scopes", "session:s1", "--scopes", "global") == {"1234", "9999"}
    assert codes("--scope", "all") == {"1234", "5678", "9999"}
    run.json("add", "the code is 7777", "--user", "ada")
    assert codes("--user", "ada") == codes("--scope", "user", "--scope-id", "ada") == {"7777"}
    assert len(codes("--limit", "1")) == 1


def test_user_selects_the_memories_of_a_user_in_every_command(run: Any) -> None:
    run.json("add", "Ada has a dog", "--kind", "fact", "--user", "ada")
    run.json("add", "Bob has a cat", "--kind", "fact", "--user", "bob")
    run.json("add", "The dog and the cat eat at six", "--kind", "fact")
    for words in (
        ["search", "dog cat"], ["list"], ["context", "dog cat"], ["facts", "list"], ["facts", "timeline"], ["forget"],
    ):  # fmt: skip
        shown = run(*words, "--user", "ada")
        assert shown.exit_code == 0, (words, shown.stderr)
        assert shown.stdout == run(*words, "--scope", "user", "--scope-id", "ada").stdout, words
        assert "Ada has a dog" in shown.stdout, words
        assert "Bob" not in shown.stdout, words
        assert "eat at six" not in shown.stdout, words
    exported = run("export", "--user", "ada").stdout
    assert "Ada has a dog" in exported
    assert "Bob" not in exported
    assert "eat at six" not in exported
    assert run.json("facets", "--user", "ada")["total"] == 1
    assert run.json("stats", "--user", "ada") == run.json("stats", "--scope", "user:ada")
    assert run.json("duplicates", "--user", "ada")["compared"] == 1
    run.json("forget", "--user", "ada", "--yes")
    assert {one["content"][:3] for one in run.json("list")["data"]} == {"Bob", "The"}


def test_filters_tags_kinds_and_modes(run: Any) -> None:
    run.json("add", "red apple", "--meta", "n=1", "--tag", "fruit")
    run.json("add", "green apple", "--meta", "n=2", "--tag", "fruit", "--tag", "sour", "--kind", "fact")

    def found(*words: str) -> list[str]:
        return sorted(hit["memory"]["content"] for hit in run.json("search", "apple", *words)["results"])

    assert found("--filter", '{"type": "gt", "key": "n", "value": 1}') == ["green apple"]
    assert found("--tag", "fruit", "--tag", "sour") == ["green apple"]
    assert found("--kind", "note") == ["red apple"]
    assert found("--mode", "keyword") == ["green apple", "red apple"]


def test_search_in_a_time_and_in_the_archive(run: Any) -> None:
    run.json("add", "red apple", "--occurred-at", "2026-03-01")
    old = run.json("add", "green apple", "--occurred-at", "2026-01-01")["memory"]["id"]

    def found(*words: str) -> list[str]:
        return sorted(hit["memory"]["content"] for hit in run.json("search", "apple", *words)["results"])

    assert found("--since", "2026-02-01") == ["red apple"]
    assert found("--until", "2026-02-01") == ["green apple"]
    run.json("update", old, "--archive")
    assert found() == ["red apple"]
    assert found("--archived") == ["green apple", "red apple"]


def test_explain_shows_every_part_of_the_score(run: Any) -> None:
    run.json("add", "red apple")
    shown = run("search", "apple", "--explain").stdout
    assert re.match(r" 1\. score 0\.9\d\d ", shown)
    for part in ("cosine", "similarity", "bm25", "dense_rank", "words_rank", "weights", "fused", "formula"):
        assert f"      {part}" in shown


def test_stored_text_does_not_steer_the_terminal(run: Any) -> None:
    run.json("add", "evil \x1b]0;title\x07 apple \x1b[2J")
    shown = run("search", "apple").stdout
    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_stats_count_by_scope(run: Any) -> None:
    run.json("add", "one", "--session", "s1")
    run.json("add", "two", "--session", "s1", "--kind", "fact")
    run.json("add", "three")
    assert run.json("stats")["memories"] == 3
    expected = {"scope": "session:s1", "memories": 2, "characters": 6, "by_kind": {"fact": 1, "note": 1}}
    assert run.json("stats", "--scope", "session", "--scope-id", "s1") == expected
    assert run.json("stats", "--scope", "session") == expected | {"scope": "session"}
    assert run("export", "--scope", "session").stdout.count('"session_id":"s1"') == 2
    assert "memories" in run("stats").stdout


@pytest.mark.parametrize("vectors", [[], ["--vectors"]])
def test_export_and_import_round_trip(run: Any, vectors: list[str], tmp_path: Path) -> None:
    run.json("add", "one", "--session", "s1", "--tag", "x", "--meta", 'deep={"a": [1]}')
    run.json("add", "two", "--user", "u1")
    receipt = run.json("export", "--output", "out.jsonl", *vectors)
    assert receipt == {"memories": 2, "output": "out.jsonl"}
    assert run.json("import", "out.jsonl", "--data", "other")["created"] == 2
    assert run.json("import", "out.jsonl", "--data", "other") == {
        "read": 2, "created": 0, "present": 2, "conflicts": [], "forgotten": [],
    }  # fmt: skip
    streamed = run("export", *vectors).stdout
    assert undated(streamed.encode()) == undated((tmp_path / "out.jsonl").read_bytes())
    imported = streamed.replace('"origin":"user"', '"origin":"import"')
    again = run("export", *vectors, "--data", "other").stdout
    assert undated(again.encode()) == undated(imported.encode())


def test_import_into_a_scope_from_standard_input(run: Any) -> None:
    run.json("add", "one", "--session", "s1")
    out = run("export").stdout
    assert (
        run.json("import", "-", "--scope", "user", "--scope-id", "u9", "--data", "other", given=out)[
            "created"
        ]
        == 1
    )
    assert run.json("stats", "--scope", "user:u9", "--data", "other")["memories"] == 1
    assert run.json("stats", "--scope", "session:s1", "--data", "other")["memories"] == 0


def test_import_names_ids_that_it_left_alone(run: Any, tmp_path: Path) -> None:
    id_ = run.json("add", "one")["memory"]["id"]
    (tmp_path / "other.jsonl").write_text(json.dumps({"id": id_, "content": "another text"}) + "\n")
    result = run("import", "other.jsonl")
    assert result.exit_code == 1
    assert id_ in result.stderr


def test_a_store_is_changed(run: Any) -> None:
    run.json("stores", "create", "manuals", "--description", "of machines")
    words = ("--name", "books", "--expires-after-days", "7", "--sharing", "tenant")
    changed = run.json("stores", "update", "manuals", *words, "--writer", "a", "--writer", "b")
    assert (changed["name"], changed["description"]) == ("books", "of machines")
    assert (changed["expires_after_days"], changed["sharing"]) == (7, "tenant")
    assert changed["writers"] == ["a", "b"]
    changed = run.json("stores", "update", "books", "--never-expires", "--no-writers")
    assert (changed["expires_after_days"], changed["sharing"], changed["writers"]) == (None, "tenant", [])
    assert "books" in run("stores", "update", "books", "--sharing", "private").stdout


@pytest.mark.parametrize("calls", ["run", pytest.param("served", marks=pytest.mark.slow)])
def test_quotas_are_shown_and_set_for_a_tenant(calls: str, request: pytest.FixtureRequest) -> None:
    run = request.getfixturevalue(calls)
    run.json("stores", "create", "manuals")
    changes = ("--quota", "max_stores=1", "--quota", "max_entries=7")
    report = run.json("quotas", *changes)
    assert (report["quotas"]["max_stores"], report["quotas"]["max_entries"]) == (1, 7)
    assert report["usage"]["stores"] == 1
    assert run.json("quotas") == report
    assert "  max_stores           1\n" in run("quotas").stdout
    refused = run("stores", "create", "books")
    assert (refused.exit_code, "max_stores" in refused.stderr) == (2, True)
    other = run.json("quotas", "--tenant", "acme")
    assert (other["quotas"]["max_stores"], other["usage"]["stores"]) == (1000, 0)
    reset = run.json("quotas", "--quota", "max_stores=null", "--quota", "max_entries=null")
    assert reset["quotas"] == other["quotas"]


def test_a_served_folder_is_used_as_the_admin_of_the_default_tenant(run: Any, tmp_path: Path) -> None:
    keys: list[dict[str, str]] = [
        {"name": "acme", "role": "admin", "key": "of-acme", "tenant": "acme"},
        {"name": "ada", "role": "admin", "key": "of-ada", "user": "ada"},
        {"name": "ops", "role": "admin", "key": "of-ops"},
    ]
    server = Process(tmp_path / "memoranda-data", {"keys": keys})
    try:
        (tmp_path / "memoranda.yaml").write_text(json.dumps({"keys": keys}))
        run.json("memory-stores", "create", "Preferences")
        assert run.json("add", "one")["memory"]["user_id"] is None
        (tmp_path / "memoranda.yaml").write_text(json.dumps({"keys": keys[:1]}))
        refused = run("memory-stores")
        with Client(server.url, "of-acme") as acme, Client(server.url, "of-ops") as operator:
            assert acme.memory_stores.list().data == []
            assert [store.name for store in operator.memory_stores.list().data] == ["Preferences"]
    finally:
        server.end()
    assert refused.exit_code == 2
    assert "keys: none has role admin in tenant 'default'" in refused.stderr


def test_reindex_and_compact_end(run: Any) -> None:
    run.json("add", "one")
    assert run.json("reindex")["state"] == "completed"
    assert run.json("reindex", "--all")["result"]["embedded"] == 1
    assert run.json("reindex", "--rebuild") == {"index": 1, "words": 1}
    assert run.json("compact")["state"] == "completed"
    assert run.json("search", "one")["results"]


def test_a_failed_job_is_retried(run: Any) -> None:
    run("add", "something")
    id_ = run.json("compact")["id"]
    refused = run("jobs", "retry", id_)
    assert (refused.exit_code, refused.stderr) == (
        1,
        f"memoranda: job '{id_}' is completed; only a failed job can be retried\n",
    )
    with contextlib.closing(sqlite3.connect(Path("memoranda-data") / "memoranda.db")) as db, db:
        db.execute("UPDATE jobs SET state = 'failed', error = 'the disk was full' WHERE id = ?", [id_])
    assert "failed" in run("jobs").stdout
    assert "the disk was full" in run("jobs", "show", id_).stdout
    again = run.json("jobs", "retry", id_)
    assert (again["id"], again["state"], again["error"]) == (id_, "completed", None)


def test_another_model_is_made_by_reindex(run: Any) -> None:
    run.json("add", "one apple")
    other = ("--set", "embedder.url=hash:32")
    assert run.json("stats", *other)["unembedded"] == 1
    assert run.json("reindex", *other)["result"]["embedded"] == 1
    told = run.json("stats", *other)
    assert (told["unembedded"], told["vectors"], told["model"]) == (0, 1, "hash-32")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["search"], 2, "QUERY: is missing; add it after memoranda search"),
        (["nonsense"], 2, "there is no command 'nonsense'; memoranda --help lists the commands"),
        (["serch", "x"], 2, "did you mean 'search'?"),
        (["histry", "x"], 2, "did you mean 'facts history'?"),
        (["stores", "fils"], 2, "there is no command 'fils'; did you mean 'memoranda stores files'?"),
        (["--bogus"], 2, "--bogus: there is no such option; memoranda --help"),
        (["--data", "here", "add", "x"], 2, "--data: goes after the command; write memoranda COMMAND --data"),
        (["search", "x", "--limt", "5"], 2, "--limt: there is no such option; did you mean --limit?"),
        (["search", "x", "--agent", "mara"], 2, "--agent: there is no such option; write --scope agent:ID"),
        (["forget", "--session", "s1"], 2, "--session: there is no such option; write --scope session:ID"),
        (["search", "x", "--limit"], 2, "--limit: needs a value"),
        (["search", "x", "--explain=3"], 2, "--explain: takes no value"),
        (["search", "x", "--limit", "abc"], 2, "--limit: 'abc' is not a whole number; write --limit 5"),
        (["search", "x", "--threshold", "q"], 2, "--threshold: 'q' is not a number; write --threshold 0.5"),
        (
            ["search", "x", "--mode", "odd"],
            2,
            "--mode: 'odd' is not known; use one of hybrid, dense, keyword, words",
        ),
        (
            ["eval", "--mode", "odd"],
            2,
            "--mode: 'odd' is not known; use one of hybrid, dense, keyword, words, all",
        ),
        (
            ["eval", "contexts", "x", "--with", "odd"],
            2,
            "--with: 'odd' is not known; use one of facts, summaries",
        ),
        (["add", "two", "words"], 2, "'words' is not expected; put quotes around"),
        (["list", "--limit", "0"], 2, "--limit: must be a whole number between 1 and 1000"),
        (["list", "--after", "nope"], 2, "--after: 'nope' is no memory"),
        (["get", "nope"], 1, "no memory 'nope'"),
        (["update", "nope"], 2, "name what to change"),
        (["forget"], 2, "name what to forget"),
        (["forget", "nope", "--text", "x"], 2, "ID: goes alone, without text"),
        (["facts", "history", "nope"], 1, "no memory 'nope'"),
        (["sessions", "show", "nope"], 1, "no session 'nope'"),
        (["sessions", "list", "--status", "odd"], 2, "--status"),
        (["files", "upload", "nope"], 2, "PATH: nope is not a file"),
        (["files", "delete", "nope"], 1, "no file 'nope'"),
        (["files", "download", "nope", "--output", "never"], 1, "no file 'nope'"),
        (["search", "x", "--scope", "session"], 2, "add --scope-id ID"),
        (["search", "x", "--scope", "planet"], 2, "'planet' is no scope"),
        (["search", "x", "--scope-id", "s"], 2, "needs --scope"),
        (["search", "x", "--scope", "global", "--scope-id", "s"], 2, "leave it out"),
        (["search", "x", "--scope", "global", "--scopes", "all"], 2, "does not go with --scope"),
        (["search", "x", "--user", "ada", "--scopes", "all"], 2, "does not go with --scope or --user"),
        (["search", "x", "--user", "ada", "--store", "s"], 2, "--user: is for memories"),
        (["list", "--user", "ada", "--scope", "global"], 2, "--user: is a scope itself"),
        (["forget", "--user", "ada", "--scope-id", "s"], 2, "--user: is a scope itself"),
        (["index", ".", "--scope", "all"], 2, "'all' is no scope here"),
        (["search", "x", "--limit", "0"], 2, "limit: must be between 1 and"),
        (["search", "x", "--threshold", "2"], 2, "threshold: must be between 0 and 1"),
        (["search", "x", "--filter", "{"], 2, "--filter: is not a JSON object"),
        (["search", "x", "--kind", "poem"], 2, "note"),
        (["search", "x", "--since", "yesterday"], 2, "--since: 'yesterday' is no ISO 8601 moment"),
        (["search", "x", "--store", "nope", "--until", "2026-01-01"], 2, "--until: is for memories"),
        (["search", "x", "--store", "nope", "--archived"], 2, "--archived: is for memories"),
        (["search", " "], 2, "QUERY: must hold some text"),
        (["ask", ""], 2, "QUESTION: must hold some text"),
        (["ask", " ", "--session", "s1"], 2, "QUESTION: must hold some text"),
        (["context", " "], 2, "QUESTION: must hold some text"),
        (["add", "x", "--meta", "level"], 2, "'level' is not key=value"),
        (["add", "x", "--occurred-at", "yesterday"], 2, "ISO 8601"),
        (["add", "  "], 2, "memoranda: TEXT: must hold some text"),
        (["sessions", "add", "s", "  "], 2, "memoranda: TEXT: must hold some text"),
        (["stats", "--set", "embeder.url=hash:64"], 2, "did you mean `embedder`"),
        (["stats", "--config", "missing.yaml"], 2, "missing.yaml"),
        (["index", "missing"], 2, "is not there"),
        (["index", ".", "--scope", "global", "--chunk-size", "10", "--chunk-overlap", "10"], 2, "is 10"),
        (["index", ".", "--chunk-size", "10", "--chunk-overlap", "6"], 2, "--chunk-overlap: must be between"),
        (["index", ".", "--chunk-size", "0"], 2, "--chunk-size: must be between"),
        (["index", ".", "--scope", "global", "--store", "x"], 2, "does not go with --scope"),
        (["index", ".", "--scope", "global", "--meta", "a=1"], 2, "does not go with --scope"),
        (["index", ".", "--tag", "x"], 2, "files in a store take --meta"),
        (["index", ".", "--store", "vs_nope"], 1, "no vector store 'vs_nope'; memoranda stores lists them"),
        (["index", ".", "--meta", "a=[1]"], 2, "attributes.a: must be a string, a number"),
        (["search", "x", "--store", "nope"], 1, "no vector store is named 'nope'; there are: none"),
        (["search", "x", "--store", "nope", "--tag", "t"], 2, "does not go with --store"),
        (["stores", "files", "nope"], 1, "no vector store is named 'nope'"),
        (["stores", "files", "nope", "--state", "odd"], 2, "--state: use one of in_progress, completed"),
        (["stores", "update", "nope"], 2, "name what to change, such as --name NAME"),
        (["stores", "update", "nope", "--name", "x"], 1, "no vector store is named 'nope'"),
        (["stores", "update", "x", "--expires-after-days", "0"], 2, "--expires-after-days: must be a whole"),
        (["stores", "update", "x", "--sharing", "odd"], 2, "use one of private, tenant, everyone"),
        (["stores", "update", "x", "--never-expires", "--expires-after-days", "1"], 2, "leave one out"),
        (["stores", "update", "x", "--no-writers", "--writer", "a"], 2, "leave one out"),
        (["stores", "delete", "nope"], 1, "no vector store is named 'nope'"),
        (["stores", "--set", "a=b", "files", "nope"], 2, "options go after 'files'"),
        (["import", "missing.jsonl"], 2, "cannot be read"),
        (["export", "--output", "no/such/folder/x"], 1, "could not be written"),
        (["add", "x", "--data", "/dev/null/x"], 1, "cannot be used as a data folder"),
        (["reindex", "--rebuild", "--all"], 2, "goes alone"),
        (["jobs", "show", "nope"], 1, "no job 'nope'"),
        (["jobs", "retry", "nope"], 1, "no job 'nope'"),
        (["jobs", "--limit", "0"], 2, "--limit"),
        (
            ["responses", "show", "nope"],
            1,
            "Response with id 'nope' not found; memoranda responses lists the ids",
        ),
        (
            ["responses", "cancel", "nope"],
            1,
            "Response with id 'nope' not found; memoranda responses lists the ids",
        ),
        (
            ["responses", "delete", "nope"],
            1,
            "Response with id 'nope' not found; memoranda responses lists the ids",
        ),
        (["responses", "list", "--status", "odd"], 2, "--status: must be one of queued, in_progress"),
        (["responses", "list", "--after", "nope"], 2, "--after: 'nope'"),
        (["conversations"], 2, "name a command, such as memoranda conversations show ID"),
        (["conversations", "show", "nope"], 1, "'nope' not found; memoranda responses list --json has"),
        (["conversations", "items", "nope"], 1, "'nope' not found; memoranda responses list --json has"),
        (["conversations", "delete", "nope"], 1, "'nope' not found; memoranda responses list --json has"),
        (["memory-stores", "show", "nope"], 1, "no memory store is named 'nope'; there are: none"),
        (["memory-stores", "delete", "memstore_1"], 1, "'memstore_1'; memoranda memory-stores lists them"),
        (["memory-stores", "list", "--limit", "0"], 2, "--limit: must be a whole number between 1 and 100"),
        (["memory-stores", "list", "--page", "x"], 2, "--page: is no page of this list"),
        (["memory-stores", "create", ""], 2, "NAME: must be 1 to 255 characters"),
        (["memory-stores", "create", "x", "--metadata", "{"], 2, "--metadata: is not a JSON object"),
        (["memory-stores", "update", "nope"], 2, "name what to change, such as --name NAME"),
        (["quotas", "--quota", "max_stores"], 2, "--quota: 'max_stores' is not NAME=NUMBER or NAME=null"),
        (["quotas", "--quota", "odd=1"], 2, "--quota odd: is no quota; use max_storage_bytes"),
        (["quotas", "--quota", "max_stores=-1"], 2, "--quota max_stores: must be a whole number"),
        (["usage", "--limit", "odd=1"], 2, "--limit odd: is no limit of spending; use model_calls_per_day"),
        (["agents", "show", "nope"], 1, "no agent is named 'nope'; there are: none"),
        (["agents", "delete", "nope"], 1, "no agent is named 'nope'"),
        (["agents", "update", "nope"], 2, "name what to change, such as --instructions TEXT"),
        (["agents", "create", "a", "--id", "b"], 2, "--id: must be agent_ and then up to 64 letters"),
        (["agents", "create", " "], 2, "NAME: must"),
        (["agents", "create", "a", "--fields", "[]"], 2, "--fields: is not a JSON object"),
        (["agents", "create", "a", "--fields", '{"colour": 1}'], 2, "colour"),
    ],
)
@pytest.mark.usefixtures("empty_folder")
def test_errors_are_sentences(run: Any, words: list[str], code: int, said: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("some text")
    result = run(*words)
    assert result.exit_code == code, result.stderr
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stderr.startswith("memoranda: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


@pytest.mark.parametrize(
    "words",
    [
        ["search", "key"],
        ["search", "key", "--json"],
        ["search", "key", "--store", "manuals"],
        ["ask", "key"],
        ["context", "key"],
        ["get", "mem_1"],
        ["list"],
        ["facets"],
        ["duplicates"],
        ["stats"],
        ["export"],
        ["export", "--output", "all.zip"],
        ["forget", "--scope", "all"],
        ["forget", "--scope", "all", "--yes"],
        ["stores"],
        ["files", "list"],
        ["sessions"],
        ["facts", "timeline"],
        ["backfill"],
        ["usage"],
        ["switches"],
        ["update", "mem_1", "--content", "text"],
        ["delete", "mem_1", "mem_2"],
        ["facts", "extract", "s1"],
        ["facts", "consolidate"],
        ["facts", "confirm", "mem_1"],
        ["facts", "undo", "mem_1"],
        ["facts", "sweep"],
        ["sessions", "summarize", "s1"],
        ["sessions", "close", "s1"],
        ["sessions", "delete", "s1"],
        ["sessions", "update-message", "s1", "msg_1", "text"],
        ["sessions", "delete-message", "s1", "msg_1"],
        ["files", "delete", "file_1", "file_2"],
        ["stores", "attach", "manuals", "file_1"],
        ["stores", "detach", "manuals", "file_1"],
        ["stores", "update", "manuals", "--name", "books"],
        ["stores", "delete", "manuals"],
        ["reindex"],
        ["reindex", "--all"],
        ["reindex", "--rebuild"],
        ["reindex", "--to", "memory:"],
        ["backfill", "embeddings"],
        ["backfill", "summaries"],
        ["backfill", "query-logs"],
        ["jobs"],
        ["jobs", "retry", "job_1"],
        ["jobs", "cancel", "job_1"],
        ["responses"],
        ["responses", "cancel", "resp_1"],
        ["responses", "delete", "resp_1"],
        ["conversations", "show", "conv_1"],
        ["conversations", "items", "conv_1"],
        ["conversations", "delete", "conv_1"],
        ["agents"],
        ["agents", "show", "support"],
        ["agents", "update", "support", "--model", "small"],
        ["agents", "delete", "support"],
        ["memory-stores"],
        ["memory-stores", "delete", "preferences"],
        ["memory-stores", "write-memory", "preferences", "/a.md", "text"],
        ["quotas"],
        ["compact"],
    ],
)
def test_a_command_on_existing_rows_creates_no_folder(run: Any, words: list[str], tmp_path: Path) -> None:
    failed = run(*words, "--data", "mistyped")
    assert failed.exit_code == 1
    assert failed.stdout == ""
    assert failed.stderr == (
        "memoranda: there is no data folder at mistyped yet; name another with --data, or make it with"
        " memoranda add, index, import or serve\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ["add", ""],
        ["add", "x", "--tag", ""],
        ["add", "x", "--kind", "fact", "--replaces", "nope"],
        ["add", "x", "--set", "embedder.url=local:nothing"],
        ["sessions", "add", "", "text"],
        ["memory-stores", "create", ""],
        ["index", "text.txt", "--scope", "global", "--chunk-size", "0"],
        ["import", "bad.jsonl"],
        ["quotas", "--quota", "max_stores=-1"],
        ["usage", "--limit", "nothing=1"],
    ],
    ids=" ".join,
)
def test_a_refused_command_leaves_no_folder(run: Any, tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "text.txt").write_text("a text")
    (tmp_path / "bad.jsonl").write_text('{"content": ""}\n')
    before = sorted(tmp_path.iterdir())
    result = run(*words, "--data", "new/data")
    assert result.exit_code in (1, 2)
    assert result.stderr.startswith("memoranda: ")
    assert sorted(tmp_path.iterdir()) == before


def test_a_folder_with_anything_in_it_stays_when_a_command_is_refused(run: Any, tmp_path: Path) -> None:
    (tmp_path / "half.jsonl").write_text('{"content": "kept"}\n{"content": ""}\n')
    assert run("import", "half.jsonl", "--data", "half").exit_code == 2
    (kept,) = run.json("list", "--data", "half")["data"]
    assert kept["content"] == "kept"
    (tmp_path / "mine" / "notes").mkdir(parents=True)
    assert run("add", "", "--data", "mine").exit_code == 2
    assert (tmp_path / "mine" / "notes").is_dir()


def test_a_new_folder_in_use_or_with_files_of_others_is_not_removed(tmp_path: Path) -> None:
    with memoranda.open(tmp_path / "data", embedder={"url": "hash:64"}):
        remove_unused([tmp_path / "data"])
        assert (tmp_path / "data").is_dir()
    (tmp_path / "data" / "mine.txt").write_text("mine")
    remove_unused([tmp_path / "data"])
    assert (tmp_path / "data" / "mine.txt").read_text() == "mine"
    (tmp_path / "data" / "mine.txt").unlink()
    remove_unused([tmp_path / "data", tmp_path])
    assert not tmp_path.exists()


def test_a_command_on_existing_rows_needs_a_database_only_where_one_is_kept(run: Any, tmp_path: Path) -> None:
    assert run("search", "key", "--data", ":memory:").exit_code == 0
    (tmp_path / "new").mkdir()
    assert "there is no data folder at new" in run("list", "--data", "new").stderr
    (tmp_path / "new" / "files").mkdir()
    (tmp_path / "new" / "files" / "upload").write_text("bytes")
    assert "memoranda.db is missing beside files" in run("list", "--data", "new").stderr


@pytest.mark.parametrize(
    "words",
    [
        ["usage", "--limit", "model_calls_per_day=5"],
        ["switches", "--switch", "extraction=off"],
        ["ask", "key", "--session", "s1"],
        ["sessions", "add", "s1", "text"],
        ["files", "upload", "text.txt"],
        ["stores", "create", "manuals"],
        ["agents", "create", "support"],
        ["memory-stores", "create", "preferences"],
        ["quotas", "--quota", "max_stores=5"],
        ["index", "text.txt"],
    ],
)
def test_a_command_that_adds_rows_creates_the_folder(run: Any, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("some text")
    written = run(*words, "--data", "new")
    assert written.exit_code == 0, written.stderr
    assert (tmp_path / "new" / "memoranda.db").exists()
    assert written.stderr.splitlines()[-1] == "made the data folder new"
    assert "made" not in run(*words, "--data", "new").stderr


@pytest.mark.parametrize("enabled", [True, False])
def test_serve_names_the_console_where_there_is_one(enabled: bool) -> None:
    config = load(overrides={"console.enabled": enabled})
    said = welcome("http://127.0.0.1:8377", config).splitlines()
    assert said[0] == "Memoranda serves ./memoranda-data at http://127.0.0.1:8377"
    assert ("The web console is at http://127.0.0.1:8377/console" in said) is enabled


def test_version(run: Any) -> None:
    assert run("--version").stdout == run("version").stdout
    assert run.json("version")["version"] in run("version").stdout


def test_demo_answers_from_the_sample_and_the_documents(run: Any) -> None:
    told = run.json("demo")
    assert told["messages"] == 16
    assert told["files"] > 3
    assert all(answer["best"]["score"] > 0 for answer in told["answers"])
    assert {answer["scope"] for answer in told["answers"]} == {"session:sample", "global"}
    kept = run("demo", "--data", "kept")
    assert "similarity" in kept.stdout
    assert run.json("stats", "--scope", "session:sample", "--data", "kept")["by_kind"] == {"message": 16}
