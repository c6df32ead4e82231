"""Bytes of a stream cut anywhere say the same, and no bytes at all break more than the answer."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.providers.chat.base import (
    Ended,
    Piece,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)
from memoranda.providers.chat.reading import Nonsense, Reading
from memoranda.providers.chat.sse import Events
from memoranda.providers.chat.stream import Failed, Stream, Whole

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
CALL = st.fixed_dictionaries(
    {"function": st.fixed_dictionaries({}, optional={"name": st.just("f"), "arguments": TEXT})},
    optional={"index": st.integers(0, 2), "id": st.sampled_from(["a", "b"])},
)
DELTA = st.fixed_dictionaries(
    {},
    optional={
        "role": st.just("assistant"),
        "content": TEXT | st.none() | st.sampled_from(["<think>", "</think>", "<th", "ink>"]),
        "reasoning_content": TEXT,
        "refusal": TEXT,
        "tool_calls": st.lists(CALL, max_size=2),
    },
)
END_OF_LINE = st.sampled_from(["\n", "\r\n", "\r"])


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """A valid stream: events of one line or several, comments and other fields between them."""
    eol = draw(END_OF_LINE)
    lines = ["\ufeff"] if draw(st.booleans()) else [""]
    for delta in draw(st.lists(DELTA, max_size=6)):
        chunk = {"choices": [{"index": 0, "delta": delta}], "x": draw(TEXT)}
        indent = draw(st.sampled_from([None, 1]))
        data = json.dumps(chunk, ensure_ascii=draw(st.booleans()), indent=indent).split("\n")
        space = draw(st.sampled_from(["", " "]))
        lines += [draw(st.sampled_from([": ping\n", "id: 3\n", "event: x\n", "\n", ""]))]
        lines += [f"data:{space}{line}\n" for line in data] + ["\n"]
    lines.append("data: [DONE]\n\n" if draw(st.booleans()) else "")
    return "".join(lines).replace("\n", eol).encode()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(ends)]


def read(parts: list[bytes], inline_thinking: bool = True) -> Any:
    """What the parts say: the pieces of each kind put together, and the calls."""
    reading = Reading(inline_thinking)
    stream = Stream(reading)
    found: list[Piece] = []
    try:
        for part in parts:
            found += stream.feed(part)
        found += stream.end()
        found += reading.end("m")
    except Nonsense as exc:
        found.append(TextDelta(f"nonsense: {exc}"))
    return told(found), stream.done


def told(found: list[Piece]) -> Any:
    said = {
        kind: "".join(piece.text for piece in found if isinstance(piece, kind))  # type: ignore[union-attr]
        for kind in (TextDelta, ReasoningDelta, RefusalDelta)
    }
    calls: dict[int, list[Any]] = {}
    for piece in found:
        if isinstance(piece, ToolCallDelta):
            calls.setdefault(piece.index, [piece.name, ""])[1] += piece.arguments
    return said, calls, [piece for piece in found if isinstance(piece, Ended)]


@given(streams(), st.lists(st.integers(0, 10_000), max_size=12))
def test_a_stream_cut_anywhere_says_the_same(data: bytes, places: list[int]) -> None:
    whole = read([data])
    assert read(cut(data, places)) == whole
    assert read([data[at : at + 1] for at in range(len(data))]) == whole


SCRAPS = st.sampled_from([b"data: 1", b"data:", b"\n", b"\r", b"\r\n", b": c", b"\xef\xbb\xbf", b"x"])


@given(st.lists(SCRAPS, max_size=20), st.lists(st.integers(0, 99), max_size=8))
def test_events_are_those_of_the_reference(parts: list[bytes], places: list[int]) -> None:
    data = b"".join(parts)
    events = Events()
    found = [event for part in [*cut(data, places), b"\n\n"] for event in events.feed(part)]
    assert found == reference(data)


def reference(data: bytes) -> list[bytes]:
    """The data of events as the HTML standard's algorithm has it, and of one that the stream's end left open."""
    found: list[bytes] = []
    data = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    now: list[bytes] = []
    for line in [*data.split(b"\n"), b""]:
        if not line:
            found += [b"\n".join(now)] if now else []
            now = []
            continue
        name, _, value = line.partition(b":")
        if name == b"data" and b":" in line:
            now.append(value.removeprefix(b" "))
    return found


@given(st.binary(max_size=200) | st.builds(lambda text: b"data: " + text + b"\n\n", st.binary(max_size=100)))
def test_any_bytes_are_pieces_or_nonsense(data: bytes) -> None:
    for kind in (Stream, Whole):
        reader = kind(Reading(True))
        try:
            made = told([*reader.feed(data), *reader.end()])
        except (Nonsense, Failed):
            continue
        assert json.dumps(made[0][TextDelta]).isprintable()


NAMES = st.sampled_from(
    ["choices", "delta", "message", "content", "tool_calls", "function", "name", "arguments", "index", "id", "usage",
     "prompt_tokens", "error", "finish_reason", "logprobs", "reasoning", "text", "type", "thinking", "model", "code"]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=50)
@given(st.dictionaries(NAMES, JSON, max_size=5), DELTA)
def test_any_json_is_pieces_or_nonsense(odd: dict[str, Any], delta: dict[str, Any]) -> None:
    documents = (
        odd,
        {"choices": [odd]},
        {"choices": [{"delta": delta | odd}]},
        {"choices": [{"message": {"tool_calls": [odd]}}]},
        {"choices": [{"delta": {"content": [odd]}, "logprobs": odd}], "usage": odd, "x_groq": {"usage": odd}},
    )
    for document in (*documents, {"error": odd}, {"detail": [odd]}):
        reading = Reading(True)
        reader = Whole(reading)
        reader.feed(json.dumps(document).encode())
        try:
            found = [*reader.end(), *reading.end("m")]
        except (Nonsense, Failed):
            continue
        assert [type(piece) for piece in found].count(Ended) == 1
        for piece in found:
            check(piece)


def check(piece: Piece) -> None:
    """Whether a piece holds what its type says, and text that UTF-8 can hold."""
    assert msgspec.convert(msgspec.to_builtins(piece), type(piece)) == piece
    msgspec.json.encode(piece)


def test_json_that_is_nested_without_end_is_nonsense() -> None:
    for deep in (
        b'{"error": %s' % (b"[" * 100_000),
        b'{"choices": [{"delta": {"content": %s' % (b"[" * 100_000),
    ):
        with pytest.raises(Nonsense):
            list(Stream(Reading(True)).feed(b"data: " + deep + b"\n\n"))


def test_odd_counts_are_read_as_far_as_they_are_numbers() -> None:
    usage = b'{"choices": [{"delta": {}}], "usage": {"prompt_tokens": 1e999, "completion_tokens": 2.0}}'
    reading = Reading(True)
    assert not list(Stream(reading).feed(b"data: " + usage + b"\n\n"))
    assert reading.usage == TokenUsage(input=0, output=2)
