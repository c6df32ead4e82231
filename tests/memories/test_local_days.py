"""Times keep the offset that they were given with, and a day as a bound is the whole day, in every surface."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from memoranda.clock import end_of, local, offset_of
from memoranda.errors import ConfigError
from memoranda.types import Subject
from support.waiting import until

pytestmark = pytest.mark.rows_in("sqlite", "postgresql")
TEXT = "I just booked the dentist."
ZONES = {
    "New York": ("2026-06-01T19:30:00-04:00", "01 June 2026"),
    "Tokyo": ("2026-06-01T07:30:00+09:00", "01 June 2026"),
    "Kathmandu": ("2026-06-01T00:15:00+05:45", "01 June 2026"),
    "Kiritimati": ("2026-06-01T13:59:00+14:00", "01 June 2026"),
    "Greenwich": ("2026-06-01T23:59:00Z", "01 June 2026"),
    "none": ("2026-06-01T00:00:00", "01 June 2026"),
}


@pytest.fixture
def rc(home: Any) -> Any:
    with home.open() as opened:
        yield opened


@pytest.mark.parametrize("zone", ZONES)
def test_a_context_tells_the_day_where_it_was_said(rc: Any, zone: str) -> None:
    at, day = ZONES[zone]
    rc.observe([{"speaker": "Ana", "content": TEXT, "occurred_at": at}], channel_id="c")
    assert f"[{day}] Ana: {TEXT}" in rc.context("Who booked the dentist?", scopes=["channel:c"]).text
    (memory,) = rc.memories.list(scopes=["channel:c"]).data
    given = datetime.fromisoformat(at)
    assert memory.occurred_at == (given if given.tzinfo else given.replace(tzinfo=UTC))
    assert memory.occurred_at.utcoffset() == (given.utcoffset() or timedelta())
    assert memory.metadata == {"speaker": "Ana"}
    (message,) = rc.sessions.messages(memory.session_id or rc.sessions.list().data[0].id).data
    assert message.occurred_at.utcoffset() == memory.occurred_at.utcoffset()


def test_a_changed_time_has_its_own_offset(rc: Any) -> None:
    id_ = rc.memories.add(TEXT, occurred_at="2026-06-01T19:30:00-04:00", metadata={"a": 1}).memory.id
    kept = rc.memories.update(id_, metadata={"b": 2})
    assert (kept.occurred_at.isoformat(), kept.metadata) == ("2026-06-01T19:30:00-04:00", {"b": 2})
    moved = rc.memories.update(id_, occurred_at="2026-06-02T08:00:00+09:00")
    assert moved.occurred_at.isoformat() == "2026-06-02T08:00:00+09:00"
    assert (
        rc.memories.update(id_, occurred_at="2026-06-02").occurred_at.isoformat()
        == "2026-06-02T00:00:00+00:00"
    )


def test_an_export_keeps_the_offset(rc: Any, home: Any) -> None:
    rc.memories.add(TEXT, occurred_at="2026-06-01T19:30:00-04:00")
    lines = b"".join(rc.memories.export()).splitlines(keepends=True)
    with home.open("other") as other:
        other.memories.import_from(lines)
        (memory,) = other.memories.list().data
        assert memory.occurred_at.isoformat() == "2026-06-01T19:30:00-04:00"


DAYS = {
    "2026-05-31": "apples",
    "2026-06-01": "cherries",
    "2026-06-02": "plums",
}
BOUNDS: list[tuple[dict[str, Any], set[str]]] = [
    ({"since": "2026-06-01"}, {"cherries", "plums"}),
    ({"until": "2026-06-01"}, {"apples", "cherries"}),
    ({"since": "2026-06-01", "until": "2026-06-01"}, {"cherries"}),
    ({"since": date(2026, 6, 1), "until": date(2026, 6, 1)}, {"cherries"}),
    ({"until": "2026-06-01T00:00:00Z"}, {"apples"}),
    ({"until": datetime(2026, 6, 1, tzinfo=UTC)}, {"apples"}),
    ({"as_of": "2026-06-01"}, {"apples", "cherries"}),
    ({"as_of": "2026-06-01T00:00:00Z"}, {"apples"}),
]


@pytest.mark.parametrize(("bounds", "expected"), BOUNDS)
def test_a_day_as_a_bound_is_the_whole_day(rc: Any, bounds: dict[str, Any], expected: set[str]) -> None:
    for day, fruit in DAYS.items():
        for hour in (0, 12, 23):
            rc.memories.add(f"Picked {fruit} at {hour}", occurred_at=f"{day}T{hour:02}:59:59Z")

    def fruits(memories: list[Any]) -> set[str]:
        return {memory.content.split()[1] for memory in memories}

    found = rc.memories.search("picked", limit=50, threshold=0.0, **bounds).results
    assert fruits([hit.memory for hit in found]) == expected
    assert len(found) == 3 * len(expected)
    assert fruits(rc.memories.list(limit=50, **bounds).data) == expected
    assert rc.memories.count(**bounds) == 3 * len(expected)


def test_as_of_a_day_is_its_end(rc: Any) -> None:
    old = rc.memories.add("Ada lives in Bern", kind="fact", occurred_at="2026-05-01T12:00:00Z").memory.id
    new = {"kind": "fact", "occurred_at": "2026-06-01T12:00:00Z", "replaces": [old]}
    rc.memories.add("Ada lives in Oslo", **new)
    for day, city in (("2026-05-31", "Bern"), ("2026-06-01", "Oslo")):
        found = rc.memories.search("Where does Ada live?", as_of=day, kinds=["fact"]).results
        assert [hit.memory.content for hit in found] == [f"Ada lives in {city}"]


@pytest.mark.parametrize(
    ("day", "inside", "end"),
    [
        ("2026-06-01", False, "2026-06-02T00:00:00+00:00"),
        ("2026-06-01", True, "2026-06-01T23:59:59.999999+00:00"),
        ("20260601", False, "2026-06-02T00:00:00+00:00"),
        ("2026-W23-1", False, "2026-06-02T00:00:00+00:00"),
        (date(2026, 12, 31), False, "2027-01-01T00:00:00+00:00"),
        ("9999-12-31", False, "9999-12-31T23:59:59.999999+00:00"),
        ("2026-06-31", False, None),
        ("2026-06-01T00:00:00", False, None),
        ("soon", True, None),
    ],
)
def test_the_end_of_a_day(day: Any, inside: bool, end: str | None) -> None:
    found = end_of(day, inside=inside)
    assert (found and found.isoformat()) == end


def test_offsets() -> None:
    at = datetime.fromisoformat("2026-06-01T19:30:00-04:00")
    assert offset_of(at) == "-04:00"
    assert offset_of(at.astimezone(UTC)) is None
    assert offset_of(datetime(2026, 6, 1)) is None
    assert local(at.astimezone(UTC), "-04:00").isoformat() == at.isoformat()
    for wrong in (None, "", "04:00", "+25:00", 4):
        assert local(at, wrong).utcoffset() == timedelta()
    assert local(datetime(1, 1, 1, tzinfo=UTC), "-04:00").year == 1


def test_members_see_the_same(rc: Any) -> None:
    rc.memories.add(TEXT, user_id="ada", occurred_at="2026-06-01T19:30:00-04:00")
    member = rc.as_subject(Subject(user_id="ada", role="member")).memories
    assert member.list().data[0].occurred_at.isoformat() == "2026-06-01T19:30:00-04:00"


PLACES = {
    "America/New_York": ("2026-06-02T01:30:00Z", "2026-06-01T21:30:00-04:00"),
    "Asia/Tokyo": ("2026-05-31T16:00:00Z", "2026-06-01T01:00:00+09:00"),
    "Asia/Kathmandu": ("2026-05-31T18:20:00Z", "2026-06-01T00:05:00+05:45"),
    "Pacific/Auckland": ("2026-06-01T11:30:00Z", "2026-06-01T23:30:00+12:00"),
    "UTC": ("2026-06-01T00:00:00Z", "2026-06-01T00:00:00+00:00"),
}
"""By time zone: a moment in UTC, and what it is there, always the first of June."""


@pytest.mark.parametrize("zone", PLACES)
@pytest.mark.parametrize("how", ["configured", "of the subject"])
def test_what_is_sent_in_utc_has_the_day_of_the_time_zone(home: Any, zone: str, how: str) -> None:
    at, there = PLACES[zone]
    settings = {"sessions": {"time_zone": zone}} if how == "configured" else {}
    with home.open(**settings) as rc:
        subject = Subject() if how == "configured" else Subject(time_zone=zone)
        rc.as_subject(subject).sessions.observe(
            [{"speaker": "Ana", "content": TEXT, "occurred_at": at}], session_id="s"
        )
        memories = rc.as_subject(subject).memories
        (memory,) = memories.list(scopes=["session:s"]).data
        assert memory.occurred_at.isoformat() == there
        made = rc.as_subject(subject).contexts.context("Who booked the dentist?", scopes=["session:s"])
        assert f"[01 June 2026] Ana: {TEXT}" in made.text
        day, before, behind = date(2026, 6, 1), date(2026, 5, 31), date(2026, 6, 2)
        for bounds, expected in (
            ({"since": day, "until": day}, 1), ({"since": "2026-06-01", "until": "2026-06-01"}, 1),
            ({"until": before}, 0), ({"since": behind}, 0), ({"as_of": day}, 1), ({"as_of": before}, 0),
        ):  # fmt: skip
            assert memories.count(scopes=["session:s"], **bounds) == expected, bounds
        assert len(rc.as_subject(subject).sessions.list(since=day, until=day).data) == 1
        assert rc.as_subject(subject).sessions.list(until=before).data == []
        dated = memories.add("Back home", occurred_at="2026-06-01").memory
        assert dated.occurred_at.isoformat()[:16] == "2026-06-01T00:00"
        assert memories.forget(scopes=["session:s"], until="2026-05-31").memories == 0
        assert memories.forget(scopes=["session:s"], since="2026-06-01", until="2026-06-01").memories == 1


def test_a_request_and_a_key_have_a_time_zone(home: Any) -> None:
    with home.open(sessions={"time_zone": "Europe/Berlin"}) as rc:
        given = rc.memories.add(TEXT, occurred_at="2026-06-01T19:30:00-04:00").memory
        assert given.occurred_at.utcoffset() == timedelta(hours=-4), "what is given with an offset keeps it"
        now = rc.memories.add("It rains").memory
        assert now.occurred_at.utcoffset() in (timedelta(hours=1), timedelta(hours=2))
        with_zone = rc.as_subject(Subject(time_zone="Asia/Tokyo")).memories.add("It snows").memory
        assert with_zone.occurred_at.utcoffset() == timedelta(hours=9)
    says = "sessions.time_zone: must be the name of a time zone, such as Europe/Berlin"
    with pytest.raises(ConfigError, match=says), home.open(sessions={"time_zone": "Berlin"}):
        pass


def test_two_things_of_one_day_are_told_with_the_time(rc: Any) -> None:
    said = [("2026-06-01T09:00:00+02:00", "My desk is on the third floor."),
            ("2026-06-01T17:45:00+02:00", "My desk is on the fifth floor."),
            ("2026-05-01T12:00:00+02:00", "My desk is on the first floor.")]  # fmt: skip
    rc.observe([{"user_id": "ana", "content": text, "occurred_at": at} for at, text in said], session_id="s")
    text = rc.context("On which floor is my desk?", scopes=["session:s"]).text
    assert "[01 June 2026 17:45, latest] ana: My desk is on the fifth floor." in text
    assert "[01 June 2026 09:00] ana: My desk is on the third floor." in text
    assert "[01 May 2026] ana: My desk is on the first floor." in text


def test_a_summary_has_the_times_of_its_session(rc: Any) -> None:
    said = [f"We plant roses number {n} by the wall." for n in range(4)]
    start = datetime.fromisoformat("2026-06-01T23:30:00-04:00")
    times = [start + timedelta(minutes=at) for at in range(len(said))]
    messages = zip(said, times, strict=True)
    rc.observe(
        [{"speaker": "Ana", "content": text, "occurred_at": at} for text, at in messages], session_id="s"
    )
    rc.sessions.close("s")
    session = until(
        lambda: rc.sessions.get("s"), "a summary", accept=lambda found: found.status == "summarized"
    )
    summary = rc.memories.get(session.summary_id)
    assert summary.occurred_at.isoformat() == "2026-06-01T23:33:00-04:00"
    assert summary.metadata["started_at"] == "2026-06-01T23:30:00-04:00"
    text = rc.context("Which roses were planted?", scopes=["session:s"], kinds=["session_summary"]).text
    assert "[01 June 2026 23:30 to 23:33" in text
