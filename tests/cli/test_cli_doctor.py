"""doctor: a healthy folder is OK, and each broken one is named with its fix."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pysqlite3 import dbapi2

from memoranda.app import blocking
from memoranda.cli import checks
from memoranda.indexes.vector import VectorBatch
from memoranda.store.rows import attributes, fetch
from support.chat_server import serving
from support.model_folder import copied_model


def findings(run: Any, *words: str) -> tuple[int, dict[str, dict[str, str]], dict[str, Any]]:
    result = run("doctor", "--json", *words)
    told = json.loads(result.stdout)
    assert told["ok"] == (result.exit_code == 0)
    return result.exit_code, {one["name"]: one for one in told["findings"]}, told


def test_a_healthy_folder_is_ok(run: Any, tmp_path: Path) -> None:
    run.json("add", "one")
    (tmp_path / "memoranda-data").chmod(0o700)
    result = run("doctor")
    assert result.exit_code == 0
    assert result.stdout.endswith("\nOK\n")
    assert "embedder.url" in result.stdout
    assert "environment MEMORANDA_EMBEDDER__URL" in result.stdout
    _, found, _ = findings(run)
    assert {one["state"] for one in found.values()} == {"ok"}
    assert found["memories"]["found"] == "1, with 1 vectors, all in both indexes"


def test_documents_are_counted_beside_memories(run: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a text")
    run.json("index", "a.txt")
    run.json("add", "one")
    code, found, _ = findings(run)
    assert (code, found["memories"]["state"]) == (0, "ok")
    assert found["memories"]["found"] == "1 and 1 chunks of documents, with 2 vectors, all in both indexes"


def test_a_folder_that_is_not_there_is_not_made(run: Any, tmp_path: Path) -> None:
    code, found, _ = findings(run)
    assert code == 0
    assert "the first write makes it" in found["folder"]["found"]
    assert not (tmp_path / "memoranda-data").exists()


def test_a_folder_that_others_can_read_is_noted(run: Any, tmp_path: Path) -> None:
    run.json("add", "one")
    (tmp_path / "memoranda-data").chmod(0o755)
    code, found, _ = findings(run)
    assert (code, found["folder"]["state"]) == (0, "note")
    assert "chmod o-rwx" in found["folder"]["fix"]


def test_a_broken_database_is_found(run: Any, tmp_path: Path) -> None:
    run.json("add", "one")
    path = tmp_path / "memoranda-data" / "memoranda.db"
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    code, found, _ = findings(run)
    assert code == 1
    assert found["folder"]["state"] == "broken"
    assert found["folder"]["fix"]
    shown = run("doctor")
    assert "1 broken:" in shown.stdout
    assert "fix:" in shown.stdout


def test_a_folder_that_is_a_file_is_found(run: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    code, found, _ = findings(run, "--data", "file")
    assert (code, found["folder"]["found"]) == (1, "file is no folder")


def test_counts_that_disagree_are_found() -> None:
    told = {
        "memories": 2, "chunks": 1, "vectors": 4, "indexed_vectors": 3, "indexed_words": 2, "unembedded": 1,
        "behind": ["index"], "model": "m",
    }  # fmt: skip
    found = {one.name: one for one in checks.counts("default", told)}
    assert {name: one.state for name, one in found.items()} == {
        "index": "broken", "words": "broken", "vectors": "note", "behind": "broken",
    }  # fmt: skip
    assert all(one.fix for one in found.values())


def test_vectors_that_differ_are_found(tmp_path: Path) -> None:
    with blocking.open(tmp_path / "memoranda-data", embedder={"url": "hash:64"}) as opened:
        opened.memories.add_many([f"text {n}" for n in range(40)])
        store = opened.inner.core.store
        assert list(checks.rows(store))[-1].state == "ok"
        other = np.zeros((1, 64), np.float32)
        other[0, :2] = 1, -1
        for seq in (1, 40):
            kept = store.db.read(lambda c, seq=seq: fetch(c, "default", [seq]))[seq]
            store.index.put(
                "default", VectorBatch(np.array([seq]), np.zeros(1, np.int32), other, [attributes(kept)])
            )
        found = {one.name: one for one in checks.rows(store)}
        assert found["sample"].state == "broken"
        assert found["sample"].found.startswith("22 of 24")


def test_every_mistake_in_the_configuration_is_told(run: Any, tmp_path: Path) -> None:
    (tmp_path / "memoranda.yaml").write_text("serfer:\n  port: 1\nsearch:\n  default_limit: none\n")
    code, found, _ = findings(run)
    assert (code, found["configuration"]["state"]) == (1, "broken")
    assert "server" in found["configuration"]["found"]
    assert "default_limit" in found["configuration"]["found"]


def test_a_wrong_length_of_vectors_is_a_mistake_in_the_configuration(run: Any, tmp_path: Path) -> None:
    key = "uploadask.memory.memoryVectorDim"
    for there in (False, True):
        (tmp_path / "memoranda.yaml").write_text("uploadask:\n  memory:\n    memoryVectorDim: 7\n")
        code, found, told = findings(run)
        assert code == 1
        assert found["configuration"] == {
            "name": "configuration", "state": "broken", "fix": f"correct {key}",
            "found": f"{key}: is 7, and hash-64 makes vectors of 64 dimensions, for memories as for documents; leave"
            " the key out, or choose another embedder",
        }  # fmt: skip
        assert found["folder"]["state"] == "ok"
        assert any(one["key"] == key for one in told["configuration"])
        (tmp_path / "memoranda.yaml").write_text("uploadask:\n  memory:\n    memoryVectorDim: 64\n")
        if not there:
            run.json("add", "one")
            (tmp_path / "memoranda-data").chmod(0o700)
    code, found, _ = findings(run)
    assert (code, found["configuration"]["state"]) == (0, "ok")


def test_the_language_model_is_asked(run: Any, tmp_path: Path) -> None:
    _, found, _ = findings(run)
    assert found["language model"]["state"] == "ok"
    assert "quoted" in found["language model"]["found"]
    with serving([{"text": "Yes."}]) as (url, received):
        (tmp_path / "memoranda.yaml").write_text(f"model:\n  url: {url}\n  name: some\n")
        _, found, _ = findings(run)
    assert found["language model"] == {
        "name": "language model",
        "state": "ok",
        "found": "some answers",
        "fix": "",
    }
    assert len(received) == 1
    code, found, _ = findings(run)  # nobody listens there any more
    assert (code, found["language model"]["state"]) == (1, "broken")
    assert "did not answer" in found["language model"]["found"]


def test_secrets_are_not_told(run: Any, tmp_path: Path) -> None:
    (tmp_path / "memoranda.yaml").write_text("keys:\n  - {name: ops, role: admin, key: s3cr3t-value}\n")
    assert "s3cr3t-value" not in run("doctor").stdout
    assert "s3cr3t-value" not in run("doctor", "--json").stdout


def test_settings_that_are_not_the_default_come_first(run: Any) -> None:
    shown = run("doctor", "--all", "--set", "search.candidates=60").stdout
    changed, defaults = shown.split("\nsettings that are not the default\n")[1].split("\ndefaults\n")
    assert changed.split("\n")[:-1] == [
        '  embedder.url       "hash:64"  (environment MEMORANDA_EMBEDDER__URL)',
        "  search.candidates  60  (override)",
    ]
    assert "  server.port " in defaults
    assert "search.candidates" not in defaults
    shown = run("doctor").stdout
    assert "  server.port " not in shown
    assert re.search(
        r"^\d{2,} settings are the default: memoranda doctor --all shows them$", shown, re.MULTILINE
    )


def test_what_a_killed_process_left_to_do_is_noted(run: Any, tmp_path: Path) -> None:
    with blocking.open(tmp_path / "memoranda-data", jobs={"workers": 0}) as opened:
        store = opened.knowledge.stores.create(name="s")
        ids = [opened.knowledge.files.upload(f"text {n}".encode(), f"{n}.txt").id for n in range(2)]
        opened.knowledge.stores.attach(store.id, ids)
    for _ in range(2):  # looking begins nothing
        code, found, _ = findings(run)
        assert (code, found["jobs"]["state"]) == (0, "note")
        assert found["jobs"]["found"] == "2 unfinished: knowledge.index 2"
    assert found["jobs"]["fix"]
    served = checks.jobs({"queued": 1, "running": 0})
    assert served.found == "1 unfinished: queued 1"


def test_languages_that_the_model_does_not_cover_are_noted(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORANDA_EMBEDDER__URL", "local:potion-base-8m")
    run.json("add", "The cat of the neighbours sleeps in our garden all day.")
    code, found, _ = findings(run)
    assert found["model"]["found"].endswith(", covers en")
    assert "languages" not in found
    run.json("add", "Die Katze der Nachbarn schläft den ganzen Tag in unserem Garten.")
    code, found, _ = findings(run)
    assert (code, found["languages"]["state"]) == (0, "note")
    assert found["languages"]["found"] == "of the newest 2 texts, potion-base-8m does not cover: de 1"
    assert "embedder.url" in found["languages"]["fix"]


def test_a_changed_model_file_is_found(run: Any, tmp_path: Path) -> None:
    model = copied_model("potion-base-8m", tmp_path / "model")
    assert findings(run, "--set", f"embedder.url=local:{model}")[1]["model files"]["state"] == "ok"
    weights = bytearray((model / "rows.npy").read_bytes())
    weights[-1] ^= 1
    (model / "rows.npy").write_bytes(weights)
    code, found, _ = findings(run, "--set", f"embedder.url=local:{model}")
    assert (code, found["model"]["state"]) == (1, "broken")
    assert "rows.npy" in found["model"]["found"]


def test_an_unknown_model_is_found(run: Any) -> None:
    code, found, _ = findings(run, "--set", "embedder.url=local:nothing")
    assert (code, found["model"]["state"]) == (1, "broken")


def test_a_missing_package_is_found() -> None:
    wanted = ["numpy>=2", "not-there-at-all>=1", "neither; extra == 'more'"]
    states = {one.name: one for one in checks.packages(wanted)}
    assert states["packages"].state == "broken"
    assert states["packages"].found == "missing: not-there-at-all"


def test_packages_of_other_platforms_are_not_missing() -> None:
    wanted = ["not-there >=1 ; sys_platform == 'other'", f"nor-this ; sys_platform != '{sys.platform}'"]
    assert [one.state for one in checks.packages(wanted)] == ["ok", "ok"]
    here = checks.packages([f"not-there ; sys_platform == '{sys.platform}'"])
    assert [one.state for one in here] == ["ok", "broken"]


def test_an_index_that_cannot_commit_is_broken() -> None:
    whole = {"memories": 1, "chunks": 0, "vectors": 1, "unembedded": 0, "behind": [], "model": "m"}
    stats = {
        **whole,
        "indexed_vectors": 1,
        "indexed_words": 1,
        "index": {},
        "words": {"failure": "File exists"},
    }
    (sound, failing) = checks.counts("default", stats)
    assert (sound.state, failing.name, failing.state) == ("ok", "words", "broken")
    assert "File exists" in failing.found


def test_verify_compares_every_text(run: Any, tmp_path: Path) -> None:
    assert run("add", "The rent is 100 euro").exit_code == 0
    data = next(tmp_path.rglob("memoranda.db"))
    with dbapi2.connect(data) as c:
        c.execute("UPDATE memories SET content = 'The rent is 900 euro'")
    result = run("doctor", "--verify")
    assert result.exit_code == 1
    assert "1 of 1 texts are not what was written" in result.stdout


@pytest.mark.parametrize(
    ("settings", "state", "says"),
    [
        ({}, "ok", "facts.extraction is off by default"),
        ({"capture_rules": "true"}, "ok", "by rules, which find few (facts.capture_rules)"),
        ({"extraction": "lazy"}, "note", "no language model is configured: set model.url"),
    ],
)
def test_how_facts_are_extracted_is_said(run: Any, settings: dict[str, str], state: str, says: str) -> None:
    run.json("add", "one")
    words = [word for name, value in settings.items() for word in ("--set", f"facts.{name}={value}")]
    _, found, _ = findings(run, *words)
    assert found["facts"]["state"] == state
    assert says in found["facts"]["found"]
    for command in (["facts"], ["facts", "list"]):
        assert f"no facts; {found['facts']['found']}" in run(*command, *words).stderr.replace("\n", " ")


def test_facts_of_a_language_model_are_said(run: Any) -> None:
    run.json("add", "one")
    with serving([]) as (url, _):
        model = [
            "--set",
            f"model.url={url}",
            "--set",
            "model.name=scripted",
            "--set",
            "facts.extraction=lazy",
        ]
        shown = run("facts", "list", *model).stderr
    assert "extracted by the language model (facts.extraction: lazy)" in shown
