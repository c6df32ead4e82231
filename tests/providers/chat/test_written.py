"""Tool calls that a model writes as text, in whatever pieces they come."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memoranda.providers.chat.written import WrittenCalls

ONE = '{"name": "find", "arguments": {"query": "a ``` b </tool_call>"}}'
QUERY = {"query": "a ``` b </tool_call>"}


def read(text: str, size: int = 3) -> tuple[str, list[tuple[str | None, object]]]:
    """The text and the calls of an answer that comes in pieces of so many characters."""
    reading = WrittenCalls({"find", "note"})
    told = "".join(reading.feed(text[at : at + size]) for at in range(0, len(text), size))
    left, parts = reading.end()
    made = [(part.function.name, part.function.arguments) for part in parts if part.function is not None]
    assert len({part.index for part in parts}) == len(parts)
    return told + left, made


@pytest.mark.parametrize("size", [1, 2, 7, 10_000])
@pytest.mark.parametrize(
    ("text", "said", "calls"),
    [
        (f"```json\n{ONE}\n```", "", [("find", QUERY)]),
        (f"```\n{ONE}\n```\n", "", [("find", QUERY)]),
        (f"Let me look.\n\n```tool_call\n{ONE}\n```", "Let me look.\n\n", [("find", QUERY)]),
        (f"<tool_call>\n{ONE}\n</tool_call>", "", [("find", QUERY)]),
        (f"<tool_call>{ONE}</tool_call>\n<tool_call>{ONE}</tool_call>", "", [("find", QUERY)] * 2),
        (f"[TOOL_CALLS] [{ONE}]", "", [("find", QUERY)]),
        (ONE, "", [("find", QUERY)]),
        (f"  [{ONE}, {ONE}]", "", [("find", QUERY)] * 2),
        ('{"name": "note", "parameters": {}}', "", [("note", {})]),
        ('{"name": "note"}', "", [("note", {})]),
        (
            '{"type": "function", "function": {"name": "note", "arguments": "{\\"n\\": 1}"}}',
            "",
            [("note", {"n": 1})],
        ),
        ('{"tool": "note", "args": {"n": 1}}', "", [("note", {"n": 1})]),
    ],
)
def test_what_a_call_looks_like(
    text: str, said: str, calls: list[tuple[str, dict[str, object]]], size: int
) -> None:
    assert read(text, size) == (said, calls)


@pytest.mark.parametrize("size", [1, 2, 7, 10_000])
@pytest.mark.parametrize(
    "text",
    [
        "A usual answer.",
        "",
        " \n",
        '{"name": "Ada", "age": 36}',
        '{"name": "other", "arguments": {}}',
        f"{ONE} is what I would call.",
        f"```json\n{ONE}\n```\nThat is a call.",
        '```python\nprint({"a": 1})\n```\nand\n```json\n{"name": "other"}\n```',
        '```json\n{"name": "find", "arguments": {"query": ',
        '```json\n{"name": "find", "arguments": [1]}\n```',
        '```json\n{"name": "find", "arguments": "no JSON"}\n```',
        "``", "<tool", "[TOOL_", "a < b and c", "[1] is what the passage says.",
    ],
)  # fmt: skip
def test_what_is_none_stays_text(text: str, size: int) -> None:
    assert read(text, size) == (text, [])


@given(st.text(alphabet='`[]{}<>"/:tool_calname\n ', max_size=60), st.integers(1, 9))
@example('{"name":"find","arguments":' * 20, 4)
def test_no_text_is_lost(text: str, size: int) -> None:
    told, made = read(text, size)
    assert made or told == text


def test_usual_text_is_not_held_back() -> None:
    reading = WrittenCalls({"find"})
    assert reading.feed("Here is the code:\n") == "Here is the code:\n"
    assert reading.feed("```python\n") == ""
    code = "for line in lines:\n    print(line)\n" * 3
    assert reading.feed(code) == f"```python\n{code}"


def test_of_endless_calls_no_more_is_held_than_the_bound() -> None:
    reading = WrittenCalls({"find"})
    text = json.dumps({"name": "find", "arguments": {"query": "x" * 70_000}})
    assert reading.feed(text) == text
