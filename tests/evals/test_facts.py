"""`memoranda eval facts`: which facts count as right, and the command."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memoranda.app.evals.facts import BUNDLED, read, report
from memoranda.cli.evals.command import app
from memoranda.errors import InvalidInput
from memoranda.types import Memory

SET = """
cases:
- category: statement
  said:
    - 2024-03-05 Ana | I moved to Porto.
    - 2024-03-05 assistant | I love Porto.
    - 2024-03-05 Ben | I like tea.
  facts: [Ana | Porto, Ben | tea, Ben | coffee]
- category: change
  said:
    - 2024-03-05 Ana | I live in Porto.
    - 2024-03-06 Ana | I live in Ghent now.
  facts: [Ana | Ghent]
  past: [Ana | Porto]
- category: nothing
  said:
    - 2024-03-05 Ana | I like rain.
"""


def made(tmp_path: Path, text: str = SET) -> Path:
    path = tmp_path / "own.yaml"
    path.write_text(text, "utf-8")
    return path


def test_the_command_prints_a_table_or_json(tmp_path: Path) -> None:
    path = made(tmp_path)
    shown = CliRunner().invoke(app, ["facts", str(path)])
    assert "found by rules" in shown.output, shown.output
    assert "wrong: ana: Ana: I like rain." in shown.output
    given = json.loads(CliRunner().invoke(app, ["facts", str(path), "--json"]).output)
    quality = {one.pop("category"): one for one in given["categories"]}
    assert quality["statement"] == {
        "expected": 3, "extracted": 2, "precision": 1.0, "recall": 0.6667, "attribution": 1.0, "current": None,
    }  # fmt: skip
    assert quality["change"] == {
        "expected": 1, "extracted": 2, "precision": 0.5, "recall": 1.0, "attribution": 1.0, "current": 0.0,
    }  # fmt: skip
    assert quality["nothing"] == {
        "expected": 0, "extracted": 1, "precision": 0.0, "recall": None, "attribution": None, "current": None,
    }  # fmt: skip
    assert quality["all"]["precision"] == 0.6
    assert 0 < given["error"] < given["confidence"] < 1


def fact(who: str, content: str) -> Memory:
    now = datetime(2024, 3, 5, tzinfo=UTC)
    return Memory(
        id=content, kind="fact", content=content, content_hash="", user_id=who, scope="user", occurred_at=now,
        created_at=now, updated_at=now, confidence=0.5,
    )  # fmt: skip


def test_who_a_fact_is_about_and_whether_it_holds_count(tmp_path: Path) -> None:
    statement, change, nothing = read(made(tmp_path))
    assert [message.role for message in statement.messages] == ["user", "assistant", "user"]
    empty = report("own", "rules", [statement, change, nothing])
    assert (empty.confidence, empty.error, empty.wrong) == (None, None, [])
    assert (empty.categories[0].precision, empty.categories[0].recall) == (None, 0.0)
    statement.found = [fact("ben", "Ben moved to Porto"), fact("ben", "Ben likes tea")]
    change.found = [fact("ana", "Ana lives in Porto"), fact("ana", "Ana lives in Ghent")]
    _, said, changed, _ = report("own", "rules", [statement, change, nothing]).categories
    assert (said.precision, said.attribution, said.recall) == (0.5, 0.5, 0.3333)
    assert (changed.precision, changed.attribution, changed.current) == (0.5, 1.0, 0.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1]", "has no list `cases`"),
        ("cases: [{category: x}]", "own.yaml, case 1: needs `said`"),
        ("cases: [{said: [hello]}]", "'hello' is not like `2024-03-05 Ana | what she said`"),
        (
            "cases: [{said: [2024-03-05 Ana | Hi], facts: [tea]}]",
            "'tea' is not like `Ana | words of the fact`",
        ),
        ("{", "is not YAML in line 1; give a file in the form of facts.yaml"),
    ],
)
def test_another_file_is_refused_by_what_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(made(tmp_path, text))
    assert says in str(caught.value)


def test_the_bundled_set_can_be_read() -> None:
    cases = read(BUNDLED)
    assert len(cases) > 45
    assert sum(len(case.facts) for case in cases) >= 60
    assert sum(not case.facts for case in cases) > 12
