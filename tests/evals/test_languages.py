"""`memoranda eval languages`: what a search finds in each language, and the bundled set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memoranda.app.evals.languages import BUNDLED, read
from memoranda.cli.evals.command import app
from memoranda.errors import InvalidInput

SET = """
languages:
- language: en
  fit: true
  said:
  - The kettle is blue. | Which colour is the kettle?
  - My desk is on the third floor. | On which floor is my desk?
  never:
  - When does the ferry leave?
- language: el
  fit: false
  said:
  - Ο σκύλος λέγεται Άργος. | Πώς λέγεται ο σκύλος;
  - Το τρένο φεύγει στις επτά. | Ποιος ποτίζει τα λουλούδια όταν λείπουμε;
  never:
  - Ποιο κρασί μου αρέσει;
  - Πόσα ξαδέρφια έχω;
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "own.yaml"
    path.write_text(SET, "utf-8")
    return path


def test_the_command_prints_a_table_or_json(path: Path) -> None:
    options = ["languages", str(path), "--embedder", "hash:256"]
    shown = CliRunner().invoke(app, options)
    assert "held out" in shown.output, shown.output
    given = json.loads(CliRunner().invoke(app, [*options, "--json"]).output)
    english, greek = given["languages"]
    assert (english["language"], english["fit"], english["recall_at_1"], english["never"]) == (
        "en",
        True,
        1,
        1,
    )
    assert (greek["language"], greek["questions"], greek["recall_at_5"], greek["never"]) == ("el", 2, 1, 2)
    assert [half["language"] for half in given["halves"]] == ["fit", "held out"]
    for row in (english, greek, *given["halves"]):
        assert 0 <= row["never_strong"] <= row["never"]
        assert 0 < row["score"] <= 1


def test_languages_can_be_chosen(path: Path) -> None:
    options = ["languages", str(path), "--embedder", "hash:256", "--json"]
    for chosen, expected in ((["--held-out"], ["el"]), (["--language", "en"], ["en"])):
        given = json.loads(CliRunner().invoke(app, [*options, *chosen]).output)
        assert [row["language"] for row in given["languages"]] == expected
        assert len(given["halves"]) == 1


def test_the_bundled_set_has_24_of_each_kind_in_every_language() -> None:
    languages = read()
    assert len(languages) == 23
    fit = " ".join(one.language for one in languages if one.fit)
    assert fit == "en de fr pt pl sv ru fa hi th id ko"
    for one in languages:
        assert len(set(one.said)) == len(set(one.never)) == 24, one.language


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "give a file like languages.yaml"),
        ("languages: []", "has no language to measure"),
        ("languages: [{language: xx, fit: true, said: [hello], never: [a]}]", "'hello' is not like"),
        ("languages: [{language: xx, fit: true, said: [], never: [a]}]", "own.yaml, xx: needs lines"),
        ("languages: [{language: xx, fit: 1, said: [], never: []}]", "give a file like languages.yaml"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(path: Path, text: str, says: str) -> None:
    path.write_text(text, "utf-8")
    with pytest.raises(InvalidInput, match=says):
        read(path)
    assert BUNDLED.is_file()


def test_an_unknown_language_is_refused(path: Path) -> None:
    with pytest.raises(InvalidInput, match="'en' must be one of el"):
        read(path, only=["en"], held_out=True)
