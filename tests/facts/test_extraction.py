"""Facts by a model, whatever it answers and whenever it is away: nothing lost, nothing twice, nothing invented."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memoranda.app.blocking import BlockingMemoranda
from memoranda.errors import ModelUnavailable, NotFound, StorageError
from memoranda.facts import extraction
from memoranda.facts.extraction import Extraction
from memoranda.facts.parsing import MOST
from memoranda.facts.rules import captured
from memoranda.providers.chat.script import Play, script_of
from memoranda.types import Subject
from support.waiting import until

from .conftest import on

TEA = {"fact": "Mara prefers green tea", "confidence": 0.9, "tags": ["food"], "messages": [1]}
BEES = {"fact": "Mara is allergic to bees", "confidence": 0.8, "messages": [1]}
SAID = "I am all for green tea. And bees are dangerous: I am allergic."
LIST = json.dumps([TEA, BEES])
BOTH = ["Mara prefers green tea", "Mara is allergic to bees"]


def settings(folder: Path, **facts: Any) -> dict[str, Any]:
    """What a product is opened with, whose model plays no turn yet."""
    path = folder / "script.json"
    path.write_text(json.dumps({"turns": [{"when": "never asked", "text": "x"}]}))
    return {
        "embedder": {"url": "hash:256"},
        "model": {"url": f"scripted:{path}", "retries": 0},
        "facts": {"extraction": "eager", "reconcile": False} | facts,
    }


@pytest.fixture(scope="module")
def house(lasting_home: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingMemoranda]:
    """A product with a scripted model."""
    with lasting_home.empty(**settings(tmp_path_factory.mktemp("script"))) as opened:
        yield opened


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that failed is asked again at once."""
    monkeypatch.setattr(extraction, "FIRST_WAIT", 0.02)


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (LIST, BOTH),
        (f"Here you are:\n```json\n{LIST}\n```", BOTH),
        (LIST[:-30], BOTH[:1]),
        (json.dumps(BOTH), BOTH),
        (f"I found two things:\n- {BOTH[0]}\n- {BOTH[1]}", BOTH),
        (". ".join(BOTH), BOTH),
        ("[]", []),
        ("There is nothing worth keeping here.", []),
        (json.dumps([TEA | {"fact": "Mara plays the tuba", "messages": [1]}, BEES]), BOTH[1:]),
        (json.dumps([TEA | {"fact": "Mara drinks 12 cups of green tea"}]), []),
        (json.dumps([TEA | {"messages": [9, 40]}, BEES | {"messages": None}]), BOTH),
        (json.dumps([TEA, TEA | {"fact": "Mara  prefers green TEA."}]), BOTH[:1]),
    ],
)
@pytest.mark.rows_in("sqlite")
def test_whatever_the_model_answers(talk: Any, answer: str, kept: list[str]) -> None:
    asked = talk.script(answer)
    said = talk.say(SAID, "2024-05-01")
    assert [text.rstrip(".") for text in talk.live()] == kept
    assert [talk.known(text).source_refs for text in talk.live()] == [[said]] * len(kept)
    assert "[1] 2024-05-01 00:00 Mara: I am all for green tea" in asked[0].messages[1]["content"]
    talk.facts.extract(talk.rows("SELECT id FROM sessions WHERE tenant_id = ?", talk.tenant)[0][0])
    assert len(asked) == 1
    assert talk.count() == len(kept)


@pytest.mark.rows_in("sqlite")
def test_ten_thousand_facts_are_fifty(talk: Any) -> None:
    many = [{"fact": f"Mara owns book q{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}qx"} for n in range(10_000)]
    talk.script(json.dumps(many))
    talk.say("I own " + " ".join(one["fact"].rsplit(" ", 1)[1] for one in many[:676]) + " book, all of them.")
    assert MOST - 3 <= talk.count() <= MOST  # words may share their place in a hash of 256


def test_a_model_that_is_away_is_waited_for(talk: Any, patient: None) -> None:
    """Everything said meanwhile is read when it is back: nothing is lost, nothing is twice."""
    talk.script({"status": 503, "repeat": True})
    place = {"session_id": "s"}
    subject = talk.rc.as_subject(talk.admin).sessions
    for n, text in enumerate([SAID, "I like the rain", "I like the snow"]):
        subject.observe([{"content": text, "user_id": "mara", "speaker": "Mara"}], **place)
        until(lambda n=n: state(talk)[1] > n, "another attempt")  # type: ignore[misc]
    held = subject.get("s")
    assert (held.extraction, str(held.facts_failure).partition(":")[0]) == ("eager", "ModelUnavailable")
    assert (talk.count(), state(talk)[2]) == (0, 0)
    rain = {"fact": "Mara likes the rain", "messages": [2]}
    talk.script(json.dumps([TEA, BEES, rain, {"fact": "Mara likes the snow", "messages": [3]}]))
    talk.settle()
    assert talk.live() == [*BOTH, "Mara likes the rain", "Mara likes the snow"]
    assert state(talk)[:2] == (None, 0)
    jobs = talk.rows("SELECT state FROM jobs WHERE tenant_id = ? AND kind = 'facts.extract'", talk.tenant)
    assert set(jobs) == {("completed",)}


def test_a_message_is_read_while_a_changed_one_waits_for_the_model(
    talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction, "FIRST_WAIT", 2.0)
    talk.script(json.dumps([TEA]))
    said = talk.say(SAID, session_id="s")
    sessions = talk.rc.as_subject(talk.admin).sessions
    asked = talk.script({"status": 503, "repeat": True})
    sessions.update_message("s", said, "I am all for black tea.")
    until(lambda: asked, "an attempt")
    until(
        lambda: talk.rows("SELECT 1 FROM jobs WHERE tenant_id = ? AND error IS NOT NULL", talk.tenant),
        "it failed",
    )
    sessions.observe([{"content": "I like the rain", "user_id": "mara", "speaker": "Mara"}], session_id="s")
    until(lambda: state(talk)[1], "an attempt of the new message")
    rain, black = {"fact": "Mara likes the rain"}, TEA | {"fact": "Mara prefers black tea"}
    talk.script(
        {"text": json.dumps([rain]), "when": "the rain", "repeat": True},
        {"text": json.dumps([black]), "when": "black tea", "repeat": True},
    )
    talk.settle()
    assert sorted(talk.live()) == ["Mara likes the rain", "Mara prefers black tea"]
    assert state(talk)[:2] == (None, 0)


def test_a_changed_message_is_read_again_after_its_session_is_merged(talk: Any, patient: None) -> None:
    later = {"content": "I am all for green tea.", "occurred_at": "2024-05-01T11:20:00Z"}
    earlier = {"content": "Hello there.", "occurred_at": "2024-05-01T10:30:00Z"}
    between = {"content": "Are you there?", "occurred_at": "2024-05-01T10:55:00Z"}
    sessions = talk.rc.as_subject(talk.admin).sessions

    def say(message: dict[str, str]) -> str:
        (one,) = sessions.observe([message | {"user_id": "mara", "speaker": "Mara"}], channel_id="c")
        return one.message.id

    talk.script({"text": json.dumps([TEA]), "when": "green tea"}, {"text": "[]", "repeat": True})
    said = say(later)
    talk.settle()
    say(earlier)
    talk.settle()
    talk.script({"status": 503, "repeat": True})
    session = talk.rows("SELECT session_id FROM messages WHERE tenant_id = ? AND id = ?", talk.tenant, said)[
        0
    ][0]
    sessions.update_message(session, said, "I am all for black tea.")
    say(between)
    assert talk.rows("SELECT count(*) FROM sessions WHERE tenant_id = ?", talk.tenant) == [(1,)]
    black = json.dumps([TEA | {"fact": "Mara prefers black tea"}])
    talk.script({"text": black, "when": "black tea", "repeat": True}, {"text": "[]", "repeat": True})
    talk.settle()
    assert talk.live() == ["Mara prefers black tea"]


def state(talk: Any) -> tuple[Any, int, int]:
    sql = "SELECT facts_failure, facts_attempts, facts_seq FROM sessions WHERE tenant_id = ?"
    return talk.rows(sql, talk.tenant)[0]  # type: ignore[no-any-return]


@pytest.mark.rows_in("sqlite")
def test_facts_are_asked_for_as_json_and_after_a_failure_in_words_alone(talk: Any, patient: None) -> None:
    asked = talk.script({"status": 500}, {"text": LIST, "repeat": True})
    talk.say(SAID)
    talk.settle()
    assert talk.live() == BOTH
    first, second = (ask.response_format for ask in asked[:2])
    assert first["json_schema"]["schema"]["required"] == ["facts"]
    assert second is None
    assert all(ask.background for ask in asked)
    verdicts = '{"pairs": [{"line": 1, "is": "unrelated"}]}'
    asked = talk.script({"text": verdicts, "when": "earlier: "}, {"text": LIST, "repeat": True})
    talk.say(SAID, who="noor")
    assert {ask.response_format["json_schema"]["name"] for ask in asked} == {"facts"}


@pytest.mark.rows_in("sqlite")
def test_what_a_caller_waits_for_is_not_in_the_background(home: Any, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"turns": [{"text": LIST, "repeat": True}]}))
    with home.open(jobs={"workers": 0}, model={"url": f"scripted:{script}"}) as rc:
        rc.sessions.observe([{"content": SAID}], session_id="one", extraction="lazy")
        rc.facts.extract("one")
        asked = rc.inner.core.model.asked
        assert asked
        assert not any(ask.background for ask in asked)


@pytest.mark.rows_in("sqlite")
def test_extract_also_reads_changed_messages_again(home: Any, tmp_path: Path) -> None:
    """Also where no worker does: the facts of the new text are there when `extract` returns."""
    with home.open(jobs={"workers": 0}, **settings(tmp_path)) as rc:
        black = json.dumps([TEA | {"fact": "Mara prefers black tea"}])
        script(rc, {"text": LIST}, {"text": black}, {"status": 503})
        said = {"content": SAID, "user_id": "mara", "speaker": "Mara"}
        (kept,) = rc.sessions.observe([said], session_id="one")
        assert rc.facts.extract("one").kept == 2
        rc.sessions.update_message("one", kept.message.id, "I am all for black tea.")
        assert rc.facts.extract("one").kept == 1
        assert contents(rc) == {"Mara prefers black tea"}
        assert not any(ask.background for ask in rc.inner.core.model.asked)
        rc.sessions.update_message("one", kept.message.id, "I am all for white tea.")
        with pytest.raises(ModelUnavailable, match="changed message of session 'one': ModelUnavailable"):
            rc.facts.extract("one")
        script(rc, {"text": json.dumps([TEA | {"fact": "Mara prefers white tea"}])})
        assert rc.facts.extract("one").kept == 1
        assert contents(rc) == {"Mara prefers white tea"}


def contents(rc: BlockingMemoranda) -> set[str]:
    """What the live facts say."""
    return {fact.content for fact in rc.memories.list(kinds=["fact"]).data}


@pytest.mark.rows_in("sqlite")
def test_a_model_that_says_nothing_or_refuses_holds_nothing_up_for_ever(talk: Any, patient: None) -> None:
    asked = talk.script({"text": ""}, {"text": ""}, {"text": ""}, {"text": LIST, "when": "rain"})
    talk.say("Good to know: we met in the garden.", session_id="s")
    assert len(asked) == extraction.GIVES_UP
    assert talk.count() == 0
    talk.script(
        {"status": 400}, {"status": 400}, {"status": 400}, {"status": 401}, {"text": LIST, "when": "rain"}
    )
    talk.say("Something that a filter does not like", session_id="s")
    assert talk.count() == 0
    talk.say(f"{SAID} Also, it rains: rain.", session_id="s")
    assert talk.live() == BOTH


def test_dying_between_answer_and_write_loses_and_doubles_nothing(home: Any, tmp_path: Path) -> None:
    """The first process is stopped while the model answers; the second takes the job up."""
    given = settings(tmp_path)
    with home.open(**given) as first:
        script(first, {"text": LIST, "pause_at": 0})
        first.sessions.observe([{"content": SAID, "speaker": "Mara"}], channel_id="c")
        until(lambda: first.inner.core.model.asked, "a question of the model")
    with home.open(**given, jobs={"workers": 0}) as idle:
        assert idle.memories.count(kinds=["fact"]) == 0
    Path(given["model"]["url"].partition(":")[2]).write_text(json.dumps({"turns": [{"text": LIST}]}))
    with home.open(**given) as second:  # it takes the job up at once: the model is ready before
        until(lambda: second.memories.count(kinds=["fact"]) == 2, "both facts")
    with home.open(**given) as third:
        script(third, {"text": LIST, "repeat": True})
        (session,) = third.inner.core.store.db.read(lambda c: c.select("SELECT id FROM sessions", []))
        assert third.facts.extract(session[0]).kept == 0
        change = (
            "UPDATE sessions SET facts_seq = 0 RETURNING 1"  # as if it had died before it was written down
        )
        third.inner.core.store.db.write(lambda c: c.select(change, [])).result()
        done = third.facts.extract(session[0])
        assert done.kept == 0  # where the worker was first, there is nothing left to join
        assert third.memories.count(kinds=["fact"]) == 2


def script(rc: BlockingMemoranda, *turns: dict[str, Any]) -> None:
    """What the model of a product says from here on."""
    model: Any = rc.inner.core.model
    model.play = Play(script_of(list(turns)))


@pytest.mark.rows_in("sqlite")
def test_a_write_that_fails_leaves_nothing_half_done(talk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    talk.script(LIST, LIST)
    real = extraction.learn

    def broken(*args: Any) -> Any:
        real(*args)
        raise StorageError("the disk is full")

    monkeypatch.setattr(extraction, "learn", broken)
    with monkeypatch.context() as m:
        m.setattr("memoranda.store.job_kinds.backoff", lambda attempt: 0.05)
        subject = talk.rc.as_subject(talk.admin).sessions
        subject.observe([{"content": SAID, "user_id": "mara", "speaker": "Mara"}], session_id="s")
        until(lambda: talk.core.model.asked, "a question of the model")
        time.sleep(0.05)
        assert talk.count() == 0
        monkeypatch.setattr(extraction, "learn", real)
        talk.settle()
    assert talk.live() == BOTH


@pytest.mark.rows_in("sqlite")
def test_what_goes_while_the_model_answers_leaves_no_fact(talk: Any) -> None:
    talk.script({"text": LIST, "pause_at": 0})
    sessions = talk.rc.as_subject(talk.admin).sessions
    (kept,) = sessions.observe([{"content": SAID, "user_id": "mara", "speaker": "Mara"}], session_id="s")
    until(lambda: talk.core.model.asked, "a question of the model")
    sessions.delete_message("s", kept.message.id)
    talk.core.model.play.resume()
    talk.settle()
    assert talk.count() == 0


@pytest.mark.rows_in("sqlite")
def test_what_changes_while_the_model_answers_is_read_again(talk: Any) -> None:
    def fact(of: str) -> str:
        return json.dumps([TEA | {"fact": f"Mara prefers {of} tea"}])

    talk.script({"text": LIST, "pause_at": 0}, fact("black"))
    sessions = talk.rc.as_subject(talk.admin).sessions
    (kept,) = sessions.observe([{"content": SAID, "user_id": "mara", "speaker": "Mara"}], session_id="s")
    until(lambda: talk.core.model.asked, "a question of the model")
    sessions.update_message("s", kept.message.id, "I am all for black tea.")
    talk.core.model.play.resume()
    talk.settle()
    assert talk.live() == ["Mara prefers black tea"]
    asked = talk.script({"text": fact("white"), "pause_at": 0}, fact("red"))
    sessions.update_message(
        "s", kept.message.id, "I am all for white tea."
    )  # it was read before: a job of its own
    until(lambda: asked, "the question about the white tea")
    sessions.update_message("s", kept.message.id, "I am all for red tea.")
    talk.core.model.play.resume()
    talk.settle()
    assert (talk.live(), talk.count()) == (["Mara prefers red tea"], 1)


@pytest.mark.rows_in("sqlite")
def test_what_changes_before_its_job_has_ended_is_read_again(
    talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fact(of: str) -> str:
        return json.dumps([TEA | {"fact": f"Mara prefers {of} tea"}])

    talk.script(fact("black"), fact("white"), fact("red"))
    sessions = talk.rc.as_subject(talk.admin).sessions
    (kept,) = sessions.observe([{"content": SAID, "user_id": "mara", "speaker": "Mara"}], session_id="s")
    talk.settle()
    extract, go_on = Extraction.extract, threading.Event()

    async def slowly(*args: Any) -> Any:
        learned = await extract(*args)
        while not go_on.is_set():
            await asyncio.sleep(0.01)
        return learned

    monkeypatch.setattr(Extraction, "extract", slowly)
    sessions.update_message("s", kept.message.id, "I am all for white tea.")
    until(lambda: talk.live() == ["Mara prefers white tea"], "a fact about white tea")
    sessions.update_message("s", kept.message.id, "I am all for red tea.")
    go_on.set()
    talk.settle()
    assert talk.live() == ["Mara prefers red tea"]


def test_lazy_facts_come_when_a_session_is_closed(home: Any, tmp_path: Path) -> None:
    with home.open(**settings(tmp_path, extraction="lazy")) as rc:
        script(rc, {"text": LIST})
        rc.sessions.observe([{"content": SAID, "speaker": "Mara"}], channel_id="c")
        (session,) = rc.inner.core.store.db.read(lambda c: c.select("SELECT id FROM sessions", []))
        time.sleep(0.1)
        assert rc.inner.core.model.asked == []
        rc.sessions.close(session[0])
        until(lambda: rc.memories.count(kinds=["fact"]) == 2, "both facts")


@pytest.mark.rows_in("sqlite")
def test_extraction_is_opted_into_and_out_of(talk: Any) -> None:
    asked = talk.script({"text": LIST, "repeat": True})
    talk.say(SAID, extraction=False)
    assert asked == []
    with pytest.raises(NotFound):
        talk.rc.as_subject(Subject(tenant_id="elsewhere")).facts.extract(
            talk.rows("SELECT id FROM sessions WHERE tenant_id = ?", talk.tenant)[0][0]
        )


def fact(text: str, **fields: Any) -> str:
    """An answer of the model with one fact."""
    return json.dumps({"facts": [{"text": text, "messages": [1]} | fields]})


VEGAN, STEAK = "Mara is vegan and eats plants", "Mara eats steak"


def changed_mind(talk: Any, **fields: Any) -> list[Any]:
    """Two facts, the second with what the model says of the first; what the model was asked."""
    asked = talk.script(fact(VEGAN), fact(STEAK, **fields))
    talk.say("I am vegan and eat plants.", "2024-01-01")
    talk.say("I eat steak now. No plants any more!", "2024-02-01")
    return list(asked)


@pytest.mark.rows_in("sqlite")
@pytest.mark.parametrize("op", ["replaces F1", "replaces 1", "Replace F1."])
def test_one_call_takes_facts_and_says_what_they_end(talk: Any, op: str) -> None:
    asked = changed_mind(talk, op=op, quote="no plants any more")
    assert len(asked) == 2
    assert f"Known facts:\nF1. 2024-01-01: {VEGAN}\n" in asked[1].messages[1]["content"]
    assert talk.live() == [STEAK]
    assert talk.live(as_of=on("2024-01-15")) == [VEGAN]
    before, after = talk.facts.history(talk.known(VEGAN).id).data
    assert (before.changes[-1].why, before.changes[-1].quote) == ("replaced", "no plants any more")
    talk.facts.undo(after.memory.id)
    assert talk.live() == [VEGAN]


@pytest.mark.rows_in("sqlite")
@pytest.mark.parametrize(
    "fields",
    [
        {"op": "replaces F1"},
        {"op": "replaces F1", "quote": "I hate plants"},
        {"op": "ends F1", "quote": "!"},
        {"op": "replaces F2", "quote": "I eat steak now"},
        {"op": "replaces", "quote": "I eat steak now"},
        {"op": "refines F1", "quote": "I eat steak now"},
        {"op": "add F1", "quote": "I eat steak now"},
        {"op": None},
    ],
)
def test_without_the_words_of_a_message_nothing_ends(talk: Any, fields: dict[str, Any]) -> None:
    changed_mind(talk, **fields)
    assert talk.live() == [VEGAN, STEAK]


@pytest.mark.rows_in("sqlite")
def test_what_ends_a_fact_in_its_own_words_is_told_in_those_of_the_message(talk: Any) -> None:
    talk.script(fact("Mara has a dog"), fact("Mara has a dog", op="ends F1", quote="My dog has died"))
    talk.say("I have a dog.", "2024-01-01")
    talk.say("My dog has died.", "2024-02-01")
    assert talk.live() == ["My dog has died"]


@pytest.mark.rows_in("sqlite")
def test_the_same_fact_gets_another_source_but_not_another_number(talk: Any) -> None:
    same = {"op": "same F1"}
    talk.script(
        fact("Mara pays 900 of rent"), fact("Mara's rent is 900", **same), fact("Mara's rent is 950", **same)
    )
    said = [talk.say(f"My rent is {euros}.", f"2024-0{n}-01") for n, euros in ((1, 900), (2, 900), (3, 950))]
    assert talk.live() == ["Mara pays 900 of rent", "Mara's rent is 950"]
    assert talk.known("Mara pays 900 of rent").source_refs == said[:2]


@pytest.mark.rows_in("sqlite")
def test_facts_of_several_people_are_compared_each_persons_alone(talk: Any) -> None:
    """No one's facts are in a prompt with the words of another, who might make the model repeat them."""
    msgspec.structs.force_setattr(talk.core, "config", replace_facts(talk.core.config, reconcile=True))
    boat = {"text": "Mara sold the boat", "messages": [1], "op": "ends F1", "quote": "I sold the boat"}
    asked = talk.script(
        fact("Mara owns a boat"),
        json.dumps({"facts": [boat, {"text": "Ben likes the rain", "messages": [2]}]}),
        json.dumps({"facts": [boat | {"quote": "sold the boat"}]}),
    )
    try:
        talk.say("I own a boat.", "2024-01-01", session_id="alone", channel_id=None)
        talk.rc.as_subject(talk.admin).sessions.observe(
            [
                {"content": "I sold the boat.", "user_id": "mara", "speaker": "Mara"},
                {"content": "I like the rain.", "user_id": "ben", "speaker": "Ben"},
            ],
            channel_id="talk",
        )
        talk.settle()
    finally:
        msgspec.structs.force_setattr(talk.core, "config", replace_facts(talk.core.config, reconcile=False))
    assert sorted(talk.live()) == ["Ben likes the rain", "Mara sold the boat"]
    shown = [ask.messages[1]["content"] for ask in asked]
    assert len(shown) == 3
    assert "Known facts" not in shown[1]
    assert "F1. 2024-01-01: Mara owns a boat" in shown[2]
    assert "rain" not in shown[2]


def replace_facts(config: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(config, facts=msgspec.structs.replace(config.facts, **fields))


BERLIN, POTSDAM = "Tim lives in Kantstrasse 5 in Berlin", "Tim lives in Kantstrasse 5 in Potsdam"


@pytest.mark.rows_in("sqlite")
@pytest.mark.parametrize(("gone", "left"), [(0, []), (1, [BERLIN])])
def test_a_correction_keeps_no_word_of_a_deleted_message(talk: Any, gone: int, left: list[str]) -> None:
    talk.script(fact(BERLIN), fact(POTSDAM, op="replaces F1", quote="Potsdam, not Berlin"), "[]")
    place = {"session_id": f"home of {talk.tenant}", "who": "tim"}
    said = [
        talk.say("I live in Kantstrasse 5 in Berlin.", **place),
        talk.say("No: Potsdam, not Berlin.", **place),
    ]
    assert talk.live() == [POTSDAM]
    assert talk.known(POTSDAM).metadata["context_refs"] == [said[0]]
    talk.rc.as_subject(talk.admin).sessions.delete_message(place["session_id"], said[gone])
    talk.settle()
    assert (talk.live(), talk.count()) == (left, len(left))


@pytest.mark.rows_in("sqlite")
def test_a_direct_fact_lends_its_words_until_it_is_deleted(talk: Any) -> None:
    direct = talk.memories.add(BERLIN, kind="fact", user_id="tim", occurred_at=on("2024-01-01")).memory.id
    talk.script(fact(POTSDAM, op="replaces F1", quote="I moved to Potsdam"))
    talk.say("I moved to Potsdam.", "2024-02-01", who="tim")
    assert (talk.live(), talk.known(POTSDAM).metadata["context_refs"]) == ([POTSDAM], [direct])
    talk.script("[]", "[]")
    talk.memories.delete(direct)
    talk.settle()
    assert talk.live() == []


def facts(rc: BlockingMemoranda) -> list[str]:
    return [row.content for row in rc.memories.list(kinds=["fact"], order="asc").data]


def merged(text: str, *numbers: int) -> str:
    return json.dumps({"facts": list(numbers), "text": text})


@pytest.mark.rows_in("sqlite")
def test_a_model_consolidates_and_is_not_believed_everything(talk: Any) -> None:
    texts = ["The project antwort is in Go.", "In Go, the project antwort has 3 parts."]
    talk.uncompared(*({"content": text} for text in texts))
    talk.script({"status": 503})
    with pytest.raises(ModelUnavailable):
        talk.facts.consolidate()
    for wrong in (
        "antwort makes 9 million a year.",
        merged("The project antwort is in Go and makes 9 million a year.", 1, 2),
        merged("The project antwort is in Go, in parts.", 1, 2),
        merged("The project antwort is in Go.", 1),
        merged("", 1, 2),
    ):
        talk.script(wrong)
        assert talk.facts.consolidate().merged == []
        assert talk.live() == texts
        assert talk.script() == []
        assert talk.facts.consolidate().merged == [], "what the model left apart is not asked again"
        talk.change("UPDATE memories SET metadata = '{}' WHERE tenant_id = ?", talk.tenant)
    whole = "The project antwort is in Go and has 3 parts."
    talk.script(merged(whole, 1, 2))
    (done,) = talk.facts.consolidate().merged
    assert talk.live() == [whole]
    assert len(done.consolidates) == 2
    assert talk.facts.consolidate().merged == []


@pytest.mark.rows_in("sqlite")
def test_without_a_model_nothing_is_consolidated_and_the_answer_says_so(home: Any) -> None:
    with home.open(embedder={"url": "hash:256"}) as rc:
        for text in ("The project antwort is in Go.", "In Go, the project antwort is."):
            rc.memories.add(text, kind="fact")
        done = rc.facts.consolidate()
        assert (done.merged, done.left) == ([], 0)
        assert "no language model is configured" in str(done.reason)


@pytest.mark.rows_in("sqlite")
def test_a_message_on_which_the_rules_fail_takes_no_other_with_it(
    home: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(text: str, *args: Any) -> Any:
        if "apples" in text:
            raise IndexError("string index out of range")
        return captured(text, *args)

    monkeypatch.setattr("memoranda.facts.extraction.captured", failing)
    settings = {"facts": {"extraction": "lazy", "capture_rules": True}, "embedder": {"url": "hash:256"}}
    said = ["I live in Rome with two cats.", "Are there apples?", "I work at Acme as a nurse."]
    with home.open(**settings) as rc:
        rc.sessions.observe([{"content": text, "user_id": "ada"} for text in said], session_id="talk")
        assert rc.facts.extract("talk").kept == 2
        assert len(contents(rc)) == 2
        assert rc.inner.core.tally["facts.unread"] == 1
    assert "the rules failed on its text" in caplog.text


@pytest.mark.rows_in("sqlite")
def test_a_call_and_a_job_do_not_ask_the_model_twice(talk: Any) -> None:
    asked = talk.script({"text": LIST, "repeat": True})
    subject = talk.rc.as_subject(talk.admin).sessions
    subject.observe([{"content": SAID, "user_id": "mara", "speaker": "Mara"}], session_id="both")
    talk.facts.extract("both")
    talk.settle()
    assert len(asked) == 1
    assert talk.live() == BOTH


@pytest.mark.rows_in("sqlite")
def test_a_session_of_which_nothing_may_be_read_gives_nothing(home: Any) -> None:
    with home.open(embedder={"url": "hash:64"}) as rc:
        rc.sessions.observe("I moved to Berlin.", session_id="talk", extraction=False)
        assert rc.facts.extract("talk").kept == 0
        assert rc.facts.extract("talk").kept == 0
