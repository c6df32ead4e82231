"""Times in questions, by expectations written down, and how near moments are to them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.text.when import DAY, Span, Weekly, Yearly, closeness, times

NOW = datetime(2023, 10, 20, 15, tzinfo=UTC)  # a Friday


def at(text: str) -> int:
    return int(np.datetime64(text, "us").astype(np.int64))


def span(start: str, end: str) -> Span:
    return Span(at(start), at(end))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("What did Ana say yesterday?", [span("2023-10-19", "2023-10-20")]),
        ("the day before yesterday", [span("2023-10-18", "2023-10-19")]),
        ("what happened today", [span("2023-10-20", "2023-10-21")]),
        ("two weeks ago", [span("2023-10-02T12", "2023-10-10T12")]),
        ("a couple of days ago", [span("2023-10-18", "2023-10-19")]),
        ("a few years ago", [span("2020-04-20T12", "2021-04-21T12")]),
        ("last May", [span("2023-05-01", "2023-06-01")]),
        ("last December", [span("2022-12-01", "2023-01-01")]),
        ("next March", [span("2024-03-01", "2024-04-01")]),
        ("last week", [span("2023-10-09", "2023-10-16")]),
        ("last weekend", [span("2023-10-14", "2023-10-16")]),
        ("this month", [span("2023-10-01", "2023-11-01")]),
        ("last month", [span("2023-09-01", "2023-10-01")]),
        ("last year", [span("2022-01-01", "2023-01-01")]),
        ("last summer", [span("2023-06-01", "2023-09-01")]),
        ("last winter", [span("2022-12-01", "2023-03-01")]),
        ("last Friday", [span("2023-10-13", "2023-10-14")]),
        ("this Friday", [span("2023-10-20", "2023-10-21")]),
        ("in 2022", [span("2022-01-01", "2023-01-01")]),
        ("in August 2023", [span("2023-08-01", "2023-09-01")]),
        ("mid-August 2023", [span("2023-08-01", "2023-09-01")]),
        ("in the summer of 2021", [span("2021-06-01", "2021-09-01")]),
        ("on 16 August, 2023", [span("2023-08-16", "2023-08-17")]),
        ("on December 1,2023", [span("2023-12-01", "2023-12-02")]),
        ("on 9th December 2023", [span("2023-12-09", "2023-12-10")]),
        ("since 2023-05-08", [span("2023-05-08", "2023-05-09")]),
        ("the week before August 3, 2023", [span("2023-07-27", "2023-08-03")]),
        ("two weeks before August 11, 2023", [span("2023-07-24T12", "2023-08-01T12")]),
        ("in the week of 8 May 2023", [span("2023-05-04T12", "2023-05-11T12")]),
        ("on 8 May", [Yearly((5, 8), (5, 8))]),
        ("in may", [Yearly((5, 1), (5, 31))]),
        ("in winter", [Yearly((12, 1), (2, 31))]),
        ("at Christmas", [Yearly((12, 24), (12, 26))]),
        ("on Tuesday", [Weekly(1)]),
        (
            "from 1 June 2022 to 3 July 2022",
            [span("2022-06-01", "2022-06-02"), span("2022-07-03", "2022-07-04")],
        ),
    ],
)
def test_what_a_text_names(text: str, named: list[object]) -> None:
    assert times(text, NOW) == named


@pytest.mark.parametrize(
    "text",
    [
        "May I ask something?",
        "Will March win?",
        "She may come.",
        "the last thing",
        "on 31 June 2023",
        "at 14:30",
        "",
    ],
)
def test_what_names_no_time(text: str) -> None:
    assert times(text, NOW) == []


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("in \u017fummer", "in summer"),
        ("\u017feven days ago", "seven days ago"),
        ("last n\u0131ght", "last night"),
        ("LAST W\u0130NTER", "last winter"),
        ("last wee\u212a", "last week"),
        ("on \uff11\uff12 May \uff12\uff10\uff12\uff13", "on 12 May 2023"),
        ("in \u0662\u0660\u0662\u0662", "in 2022"),
    ],
)
def test_letters_that_pass_for_ascii_ones_are_these(text: str, plain: str) -> None:
    assert times(text, NOW) == times(plain, NOW) != []


@pytest.mark.parametrize("now", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)])
def test_a_time_that_no_date_can_hold_is_not_named(now: datetime) -> None:
    for text in (
        "last year",
        "next year",
        "last week",
        "next week",
        "last month",
        "next month",
        "the winter",
    ):
        assert len(times(f"{text} and in 2022", now)) in (1, 2), text
    assert times("yesterday", datetime(1, 1, 1, tzinfo=UTC)) == []
    assert times("in 2022", datetime(9999, 12, 31, 23, 59, tzinfo=timezone(-timedelta(hours=23)))) == []


def test_near_is_within_and_a_little_after() -> None:
    day = [span("2023-05-08", "2023-05-09")]
    moments = np.array([at("2023-05-07T23"), at("2023-05-08T10"), at("2023-05-10T12"), at("2023-05-12")])
    assert closeness(day, moments) == pytest.approx([0.0, 1.0, 0.5, 0.0])
    month = [span("2023-05-01", "2023-06-01")]
    assert closeness(month, np.array([at("2023-06-16T12")])) == pytest.approx([0.5])


def test_what_names_no_year_is_near_in_every_year() -> None:
    moments = np.array([at("2021-05-08T10"), at("2023-05-08T23:59"), at("2023-05-09"), at("1969-05-08")])
    assert closeness([Yearly((5, 8), (5, 8))], moments).tolist() == [1.0, 1.0, 0.0, 1.0]
    winter = np.array([at("2022-12-01"), at("2023-02-28"), at("2023-03-01"), at("2024-02-29T12")])
    assert closeness([Yearly((12, 1), (2, 31))], winter).tolist() == [1.0, 1.0, 0.0, 1.0]
    tuesdays = np.array([at("2023-10-17T08"), at("2023-10-18"), at("1969-12-30")])
    assert closeness([Weekly(1)], tuesdays).tolist() == [1.0, 0.0, 1.0]


PIECES = st.sampled_from(
    [
        "last",
        "next",
        "in",
        "on",
        "May",
        "8",
        "31",
        "2023",
        "weeks",
        "ago",
        "9999",
        "0",
        "week",
        "before",
        "the",
        ",",
        "two",
        "year",
        "wee\u212a",
        "n\u0131ght",
        "\u017fummer",
    ]
)


@settings(max_examples=60)
@given(
    st.lists(PIECES | st.text(max_size=5), max_size=8),
    st.datetimes(),
)
def test_any_text_is_read(words: list[str], now: datetime) -> None:
    named = times(" ".join(words), now)
    near = closeness(named, np.array([0, at("2023-05-08"), 400 * 365 * DAY]))
    assert ((near >= 0.0) & (near <= 1.0)).all()
