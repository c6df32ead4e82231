"""Times keep the offset that they were given with, and a day as a bound is the whole day, in every surface."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from memoranda.clock import end_of, local, offset_of
from memoranda.types import Subject

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
    member = rc.acting_as(Subject(user_id="ada", role="member"))
    assert member.list().data[0].occurred_at.isoformat() == "2026-06-01T19:30:00-04:00"
