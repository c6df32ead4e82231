"""Closed sessions are summarized, by rules or by a model, once, and what was told of what is gone goes too."""

from __future__ import annotations

import asyncio
import threading
import time
from operator import not_
from typing import Any

import pytest

from memoranda.sessions import summary_jobs, summary_memories
from memoranda.sessions.boundaries import SUMMARIZE_JOB
from memoranda.sessions.digests import Turn, digest_of
from memoranda.sessions.rollups import Rollups
from memoranda.sessions.summarizer import parsed
from memoranda.storage.sql.sqlite import SqliteTransaction
from memoranda.store.jobs import Jobs
from support.waiting import until

ANSWER = (
    '{"summary": "Ana and Bo buy a greenhouse.", "topics": ["greenhouse"], "decisions": ["the used one"]}'
)


def test_rules_find_what_was_decided_asked_and_promised(talk: Any) -> None:
    made = digest_of((Turn(speaker, "user", text) for speaker, text in talk), 300)
    assert "Bo: Yes, they want 2400 euros, which is too much." in made.summary
    assert made.topics[0] == "greenhouse"
    assert made.decisions == [talk[4][1]]
    assert made.open_questions == ["Do we need a permit for it?"]
    assert "I'll call the seller tomorrow morning." in made.action_items
    assert {"Potsdam", "Lindner", "Mara"} <= set(made.entities)
    assert made == digest_of((Turn(speaker, "user", text) for speaker, text in talk), 300)
    assert digest_of([Turn("a", "user", "?!")], 300).summary == "a: ?!"


@pytest.mark.parametrize(
    ("answer", "summary", "decisions"),
    [
        (ANSWER, "Ana and Bo buy a greenhouse.", ["the used one"]),
        (
            f"Sure! Here it is:\n```json\n{ANSWER}\n```\nAnything else?",
            "Ana and Bo buy a greenhouse.",
            ["the used one"],
        ),
        (ANSWER[:-3], "Ana and Bo buy a greenhouse.", []),
        (f"<think>Well, {{hm}}</think>{ANSWER}", "Ana and Bo buy a greenhouse.", ["the used one"]),
        ("They talked about a greenhouse.\nAnd agreed.", "They talked about a greenhouse. And agreed.", []),
        ('["They talked.", "They agreed."]', "They talked. They agreed.", []),
        ('{"summary": ["One.", "Two."], "decisions": "a, b", "topics": null}', "One. Two.", ["a", "b"]),
        (
            '{"summary": "x\\u0000y", "decisions": [{"what": "go", "who": "Bo"}, 3]}',
            "x\ufffdy",
            ["go Bo", "3"],
        ),
        ("[" * 100_000 + ANSWER, "Ana and Bo buy a greenhouse.", ["the used one"]),
    ],
)
def test_an_answer_of_any_shape_is_understood(answer: str, summary: str, decisions: list[str]) -> None:
    made = parsed(answer, "m", 300)
    assert made.summary == summary
    assert made.decisions == decisions
    assert len(parsed('{"summary": "s", "topics": [' + '"t",' * 10_000 + "]}", "m", 300).topics) <= 10


@pytest.mark.rows_in("sqlite", "postgresql")
@pytest.mark.parametrize(("of", "step"), [(Rollups, "work"), (Jobs, "_end")])
def test_a_session_that_is_closed_when_a_job_is_about_to_end_is_summarized(
    chat: Any, monkeypatch: pytest.MonkeyPatch, of: type, step: str
) -> None:
    """The clock alone would see it minutes later: a session that is too small makes it look no sooner."""
    reached, going_on = threading.Event(), threading.Event()
    goes_on = getattr(of, step)

    async def held(self: Any, *args: Any) -> Any:
        if not reached.is_set() and (of is Rollups or args[0].kind == SUMMARIZE_JOB):
            reached.set()
            await asyncio.to_thread(going_on.wait)
        return await goes_on(self, *args)

    monkeypatch.setattr(of, step, held)
    chat.say("too little", channel="small")
    chat.sessions.close(chat.sessions.list(channel_id="small").data[0].id)
    assert reached.wait(120)
    chat.sessions.close(chat.talk())
    going_on.set()
    until(lambda: chat.kept("session_summary"), "the summary")


@pytest.mark.rows_in("sqlite", "postgresql")
def test_a_closed_session_is_summarized_and_found(chat: Any, talk: Any) -> None:
    id = chat.talk()
    assert chat.sessions.get(id).status == "open"
    chat.sessions.close(id)
    held = chat.summarized(id)
    assert (held.summary_model, held.summary_version, held.failure) == ("extractive", 1, None)
    assert held.topics[0] == "greenhouse"
    (memory,) = chat.kept("session_summary")
    assert (memory.id, memory.session_id, memory.channel_id, memory.source) == (
        held.summary_id,
        id,
        "c",
        "session",
    )
    assert memory.metadata["participants"] == ["Ana", "Bo"]
    assert memory.metadata["message_count"] == len(talk)
    assert memory.tags == held.topics
    assert memory.source_refs == [id]
    header = chat.rows("SELECT header FROM memories WHERE id = ?", memory.id)[0][0]
    assert header == f"[06 May 2024 12:00 to 12:06] c, Ana, Bo: {', '.join(held.topics)}. "
    assert memory.content in chat.found("06 May c Ana", kinds=["session_summary"]), "the header is found, too"


@pytest.mark.rows_in("sqlite", "postgresql")
def test_small_ones_stay_closed_and_a_later_message_summarizes_again(chat: Any) -> None:
    (only,) = chat.say("a single message alone")
    id = chat.sessions.list().data[0].id
    chat.sessions.close(id)
    pending = "SELECT 1 FROM sessions WHERE tenant_id = ? AND pending = 1"
    until(lambda: chat.rows(pending, chat.tenant), "no pending summary", accept=not_)
    assert (chat.sessions.get(id).status, chat.kept("session_summary")) == ("closed", [])
    chat.say("and one more, which is enough", at=1)
    assert chat.sessions.get(id).status == "open"
    chat.sessions.close(id)
    first = chat.summarized(id)
    chat.say("a third one comes late", at=2)
    chat.sessions.close(id)
    again = chat.summarized(id)
    assert again.summary_id != first.summary_id
    assert "third" in again.summary
    assert [one.id for one in chat.kept("session_summary")] == [again.summary_id]
    assert only


@pytest.mark.rows_in("sqlite", "postgresql")
def test_a_summary_of_what_is_gone_goes_and_is_made_again(chat: Any) -> None:
    id = chat.talk()
    chat.sessions.close(id)
    first = chat.summarized(id)
    gone = next(one for one in chat.sessions.messages(id).data if "2400" in one.content)
    chat.memories.delete(gone.id)
    assert chat.sessions.get(id).summary is None or "2400" not in chat.sessions.get(id).summary
    again = chat.summarized(id)
    assert again.summary_id != first.summary_id
    assert "2400" not in again.summary
    assert chat.found("2400") == []
    chat.sessions.delete(id)
    assert chat.kept("session_summary", "message", "rollup") == []


@pytest.mark.rows_in("sqlite", "postgresql")
def test_a_summary_is_made_again_however_long_the_commit_took(chat: Any, monkeypatch: Any) -> None:
    """The clock looks once the change is committed, not while it is written."""
    for module in (summary_memories, summary_jobs):
        monkeypatch.setattr(module, "QUIET", 0)
    id = chat.talk()
    chat.sessions.close(id)
    before = chat.summarized(id)
    time.sleep(0.5)  # the clock has seen that nothing is due
    commit = SqliteTransaction.commit

    def slow(transaction: Any) -> None:
        time.sleep(0.3)
        commit(transaction)

    monkeypatch.setattr(SqliteTransaction, "commit", slow)
    chat.memories.delete(chat.sessions.messages(id).data[0].id)
    monkeypatch.setattr(SqliteTransaction, "commit", commit)
    until(
        lambda: chat.sessions.get(id).summary_id,
        "another summary",
        accept=lambda found: found not in (None, before.summary_id),
    )


def test_a_session_whose_first_speaker_is_forgotten_is_the_next_ones(chat: Any) -> None:
    """Else its new summary is one more memory of who is forgotten, and goes or stays as it happens."""
    for i, text in enumerate(("We meet on Monday.", "The hall is booked.", "I bring the projector.")):
        for speaker in ("ana", "bo"):
            chat.say(f"{text} - {speaker}", at=i, user_id=speaker, speaker=speaker)
    (session,) = chat.sessions.list(channel_id="c").data
    chat.sessions.close(session.id)
    assert chat.summarized(session.id).user_id == "ana"
    chat.memories.forget(scopes=["user:ana"])
    again = chat.summarized(session.id)
    assert (again.user_id, again.participants, again.message_count) == ("bo", ["bo"], 3)
    assert [(one.user_id, one.id) for one in chat.kept("session_summary")] == [("bo", again.summary_id)]
    assert "ana" not in str(chat.rows("SELECT * FROM sessions WHERE id = ?", session.id))
    chat.memories.forget(scopes=["user:ana"])
    assert chat.sessions.get(session.id) == again


def test_a_summary_that_a_person_deletes_stays_away(chat: Any) -> None:
    id = chat.talk()
    chat.sessions.close(id)
    chat.memories.delete(chat.summarized(id).summary_id)
    held = chat.sessions.get(id)
    assert (held.status, held.summary, held.summary_id, held.topics) == ("closed", None, None, [])
    assert chat.sessions.summarize(id).status == "summarized", "but is made when it is asked for"


@pytest.mark.rows_in("sqlite", "postgresql")
def test_a_week_is_rolled_up_and_follows_its_sessions(chat: Any, monkeypatch: Any) -> None:
    def rolled_up() -> list[int]:
        return [rollup.metadata["sessions"] for rollup in chat.kept("rollup")]

    monkeypatch.setattr(summary_memories, "QUIET", 0)
    monkeypatch.setattr(summary_jobs, "QUIET", 0)
    days = [chat.talk(day) for day in (0, 1, 7)]
    for id in days:
        chat.sessions.close(id)
        chat.summarized(id)
    rollup = until(lambda: chat.kept("rollup"), "a roll-up")[0]
    assert rollup.metadata == {"week": "2024-W19", "sessions": 2}
    assert (rollup.channel_id, rollup.session_id, rollup.source_refs) == ("c", None, days[:2])
    assert "greenhouse" in rollup.tags
    later = chat.talk(2)
    chat.sessions.close(later)
    until(rolled_up, "a roll-up of 3 sessions", accept=lambda sessions: sessions == [3])
    monkeypatch.setattr(summary_memories, "QUIET", 3_600_000_000)
    chat.sessions.delete(later)
    assert chat.kept("rollup") == [], "it names what is gone"
    monkeypatch.setattr(summary_memories, "QUIET", 0)
    again = chat.talk(3)
    chat.sessions.close(again)
    until(rolled_up, "another roll-up of 3 sessions", accept=lambda sessions: sessions == [3])
    chat.sessions.delete(again)
    until(rolled_up, "a roll-up of 2 sessions", accept=lambda sessions: sessions == [2])
    chat.sessions.delete(days[0])
    until(rolled_up, "no roll-up", accept=not_)


@pytest.mark.rows_in("sqlite", "postgresql")
def test_a_rollup_goes_with_a_session_that_another_user_joined(chat: Any, monkeypatch: Any) -> None:
    """By then the session is of another week of the channel: the one of all users."""
    monkeypatch.setattr(summary_memories, "QUIET", 0)
    monkeypatch.setattr(summary_jobs, "QUIET", 0)
    for day in (0, 1):
        chat.say("The orchid arrived in the hall.", "We agreed to move it.", at=day * 1440, user_id="ana")
    first, second = chat.sessions.list(order="asc").data
    for session in (first, second):
        chat.sessions.close(session.id)
        chat.summarized(session.id)
    (rollup,) = until(lambda: chat.kept("rollup"), "a roll-up")
    assert rollup.source_refs == [first.id, second.id]
    monkeypatch.setattr(summary_memories, "QUIET", 3_600_000_000)
    chat.say("Let me help you with that on Saturday.", at=2, user_id="bo")
    assert (chat.sessions.get(first.id).status, chat.kept("rollup")) == ("open", [rollup])

    preview = chat.memories.preview_forget(scopes=[f"session:{first.id}"])
    assert {kind.kind: kind.count for kind in preview.kinds} == {
        "message": 3, "session_summary": 1, "rollup": 1,
    }  # fmt: skip
    assert chat.memories.forget(scopes=[f"session:{first.id}"]).memories == 5
    assert chat.kept("rollup") == []
    rollups = "SELECT owner, stale, memory_id FROM rollups WHERE tenant_id = ? ORDER BY owner"
    assert [tuple(row) for row in chat.rows(rollups, chat.tenant)] == [("", 1, None), ("ana", 1, None)]


@pytest.mark.rows_in("sqlite", "postgresql")
def test_the_clock_closes_what_is_quiet_in_whatever_process(home: Any) -> None:
    quick = {"gap_minutes": 0.003, "min_messages": 2}
    with home.open(sessions={**quick, "gap_minutes": 30.0}) as r:
        r.observe(["said before the end", "and the last of it"], channel_id="c")
        id = r.sessions.list().data[0].id
        r.observe({"content": "from a wrong clock", "occurred_at": "2124-05-06T12:00:00Z"}, channel_id="d")
        r.inner.core.store.db.write(lambda c: c.select("UPDATE sessions SET due_at = 1 RETURNING 1")).result()
    with home.open(sessions=quick) as r:
        until(lambda: r.sessions.get(id).status == "summarized", "a summary")
        r.observe(["said and then nothing", "any more of that"], channel_id="e")
        last = r.sessions.list(channel_id="e").data[0].id
        until(lambda: r.sessions.get(last).status == "summarized", "a summary")
        assert {one.status for one in r.sessions.list(channel_id="d").data} == {"closed"}
    with home.open(sessions={**quick, "summary_version": 2}) as r:
        until(lambda: r.sessions.get(id).summary_version == 2, "a summary of the new version")
        assert len(r.memories.list(kinds=["session_summary"]).data) == 2


@pytest.mark.rows_in("sqlite", "postgresql")
def test_a_summary_is_there_with_its_memory_or_not_at_all(home: Any, monkeypatch: Any) -> None:
    """What ends between the two leaves neither; the next start makes both, once."""
    quick = {"gap_minutes": 0.003, "min_messages": 2}
    whole, tried = summary_jobs.SummaryJobs._write_results, []

    def interrupted(self: Any, w: Any, made: Any) -> dict[str, int]:
        tried.append(whole(self, w, made))
        raise RuntimeError("the end")

    with home.open(sessions=quick) as r:
        monkeypatch.setattr(summary_jobs.SummaryJobs, "_write_results", interrupted)
        r.observe(["said before the end", "and the last of it"], channel_id="c")
        until(lambda: tried, "an attempt")
        held = r.sessions.list().data[0]
        assert (held.status, held.summary, r.memories.list(kinds=["session_summary"]).data) == (
            "closed",
            None,
            [],
        )
    monkeypatch.undo()
    with home.open(sessions=quick) as r:
        until(lambda: r.sessions.get(held.id).status == "summarized", "a summary")
        (memory,) = r.memories.list(kinds=["session_summary"]).data
        assert memory.id == r.sessions.get(held.id).summary_id
        hits = r.memories.search(memory.content, mode="keyword", kinds=["session_summary"]).results
        assert [hit.memory.id for hit in hits] == [memory.id]
