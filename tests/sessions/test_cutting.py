"""Where a message belongs: values alone, then the same through rows, in any order of arrival."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.sessions.boundaries import MINUTE, clusters, due_at, gap_of

GAP = gap_of(30)
times = st.lists(st.integers(0, 400), min_size=1, max_size=12)


def cut(at: list[int]) -> list[list[int]]:
    """The definition: sorted, cut where the distance is over the gap."""
    found: list[list[int]] = []
    for one in sorted(at):
        if found and one - found[-1][-1] <= 30:
            found[-1].append(one)
        else:
            found.append([one])
    return found


@settings(max_examples=40)
@given(times)
def test_clusters_are_cut_where_it_was_silent(at: list[int]) -> None:
    found = clusters([one * MINUTE for one in at], GAP)
    assert [sorted(at[place] for place in one.places) for one in found] == cut(at)
    assert [(one.started_at, one.ended_at) for one in found] == [
        (some[0] * MINUTE, some[-1] * MINUTE) for some in cut(at)
    ]


@pytest.mark.parametrize(
    ("ended", "seen", "due"),
    [
        (100, 100, 130),
        (0, 100, 101),  # of the past: soon
        (100_000, 100, 130),  # of the future, by a wrong clock: holds nothing open
    ],
)
def test_when_a_session_is_closed(ended: int, seen: int, due: int) -> None:
    assert due_at(ended * MINUTE, seen * MINUTE, GAP) == due * MINUTE


@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(at=times, data=st.data())
@pytest.mark.rows_in("sqlite")
def test_any_order_of_arrival_ends_with_the_same_sessions(chats: Any, at: list[int], data: Any) -> None:
    chat = chats()
    for i in data.draw(st.permutations(range(len(at)))):
        chat.say(f"{at[i]} {i} said this", at=at[i], speaker=f"s{i}")
    assert [[int(text.split()[0]) for text in some] for some in chat.cuts()] == cut(at)
    held = chat.sessions.list(channel_id="c", limit=100).data
    for session in held:
        said = chat.sessions.messages(session.id, limit=100).data
        assert session.message_count == len(said)
        assert sorted(session.participants) == sorted({one.speaker for one in said})
        assert (session.started_at, session.ended_at) == (said[0].occurred_at, said[-1].occurred_at)
        assert {one.id for one in said if one.indexed} == {
            row[0]
            for row in chat.rows(
                "SELECT id FROM memories WHERE session_id = ? AND kind = 'message'", session.id
            )
        }
