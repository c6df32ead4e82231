"""index --scope: what is read, what is left out, and that memories stay in step with the files."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.exports import undated

Write = Callable[[str, "str | bytes"], Path]
GLOBAL = ("index", "--scope", "global")
LONG = "\n\n".join(f"Paragraph {n} tells of the number {n} and of nothing else." for n in range(200))


def documents(run: Any, *words: str) -> dict[str, dict[str, Any]]:
    lines = run("export", "--kind", "document", *words).stdout.splitlines()[1:]
    return {line["content"]: line for line in map(json.loads, lines)}


def test_a_folder_becomes_documents_with_exact_places(run: Any, write: Write) -> None:
    path = write("docs/long.md", f"# The numbers\n\n{LONG}")
    told = run.json(*GLOBAL, "docs", "--chunk-size", "100", "--chunk-overlap", "10")
    held = documents(run)
    assert told["files"] == 1
    assert told["added"] == told["chunks"] == len(held) > 10
    text = path.read_text()
    for content, memory in held.items():
        place = memory["metadata"]
        assert text[place["start"] : place["end"]] == content
        assert place["path"] == memory["source"] == str(path)
        assert place["title"] == "The numbers"
        assert place["tokens"] <= 100
    assert {memory["metadata"]["chunk_index"] for memory in held.values()} == set(range(len(held)))


def test_indexing_again_changes_nothing(run: Any, write: Write) -> None:
    write("docs/a.txt", LONG)
    write("docs/sub/b.txt", "another text")
    run.json(*GLOBAL, "docs")
    before = undated(run("export", "--vectors").stdout.encode())
    again = run.json(*GLOBAL, "docs")
    assert (again["unchanged"], again["added"], again["updated"], again["removed"]) == (2, 0, 0, 0)
    assert undated(run("export", "--vectors").stdout.encode()) == before


def test_a_changed_file_is_followed(run: Any, write: Write) -> None:
    write("a.txt", "the old text")
    write("b.txt", "stays")
    run.json(*GLOBAL, "a.txt", "b.txt")
    write("a.txt", "the new text")
    told = run.json(*GLOBAL, "a.txt", "b.txt")
    assert (told["added"], told["removed"], told["unchanged"]) == (1, 1, 1)
    assert set(documents(run)) == {"the new text", "stays"}
    write("a.txt", "")
    assert run.json(*GLOBAL, "a.txt")["removed"] == 1
    assert set(documents(run)) == {"stays"}


def test_a_text_in_two_files_goes_with_the_last(run: Any, write: Write) -> None:
    first, second = write("d/a.txt", "the same text"), write("d/b.txt", "the same text")
    told = run.json(*GLOBAL, "d")
    assert (told["chunks"], told["added"]) == (2, 1)
    again = run.json(*GLOBAL, "d")
    assert (again["added"], again["updated"], again["unchanged"]) == (0, 0, 2)
    memory = documents(run)["the same text"]
    assert [memory["metadata"]["path"], memory["metadata"]["also"][0]["path"]] == [str(first), str(second)]
    write("d/a.txt", "another text")
    run.json(*GLOBAL, "d/a.txt")
    memory = documents(run)["the same text"]
    assert (memory["metadata"]["path"], memory["source"], "also" in memory["metadata"]) == (
        str(second), str(second), False,
    )  # fmt: skip
    write("d/b.txt", "a third text")
    assert run.json(*GLOBAL, "d")["removed"] == 1
    assert set(documents(run)) == {"another text", "a third text"}


def test_a_memory_added_by_hand_stays(run: Any, write: Write) -> None:
    run.json("add", "the same text", "--kind", "document")
    write("a.txt", "the same text")
    assert run.json(*GLOBAL, "a.txt")["added"] == 0
    write("a.txt", "another text")
    assert run.json(*GLOBAL, "a.txt")["removed"] == 0
    assert set(documents(run)) == {"the same text", "another text"}


def test_files_that_are_gone_are_kept_until_pruned(run: Any, write: Write) -> None:
    path = write("d/a.txt", "first")
    write("d/b.txt", "second")
    write("e/c.txt", "elsewhere")
    run.json(*GLOBAL, "d", "e")
    path.unlink()
    told = run.json(*GLOBAL, "d")
    assert (told["gone"], told["removed"]) == ([str(path)], 0)
    assert "--prune deletes them" in run(*GLOBAL, "d").stderr
    assert run.json(*GLOBAL, "d", "--prune")["removed"] == 1
    assert set(documents(run)) == {"second", "elsewhere"}
    shutil.rmtree(path.parent)
    assert run(*GLOBAL, "d").exit_code == 2
    assert run.json(*GLOBAL, "d", "--prune")["removed"] == 1
    assert set(documents(run)) == {"elsewhere"}


def test_scopes_are_apart(run: Any, write: Write) -> None:
    write("a.txt", "the text")
    run.json(*GLOBAL, "a.txt")
    told = run.json("index", "a.txt", "--scope", "session", "--scope-id", "s1", "--tag", "t")
    assert told["added"] == 1
    (line,) = documents(run, "--scope", "session:s1").values()
    assert (line["session_id"], line["tags"]) == ("s1", ["t"])
    write("a.txt", "other text")
    assert run.json(*GLOBAL, "a.txt")["removed"] == 1
    assert run.json("stats", "--scope", "session:s1")["memories"] == 1


def test_what_is_left_out_is_told(run: Any, write: Write, tmp_path: Path) -> None:
    for name, content in {
        "d/read.txt": "read", "d/.env": "SECRET=1", "d/.hidden/x.txt": "x", "d/node_modules/y.js": "y",
        "d/uv.lock": "z", "d/image.png": b"\x89PNG\0\0", "d/paper.pdf": b"%PDF-1.7 text", "d/empty.txt": "",
        "d/large.txt": "x" * 2000, "d/skip.me": "text",
    }.items():  # fmt: skip
        write(name, content)
    (tmp_path / "d" / "link.txt").symlink_to(tmp_path / "d" / "read.txt")
    told = run.json(*GLOBAL, "d", "--max-bytes", "1000", "--exclude", "*.me")
    reasons = {Path(one["path"]).name: one["reason"] for one in told["skipped"]}
    assert reasons == {
        ".env": "hidden", ".hidden": "hidden", "node_modules": "a node_modules folder", "uv.lock": "generated",
        "image.png": "binary", "paper.pdf": ".pdf is no plain text; index it into a store", "empty.txt": "empty",
        "large.txt": "larger than 1000 bytes", "skip.me": "excluded", "link.txt": "a link",
    }  # fmt: skip
    assert set(documents(run)) == {"read"}
    shown = run(*GLOBAL, "d").stdout
    assert "left out, hidden: 2" in shown


def test_what_git_ignores_is_left_out(run: Any, write: Write, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "d"], cwd=tmp_path, check=True)
    write("d/.gitignore", "secret.txt\nout/\n")
    write("d/kept.txt", "kept")
    write("d/secret.txt", "secret")
    write("d/sub/out/x.txt", "made")
    write("d/sub/in.txt", "as well")
    told = run.json(*GLOBAL, "d")
    assert {Path(one["path"]).name for one in told["skipped"]} == {".git", ".gitignore", "secret.txt", "out"}
    assert set(documents(run)) == {"kept", "as well"}
    run.json(*GLOBAL, "d/secret.txt")
    assert set(documents(run)) == {"kept", "as well", "secret"}


@pytest.mark.parametrize(
    ("data", "text", "guessed"),
    [
        ("Grüße aus Köln".encode(), "Grüße aus Köln", None),
        ("\ufeffGrüße".encode(), "Grüße", None),
        ("Grüße".encode("utf-16"), "Grüße", None),
        ("\ufeffGrüße".encode("utf-16-be"), "Grüße", None),
        ("Grüße".encode("utf-32"), "Grüße", None),
        ("Grüße für 5 €".encode("cp1252"), "Grüße für 5 €", "cp1252"),
        (b"caf\xe9 \x81", "café \x81", "latin-1"),
        (b"one\r\ntwo\r\n", "one\r\ntwo\r\n", None),
    ],
)
def test_encodings(run: Any, write: Write, data: bytes, text: str, guessed: str | None) -> None:
    write("a.txt", data)
    told = run.json(*GLOBAL, "a.txt")
    assert set(documents(run)) == {text}
    assert [one["encoding"] for one in told["guessed_encoding"]] == ([guessed] if guessed else [])


def test_a_path_longer_than_a_source_may_be(run: Any, write: Write) -> None:
    path = write("/".join(["x" * 100] * 3) + "/a.txt", "deep down")
    run.json(*GLOBAL, "x" * 100)
    (memory,) = documents(run).values()
    assert memory["metadata"]["path"] == str(path)
    assert len(memory["source"]) == 256
    assert run.json(*GLOBAL, "x" * 100)["unchanged"] == 1


def test_a_file_stopped_in_the_middle_is_finished(run: Any, write: Write, tmp_path: Path) -> None:
    write("a.txt", LONG)
    words = (*GLOBAL, "a.txt", "--chunk-size", "50", "--chunk-overlap", "5")
    whole = run.json(*words)["chunks"]
    some = [line for number, line in enumerate(run("export").stdout.splitlines()) if number < whole // 2]
    (tmp_path / "part.jsonl").write_text("\n".join(some))
    run.json("import", "part.jsonl", "--data", "other")
    told = run.json(*words, "--data", "other")
    assert told["added"] == whole - (len(some) - 1)
    assert (told["removed"], told["updated"]) == (0, 0)
    assert set(documents(run, "--data", "other")) == set(documents(run))
