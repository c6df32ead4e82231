"""Dates of foreign data: what has one meaning is read, and what has none or several is reported."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.importers.dates import moment, unread
from memoranda.importers.formats import FORMATS, detected
from memoranda.importers.sources import Source
from memoranda.importers.values import Conversation, Entry, Item, Skipped
from support.exports import SAMPLES, chatgpt_conversation, chatgpt_node, packed, summed

MAY = datetime(2024, 5, 1, tzinfo=UTC)
TEN = datetime(2024, 5, 1, 10, tzinfo=UTC)


def read(path: Path) -> list[Item]:
    with Source(path) as source:
        return list(FORMATS[detected(path)].read(source))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((each, MAY) for each in ("2024-05-01", "20240501", 20240501, 20240501.0, "2024/05/01", "2024.5.1")),
        *((each, MAY) for each in ("May 1, 2024", "1 May 2024", "1. May 2024", "Wednesday, May 1st, 2024")),
        *((each, MAY) for each in (date(2024, 5, 1), " 2024-05-01 ", "1-May-2024", "1st of May, 2024")),
        *((each, TEN) for each in (1714557600, "1714557600", "1714557600.0", 1714557600_000, "1714557600000")),
        *((each, TEN) for each in (1714557600_000_000, 1714557600_000_000_000, 20240501100000)),
        *((each, TEN) for each in ("2024-05-01T10:00:00Z", "2024-05-01 10:00 AM", "2024/05/01 10:00:00")),
        *((each, TEN) for each in ("Wed, 01 May 2024 10:00:00 +0000", "May 1, 2024 at 10:00 a.m.")),
        *((each, TEN) for each in ("Wed May 01 2024 12:00:00 GMT+0200 (CEST)", "May 1, 2024, 10:00:00 AM")),
        ("2024-05-01T12:00:00.123456789+02:00", TEN + timedelta(microseconds=123456)),
        (datetime(2024, 5, 1, 12, tzinfo=timezone(timedelta(hours=2))), TEN),
        ("May 1, 2024 12:30 AM", MAY + timedelta(minutes=30)),
        ("May 1, 2024 12:30 pm", MAY + timedelta(hours=12, minutes=30)),
        *((each, datetime(2024, 5, 25, tzinfo=UTC)) for each in ("25.05.2024", "5/25/2024", "25/5/2024")),
        ("05/05/2024", datetime(2024, 5, 5, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_a_date_with_one_meaning_is_read(value: Any, expected: datetime) -> None:
    assert moment(value) == expected
    assert list(unread("place", value)) == []


@pytest.mark.parametrize(
    "value",
    [
        *("01/05/2024", "01.05.2024", "1-5-2024", "summer", "2024", 2024, 20241301, 12345, 99_999_999, -5),
        *("31.02.2024", "2024-02-30", "May 32, 2024", float("nan"), float("inf"), 10**400, True, [], {}),
        *("x" * 100, "1" * 5_000, "May 2024", "13/13/2024", [1], {"a": 1}, "May 1, 2024 10:00" + " " * 10_000 + "x"),
    ],
)  # fmt: skip
def test_any_other_is_reported(value: Any) -> None:
    assert moment(value) is None
    reported = list(unread("here", value))
    assert [(each.kind, each.reason) for each in reported] == [("date", "cannot be read")] * bool(value)
    assert all(len(each.place) < 120 for each in reported)


def test_the_first_date_that_can_be_read_counts() -> None:
    assert moment(None, "", "soon", MAY, TEN) == MAY
    assert [each.place for each in unread("here", None, "", 0, "  ", "soon", MAY)] == ["here: 'soon'"]
    assert list(unread("here", MAY, "soon")) == list(unread("here")) == []


@given(st.text(st.sampled_from("0123456789-/. :TZaAmpPMMay,+()")) | st.integers() | st.floats() | st.binary())
def test_no_value_is_an_error(value: Any) -> None:
    found = moment(value)
    assert found is None or found.tzinfo is UTC


def test_each_format_reports_dates_that_cannot_be_read(tmp_path: Path) -> None:
    keys = {
        "create_time",
        "created_at",
        "timestamp",
        "startTime",
        "created",
        "eventTime",
        "date",
        "valid_at",
        "invalid_at",
    }

    def spoiled(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: "01/05/2024" if k in keys and each else spoiled(each) for k, each in value.items()}
        return [spoiled(each) for each in value] if isinstance(value, list) else value

    def content(text: str) -> str:
        try:
            return json.dumps(spoiled(json.loads(text)))
        except ValueError:
            try:
                return "".join(json.dumps(spoiled(json.loads(line))) + "\n" for line in text.splitlines())
            except ValueError:
                return text.replace("2024-05-01T08:00:00", "01/05/2024").replace("2024-03-01", "01/05/2024")

    for number, one in enumerate(SAMPLES):
        if one.format == "mcp-memory":
            continue  # it has no dates
        files = {file: content(text) for file, text in one.files.items()}
        if one.format == "portable-memory":
            files = summed(files)
        found = read(packed(files, "folder", tmp_path / str(number)))
        dates = [each for each in found if isinstance(each, Skipped) and each.kind == "date"]
        assert dates, one.format
        assert not any(each.failed for each in dates)
        assert all("01/05/2024" in each.place for each in dates)
        whole = read(packed(one.files, "folder", tmp_path / f"whole {number}"))
        assert len(found) - len(dates) == len(whole)  # nothing else is left out


def test_dates_of_notes(tmp_path: Path) -> None:
    written = {
        '"[[2024-05-01]]"': MAY, '"[[2024-05-01|yesterday]]"': MAY, "20240501": MAY, "May 1, 2024": MAY,
        "2024-05-01 10:00 AM": TEN, "2024-05-01T10:00:00Z": TEN,
    }  # fmt: skip
    files = {f"{number}.md": f"---\ndate: {each}\n---\nText" for number, each in enumerate(written)}
    entries = [each for each in read(packed(files, "folder", tmp_path / "a")) if isinstance(each, Entry)]
    assert [each.occurred_at for each in entries] == [*written.values()]
    vault = packed({"a.md": "---\ndate: 2024\n---\nText"}, "folder", tmp_path / "b")
    reported, entry = read(vault)
    assert (reported.kind, reported.place) == ("date", "a.md: 2024")  # type: ignore[union-attr]
    assert isinstance(entry, Entry)


def test_an_unread_date_of_a_message_is_that_of_the_one_before(tmp_path: Path) -> None:
    nodes = [chatgpt_node("a", None, "user", "One", 1714557600), chatgpt_node("b", "a", "user", "Two", 12)]
    files = {"conversations.json": json.dumps([chatgpt_conversation("c", nodes, "b")])}
    reported, conversation = read(packed(files, "file", tmp_path))
    assert isinstance(reported, Skipped)
    assert reported.place == "conversations.json, conversation 1, message b: 12"
    assert isinstance(conversation, Conversation)
    assert [each.occurred_at for each in conversation.messages] == [TEN, None]
