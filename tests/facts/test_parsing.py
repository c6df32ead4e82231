"""Whatever a model answers, what can be read of it as facts is read, and nothing else comes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memoranda.clock import moment
from memoranda.facts.parsing import LOOSE, MOST, UNSAID, Candidate, parsed

TEA = {"fact": "Mara prefers green tea", "confidence": 0.9, "tags": ["Food", "tea"], "messages": [2, 3]}
BEES = {"fact": "Mara is allergic to bees", "confidence": 0.8, "tags": [], "messages": [4]}
READ = [
    Candidate("Mara prefers green tea", 0.9, ("food", "tea"), messages=(2, 3)),
    Candidate("Mara is allergic to bees", 0.8, messages=(4,)),
]
LIST = json.dumps([TEA, BEES])


@pytest.mark.parametrize(
    "answer",
    [
        LIST,
        json.dumps({"facts": [TEA, BEES]}, indent=2),
        f"Here are the facts:\n```json\n{LIST}\n```\nAnything else?",
        f"Sure! {LIST} Let me know.",
        f"{json.dumps(TEA)}\n{json.dumps(BEES)}",
        f"[{json.dumps(TEA)}, {json.dumps(BEES)},]",
        json.dumps([[TEA], {"items": [BEES]}]),
        f"[{json.dumps(TEA)}, {{broken, }}, {json.dumps(BEES)}]",
        json.dumps([TEA, BEES, TEA | {"fact": "mara prefers GREEN tea"}, 7, None, {"fact": 12}]),
    ],
)
def test_json_in_any_wrapping(answer: str) -> None:
    assert parsed(answer) == READ


@given(st.integers(0, len(LIST) - 1))
def test_json_cut_off_anywhere_gives_what_was_whole(at: int) -> None:
    for text in (LIST[:at], f"```json\n{LIST[:at]}", json.dumps({"facts": [TEA, BEES]})[:at]):
        assert parsed(text) == READ[: len(parsed(text))]
    assert len(parsed(LIST[:at])) == LIST[:at].count("}")


def test_strings_and_prose_are_facts_that_rest_on_everything() -> None:
    said = ["Mara prefers green tea", "Mara is allergic to bees"]
    as_strings = parsed(json.dumps(said))
    assert [(one.text, one.confidence, one.messages) for one in as_strings] == [(t, UNSAID, ()) for t in said]
    assert parsed(json.dumps(said)[:-9]) == as_strings[:1]
    for prose in (
        f"I found these facts:\n- {said[0]}\n- **{said[1]}**\n",
        f"1. {said[0]}\n2) {said[1]}",
        f"{said[0]}.  {said[1]}.",
        f"Facts [2]:\n* {said[0]}\n* {said[1]}",
    ):
        assert [(one.text.rstrip("."), one.confidence) for one in parsed(prose)] == [(t, LOOSE) for t in said]


@pytest.mark.parametrize(
    "answer",
    [
        "", "   ", "[]", "{}", '{"facts": []}', "null", "There are no facts worth keeping.", "None.",
        "```json\n[]\n```",
        "I could not find any facts.", "Here are the facts:", "[[[[[[" * 5_000, '{"a":' * 5_000, "[{" * 5_000,
        '[{"fact": "Mara li', '[{"confidence": 1, "tags": ["tea", "food"], "fact": "Mara li', '{"fact": ["Mara"]}',
    ],
)  # fmt: skip
def test_nothing_is_nothing(answer: str) -> None:
    assert parsed(answer) == []


def test_ten_thousand_facts_are_fifty() -> None:
    many = [{"fact": f"Mara owns book number {n}"} for n in range(10_000)]
    for answer in (json.dumps(many), json.dumps(many)[:-40], "\n".join(f"- {one['fact']}" for one in many)):
        found = parsed(answer)
        assert [one.text for one in found] == [one["fact"] for one in many[:MOST]]


@pytest.mark.parametrize(
    ("given", "is_"),
    [
        (0.25, 0.25), ("0.25", 0.25), ("80%", 0.8), (80, 0.8), (1.2, 1.0), (-3, 0.0), ("high", 0.9), (True, UNSAID),
        (None, UNSAID), ([], UNSAID), (float("nan"), UNSAID), (float("inf"), UNSAID), (10**400, UNSAID), ("?", UNSAID),
    ],
)  # fmt: skip
def test_confidence_is_a_share_of_one(given: Any, is_: float) -> None:
    (one,) = parsed(json.dumps([TEA | {"confidence": given}]))
    assert one.confidence == is_


@pytest.mark.parametrize(
    "given", [[2, 3], ["2", "3"], "[2][3]", "m2, m3", [2, "message 3", True, None, 0, -1]]
)
def test_messages_are_numbers_however_they_are_written(given: Any) -> None:
    (one,) = parsed(json.dumps([TEA | {"messages": given}]))
    assert one.messages[:2] == (2, 3)


def test_validity_is_read_from_dates() -> None:
    def read(**fields: Any) -> list[str | None]:
        (one,) = parsed(json.dumps([TEA | fields]))
        return [at and f"{moment(at):%Y-%m-%d %H:%M}" for at in (one.valid_from, one.valid_until)]

    assert read(valid_from="2024-05-08", valid_until="2025") == ["2024-05-08 00:00", "2025-01-01 00:00"]
    assert read(valid_from="2024-05", valid_to="2024-01") == ["2024-05-01 00:00", None]
    assert read(valid_from="2024-05-08T10:30:00+02:00") == ["2024-05-08 08:30", None]
    assert read(valid_from="last week", valid_until=5) == [None, None]
    assert read(valid_from="2024-13-40", valid_until="9999999") == [None, None]


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(
            st.sampled_from(["fact", "facts", "tags", "confidence", "messages", "valid_from", "x"]), inner
        )
    ),
    max_leaves=20,
)


@settings(max_examples=60)
@given(st.text(max_size=300) | JSONISH.map(json.dumps) | st.text(alphabet='[]{}",:\\`-1a\n ', max_size=200))
@example('["\\ud800", "Mara likes \\u0000 tea"]')
def test_anything_at_all_is_read_within_bounds(answer: str) -> None:
    found = parsed(answer)
    assert len(found) <= MOST
    for one in found:
        one.text.encode()
        assert 3 <= len(one.text) <= 600
        assert "\x00" not in one.text
        assert 0.0 <= one.confidence <= 1.0
        assert all(isinstance(tag, str) and tag for tag in one.tags)
        assert all(number > 0 for number in one.messages)
