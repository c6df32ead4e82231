"""Counts by kind, scope, source, tag and month."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.app.blocking import BlockingMemoranda, BlockingMemories
from memoranda.errors import Forbidden, InvalidInput
from memoranda.memories.overviews import FacetValue
from memoranda.types import Memory, Subject

SOME = st.sampled_from([None, "a", "b", "ü"])
DRAFTS = st.lists(
    st.fixed_dictionaries(
        {
            "kind": st.sampled_from(["note", "fact", "item"]),
            "user_id": SOME,
            "agent_id": SOME,
            "channel_id": SOME,
            "session_id": SOME,
            "source": SOME,
            "tags": st.lists(st.sampled_from(["x", "y", 'q"z']), unique=True),
            "metadata": st.sampled_from([{}, {"n": 1}]),
            "occurred_at": st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 30), timezones=st.just(UTC)),
        }
    ),
    max_size=12,
)
SELECTIONS = st.sampled_from(
    [
        {},
        {"kinds": ["note", "item"]},
        {"tags": ["x"]},
        {"filters": {"n": 1}},
        {"scopes": ["user:a"]},
        {"source": "a"},
    ]
)


def most(values: Iterable[str], limit: int) -> list[FacetValue]:
    counts = sorted(Counter(values).items(), key=lambda item: (-item[1], item[0]))
    return [FacetValue(value=value, count=count) for value, count in counts[:limit]]


def scopes_of(memory: Memory) -> list[str]:
    ids = {place: getattr(memory, f"{place}_id") for place in ("user", "agent", "channel", "session")}
    return [f"{place}:{id_}" for place, id_ in ids.items() if id_ is not None] or ["global"]


ZONES = ["UTC", "America/Los_Angeles", "Asia/Kathmandu", "Pacific/Kiritimati"]


def month_of(moment: datetime, zone: str) -> str:
    try:
        local = moment.astimezone(ZoneInfo(zone))
    except OverflowError:  # beyond the years 1 to 9999
        local = moment
    return f"{local.year:04}-{local.month:02}"


@given(drafts=DRAFTS, selection=SELECTIONS, limit=st.integers(1, 3), zone=st.sampled_from(ZONES))
@settings(max_examples=60)
def test_facets_count_what_a_list_has(
    anew: Callable[[], BlockingMemories], drafts: Any, selection: Any, limit: int, zone: str
) -> None:
    memories = anew()
    for n, draft in enumerate(drafts):
        memories.add(f"text {n}", **draft)
    there = memories.list(limit=100, **{"scopes": ["all"], **selection}).data
    found = memories.facets(limit=limit, time_zone=zone, **{"scopes": ["all"], **selection})
    assert found.total == len(there)
    assert found.kinds == most((memory.kind for memory in there), limit)
    assert found.scopes == most((scope for memory in there for scope in scopes_of(memory)), limit)
    assert found.sources == most((memory.source for memory in there if memory.source), limit)
    assert found.tags == most((tag for memory in there for tag in memory.tags), limit)
    months = Counter(month_of(memory.occurred_at, zone) for memory in there)
    assert [(month.value, month.count) for month in found.months] == sorted(months.items(), reverse=True)[
        :limit
    ]


@pytest.mark.parametrize("selection", [{}, {"tags": ["a"]}])
def test_months_begin_as_in_the_time_zone(memories: BlockingMemories, selection: Any) -> None:
    edges = {
        "2024-11-01T06:59:59.999999Z": "2024-10",  # summer time
        "2024-11-01T07:00:00Z": "2024-11",
        "2024-12-01T07:59:59.999999Z": "2024-11",
        "2024-12-01T08:00:00Z": "2024-12",
    }
    for moment in edges:
        memories.add(moment, occurred_at=datetime.fromisoformat(moment), tags=["a"])
    found = memories.facets(time_zone="America/Los_Angeles", **selection)
    assert {month.value: month.count for month in found.months} == Counter(edges.values())
    found = memories.facets(**selection)
    assert {month.value: month.count for month in found.months} == {"2024-11": 2, "2024-12": 2}


def test_facets_count_what_the_subject_may_see(rc: BlockingMemoranda) -> None:
    rc.memories.add("one", user_id="ana", tags=["a"])
    rc.memories.add("two", user_id="ben", tags=["b"])
    rc.as_subject(Subject(tenant_id="other")).memories.add("three", tags=["c"])
    ana = rc.as_subject(Subject(user_id="ana", role="member")).memories
    assert [tag.value for tag in ana.facets().tags] == ["a"]
    assert ana.facets(scopes=["user:ben"]).total == 0
    with pytest.raises(Forbidden):
        ana.facets(scopes=["all"])
    assert [tag.value for tag in rc.memories.facets(scopes=["all"]).tags] == ["a", "b"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 1001}, "limit"),
        ({"kind": "note"}, "kind"),
        *(
            ({"time_zone": zone}, "time_zone")
            for zone in ("Mars/Olympus", "", "America", "../passwd", "a\0", None)
        ),
    ],
)
def test_what_is_wrong_names_the_field(memories: BlockingMemories, wrong: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        memories.facets(**wrong)
    assert refused.value.field == field
