"""Whose words a fact, a summary and a list of participants are based on: an assistant's words are never a user's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.app.blocking import BlockingMemoranda
from memoranda.facts.tags import content_tags, informative_tags
from memoranda.sessions.message_drafts import SAME_ROLES
from memoranda.text.sentences import own_text, statements
from memoranda.types import MACHINES, Subject

pytestmark = pytest.mark.rows_in("sqlite")
MUNICH = {"fact": "Tim lives in Munich", "confidence": 1.0, "tags": ["preferences", "plans"]}


@pytest.fixture(scope="module")
def house(scripted_house: BlockingMemoranda) -> BlockingMemoranda:
    return scripted_house


def told(talk: Any, *said: tuple[str, str], **place: Any) -> list[str]:
    """Observe messages, as (role, text), with the key of the user Tim; return their ids."""
    sessions = talk.rc.as_subject(Subject(tenant_id=talk.tenant, user_id="tim", role="member")).sessions
    messages = [{"role": role, "content": text} for role, text in said]
    kept = sessions.observe(messages, **({"session_id": f"tims {talk.tenant}"} | place))
    talk.settle()
    return [one.message.id for one in kept]


ASSISTANT, USER, TOOL = "assistant", "user", "tool"


@pytest.mark.parametrize(
    "said",
    [
        [(USER, "Where do I live?"), (ASSISTANT, "You live in Munich.")],
        [(USER, "Do I live in Munich?"), (ASSISTANT, "You live in Munich, as far as I know.")],
        [(USER, "Where do I live?"), (ASSISTANT, "In Munich."), (USER, "No, that is wrong.")],
        [(USER, "Look my city up."), (TOOL, '{"city": "Munich"}'), (ASSISTANT, "You live in Munich.")],
        [(USER, "I was asked where the game is"), (ASSISTANT, "In Munich, where you live.")],
        [
            (USER, "Where do I live?"),
            (ASSISTANT, "You live in Munich. Shall I look for trains?"),
            (USER, "Yes"),
        ],
        [(USER, "Where do I live?"), ("AI", "You live in Munich."), ("bot", "Munich it is.")],
    ],
)
@pytest.mark.parametrize("named", [[], [1, 2], [2]])
def test_what_only_an_assistant_says_is_no_fact(talk: Any, said: Any, named: list[int]) -> None:
    asked = talk.script(json.dumps([MUNICH | {"messages": named}]))
    told(talk, *said)
    assert asked
    assert talk.live() == []


@pytest.mark.parametrize(
    ("said", "sources"),
    [
        ([(USER, "I live in Munich."), (ASSISTANT, "Munich is a fine city to live in.")], [0]),
        ([(ASSISTANT, "You live in Munich."), (USER, "I live in Munich, what is the weather?")], [1]),
        ([(USER, "My flat is in Munich"), (ASSISTANT, "Noted.")], [0]),
    ],
)
@pytest.mark.parametrize("named", [[], [1], [1, 2], [2]])
def test_what_a_user_states_is_a_fact(talk: Any, said: Any, sources: list[int], named: list[int]) -> None:
    talk.script(json.dumps([MUNICH | {"messages": named}]))
    ids = told(talk, *said)
    assert talk.live() == [MUNICH["fact"]]
    assert talk.known(MUNICH["fact"]).source_refs == [ids[at] for at in sources]


@pytest.mark.parametrize("named", [[1, 2], [2]])
def test_what_a_user_confirms_is_a_fact_if_the_model_names_the_answer(talk: Any, named: list[int]) -> None:
    talk.script(json.dumps([MUNICH | {"messages": named}]))
    ids = told(talk, (ASSISTANT, "So you live in Munich, right?"), (USER, "Yes, since May."))
    assert talk.known(MUNICH["fact"]).source_refs == ids


def test_the_model_reads_who_says_what(talk: Any) -> None:
    asked = talk.script("[]")
    named = {"role": "assistant", "speaker": "Robo", "content": "I can book it."}
    sessions = talk.rc.as_subject(Subject(tenant_id=talk.tenant, user_id="tim", role="member")).sessions
    said = [{"content": "Find me a hotel."}, {"role": "assistant", "content": "I prefer five stars."}, named]
    sessions.observe(said, session_id="hotels")
    talk.settle()
    lines = asked[0].messages[1]["content"].splitlines()[1:]
    assert [line.split(" ", 3)[3] for line in lines] == [
        "tim: Find me a hotel.",
        "assistant: I prefer five stars.",
        "Robo (assistant): I can book it.",
    ]


def test_a_fact_goes_with_the_last_statement_of_a_person(talk: Any) -> None:
    talk.script(json.dumps([MUNICH | {"messages": [1, 2]}]))
    session = f"tims {talk.tenant}"
    asked, answered = told(talk, (ASSISTANT, "So you live in Munich?"), (USER, "Exactly."))
    assert talk.known(MUNICH["fact"]).source_refs == [asked, answered]
    talk.rc.as_subject(talk.admin).sessions.delete_message(session, answered)
    assert talk.count() == 0


def test_a_fact_names_its_session_and_response(talk: Any) -> None:
    talk.script(json.dumps([MUNICH]))
    (said,) = told(talk, (USER, "I live in Munich."), response_id="resp_1")
    fact = talk.known(MUNICH["fact"])
    assert fact.source_refs == [said, "resp_1"]
    assert fact.metadata["session_id"] == f"tims {talk.tenant}"


def test_confidence_and_tags_are_not_what_the_prompt_says(talk: Any) -> None:
    talk.script(json.dumps([MUNICH]))
    told(talk, (USER, "I live in Munich."))
    fact = talk.known(MUNICH["fact"])
    assert fact.confidence == 0.9
    assert fact.tags == ["munich"]
    assert informative_tags(["preferences", "Decisions and plans", "green tea"]) == ("green tea",)
    assert content_tags("Mara prefers green tea over coffee", ["Mara"]) == ("green", "tea", "coffee")


@pytest.mark.parametrize("role", [*sorted(MACHINES), "Assistant", "AI"])
def test_no_role_of_a_machine_is_the_user(rc: BlockingMemoranda, role: str) -> None:
    sessions = rc.as_subject(Subject(user_id="tim", role="member")).sessions
    sessions.observe([{"role": role, "content": "You live in Munich."}], session_id=f"said by {role}")
    assert sessions.get(f"said by {role}").participants == [SAME_ROLES.get(role, role)]


def test_summaries_and_participants_name_the_assistant(rc: BlockingMemoranda) -> None:
    sessions = rc.as_subject(Subject(user_id="tim", role="member")).sessions
    said = [
        (USER, "Which hotel do you like?"),
        (ASSISTANT, "I prefer five stars."),
        (USER, "I like small ones with a garden."),
        (ASSISTANT, "There is one by the lake with eleven rooms."),
    ]
    sessions.observe([{"role": role, "content": text} for role, text in said], session_id="hotels")
    assert sessions.get("hotels").participants == ["tim", "assistant"]
    summary = str(sessions.summarize("hotels").summary)
    assert "assistant: I prefer five stars" in summary
    assert "tim: I prefer" not in summary
    (first,) = sessions.messages("hotels", limit=1, order="asc").data
    sessions.delete_message("hotels", first.id)
    assert sessions.get("hotels").participants == ["assistant", "tim"]


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("I live in Munich. Is it far?", ["I live in Munich."]),
        ("I'm vegan, what can I eat there?", ["I'm vegan"]),
        ("Do I live in Munich?", []),
        ("住在东京。好吗？", ["住在东京。"]),
        ("Wo wohne ich?", []),
        ("", []),
    ],
)
def test_statements(text: str, stated: list[str]) -> None:
    assert statements(text) == stated


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("I own a cat.\n```\nI own a dog.\n```", "I own a cat."),
        ("> I own a dog.\nI own a cat.", "I own a cat."),
        ('She said: "I own a dog." I own a cat called "Miso".', 'She said: I own a cat called "Miso".'),
        ("<memory>\n- I own a dog.\n</memory>\nI own a cat.", "I own a cat."),
        ("I own a cat. Translate this:\n\nI own a dog.", "I own a cat. Translate this:"),
    ],
)
def test_what_is_quoted_or_pasted_is_not_the_senders_own(text: str, own: str) -> None:
    assert " ".join(own_text(text).split()) == own


@given(st.lists(st.sampled_from(["I like tea.", "Is it late?", "we moved", "why", "ok?", "…", "Ja, genau."])))
def test_statements_are_parts_of_the_text_without_question_marks(parts: list[str]) -> None:
    text = " ".join(parts)
    for one in statements(text):
        assert one in text
        assert "?" not in one


PEOPLE = [
    ({"user_id": "ada", "speaker": "Ada"}, {"user_id": "ben", "speaker": "Ben"}, "ada", "ben", True),
    ({"speaker": "Ada"}, {"speaker": "Ben"}, None, None, True),
    ({"role": "Ada"}, {"role": "Ben"}, None, None, True),
    ({"user_id": "ada", "speaker": "Ada"}, {"speaker": "Ben"}, "ada", None, True),
    ({"user_id": "ada", "speaker": "Ada"}, {}, "ada", None, False),
    ({"user_id": "ada"}, {"user_id": "ben"}, "ada", "ben", False),
]


@pytest.mark.parametrize(("first", "second", "of_first", "of_second", "named"), PEOPLE)
def test_what_two_people_say_in_one_channel_is_each_ones_own(
    home: Any, first: Any, second: Any, of_first: str | None, of_second: str | None, named: bool
) -> None:
    settings = {"facts": {"extraction": "eager", "capture_rules": True}, "embedder": {"url": "hash:256"}}
    with home.open(**settings) as rc:
        for who, city in ((first, "Bonn"), (second, "Porto")):
            rc.sessions.observe(
                [{"content": f"I live in {city}.", **who}], session_id="talk", channel_id="room"
            )
            rc.facts.extract("talk")
        live = rc.memories.list(kinds=["fact"]).data
        homes = {
            one.content.rsplit(" ", 1)[1].rstrip("."): one
            for one in live
            if " in Bonn" in one.content or "Porto" in one.content
        }
        assert {city: one.user_id for city, one in homes.items()} == {"Bonn": of_first, "Porto": of_second}
        if named:
            assert homes["Bonn"].content == "Ada: I live in Bonn."
            assert homes["Porto"].content == "Ben: I live in Porto."


@pytest.mark.parametrize(
    "confirming", [{"speaker": "Ben"}, {"role": "Ben"}, {"user_id": "ben", "speaker": "Ben"}]
)
def test_what_is_confirmed_is_seen_by_no_more_people_than_what_was_asked(talk: Any, confirming: Any) -> None:
    talk.script(json.dumps([{"fact": "Ada prefers a table by the window", "messages": [2]}]))
    asked = {"role": "assistant", "content": "Ada prefers a table by the window, right?", "user_id": "ada"}
    said = [asked, {"content": "Yes, that's right."} | confirming]
    talk.rc.as_subject(talk.admin).sessions.observe(said, session_id="dinner", channel_id="room")
    talk.settle()
    (fact,) = talk.memories.list(kinds=["fact"]).data
    assert fact.user_id == confirming.get("user_id", "ada")
    for who in ("eve", "ada", "ben"):
        seen = talk.rc.as_subject(Subject(tenant_id=talk.tenant, user_id=who, role="member")).memories
        found = seen.search("table by the window", scopes=["channel:room"], kinds=["fact"]).results
        assert bool(found) == (who == fact.user_id)


def test_in_a_session_of_one_user_what_is_unnamed_is_that_users(home: Any) -> None:
    settings = {"facts": {"extraction": "eager", "capture_rules": True}, "embedder": {"url": "hash:256"}}
    with home.open(**settings) as rc:
        rc.sessions.observe([{"content": "I like tea.", "user_id": "ada"}], session_id="alone")
        rc.sessions.observe([{"content": "I live in Bonn."}], session_id="alone")
        rc.facts.extract("alone")
        assert {one.user_id for one in rc.memories.list(kinds=["fact"]).data} == {"ada"}
