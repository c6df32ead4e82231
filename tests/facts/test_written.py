"""Facts that callers write themselves are compared with those that are there, as extracted ones are."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.errors import Conflict, EmbedderUnavailable, IndexUnavailable, InvalidInput
from memoranda.facts import keeping, provenance
from memoranda.facts.claims import correction_in
from memoranda.facts.merging import Relation, relation
from memoranda.facts.neighbours import near
from memoranda.filters import EVERYTHING, Compare
from memoranda.store.jobs import RELEASE_JOB, Run
from memoranda.store.rows import fetch_ids
from memoranda.store.transaction import Writing

from .conftest import on

CITIES = ("Munich", "Hamburg", "Berlin", "Oslo")
DAY = datetime(2024, 5, 1, tzinfo=UTC)


def lives_in(city: str, **fields: Any) -> dict[str, Any]:
    return {"content": f"Tim lives in {city}", "kind": "fact", "user_id": "tim"} | fields


def one_by_one(memories: Any, facts: list[dict[str, Any]]) -> None:
    for fact in facts:
        memories.add(fact.pop("content"), **fact)


def in_one_batch(memories: Any, facts: list[dict[str, Any]]) -> None:
    memories.add_many(facts)


def imported(memories: Any, facts: list[dict[str, Any]]) -> None:
    lines = [json.dumps(fact | {"occurred_at": fact["occurred_at"].isoformat()}).encode() for fact in facts]
    assert memories.import_from(lines).created == len(facts)


@pytest.mark.parametrize("write", [one_by_one, in_one_batch, imported])
def test_of_four_cities_the_latest_is_live(talk: Any, write: Callable[..., None]) -> None:
    write(
        talk.memories,
        [lives_in(city, occurred_at=DAY + timedelta(days=n)) for n, city in enumerate(CITIES)],
    )
    assert talk.live() == ["Tim lives in Oslo"]
    versions = talk.facts.history(talk.known("Tim lives in Oslo").id).data
    assert [one.memory.content for one in versions] == [f"Tim lives in {city}" for city in CITIES]
    assert [one.ends for one in versions] == [DAY + timedelta(days=n) for n in (1, 2, 3)] + [None]


@pytest.mark.rows_in("sqlite")
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.permutations(range(4)), st.integers(1, 4))
def test_when_a_fact_holds_decides_not_when_it_is_written(
    another: Callable[[], Any], order: list[int], size: int
) -> None:
    talk = another()
    facts = [lives_in(CITIES[n], occurred_at=DAY + timedelta(days=n)) for n in order]
    for at in range(0, len(facts), size):
        talk.memories.add_many(facts[at : at + size])
    assert talk.live() == ["Tim lives in Oslo"]


def test_a_written_fact_and_an_extracted_one_are_compared(talk: Any) -> None:
    talk.say("I live in Munich.", "2024-01-01", who="tim")
    talk.memories.add("Tim moved to Berlin", kind="fact", user_id="tim", occurred_at=DAY)
    assert talk.live() == ["Tim moved to Berlin"]
    talk.say("I live in Oslo.", "2024-06-01", who="tim")
    assert talk.live() == ["Tim lives in Oslo"]


def test_other_kinds_other_users_and_other_tenants_stay(talk: Any, another: Callable[[], Any]) -> None:
    talk.memories.add("Tim lives in Munich", user_id="tim")
    talk.memories.add("Tim lives in Rome", kind="fact", user_id="ben")
    talk.memories.add("Tim lives in Bonn", kind="fact", channel_id="c")
    other = another()
    other.memories.add("Tim lives in Kiel", kind="fact", user_id="tim")
    talk.memories.add("Tim lives in Oslo", kind="fact", user_id="tim")
    assert talk.live() == ["Tim lives in Rome", "Tim lives in Bonn", "Tim lives in Oslo"]
    assert len(talk.memories.list(kinds=["note"]).data) == 1
    assert other.live() == ["Tim lives in Kiel"]


def test_what_says_the_same_is_one_more_source(talk: Any) -> None:
    first = talk.memories.add(
        "Tim prefers tea over coffee", kind="fact", user_id="tim", source_refs=["a"]
    ).memory
    again = talk.memories.add(
        "Tim prefers tea over coffee!", kind="fact", user_id="tim", source_refs=["b"], tags=["drinks"]
    )
    assert (again.created, again.memory.id, again.embedded) == (False, first.id, True)
    assert (again.memory.source_refs, again.memory.tags) == (["a", "b"], ["drinks"])
    same = talk.memories.add("Tim prefers tea over coffee", kind="fact", user_id="tim").memory
    assert same == again.memory, "writing it once more changes nothing"


def test_a_fact_with_an_id_has_a_row_of_its_own(talk: Any) -> None:
    talk.memories.add("Tim prefers tea over coffee", kind="fact", user_id="tim")
    named = talk.memories.add("Tim prefers tea over coffee!", kind="fact", user_id="tim", id="f1")
    assert (named.created, named.memory.id) == (True, "f1")
    talk.memories.add("Tim lives in Munich", kind="fact", user_id="tim", id="f2")
    talk.memories.add("Tim lives in Oslo", kind="fact", user_id="tim", id="f3")
    again = talk.memories.add("Tim lives in Munich", kind="fact", user_id="tim", id="f2")
    assert (again.created, again.memory.superseded_by) == (False, "f3"), "a request that is sent again"
    with pytest.raises(Conflict):
        talk.memories.add("Tim lives in Bonn", kind="fact", user_id="tim", id="f3")
    assert talk.memories.get("f3").content == "Tim lives in Oslo"


def test_facts_of_a_batch_are_compared_before_the_write(talk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparisons would hold up the writes of all others."""

    def refused(*_: Any) -> Relation:
        raise AssertionError("compared in the transaction")

    monkeypatch.setattr(keeping, "relation", refused)
    cities = [lives_in(city, occurred_at=DAY + timedelta(days=n)) for n, city in enumerate(CITIES)]
    in_one_batch(talk.memories, [*cities, {**cities[-1], "content": "Tim lives in  Oslo."}])
    assert talk.live() == ["Tim lives in Oslo"]
    talk.say("I live in Rome. My sister is called Ida. I live in Genoa.")
    assert "Mara lives in Genoa" in talk.live()


def test_facts_of_an_import_are_not_compared_with_each_other(talk: Any) -> None:
    facts = [lives_in(city, occurred_at=DAY) for city in CITIES]
    for among, compared in ((EVERYTHING, 3), (Compare("$seq", "lte", 0), 0)):
        plans = near(talk.core, talk.tenant, talk.memories.inner.prepare(facts), among)
        assert max(len(plan.beside) for plan in plans) == compared


def test_a_batch_keeps_its_order_and_is_refused_as_a_whole(talk: Any) -> None:
    texts = [f"Tim owns {n} {what}" for n, what in enumerate(["boats", "cats", "maps", "keys"] * 6)]
    items = [
        {"content": text, "kind": "fact" if n % 3 else "note", "user_id": "tim"}
        for n, text in enumerate(texts)
    ]
    added = talk.memories.add_many(items)
    assert [one.memory.content for one in added] == texts
    with pytest.raises(InvalidInput, match=r"\[1\]"):
        talk.memories.add_many([lives_in("Oslo"), lives_in("Bonn", confidence=7)])
    assert "Tim lives in Oslo" not in talk.live()


def test_the_end_of_a_fact_comes_back_with_it(talk: Any) -> None:
    ends = DAY + timedelta(days=3_000)
    talk.memories.add("Tim's budget is 2 000", kind="fact", user_id="tim", occurred_at=DAY, invalid_at=ends)
    later = talk.memories.add(
        "Tim's new budget is 2 100", kind="fact", user_id="tim", occurred_at=DAY + timedelta(days=9)
    )
    assert talk.known("Tim's budget is 2 000").invalid_at == DAY + timedelta(days=9)
    talk.facts.undo(later.memory.id)
    assert talk.known("Tim's budget is 2 000").invalid_at == ends


def test_what_holds_again_after_its_end_is_a_fact_of_its_own(talk: Any) -> None:
    def said(after: int, **fields: Any) -> Any:
        at = DAY + timedelta(days=after)
        return talk.memories.add("Tim owns a boat", kind="fact", user_id="tim", occurred_at=at, **fields)

    ends = DAY + timedelta(days=9)
    first = said(0, invalid_at=ends)
    assert [said(after).memory.id for after in (0, 8)] == [first.memory.id] * 2
    second = said(20)
    assert (second.created, second.memory.invalid_at) == (True, None)
    assert said(30).memory.id == second.memory.id
    other = talk.memories.add(
        "Tim does not own a boat", kind="fact", user_id="tim", occurred_at=DAY + timedelta(days=15)
    )
    assert other.memory.invalid_at == DAY + timedelta(days=20)
    assert talk.memories.get(first.memory.id).invalid_at == ends


def owned(talk: Any, after: int, **fields: Any) -> Any:
    at = DAY + timedelta(days=after)
    text = fields.pop("content", "Tim owns a boat")
    return talk.memories.add(text, kind="fact", user_id="tim", occurred_at=at, **fields)


@pytest.mark.parametrize("first", [True, False])
def test_versions_that_end_by_themselves_are_the_same_in_both_orders(talk: Any, first: bool) -> None:
    ends = DAY + timedelta(days=30)
    for after, fields in sorted(
        [(0, {"invalid_at": ends}), (150, {})], reverse=not first, key=lambda one: one[0]
    ):
        assert owned(talk, after, **fields).created
    for _ in range(2):
        assert not owned(talk, 0, invalid_at=ends).created
        assert not owned(talk, 150).created
    sql = "SELECT id FROM memories WHERE tenant_id = ? AND kind = 'fact' ORDER BY occurred_at"
    held = [talk.memories.get(id_) for (id_,) in talk.rows(sql, talk.tenant)]
    begins = [(fact.occurred_at, fact.invalid_at) for fact in held]
    assert begins == [(DAY, ends), (DAY + timedelta(days=150), None)]


def test_a_version_is_written_again_by_its_id(talk: Any) -> None:
    ends = DAY + timedelta(days=30)
    owned(talk, 0, id="first", invalid_at=ends)
    owned(talk, 150, id="again")
    assert owned(talk, 150, id="again").memory.id == "again"
    versions = [("again", 150), ("first", 0)]
    facts = [
        {"content": "Tim owns a boat", "kind": "fact", "user_id": "tim", "id": id_,
         "occurred_at": DAY + timedelta(days=after)}
        for id_, after in versions
    ]  # fmt: skip
    added = talk.memories.add_many(facts)
    assert [(each.memory.id, each.created) for each in added] == [("again", False), ("first", False)]
    talk.memories.update("again", tags=["boats"])
    assert owned(talk, 150, id="again").memory.tags == ["boats"]
    assert (talk.count(), talk.memories.get("first").invalid_at) == (2, ends)


def test_a_text_with_an_id_joins_the_version_of_its_time(talk: Any) -> None:
    owned(talk, 0, id="first", invalid_at=DAY + timedelta(days=30))
    owned(talk, 150, id="again")
    assert [owned(talk, after, id=f"at{after}").memory.id for after in (10, 160)] == ["first", "again"]
    assert talk.count() == 2


@pytest.mark.parametrize("kind", ["note", "fact"])
def test_nothing_is_stored_if_an_id_of_a_request_names_two_texts(talk: Any, kind: str) -> None:
    """The first of each is written in an earlier transaction than the second."""
    facts = [{"id": f"t{n}", "content": f"Tim owns boat {n}", "kind": "fact"} for n in range(18)]
    with pytest.raises(Conflict, match="id: 't0'"):
        talk.memories.add_many([facts[0] | {"content": "Tim sails", "kind": kind}, *facts[1:], facts[0]])
    assert talk.memories.list(kinds=["note", "fact"]).data == []


def test_a_late_version_is_not_merged_over_what_contradicts_it(talk: Any) -> None:
    owned(talk, 10, content="Tim does not own a boat")
    owned(talk, 20)
    late = owned(talk, 0).memory
    assert late.invalid_at == DAY + timedelta(days=10)
    assert owned(talk, 0).memory.id == late.id
    assert talk.live() == ["Tim owns a boat"]


def test_a_later_contradiction_leaves_the_end_of_a_fact(talk: Any) -> None:
    ends = DAY + timedelta(days=30)
    owned(talk, 100, content="Tim does not own a boat")
    late = owned(talk, 0, invalid_at=ends).memory
    assert (late.invalid_at, late.superseded_by) == (ends, None)


def test_an_id_that_comes_twice_in_a_batch_is_one_fact(talk: Any) -> None:
    def fact(id_: str, text: str, after: int) -> dict[str, Any]:
        at = DAY + timedelta(days=after)
        return {"id": id_, "content": text, "kind": "fact", "user_id": "tim", "occurred_at": at}

    added = talk.memories.add_many(
        [
            fact("x", "Tim owns a boat", 0),
            fact("b", "Tim does not own a boat", 10),
            fact("x", "Tim owns a boat", 20),
        ]
    )
    assert [(outcome.memory.id, outcome.created) for outcome in added] == [
        ("x", True),
        ("b", True),
        ("x", False),
    ]
    assert talk.live() == ["Tim does not own a boat"]


def test_an_export_comes_back_as_it_was(talk: Any, another: Callable[[], Any]) -> None:
    """Two cities that both hold, because somebody took the comparison back, are not compared again."""
    first = talk.memories.add("Tim lives in Munich", kind="fact", user_id="tim").memory
    second = talk.memories.add("Tim lives in Oslo", kind="fact", user_id="tim").memory
    talk.change("UPDATE memories SET superseded_by = NULL, invalid_at = NULL WHERE id = ?", first.id)
    exported = list(talk.memories.export())
    empty, full = another(), another()
    assert empty.memories.import_from(exported).created == 2
    assert list(empty.memories.export()) == exported
    older = full.memories.add("Tim lives in Kiel", kind="fact", user_id="tim", occurred_at=DAY).memory
    assert full.memories.import_from(exported).created == 2
    assert full.memories.get(older.id).superseded_by in (first.id, second.id)
    assert full.memories.import_from(exported).present == 2


def test_facts_are_compared_by_words_while_the_model_is_away(
    talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*args: object, **fields: object) -> None:
        raise EmbedderUnavailable("switched off")

    talk.memories.add("Tim lives in Munich", kind="fact", user_id="tim")
    with monkeypatch.context() as patch:
        patch.setattr(talk.core.embedder.inner, "embed", refuse)
        added = talk.memories.add("Tim lives in Oslo", kind="fact", user_id="tim")
    assert not added.embedded
    assert talk.live() == ["Tim lives in Oslo"]


def test_facts_are_stored_while_an_index_does_not_answer(talk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **fields: object) -> None:
        raise IndexUnavailable("switched off")

    talk.memories.add("Tim lives in Munich", kind="fact", user_id="tim")
    with monkeypatch.context() as patch:
        patch.setattr(talk.core.store.words, "search", refuse)
        assert talk.memories.add("Tim lives in Oslo", kind="fact", user_id="tim").created
    assert talk.live() == ["Tim lives in Munich", "Tim lives in Oslo"]


# --- corrections ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("Change of plan: navy, not green.", ("navy", "green")),
        ("navy, not green", ("navy", "green")),
        ("Actually, make it 5 pm instead of 4 pm", ("5 pm", "4 pm")),
        ("Sorry, I meant Oslo rather than Bergen.", ("Oslo", "Bergen")),
        ("Planänderung: blau statt grün", ("blau", "grün")),
        ("Tim likes navy, not green", None),
        ("No, not today", None),
        ("I hope not.", None),
        ("", None),
    ],
)
def test_corrections(text: str, pair: tuple[str, str] | None) -> None:
    found = correction_in(text)
    assert (None if found is None else (found.value, found.old)) == pair


@pytest.mark.parametrize(
    ("new", "old", "what"),
    [
        ("The accent colour is navy, not green", "The accent colour is green", Relation.CONTRADICTS),
        ("Tim likes navy, not green", "Tim likes green", Relation.CONTRADICTS),
        ("Tim likes navy, not green", "Tim's sister likes green", Relation.OTHER),
        ("The logo is navy instead of green", "The accent colour is green", Relation.OTHER),
        ("Tim's new budget is 2 100", "Tim's budget is 2 000", Relation.CONTRADICTS),
    ],
)
def test_a_value_in_the_place_of_another(new: str, old: str, what: Relation) -> None:
    assert relation(new, old) is what


def test_a_correction_supersedes_the_latest_fact_with_the_old_value(talk: Any) -> None:
    later = DAY + timedelta(days=1)
    talk.memories.add("Tim likes green tea", kind="fact", user_id="tim", occurred_at=DAY)
    talk.memories.add("The door is green", kind="fact", user_id="ben", occurred_at=later)
    latest = talk.memories.add("The accent colour is green", kind="fact", user_id="tim", occurred_at=later)
    talk.memories.add("Change of plan: navy, not green", kind="fact", user_id="tim")
    assert talk.memories.get(latest.memory.id).superseded_by is not None
    assert "Tim likes green tea" in talk.live()
    assert "The door is green" in talk.live()


def test_a_correction_in_a_conversation_becomes_a_fact_that_is_understood_alone(talk: Any) -> None:
    talk.say("My favourite colour is green.", "2024-05-01", who="tim")
    said = talk.say("Change of plan: navy, not green.", "2024-05-02", who="tim")
    talk.say("Rather yellow, not green.", "2024-05-03", who="ben")
    assert talk.live() == ["Tim's favourite colour is navy"]
    assert talk.known("Tim's favourite colour is navy").source_refs == [said]


GREEN, NAVY = "My favourite colour is green.", "Change of plan: navy, not green."


@pytest.mark.parametrize("together", [False, True])
def test_a_correction_of_another_speaker_without_a_user_changes_nothing(talk: Any, together: bool) -> None:
    sessions = talk.rc.sessions_as(talk.admin)
    lines = [("Ada", GREEN), ("Ben", "No, navy, not green.")]
    for some in [lines] if together else [[line] for line in lines]:
        sessions.observe([{"content": text, "speaker": who} for who, text in some], channel_id="fence")
        talk.settle()
    assert talk.live() == ["Ada's favourite colour is green"]
    sessions.observe([{"content": NAVY, "speaker": "Ada"}], channel_id="fence")
    talk.settle()
    assert talk.live() == ["Ada's favourite colour is navy"]


def test_a_correction_in_another_session_without_a_user_changes_nothing(talk: Any) -> None:
    first, second = (f"{name} of {talk.tenant}" for name in ("first", "second"))
    talk.say(GREEN, who=None, session_id=first, channel_id=None)
    talk.say(NAVY, who=None, session_id=second, channel_id=None)
    assert talk.live() == ["The user's favourite colour is green"]
    talk.say(NAVY, who=None, session_id=first, channel_id=None)
    assert talk.live() == ["The user's favourite colour is navy"]


def test_a_correction_concerns_the_facts_of_its_agent(talk: Any) -> None:
    talk.say(GREEN, who="tim", agent_id="a1")
    talk.say(NAVY, who="tim", agent_id="a2")
    assert talk.live() == ["Tim's favourite colour is green"]
    talk.say(GREEN, who="tim", agent_id="a2")
    talk.say(NAVY, who="tim", agent_id="a1")
    assert talk.live(scopes=["agent:a1"]) == ["Tim's favourite colour is navy"]
    assert talk.live(scopes=["agent:a2"]) == ["Tim's favourite colour is green"]


HOME, NOT_BERLIN = "I live in Kantstrasse 5 in Berlin.", "No wait: Potsdam, not Berlin."
BEFORE, AFTER = "Tim lives in Kantstrasse 5 in Berlin", "Tim lives in Kantstrasse 5 in Potsdam"


@pytest.mark.parametrize(
    ("texts", "gone", "left"),
    [
        ((HOME, NOT_BERLIN), 0, []),
        ((HOME, NOT_BERLIN), 1, [BEFORE]),
        ((HOME, NOT_BERLIN, "Sorry, Bonn, not Potsdam."), 0, []),
        ((HOME, *(f"It has rained {n} times." for n in range(5)), NOT_BERLIN), 0, []),
        (("I live in Berlin.", NOT_BERLIN), 0, ["Tim lives in Potsdam"]),
    ],
)
@pytest.mark.parametrize("together", [False, True])
def test_a_correction_keeps_no_word_of_a_deleted_message(
    talk: Any, texts: Sequence[str], gone: int, left: list[str], together: bool
) -> None:
    place, said = f"home{talk.tenant}", []
    sessions = talk.rc.sessions_as(talk.admin)
    for some in [texts] if together else [[text] for text in texts]:
        messages = [{"content": text, "user_id": "tim", "speaker": "Tim"} for text in some]
        said += sessions.observe(messages, session_id=place)
        talk.settle()
    assert len(talk.live()) == 1
    assert talk.count() > 1
    sessions.delete_message(place, said[gone].message.id)
    talk.settle()
    assert (talk.live(), talk.count()) == (left, len(left))


def test_a_consolidated_fact_has_the_context_of_its_parts(talk: Any) -> None:
    place = {"session_id": f"talk{talk.tenant}"}
    base = talk.say("My dentist appointment is on Monday.", "2024-01-01", **place)
    talk.say("Sorry, Tuesday, not Monday.", "2024-01-02", **place)
    same = {"content": "Mara's dentist appointment is on Tuesday!", "user_id": "mara"}
    same["occurred_at"] = on("2024-01-02")
    talk.uncompared(same | {"channel_id": "talk", "metadata": {"context_refs": [base]}})
    assert len(talk.facts.consolidate(scopes=["all"]).merged) == 1
    talk.say("Sorry, Wednesday, not Tuesday.", "2024-01-03", session_id=f"later{talk.tenant}")
    assert talk.live() == ["Mara's dentist appointment is on Wednesday."]
    talk.rc.sessions_as(talk.admin).delete_message(place["session_id"], base)
    talk.settle()
    assert "dentist" not in str(talk.live())


# --- a chain without a link ------------------------------------------------------------------------

MOVES = ("Munich", "Berlin", "Oslo", "Rome")


@pytest.mark.parametrize(
    ("gone", "then"),
    [
        ({1}, ["Munich", "Munich", "Oslo", "Rome"]),
        ({1, 2}, ["Munich", "Munich", "Munich", "Rome"]),
        ({2, 3}, ["Munich", "Berlin", "Berlin", "Berlin"]),
        ({0, 2}, [None, "Berlin", "Berlin", "Rome"]),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_fact_holds_until_what_took_the_place_of_a_deleted_one(
    talk: Any, gone: set[int], then: list[str | None], at_once: bool
) -> None:
    for day, city in enumerate(MOVES, 1):
        talk.say(f"I live in {city}.", f"2024-01-0{day}")
    ids = [talk.known(f"Mara lives in {MOVES[at]}").id for at in sorted(gone)]
    for some in [ids] if at_once else [[id_] for id_ in ids]:
        talk.memories.forget(some)
    for day, city in enumerate(then, 1):
        expected = [] if city is None else [f"Mara lives in {city}"]
        assert talk.live(as_of=on(f"2024-01-0{day}T12:00:00")) == expected
    assert talk.live() == [f"Mara lives in {then[-1]}"]


@pytest.mark.parametrize("next_too", [False, True])
def test_of_more_facts_than_one_transaction_changes_each_holds_until_the_next(
    talk: Any, monkeypatch: pytest.MonkeyPatch, next_too: bool
) -> None:
    """Or for ever, if the next is removed before the job for the rest begins."""
    texts = [f"Mara rents flat {number}" for number in range(1, 9)]
    talk.uncompared(*({"content": text, "user_id": "mara"} for text in texts))
    talk.say("I live in Munich.", "2024-01-02")
    talk.say("I live in Berlin.", "2024-01-03")
    first = talk.known("Mara lives in Munich")
    end = int(on("2024-01-02").timestamp() * 1_000_000)
    talk.change(
        "UPDATE memories SET superseded_by = ?, invalid_at = ? WHERE tenant_id = ? AND content LIKE '%flat%'",
        first.id,
        end,
        talk.tenant,
    )
    real, then = talk.core.jobs.handlers[RELEASE_JOB], talk.known("Mara lives in Berlin").id

    def remove(w: Writing) -> None:
        w.remove([row.seq for row in fetch_ids(w.c, w.tenant, [then]).values()])

    async def release(run: Run) -> Any:
        if next_too:
            await talk.core.threads.result(talk.core.store.transact(talk.tenant, remove))
        return await real(run)

    monkeypatch.setitem(talk.core.jobs.handlers, RELEASE_JOB, release)
    monkeypatch.setattr(provenance, "MARKS", 3)
    talk.memories.delete(first.id)
    assert talk.live() == (texts if next_too else ["Mara lives in Berlin"])
    assert {talk.known(text).invalid_at for text in texts} == {None if next_too else on("2024-01-03")}


# --- consolidation -------------------------------------------------------------------------------------


def test_only_equivalent_facts_become_one(talk: Any) -> None:
    apart = [
        "Tim prefers Python",
        "Tim prefers dark mode",
        "Tim prefers trains over planes",
        "Tim uses Python for the data pipeline of the climate project",
        "Tim prefers short meetings",
        "Tim does not like notebooks",
    ]
    talk.memories.add_many([{"content": text, "kind": "fact", "user_id": "tim"} for text in apart])
    assert talk.facts.consolidate().merged == []
    talk.uncompared({"content": "Tim prefers dark mode everywhere", "user_id": "tim"})
    talk.facts.consolidate()
    assert set(talk.live()) == {*apart, "Tim prefers dark mode everywhere."} - {"Tim prefers dark mode"}
