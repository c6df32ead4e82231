"""`memoranda eval abstention`: what it asks, how it counts, what it fits."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

from memoranda.app.evals import abstention, longmemeval
from memoranda.app.evals.abstention import ANSWERED, ELSEWHERE, NEVER_SAID, REMOVED, Case
from memoranda.cli.evals.command import app
from memoranda.errors import InvalidInput
from memoranda.store.retrieval.evidence import Features, Weights


def case(kind: str, probability: float, *, found: bool = False, short: int = 0) -> Case:
    features = Features(probability, probability, 0.0)
    return Case(kind, features, probability, found, short)


def test_the_report_counts_what_it_says() -> None:
    asked = [
        case(ANSWERED, 0.95, found=True),
        case(ANSWERED, 0.85, found=True),
        case(ANSWERED, 0.15),
        case(ELSEWHERE, 0.2),
        case(ELSEWHERE, 0.2),
        case(NEVER_SAID, 0.9),
    ]
    made = abstention.report("some", "model", asked)
    assert (made.answered, made.found) == (3, 0.3333)
    kinds = {one.kind: one for one in made.kinds}
    assert (kinds[ELSEWHERE].questions, kinds[ELSEWHERE].auc) == (2, 0.6667)
    assert kinds[ELSEWHERE].rejected == 0.3333
    assert (kinds[NEVER_SAID].auc, kinds[NEVER_SAID].rejected) == (0.3333, 0.6667)
    assert made.short == []
    short = [case(ANSWERED, p, found=True, short=3) for p in (0.9, 0.9, 0.2)]
    short += [case(REMOVED, p, short=3) for p in (0.1, 0.1, 0.6)]
    again = abstention.report("some", "model", [*asked, *short])
    (three,) = again.short
    assert msgspec.structs.replace(again, short=[]) == made
    assert (three.memories, three.questions) == (3, 6)
    assert (three.missed, three.refused, three.wrong) == (0.3333, 0.6667, 0.3333)
    assert three.error == pytest.approx((2 * 0.1 + 0.8 + 2 * 0.1 + 0.6) / 6, abs=1e-4)


def test_the_calibration_error_is_that_of_the_bins() -> None:
    probabilities, found = np.array([0.1, 0.15, 0.95, 0.91]), np.array([False, True, True, True])
    assert abstention.calibration_error(probabilities, found) == pytest.approx(0.5 * 0.375 + 0.5 * 0.07)
    assert abstention.calibration_error(np.array([1.0]), np.array([True])) == 0.0


def test_the_error_by_chance_is_that_of_right_probabilities() -> None:
    assert abstention.chance_error(np.array([0.0, 1.0])) == 0.0
    assert abstention.chance_error(np.array([0.5])) == 0.5
    few, many = np.full(20, 0.5), np.full(2_000, 0.5)
    expected = np.sqrt(0.25 / 20 * 2 / np.pi)  # the mean deviation of a share of 20
    assert abstention.chance_error(few) == pytest.approx(expected, rel=0.1)
    assert abstention.chance_error(many) == pytest.approx(expected / 10, rel=0.1)


def test_weights_are_fitted_to_what_is_found() -> None:
    rng = np.random.default_rng(3)
    cases = []
    for _ in range(800):
        answers, noise = rng.normal(), rng.random()
        found = bool(rng.random() < 1 / (1 + np.exp(-8 * (answers - 0.6))))
        cases.append(Case(ANSWERED, Features(answers, noise, 0.0), 0.0, found))
    one = abstention.fitted([cases])
    assert one.best > 3 * abs(one.coverage)
    assert -one.intercept / one.best == pytest.approx(0.6, abs=0.1)
    with pytest.raises(ValueError, match="no questions that are answered beside others"):
        abstention.fitted([[case for case in cases if case.found]])


def test_the_command_prints_a_table_or_json() -> None:
    options = ["abstention", "--embedder", "hash:256", "--limit", "12"]
    shown = CliRunner().invoke(app, options)
    assert "elsewhere" in shown.output, shown.output
    given = json.loads(CliRunner().invoke(app, [*options, "--fit", "--json"]).output)
    (bundled,) = given["datasets"]
    assert bundled["answered"] == bundled["kinds"][0]["questions"] == 12
    assert set(given["weights"]) == set(Weights._fields)
    assert [short["memories"] for short in bundled["short"]] == list(abstention.FEW)
    assert all(short["questions"] == 24 for short in bundled["short"])


def test_a_longmemeval_file_in_both_forms(tmp_path: Path) -> None:
    plain = {
        "question_id": "q1",
        "question_type": "single",
        "question": "Which tea?",
        "answer_session_ids": ["b"],
    }
    turns = [{"role": "user", "content": "I like sencha"}, {"role": "assistant", "content": "Good"}]
    long = plain | {"haystack_session_ids": ["a", "b"], "haystack_sessions": [[], turns]}
    short = plain | {
        "question_id": "q2",
        "sessions": [{"id": "b", "text": "I like sencha"}, {"id": "c", "text": ""}],
    }
    file = tmp_path / "asked.json"
    file.write_text(json.dumps([long, short]))
    assert longmemeval.is_longmemeval(file)
    dataset = longmemeval.read(file)
    assert {key: memory.content for key, memory in dataset.memories.items()} == {
        "q1/b": "I like sencha",
        "q2/b": "I like sencha",
    }
    assert [(one.group, dict(one.grades), one.scopes) for one in dataset.questions] == [
        ("q1", {"q1/b": 1.0}, ["session:q1"]),
        ("q2", {"q2/b": 1.0}, ["session:q2"]),
    ]
    file.write_text(json.dumps([plain]))
    with pytest.raises(InvalidInput, match="question 1 is not shaped as LongMemEval has it"):
        longmemeval.read(file)
    assert not longmemeval.is_longmemeval(tmp_path / "none.json")
