"""Large JSON in pieces: the same values as when it is read at once, whatever the size of the pieces."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.importers import json_stream
from memoranda.importers.json_stream import Record, decoded, document, elements, lines

TEXTS = st.text(st.sampled_from('ab"\\{}[], \n\u00e9\U0001f600'), max_size=8)
OBJECTS = st.dictionaries(
    TEXTS, TEXTS | st.integers() | st.lists(TEXTS | st.dictionaries(TEXTS, TEXTS)), max_size=4
)


def read(raw: bytes, limit: int = 1 << 20) -> list[Record]:
    return list(elements(io.BytesIO(raw), limit))


@settings(max_examples=50)
@given(st.lists(OBJECTS, max_size=6), st.integers(1, 40), st.sampled_from([None, 1]), st.booleans())
def test_the_elements_of_an_array(values: list[Any], chunk: int, indent: int | None, ascii: bool) -> None:
    raw = json.dumps(values, indent=indent, ensure_ascii=ascii).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "CHUNK", chunk)
        found = read(raw)
    assert [each.value for each in found] == values
    assert [each.number for each in found] == list(range(1, len(values) + 1))
    assert not any(each.problem for each in found)


@settings(max_examples=50)
@given(st.lists(OBJECTS, min_size=1, max_size=4), st.data())
def test_an_array_that_is_cut_short_says_so(values: list[Any], data: st.DataObject) -> None:
    raw = json.dumps(values).encode()
    found = read(raw[: data.draw(st.integers(0, len(raw) - 1))])
    whole = [each.value for each in found if each.problem is None]
    assert whole == values[: len(whole)]
    assert found[-1].problem is not None


def test_what_is_damaged_does_not_hide_the_rest() -> None:
    found = read(b'[{"a": 1}, {"a" 1}, 7, {"b": "' + b"x" * 100 + b'"}, {"c": 1}]', limit=50)
    assert [each.value for each in found if each.problem is None] == [{"a": 1}, {"c": 1}]
    problems = [each.problem or "" for each in found if each.problem is not None]
    assert [problem.split(":")[0] for problem in problems] == [
        "is not valid JSON", "is not an object", "is larger than 0 MiB",
    ]  # fmt: skip


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1 << 20])
def test_each_element_counts_as_one(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "CHUNK", chunk)
    found = read(b'["a, {b}", "c\\"", null,-1.5e3 , {"a": 1}, true, {"b": 1}, "last"]')
    assert [each.number for each in found] == list(range(1, 9))
    assert [each.value for each in found if each.problem is None] == [{"a": 1}, {"b": 1}]
    assert {each.problem for each in found} == {None, "is not an object"}


def test_lines() -> None:
    raw = b'\xef\xbb\xbf{"a": 1}\n\n{"b"\n' + b"x" * 100 + b'\n{"c": 1}'
    found = list(lines(io.BytesIO(raw), 50))
    assert [(each.number, each.value) for each in found if each.problem is None] == [
        (1, {"a": 1}),
        (5, {"c": 1}),
    ]
    assert [each.number for each in found if each.problem is not None] == [3, 4]
    assert document(io.BytesIO(raw), 50).problem == "is larger than 0 MiB"


def test_half_a_surrogate_pair_is_accepted_and_deep_nesting_is_not() -> None:
    assert decoded(b'"a\\ud83d"') == "a\ud83d"
    with pytest.raises(ValueError, match="nested too deeply"):
        decoded(b"[" * 200_000)
