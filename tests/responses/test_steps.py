"""What follows a turn of the model."""

from __future__ import annotations

import pytest

from memoranda.responses.steps import (
    AskAgain,
    CallTools,
    Finish,
    ModelTurn,
    Step,
    ToolCall,
    ToolNames,
    next_step,
    parsed,
)

KNOWN = ToolNames(here=frozenset({"search"}), asking=frozenset({"3"}), client=frozenset({"find"}))
SEARCH, AGAIN = ToolCall("1", "search", "{}"), ToolCall("2", "search", "{}")
PAY, FIND, NOBODY = ToolCall("3", "pay", "{}"), ToolCall("4", "find", "{}"), ToolCall("5", "fly", "{}")


@pytest.mark.parametrize(
    ("calls", "left", "step"),
    [
        ((), 5, Finish()),
        ((SEARCH,), 5, CallTools([SEARCH], [])),
        ((SEARCH, AGAIN), 5, CallTools([SEARCH, AGAIN], [])),
        ((SEARCH, AGAIN), 1, CallTools([SEARCH], [])),
        ((SEARCH,), 0, AskAgain()),
        ((SEARCH,), -1, AskAgain()),
        ((NOBODY,), 5, CallTools([NOBODY], [])),
        ((NOBODY,), 0, AskAgain()),
        ((FIND,), 5, CallTools([], [], hand_back=True)),
        ((FIND, SEARCH), 5, CallTools([SEARCH], [], hand_back=True)),
        ((FIND, SEARCH), 0, CallTools([], [], hand_back=True)),
        ((PAY,), 5, CallTools([], [PAY], hand_back=True)),
        ((SEARCH, PAY, FIND, AGAIN), 1, CallTools([SEARCH], [PAY], hand_back=True)),
        ((PAY,), 0, CallTools([], [PAY], hand_back=True)),
    ],
)
def test_calls_are_run_asked_for_or_handed_back(calls: tuple[ToolCall, ...], left: int, step: Step) -> None:
    assert next_step(ModelTurn("tool_calls", calls=calls), KNOWN, left) == step


@pytest.mark.parametrize(
    ("reason", "step"),
    [
        ("stop", Finish()),
        ("tool_calls", Finish()),
        ("length", Finish("max_output_tokens")),
        ("content_filter", Finish("content_filter")),
    ],
)
def test_how_an_answer_ends(reason: str, step: Step) -> None:
    assert next_step(ModelTurn(reason, "text"), KNOWN, 5) == step  # type: ignore[arg-type]


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_calls_of_an_answer_that_broke_off_are_not_run(reason: str) -> None:
    turn = ModelTurn(reason, calls=[SEARCH, FIND])  # type: ignore[arg-type]
    assert isinstance(next_step(turn, KNOWN, 5), Finish)


def test_calls_are_run_however_the_answer_says_it_ended() -> None:
    """Some servers say `stop` after calls."""
    assert next_step(ModelTurn("stop", calls=[SEARCH]), KNOWN, 5) == CallTools([SEARCH], [])


@pytest.mark.parametrize(
    ("arguments", "held"),
    [("", {}), ("{}", {}), ('{"a": [1]}', {"a": [1]}), (' {"é": "\\u00e9"}\n', {"é": "é"})],
)
def test_arguments_are_an_object(arguments: str, held: dict[str, object]) -> None:
    assert parsed(arguments) == held


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ('{"a": ', "no valid JSON"),
        ("two words", "no valid JSON"),
        ('{"a": 1} {"b": 2}', "no valid JSON"),
        ("[1]", "a JSON list"),
        ('"text"', "a JSON str"),
        ("null", "a JSON NoneType"),
        ("[" * 100_000, "no valid JSON"),
    ],
)
def test_other_arguments_are_told_to_the_model(arguments: str, says: str) -> None:
    found = parsed(arguments)
    assert isinstance(found, str)
    assert says in found
    assert "Call again with one JSON object" in found
