"""Facts as they are learned, change, are taken back and lose what they rest on, in every database."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import permutations
from operator import not_
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from memoranda.clock import now_micros
from memoranda.errors import Conflict, Forbidden, NotFound, StorageError
from memoranda.facts import cut, provenance, versions
from memoranda.facts.maintenance import Clock
from memoranda.store import job_kinds
from memoranda.store.job_kinds import RELEASE_JOB
from memoranda.store.rows import fetch_ids
from memoranda.store.transaction import Writing
from memoranda.text.stored import compact_json
from support.waiting import until


def on(text: str) -> datetime:
    """A moment: `2024-05-01`, with or without a time."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


LIVES = {
    "2024-01-01": "I live in Munich.",
    "2024-03-01": "I live in Hamburg.",
    "2024-05-01": "I moved to Berlin.",
}


def test_a_fact_has_its_sources_and_its_owner(talk: Any) -> None:
    first = talk.say("I prefer tea over coffee.", "2024-05-01T10:00", agent_id="a1")
    fact = talk.known("Mara prefers tea over coffee")
    assert (fact.user_id, fact.agent_id, fact.channel_id, fact.session_id) == ("mara", "a1", "talk", None)
    assert (fact.source_refs, fact.tags, fact.source) == ([first], ["tea", "coffee"], "extraction")
    assert fact.occurred_at == on("2024-05-01T10:00")
    again = talk.say("I prefer tea over coffee!", "2024-05-02T10:00", agent_id="a1", channel_id="elsewhere")
    assert talk.count() == 1
    assert talk.known(fact.content).source_refs == [first, again]
    talk.say("I prefer tea over coffee", who="ben", agent_id="a1")
    talk.say("We decided to use Postgres.", who=None, session_id="only", channel_id=None)
    nobody = talk.known("It was decided to use Postgres")
    assert (nobody.user_id, nobody.session_id) == (None, "only")


def test_what_is_over_ends_a_fact_in_the_words_of_the_message(talk: Any) -> None:
    talk.say("I live in Rome.", "2024-01-01")
    rome = talk.known("Mara lives in Rome").id
    said = talk.say("It rains. I don't live in Rome anymore.", "2024-02-01")
    assert talk.live() == ["Mara no longer lives in Rome"]
    assert talk.memories.get(rome).invalid_at == on("2024-02-01")
    first, second = talk.facts.history(rome).data
    assert (first.changes[-1].why, first.changes[-1].quote) == ("replaced", "I don't live in Rome anymore")
    assert second.memory.metadata["quotes"] == [[rome, said, "I don't live in Rome anymore"]]
    talk.memories.delete(said)
    (version,) = talk.facts.history(rome).data
    assert version.live
    assert "anymore" not in str(version)


def test_facts_are_apart(talk: Any, another: Callable[[], Any]) -> None:
    other = another()
    talk.say("I live in Munich.", "2024-01-01")
    talk.say("I live in Oslo.", "2024-02-01", who="ben")
    other.say("I live in Rome.", "2024-03-01")
    assert talk.live() == ["Mara lives in Munich", "Ben lives in Oslo"]
    mine = talk.known("Mara lives in Munich").id
    for facts in (talk.by("ben")[0], other.facts):
        for asked in (facts.history, facts.undo, facts.confirm):
            with pytest.raises(NotFound):
                asked(mine)
    assert len(talk.by("mara")[0].history(mine).data) == 1
    for verb in (lambda: talk.by("mara", "reader")[0].undo(mine), talk.by("mara", "reader")[0].consolidate):
        with pytest.raises(Forbidden):
            verb()
    with pytest.raises(Forbidden):
        talk.by("mara")[0].sweep()


def test_when_it_was_said_decides_not_when_it_came(another: Callable[[], Any]) -> None:
    for order in list(permutations(LIVES))[1::2]:
        talk = another()
        for at in order:
            talk.say(LIVES[at], at)
        assert talk.live() == ["Mara moved to Berlin"], order
        asked = {
            at: talk.live(as_of=on(at)) for at in ("2023-12-01", "2024-02-01", "2024-04-01", "2024-06-01")
        }
        assert list(asked.values()) == [
            [], ["Mara lives in Munich"], ["Mara lives in Hamburg"], ["Mara moved to Berlin"],
        ], order  # fmt: skip
        found = talk.memories.search("Where does Mara live?", kinds=["fact"], as_of=on("2024-02-01")).results
        assert [hit.memory.content for hit in found] == ["Mara lives in Munich"]
        history = talk.facts.history(talk.known("Mara lives in Hamburg").id).data
        assert [(f"{one.begins:%m}", one.ends and f"{one.ends:%m}", one.live) for one in history] == [
            ("01", "03", False), ("03", "05", False), ("05", None, True),
        ]  # fmt: skip
        change = history[1].changes[-1]
        assert (change.what, change.why, change.ids) == ("superseded", "replaced", [history[2].memory.id])


def test_a_person_who_comes_back_was_away(talk: Any) -> None:
    for at, text in [("2024-01-01", LIVES["2024-01-01"]), ("2024-05-01", LIVES["2024-05-01"])]:
        talk.say(text, at)
    talk.say("I live in Munich.", "2024-09-01")
    assert talk.live() == ["Mara lives in Munich"]
    assert talk.live(as_of=on("2024-06-01")) == ["Mara moved to Berlin"]
    assert talk.count() == 3
    talk.say("I live in Munich.", "2024-02-01")
    assert talk.count() == 3


def test_undo_takes_the_last_change_back_once(talk: Any) -> None:
    for at, text in LIVES.items():
        talk.say(text, at)
    oldest, last = talk.known("Mara lives in Munich"), talk.known("Mara moved to Berlin")
    middle = talk.known("Mara lives in Hamburg")
    for id_ in (oldest.id, oldest.id, middle.id, last.id):
        done = talk.facts.undo(id_)
        assert (done.undone, done.restored) == (last.id, [middle.id])
        assert talk.live() == ["Mara lives in Hamburg"]
    assert talk.live(as_of=on("2024-06-01")) == ["Mara lives in Hamburg"]
    history = talk.facts.history(oldest.id).data
    assert [one.memory.id for one in history] == [oldest.id, middle.id, last.id]
    assert [one.changes[-1].what for one in history] == ["superseded", "restored", "undone"]
    talk.say("I moved to Berlin.", "2024-08-01")
    assert talk.live() == ["Mara moved to Berlin"]
    assert talk.facts.undo(talk.known("Mara moved to Berlin").id).restored == [middle.id]
    assert talk.facts.undo(talk.memories.add("a note").memory.id).undone is None


def test_a_confirmed_fact_is_sure_until_another_takes_its_place(talk: Any) -> None:
    talk.say("I live in Munich.", "2024-01-01")
    munich = talk.known("Mara lives in Munich")
    assert munich.confidence <= 0.9
    confirmed = talk.facts.confirm(munich.id)
    assert (confirmed.confidence, confirmed.access_count) == (1.0, munich.access_count + 1)
    assert talk.facts.confirm(munich.id).access_count == munich.access_count + 2
    (version,) = talk.facts.history(munich.id).data
    assert [change.what for change in version.changes] == ["confirmed"]
    talk.say("I live in Hamburg.", "2024-02-01")
    hamburg = talk.known("Mara lives in Hamburg")
    with pytest.raises(Conflict, match=f"{hamburg.id} took its place"):
        talk.facts.confirm(munich.id)
    assert talk.facts.undo(hamburg.id).restored == [munich.id]
    with pytest.raises(Conflict, match="was taken back"):
        talk.facts.confirm(hamburg.id)
    assert talk.facts.confirm(munich.id).confidence == 1.0
    assert talk.facts.undo(munich.id).undone == hamburg.id  # still the last change
    talk.memories.update(munich.id, archived=True)
    with pytest.raises(Conflict, match="is archived"):
        talk.facts.confirm(munich.id)
    with pytest.raises(NotFound, match="no fact 'mem_"):
        talk.facts.confirm(talk.memories.add("a note").memory.id)


def test_a_fact_goes_with_its_last_message(talk: Any) -> None:
    munich = talk.say("I live in Munich.", "2024-01-01")
    berlin = talk.say("I moved to Berlin.", "2024-05-01")
    twice = [talk.say("My dog is Rex.", at) for at in ("2024-05-02", "2024-05-03")]
    talk.memories.delete(twice[0])
    assert talk.known("Mara's dog is Rex").source_refs == [twice[1]]
    talk.memories.delete(berlin)
    assert talk.live() == ["Mara lives in Munich", "Mara's dog is Rex"]
    assert talk.known("Mara lives in Munich").invalid_at is None
    talk.memories.forget([munich, twice[1]])
    assert talk.count() == 0


def resting(talk: Any, said: str, count: int) -> None:
    """Facts that rest on one message."""
    talk.uncompared(
        *(
            {
                "content": f"Mara owns book {i}",
                "user_id": "mara",
                "source_refs": [said],
                "occurred_at": on("2024-01-01"),
            }
            for i in range(count)
        )
    )


@pytest.mark.parametrize("how", ["delete", "edit", "forget"])
def test_what_rests_on_one_message_goes_in_steps(
    talk: Any, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it is gone once the call returns, and no transaction changed more than its share."""
    monkeypatch.setattr(provenance, "MARKS", 3)
    said = talk.memories.add("I own many books.", kind="message", user_id="mara").memory.id
    resting(talk, said, 10)
    assert len(talk.live()) == 10
    removed: list[int] = []

    def note(w: object, told: Sequence[object]) -> tuple[int, int]:
        removed.append(len(told))
        return 0, 0

    monkeypatch.setattr(talk.core.store, "cascades", [*talk.core.store.cascades, note])
    if how == "delete":
        talk.memories.delete(said)
    elif how == "edit":
        talk.memories.update(said, content="I own no book at all.")
    else:
        assert talk.memories.forget([said]).memories == 11
    assert talk.live() == []
    assert max(removed) == 3
    assert sum(removed) == 10 + (how != "edit")


def failing(talk: Any, monkeypatch: pytest.MonkeyPatch, times: int = 1_000) -> list[int]:
    """Lets so many attempts to release facts fail, those in the list that it returns."""
    real, left = talk.core.jobs.kinds[RELEASE_JOB], list(range(times))

    async def release(run: Any) -> Any:
        if left:
            left.pop()
            raise RuntimeError("the disk is full")
        return await real.handler(run)

    monkeypatch.setattr(job_kinds, "backoff", lambda attempt: 0.01)
    monkeypatch.setattr(provenance, "MARKS", 3)
    monkeypatch.setitem(talk.core.jobs.kinds, RELEASE_JOB, replace(real, handler=release))
    return left


def test_facts_go_after_more_failures_than_a_job_is_allowed(
    talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(talk, monkeypatch, talk.core.jobs.max_attempts + 3)
    said = talk.memories.add("I own many books.", kind="message", user_id="mara").memory.id
    resting(talk, said, 10)
    talk.memories.delete(said)
    until(talk.live, "the facts are gone", accept=not_)


def test_forgetting_says_what_is_not_erased_yet(talk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    left = failing(talk, monkeypatch)
    said = talk.memories.add("I own many books.", kind="message", user_id="mara").memory.id
    resting(talk, said, 10)
    with pytest.raises(StorageError, match="call forget again"):
        talk.memories.forget([said])
    left.clear()
    assert talk.memories.forget([said]).memories == 7
    assert talk.live() == []


def test_an_archive_has_no_facts_that_are_about_to_go(
    talk: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    left = failing(talk, monkeypatch)
    said = talk.memories.add("I own many books.", kind="message", user_id="mara").memory.id
    resting(talk, said, 10)
    talk.memories.delete(said)
    assert len(talk.live()) == 7
    left.clear()
    assert talk.rc.as_subject(talk.admin).archives.export_to(tmp_path / "all.zip").rows["memories"] == 0


def test_what_is_about_to_go_does_not_hold_again(talk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts of one message that supersede one another, or were put together: the first step takes what superseded or
    contained facts of the next ones. A fact that stays, since it rests on another message too, holds again."""
    left = failing(talk, monkeypatch)
    add = partial(talk.memories.add, kind="message", user_id="mara")
    said, other = add("I own many books.").memory.id, add("I own book 9.").memory.id
    resting(talk, said, 10)
    ids = {row.content: row.id for row in talk.memories.list(kinds=["fact"], limit=100).data}

    def arrange(w: Writing) -> None:
        held = fetch_ids(w.c, w.tenant, list(ids.values()))
        for number, by in ((7, 0), (8, 1), (9, 2)):
            row, place = held[ids[f"Mara owns book {number}"]], ids[f"Mara owns book {by}"]
            w.mark([row.seq], lambda row, by=place: versions.ended(row, by, 1, 1, "superseded"))  # type: ignore[misc]
        both = compact_json([said, other])
        w.mark([held[ids["Mara owns book 9"]].seq], lambda row: row._replace(source_refs=both))

    talk.core.store.transact(talk.tenant, arrange).result()
    talk.memories.delete(said)
    assert {"Mara owns book 7", "Mara owns book 8"}.isdisjoint(talk.live())
    assert len(talk.live()) < 8
    left.clear()
    until(talk.live, "one fact is left", accept=lambda found: found == ["Mara owns book 9"])
    talk.memories.delete(other)
    assert talk.live() == []


def test_imported_facts_that_supersede_one_another_in_a_ring_are_deleted(talk: Any) -> None:
    said = talk.say("I own many books.")
    lines = [
        json.dumps(
            {
                "id": f"mem_{own}",
                "kind": "fact",
                "content": f"Mara owns book {own}",
                "source_refs": [said],
                "superseded_by": f"mem_{by}",
                "invalid_at": "2024-05-01T10:00:00Z",
            }
        )
        for own, by in ((1, 2), (2, 1), (3, 1))
    ]
    header = next(iter(talk.memories.export()))
    assert talk.memories.import_from([header, *(line.encode() + b"\n" for line in lines)]).created == 3
    talk.memories.delete(said)
    assert talk.memories.list(kinds=["fact"], scopes=["all"], include_archived=True).data == []


def test_copies_in_another_scope_are_versions_of_one_another(talk: Any) -> None:
    for at in ("2024-01-01", "2024-05-01"):
        talk.say(LIVES[at], at, who="ada")
    munich, berlin = talk.known("Ada lives in Munich"), talk.known("Ada moved to Berlin")
    talk.memories.add("Ada lives in Berlin-Mitte", kind="fact", user_id="bob")
    talk.settle()
    lines = list(talk.memories.export(scopes=["user:ada"]))
    done = talk.memories.import_from(lines, scope="user:bob")
    assert (done.created, done.conflicts) == (4, [])
    of_bob = {
        row.content: row
        for row in talk.memories.list(scopes=["user:bob"], as_of=on("2024-02-01"), limit=100).data
    }
    copy = of_bob[munich.content]
    history = talk.facts.history(copy.id).data
    assert [(one.memory.content, one.memory.user_id) for one in history] == [
        (munich.content, "bob"),
        (berlin.content, "bob"),
    ]
    assert [change.ids for change in history[0].changes] == [[history[1].memory.id]]
    assert (copy.superseded_by, copy.invalid_at) == (history[1].memory.id, munich.invalid_at)
    (source,) = copy.source_refs
    assert (talk.memories.get(source).user_id, talk.memories.get(source).content) == (
        "bob",
        LIVES["2024-01-01"],
    )
    talk.memories.delete(berlin.id)
    assert talk.live(scopes=["user:ada"]) == [munich.content]
    assert talk.memories.get(copy.id) == copy
    assert munich.content not in talk.live(scopes=["user:bob"])
    assert talk.memories.import_from(lines, scope="user:bob").created == 0
    talk.memories.delete(history[1].memory.id)
    assert munich.content in talk.live(scopes=["user:bob"])


def test_links_of_a_copy_to_what_is_not_copied(talk: Any) -> None:
    """A fact stays superseded, and keeps its sources."""
    said = [talk.memories.add(text, kind="message", user_id="ada").memory.id for text in ("One.", "Two.")]
    ended = {"superseded_by": "mem_new", "invalid_at": "2024-05-01T10:00:00Z"}
    facts: list[dict[str, Any]] = [
        {"id": "mem_old", "content": "Ada owns a cat", "source_refs": said, **ended},
        {"id": "mem_new", "content": "Ada owns two cats"},
        {"id": "mem_part", "content": "Ada plays chess", "metadata": {"context_refs": said}},
        {"id": "mem_all", "content": "Ada plays games", "metadata": {"consolidates": ["mem_part", 7]}},
    ]
    lines = [json.dumps({"kind": "fact", "user_id": "ada", **fact}).encode() for fact in facts]
    assert talk.memories.import_from(lines).created == 4
    left_out = ("Two.", "Ada owns two cats")
    exported = [*talk.memories.export(scopes=["user:ada"])]
    some = [line for line in exported if json.loads(line).get("content") not in left_out]
    assert talk.memories.import_from(some, scope="user:bob").created == 4
    _, *rows = [json.loads(line) for line in talk.memories.export(scopes=["user:bob"])]
    copies = {row["content"]: row for row in rows}
    cat, part = copies["Ada owns a cat"], copies["Ada plays chess"]
    assert cat["source_refs"] == part["metadata"]["context_refs"] == [copies["One."]["id"], said[1]]
    assert copies["Ada plays games"]["metadata"]["consolidates"] == [part["id"], 7]
    assert cat["superseded_by"] != "mem_new"
    assert cat["invalid_at"] == ended["invalid_at"]
    talk.memories.delete("mem_new")
    assert sorted(talk.live(scopes=["user:ada"])) == ["Ada owns a cat", "Ada plays chess", "Ada plays games"]
    assert sorted(talk.live(scopes=["user:bob"])) == ["Ada plays chess", "Ada plays games"]


def test_a_deletion_is_not_cancelled_half_way(talk: Any) -> None:
    said = talk.memories.add("I own many books.", kind="message", user_id="mara").memory.id
    resting(talk, said, 2)
    jobs, told = talk.core.jobs, {"sources": [said], "until": provenance.LATEST, "edited": False}
    place = jobs.enqueue(talk.tenant, RELEASE_JOB, told, dedup_key="said", delay=60.0)
    id_ = talk.rc.portal.call(place)
    with pytest.raises(Conflict, match="half way"):
        talk.memories.cancel(id_)
    talk.memories.forget(scopes=["all"], text="many books")
    assert talk.memories.job(id_).state == "completed"
    assert talk.live() == []


def test_undo_never_brings_back_what_lost_its_source(talk: Any) -> None:
    munich = talk.say("I live in Munich.", "2024-01-01")
    talk.say("I moved to Berlin.", "2024-05-01")
    berlin = talk.known("Mara moved to Berlin").id
    talk.memories.delete(munich)
    assert talk.facts.undo(berlin).undone is None
    assert talk.live() == ["Mara moved to Berlin"]
    assert [one.memory.id for one in talk.facts.history(berlin).data] == [berlin]


def test_an_edited_message_is_read_again(talk: Any) -> None:
    session = "ses"
    said = talk.say("I live in Munich.", "2024-01-01", session_id=session)
    talk.say("I like tea.", "2024-01-02", session_id=session)
    sessions = talk.rc.as_subject(talk.admin).sessions
    sessions.update_message(session, said, "I live in Madrid.")
    talk.settle()
    assert sorted(talk.live()) == ["Mara likes tea", "Mara lives in Madrid"]
    assert talk.known("Mara lives in Madrid").source_refs == [said]
    sessions.update_message(session, said, "Never mind where.")
    talk.settle()
    assert talk.live() == ["Mara likes tea"]
    assert talk.count() == 1
    sessions.delete(session)
    assert talk.count() == 0


def test_links_can_be_cut_and_the_fact_stays(talk: Any) -> None:
    said = talk.say("I like tea.", "2024-01-02")
    store = talk.core.store
    assert store.transact(talk.tenant, lambda w: cut(w, [said], "resp_1")).result() is False
    talk.memories.delete(said)
    assert talk.live() == ["Mara likes tea"]
    assert talk.known("Mara likes tea").source_refs == []


ALIKE = [
    "The project antwort uses Postgres",
    "The project antwort uses Postgres in production",
    "In production, the project antwort utilizes Postgres.",
]


def alike(talk: Any) -> list[str]:
    """The ids of messages, from each of which a fact was learned that says what the others say."""
    said = [talk.memories.add(text, kind="message", user_id="mara").memory.id for text in ALIKE]
    talk.uncompared(
        *(
            {
                "content": text,
                "user_id": "mara",
                "source_refs": [id_],
                "occurred_at": on(f"2024-0{n}-01"),
            }
            for n, (text, id_) in enumerate(zip(ALIKE, said, strict=True), 1)
        )
    )
    return said


def test_consolidating_twice_changes_nothing_the_second_time(talk: Any) -> None:
    said = alike(talk)
    talk.memories.add("The user Ben likes antwort, the project.", kind="fact", user_id="ben")
    done = talk.facts.consolidate()
    (one,) = done.merged
    before = talk.rows("SELECT * FROM memories WHERE tenant_id = ? ORDER BY seq", talk.tenant)
    assert talk.facts.consolidate().merged == []
    assert talk.facts.consolidate(scopes=["user:mara"]).merged == []
    assert talk.rows("SELECT * FROM memories WHERE tenant_id = ? ORDER BY seq", talk.tenant) == before
    whole = talk.memories.get(one.id)
    assert whole.content == f"{ALIKE[0]}. {ALIKE[1]}. {ALIKE[2]}"
    assert set(said) <= set(whole.source_refs)
    assert whole.user_id == "mara"
    assert len(talk.live()) == 2
    parts = [talk.known(text) for text in ALIKE]
    assert [part.superseded_by for part in parts] == [one.id] * 3
    assert [row.content for row in talk.memories.list(as_of=on("2024-02-15"), kinds=["fact"]).data] == ALIKE[
        1::-1
    ]


def test_a_consolidation_goes_with_any_of_its_sources(talk: Any) -> None:
    said = alike(talk)
    talk.facts.consolidate()
    talk.memories.delete(said[1])
    assert talk.live() == [ALIKE[0], ALIKE[2]]
    assert talk.count() == 2
    again = talk.facts.consolidate().merged[0].id
    undone = talk.facts.undo(again)
    assert undone.undone == again
    assert talk.live() == [ALIKE[0], ALIKE[2]]
    assert talk.facts.undo(again) == undone
    assert talk.facts.consolidate().merged == []


def test_what_changes_a_part_takes_it_apart(talk: Any) -> None:
    other = "Mara's budget is 400 euros for the garden this year"
    talk.say("My budget is 400 euros for the garden.", "2024-01-01")
    talk.uncompared(
        {"content": other, "user_id": "mara", "channel_id": "talk", "occurred_at": on("2024-01-02")}
    )
    assert len(talk.facts.consolidate().merged) == 1
    assert len(talk.live()) == 1
    talk.say("My budget is 500 euros for the garden.", "2024-06-01")
    assert talk.live() == ["Mara's budget is 500 euros for the garden"]
    assert "Mara's budget is 400 euros for the garden" in talk.live(as_of=on("2024-03-01"))


def test_unused_and_surplus_facts_are_archived(talk: Any) -> None:
    now = now_micros()
    day = 86_400_000_000
    ids = [
        talk.memories.add(f"Mara owns {what}", kind="fact", user_id="mara", confidence=c).memory.id
        for what, c in [("a boat", 0.9), ("a kite", 0.2), ("a lamp", 0.8), ("a harp", 0.7)]
    ]
    made = "UPDATE memories SET created_at = ? WHERE tenant_id = ? AND id = ?"
    talk.change(made, now - 181 * day, talk.tenant, ids[0])
    talk.change(made, now - 179 * day, talk.tenant, ids[2])
    assert talk.facts.sweep().unused == 1
    assert talk.live() == ["Mara owns a kite", "Mara owns a lamp", "Mara owns a harp"]
    operator = talk.rc.knowledge.admin
    operator.set_quotas({"max_entries": 2, "auto_archive_days": 0}, talk.tenant)
    talk.memories.count_access([ids[1]] * 1)
    done = talk.facts.sweep()
    assert (done.unused, done.over) == (0, 1)
    assert talk.live() == ["Mara owns a kite", "Mara owns a harp"]  # the lamp was not used for 179 days
    assert talk.facts.sweep().over == 0
    talk.change(made, now - 400 * day, talk.tenant, ids[3])
    assert talk.facts.sweep().unused == 0
    assert len(talk.live(include_archived=True)) == 4


def test_the_clock_places_each_job_once(talk: Any) -> None:
    talk.say("I like tea.")
    clock = Clock(talk.core)

    def look() -> list[str]:
        return list(talk.rc.portal.call(clock.look()))

    look()
    assert look() == []
    for kind in ("facts.sweep", "facts.consolidate"):
        last = timedelta(days=2) // timedelta(microseconds=1)
        talk.change("UPDATE meta SET value = ? WHERE key = ?", str(now_micros() - last), kind)
    assert look() == ["facts.sweep", "facts.consolidate"]
    assert look() == []
    talk.settle()
    done = talk.rows(
        "SELECT kind, state FROM jobs WHERE tenant_id = ? AND kind <> 'facts.extract'", talk.tenant
    )
    assert {("facts.sweep", "completed"), ("facts.consolidate", "completed")} <= set(done)
