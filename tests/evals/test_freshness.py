"""`memoranda eval freshness` measures what it says, on the bundled conversation."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memoranda.app.evals import assistant, freshness
from memoranda.app.evals.dataset import Dataset
from memoranda.cli.evals.command import app
from memoranda.errors import InvalidInput
from memoranda.types import NewMemory


def test_new_rows_are_found_nearly_as_well_as_embedded_ones() -> None:
    dataset = assistant.read()
    found = asyncio.run(freshness.measure(dataset, embedder="hash:256", progress=lambda *_: None))
    assert (found.questions, found.model) == (len(dataset.questions), "hash-256")
    assert found.fresh >= 0.95 * found.settled > 0
    assert found.importing >= 0.9 * found.imported > 0


def test_only_messages_of_sessions_can_be_observed() -> None:
    dataset = Dataset("notes", {"a": NewMemory(content="a note")}, assistant.read().questions)
    with pytest.raises(InvalidInput, match="notes: must hold messages of sessions"):
        asyncio.run(freshness.measure(dataset, embedder="hash:64", progress=lambda *_: None))


def test_the_command_prints_a_table_or_json(tmp_path: Path) -> None:
    turns = [
        {"speaker": "Ana", "dia_id": f"D1:{n}", "text": f"the lamp of room {n} is blue"} for n in range(1, 6)
    ]
    asked = [{"question": "Which lamp is in room 3?", "evidence": ["D1:3"], "category": 4}]
    talk = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    file = tmp_path / "talk.json"
    file.write_text(json.dumps([{"sample_id": "one", "conversation": talk, "qa": asked}]))
    shown = CliRunner().invoke(app, ["freshness", str(file), "--embedder", "hash:256"])
    assert "right after a write" in shown.output, shown.output
    given = CliRunner().invoke(app, ["freshness", str(file), "--embedder", "hash:256", "--json"])
    assert json.loads(given.output)["questions"] == 1
