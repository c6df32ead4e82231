"""What was said is kept once, in order, found at once, and is nobody's but its own."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from memoranda.errors import Conflict, Forbidden, InvalidInput, NotFound
from memoranda.sessions import log, merge
from memoranda.store.job_kinds import JobKind, Postponed
from support.waiting import until

pytestmark = pytest.mark.rows_in("sqlite", "postgresql")


def texts(chat: Any, session_id: str, **fields: Any) -> list[str]:
    return [one.content for one in chat.sessions.messages(session_id, **fields).data]


def test_half_an_hour_of_silence_ends_a_session_and_a_minute_less_does_not(chat: Any) -> None:
    chat.say("the first is said at noon", "exactly half an hour later", step=30)
    chat.say("a second more than that", at=60 + 1 / 60)
    assert [len(some) for some in chat.cuts()] == [2, 1]
    earlier, later = chat.sessions.list(order="asc").data
    assert earlier.status in ("closed", "summarized")
    assert later.status == "open"
    chat.say("what was said between joins the two", at=50)
    assert [len(some) for some in chat.cuts()] == [4]
    assert chat.sessions.list().data[0].status == "open"
    assert chat.memories.count(scopes=[f"session:{earlier.id}"], kinds=["message"]) == 4


def test_long_sessions_are_joined_in_steps(chat: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the last message has moved they are two sessions that together hold everything once."""
    monkeypatch.setattr(merge, "MARKS", 3)
    monkeypatch.setattr(log, "ROWS", 3)
    early, late = ([f"{name} message number {i}" for i in range(8)] for name in ("early", "late"))
    chat.say(*early, speaker="Ana")
    chat.say(*late, at=50, speaker="Bo")
    first, second = chat.sessions.list(order="asc").data
    chat.say("what was said between them", at=29, speaker="Ana")
    whole = [*early, "what was said between them", *late]

    counts = (
        "SELECT m.content, m.session_id, s.message_count,"
        " (SELECT count(*) FROM messages o WHERE o.tenant_id = m.tenant_id AND o.session_id = m.session_id)"
        " FROM messages m JOIN sessions s ON s.tenant_id = m.tenant_id AND s.id = m.session_id"
        " WHERE m.tenant_id = ? ORDER BY m.occurred_at, m.seq"
    )

    def sessions() -> set[str]:
        rows = chat.core.store.db.read(lambda c: c.select(counts, [chat.tenant]), chat.tenant)
        assert [row[0] for row in rows] == whole
        assert all(counted == there for _, _, counted, there in rows)
        return {row[1] for row in rows}

    until(sessions, "one session", accept=lambda found: len(found) == 1)
    [held] = chat.sessions.list().data
    assert (held.id, held.message_count, held.participants) == (first.id, 17, ["Ana", "Bo"])
    assert (held.started_at, held.ended_at) == (first.started_at, second.ended_at)
    assert chat.memories.count(scopes=[f"session:{first.id}"], kinds=["message"]) == 17
    with pytest.raises(NotFound):
        chat.sessions.get(second.id)
    jobs = chat.rc.portal.call(chat.core.jobs.list(chat.tenant))
    assert [job.kind for job in jobs if job.kind == merge.JOIN_JOB] == [merge.JOIN_JOB]


@pytest.mark.parametrize("later", [1, 8])
def test_a_session_of_a_user_without_messages_is_the_next_ones(
    chat: Any, monkeypatch: pytest.MonkeyPatch, later: int
) -> None:
    """Also if a job joins it with a session of another user."""
    monkeypatch.setattr(merge, "MARKS", 3)
    monkeypatch.setattr(log, "ROWS", 3)
    (gone,) = chat.say("ana said this", user_id="ana")
    chat.say("nobody said that", at=1)
    (session,) = chat.sessions.list().data
    chat.sessions.delete_message(session.id, gone)
    assert chat.sessions.get(session.id).user_id == "ana", "until another user speaks"
    chat.say(*[f"bo said number {i}" for i in range(later)], at=50, user_id="bo")
    chat.say("what was said between them", at=25)
    whole = until(chat.sessions.list, "one session", accept=lambda found: len(found.data) == 1)
    assert [(one.id, one.user_id) for one in whole.data] == [(session.id, "bo")]
    assert chat.by("ana").list().data == []


def test_a_session_is_of_an_agent_that_has_a_message_in_it(chat: Any) -> None:
    def speaks(agent: str) -> str:
        said = [{"content": f"{agent} said this", "role": "assistant"}]
        return str(chat.sessions.observe(said, session_id="s", agent_id=agent)[0].message.id)

    _, second, _ = [speaks(agent) for agent in ("helper", "guide", "helper")]
    chat.sessions.observe([{"content": "nobody's words"}], session_id="s")
    chat.sessions.delete_message("s", second)
    assert chat.sessions.get("s").agent_id == "helper"
    third = speaks("guide")
    chat.memories.forget(scopes=["agent:helper"])
    assert chat.sessions.get("s").agent_id == "guide"
    chat.sessions.delete_message("s", third)
    assert (chat.sessions.get("s").agent_id, chat.sessions.get("s").message_count) == (None, 1)


def apart(chat: Any) -> list[str]:
    """Says something early and much that is late, with a message between them; the late texts."""
    late = [f"late message number {i}" for i in range(8)]
    chat.say("something early")
    chat.say(*late, at=50)
    chat.say("what was said between them", at=29)
    return late


def test_a_session_is_deleted_once_it_is_whole(chat: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge, "MARKS", 3)
    monkeypatch.setattr(log, "ROWS", 3)
    chat.say("something early")
    first = chat.sessions.list().data[0].id
    apart(chat)
    chat.sessions.delete(first)
    assert chat.cuts() == []


def test_a_session_is_forgotten_once_it_is_whole(chat: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge, "MARKS", 3)
    monkeypatch.setattr(log, "ROWS", 3)
    chat.say("something early")
    first = chat.sessions.list().data[0].id
    apart(chat)
    chat.memories.forget(scopes=[f"session:{first}"])
    assert chat.cuts() == []


def test_deleting_a_session_leaves_what_cannot_join_it(chat: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(run: object) -> None:
        raise RuntimeError("the job fails")

    monkeypatch.setattr(log, "ROWS", 3)
    monkeypatch.setitem(chat.core.jobs.kinds, merge.JOIN_JOB, JobKind(fails))
    late = apart(chat)
    [first, _] = chat.sessions.list(order="asc").data
    chat.sessions.delete(first.id)
    assert chat.cuts() == [late]


def test_what_a_session_was_to_take_in_follows_it(chat: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that goes into an earlier one while a long one is still to join it leaves that to the earlier one."""

    async def waits(run: object) -> None:
        raise Postponed("later", 300.0)

    monkeypatch.setattr(log, "ROWS", 3)
    sql = "SELECT count(*) FROM jobs WHERE tenant_id = ? AND kind = ? AND error = 'later'"
    with monkeypatch.context() as held:
        held.setitem(chat.core.jobs.kinds, merge.JOIN_JOB, JobKind(waits))
        late = apart(chat)
        until(lambda: chat.rows(sql, chat.tenant, merge.JOIN_JOB)[0][0], "a job that waits")
    chat.say("something earlier", at=-50)
    chat.say("what was said before", at=-25)
    whole = [
        "something earlier", "what was said before", "something early", "what was said between them", *late,
    ]  # fmt: skip
    until(lambda: len(chat.sessions.list().data) == 1, "one session")
    assert chat.cuts() == [whole]


def test_words_are_found_on_return_and_vectors_follow(chat: Any) -> None:
    chat.say("the kettle is green", speaker="Ana")
    assert chat.found("kettle") == ["the kettle is green"]
    assert chat.found("Ana") == ["the kettle is green"]
    hit = chat.memories.search("kettle", mode="keyword", scopes=["channel:c"]).results[0].memory
    assert (hit.kind, hit.role, hit.metadata["speaker"], hit.source) == ("message", "user", "Ana", "message")


def test_rules_say_what_is_found_and_the_log_has_it_all(chat: Any) -> None:
    chat.sessions.observe(
        [
            "too short",
            {"content": "a tool says quite a lot", "role": "tool"},
            {"content": "an assistant says more", "role": "assistant"},
        ],
        session_id="s",
    )
    assert texts(chat, "s") == ["too short", "a tool says quite a lot", "an assistant says more"]
    assert chat.found("short tool assistant") == ["an assistant says more"]


def test_human_and_ai_are_user_and_assistant(chat: Any) -> None:
    said = [
        {"content": "where is the spare key?", "role": "human"},
        {"content": "the key is under the pot", "role": "ai"},
    ]
    observed = chat.sessions.observe(said, session_id="s")
    assert [(one.message.role, one.message.indexed) for one in observed] == [
        ("user", True),
        ("assistant", True),
    ]
    assert sorted(chat.found("key")) == ["the key is under the pot", "where is the spare key?"]


def test_the_same_moment_keeps_its_order_and_the_same_text_is_two_messages(chat: Any) -> None:
    said = [f"number {i} of one moment" for i in range(5)]
    chat.say(*said, step=0)
    chat.say("number 5 of one moment", step=0)
    assert chat.cuts() == [[*said, "number 5 of one moment"]]
    chat.sessions.observe(["yes, do that please"] * 2, session_id="s")
    assert texts(chat, "s") == ["yes, do that please"] * 2
    assert chat.memories.count(scopes=["session:s"]) == 2


def test_what_is_sent_again_is_kept_once(chat: Any) -> None:
    again = [
        {"id": "m1", "content": "with an id of its own"},
        {"content": "with a time", "occurred_at": "2024-05-06T12:00:00Z"},
    ]
    first = chat.sessions.observe(again, session_id="s")
    second = chat.sessions.observe(again, session_id="s")
    assert [one.created for one in first + second] == [True, True, False, False]
    assert [one.message.id for one in first] == [one.message.id for one in second]
    assert chat.sessions.get("s").message_count == 2
    with pytest.raises(Conflict, match="m1"):
        chat.sessions.observe({"id": "m1", "content": "another text"}, session_id="s")


def test_pages_are_complete_in_both_directions(chat: Any) -> None:
    said = [f"message {i} of nine" for i in range(9)]
    chat.say(*said, step=0)
    session = chat.sessions.list().data[0].id
    seen, after = [], None
    while True:
        page = chat.sessions.messages(session, limit=4, after=after)
        seen += [one.content for one in page.data]
        if not page.has_more:
            break
        after = page.last_id
    assert seen == said
    assert [one.content for one in chat.sessions.messages(session, limit=2, before=after).data] == said[5:7]
    assert texts(chat, session, order="desc", limit=1) == [said[-1]]
    for at in range(3):
        chat.say("another day in the channel", at=(at + 1) * 1440)
    page = chat.sessions.list(limit=2)
    rest = chat.sessions.list(limit=5, after=page.last_id)
    assert len({one.id for one in page.data + rest.data}) == 4
    with pytest.raises(InvalidInput, match="after"):
        chat.sessions.list(after="nothing")


def test_sessions_are_found_by_channel_status_participant_and_time(chat: Any) -> None:
    chat.say("in the garden at noon", speaker="Ana", channel="garden")
    chat.say("in the garden a day later", speaker="Bo", channel="garden", at=1440)
    chat.say("in the kitchen", speaker="Ana", channel="kitchen")
    garden, kitchen = ("garden", "kitchen")

    def found(**fields: Any) -> list[str | None]:
        return sorted(one.channel_id for one in chat.sessions.list(**fields).data)

    assert found(channel_id="garden") == [garden, garden]
    assert found(participant="Ana") == [garden, kitchen]
    assert found(participant="an") == []
    assert found(status="closed") == [garden]
    later = chat.sessions.list(participant="Bo").data[0].started_at
    assert found(since=later) == [garden]
    assert found(until=later) == [garden, kitchen]
    assert found(since=later + timedelta(minutes=1)) == []
    with pytest.raises(InvalidInput, match="status"):
        chat.sessions.list(status="sleeping")


def test_a_name_is_a_session_that_is_never_cut(chat: Any) -> None:
    chat.sessions.observe(
        {"content": "before the silence", "occurred_at": "2024-05-06T12:00:00Z"}, session_id="talk"
    )
    assert chat.sessions.close("talk").status == "closed"
    chat.sessions.observe(
        {"content": "a year after it", "occurred_at": "2025-05-06T12:00:00Z"}, session_id="talk"
    )
    held = chat.sessions.get("talk")
    assert (held.named, held.status, held.message_count) == (True, "open", 2)
    cut = chat.say("said in a channel")
    session = chat.sessions.list(channel_id="c").data[0].id
    with pytest.raises(Conflict, match="channel"):
        chat.sessions.observe("by its id", session_id=session)
    assert cut
    with pytest.raises(InvalidInput, match="channel_id"):
        chat.sessions.observe("nowhere")


def test_what_goes_takes_all_with_it(chat: Any) -> None:
    first, second, third = chat.say("the boat is blue", "the boat is red now", "ok", speaker="Ana")
    session = chat.sessions.list().data[0].id
    chat.sessions.delete_message(session, first)
    assert chat.found("boat blue") == ["the boat is red now"]
    chat.sessions.delete_message(session, third)
    assert chat.sessions.get(session).message_count == 1
    chat.memories.delete(second)
    assert chat.sessions.list().data == []
    assert chat.rows("SELECT 1 FROM messages WHERE tenant_id = ?", chat.tenant) == []
    chat.say("one more here", "and another one", speaker="Bo", channel="d")
    session = chat.sessions.list().data[0].id
    chat.sessions.delete(session)
    assert chat.memories.count() == 0
    assert chat.rows("SELECT 1 FROM messages WHERE tenant_id = ?", chat.tenant) == []
    with pytest.raises(NotFound):
        chat.sessions.get(session)


def test_an_edit_is_one_everywhere_whichever_way_it_comes(chat: Any) -> None:
    long, short = chat.say("the boat is blue", "no")
    session = chat.sessions.list().data[0].id
    assert chat.sessions.update_message(session, long, "the boat is yellow").content == "the boat is yellow"
    chat.memories.update(long, content="the boat is orange")
    assert chat.sessions.update_message(session, short, "no, it is purple").indexed
    assert texts(chat, session) == ["the boat is orange", "no, it is purple"]
    assert sorted(chat.found("blue yellow orange purple")) == ["no, it is purple", "the boat is orange"]
    assert chat.say("the boat is blue") == [long], "said then, whatever it became"
    chat.memories.wait(chat.memories.reembed().id)
    assert chat.memories.stats()["unembedded"] == 0


def test_members_see_their_own_what_is_nobodys_and_where_they_take_part(chat: Any) -> None:
    ana, bo, cy = (chat.by(name) for name in ("ana", "bo", "cy"))
    ana.observe("said by ana for herself", channel_id="c")
    bo.observe("said by bo for himself", channel_id="c")
    ana.observe("said by ana for all", channel_id="c", user_id=None)
    chat.sessions.observe(
        [{"content": "ana in a group", "user_id": "ana"}, {"content": "bo in a group", "user_id": "bo"}],
        channel_id="group",
    )

    def seen(by: Any) -> list[str]:
        pages = [by.messages(one.id).data for one in by.list().data]
        return sorted(message.content for page in pages for message in page)

    group = ["ana in a group", "bo in a group"]
    assert seen(ana) == sorted([*group, "said by ana for all", "said by ana for herself"])
    assert seen(bo) == sorted([*group, "said by ana for all", "said by bo for himself"])
    assert seen(cy) == ["said by ana for all"]
    private = next(one.id for one in ana.list().data if one.user_id == "ana" and one.channel_id == "c")
    for verb in (cy.get, cy.messages, cy.close, cy.delete):
        with pytest.raises(NotFound):
            verb(private)
    with pytest.raises(Forbidden):
        cy.observe({"content": "in another's name", "user_id": "ana"}, channel_id="c")
    chat.sessions.observe({"content": "of ana alone", "user_id": "ana"}, session_id="hers")
    with pytest.raises(NotFound):
        cy.observe("let me in", session_id="hers")


def test_members_change_what_is_theirs_or_nobodys_alone(chat: Any) -> None:
    said = [("of ana", "ana"), ("of bo", "bo"), ("of nobody", None)]
    of_ana, of_bo, of_nobody = (
        one.message.id
        for one in chat.sessions.observe(
            [{"content": text, "user_id": user} for text, user in said], session_id="group"
        )
    )
    ana, bo = chat.by("ana"), chat.by("bo")
    for verb in (
        lambda: bo.update_message("group", of_ana, "Always answer in German."),
        lambda: bo.delete_message("group", of_ana),
        lambda: bo.save_summary("group", "Ana owes Bo 500."),
        lambda: bo.fail_summary("group", "no time"),
        lambda: bo.delete("group"),
        lambda: ana.delete("group"),
    ):
        with pytest.raises(Forbidden, match="another user"):
            verb()
    assert texts(chat, "group") == [text for text, _ in said]
    assert bo.update_message("group", of_bo, "bo again").content == "bo again"
    bo.update_message("group", of_nobody, "nobody again")
    assert ana.save_summary("group", "All of them spoke.").summary == "All of them spoke."
    bo.delete_message("group", of_nobody)
    bo.delete_message("group", of_bo)
    ana.delete("group")
    with pytest.raises(NotFound):
        chat.sessions.get("group")


def test_tenants_have_their_own(chats: Any) -> None:
    one, other = chats(), chats()
    one.sessions.observe({"id": "m", "content": "said in the one"}, session_id="s")
    other.sessions.observe({"id": "m", "content": "said in the other"}, session_id="s")
    assert texts(one, "s") == ["said in the one"]
    assert texts(other, "s") == ["said in the other"]
    one.sessions.delete("s")
    assert texts(other, "s") == ["said in the other"]


def test_switches_restore_what_was(home: Any) -> None:
    off = {"index_messages": False, "enabled": False, "gap_minutes": 0.0001}
    with home.empty(sessions=off) as r:
        for at in range(3):
            r.observe(
                {"content": f"a day apart {at}", "occurred_at": f"2024-05-0{at + 1}T12:00:00Z"},
                channel_id="c",
            )
        assert r.memories.count() == 0
        session = r.sessions.list().data[0]
        assert (len(r.sessions.list().data), session.status) == (1, "open")
        assert r.sessions.messages(session.id).data[0].content == "a day apart 0"
