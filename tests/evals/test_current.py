"""`memoranda eval current`: whether contexts have what holds, and in which place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memoranda.app.evals.current import BUNDLED, read
from memoranda.cli.evals.command import app
from memoranda.errors import InvalidInput

SET = """
cases:
- name: one
  said:
    - 2026-03-02 09:00 Ana | My desk is on the third floor of the library.
    - 2026-03-02 09:01 assistant | Noted.
    - 2026-03-09 09:00 Ana | My desk is on the fifth floor of the library.
    - 2026-03-09 09:05 Ana | The kettle is blue.
  questions:
    - {ask: "On which floor is the desk of Ana?", now: fifth floor, before: third floor}
    - {ask: "Which colour has the kettle?", now: red, before: blue}
"""


def test_the_command_prints_a_table_or_json(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(SET, "utf-8")
    options = ["current", str(path), "--embedder", "hash:256", "--budget", "300"]
    shown = CliRunner().invoke(app, options)
    assert "one, missing: Which colour has the kettle?" in shown.output, shown.output
    given = json.loads(CliRunner().invoke(app, [*options, "--json"]).output)
    (case,) = given["cases"]
    assert (case["questions"], case["current"], case["first"], given["budget"]) == (2, 0.5, 0.5, 300)
    assert 0 < case["tokens"] <= 300


def test_the_bundled_set_has_two_conversations_and_names_each_message_once() -> None:
    fit, report = read()
    assert (fit.name, report.name) == ("fit", "report")
    for case in (fit, report):
        assert len(case.questions) >= 20
        texts = [message.content for message in case.messages]
        for asked in case.questions:
            for words in (asked.now, asked.before):
                assert sum(words in text for text in texts) == 1, (asked.ask, words)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "give a file like current.yaml"),
        ("cases: [{name: a, said: [hello], questions: []}]", "'hello' is not like"),
        ("cases: [{name: a, said: [], questions: [{ask: x}]}]", "give a file like current.yaml"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(InvalidInput, match=says):
        read(path)
    assert BUNDLED.is_file()
