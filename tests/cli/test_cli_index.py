"""index into a vector store: what comes in, what stays, what goes, what fails; stores and their search."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoranda.cli import progress

Write = Callable[[str, "str | bytes"], Path]
LONG = "\n\n".join(f"Paragraph {n} tells of the number {n} and of nothing else." for n in range(200))
BROKEN = b"%PDF-1.7\nthis is no pdf at all"


def pdf(text: str) -> bytes:
    """A page with one line of text."""
    line = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 4 0 R"
        " /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        f"<< /Length {len(line)} >>\nstream\n{line}\nendstream",
    ]
    body = "".join(f"{n} 0 obj\n{one}\nendobj\n" for n, one in enumerate(objects, 1))
    return f"%PDF-1.4\n{body}trailer\n<< /Root 1 0 R /Size 5 >>\n%%EOF\n".encode()


def counts(told: dict[str, Any]) -> tuple[int, int, int, int]:
    return told["added"], told["replaced"], told["unchanged"], told["removed"]


def held(run: Any, store: str = "documents") -> dict[str, dict[str, Any]]:
    """The files of a store by the name of their path."""
    return {Path(one["attributes"]["path"]).name: one for one in run.json("stores", "files", store)}


def found(run: Any, query: str, *words: str) -> list[str]:
    passages = run.json("search", query, "--store", "documents", "--mode", "keyword", *words)["data"]
    return sorted(one["text"] for one in passages)


def test_progress_is_lines_where_standard_error_is_piped(
    run: Any, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("docs/a.txt", "The meter is read in June.")
    assert "indexing" not in run("index", "docs").stderr
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.0)
    write("docs/b.txt", "The meter is read in July.")
    shown = run("index", "docs").stderr.splitlines()
    lines = [line for line in shown if line.startswith("indexing: ")]
    assert re.fullmatch(r"indexing: 2 of 2, 1 chunks, [\d.]+/s, 0 in progress, 0 failed, \d+ s", lines[-1]), (
        lines
    )
    write("docs/c.txt", "The meter is read in August.")
    assert "indexing" not in run("index", "docs", "--json").stderr


def test_lines_of_progress_are_ten_seconds_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 9.0, 11.0, 20.0, 21.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.bar("comparing") as report:
        for done in range(1, 5):
            report(1000 * done, None)
    assert capsys.readouterr().err == "comparing: 2,000, 11 s\ncomparing: 4,000, 21 s\n"


def test_a_folder_comes_into_the_store_and_is_found(served: Any, write: Write) -> None:
    path = write("docs/long.md", f"# The numbers\n\n{LONG}")
    write("docs/sub/other.txt", "The meter is read in June.")
    told = served.json("index", "docs", "--chunk-size", "100", "--chunk-overlap", "10")
    assert (counts(told), told["files"], told["failed"], told["store"]) == ((2, 0, 0, 0), 2, [], "documents")
    assert told["chunks"] == sum(one["chunk_count"] for one in held(served).values()) > 20
    (store,) = served.json("stores")
    assert store["chunking"]["size"] == 100
    (best,) = served.json("search", "when is the meter read?", "--store", store["id"], "--limit", "1")["data"]
    assert best["attributes"]["path"] == str(path.parent / "sub" / "other.txt")
    (best,) = served.json("search", "number 77", "--store", "documents", "--mode", "keyword", "--limit", "1")[
        "data"
    ]
    assert path.read_text()[best["start"] : best["end"]] == best["text"]
    assert "Paragraph 77 " in best["text"]
    shown = served("search", "meter", "--store", "documents", "--explain").stdout
    assert "docs/sub/other.txt" in shown
    assert "      cosine" in shown


def test_indexing_again_changes_nothing(run: Any, write: Write) -> None:
    write("docs/a.txt", LONG)
    write("docs/b.txt", LONG)
    run.json("index", "docs")
    before = run.json("stores", "files", "documents")
    assert counts(run.json("index", "docs")) == (0, 0, 2, 0)
    assert run.json("stores", "files", "documents") == before


def test_a_changed_file_takes_the_place_of_the_old(served: Any, write: Write) -> None:
    write("a.txt", "the old text")
    write("b.txt", "stays as it is")
    served.json("index", "a.txt", "b.txt", "--meta", "team=red")
    first = held(served)
    write("a.txt", "the new text")
    assert counts(served.json("index", "a.txt", "b.txt")) == (0, 1, 1, 0)
    assert (found(served, "old"), found(served, "new")) == ([], ["the new text"])
    now = held(served)
    assert now["a.txt"]["attributes"]["team"] == "red"
    assert now["a.txt"]["id"] != first["a.txt"]["id"]
    assert now["b.txt"] == first["b.txt"]
    assert served.json("stores")[0]["file_counts"]["completed"] == 2


def test_another_size_of_chunks_splits_again(served: Any, write: Write) -> None:
    write("a.txt", LONG)
    words = ("index", "a.txt", "--chunk-overlap", "0", "--chunk-size")
    served.json(*words, "200")
    assert counts(served.json(*words, "200")) == (0, 0, 1, 0)
    assert counts(served.json(*words, "50")) == (0, 1, 0, 0)
    assert counts(served.json("index", "a.txt")) == (0, 0, 1, 0)
    (one,) = held(served).values()
    assert (one["chunking"]["size"], one["chunk_count"] > 50) == (50, True)


def test_attributes_are_filtered_by_and_can_change(served: Any, write: Write) -> None:
    write("a.txt", "red apple")
    write("b.txt", "green apple")
    served.json("index", "a.txt", "--meta", "level=1")
    served.json("index", "b.txt", "--meta", "level=2")

    def at(level: int) -> list[str]:
        return found(served, "apple", "--filter", f'{{"type": "eq", "key": "level", "value": {level}}}')

    assert (at(1), at(2)) == (["red apple"], ["green apple"])
    assert counts(served.json("index", "b.txt", "--meta", "level=1")) == (0, 0, 1, 0)
    assert (at(1), at(2)) == (["green apple", "red apple"], [])


def test_files_that_are_gone_stay_until_pruned(served: Any, write: Write) -> None:
    path = write("d/a.txt", "first")
    write("d/b.txt", "second")
    write("e/c.txt", "elsewhere")
    served.json("index", "d", "e")
    path.unlink()
    told = served.json("index", "d")
    assert (told["gone"], counts(told), len(held(served))) == ([str(path)], (0, 0, 1, 0), 3)
    assert "--prune takes them out" in served("index", "d").stderr
    assert counts(served.json("index", "d", "--prune")) == (0, 0, 1, 1)
    assert held(served).keys() == {"b.txt", "c.txt"}
    shutil.rmtree(path.parent)
    assert served("index", "d").exit_code == 2
    assert served.json("index", "d", "--prune")["removed"] == 1
    assert held(served).keys() == {"c.txt"}
    assert served.json("stores")[0]["file_counts"]["completed"] == 1


def test_what_failed_is_told_and_tried_again(served: Any, write: Write) -> None:
    write("d/good.txt", "good")
    path = write("d/bad.pdf", BROKEN)
    result = served("index", "d")
    assert result.exit_code == 1
    assert "1 added, 0 replaced, 0 unchanged, 0 removed, 1 failed" in result.stdout
    assert "d/bad.pdf: invalid_file: " in result.stderr
    before = held(served)["bad.pdf"]
    assert before["last_error"]["code"] == "invalid_file"
    assert served("index", "d").stderr.count("d/bad.pdf: invalid_file: ") == 1
    result = served("index", "d", "--retry")
    assert (result.exit_code, "0 added, 0 replaced, 1 unchanged" in result.stdout) == (1, True)
    (failed,) = served.json("stores", "files", "documents", "--state", "failed")
    assert failed["id"] == before["id"]
    path.write_text("no pdf at all")
    path.rename(path.with_suffix(".txt"))
    assert counts(served.json("index", "d", "--prune")) == (1, 0, 1, 1)


def test_the_old_version_stays_when_the_new_one_fails(served: Any, write: Write) -> None:
    write("a.pdf", pdf("the old text"))
    served.json("index", "a.pdf")
    for number in range(2):
        write("a.pdf", BROKEN + bytes([number]))
        assert served("index", "a.pdf").exit_code == 1
        assert [text.strip() for text in found(served, "old")] == ["the old text"]
        states = [one["status"] for one in served.json("stores", "files", "documents")]
        assert states == ["completed", "failed"]
    write("a.pdf", pdf("the old text"))
    assert counts(served.json("index", "a.pdf")) == (0, 0, 1, 0)
    assert [one["status"] for one in served.json("stores", "files", "documents")] == ["completed"]


def test_what_is_left_out_is_told(served: Any, write: Write, tmp_path: Path) -> None:
    for name, content in {
        "d/read.txt": "read", "d/.env": "SECRET=1", "d/node_modules/y.js": "y", "d/image.png": b"\x89PNG\0\0",
        "d/empty.txt": "", "d/large.txt": "x" * 2000, "d/skip.me": "text", "d/wide.txt": "wide".encode("utf-16"),
    }.items():  # fmt: skip
        write(name, content)
    (tmp_path / "d" / "link.txt").symlink_to(tmp_path / "d" / "read.txt")
    told = served.json("index", "d", "--max-bytes", "1000", "--exclude", "*.me")
    assert {Path(one["path"]).name: one["reason"] for one in told["skipped"]} == {
        ".env": "hidden", "node_modules": "a node_modules folder", "image.png": "a PNG image", "empty.txt": "empty",
        "large.txt": "larger than 1000 bytes", "skip.me": "excluded", "link.txt": "a link",
    }  # fmt: skip
    assert held(served).keys() == {"read.txt", "wide.txt"}
    assert served("index", "d/image.png").exit_code == 1


@pytest.mark.slow
def test_stores_by_id_and_name_are_apart(run: Any, write: Write) -> None:
    write("a.txt", "the text")
    first = run.json("index", "a.txt", "--store", "one")
    assert run.json("index", "a.txt", "--store", "two")["added"] == 1
    assert run.json("index", "a.txt", "--store", first["store_id"])["unchanged"] == 1
    assert len(run.json("search", "text", "--store", "one", "--store", "two")["data"]) == 2
    write("a.txt", "another text")
    run.json("index", "a.txt", "--store", "one")
    assert [one["text"] for one in run.json("search", "text", "--store", "two")["data"]] == ["the text"]
    assert run.json("stores", "delete", "one")["files_deleted"] == 1
    assert [one["name"] for one in run.json("stores")] == ["two"]
    assert run.json("stores", "delete", "two", "--keep-files")["files_deleted"] == 0
    assert "memoranda index makes one" in run("stores").stderr
    assert run.json("stores") == []


def test_memories_and_stores_do_not_mix(served: Any, write: Write) -> None:
    write("a.txt", "the meter is read in June")
    served.json("add", "the meter is red")
    served.json("index", "a.txt")
    assert [one["memory"]["content"] for one in served.json("search", "meter")["results"]] == [
        "the meter is red"
    ]
    assert found(served, "meter") == ["the meter is read in June"]


def test_quotas_stop_it_and_say_so(run: Any, write: Write) -> None:
    for name in ("a", "b", "c"):
        write(f"d/{name}.txt", f"the text of {name}")
    full = ("--set", "quotas.max_files_per_store=2")
    result = run("index", "d", *full)
    assert result.exit_code == 1
    assert "2 added" in result.stdout
    assert "stopped before the rest: 1 more do not fit beside 2" in result.stderr
    assert "memoranda quotas --quota NAME=NUMBER raises one" in result.stderr
    write("d/a.txt", "another text of a")
    Path("d/c.txt").unlink()
    assert counts(run.json("index", "d", *full)) == (0, 1, 1, 0)
    write("d/c.txt", "x" * 100)
    result = run("index", "d", "--set", "quotas.max_file_bytes=50")
    assert (result.exit_code, "d/c.txt: file_too_large: " in result.stderr) == (1, True)
    assert held(run).keys() == {"a.txt", "b.txt"}


@pytest.mark.parametrize(
    "name", [b"caf\xe9.txt", b"x" * 200 + b"/" + b"y" * 200 + b"/" + b"z" * 200 + b".txt"]
)
def test_names_that_no_attribute_can_hold(served: Any, tmp_path: Path, name: bytes) -> None:
    path = Path(os.fsdecode(bytes(tmp_path / "d") + b"/" + name))
    path.parent.mkdir(parents=True)
    path.write_text("the text")
    assert served.json("index", "d")["added"] == 1
    told = served.json("index", "d")
    assert (told["unchanged"], told["gone"]) == (1, [])
