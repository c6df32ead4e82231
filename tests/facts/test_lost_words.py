"""A fact that several messages said, after some of them went: no word is left that only those said."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.app.blocking import BlockingMemoranda
from memoranda.facts import extraction, provenance
from memoranda.facts.grounding import Source, lost_words, mostly_in, positions, words_of
from support.waiting import until

from .conftest import on

pytestmark = pytest.mark.rows_in("sqlite")
FRIEND = {"fact": "Mara has known the cellist Ida since childhood", "messages": [1]}
SESSION = "cello"


@pytest.fixture(scope="module")
def house(scripted_house: BlockingMemoranda) -> BlockingMemoranda:
    return scripted_house


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages that are left are read again without a delay."""
    monkeypatch.setattr(provenance, "READ_AGAIN_AFTER", 0.0)


def lost(text: str, gone: str, *left: str) -> set[str]:
    return set(lost_words(text, [words_of(Source(gone))], [words_of(Source(other)) for other in left]))


@pytest.mark.parametrize(
    ("fact", "gone", "left", "words"),
    [
        (
            "Tim lives in Berlin, Kantstrasse 5",
            "I live in Berlin, Kantstraße 5",
            "I live in Berlin",
            "kantstrass 5",
        ),
        ("Tim lives in Berlin", "I live in Berlin, Kantstrasse 5", "BERLIN is home", ""),
        ("Tim resides in the capital", "I live in Berlin", "My home is Berlin", ""),
        ("Tim owns 3 dogs", "I have three dogs", "I have dogs", "3"),
        ("Tim owns three dogs", "I have 3 dogs", "I have dogs", "3"),
        (
            "Tim wohnt seit Mai in einer WG",
            "Ich wohne seit Mai in einer WG.",
            "Ich wohne in der WG ab Mai.",
            "",
        ),
        ("Tim's key is " + "k" * 80, "the key: " + "K" * 80, "my key is lost", "k" * 80),
        ("Tim likes walking", "I like walks", "I walked", ""),
        ("东京 is home", "我住在东京", "home", "东 京"),
    ],
)
def test_words_are_lost_that_only_the_deleted_message_said(
    fact: str, gone: str, left: str, words: str
) -> None:
    assert lost(fact, gone, left) == set(words.split())
    assert lost(fact, gone, left, gone) == set()


def test_names_count_as_words_and_the_numbers_of_ids_do_not() -> None:
    gone, left = words_of(Source("We plan a trip", "Mara")), words_of(Source("I plan a trip", "user-5"))
    assert lost_words("Mara plans a trip", [gone], [left]) == {"mara"}
    assert lost_words("Mara plans 5 trips", [words_of(Source("5 trips", "Mara"))], [left]) == {"mara", "5"}
    assert lost_words("Mara plans a tour", None, [left]) == {"mara", "tour"}


def test_a_message_has_words_of_a_fact_at_positions() -> None:
    text = "I live in Berlin with three cats. BERLIN is wet, I work at Acme."
    spans = positions(words_of(Source("Tim lives in Berlin, Kantstrasse 5, with 3 cats")), text)
    assert [text[slice(*span)] for span in spans] == ["Berlin", "three", "cats"]
    assert positions(words_of(Source("Tim owns a boat")), text) == []
    assert mostly_in("Tim lives in Berlin", text, spans)
    assert mostly_in("Tim walks three cats at work", text, spans)
    assert not mostly_in("Tim works at Acme", text, spans)
    assert not mostly_in("Tim works at Acme in Berlin", text, spans)


WORDS = st.lists(
    st.sampled_from(["amber", "birch", "cedar", "12", "17", "Ida", "walked", "walking"]), max_size=6
)


@given(fact=WORDS, gone=st.lists(WORDS, min_size=1, max_size=3), left=st.lists(WORDS, max_size=3))
def test_nothing_is_lost_that_is_said_or_that_nobody_said(
    fact: list[str], gone: list[list[str]], left: list[list[str]]
) -> None:
    went, stays = ([words_of(Source(" ".join(text))) for text in texts] for texts in (gone, left))
    words = lost_words(" ".join(fact), went, stays)
    assert words == (words_of(Source(" ".join(fact))) & frozenset().union(*went)) - frozenset().union(*stays)
    assert words <= lost_words(" ".join(fact), None, stays)


# --- facts of a model ------------------------------------------------------------------------------


def said_by_several(talk: Any, *texts: str, **fact: Any) -> list[str]:
    """The ids of messages, each of which a model gave the same fact for."""
    talk.script(*[json.dumps([FRIEND | fact])] * len(texts))
    return [
        talk.say(text, f"2024-01-0{n}", session_id=SESSION + talk.tenant) for n, text in enumerate(texts, 1)
    ]


def delete(talk: Any, id_: str) -> None:
    talk.rc.as_subject(talk.admin).sessions.delete_message(SESSION + talk.tenant, id_)


def test_a_paraphrase_stays_with_the_messages_that_are_left(talk: Any) -> None:
    first, second, third = said_by_several(
        talk,
        "Ida played the cello in my childhood.",
        "Ida and her cello, what a childhood!",
        "Ida the cellist, again.",
    )
    fact = talk.known(FRIEND["fact"])
    assert fact.source_refs == [first, second, third]
    asked = talk.script()
    delete(talk, first)
    talk.settle()
    assert talk.known(FRIEND["fact"]).source_refs == [second, third]
    assert asked == []
    talk.script("[]")
    delete(talk, third)  # no other message says "cellist"
    talk.settle()
    assert talk.count() == 0


def test_a_fact_with_words_of_a_deleted_message_is_read_again(talk: Any) -> None:
    first, second = said_by_several(
        talk, "Ida is from Graz, the cellist.", "My friend the cellist Ida!", fact="Ida is a cellist of Graz"
    )
    asked = talk.script(json.dumps([{"fact": "Mara has a friend, the cellist Ida", "messages": [1]}]))
    delete(talk, first)
    sql = "SELECT id FROM memories WHERE tenant_id = ? AND content = ?"
    assert talk.rows(sql, talk.tenant, "Ida is a cellist of Graz") == []  # the new one may be there already
    talk.settle()
    assert [(row, talk.known(row).source_refs) for row in talk.live()] == [
        ("Mara has a friend, the cellist Ida", [second])
    ]
    assert "Graz" not in str([question.messages for question in asked])


def test_only_what_was_lost_is_taken_again(talk: Any) -> None:
    """What a person deleted or took back of the same message does not return."""
    boat, bees = {"fact": "Mara owns a boat"}, {"fact": "Mara is allergic to bees"}
    rose = {"fact": "Mara owns a boat called Rose"}
    talk.script(json.dumps([rose]), json.dumps([rose | {"messages": [1]}, bees]))
    place = {"session_id": SESSION + talk.tenant}
    first = talk.say("I own a boat called Rose.", "2024-01-01", **place)
    second = talk.say("I own a boat. I am allergic to bees.", "2024-01-02", **place)
    assert talk.known(rose["fact"]).source_refs == [first, second]
    talk.memories.delete(talk.known(bees["fact"]).id)
    talk.script(json.dumps([boat, bees]))
    delete(talk, first)
    talk.settle()
    assert talk.live() == [boat["fact"]]


@pytest.mark.parametrize("how", ["deleted", "archived"])
def test_nothing_else_of_the_same_sentence_is_taken_again(talk: Any, how: str) -> None:
    boat, bees = {"fact": "Mara owns a boat"}, {"fact": "Mara is allergic to bees"}
    rose = {"fact": "Mara owns a boat called Rose"}
    talk.script(json.dumps([rose]), json.dumps([rose | {"messages": [1]}, bees]))
    place = {"session_id": SESSION + talk.tenant}
    first = talk.say("I own a boat called Rose.", "2024-01-01", **place)
    talk.say("I own a boat and am allergic to bees.", "2024-01-02", **place)
    other = talk.known(bees["fact"]).id
    if how == "deleted":
        talk.memories.delete(other)
    else:
        talk.memories.update(other, archived=True)
    talk.script(json.dumps([boat, bees]))
    delete(talk, first)
    talk.settle()
    assert talk.live() == [boat["fact"]]


@pytest.mark.parametrize(("by_hand", "again"), [(True, []), (False, ["Ida is a cellist"])])
def test_what_a_person_ended_is_not_read_again(talk: Any, by_hand: bool, again: list[str]) -> None:
    """An end that a person stated is the same when the other messages are read again."""
    end = "2024-03-01"
    stated: dict[str, Any] = {} if by_hand else {"valid_until": end}
    texts = ("Ida is from Graz, the cellist.", "My friend the cellist Ida!")
    first, _ = said_by_several(talk, *texts, fact="Ida is a cellist of Graz", **stated)
    if by_hand:
        talk.memories.update(talk.known("Ida is a cellist of Graz").id, invalid_at=on(end))
    talk.script(json.dumps([{"fact": "Ida is a cellist", "messages": [1]} | stated]))
    delete(talk, first)
    talk.settle()
    assert talk.live(as_of=on("2024-02-01")) == again
    assert talk.count() == len(again)


def test_a_message_is_not_read_again_for_what_a_person_wrote_instead(talk: Any) -> None:
    first, _ = said_by_several(
        talk, "Ida is from Graz, the cellist.", "My friend the cellist Ida!", fact="Ida is a cellist of Graz"
    )
    talk.memories.update(talk.known("Ida is a cellist of Graz").id, content="Mara has a violin of Graz")
    asked = talk.script(json.dumps([{"fact": "Ida is a cellist", "messages": [1]}]))
    delete(talk, first)
    talk.settle()
    assert (talk.count(), asked) == (0, [])


def test_all_messages_that_are_left_are_read_again(talk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction, "AT_ONCE", 2)
    texts = ("Ida the cellist is from Graz.", *(f"Ida is a cellist{'!' * n}" for n in range(5)))
    first, *left = said_by_several(talk, *texts, fact="Ida is a cellist of Graz")
    new = json.dumps([{"fact": "Ida is a cellist", "messages": [1, 2]}])
    asked = talk.script(new, new, new)
    delete(talk, first)
    talk.settle()
    assert sorted(talk.known("Ida is a cellist").source_refs) == sorted(left)
    assert (talk.count(), len(asked)) == (1, 3)


def test_what_was_read_again_is_not_read_twice_while_the_model_is_away(
    talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction, "AT_ONCE", 2)
    monkeypatch.setattr(extraction, "FIRST_WAIT", 0.0)
    texts = ("Ida the cellist is from Graz.", *(f"Ida is a cellist{'!' * n}" for n in range(4)))
    first, *left = said_by_several(talk, *texts, fact="Ida is a cellist of Graz")
    new = json.dumps([{"fact": "Ida is a cellist", "messages": [1, 2]}])
    asked = talk.script(new, {"status": 503}, {"status": 503}, new)
    delete(talk, first)
    talk.settle()
    assert sorted(talk.known("Ida is a cellist").source_refs) == sorted(left)
    assert len(asked) == 4


def test_tags_of_a_deleted_message_go_alone(talk: Any) -> None:
    texts = ("Ida the cellist from Graz, my childhood!", "Ida the cellist, since childhood")
    first, second = said_by_several(talk, *texts, tags=["graz", "cello", "friends"])
    delete(talk, first)
    fact = talk.known(FRIEND["fact"])
    assert (fact.source_refs, fact.tags) == ([second], ["cello", "friends"])


def test_a_changed_message_takes_its_words_along(talk: Any) -> None:
    first, _ = said_by_several(
        talk, "Ida is from Graz, the cellist.", "My friend the cellist Ida!", fact="Ida is a cellist of Graz"
    )
    new = {"fact": "Ida is a cellist", "messages": [1]}
    asked = talk.script(*[json.dumps([new])] * 2)
    talk.rc.as_subject(talk.admin).sessions.update_message(SESSION + talk.tenant, first, "Ida is a cellist.")
    talk.settle()
    assert talk.live() == [new["fact"]]
    assert len(talk.known(new["fact"]).source_refs) == 2
    assert len(asked) == 2


@pytest.mark.parametrize(
    "output", [{"fact": "Ida is a cellist of Graz"}, {"fact": "Ida is a cellist", "tags": ["graz", "cello"]}]
)
def test_what_goes_while_the_model_answers_is_in_no_fact(talk: Any, output: dict[str, Any]) -> None:
    """The model read two messages, of which one is deleted before its answer is written: the other is read again."""
    place = SESSION + talk.tenant
    both = json.dumps([output | {"messages": [1, 2]}])
    asked = talk.script(
        {"text": both, "pause_at": 0}, json.dumps([{"fact": "Ida is a cellist", "messages": [1]}])
    )
    texts = ("Ida is from Graz, the cellist.", "My friend the cellist Ida!")
    messages = [{"content": text, "user_id": "mara", "speaker": "Mara"} for text in texts]
    first, _ = talk.rc.as_subject(talk.admin).sessions.observe(messages, session_id=place)
    until(lambda: asked, "a question of the model")
    delete(talk, first.message.id)
    talk.core.model.play.resume()
    talk.settle()
    assert talk.live() == ["Ida is a cellist"]
    assert "graz" not in talk.known("Ida is a cellist").tags


# --- words from messages around the sources -------------------------------------------------------

IDA, THERE = "Ida came to visit from Graz.", "She works at Siemens now."


def in_context(talk: Any, *turns: str, together: bool = False) -> list[str]:
    """The ids of two messages, the second of which a model gives a fact for with a word of the first."""
    fact = json.dumps([{"fact": "Ida works at Siemens", "messages": [1 + together]}])
    place = {"session_id": SESSION + talk.tenant}
    if together:
        talk.script(fact, *turns)
        messages = [{"content": text, "user_id": "mara", "speaker": "Mara"} for text in (IDA, THERE)]
        kept = talk.rc.as_subject(talk.admin).sessions.observe(messages, **place)
        talk.settle()
        return [one.message.id for one in kept]
    talk.script("[]", fact, *turns)
    return [talk.say(text, f"2024-01-0{n}", **place) for n, text in enumerate((IDA, THERE), 1)]


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("how", ["deleted", "changed"])
def test_a_fact_keeps_no_word_of_a_message_before_its_source(talk: Any, how: str, together: bool) -> None:
    again = json.dumps([{"fact": "Somebody works at Siemens", "messages": [1]}])
    first, second = in_context(talk, *[again, "[]"][: 1 + (how == "changed")], together=together)
    assert talk.known("Ida works at Siemens").source_refs == [second]
    asked = talk.core.model.asked
    before = len(asked)
    if how == "deleted":
        delete(talk, first)
    else:
        talk.rc.as_subject(talk.admin).sessions.update_message(
            SESSION + talk.tenant, first, "Somebody came to visit."
        )
    talk.settle()
    assert (talk.live(), talk.count()) == (["Somebody works at Siemens"], 1)
    assert len(asked) == before + 1 + (how == "changed")


def test_a_fact_ends_with_its_source_whatever_was_said_before(talk: Any) -> None:
    _, second = in_context(talk)
    delete(talk, second)
    assert talk.count() == 0


def forgotten(talk: Any, id_: str) -> None:
    """No fact is left when a message is deleted, and the model finds none in the other."""
    talk.script("[]")
    delete(talk, id_)
    assert talk.count() == 0
    talk.settle()


def test_tags_of_a_message_before_the_source_go_with_it(talk: Any) -> None:
    place = {"session_id": SESSION + talk.tenant}
    fact = {"fact": "Somebody works at Siemens", "messages": [1], "tags": ["graz", "jobs"]}
    again = {"fact": "Somebody sings", "messages": [1]}
    talk.script(
        "[]", json.dumps([fact]), json.dumps([again]), json.dumps([again | {"tags": ["graz", "song"]}])
    )
    first = talk.say(IDA, "2024-01-01", **place)
    for day, text in enumerate((THERE, "Somebody sings.", "She sings, somebody does!"), 2):
        talk.say(text, f"2024-01-0{day}", **place)
    assert "graz" in talk.known("Somebody sings").tags
    delete(talk, first)
    assert talk.known("Somebody works at Siemens").tags == ["jobs"]
    assert "song" in talk.known("Somebody sings").tags
    assert "graz" not in talk.known("Somebody sings").tags


def test_a_fact_without_sources_stays_while_its_context_has_its_words(talk: Any) -> None:
    place = {"session_id": SESSION + talk.tenant}
    talk.script("[]", "[]", json.dumps([{"fact": "Ida works at Siemens", "messages": [1]}]))
    friend, visit, source = (
        talk.say(text, f"2024-01-0{day}", **place)
        for day, text in enumerate(("Ida is my friend.", IDA, THERE), 1)
    )
    talk.rc.portal.call(talk.core.transact(talk.tenant, lambda w: provenance.cut(w, [source])))
    delete(talk, visit)
    assert talk.live() == ["Ida works at Siemens"]
    delete(talk, friend)
    assert talk.count() == 0


@pytest.mark.parametrize("by_hand", [{}, {"archived": True}, {"invalid_at": on("2024-03-01")}])
def test_an_edit_that_keeps_the_words_of_a_fact_keeps_the_fact(talk: Any, by_hand: dict[str, Any]) -> None:
    first, _ = in_context(talk)
    known = talk.memories.update(talk.known("Ida works at Siemens").id, **by_hand)
    asked = talk.script("[]")
    talk.rc.as_subject(talk.admin).sessions.update_message(
        SESSION + talk.tenant, first, "Ida came to visit from Linz!"
    )
    talk.settle()
    assert talk.memories.get(known.id) == known
    assert len(asked) == 1
    forgotten(talk, first)


@pytest.mark.parametrize("known", [True, False])
def test_an_edit_of_the_context_of_more_facts_than_one_transaction_changes(
    talk: Any, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """Facts whose words are kept stay as they are, also if they are left to a job; a job of another process does not
    know the former text."""
    context = talk.memories.add("Ida lives in Linz.", kind="message", user_id="mara").memory.id
    source = talk.memories.add("She works with 1 2 3 4 5 6 7 8.", kind="message", user_id="mara").memory.id
    texts = [f"Ida works with {n}" + " in Linz" * (n in (2, 7)) for n in range(1, 9)]
    links = {"source_refs": [source], "metadata": {"context_refs": [context]}}
    talk.uncompared(*({"content": text, "user_id": "mara", **links} for text in texts))
    monkeypatch.setattr(provenance, "MARKS", 3)
    if not known:
        monkeypatch.setattr(
            provenance.Provenance, "_sources", lambda self, job: dict.fromkeys(job["sources"])
        )
    talk.memories.update(context, content="Ida lives in Graz.")
    assert talk.live() == [text for text in texts if "Linz" not in text and (known or text in texts[:3])]
    assert talk.known(texts[0]).metadata["context_refs"] == [context]
    talk.memories.delete(context)
    assert talk.live() == []


def test_a_fact_has_the_context_of_its_text_and_of_its_tags(talk: Any) -> None:
    """However often it is stated again."""
    first, second = in_context(talk)
    stated = {"content": "Ida works at Siemens", "kind": "fact", "user_id": "mara"}
    for number in range(3):
        talk.memories.add(**stated, metadata={"context_refs": [f"later{number}"]})
    fact = talk.known("Ida works at Siemens")
    assert fact.metadata["context_refs"] == [first]
    many = [f"tag{number}" for number in range(1_000)]
    talk.memories.add(**stated, tags=["graz"], metadata={"context_refs": many})
    assert talk.memories.get(fact.id).tags == [*fact.tags, "graz"]
    refs = talk.memories.get(fact.id).metadata["context_refs"]
    assert (len(refs), refs[0], refs[-1]) == (1_000, first, many[-1])
    talk.memories.add(**stated, source_refs=[first])
    fact = talk.memories.get(fact.id)
    assert fact.source_refs == [second, first]
    assert first not in fact.metadata["context_refs"]


def test_other_metadata_leaves_the_context_of_a_fact(talk: Any) -> None:
    first, _ = in_context(talk)
    fact = talk.memories.update(talk.known("Ida works at Siemens").id, metadata={"colour": "red"})
    assert fact.metadata == {"colour": "red", "context_refs": [first]}
    forgotten(talk, first)


def test_what_is_cut_from_its_context_stays(talk: Any) -> None:
    """Facts that are kept when a response is deleted keep its words."""
    first, second = in_context(talk)
    assert talk.rc.portal.call(talk.core.transact(talk.tenant, lambda w: provenance.cut(w, [first]))) is False
    delete(talk, first)
    fact = talk.known("Ida works at Siemens")
    assert (fact.source_refs, fact.metadata.get("context_refs")) == ([second], None)


def test_context_that_goes_while_the_model_answers_is_in_no_fact(talk: Any) -> None:
    place = {"session_id": SESSION + talk.tenant}
    talk.script("[]")
    first = talk.say(IDA, "2024-01-01", **place)
    facts = [{"fact": f"{who} works at Siemens", "messages": [1]} for who in ("Ida", "Somebody")]
    asked = talk.script({"text": json.dumps(facts[:1]), "pause_at": 0}, json.dumps(facts[1:]))
    message = {"content": THERE, "user_id": "mara", "speaker": "Mara"}
    talk.rc.as_subject(talk.admin).sessions.observe([message], **place)
    until(lambda: asked, "a question of the model")
    delete(talk, first)
    talk.core.model.play.resume()
    talk.settle()
    assert talk.live() == ["Somebody works at Siemens"]
    assert [IDA in str(ask) for ask in asked] == [True, False]


# --- any facts -------------------------------------------------------------------------------------

TEXTS = ("amber birch", "birch cedar", "cedar 12", "amber 17")
FACTS = ("amber birch", "cedar", "birch 12", "amber walnut", "walnut")


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    facts=st.lists(
        st.tuples(st.sampled_from(FACTS), st.sets(st.integers(0, 3), min_size=1)),
        min_size=1,
        max_size=6,
        unique_by=lambda fact: fact[0],
    ),
    order=st.permutations(range(4)),
    steps=st.integers(1, 4),
    page=st.integers(1, 3),
)
def test_whatever_goes_in_whatever_order(
    another: Any, facts: Sequence[tuple[str, set[int]]], order: list[int], steps: int, page: int
) -> None:
    talk = another()
    said = [talk.memories.add(text, kind="message", user_id="mara").memory.id for text in TEXTS]
    talk.uncompared(
        *(
            {"content": text, "user_id": "mara", "source_refs": [said[at] for at in sorted(at_)]}
            for text, at_ in facts
        )
    )
    gone = set(order[:steps])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provenance, "MARKS", page)
        for at in order[:steps]:
            talk.memories.delete(said[at])
    expected = [
        text
        for text, sources in facts
        if sources - gone
        and not lost(
            text, " ".join(TEXTS[at] for at in sources & gone), *(TEXTS[at] for at in sources - gone)
        )
    ]
    assert sorted(talk.live()) == sorted(expected)


def test_all_words_are_lost_when_it_is_not_known_what_a_message_said(
    talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process ended between the deletion of a message and the job for the facts beyond the first."""
    said = [talk.memories.add(text, kind="message", user_id="mara").memory.id for text in TEXTS[:2]]
    facts = ("birch", "birch 1", "birch 2", "birch cedar", "walnut birch")
    talk.uncompared(*({"content": text, "user_id": "mara", "source_refs": said} for text in facts))
    monkeypatch.setattr(provenance, "MARKS", 1)
    monkeypatch.setattr(
        provenance.Provenance, "_sources", lambda self, payload: dict.fromkeys(payload["sources"])
    )
    talk.memories.delete(said[0])
    assert talk.live() == ["birch", "birch cedar"]


def test_the_sources_of_the_text_are_never_dropped(talk: Any) -> None:
    first = [f"a{n}" for n in range(999)]
    talk.memories.add("Mara owns a boat", kind="fact", user_id="mara", source_refs=first)
    talk.memories.add("Mara owns a boat", kind="fact", user_id="mara", source_refs=["b", "c", "d"])
    refs = talk.known("Mara owns a boat").source_refs
    assert (len(refs), refs[0], refs[-1]) == (1_000, "a0", "d")
