"""Whose words go, and which: nobody forgets another's, and nothing beyond what was named."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from memoranda.app.blocking import BlockingMemoranda
from memoranda.errors import Forbidden, InvalidInput
from memoranda.store.forgetting import Erasure
from memoranda.text.phrase import Phrase
from memoranda.types import Receipt, Subject
from support.waiting import until_async

from .places import WORD, settled

TEXTS = """
SELECT content FROM memories WHERE tenant_id = ? UNION ALL SELECT content FROM messages WHERE tenant_id = ?
UNION ALL SELECT output FROM responses WHERE tenant_id = ? UNION ALL SELECT summary FROM sessions WHERE tenant_id = ?
"""


class Talk:
    """A tenant in which `mara`, `dan` and the admin say the same in every package."""

    def __init__(self, rc: BlockingMemoranda, tenant: str) -> None:
        self.rc, self.tenant = rc, tenant

    def by(self, user: str | None) -> Subject:
        role = "admin" if user is None else "member"
        return Subject(tenant_id=self.tenant, user_id=user, role=role)  # type: ignore[arg-type]

    def say(self, user: str | None, when: str = "2026-03-02T10:00:00Z") -> None:
        who, call = self.by(user), self.rc.portal.call
        name = user or "admin"
        self.rc.as_subject(who).memories.add(f"{name} noted the {WORD}", occurred_at=when)
        said = {"content": f"{name} said a {WORD} was there", "occurred_at": when, "speaker": name}
        call(self.rc.inner.as_subject(who).sessions.observe([said], session_id=f"of {name}"))
        call(self.rc.inner.as_subject(who).responses.create(f"{name} asked for the {WORD}"))

    def forget(self, user: str | None, **fields: Any) -> Receipt:
        return self.rc.as_subject(self.by(user)).memories.forget(**fields)

    def left(self) -> list[str]:
        """Who said something that is still there, once a place."""
        rows = self.rc.inner.core.store.db.read(lambda c: c.select(TEXTS, [self.tenant] * 4))
        return sorted(name for (text,) in rows for name in ("mara", "dan", "admin") if name in (text or ""))


@pytest.mark.rows_in("sqlite", "postgresql")
def test_jobs_about_what_stays_go_on(home: Any) -> None:
    with home.empty(jobs={"workers": 0}) as rc:
        jobs, db = rc.inner.core.jobs, rc.inner.core.store.db
        ids: dict[str, str] = {}

        def wait(name: str, kind: str, **payload: Any) -> None:
            ids[name] = rc.portal.call(jobs.enqueue("default", kind, payload, delay=3600.0))

        rc.observe(
            [{"content": f"said by {user}", "user_id": user} for user in ("ana", "bo")], session_id="both"
        )
        rc.observe([{"content": "said by ana alone", "user_id": "ana"}], session_id="hers")
        wait("of both", "facts.extract", session_id="both")
        wait("hers", "facts.extract", session_id="hers")
        wait("keyed", "knowledge.index", store="vs_1", file="file_1")
        wait("named", "facts.extract", session_id="both", messages=["the store is blue"])
        wait("failed", "knowledge.index", store="vs_1", file="file_2")
        sql = "UPDATE jobs SET error = 'no store' WHERE id = ? RETURNING id"
        assert db.write(lambda c: c.select(sql, [ids["failed"]])).result()
        rc.memories.forget(scopes=["user:ana"])
        rc.memories.forget(text="store")
        held = {name: rc.portal.call(jobs.get("default", id_)) for name, id_ in ids.items()}
        assert {name for name, job in held.items() if job.state == "queued"} == {"of both", "keyed", "failed"}
        assert held["failed"].error is None


@pytest.fixture(scope="module")
def house(lasting_home: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingMemoranda]:
    script = tmp_path_factory.mktemp("script") / "script.json"
    slow = {"when": "slowly", "text": ["one ", f"{WORD} ", "three"], "pause_at": 1, "repeat": True}
    script.write_text(json.dumps({"turns": [slow, {"text": "{question}", "repeat": True}]}))
    with lasting_home.empty(model={"url": f"scripted:{script}"}) as rc:
        yield rc


@pytest.fixture
def talk(house: BlockingMemoranda, request: pytest.FixtureRequest) -> Talk:
    return Talk(house, request.node.name)


def test_a_member_forgets_its_own_and_a_tenant_its_own(house: BlockingMemoranda, talk: Talk) -> None:
    other = Talk(house, f"{talk.tenant} other")
    for one in (talk, other):
        for user in ("mara", "dan", None):
            one.say(user)
    settled(house)
    everything = talk.left()
    assert min(everything.count(name) for name in ("mara", "dan", "admin")) >= 4
    assert other.left() == everything

    with pytest.raises(Forbidden):
        talk.forget("dan", scopes=["all"])
    talk.forget("dan", scopes=["user:mara"])
    assert talk.left() == everything
    talk.forget("dan", text=WORD, scopes=["user:dan"])
    assert talk.left() == [name for name in everything if name != "dan"]
    talk.forget(None, scopes=["user:mara"])
    assert set(talk.left()) == {"admin"}
    talk.forget(None, scopes=["all"])
    assert talk.left() == []
    assert other.left() == everything


def test_a_members_phrase_reaches_nobody_else(house: BlockingMemoranda, talk: Talk) -> None:
    talk.say("mara")
    talk.say("dan")
    settled(house)
    before = talk.left()
    receipt = talk.forget("dan", text=f"the {WORD}")
    assert receipt.counts["responses"] == 1
    left = talk.left()
    assert left.count("mara") == before.count("mara")
    assert left.count("dan") == 2  # "a ..." in the log, and where it is found


def test_a_time_is_all_that_goes_of_it(house: BlockingMemoranda, talk: Talk) -> None:
    talk.say("mara", "2026-03-02T10:00:00Z")
    talk.say("dan", "2026-04-02T10:00:00Z")
    settled(house)
    receipt = talk.forget(None, since="2026-04-01T00:00:00Z", until="2026-05-01T00:00:00Z")
    assert (receipt.counts["messages"], receipt.counts["memories"]) == (1, 2)
    rows = house.inner.core.store.db.read(
        lambda c: c.select("SELECT content FROM messages WHERE tenant_id = ?", [talk.tenant])
    )
    assert not any("dan said" in text for (text,) in rows)
    assert any("mara said" in text for (text,) in rows)


def test_what_only_memories_have_leaves_the_rest_alone(house: BlockingMemoranda, talk: Talk) -> None:
    talk.say("mara")
    settled(house)
    receipt = talk.forget(None, kinds=["note"])
    assert receipt.counts == {"memories": 1, "vectors": 1}
    assert talk.left().count("mara") >= 3
    with pytest.raises(InvalidInput, match="text"):
        talk.forget(None, text=" ... ")


def test_a_response_under_way_is_given_up(house: BlockingMemoranda, talk: Talk) -> None:
    responses = house.inner.as_subject(talk.by("mara")).responses

    async def under_way() -> tuple[Receipt, str]:
        making = asyncio.ensure_future(responses.create(f"slowly, the {WORD}"))
        await until_async(lambda: house.inner.engine.model.play.paused, "the model speaks")  # type: ignore[union-attr]
        receipt = await house.inner.as_subject(talk.by("mara")).memories.forget(scopes=["user:mara"])
        return receipt, (await making).status

    receipt, status = house.portal.call(under_way())
    assert (receipt.counts["responses"], status) == (1, "cancelled")
    settled(house)
    assert talk.left() == []


def test_a_summary_that_says_more_than_its_messages(house: BlockingMemoranda, talk: Talk) -> None:
    call = house.portal.call
    said = ["nothing of the kind was said"]
    call(house.inner.as_subject(talk.by(None)).sessions.observe(said, session_id="s"))
    invented = "UPDATE sessions SET summary = ?, topics = ? WHERE tenant_id = ? RETURNING 1"
    values = [f"the {WORD}", f'["{WORD}"]', talk.tenant]
    house.inner.core.store.db.write(lambda c: c.select(invented, values)).result()
    assert talk.forget(None, text=WORD).counts["summaries"] == 1
    session = call(house.inner.as_subject(talk.by(None)).sessions.get("s"))
    assert (session.summary, session.topics, session.message_count) == (None, [], 1)


@pytest.mark.rows_in("sqlite")
@pytest.mark.parametrize(
    ("words", "text", "within"),
    [
        ("Ann", "call ANN!", True),
        ("ann", "planning", False),
        ("blue  Pot", "the blue\n\tpot", True),
        ("blue pot", "blue, pot", False),
        ("STRASSE", "in der Straße", True),
        ("é", "cafe\u0301 e\u0301", True),
        ("c++", "I like C++.", True),
        ("(a|b)", "see (A|B)", True),
        ("a|b", "b", False),
    ],
)
def test_a_phrase(rows_in: str, words: str, text: str, within: bool) -> None:
    phrase = Phrase(words)
    assert phrase.within("", None, text) is within
    assert phrase.within_json(json.dumps({"a": [{"b": text}]})) is within
    assert phrase.within_json(json.dumps({text: 1}), None) is within


@pytest.mark.rows_in("sqlite")
def test_a_large_selection_goes_page_by_page_while_others_write(
    home: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with home.open() as rc:
        rc.memories.add_many([f"number {n} of the {WORD}" for n in range(1_200)])
        rc.memories.add("stays")
        left: list[int] = []
        change = Erasure.change

        async def change_and_write(run: Erasure, *work: Any) -> None:
            await change(run, *work)
            await rc.inner.memories.add(f"meanwhile {len(left)}")
            left.append(await rc.inner.memories.count() - len(left) - 1)

        monkeypatch.setattr(Erasure, "change", change_and_write)
        receipt = rc.memories.forget(text=WORD)
        assert receipt.memories == 1_200
        assert left[:3] == [1_051, 901, 751]
        assert rc.memories.count() == 1 + len(left)
