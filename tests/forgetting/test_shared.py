"""What one user said in a place of several users is forgotten; what the others said stays, with its summary."""

from __future__ import annotations

from typing import Any

from memoranda.types import Subject

from .test_preview import counted

SERVICE = Subject(role="service")


def test_items_of_a_user_leave_a_conversation_of_nobody(home: Any) -> None:
    with home.open() as rc:
        talks = rc.conversing_as(SERVICE)
        talk = talks.create()
        for user, text in (
            ("ana", "My code is 4711."),
            ("bo", "I like football."),
            ("ana", "Keep the code."),
        ):
            rc.responding_as(SERVICE).create(text, memory={"user_id": user}, conversation=talk.id)
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
        talk = rc.conversing_as(ana).create()
        rc.responding_as(ana).create("My code is 4711.", conversation=talk.id)
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
