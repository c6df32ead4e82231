"""`memoranda eval contexts` measures what it says, on the bundled conversation and on a small one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from typer.testing import CliRunner

from memoranda.app.evals import assistant, contexts, locomo
from memoranda.app.evals.observed import Derived, derive, observed
from memoranda.cli.evals.command import app
from memoranda.errors import InvalidInput
from memoranda.types import Kind


def test_a_larger_context_has_more_of_what_answers() -> None:
    dataset = assistant.read()
    report = asyncio.run(
        contexts.measure(
            dataset,
            embedder="hash:256",
            data=":memory:",
            as_of=True,
            budgets=(60, 1_000),
            progress=lambda *_: None,
        )
    )
    every = report.categories[0]
    assert (every.category, every.questions, report.model) == ("all", len(dataset.questions), "hash-256")
    assert every.context[60] < every.context[1_000] <= 1
    assert every.context[1_000] >= every.recall_at_10 > 0


SAID = (
    (
        ("Ana", "I moved to Porto last week, and I love it there."),
        ("Ben", "That sounds great, tell me about it."),
        ("Ana", "The river is right behind the house."),
        ("Ben", "I am allergic to peanuts, so no cake for me."),
    ),
    (
        ("Ben", "How was the concert on Tuesday?"),
        ("Ana", "Loud, and the drummer was late."),
        ("Ben", "My sister plays the violin."),
        ("Ana", "I work as a nurse now."),
    ),
)


def talks(tmp_path: Path) -> Path:
    """Write two conversations of two sessions, each with a question for every message, of a category of its own."""
    samples = []
    for name, category in (("one", 1), ("two", 4)):
        talk: dict[str, object] = {}
        asked = []
        for number, lines in enumerate(SAID, 1):
            talk[f"session_{number}_date_time"] = f"1:56 pm on {number} May, 2023"
            talk[f"session_{number}"] = [
                {"speaker": speaker, "dia_id": f"D{number}:{at}", "text": text}
                for at, (speaker, text) in enumerate(lines, 1)
            ]
            asked += [
                {"question": f"Who said: {text}", "evidence": [f"D{number}:{at}"], "category": category}
                for at, (_, text) in enumerate(lines, 1)
            ]
        samples.append({"sample_id": name, "conversation": talk, "qa": asked})
    file = tmp_path / "talks.json"
    file.write_text(json.dumps(samples))
    return file


def test_a_fact_has_the_messages_that_it_rests_on_and_a_summary_has_none(tmp_path: Path) -> None:
    dataset = locomo.read(talks(tmp_path))
    silent = lambda *_: None  # noqa: E731

    async def recalls(kind: Kind) -> tuple[int, list[float]]:
        async with observed(dataset, embedder="hash:256", progress=silent) as (product, conversations):
            what = Derived.FACTS if kind == "fact" else Derived.SUMMARIES
            assert not (await product.memories.list(kinds=["fact", "session_summary"])).data
            number = await derive(product, conversations, what, silent)
            scopes = conversations.scopes["one"]
            ids = [memory.id for memory in (await product.memories.list(kinds=[kind], scopes=scopes)).data]
            return number, [
                await contexts.recall(product, ids, conversations.written, question)
                for question in dataset.questions[:4]
            ]

    assert asyncio.run(recalls("fact")) == (6, [1.0, 0.0, 0.0, 1.0])
    assert asyncio.run(recalls("session_summary")) == (6, [0.0, 0.0, 0.0, 0.0])


def test_the_same_questions_are_asked_without_and_with_what_is_derived(tmp_path: Path) -> None:
    dataset = locomo.read(talks(tmp_path))
    report = asyncio.run(
        contexts.measure(
            dataset,
            embedder="hash:256",
            data=":memory:",
            as_of=False,
            derived=[Derived.FACTS, Derived.SUMMARIES],
            budgets=(1_000,),
            progress=lambda *_: None,
        )
    )
    assert [(added.derived, added.by) for added in report.derived] == [
        ("facts", "rules"),
        ("summaries", "rules"),
    ]
    for categories in (report.categories, *(added.categories for added in report.derived)):
        assert [(one.category, one.questions) for one in categories] == [("all", 16), ("1", 8), ("4", 8)]
        assert categories[0].context[1_000] == 1.0


def test_a_limit_takes_questions_of_all_conversations(tmp_path: Path) -> None:
    options = ["contexts", str(talks(tmp_path)), "--embedder", "hash:256", "--limit", "2", "--json"]
    given = json.loads(CliRunner().invoke(app, options).output)
    assert [(one["category"], one["questions"]) for one in given["categories"]] == [
        ("all", 2), ("1", 1), ("4", 1),
    ]  # fmt: skip


def test_the_command_prints_a_table_or_json(tmp_path: Path) -> None:
    turns = [
        {"speaker": "Ana", "dia_id": f"D1:{n}", "text": f"the lamp of room {n} is blue"} for n in range(1, 6)
    ]
    asked = [{"question": "Which lamp is in room 3?", "evidence": ["D1:3"], "category": 4}]
    talk = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    file = tmp_path / "talk.json"
    file.write_text(json.dumps([{"sample_id": "one", "conversation": talk, "qa": asked}]))
    options = ["contexts", str(file), "--embedder", "hash:256"]
    shown = CliRunner().invoke(app, options)
    assert "context@1000" in shown.output, shown.output
    given = json.loads(CliRunner().invoke(app, [*options, "--as-of", "--json"]).output)
    assert given["categories"][0]["context"] == {"500": 1.0, "1000": 1.0, "2000": 1.0}


def test_the_command_shows_facts_and_summaries_below_each_category(tmp_path: Path) -> None:
    options = ["contexts", str(talks(tmp_path)), "--embedder", "hash:256", "--limit", "2"]
    shown = CliRunner().invoke(app, [*options, "--with", "facts", "--with", "summaries"])
    assert shown.output.count("with facts") == shown.output.count("with summaries") == 3, shown.output
    assert "6 facts by rules" in shown.output
    given = json.loads(CliRunner().invoke(app, [*options, "--with", "facts", "--json"]).output)
    assert [(one["derived"], one["number"]) for one in given["derived"]] == [("facts", 6)]
    refused = CliRunner().invoke(app, [*options, "--with", "facts", "--data", str(tmp_path / "kept")])
    assert isinstance(refused.exception, InvalidInput)
    assert refused.exception.field == "--data"
