"""docs/evaluation.md knows every command, option and measure."""

from __future__ import annotations

from pathlib import Path

import typer

from memoranda.app.evals.report import MEASURES
from memoranda.cli.evals.command import app

TEXT = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text("utf-8")


def test_every_command_and_option_is_documented() -> None:
    group = typer.main.get_command(app)
    commands = group.commands  # type: ignore[attr-defined]
    sets = {"synthetic", "assistant", "locomo", "beir"}
    assert set(commands) == sets | {
        "chunking",
        "fit",
        "freshness",
        "contexts",
        "abstention",
        "answers",
        "facts",
        "current",
        "languages",
        "own",
    }
    for name, command in commands.items():
        assert f"memoranda eval {name}" in TEXT
        for parameter in command.params:
            for flag in parameter.opts if parameter.param_type_name == "option" else []:
                assert f"`{flag}" in TEXT, f"{flag} of {name}"


def test_every_measure_is_documented() -> None:
    for name in MEASURES:
        assert f"`{name}@k`" in TEXT
    assert "`mrr`" in TEXT
