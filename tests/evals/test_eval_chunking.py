"""`memoranda eval chunking`: how much of the text that answers is in the first characters of the results."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from memoranda.app.evals.chunking import Question as Asked
from memoranda.app.evals.chunking import Reference, gold_spans, read, within
from memoranda.cli.evals.command import app
from memoranda.errors import InvalidInput

BIRDS = [
    "heron waits in reeds",
    "kestrel hovers over verges",
    "dipper walks under water",
    "swift sleeps aloft",
]
SHIPS = ["tender carries the buoys", "lugger sets two sails", "trawler drags a net", "pilot boards at dawn"]


def folder_of(path: Path, rows: list[dict[str, str]]) -> Path:
    for name, lines in (("birds.md", BIRDS), ("ships.txt", SHIPS)):
        (path / name).write_text("\n\n".join(lines) + "\n", "utf-8")
    with (path / "questions.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["question", "references", "corpus_id"])
        writer.writeheader()
        writer.writerows(rows)
    return path


def asked(corpus: str, lines: list[str], line: str) -> dict[str, str]:
    start = "\n\n".join(lines).index(line)
    reference = {"content": line, "start_index": start, "end_index": start + len(line)}
    return {"question": f"which {line}", "references": json.dumps([reference]), "corpus_id": corpus}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [asked("birds", BIRDS, line) for line in BIRDS] + [asked("ships", SHIPS, line) for line in SHIPS]
    return folder_of(tmp_path, rows)


def run(folder: Path, *options: str) -> Any:
    return CliRunner().invoke(app, ["chunking", str(folder), "--embedder", "hash:256", *options])


def test_the_command_prints_a_table_or_json(folder: Path) -> None:
    options = ["--chunks", "5/0", "--chunks", "60/5", "--characters", "20"]
    shown = run(folder, *options)
    assert "fixed 60/5" in shown.output, shown.output
    given = json.loads(run(folder, *options, "--json").output)
    small, large = given["ways"]
    assert (small["size"], small["overlap"], small["header"], large["chunks"]) == (5, 0, True, 2)
    assert small["chunks"] > 8
    assert small["bytes_per_chunk"] > 0
    for way in (small, large):
        choose, report, every = way["halves"]
        assert (choose["questions"], report["questions"], every["questions"]) == (4, 4, 8)
        for name in ("recall", "precision"):
            shares = every[name]
            assert list(shares) == ["10", "20", "40"]
            assert all(0 < share <= 1 for share in shares.values())
        assert every["recall"]["10"] < every["recall"]["20"] < every["recall"]["40"]
    assert small["halves"][2]["recall"]["40"] > large["halves"][2]["recall"]["40"]
    assert large["halves"][2]["whole"]["40"] == 0, "no chunk of 60 tokens fits into 40 characters"


def test_without_sizes_the_configured_ones_are_measured(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORANDA_KNOWLEDGE__CHUNK_SIZE", "30")
    monkeypatch.setenv("MEMORANDA_KNOWLEDGE__CHUNK_OVERLAP", "3")
    (way,) = json.loads(run(folder, "--strategy", "recursive", "--header", "--json").output)["ways"]
    assert (way["strategy"], way["size"], way["overlap"], way["header"]) == ("recursive", 30, 3, True)


def test_the_first_characters_are_counted_and_repetitions_once() -> None:
    passages: Any = [
        SimpleNamespace(filename="a", start=0, end=10),
        SimpleNamespace(filename="b", start=20, end=24),
        SimpleNamespace(filename="a", start=6, end=16),
    ]
    assert within(passages, "a", [(4, 16)], 10) == (0.5, 0.5, 0.6, 1)
    recall, whole, precision, begun = within(passages, "a", [(4, 16)], 20)
    assert (recall, whole, begun) == (8 / 12, 0.5, 3), "two characters of the third, which does not fit whole"
    assert precision == 8 / 20
    assert within(passages, "a", [(4, 16)], 24)[:2] == (1, 1)
    assert within(passages, "c", [(4, 16)], 24)[:3] == (0, 0, 0)
    assert within([], "a", [(4, 16)], 24) == (0, 0, 0, 0)


def test_references_are_found_where_the_text_of_a_file_has_them() -> None:
    question = Asked("q", "a.md", [Reference("kite", 0, 4), Reference("heron", 9, 14)], "choose")
    assert gold_spans(question, "kite and heron, heron") == [(0, 4), (9, 14)]
    assert gold_spans(question, "a kite, the heron") == [(2, 6), (12, 17)]
    with pytest.raises(InvalidInput, match="'heron'"):
        gold_spans(question, "a kite")


def test_questions_of_a_document_take_turns(folder: Path) -> None:
    corpus = read(folder)
    assert [path.name for path in corpus.documents] == ["birds.md", "ships.txt"]
    assert [question.half for question in corpus.questions] == ["choose", "report"] * 4


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"corpus_id": "planes"}, "'planes', of which there are 0"),
        ({"references": "[]"}, "question 1: has no text or no references"),
        ({"references": "{"}, "question 1: has another form"),
        ({"question": ""}, "question 1: has no text"),
    ],
)
def test_what_is_wrong_with_a_folder_is_said(tmp_path: Path, change: dict[str, str], says: str) -> None:
    rows = [asked("birds", BIRDS, line) for line in BIRDS]
    with pytest.raises(InvalidInput, match=says):
        read(folder_of(tmp_path, [{**rows[0], **change}, *rows[1:]]))


def test_a_folder_without_questions_and_odd_sizes_are_refused(tmp_path: Path, folder: Path) -> None:
    for sizes, says in (
        ("200", "is not like 200/50"),
        ("10/9", "half of the chunk size"),
        ("0/0", "between"),
    ):
        shown = run(folder, "--chunks", sizes)
        assert says in str(shown.exception), shown
    with pytest.raises(InvalidInput, match=r"cannot be read.*questions\.csv"):
        read(tmp_path / "none")
    with pytest.raises(InvalidInput, match="fewer than two"):
        read(folder_of(tmp_path, [asked("birds", BIRDS, BIRDS[0])]))
