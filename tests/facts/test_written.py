"""Facts that callers write themselves: nothing ends one but the caller's word, the model's, or the text itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from memoranda.errors import Conflict, IndexUnavailable, InvalidInput, NotFound
from memoranda.facts import provenance, reconciling
from memoranda.store.job_kinds import RELEASE_JOB, Run
from memoranda.store.rows import fetch_ids
from memoranda.store.transaction import Writing
from memoranda.text.instructions import TAG
from support.exports import undated

from .conftest import on

DAY = datetime(2024, 5, 1, tzinfo=UTC)
BOTH_HOLD = [
    ("Mara lives in France.", "Mara lives in Lyon."),
    ("Mara's doctor is Dr. Klein.", "Mara's doctor is Dr. Weiss."),
    ("Mara has an appointment on June 9.", "Mara has an appointment on May 3."),
    ("Mara works on the project Borealis.", "Mara works on the project Atlas."),
    ("Mara works as a tour guide in summer.", "Mara works as a translator in winter."),
    ("Mara drinks tea in the evenings.", "Mara switched from tea to coffee in the mornings."),
    ("Version 1.2 fixed the login bug.", "Version 1.3 fixed the login bug."),
    ("Table 1.1 lists prices.", "Table 1.2 lists prices."),
    ("Tim owns the blue boat.", "Tim sank the blue boat he owned."),
    ("Mara eats fish.", "Mara does not eat fish."),
]


@pytest.fixture(autouse=True)
def unasked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No model compares facts, unless a test is marked so."""
    if "asked" not in request.fixturenames:
        monkeypatch.setattr(reconciling, "reconcile_later", lambda *_: None)
        monkeypatch.setattr("memoranda.facts.writing.reconcile_later", lambda *_: None)


@pytest.fixture
def asked(talk: Any) -> list[Any]:
    """What the model is asked, which compares facts."""
    return list(talk.core.model.asked)


@pytest.mark.parametrize("pair", BOTH_HOLD)
@pytest.mark.parametrize("order", [1, -1])
def test_facts_that_seem_to_disagree_both_stay(talk: Any, pair: tuple[str, str], order: int) -> None:
    texts = pair[::order]
    for day, text in enumerate(texts):
        talk.memories.add(text, kind="fact", user_id="mara", occurred_at=DAY + timedelta(days=day))
    assert talk.live() == list(texts)
    found = talk.memories.search(texts[0], kinds=["fact"], scopes=["user:mara"]).results
    assert {hit.memory.content for hit in found} == set(texts)


def test_a_fact_ends_those_that_it_replaces(talk: Any) -> None:
    first, second, other = (
        talk.memories.add(text, kind="fact", user_id="tim", occurred_at=DAY).memory.id
        for text in ("Tim lives in Munich", "Tim rents a flat in Munich", "Tim likes Munich")
    )
    later = DAY + timedelta(days=9)
    added = talk.memories.add(
        "Tim lives in Oslo", kind="fact", user_id="tim", occurred_at=later, replaces=[first, second]
    ).memory
    assert talk.live() == ["Tim likes Munich", "Tim lives in Oslo"]
    assert (talk.memories.get(first).superseded_by, talk.memories.get(first).invalid_at) == (added.id, later)
    (change,) = talk.facts.history(first).data[0].changes
    assert (change.what, change.why, change.quote, change.ids) == ("superseded", "replaced", None, [added.id])
    assert sorted(talk.facts.undo(added.id).restored) == sorted([first, second])
    assert talk.memories.get(other).superseded_by is None


def test_a_fact_that_is_there_ends_those_that_its_repetition_replaces(talk: Any) -> None:
    munich = talk.memories.add("Tim lives in Munich", kind="fact", user_id="tim").memory.id
    oslo = talk.memories.add("Tim lives in Oslo", kind="fact", user_id="tim").memory.id
    again = talk.memories.add("Tim lives in Oslo", kind="fact", user_id="tim", replaces=[munich])
    assert (again.created, again.memory.id, talk.live()) == (False, oslo, ["Tim lives in Oslo"])
    repeated = talk.memories.add("Tim lives in Oslo", kind="fact", user_id="tim", replaces=[munich])
    assert repeated.memory == again.memory


def test_an_earlier_fact_may_replace_a_later_one(talk: Any) -> None:
    """The caller's word counts, whenever it was said."""
    oslo = talk.memories.add("Tim lives in Oslo", kind="fact", user_id="tim", occurred_at=DAY).memory.id
    talk.memories.add(
        "Tim lives in Rome", kind="fact", user_id="tim", occurred_at=DAY - timedelta(days=9), replaces=[oslo]
    )
    assert talk.live() == ["Tim lives in Rome"]


def test_what_cannot_be_replaced_says_why_and_nothing_is_stored(talk: Any) -> None:
    note = talk.memories.add("Tim lives in Munich", user_id="tim").memory.id
    bens = talk.memories.add("Ben lives in Rome", kind="fact", user_id="ben").memory.id
    add = talk.by("tim")[1].add
    for ids in (["nothing"], [note], [bens]):
        with pytest.raises(NotFound, match="replaces: no fact"):
            add("Tim lives in Oslo", kind="fact", replaces=ids)
    with pytest.raises(InvalidInput, match="replaces: is for facts; set kind='fact'"):
        add("Tim lives in Oslo", replaces=[bens])
    with pytest.raises(InvalidInput, match=r"replaces: 'mem_.*' has another user"):
        talk.memories.add("Tim lives in Oslo", kind="fact", user_id="tim", replaces=[bens])
    with pytest.raises(InvalidInput, match=r"\[1\]\.replaces"):
        talk.memories.add_many(["One.", {"content": "Two.", "replaces": [bens]}])
    rule = talk.memories.add("Tim wants metric units", kind="fact", tags=[TAG], user_id="tim").memory
    talk.facts.confirm(rule.id)
    with pytest.raises(InvalidInput, match="is a standing instruction; delete it"):
        add("No rules", kind="fact", replaces=[rule.id])
    assert talk.live() == ["Ben lives in Rome", rule.content]


def test_the_model_says_later_what_a_written_fact_ends(talk: Any, asked: Any) -> None:
    munich = talk.memories.add("Tim lives in Munich", kind="fact", user_id="tim", occurred_at=DAY).memory.id
    talk.memories.add("Tim likes tea", kind="fact", user_id="tim", occurred_at=DAY)
    talk.settle()
    before = len(talk.core.model.asked)
    oslo = talk.memories.add(
        "Tim moved to Oslo", kind="fact", user_id="tim", occurred_at=DAY + timedelta(days=1)
    )
    talk.settle()
    assert talk.live() == ["Tim likes tea", "Tim moved to Oslo"]
    assert talk.memories.get(munich).superseded_by == oslo.memory.id
    (first, _) = talk.facts.history(munich).data
    assert first.changes[-1].quote == "Tim moved to Oslo"
    assert len(talk.core.model.asked) == before + 1
    talk.memories.add("Tim lives in Bonn", kind="fact", user_id="ben")
    talk.memories.add("Tim lives in Kiel", kind="fact", channel_id="c")
    talk.settle()
    assert len(talk.core.model.asked) == before + 1, "there is nothing at home to compare them with"


def test_written_facts_are_compared_once_an_index_answers(
    talk: Any, asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **fields: object) -> None:
        raise IndexUnavailable("switched off")

    monkeypatch.setattr(reconciling, "RETRY_SECONDS", 0.02)
    talk.memories.add("Tim lives in Munich", kind="fact", user_id="tim", occurred_at=DAY)
    talk.settle()
    with monkeypatch.context() as patch:
        patch.setattr(talk.core.store.words, "search", refuse)
        later = DAY + timedelta(days=1)
        assert talk.memories.add("Tim moved to Oslo", kind="fact", user_id="tim", occurred_at=later).created
        assert talk.live() == ["Tim lives in Munich", "Tim moved to Oslo"]
    talk.settle()
    assert talk.live() == ["Tim moved to Oslo"]


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
        "Tim prefers tea over coffee", kind="fact", user_id="tim", source_refs=["b"], tags=["drinks"]
    )
    assert (again.created, again.memory.id, again.embedded) == (False, first.id, True)
    assert (again.memory.source_refs, again.memory.tags) == (["a", "b"], ["drinks"])
    same = talk.memories.add("Tim prefers tea over coffee", kind="fact", user_id="tim").memory
    assert same == again.memory, "writing it once more changes nothing"


def test_a_fact_with_an_id_has_a_row_of_its_own(talk: Any) -> None:
    talk.memories.add("Tim lives in Munich", kind="fact", user_id="tim", id="f2")
    talk.memories.add("Tim lives in Oslo", kind="fact", user_id="tim", id="f3", replaces=["f2"])
    again = talk.memories.add("Tim lives in Munich", kind="fact", user_id="tim", id="f2")
    assert (again.created, again.memory.superseded_by) == (False, "f3"), "a request that is sent again"
    with pytest.raises(Conflict):
        talk.memories.add("Tim lives in Bonn", kind="fact", user_id="tim", id="f3")
    assert talk.memories.get("f3").content == "Tim lives in Oslo"
    elsewhere = {"user_id": "tim", "channel_id": "c"}
    assert talk.memories.add("Tim lives in Oslo", kind="fact", **elsewhere).memory.id == "f3"
    assert talk.memories.add("Tim lives in Oslo", kind="fact", id="f4", **elsewhere).memory.id == "f4"


def test_a_batch_keeps_its_order_and_is_refused_as_a_whole(talk: Any) -> None:
    texts = [f"Tim owns {n} {what}" for n, what in enumerate(["boats", "cats", "maps", "keys"] * 6)]
    items = [
        {"content": text, "kind": "fact" if n % 3 else "note", "user_id": "tim"}
        for n, text in enumerate(texts)
    ]
    added = talk.memories.add_many(items)
    assert [one.memory.content for one in added] == texts
    with pytest.raises(InvalidInput, match=r"\[1\]"):
        talk.memories.add_many(
            [
                {"content": "Tim lives in Oslo", "kind": "fact"},
                {"content": "Tim", "kind": "fact", "confidence": 7},
            ]
        )
    assert "Tim lives in Oslo" not in talk.live()


def test_the_end_of_a_fact_comes_back_with_it(talk: Any) -> None:
    ends = DAY + timedelta(days=3_000)
    first = talk.memories.add(
        "Tim's budget is 2 000", kind="fact", user_id="tim", occurred_at=DAY, invalid_at=ends
    )
    later = talk.memories.add(
        "Tim's new budget is 2 100",
        kind="fact",
        user_id="tim",
        occurred_at=DAY + timedelta(days=9),
        replaces=[first.memory.id],
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
    assert talk.live() == ["Tim owns a boat", "Tim does not own a boat"]


def test_an_export_comes_back_as_it_was(talk: Any, another: Callable[[], Any], asked: Any) -> None:
    """A model does not compare what it compared where it comes from."""
    for city in ("Munich", "Oslo"):
        talk.uncompared({"content": f"Tim lives in {city}", "user_id": "tim"})
    exported = [*map(undated, talk.memories.export())]
    empty = another()
    assert empty.memories.import_from(exported).created == 2
    empty.settle()
    assert [undated(line).replace(b'"import"', b'"user"') for line in empty.memories.export()] == exported
    assert empty.memories.import_from(exported).present == 2
    other = another()
    kiel = other.memories.add("Tim lives in Kiel", kind="fact", user_id="tim", occurred_at=DAY).memory.id
    assert other.memories.import_from(exported[1:2]).created == 1
    other.settle()
    assert other.live() == ["Tim lives in Munich"]
    assert other.memories.get(kiel).superseded_by is not None


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
    real, then = talk.core.jobs.kinds[RELEASE_JOB], talk.known("Mara lives in Berlin").id

    def remove(w: Writing) -> None:
        w.remove([row.seq for row in fetch_ids(w.c, w.tenant, [then]).values()])

    async def release(run: Run) -> Any:
        if next_too:
            await talk.core.threads.result(talk.core.store.transact(talk.tenant, remove))
        return await real.handler(run)

    monkeypatch.setitem(talk.core.jobs.kinds, RELEASE_JOB, replace(real, handler=release))
    monkeypatch.setattr(provenance, "MARKS", 3)
    talk.memories.delete(first.id)
    assert talk.live() == (texts if next_too else ["Mara lives in Berlin"])
    assert {talk.known(text).invalid_at for text in texts} == {None if next_too else on("2024-01-03")}
