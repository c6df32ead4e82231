"""What one user said in a place of several users is forgotten; what the others said stays, with its summary."""

from __future__ import annotations

from typing import Any

import pytest

from memoranda.app.blocking import BlockingMemoranda
from memoranda.sessions import reactions
from memoranda.sessions.boundaries import SUMMARIZE_JOB
from memoranda.sessions.values import Session
from memoranda.types import Subject
from support.waiting import until

from .test_preview import counted

SERVICE = Subject(role="service")
TALK = (
    ("cy", "The greenhouse in Potsdam costs four hundred."),
    ("bo", "We agreed to take the greenhouse next week."),
    ("cy", "Who calls the seller on Monday?"),
    ("bo", "I will call the seller on Monday."),
)


def summarized(rc: BlockingMemoranda, id: str) -> Session:
    found: Session = until(lambda: rc.sessions.get(id), "a summary", accept=lambda found: found.summary_id)
    return found


def test_items_of_a_user_leave_a_conversation_of_nobody(home: Any) -> None:
    with home.open() as rc:
        talks = rc.as_subject(SERVICE).conversations
        talk = talks.create()
        for user, text in (
            ("ana", "My code is 4711."),
            ("bo", "I like football."),
            ("ana", "Keep the code."),
        ):
            rc.as_subject(SERVICE).responses.create(text, memory={"user_id": user}, conversation=talk.id)
        by_hand = talks.add_items(talk.id, [{"type": "message", "role": "user", "content": "The code."}])
        told = "UPDATE conversations SET summary = ? WHERE id = ? RETURNING 1"
        rc.inner.core.store.db.write(lambda c: c.select(told, ["{}", talk.id])).result()
        _, _, asked, answered, *_ = talks.items(talk.id, order="asc").data

        preview = rc.memories.preview_forget(scopes=["user:ana"])
        assert preview.counts["items"] == 4
        assert counted(rc.memories.forget(scopes=["user:ana"])) == preview.counts
        assert talks.items(talk.id, order="asc").data == [asked, answered, *by_hand.data]
        assert talks.get(talk.id).summary is None


def test_items_of_a_response_are_counted_once(home: Any) -> None:
    with home.open() as rc:
        ana = Subject(user_id="ana", role="member")
        talk = rc.as_subject(ana).conversations.create()
        rc.as_subject(ana).responses.create("My code is 4711.", conversation=talk.id)
        preview = rc.memories.preview_forget(scopes=["user:ana"])
        assert (preview.counts["conversations"], preview.counts["items"]) == (1, 2)
        by_text = rc.memories.preview_forget(text="4711")
        assert by_text.counts["items"] == 2
        assert counted(rc.memories.forget(text="4711")) == by_text.counts


def test_two_users_are_forgotten_with_what_nobody_said_between_them(home: Any) -> None:
    with home.open() as rc:
        said = [
            ("ana", "I bought it."),
            (None, "Noted: 4711."),
            ("bo", "I drive."),
            (None, "On Friday, then."),
        ]
        messages = [{"content": text, "user_id": user} for user, text in said]
        rc.observe(messages, session_id="s")
        rc.observe([*messages, {"content": "Me too.", "user_id": "cy"}], session_id="with cy")
        both = {"scopes": ["user:ana", "user:bo"]}
        preview = rc.memories.preview_forget(**both)
        assert preview.counts["messages"] == 6
        assert counted(rc.memories.forget(**both)) == preview.counts
        left = [message.user_id for message in rc.sessions.messages("with cy").data]
        assert left == [None, None, "cy"]
        assert [session.id for session in rc.sessions.list().data] == ["with cy"]


@pytest.mark.parametrize("text", ["bo", "garden"])
def test_a_summary_with_a_forgotten_id_is_made_again(
    home: Any, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """The ids of users and channels stay, in the session and in the new summary; no later pass takes those."""
    monkeypatch.setattr(reactions, "AFTERWARDS", 3_600_000_000)
    with home.open() as rc:
        said = [{"content": text, "user_id": user} for user, text in TALK]
        rc.observe(said, session_id="s", channel_id="garden")
        rc.sessions.close("s")
        before = summarized(rc, "s")
        preview = rc.memories.preview_forget(text=text)
        assert preview.counts["memories"] == 1
        assert counted(rc.memories.forget(text=text)) == preview.counts
        between = rc.sessions.get("s")
        assert (between.status, between.summary_id, between.participants) == ("closed", None, ["cy", "bo"])
        assert rc.memories.preview_forget(text=text).counts == {}

        later = "UPDATE sessions SET next_try_at = 0 WHERE pending = 1 RETURNING id"
        assert rc.inner.core.store.db.write(lambda c: c.select(later)).result() == [("s",)]
        rc.portal.call(rc.inner.core.jobs.enqueue("default", SUMMARIZE_JOB, {}))
        again = summarized(rc, "s")
        assert again.summary_id != before.summary_id
        assert (again.summary, again.participants) == (before.summary, before.participants)


def test_a_participant_without_a_message_is_forgotten(home: Any) -> None:
    with home.open() as rc:
        rc.observe([{"content": text, "user_id": user} for user, text in TALK], session_id="s")
        named = "UPDATE sessions SET participants = ?, metadata = ? RETURNING id"
        values = ['["cy","bo","Zed"]', '{"about":"seeds"}']
        rc.inner.core.store.db.write(lambda c: c.select(named, values)).result()
        assert rc.memories.preview_forget(text="zed").counts == {"summaries": 1}
        assert counted(rc.memories.forget(text="zed")) == {"summaries": 1}
        session = rc.sessions.get("s")
        assert (session.participants, session.metadata) == (["cy", "bo"], {"about": "seeds"})


def test_a_summary_without_a_forgotten_agent_stays(home: Any) -> None:
    with home.open() as rc:
        rc.observe([{"content": "Hello.", "role": "assistant"}], session_id="s", agent_id="helper")
        rc.observe([{"content": text, "user_id": user} for user, text in TALK], session_id="s")
        rc.sessions.close("s")
        before = summarized(rc, "s")
        assert rc.memories.forget(scopes=["agent:helper"]).counts["messages"] == 1
        again = summarized(rc, "s")
        assert again.summary_id != before.summary_id
        assert rc.memories.forget(scopes=["agent:helper"]).counts == {}
        assert rc.sessions.get("s") == again
