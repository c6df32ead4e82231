"""Summaries that were made elsewhere, as good as those that are made here."""

from __future__ import annotations

from typing import Any

import pytest

from memoranda.errors import Conflict, InvalidInput, NotFound
from memoranda.sessions.values import NewSummary
from memoranda.types import Subject


@pytest.fixture
def quiet(chat: Any) -> Any:
    """A tenant in which sessions are not summarized."""
    chat.rc.as_subject(Subject(tenant_id=chat.tenant)).switches.set(session_summaries=False)
    return chat


def closed(chat: Any) -> str:
    id_ = chat.talk()
    return str(chat.sessions.close(id_).id)


def test_it_is_found_replaced_and_forgotten(quiet: Any, talk: Any) -> None:
    id_ = closed(quiet)
    done = quiet.sessions.save_summary(
        id_, "They buy a marquee.", topics=["marquee", "marquee"], decisions=["Buy it in Jena."], model="mine"
    )
    assert (done.status, done.summary, done.summary_model) == ("summarized", "They buy a marquee.", "mine")
    assert (done.topics, done.decisions, done.failure) == (["marquee"], ["Buy it in Jena."], None)
    (memory,) = quiet.kept("session_summary")
    assert memory.id == done.summary_id
    assert memory.content == "They buy a marquee.\nDecided: Buy it in Jena."
    assert (memory.tags, memory.session_id, memory.channel_id) == (["marquee"], id_, "c")
    assert quiet.found("marquee")[0] == memory.content

    again = quiet.sessions.save_summary(id_, NewSummary(summary="They rent a pavilion."))
    assert (again.summary_model, again.decisions) == ("external", [])
    assert [one.content for one in quiet.kept("session_summary")] == ["They rent a pavilion."]
    assert quiet.found("marquee") == []

    quiet.memories.delete(again.summary_id)
    assert (quiet.sessions.get(id_).status, quiet.sessions.get(id_).summary) == ("closed", None)
    quiet.sessions.save_summary(id_, "They rent a pavilion.", message_count=len(talk))
    quiet.memories.forget(scopes=[f"session:{id_}"])
    assert not quiet.kept("session_summary")
    with pytest.raises(NotFound):
        quiet.sessions.get(id_)


def test_it_goes_with_a_message_that_goes(quiet: Any) -> None:
    id_ = closed(quiet)
    quiet.sessions.save_summary(id_, "They rent a pavilion.")
    quiet.sessions.delete_message(id_, quiet.sessions.messages(id_).data[0].id)
    assert (quiet.sessions.get(id_).status, quiet.sessions.get(id_).summary) == ("closed", None)
    assert not quiet.kept("session_summary")


def test_a_failure_is_kept_until_there_is_a_summary(quiet: Any) -> None:
    id_ = closed(quiet)
    failed = quiet.sessions.fail_summary(id_, "the model is away")
    assert (failed.status, failed.failure, failed.attempts) == ("failed", "the model is away", 1)
    assert quiet.rows("SELECT pending FROM sessions WHERE id = ?", id_) == [(0,)]
    assert quiet.sessions.fail_summary(id_, "x" * 900).failure == "x" * 500
    done = quiet.sessions.save_summary(id_, "They rent a pavilion.")
    assert (done.status, done.failure, done.attempts) == ("summarized", None, 0)


def test_where_sessions_are_summarized_a_failure_is_tried_again(chat: Any) -> None:
    id_ = closed(chat)
    chat.summarized(id_)
    assert chat.sessions.fail_summary(id_, "no").status == "failed"
    (row,) = chat.rows("SELECT pending, next_try_at > updated_at FROM sessions WHERE id = ?", id_)
    assert [bool(value) for value in row] == [True, True]


def test_an_open_session_stays_open(quiet: Any) -> None:
    id_ = quiet.talk()
    assert quiet.sessions.save_summary(id_, "So far they talk.").status == "open"
    quiet.say("And more.", at=8)
    assert quiet.sessions.get(id_).summary == "So far they talk."


def test_what_is_wrong_is_named(quiet: Any, chats: Any, talk: Any) -> None:
    id_ = closed(quiet)
    with pytest.raises(Conflict, match=f"has {len(talk)} messages, not 3"):
        quiet.sessions.save_summary(id_, "They talk.", message_count=3)
    for fields in ({"topics": "garden"}, {"topics": [""]}, {"topics": [" "]}, {"decisions": ["x"] * 101}):
        with pytest.raises(InvalidInput, match=r"topics|decisions"):
            quiet.sessions.save_summary(id_, "They talk.", **fields)
    with pytest.raises(InvalidInput, match="summary: must hold some text"):
        quiet.sessions.save_summary(id_, " ")
    with pytest.raises(InvalidInput, match="reason"):
        quiet.sessions.fail_summary(id_, "")
    other = chats().sessions
    with pytest.raises(NotFound):
        other.save_summary(id_, "They talk.")
    with pytest.raises(NotFound):
        other.fail_summary(id_, "no")
