"""Switches of tenants and channels: who decides, for what is said and for jobs that are queued."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.app.blocking import BlockingMemoranda
from memoranda.errors import Forbidden, InvalidInput
from memoranda.facts.extraction import Extraction
from memoranda.sessions.summary_jobs import SummaryJobs
from memoranda.types import Subject
from support.waiting import until

LIKES = "I prefer green tea over coffee."
FACTS = json.dumps([{"fact": "The user prefers green tea", "confidence": 0.9, "messages": [1]}])


def switches(chat: Any, **by: Any) -> Any:
    """The switches of a tenant, as its admin or `by` another role sees them."""
    return chat.rc.as_subject(Subject(tenant_id=chat.tenant, **by)).switches


def marks(chat: Any) -> list[int]:
    """What is noted of each message, in order: 0, nothing is read; 1, it was asked for; 2, it is switched on."""
    return [
        row[0]
        for row in chat.rows("SELECT extract FROM messages WHERE tenant_id = ? ORDER BY seq", chat.tenant)
    ]


TABLE = list(itertools.product((None, True, False), repeat=3))


@pytest.mark.rows_in("sqlite")
def test_a_request_goes_before_the_channel_before_the_tenant(chats: Any) -> None:
    """All 27 cases, over a configuration in which extraction is off."""
    for request, channel, tenant in TABLE:
        chat = chats()
        switches(chat).set(extraction=tenant)
        state = switches(chat).set("c", extraction=channel)
        assert (state.extraction, switches(chat).get().extraction) == (channel, tenant)
        chat.sessions.observe(LIKES, channel_id="c", extraction=request)
        chat.sessions.observe(LIKES, channel_id="another")
        below = channel if channel is not None else tenant
        assert state.in_force.extraction is bool(below)
        wanted = {None: 2 * bool(below), True: 1, False: 0}[request]
        assert marks(chat) == [wanted, 2 * bool(tenant)], (request, channel, tenant)


def test_a_channel_is_that_of_the_session(chat: Any) -> None:
    switches(chat).set("c", extraction=True)
    chat.sessions.observe(LIKES, session_id="named", channel_id="c")
    chat.sessions.observe("And cake.", session_id="named")
    chat.sessions.observe(LIKES, session_id="other")
    assert marks(chat) == [2, 2, 0]


def test_tenants_have_switches_of_their_own(chats: Any) -> None:
    one, other = chats(), chats()
    switches(one).set(extraction=True, session_summaries=False)
    switches(one).set("c", conversation_summaries=True)
    assert switches(other).get("c").in_force.extraction is False
    other.talk()
    one.talk()
    for chat in (one, other):
        chat.sessions.close(chat.sessions.list().data[0].id)
    other.summarized(other.sessions.list().data[0].id)
    assert one.sessions.list().data[0].status == "closed"
    assert not one.kept("session_summary")
    assert marks(other) == [0] * len(marks(other))


def test_who_may_switch(chat: Any) -> None:
    service: dict[str, Any] = {"role": "service"}
    assert switches(chat, **service).set("c", extraction=True).in_force.extraction
    refused: list[dict[str, Any]] = [{"role": "member", "user_id": "ana"}, service | {"user_id": "ana"}]
    for by in refused:
        with pytest.raises(Forbidden):
            switches(chat, **by).get("c")
    with pytest.raises(Forbidden):
        switches(chat, **service).get()
    with pytest.raises(Forbidden, match="tenant"):
        switches(chat).get(tenant="another")
    operator = chat.rc.switches
    assert operator.get("c", tenant=chat.tenant).extraction is True
    with pytest.raises(InvalidInput, match="extraction, session_summaries, conversation_summaries"):
        switches(chat).set(summaries=True)
    with pytest.raises(InvalidInput, match="true, false, or null"):
        switches(chat).set(extraction="no")


def test_switching_summaries_off_holds_for_a_queued_job(chat: Any, monkeypatch: Any) -> None:
    """A session is closed and its job is about to look; then the channel is switched off."""
    real = SummaryJobs._wanted

    def off_first(self: Any, tenant: str, rows: Any) -> Any:
        if tenant == chat.tenant:
            write = self.core.store.db.write(
                lambda c: c.run("set_switch", [tenant, "c", "session_summaries", 0]), tenant=tenant
            )
            write.result()
        return real(self, tenant, rows)

    monkeypatch.setattr(SummaryJobs, "_wanted", off_first)
    id_ = chat.talk()
    chat.sessions.close(id_)
    until(
        lambda: chat.rows("SELECT pending FROM sessions WHERE tenant_id = ?", chat.tenant) == [(0,)],
        "the job to pass",
    )
    assert chat.sessions.get(id_).status == "closed"
    assert not chat.kept("session_summary")
    assert chat.sessions.summarize(id_).status == "summarized"  # a request goes before the channel


def test_summaries_switched_on_where_the_configuration_has_none(home: Any) -> None:
    with home.open(sessions={"min_messages": 2, "summarize": False}) as rc:
        rc.switches.set("c", session_summaries=True)
        for channel in ("c", "d"):
            rc.observe(["We take the greenhouse.", "Agreed, I'll call."], channel_id=channel)
            rc.sessions.close(rc.sessions.list(channel_id=channel).data[0].id)
        until(lambda: rc.sessions.list(status="summarized").data, "a summary")
        assert [one.channel_id for one in rc.sessions.list(status="closed").data] == ["d"]


@pytest.fixture(scope="module")
def learning(lasting_home: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingMemoranda]:
    """A product whose model finds one fact in whatever it is asked."""
    path: Path = tmp_path_factory.mktemp("script") / "script.json"
    path.write_text(json.dumps({"turns": [{"text": FACTS, "repeat": True}]}))
    settings = {"facts": {"extraction": "eager", "reconcile": False}, "model": {"url": f"scripted:{path}"}}
    with lasting_home.empty(**settings) as opened:
        yield opened


def test_switching_extraction_off_holds_for_a_queued_job(
    learning: BlockingMemoranda, numbers: Iterator[int], monkeypatch: Any
) -> None:
    """Two messages wait for the job, and one of them was asked for: only that one is read."""
    rc, tenant = learning, f"off{next(numbers)}"
    admin = Subject(tenant_id=tenant)
    sessions = rc.as_subject(admin).sessions
    seen: list[list[str]] = []
    real, take = Extraction._read, Extraction._take

    def off_first(self: Any, whose: str, *rest: Any) -> Any:
        if whose == tenant:
            write = self.core.store.db.write(
                lambda c: c.run("set_switch", [tenant, "c", "extraction", 0]), tenant=tenant
            )
            write.result()
        return real(self, whose, *rest)

    async def noting(self: Any, batch: Any, *rest: Any) -> Any:
        seen.append([row.content for row in batch.messages])
        return await take(self, batch, *rest)

    monkeypatch.setattr(Extraction, "_read", off_first)
    monkeypatch.setattr(Extraction, "_take", noting)
    sessions.observe("I prefer coffee to anything.", channel_id="c")
    sessions.observe(LIKES, channel_id="c", extraction=True)
    session = sessions.list().data[0].id
    done = "SELECT facts_rev = rev FROM sessions WHERE tenant_id = ? AND id = ?"
    until(lambda: all(rc.inner.core.store.db.read(lambda c: c.select(done, [tenant, session]))[0]), "the job")
    assert [text for some in seen for text in some] == [LIKES]
    facts = rc.as_subject(admin).memories.list(kinds=["fact"]).data
    assert [fact.content for fact in facts] == ["The user prefers green tea"]
