"""The workspace of a subject: every feature, for that subject, in its time zone."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pytest

from memoranda.app.blocking import BlockingMemoranda
from memoranda.app.blocking.workspace import BlockingFeatures
from memoranda.app.workspace import Features
from memoranda.errors import Forbidden, NotFound
from memoranda.types import Subject

ADA, BOB = (Subject(user_id=name, role="member") for name in ("ada", "bob"))


def features_of(kind: type) -> dict[str, type]:
    """The features of a workspace by name, with their types as they are annotated."""
    return {name: made for name, made in vars(kind).items() if isinstance(made, cached_property)}


FEATURES = tuple(features_of(Features))


def test_each_feature_acts_for_the_subject_and_is_created_once_at_its_first_use(
    rc: BlockingMemoranda,
) -> None:
    ada = rc.inner.as_subject(ADA)
    assert not vars(ada).keys() & FEATURES
    for name in FEATURES:
        assert getattr(ada, name).subject == ADA, name
        assert getattr(ada, name) is getattr(ada, name), name


def test_a_product_has_the_features_of_its_own_subject(rc: BlockingMemoranda) -> None:
    assert rc.subject == rc.inner.subject == Subject()
    for name in FEATURES:
        assert getattr(rc.inner, name).subject == Subject(), name


def test_callers_without_an_event_loop_have_the_same_features(rc: BlockingMemoranda) -> None:
    assert tuple(features_of(BlockingFeatures)) == FEATURES
    ada = rc.as_subject(ADA)
    assert ada.subject == ADA
    for name in FEATURES:
        blocking, inner = getattr(ada, name), getattr(ada.inner, name)
        assert type(blocking).__name__ == f"Blocking{type(inner).__name__}"
        assert blocking is getattr(ada, name)


@pytest.mark.parametrize(
    ("configured", "own", "zone", "moment"),
    [
        (None, None, None, "2026-06-01T00:00:00+00:00"),
        ("Asia/Tokyo", None, "Asia/Tokyo", "2026-06-01T00:00:00+09:00"),
        (None, "Asia/Tokyo", "Asia/Tokyo", "2026-06-01T00:00:00+09:00"),
        ("Europe/Berlin", "Asia/Tokyo", "Asia/Tokyo", "2026-06-01T00:00:00+09:00"),
    ],
)
def test_a_subject_that_names_no_time_zone_is_in_the_configured_one(
    home: Any, configured: str | None, own: str | None, zone: str | None, moment: str
) -> None:
    with home.open(sessions={"time_zone": configured}) as rc:
        ada = rc.as_subject(Subject(user_id="ada", role="member", time_zone=own))
        assert ada.subject.time_zone == zone
        assert {getattr(ada.inner, name).subject.time_zone for name in FEATURES} == {zone}
        added = ada.memories.add("The boat leaves", occurred_at="2026-06-01").memory
        assert added.occurred_at.isoformat() == moment
        assert rc.subject.time_zone == configured


def test_users_see_what_is_theirs(rc: BlockingMemoranda) -> None:
    ada, bob = rc.as_subject(ADA), rc.as_subject(BOB)
    kept = ada.memories.add("My locker is number 12").memory
    assert kept.user_id == "ada"
    ada.sessions.observe([{"content": "The locker is on the second floor"}], session_id="ada's")
    conversation = ada.conversations.create()
    assert ada.memories.search("locker", threshold=0.0).results
    assert "number 12" in ada.contexts.context("Which locker?").text
    assert bob.memories.list().data == []
    assert bob.memories.search("locker", threshold=0.0).results == []
    assert "number 12" not in bob.contexts.context("Which locker?").text
    for hidden in (
        lambda: bob.memories.get(kept.id),
        lambda: bob.sessions.get("ada's"),
        lambda: bob.conversations.get(conversation.id),
    ):
        with pytest.raises(NotFound):
            hidden()
    for refused in (bob.backfills.missing, bob.costs.usage):
        with pytest.raises(Forbidden):
            refused()
    assert rc.memories.get(kept.id) == kept


def test_tenants_see_what_is_theirs(rc: BlockingMemoranda) -> None:
    other = rc.as_subject(Subject(tenant_id="other"))
    kept = rc.memories.add("My locker is number 12").memory
    agent = other.agents.create({"name": "guide"})
    assert other.memories.count(scopes=["all"]) == 0
    with pytest.raises(NotFound):
        other.memories.get(kept.id)
    assert [profile.id for profile in other.agents.list().data] == [agent.id]
    assert rc.agents.list().data == []
    assert other.backfills.missing() == rc.backfills.missing() == rc.missing()
