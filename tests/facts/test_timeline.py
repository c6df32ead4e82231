"""Facts over time: chains of versions, what held at a moment, and pages of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memoranda.app.blocking import BlockingMemoranda
from memoranda.errors import Forbidden, InvalidInput
from memoranda.facts import timeline
from memoranda.types import Subject

MAY = datetime(2026, 5, 1, tzinfo=UTC)


def told(rc: BlockingMemoranda, text: str, day: int, user: str = "ana", **fields: Any) -> str:
    when = MAY + timedelta(days=day)
    return rc.memories.add(text, kind="fact", user_id=user, occurred_at=when, **fields).memory.id


def named(number: int) -> str:
    """A name of its own for each number."""
    return f"B{chr(ord('a') + number // 26)}rn{chr(ord('a') + number % 26)}".ljust(6, "o")


@pytest.fixture
def moved(rc: BlockingMemoranda) -> BlockingMemoranda:
    """Ana, who moved twice, and other facts."""
    munich = told(rc, "Ana lives in Munich", 0)
    hamburg = told(rc, "Ana lives in Hamburg", 10, replaces=[munich])
    told(rc, "Ana lives in Berlin", 20, replaces=[hamburg])
    told(rc, "Ana likes green tea", 5, tags=["drink"])
    told(rc, "Ben lives in Rome", 1, user="ben")
    return rc


def texts(chain: Any) -> list[tuple[str, bool]]:
    return [(fact.memory.content, fact.holds) for fact in chain.facts]


def test_a_chain_has_its_versions_and_what_held(moved: BlockingMemoranda) -> None:
    now = moved.facts.timeline(scopes=["user:ana"])
    home = next(chain for chain in now.data if len(chain.facts) == 3)
    assert texts(home) == [
        ("Ana lives in Munich", False), ("Ana lives in Hamburg", False), ("Ana lives in Berlin", True),
    ]  # fmt: skip
    assert home.id == home.facts[-1].memory.id
    assert [(fact.begins, fact.ends) for fact in home.facts] == [
        (MAY, MAY + timedelta(days=10)),
        (MAY + timedelta(days=10), MAY + timedelta(days=20)),
        (MAY + timedelta(days=20), None),
    ]
    assert (now.total, now.holding, now.since) == (4, 2, MAY)
    then = moved.facts.timeline(scopes=["user:ana"], at=MAY + timedelta(days=12))
    assert [fact.memory.content for chain in then.data for fact in chain.facts if fact.holds] == [
        "Ana likes green tea", "Ana lives in Hamburg",
    ]  # fmt: skip
    assert (then.total, then.holding) == (4, 2)
    assert moved.facts.timeline(scopes=["user:ana"], at=MAY - timedelta(days=1)).holding == 0


def test_what_holds_is_what_a_list_of_that_moment_has(moved: BlockingMemoranda) -> None:
    moved.memories.update(told(moved, "Ana plays chess", 3), archived=True)
    for day in (-1, 0, 4, 10, 15, 30):
        at = MAY + timedelta(days=day)
        listed = moved.memories.list(kinds=["fact"], scopes=["all"], as_of=at, limit=100).data
        found = moved.facts.timeline(at=at, limit=100)
        holding = {fact.memory.id for chain in found.data for fact in chain.facts if fact.holds}
        assert holding == {memory.id for memory in listed}
        assert (found.holding, found.total) == (len(listed), 6)


def test_pages_have_each_chain_once(moved: BlockingMemoranda) -> None:
    for n in range(7):
        told(moved, f"{named(n)} sleeps in the garden", n)
    ids, after = list[str](), None
    while True:
        page = moved.facts.timeline(limit=3, after=after)
        ids += [chain.id for chain in page.data]
        after = page.last_id
        if not page.has_more:
            break
    assert len(ids) == len(set(ids)) == 10
    assert ids == [chain.id for chain in moved.facts.timeline(limit=100).data]


def test_words_are_looked_for_in_every_version(moved: BlockingMemoranda) -> None:
    assert [len(chain.facts) for chain in moved.facts.timeline(text="MUNICH ana").data] == [3]
    assert [len(chain.facts) for chain in moved.facts.timeline(text="drink").data] == [1]
    found = moved.facts.timeline(text="Munich Hamburg")
    assert (found.data, found.total) == ([], 5)
    assert (found.first_id, found.last_id, found.has_more) == (None, None, False)


def test_a_version_whose_later_one_is_elsewhere_is_its_own_chain(rc: BlockingMemoranda) -> None:
    munich = told(rc, "Ana lives in Munich", 0, channel_id="kitchen")
    told(rc, "Ana lives in Berlin", 10, channel_id="garden", replaces=[munich])
    kitchen = rc.facts.timeline(scopes=["channel:kitchen"], at=MAY + timedelta(days=1))
    assert [texts(chain) for chain in kitchen.data] == [[("Ana lives in Munich", True)]]
    assert (kitchen.total, kitchen.holding) == (1, 1)
    assert [len(chain.facts) for chain in rc.facts.timeline(scopes=["user:ana"]).data] == [2]


def test_tags_are_words_and_their_brackets_are_not(rc: BlockingMemoranda) -> None:
    told(rc, "Ana owns a zebra", 0, tags=['q"z'])
    assert len(rc.facts.timeline(text='q"z').data) == 1
    for text in ("[", '["', "[]", ","):
        assert rc.facts.timeline(text=text).data == []


def test_a_scope_that_no_id_can_be_has_no_facts(moved: BlockingMemoranda) -> None:
    found = moved.facts.timeline(scopes=["user:\x00"])
    assert (found.data, found.total, found.holding, found.has_more) == ([], 0, 0, False)


def test_a_page_passes_over_so_many_facts_and_goes_on(
    rc: BlockingMemoranda, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(rc, "Ana owns a zebra", 0)
    rc.memories.add_many(
        [{"content": f"{named(n)} sleeps in the garden", "kind": "fact"} for n in range(250)]
    )
    monkeypatch.setattr(timeline, "PASSED", 100)
    first = rc.facts.timeline(text="zebra")
    assert (first.data, first.has_more) == ([], True)
    second = rc.facts.timeline(text="zebra", after=first.last_id)
    third = rc.facts.timeline(text="zebra", after=second.last_id)
    assert (second.data, second.has_more) == ([], True)
    assert ([texts(chain) for chain in third.data], third.has_more) == ([[("Ana owns a zebra", True)]], False)


def test_many_facts_without_the_words_are_passed_over(rc: BlockingMemoranda) -> None:
    told(rc, "Ana owns a zebra", 0)
    rc.memories.add_many(
        [{"content": f"{named(n)} sleeps in the garden", "kind": "fact"} for n in range(250)]
    )
    assert [texts(chain) for chain in rc.facts.timeline(text="zebra", limit=1).data] == [
        [("Ana owns a zebra", True)]
    ]


def test_a_subject_sees_its_own(moved: BlockingMemoranda) -> None:
    ben = moved.inner.as_subject(Subject(user_id="ben", role="member")).facts
    mine = moved.portal.call(ben.timeline())
    assert [texts(chain) for chain in mine.data] == [[("Ben lives in Rome", True)]]
    assert (mine.total, mine.holding) == (1, 1)
    hers = moved.facts.timeline(scopes=["user:ana"]).data[0].id
    with pytest.raises(InvalidInput, match="after"):
        moved.portal.call(ben.timeline(after=hers))
    with pytest.raises(Forbidden):
        moved.portal.call(ben.timeline(scopes=["all"]))
    other = moved.inner.as_subject(Subject(tenant_id="other")).facts
    assert moved.portal.call(other.timeline()).total == 0


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 101}, "limit"),
        ({"scopes": ["ana"]}, "scopes"),
        ({"at": "soon"}, "at"),
    ],
)
def test_what_is_wrong_names_the_field(rc: BlockingMemoranda, wrong: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        rc.facts.timeline(**wrong)
    assert refused.value.field.startswith(field)
