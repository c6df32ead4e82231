"""What is remembered of answers: once each, summarized at the right turn, pruned for one user, of past answers too."""

from __future__ import annotations

import itertools
import re
import time
from typing import Any

import pytest

from memoranda.clock import now_micros
from memoranda.document_qa import log, turns
from memoranda.document_qa.log import QueryRow
from memoranda.errors import InvalidInput, StorageError
from memoranda.providers.chat.scripted import ScriptedModel
from memoranda.storage.sql.statements import statements
from support.core_parts import replaced

MEMORIES = (
    "SELECT content FROM memories WHERE tenant_id = ? AND source IN ('qa_turn', 'summary') ORDER BY seq"
)
QUESTIONS = "SELECT question, status, session_id FROM query_log WHERE tenant_id = ? ORDER BY seq"


def test_a_summary_at_every_nth_turn_whatever_a_prompt_shows(desk: Any) -> None:
    """No turn is in the window, and more are stored than it would hold: turns are counted where they are stored."""
    desk.house.says(
        {"when": "The notes:", "text": "Noted.", "repeat": True}, {"text": "Yes.", "repeat": True}
    )
    with desk.house.set(summary_every_turns=3):
        session = desk.ask("Question 1?", includeHistory=False)["sessionId"]
        for n in range(2, 9):
            desk.ask(f"Question {n}?", sessionId=session, maxHistoryTokens=0, topKMems=0)
        other = desk.ask("Question 1 elsewhere?")["sessionId"]
    noted = [re.findall(r"Question (\d)", told) for told in desk.house.noted()]
    assert noted == [["1", "2", "3"], ["4", "5", "6"]]
    about = desk.get("/memories", limit=100)["data"]
    summaries = [one for one in about if one["source"] == "summary"]
    assert [(one["sessionId"], one["metadata"], one["content"], one["importance"]) for one in summaries] == [
        (session, {"turns": 3, "made_by": "scripted"}, "Noted.", 1)
    ]  # the same words of the same session are one memory
    assert len([one for one in about if one["source"] == "qa_turn"]) == 9
    assert other != session


def test_only_summaries_are_in_the_background(desk: Any) -> None:
    """Replies have priority over them, and without a budget they are made of sentences."""
    turns_of_model = [
        {"when": "The notes:", "text": "Noted.", "repeat": True},
        {"text": "Yes.", "repeat": True},
    ]
    model = ScriptedModel(turns_of_model)
    with replaced(desk.core, model=model), desk.house.set(summary_every_turns=1):
        desk.ask("Which kettle?")
        assert [ask.background for ask in model.asked] == [False, True]
        limits = {"background_tokens_per_day": 1}
        desk.house.rc.portal.call(desk.core.costs.set_limits(desk.tenant, limits))
        desk.ask("Which pan?")
    assert [ask.background for ask in model.asked] == [False, True, False]
    about = desk.get("/memories", limit=100)["data"]
    made_by = {one["metadata"]["made_by"] for one in about if one["source"] == "summary"}
    assert made_by == {"scripted", "extractive"}


def test_past_the_messages_that_are_ever_looked_at(desk: Any) -> None:
    """A session longer than any history: the turn is right, too."""
    many = turns.HISTORY
    first = desk.ask("How does it begin?")
    subject = desk.subject()
    with desk.house.set(summary_every_turns=many + 1, summary_above_tokens=1_000_000):
        for n in range(many - 1):
            keep(desk, subject, f"Question {n}?", "Yes.", session_id=first["sessionId"])
        assert [source for source, _ in desk.memories()] == ["qa_turn"]
        desk.ask("Is this the last one?", sessionId=first["sessionId"])
    (told,) = desk.house.noted()
    assert told.startswith("Question: How does it begin?")
    assert told.count("Question: ") == many + 1


def keep(
    desk: Any, subject: Any, question: str, answer: str, *, session_id: str, status: str = "answered"
) -> str:
    """A turn as it is stored where nothing is remembered."""
    id_ = f"qry_{next(NUMBERS):012x}"
    now = now_micros()
    row = QueryRow(
        subject.tenant_id, 0, id_, session_id, subject.user_id, question, answer, "[]", "[]", status, "m", 1,
        5, 5, 0, 0, 0, now,
    )  # fmt: skip
    turn = turns.Turn(row, now - 1, begins=False)
    desk.house.rc.portal.call(turns.store(desk.core, subject, turn, remember=False))
    return id_


NUMBERS = itertools.count(1)


def test_a_long_session_is_summarized_before_its_turn(desk: Any) -> None:
    with desk.house.set(summary_above_tokens=60):
        session = desk.ask("Short?")["sessionId"]
        assert desk.house.noted() == []
        desk.ask("Long " * 60, sessionId=session)
        assert len(desk.house.noted()) == 1
        desk.ask("Short again?", sessionId=session)
        assert len(desk.house.noted()) == 1


def test_without_a_model_the_notes_are_sentences_of_the_answers(desk: Any) -> None:
    desk.house.says(
        {"when": "The notes:", "status": 500, "repeat": True}, {"text": "At 14 bar.", "repeat": True}
    )
    with desk.house.set(summary_every_turns=2):
        session = desk.ask("When does the valve open?")["sessionId"]
        desk.ask("And the pressure of the boiler?", sessionId=session)
    (note,) = [text for source, text in desk.memories() if source == "summary"]
    assert note == "When does the valve open? At 14 bar.\nAnd the pressure of the boiler? At 14 bar."


def test_pruning_keeps_the_most_important_then_the_latest_and_other_peoples_rows(desk: Any) -> None:
    with desk.house.set(prune_limit=3):
        desk.post("/memories", {"content": "Bob's own note.", "importance": -5}, by="bob")
        others = desk.send(
            "POST", "/v1/memories", json={"content": "Ada's note elsewhere.", "importance": -9}
        )
        assert others.status_code == 200
        for n, importance in enumerate((2, 0, 5, 0, 1)):
            desk.post("/memories", {"content": f"Note {n}", "importance": importance})
        assert [text for _, text in desk.memories()] == ["Note 0", "Note 2", "Note 4"]
        desk.ask("What about turns?")  # of importance 0: it goes at once
        assert [text for _, text in desk.memories()] == ["Note 0", "Note 2", "Note 4"]
        desk.post("/memories", {"content": "Note 5", "importance": 1})
        assert [text for _, text in desk.memories()] == [
            "Note 0",
            "Note 2",
            "Note 5",
        ]  # of equals the later stays
    assert [text for _, text in desk.memories(by="bob")] == ["Bob's own note."]
    assert desk.get(f"/v1/memories/{others.json()['id']}")["content"] == "Ada's note elsewhere."


def test_off_it_neither_looks_up_nor_writes_and_the_logs_go_on(desk: Any) -> None:
    """What the log has is remembered when it is on again: all of it, once."""
    note = desk.post("/memories", {"content": "The boiler is in the cellar."})["id"]
    with desk.house.set(memory=False):
        session = desk.ask("Where is the boiler?")["sessionId"]
        found = desk.ask("And the boiler's valve?", sessionId=session)
        assert (found["memories"], found["memorySearchMs"], found["used"]) == ([], None, ["history"])
        assert (
            desk.send("POST", "/memories", json={"content": "no"}).json()["error"]["param"]
            == "upload_ask.memory"
        )
        assert desk.send("POST", "/backfill", json={}, by="admin").status_code == 400
        desk.house.says({"status": 500, "repeat": True})
        desk.ask("And without a model?", sessionId=session)
    assert desk.rows(MEMORIES, desk.tenant) == []
    assert [row[:2] for row in desk.rows(QUESTIONS, desk.tenant)] == [
        ("Where is the boiler?", "answered"), ("And the boiler's valve?", "answered"),
        ("And without a model?", "empty"),
    ]  # fmt: skip
    assert len(desk.get(f"/sessions/{session}/messages")["data"]) == 6
    assert [one["id"] for one in desk.get("/memories")["data"]] == [note]
    for made in (2, 0):
        job = desk.post("/backfill", {}, by="admin")
        ended = desk.house.rc.portal.call(desk.core.jobs.wait(desk.tenant, job["id"]))
        assert (ended.state, ended.result) == ("completed", {"read": made, "memories": made})
        assert [text.split("\n")[0] for text, in desk.rows(MEMORIES, desk.tenant)] == [
            "Where is the boiler?", "And the boiler's valve?",
        ]  # fmt: skip


def test_the_backfill_misses_none_and_nothing_comes_back(desk: Any) -> None:
    """More rows than a step has, for two users, some remembered before, some deleted since; and it keeps its pace."""
    first = {user: desk.ask("Once?", by=user)["sessionId"] for user in ("ada", "bob")}
    gone = desk.ask("Forget this?", sessionId=first["ada"])
    for one in desk.get("/memories")["data"]:
        if one["content"].startswith("Forget"):
            desk.send("DELETE", f"/memories/{one['id']}")
    subjects = {user: desk.subject(user) for user in first}
    lost = ""
    for n in range(70):
        user = ("ada", "bob")[n % 2]
        lost = keep(desk, subjects[user], f"Past {n}?", f"It was {n}.", session_id=first[user])
    answer = desk.send("DELETE", f"/v1/sessions/{first['bob']}/messages/{log.answer_id(lost)}", by="bob")
    assert answer.status_code == 200
    keep(desk, subjects["ada"], "Failed?", "Quote.", session_id=first["ada"], status="fallback")
    began = time.monotonic()
    job = desk.post("/backfill", {"rowsPerSecond": 400}, by="admin")
    ended = desk.house.rc.portal.call(desk.core.jobs.wait(desk.tenant, job["id"]))
    assert time.monotonic() - began >= 70 / 400
    assert (ended.done, ended.total, ended.result) == (70, 70, {"read": 70, "memories": 69})
    texts = [text for (text,) in desk.rows(MEMORIES, desk.tenant)]
    assert sorted(texts) == sorted(
        [*("Once?\nAnswered: Once?",) * 2, *(f"Past {n}?\nIt was {n}." for n in range(69))]
    )
    assert gone["id"] not in str(texts)


def test_what_is_deleted_takes_what_was_made_of_it(desk: Any) -> None:
    with desk.house.set(summary_every_turns=2):
        session = desk.ask("Who is the plumber?")["sessionId"]
        desk.ask("Where does the plumber live?", sessionId=session)
    desk.ask("Which day does the plumber come?")
    assert [source for source, _ in desk.memories()] == ["qa_turn", "qa_turn", "summary", "qa_turn"]
    said = desk.get(f"/sessions/{session}/messages")["data"]
    assert desk.send("DELETE", f"/v1/sessions/{session}/messages/{said[1]['id']}").status_code == 200
    assert [text.split("\n")[0] for _, text in desk.memories()] == [
        "Where does the plumber live?", "Which day does the plumber come?",
    ]  # fmt: skip
    assert desk.send("DELETE", f"/sessions/{session}").status_code == 200
    assert [text.split("\n")[0] for _, text in desk.memories()] == ["Which day does the plumber come?"]
    assert desk.send("GET", f"/sessions/{session}").status_code == 404
    assert session not in [one["id"] for one in desk.get("/sessions")["data"]]
    assert [one["question"] for one in desk.get("/logs", sessionId=session, order="asc")["data"]] == [
        "Who is the plumber?", "Where does the plumber live?",
    ]  # fmt: skip


def test_the_log_is_written_once(desk: Any) -> None:
    """No statement changes a row but the one that erases its texts, and the database refuses every other change."""
    changing = [
        name for name, sql in statements("sqlite").items() if re.match(r"(UPDATE|DELETE FROM) query_log", sql)
    ]
    assert changing == ["erase_queries"]
    asked = desk.ask("Is this secret?")
    (before,) = desk.get("/logs")["data"]
    assert (before["answer"], before["sessionId"], before["erasedAt"]) == (
        asked["answer"],
        asked["sessionId"],
        None,
    )
    write, key = desk.core.store.db.write, [desk.tenant, asked["id"]]
    for change in ("answer = 'other'", "status = 'empty'", "question = '', answer = ''"):
        sql = f"UPDATE query_log SET {change} WHERE tenant_id = ? AND id = ? RETURNING 1"
        with pytest.raises(StorageError):
            write(lambda c, sql=sql: c.select(sql, key), tenant=desk.tenant).result()
    assert desk.get("/logs")["data"] == [before]
    ((seq,),) = desk.rows("SELECT seq FROM query_log WHERE tenant_id = ? AND id = ?", *key)
    assert write(lambda c: log.erase(c, desk.tenant, [seq]), tenant=desk.tenant).result() == 1
    after = desk.get(f"/logs/{asked['id']}")
    texts = {"question": "", "answer": "", "sources": [], "memories": []}
    assert after == {**before, **texts, "erasedAt": after["erasedAt"]}
    assert after["erasedAt"] is not None


def test_an_answer_that_a_crash_cut_off_from_its_memory_is_remembered_once(home: Any) -> None:
    """The turn is stored, and the process ends before its job; the next one does it. Done again it changes nothing, and
    brings nothing back."""
    with home.open(jobs={"workers": 0}) as rc:
        document = rc.upload_ask.documents.add_text("valve", "The relief valve opens at fourteen bar.")
        early = rc.upload_ask.ask("Is it too early?")
        assert (document.status, early.status, early.degraded) == ("in_progress", "empty", ["documents"])
    with home.open() as rc:
        rc.upload_ask.documents.wait(document.id)
    with home.open(jobs={"workers": 0}) as rc:
        asked = rc.upload_ask.ask("When does the relief valve open?")
        assert (asked.status, asked.answered_by) == ("quoted", "heuristic")
        assert rc.upload_ask.memories().data == []
        assert len(rc.upload_ask.logs().data) == 2
    for again in range(3):
        with home.open() as rc:
            core = rc.inner.core
            if again:
                rc.portal.call(core.jobs.enqueue("default", turns.REMEMBER_JOB, {"query": asked.id}))
            for job in rc.portal.call(jobs_of(core)):
                assert rc.portal.call(core.jobs.wait("default", job)).state == "completed"
            held = rc.upload_ask.memories().data
            assert len(held) == (0 if again == 2 else 1)
            assert len(rc.upload_ask.messages(asked.session_id).data) == 2
            for memory in held:
                assert memory.content.startswith("When does the relief valve open?\nThe relief valve opens")
                if again:
                    rc.upload_ask.delete_memory(memory.id)


async def jobs_of(core: Any) -> list[str]:
    return [job.id for job in await core.jobs.list("default") if job.kind == "upload_ask.remember"]


def test_vectors_of_another_length_are_refused_at_the_start(home: Any) -> None:
    with pytest.raises(InvalidInput, match=r"memoryVectorDim: is 1536, and hash-64 makes"):
        home.open(uploadask={"memory": {"memoryVectorDim": 1536}})
