"""The readers on small files with the faults that files in circulation have, and on the real ones where they are."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memoranda.app.evals import beir, locomo, synthetic
from memoranda.errors import InvalidInput

DATA = Path(os.environ.get("MEMORANDA_EVAL_DATA", Path(__file__).parents[3] / "shared" / "data"))


def need(*parts: str) -> Path:
    """A path in the folder of evaluation data, or the test is skipped."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path} is not there; MEMORANDA_EVAL_DATA names the folder of evaluation data")
    return path


def conversation(**more: Any) -> dict[str, Any]:
    return {
        "sample_id": "talk",
        "conversation": {
            "speaker_a": "Ana",
            "speaker_b": "Ben",
            "session_10_date_time": "12:09 am on 13 September, 2023",
            "session_10": [{"speaker": "Ben", "dia_id": "D10:1", "text": "Ok."}],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_2": [
                {"speaker": "Ana", "dia_id": "D2:1", "text": "Ok."},
                {"speaker": "Ben", "dia_id": "D2:2", "text": "Look!", "blip_caption": "a photo of a cat"},
                {"speaker": "Ana", "dia_id": "D2:03", "text": "Ok."},
                {"speaker": "Ana", "dia_id": "D2:4", "text": "", "img_url": ["somewhere"]},
            ],
            "session_11_date_time": "10:00 am on 1 October, 2023",
        },
        "qa": [
            {"question": "What did Ben show?", "answer": "a cat", "evidence": ["D2:2"], "category": 4},
            {"question": "Who agreed?", "evidence": ["D2:1; D:2:3", "D10:01"], "category": 1},
            {"question": "What is not there?", "evidence": ["D4:36", "D10:1"], "category": 2},
            {"question": "What is lost?", "evidence": ["D"], "category": 2},
            {"question": "What has none?", "evidence": [], "category": 3},
            {
                "question": "What did Ana show?",
                "adversarial_answer": "a cat",
                "evidence": ["D2:2"],
                "category": 5,
            },
        ],
        **more,
    }


def written(folder: Path, held: object) -> Path:
    path = folder / "talks.json"
    path.write_text(json.dumps(held))
    return path


@pytest.mark.parametrize(
    ("evidence", "turns"),
    [
        ("D3:14", ["D3:14"]),
        ("D8:6; D9:17", ["D8:6", "D9:17"]),
        ("D9:1 D4:4 D4:6", ["D9:1", "D4:4", "D4:6"]),
        ("D1:2,D1:3", ["D1:2", "D1:3"]),
        ("D:11:26", ["D11:26"]),
        ("D30:05", ["D30:5"]),
        ("(D 2 : 7)", ["D2:7"]),
        ("D", []),
        ("", []),
    ],
)
def test_malformed_evidence_is_read(evidence: str, turns: list[str]) -> None:
    assert locomo.turn_ids(evidence) == turns


def test_turns_are_messages_of_their_conversation_in_order(tmp_path: Path) -> None:
    dataset = locomo.read(written(tmp_path, [conversation()]))
    assert list(dataset.memories) == ["talk/D2:1", "talk/D2:2", "talk/D2:3", "talk/D10:1"]
    turn = dataset.memories["talk/D2:2"]
    assert (turn.kind, turn.session_id) == ("message", "talk")
    assert turn.content == "Look! [photo: a photo of a cat]"
    assert turn.metadata == {"speaker": "Ben", "dia_id": "D2:2"}
    assert turn.occurred_at == datetime(2023, 5, 8, 13, 56, 1)
    times = [memory.occurred_at for memory in dataset.memories.values()]
    assert times == sorted(times, key=str)
    assert len(set(times)) == len(times)


def test_questions_find_their_turns_and_lost_evidence_is_told(tmp_path: Path) -> None:
    dataset = locomo.read(written(tmp_path, conversation()))
    assert [sorted(one.grades) for one in dataset.questions] == [
        ["talk/D2:2"],
        ["talk/D10:1", "talk/D2:1", "talk/D2:3"],
        ["talk/D10:1"],
        ["talk/D2:2"],
    ]
    assert {one.category for one in dataset.questions} == {"1", "2", "4", "5"}
    assert all(one.scopes == ["session:talk"] for one in dataset.questions)
    told = [(one.question, one.evidence, one.left_out) for one in dataset.unresolved]
    assert told == [("talk/q3", ["D4:36"], False), ("talk/q4", ["D"], True), ("talk/q5", [], True)]


def test_midnight_and_other_times() -> None:
    assert locomo.session_time("12:09 am on 13 September, 2023") == datetime(2023, 9, 13, 0, 9)
    assert locomo.session_time(" 7:55 pm on 9 June 2023") == datetime(2023, 6, 9, 19, 55)
    assert locomo.session_time("2023-06-09T19:55:00") == datetime(2023, 6, 9, 19, 55)
    with pytest.raises(InvalidInput, match="date_time"):
        locomo.session_time("last Tuesday")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no json", "not JSON"),
        ("[1]", "must hold conversations"),
        ('[{"sample_id": "x"}]', "x is not shaped"),
    ],
)
def test_other_files_are_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "odd.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=message):
        locomo.read(path)
    with pytest.raises(InvalidInput, match="cannot be read"):
        locomo.read(tmp_path / "nowhere.json")


def beir_folder(folder: Path, qrels: str = "qrels/test.tsv") -> Path:
    (folder / qrels).parent.mkdir(exist_ok=True)
    (folder / "corpus.jsonl").write_text(
        '{"_id": "d1", "title": "Bees", "text": "They dance."}\n\n{"_id": "d2", "text": "Wasps do not."}\n'
        '{"_id": "d3", "title": "", "text": "", "metadata": {}}\n'
    )
    (folder / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "who dances"}\n{"_id": "q2", "text": "who stings"}\n{"_id": "q3", "text": "train"}\n'
    )
    (folder / qrels).write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq1\td9\t1\nq2\td8\t1\n")
    return folder


@pytest.mark.parametrize("qrels", ["qrels/test.tsv", "qrels_test.tsv"])
def test_a_beir_folder(tmp_path: Path, qrels: str) -> None:
    dataset = beir.read(beir_folder(tmp_path, qrels))
    assert {key: one.content for key, one in dataset.memories.items()} == {
        "d1": "Bees\nThey dance.",
        "d2": "Wasps do not.",
    }
    assert all(one.kind == "document" for one in dataset.memories.values())
    assert [(one.id, one.grades) for one in dataset.questions] == [("q1", {"d1": 2.0})]
    assert [(one.question, one.left_out) for one in dataset.unresolved] == [("q1", False), ("q2", True)]


def test_a_beir_folder_with_a_fault_is_refused_by_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"neither qrels/test.tsv nor qrels_test.tsv"):
        beir.read(tmp_path)
    folder = beir_folder(tmp_path)
    with pytest.raises(InvalidInput, match=r"qrels/dev.tsv"):
        beir.read(folder, "dev")
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "text": "x"}\n{"text": "no id"}\n')
    with pytest.raises(InvalidInput, match=r"corpus.jsonl, line 2"):
        beir.read(folder)
    (folder / "qrels" / "test.tsv").write_text("q1\td1\t1\nq1 d2 1\n")
    with pytest.raises(InvalidInput, match=r"test.tsv, line 2"):
        beir.read(folder)


def test_the_bundled_set_is_whole() -> None:
    dataset = synthetic.read()
    assert len(dataset.questions) >= 40
    assert len(dataset.memories) >= 250
    texts = [(one.metadata["speaker"], one.occurred_at, one.content) for one in dataset.memories.values()]
    assert len(set(texts)) == len(texts)
    for question in dataset.questions:
        assert question.wrong
        assert question.grades.keys() | question.wrong <= dataset.memories.keys()
        assert not question.grades.keys() & question.wrong


def test_a_synthetic_file_with_a_fault_is_refused_by_case(tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text("cases: [{query: who, category: x, answers: ['Ana said it']}]")
    with pytest.raises(InvalidInput, match="case 1"):
        synthetic.read(path)
    path.write_text("cases: [{query: who, category: x}]")
    with pytest.raises(InvalidInput, match="needs `answers`"):
        synthetic.read(path)


def test_the_real_conversations() -> None:
    dataset = locomo.read(need("locomo", "locomo_dev5.json"))
    assert (len(dataset.memories), len(dataset.questions)) == (2960, 1018)
    assert sum(one.left_out for one in dataset.unresolved) == 2
    assert len({one.session_id for one in dataset.memories.values()}) == 5


def test_the_real_abstracts() -> None:
    dataset = beir.read(need("scifact"))
    assert (len(dataset.memories), len(dataset.questions)) == (5183, 300)
    assert not dataset.unresolved
