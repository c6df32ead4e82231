"""Whole evaluations, through the write and read path, with the model that costs nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from memoranda.app.evals import synthetic
from memoranda.app.evals.dataset import Question
from memoranda.app.evals.fit import Example, fitted, left_out, ranked
from memoranda.app.evals.fit_sets import LONGEST, excerpts, unanswered
from memoranda.cli.app import app
from memoranda.store.retrieval.scoring import FEATURES, Weights, load

WANTED = {"recall@5", "recall@10", "hit@10", "ndcg@10", "mrr"}


def evaluated(*words: str) -> dict[str, Any]:
    """The one JSON object that `memoranda eval` prints, with the hash embedder."""
    done = CliRunner().invoke(app, ["eval", *words, "--embedder", "hash:256", "--json"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def talk(folder: Path) -> Path:
    """Two conversations; the right turns hold rare words, and some turns say exactly the same."""
    turns = ["Ok.", "The heron landed on the jetty.", "Ok.", "My cousin plays the oboe."]
    held = [
        {
            "sample_id": name,
            "conversation": {
                "session_1_date_time": "1:56 pm on 8 May, 2023",
                "session_1": [
                    {"speaker": "Ana", "dia_id": f"D1:{i}", "text": text}
                    for i, text in enumerate(turns, start=1)
                ],
            },
            "qa": [
                {
                    "question": "Where did the heron land?",
                    "answer": "jetty",
                    "evidence": ["D1:2"],
                    "category": 4,
                },
                {"question": "Who plays the oboe?", "evidence": ["D1:4"], "category": 1},
                {"question": "Which lake is deepest?", "evidence": ["D1:1"], "category": 5},
                {"question": "What is lost?", "evidence": ["D7:7"], "category": 2},
            ],
        }
        for name in ("one", "two")
    ]
    path = folder / "talk.json"
    path.write_text(json.dumps(held))
    return path


def test_the_bundled_set_tells_good_from_bad() -> None:
    """It is neither saturated nor out of reach, and it measures the misses that were planted."""
    found = evaluated("synthetic", "--mode", "all")
    words = found["modes"]["keyword"]["all"]
    assert words["questions"] == found["run"]["questions"] >= 40
    assert found["run"]["rows"] == found["run"]["memories"] >= 250
    assert 0.1 < words["recall@1"] < 0.5
    assert 0.4 < words["recall@10"] < 0.8
    assert 0.4 < words["noise@1"] < 0.9
    assert words["perfect@10"] <= words["recall@10"] <= words["hit@10"]
    assert words["recall@1"] <= words["recall@3"] <= words["recall@5"] <= words["recall@10"]
    assert found["all"] == found["modes"]["hybrid"]["all"]


def test_two_runs_give_the_same_numbers() -> None:
    first, second = (evaluated("synthetic", "--mode", "keyword") for _ in range(2))
    assert first["all"] == second["all"]


def test_json_has_one_object_with_all_and_every_category(tmp_path: Path) -> None:
    found = evaluated("locomo", str(talk(tmp_path)))
    assert set(found) == {"all", "1", "4", "5", "run"}
    for name in ("all", "1", "4", "5"):
        assert found[name].keys() >= WANTED
        assert all(0.0 <= found[name][key] <= 1.0 for key in WANTED)
    assert found["all"]["questions"] == 4
    assert found["5"]["title"] == "adversarial"
    assert found["run"]["rows"] == found["run"]["memories"] == 8
    assert found["run"]["degraded"] == 0
    assert found["run"]["unresolved"] == [
        {"question": f"{name}/q4", "evidence": ["D7:7"], "left_out": True} for name in ("one", "two")
    ]


def test_words_find_the_turns_in_their_own_conversation(tmp_path: Path) -> None:
    dump = tmp_path / "dump.jsonl"
    found = evaluated("locomo", str(talk(tmp_path)), "--mode", "keyword", "--dump", str(dump))
    assert (found["all"]["recall@1"], found["all"]["mrr"]) == (1.0, 1.0)
    lines = [json.loads(line) for line in dump.read_text().splitlines()]
    assert [line["id"] for line in lines] == [f"{name}/q{n}" for name in ("one", "two") for n in (1, 2, 3)]
    for line in lines:
        assert len(line["ranked"]) == len(line["scores"])
        assert all(key.startswith(line["id"].partition("/")[0]) for key in line["ranked"])
        assert line["evidence"]
        assert line["scores"] == sorted(line["scores"], reverse=True)


def test_depth_limit_and_several_modes(tmp_path: Path) -> None:
    found = evaluated("locomo", str(talk(tmp_path)), "--mode", "all", "--depth", "3", "--limit", "2")
    assert set(found["modes"]) == {"keyword", "dense", "hybrid"}
    assert found["run"]["questions"] == 2
    assert "recall@3" in found["all"]
    assert "recall@5" not in found["all"]


def test_a_kept_folder_is_not_embedded_twice_and_takes_one_dataset(tmp_path: Path) -> None:
    words = ("locomo", str(talk(tmp_path)), "--data", str(tmp_path / "kept"))
    first, second = evaluated(*words), evaluated(*words)
    assert first["run"]["written_per_cpu_second"] > 0
    assert second["run"]["written_per_cpu_second"] is None
    assert first["all"] == second["all"]


def test_documents_that_say_the_same_share_a_row(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text(
        "".join(f'{{"_id": "d{i}", "title": "Bees", "text": "They dance {i % 2} ways."}}\n' for i in range(3))
    )
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "bees dance"}\n')
    (tmp_path / "qrels_test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td2\t1\n")
    found = evaluated("beir", str(tmp_path), "--mode", "keyword")
    assert (found["run"]["memories"], found["run"]["rows"]) == (3, 2)
    assert found["all"]["recall@10"] == 1.0


def test_without_a_command_the_bundled_set_runs() -> None:
    assert evaluated("--limit", "3", "--mode", "keyword")["run"]["dataset"] == "synthetic"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["locomo", "/nowhere.json"], "cannot be read"),
        (["beir", "/nowhere"], "qrels"),
        (["--json", "synthetic"], "goes behind the command"),
    ],
)
def test_what_cannot_be_run_is_said(words: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["eval", *words])
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_table_for_people(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["eval", "locomo", str(talk(tmp_path)), "--embedder", "hash:256"])
    assert done.exit_code == 0, done.output
    assert "4 single-hop" in done.stdout
    assert "ms of CPU per search" in done.stdout
    assert "2 of them have no other and are left out" in done.stdout


def test_every_switch_has_its_row(tmp_path: Path) -> None:
    found = evaluated("locomo", str(talk(tmp_path)), "--ablate", "--limit", "2")
    rows = found["modes"]
    assert list(rows)[-1] == "default"
    assert {
        "keyword search alone",
        "vectors alone",
        "all switches off",
        "rerank off",
        "times off",
        "enrich on",
    } <= rows.keys()
    assert {
        "rerank people",
        "rerank assistant",
        "rerank plain",
        "rerank sessions",
        "recency boost",
    } <= rows.keys()
    assert all(row["run"]["cpu_ms_p50"] > 0 and row["all"]["questions"] == 2 for row in rows.values())
    assert rows["default"]["all"] == found["all"]


def test_switches_of_one_run_are_those_of_a_search(tmp_path: Path) -> None:
    dump = tmp_path / "dump.jsonl"
    words = ("locomo", str(talk(tmp_path)), "--dump", str(dump))
    scores = []
    for switches in ((), ("--rerank", "off", "--no-times", "--no-enrich", "--recency", "off")):
        evaluated(*words, *switches)
        scores.append([json.loads(line)["scores"] for line in dump.read_text().splitlines()])
    assert scores[0] != scores[1]
    for wrong in (("--rerank", "best"), ("--recency", "new")):
        refused = CliRunner().invoke(app, ["eval", "locomo", str(talk(tmp_path)), *wrong])
        assert refused.exit_code != 0
        assert wrong[0] in refused.output


def test_fitted_weights_are_those_that_a_search_takes(tmp_path: Path) -> None:
    """What `fit` says of a left-out conversation is what the product does with these weights."""
    path, out, dump = talk(tmp_path), tmp_path / "weights.json", tmp_path / "dump.jsonl"
    found = evaluated("fit", str(path), "--out", str(out), "--dump", str(dump))
    assert set(found["modes"]) == {"similarity alone", "left out"}
    assert found["run"]["cpu_ms_p50"] is None
    held = load(out)["people"]
    assert Weights(name="people", **found["weights"]["people"]) == held
    assert {json.loads(line)["mode"] for line in dump.read_text().splitlines()} == {
        "similarity alone",
        "left out",
    }


def test_weights_are_fitted_to_what_tells_right_from_wrong() -> None:
    """Right candidates ask, beside being similar: both weights are great, and those of constants are none."""
    rng = np.random.default_rng(1)
    similar, asking = FEATURES.index("similarity"), FEATURES.index("asks")
    asked = []
    for n in range(60):
        features = np.zeros((12, len(FEATURES)))
        features[:, similar] = rng.uniform(size=12)
        features[:, asking] = rng.uniform(size=12) < 0.3
        right = np.zeros(12)
        right[
            np.argmax(features[:, similar] + 0.8 * features[:, asking] + rng.normal(scale=0.1, size=12))
        ] = 1.0
        question = Question(str(n), "?", "1", {f"k{np.argmax(right)}": 1.0}, group=str(n % 3))
        asked.append(Example(question, [[f"k{i}"] for i in range(12)], features, right))
    weights = fitted("people", asked, None)
    assert 0.5 < weights.weights["asks"] / weights.weights["similarity"] < 1.5
    assert set(weights.weights) == {"similarity", "asks"}
    answers = left_out("people", asked, None, 3)
    assert [one.question.id for one in answers] == [str(n) for n in range(60)]
    similarity = Weights("similarity", 0.0, {"similarity": 1.0})
    alone = [ranked(one, similarity, 3) for one in asked]
    hits = [sum(one.ranked[0] in one.question.grades for one in some) for some in (answers, alone)]
    assert hits[0] > hits[1] + 10
    with pytest.raises(ValueError, match="one conversation"):
        left_out("people", [one for one in asked if one.question.group == "1"], None, 3)
    nothing = Example(asked[0].question, [["x"]], np.ones((1, len(FEATURES))), np.ones(1))
    with pytest.raises(ValueError, match="nothing to learn"):
        fitted("people", [nothing], None)


@pytest.mark.parametrize(
    "command", ["locomo", "fit", "contexts", "answers", "abstention", "freshness", "facts"]
)
def test_nothing_is_written_to_the_configured_stores(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The configured database does not answer; whoever connects to it fails."""
    nowhere = "postgresql://nobody@127.0.0.1:1/nothing"
    for section, url in (("DATABASE", nowhere), ("INDEX", "pgvector:"), ("WORDS", "tsvector:")):
        monkeypatch.setenv(f"MEMORANDA_{section}__URL", url)
    monkeypatch.setenv("MEMORANDA_DATABASE__RETRY_SECONDS", "0.1")
    options = [] if command == "facts" else [str(talk(tmp_path)), "--embedder", "hash:256"]
    done = CliRunner().invoke(app, ["eval", command, *options, "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    json.loads(done.stdout)


def test_excerpts_have_what_answers_and_questions_elsewhere_have_not() -> None:
    dataset = synthetic.read()
    short = excerpts(dataset)
    sizes = {one.scopes[0]: 0 for one in short.questions if one.scopes}
    for memory in short.memories.values():
        sizes[f"session:{memory.session_id}"] += 1
    assert len(short.questions) > 30
    assert min(sizes.values()) >= 1
    assert max(sizes.values()) <= LONGEST
    for one in short.questions:
        assert one.grades
        assert all(f"session:{short.memories[key].session_id}" in (one.scopes or []) for key in one.grades)
    places = {one.text: one.scopes for one in short.questions}
    elsewhere = unanswered(short).questions
    assert len(elsewhere) == len(short.questions)
    assert all(not one.grades and one.scopes != places[one.text] for one in elsewhere)
    assert {one.text for one in unanswered(dataset).questions}.isdisjoint(places)
