"""Summaries: what a model is asked and what becomes of its answer; sentences chosen where there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.config.agent_sections import Summarization
from memoranda.errors import ModelBroken, ModelUnavailable
from memoranda.providers.chat.base import Model, TokenUsage
from memoranda.providers.chat.extractive import ExtractiveModel
from memoranda.providers.chat.scripted import ScriptedModel
from memoranda.responses.items import checked
from memoranda.responses.summaries import LEAST, extract, line_of, pieces_of, summarize
from memoranda.responses.values import Item, Summary, compaction_item
from memoranda.text.extracting import trimmed
from memoranda.text.tokens import count

TALK = [
    {
        "role": "user",
        "content": "Please help me to plan the move of the Hamburg office in March 2027. Thanks!",
    },
    {"role": "assistant", "content": "Sure. How many desks are there?"},
    {"role": "user", "content": "There are 42 desks. Nice weather today, by the way."},
    {"role": "assistant", "content": "Good. I will note that. Yes, it is sunny."},
    {
        "role": "user",
        "content": "We decided to hire Lindner Transporte because they were the cheapest. Well, well.",
    },
    {"role": "assistant", "content": "Fine. The deadline for the contract is 15 January. OK."},
]


def items(*raw: dict[str, Any]) -> list[Item]:
    return checked(list(raw))


def made(model: Model, held: Sequence[Item], limit: int = 500, **fields: Any) -> Summary:
    return asyncio.run(
        summarize(held, model, Summarization(summary_max_tokens=limit, **fields.pop("with_", {})), **fields)
    )


# --- by a model --------------------------------------------------------------------------------------


def test_a_model_is_told_the_conversation_and_its_answer_is_the_summary() -> None:
    model = ScriptedModel([{"text": "They move in March."}])
    before = Summary(
        summary="Earlier: budget 10 000 euros.", summarized_up_to="r1", token_count=9, created_at=1
    )
    costs: list[TokenUsage] = []
    summary = made(model, items(*TALK), up_to="r9", previous=before, meter=costs.append)
    assert (summary.summary, summary.summarized_up_to, summary.by) == (
        "They move in March.",
        "r9",
        "scripted",
    )
    assert summary.token_count == count("They move in March.")
    system, asked = model.asked[0].messages
    assert system["role"] == "system"
    for text in ("budget 10 000 euros", "42 desks", "Lindner Transporte", "User: ", "Assistant: "):
        assert text in asked["content"]
    assert len(costs) == 1
    assert costs[0].input > 0


def test_another_models_name_goes_along() -> None:
    model = ScriptedModel([{"text": "short"}])
    assert made(model, items(*TALK), with_={"model": "tiny"}).by == "tiny"
    assert model.asked[0].model == "tiny"


def test_an_answer_that_is_too_long_is_cut_at_a_sentence() -> None:
    text = " ".join(f"Fact {i} about the kettle is known." for i in range(200))
    summary = made(ScriptedModel([{"text": text}]), items(*TALK), 50)
    assert summary.token_count == count(summary.summary) <= 50
    assert summary.summary.endswith("is known.")


def test_a_long_conversation_goes_through_the_model_piece_by_piece() -> None:
    model = ScriptedModel(
        [
            {"when": "number 0 ", "text": "notes A"},
            {"when": "Earlier notes:\nnotes A", "text": "notes B"},
            {"when": "Earlier notes:\nnotes B", "text": "notes C"},
        ]
    )
    held = items(*({"role": "user", "content": f"number {i} " + "word " * 300} for i in range(16)))
    assert made(model, held, 100, context_tokens=LEAST + 3_200).summary == "notes C"
    assert len(model.asked) == 3
    told = "".join(ask.messages[1]["content"] for ask in model.asked)
    assert all(told.count(f"number {i} ") == 1 for i in range(16))


@pytest.mark.parametrize(
    ("turn", "error"),
    [
        ({"text": "  "}, ModelBroken),
        ({"text": "half", "cut": True}, ModelBroken),
        ({"status": 503}, ModelUnavailable),
    ],
)
def test_no_usable_answer_is_an_error(turn: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        made(ScriptedModel([turn]), items(*TALK))


M = {"server_label": "s", "name": "m", "arguments": "{}"}

# --- as a transcript ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "line"),
    [
        ({"role": "user", "content": " Hi. "}, "User: Hi."),
        ({"role": "developer", "content": "Be brief."}, "Developer: Be brief."),
        ({"role": "assistant", "content": ""}, ""),
        ({"role": "user", "content": [
            {"type": "input_text", "text": "Look:"}, {"type": "input_image", "image_url": "data:,"},
            {"type": "input_file", "file_data": "data:,", "filename": "a.pdf"},
        ]}, "User: Look: [file a.pdf] [image]"),
        ({"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a":1}'}, 'Assistant called f({"a":1})'),
        ({"type": "function_call_output", "call_id": "c", "output": "3"}, "Result: 3"),
        ({"type": "file_search_call", "queries": ["a", "b"]}, "Assistant searched the files for: a; b"),
        ({"type": "mcp_call", **M, "output": "4"}, "Assistant called m({}): 4"),
        ({"type": "mcp_call", **M, "error": "no"}, "Assistant called m({}): no"),
        (compaction_item("long ago"), "Earlier notes: long ago"),
        ({"type": "reasoning", "summary": []}, ""),
    ],
)  # fmt: skip
def test_the_line_of_an_item(item: dict[str, Any], line: str) -> None:
    got = line_of(items(item)[0])
    assert sorted(got.split()) == sorted(line.split())


def test_a_huge_result_does_not_fill_the_transcript() -> None:
    (line,) = pieces_of(
        items({"type": "function_call_output", "call_id": "c", "output": "data " * 50_000}), 10_000
    )
    assert count(line) <= 1_001


@settings(max_examples=25)
@given(st.lists(st.integers(0, 120), max_size=20), st.integers(20, 200))
def test_no_piece_is_beyond_its_room(lengths: list[int], room: int) -> None:
    held = items(
        *({"role": "user", "content": f"n{i} " + "word " * length} for i, length in enumerate(lengths))
    )
    pieces = pieces_of(held, room)
    assert all(count(piece) <= room for piece in pieces)
    told = "\n".join(pieces)
    assert [f"User: n{i}" in told for i in range(len(lengths))] == [True] * len(lengths)


# --- without a model ---------------------------------------------------------------------------------


def test_without_a_model_the_telling_sentences_are_chosen() -> None:
    summary = made(ExtractiveModel(), items(*TALK), 70, up_to="r1")
    assert summary.by == "extractive"
    assert summary.token_count == count(summary.summary) <= 70
    text = summary.summary
    for fact in ("Hamburg", "42 desks", "Lindner", "15 January"):
        assert fact in text, text
    for filler in ("sunny", "Thanks", "Well, well"):
        assert filler not in text, text
    assert text.index("Hamburg") < text.index("42") < text.index("Lindner") < text.index("15 January")


def test_a_summary_of_a_summary_keeps_what_the_first_told() -> None:
    first = extract(items(*TALK), "", 70)
    more = [{"role": "user", "content": f"Chatter about nothing in particular, take {i}."} for i in range(30)]
    second = extract(items(*more), first, 70)
    for fact in ("Hamburg", "Lindner", "15 January"):
        assert fact in second, second


words = st.sampled_from(
    ["kettle", "Maria", "42", "decided", "the", "is", "green", "水は青い。", "Why?", "it.", "\n\n"]
)
talks = st.lists(
    st.tuples(st.sampled_from(["user", "assistant"]), st.lists(words, max_size=12).map(" ".join)), max_size=12
)


@given(talks, st.text(max_size=60), st.integers(1, 80))
def test_an_extract_is_within_its_bound_and_always_the_same(
    talk: list[tuple[str, str]], before: str, most: int
) -> None:
    held = items(*({"role": role, "content": text} for role, text in talk))
    text = extract(held, before, most)
    assert count(text) <= most
    assert text == extract(held, before, most)


def test_nothing_said_is_an_empty_summary() -> None:
    assert extract([], "", 50) == ""
    assert made(ExtractiveModel(), []).token_count == 0


@given(st.text(max_size=200), st.integers(0, 60))
def test_a_text_is_trimmed_to_its_beginning(text: str, most: int) -> None:
    cut = trimmed(text, most)
    assert count(cut) <= most
    assert text.startswith(cut)
    if count(text) <= most:
        assert cut == text
