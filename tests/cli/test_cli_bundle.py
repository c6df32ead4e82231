"""`memoranda export --output x.mem`: a bundle of Portable Memory, and the import of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.app.bundle_files import write_bundle
from memoranda.client import Client
from memoranda.errors import Conflict, StorageError
from memoranda.types import KINDS, Memory
from support.exports import jsonl
from support.fact_reader import reading

VALIDATOR = "portable-memory==0.3.0"
AT = "2026-01-05T09:30:00.123456Z"
LINES = [
    {"id": "n1", "content": " Tea\nat four. ", "kind": "note", "user_id": "ada", "tags": ["tea", "home"]},
    {"id": "n2", "content": "Für alle", "kind": "document", "metadata": {"page": 3, "of": {"a": [1]}}},
    {"id": "m1", "content": "Hello", "kind": "message", "session_id": "s", "user_id": "ada", "role": "user"},
    {"id": "q1", "content": "Why?", "kind": "qa_turn", "channel_id": "c", "agent_id": "bot", "importance": 9},
    {
        "id": "f1", "content": "Ada lives in Rome", "kind": "fact", "user_id": "ada", "confidence": 0.5,
        "valid_from": "2024-01-01T00:00:00Z", "invalid_at": "2025-01-01T00:00:00Z", "superseded_by": "f2",
        "source_refs": ["m1"],
    },
    {
        "id": "f2", "content": "Ada lives in Oslo", "kind": "fact", "user_id": "ada",
        "valid_from": "2025-01-01T00:00:00Z", "metadata": {"extracted_by": "model", "told_until": 3},
    },
    {"id": "a1", "content": "Put away", "kind": "note", "archived_at": AT},
    {"id": "i1", "content": "Entry", "kind": "item"},
]  # fmt: skip
FIELDS = (
    "id", "content", "kind", "user_id", "agent_id", "channel_id", "session_id", "role", "tags", "importance",
    "confidence", "occurred_at", "valid_from", "invalid_at", "source_refs",
)  # fmt: skip


@pytest.fixture
def filled(run: Any, empty_folder: Path) -> Path:
    """A data folder with memories of many kinds and scopes, where commands look for one."""
    with memoranda.open(empty_folder) as r:
        header = {"memoranda_export": 1}
        r.memories.import_from(
            jsonl(header, *({**each, "occurred_at": AT} for each in LINES)).encode().splitlines()
        )
    return empty_folder


def all_of(folder: Path) -> dict[str, Memory]:
    """Every memory of a folder by text, ended ones too."""
    with memoranda.open(folder) as r:
        lines = [json.loads(line) for line in r.memories.export(kinds=list(KINDS))][1:]
        return {line["content"]: r.memories.get(line["id"]) for line in lines}


def test_memories_go_into_a_bundle_and_back(run: Any, filled: Path, tmp_path: Path) -> None:
    kinds = [each for kind in KINDS for each in ("--kind", kind)]
    done = run("export", "-o", "all.mem", *kinds)
    assert done.stdout == "6 memories written to all.mem: 2 facts, 4 others\n"
    assert "1 archived memories are not in the bundle" in done.stderr
    assert "1 memories of the kind item are not in the bundle" in done.stderr
    before = all_of(filled)
    with memoranda.open(tmp_path / "other") as other:
        first = other.import_history("all.mem")
        assert (first.format, first.failed, first.skipped) == ("portable-memory", 0, [])
        assert {kind: tally.created for kind, tally in first.imported.items()} == {
            "note": 1, "document": 1, "message": 1, "qa_turn": 1, "fact": 2
        }  # fmt: skip
        again = other.import_history("all.mem")
        assert {tally.created for tally in again.imported.values()} == {0}
        assert [each.content for each in other.memories.list(kinds=["fact"]).data] == ["Ada lives in Oslo"]
    after = all_of(tmp_path / "other")
    assert after.keys() == before.keys() - {"Put away", "Entry"}
    for content, memory in after.items():
        origin = before[content]
        assert [getattr(memory, key) for key in FIELDS] == [getattr(origin, key) for key in FIELDS]
    assert after["Für alle"].metadata == {"page": 3, "of": {"a": [1]}, "imported_from": "portable-memory"}
    rome = after["Ada lives in Rome"]
    assert (rome.superseded_by, rome.metadata["superseded_by"]) == (None, "f2")
    assert after["Ada lives in Oslo"].metadata["extracted_by"] == "model"
    assert "told_until" not in after["Ada lives in Oslo"].metadata


def test_an_import_into_the_folder_of_origin_changes_nothing(run: Any, filled: Path) -> None:
    with memoranda.open(filled) as r:
        r.sessions.observe([{"role": "user", "content": "Hello again"}], session_id="s2")
    before = all_of(filled)
    run("export", "-o", "all.mem")
    done = run("import", "all.mem")
    assert done.exit_code == 1
    assert "fact                 2: 0 new, 2 were there already" in done.stdout
    assert "not imported         1  message: is stored already" in done.stdout
    assert all_of(filled) == before


def test_summaries_and_consolidated_facts_are_present_where_they_were_written(
    run: Any, empty_folder: Path, tmp_path: Path
) -> None:
    """Their keys are not those of their texts: they are known by their ids, kinds, texts and scopes."""
    alike = [
        "The project antwort uses Postgres",
        "The project antwort uses Postgres in production",
        "In production, the project antwort utilizes Postgres.",
    ]
    with memoranda.open(empty_folder) as r:
        r.sessions.observe("Hello", session_id="s", user_id="ada")
        r.sessions.save_summary("s", "Ada greets.")
        facts = [{"content": text, "kind": "fact", "user_id": "ada", "occurred_at": AT} for text in alike]
        r.memories.import_from(jsonl({"memoranda_export": 1}, *facts).encode().splitlines())
        with reading(r):
            assert r.facts.consolidate().merged != []
    before = all_of(empty_folder)
    run("export", "-o", "all.mem", "--kind", "session_summary", "--kind", "fact")
    for options in (("--dry-run",), ()):
        done = run("import", "all.mem", *options)
        assert done.exit_code == 0
        assert "session_summary         1: 0 new, 1 were there already" in done.stdout
        assert "fact                 4: 0 new, 4 were there already" in done.stdout
    assert all_of(empty_folder) == before
    with memoranda.open(empty_folder) as r:
        summary = r.memories.list(kinds=["session_summary"]).data[0]
        for text, scope in (("Ada greets.", {}), ("Ada left.", {"user_id": "ada", "session_id": "s"})):
            with pytest.raises(Conflict):
                r.memories.add(text, kind="session_summary", id=summary.id, **scope)


@pytest.mark.usefixtures("filled")
def test_a_bundle_of_a_selection(run: Any) -> None:
    receipt = run.json("export", "-o", "ada.mem", "--scope", "user:ada", "--kind", "fact")
    assert receipt == {
        "memories": 2, "episodes": 0, "facts": 2, "archived": 0, "items": 0, "undone": 0, "output": "ada.mem"
    }  # fmt: skip
    assert sorted(each.name for each in Path("ada.mem").iterdir()) == ["CHECKSUMS", "items", "manifest.json"]
    facts = [json.loads(line) for line in Path("ada.mem/items/fact.jsonl").read_text("utf-8").splitlines()]
    assert [(each["tValidFrom"], each.get("tValidTo"), each.get("supersededBy")) for each in facts] == [
        ("2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z", "f2"),
        ("2025-01-01T00:00:00Z", None, None),
    ]


@pytest.mark.usefixtures("filled")
def test_what_is_there_stays(run: Any, tmp_path: Path) -> None:
    (tmp_path / "full.mem").mkdir()
    (tmp_path / "full.mem" / "mine.txt").write_text("mine")
    (tmp_path / "file.mem").write_text("mine")
    (tmp_path / "empty.mem").mkdir()
    for name in ("full.mem", "file.mem"):
        refused = run("export", "-o", name)
        assert refused.exit_code == 2
        assert f"{name} is there already; give another name, or remove it first" in refused.stderr
    assert [each.name for each in (tmp_path / "full.mem").iterdir()] == ["mine.txt"]
    assert run("export", "-o", "empty.mem").exit_code == 0
    assert (tmp_path / "empty.mem" / "manifest.json").is_file()
    assert "a bundle has no vectors" in run("export", "-o", "new.mem", "--vectors").stderr
    assert "must exist and be writable" in run("export", "-o", "nowhere/new.mem").stderr


def test_a_bundle_that_ends_in_the_middle_is_not_there(tmp_path: Path) -> None:
    def lines() -> Iterator[bytes]:
        yield b'{"memoranda_export": 1}\n'
        raise ConnectionError("the server is gone")

    with pytest.raises(ConnectionError):
        write_bundle(tmp_path / "new.mem", lines())
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_goes_while_a_bundle_is_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "drive").mkdir()

    def lines() -> Iterator[bytes]:
        yield b'{"memoranda_export": 1}\n'
        shutil.rmtree(tmp_path / "drive")
        with memoranda.open(":memory:", embedder={"url": "hash:16"}) as r:
            r.memories.add("Ada lives in Rome")
            yield from [*r.memories.export()][1:]

    with pytest.raises(StorageError, match=r"new\.mem could not be written .* must exist and be writable"):
        write_bundle(tmp_path / "drive" / "new.mem", lines())


def test_a_fact_whose_change_was_undone_is_left_out(tmp_path: Path, empty_folder: Path) -> None:
    """It was valid at no time; imported, it would stand beside the fact that holds."""
    with memoranda.open(empty_folder) as r:
        r.memories.add("Ada lives in Rome", kind="fact", user_id="ada")
        rome = r.memories.list(kinds=["fact"]).data[0].id
        wrong = r.memories.add("Ada lives in Oslo", kind="fact", user_id="ada", replaces=[rome]).memory
        r.facts.undo(wrong.id)
        done = write_bundle(tmp_path / "new.mem", r.memories.export(kinds=["fact"]))
    assert (done.facts, done.undone) == (1, 1)
    with memoranda.open(tmp_path / "other") as other:
        other.import_history(str(tmp_path / "new.mem"))
        assert [fact.content for fact in other.memories.list(kinds=["fact"]).data] == ["Ada lives in Rome"]


@pytest.mark.slow
def test_the_validator_and_the_reader_of_the_format_accept_a_bundle(
    run: Any, filled: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "package"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), VALIDATOR]
    subprocess.run(install, check=True, capture_output=True)
    run("export", "-o", "all.mem")

    def mem(*words: str) -> str:
        command = [sys.executable, "-m", "portable_memory.cli", *words]
        env = {**os.environ, "PYTHONPATH": str(folder)}
        return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout

    assert mem("validate", "all.mem").startswith("OK  all.mem — 3 files verified, format 1.1.0")
    assert "integrity:   OK" in mem("inspect", "all.mem")
    assert "Für alle" in mem("render", "all.mem")

    (tmp_path / "said.txt").write_text("- Likes tea\n- Lives in Oslo\n")
    mem("paste", "said.txt", "--out", "theirs.mem", "--source", "chatgpt")
    report = run.json("import", "theirs.mem")
    assert (report["format"], report["imported"]["note"]["created"]) == ("portable-memory", 2)


@pytest.mark.slow
def test_a_bundle_goes_through_a_server(served: Any, server: tuple[str, Path], tmp_path: Path) -> None:
    served("add", "the kettle is blue", "--user", "ada")
    path = tmp_path / "served.mem"
    assert served.json("export", "-o", str(path))["memories"] >= 1
    with Client(server[0]) as client:
        client.forget(scopes=["all"])
        assert client.import_history(path).imported["note"].created == 1
        assert [each.user_id for each in client.list().data] == ["ada"]
