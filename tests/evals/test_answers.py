"""`memoranda eval answers`: what counts as answered, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memoranda.app.evals.answers import matches, share_of_terms
from memoranda.cli.evals.command import app
from memoranda.errors import InvalidInput


@pytest.mark.parametrize(
    ("reply", "answer", "matched", "share"),
    [
        ("It is the Blue Lamp, in room 3.", "the blue lamp", True, 1.0),
        ("The lamp is blue.", "blue lamp", False, 1.0),
        ("On 7 May 2023, I think", "7 May 2023", True, 1.0),
        ("Running and reading", "running, pottery", False, 0.5),
        ("Nobody knows", "sunset", False, 0.0),
        ("27", "7", False, 0.0),
    ],
)
def test_a_reply_answers_by_its_words(reply: str, answer: str, matched: bool, share: float) -> None:
    assert matches(reply, answer) is matched
    assert share_of_terms(reply, answer) == share


def test_the_command_prints_a_table_or_json(tmp_path: Path) -> None:
    turns = [
        {"speaker": "Ana", "dia_id": f"D1:{n}", "text": f"The lamp of room {n} is {colour}."}
        for n, colour in enumerate(("blue", "green", "red", "white"), 1)
    ]
    asked = [
        {"question": "Which lamp is in room 3?", "answer": "red", "evidence": ["D1:3"], "category": 4},
        {"question": "Who broke the lamp of room 2?", "evidence": ["D1:2"], "category": 5},
    ]
    talk = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    file = tmp_path / "talk.json"
    file.write_text(json.dumps([{"sample_id": "one", "conversation": talk, "qa": asked}]))
    options = ["answers", str(file)]
    shown = CliRunner().invoke(app, options)
    assert "extractive" in shown.output, shown.output
    given = json.loads(CliRunner().invoke(app, [*options, "--json"]).output)
    every, single, adversarial = given["categories"]
    assert (every["questions"], every["match"], every["terms"]) == (1, 1.0, 1.0)
    assert (single["category"], adversarial["category"]) == ("4", "5")
    assert every["judged"] is None
    refused = CliRunner().invoke(app, [*options, "--judge"])
    assert isinstance(refused.exception, InvalidInput)
    assert refused.exception.field == "--judge"
