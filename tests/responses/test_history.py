"""What came before a request: where it may be cut, chains and conversations read back, summaries of beginnings."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from operator import not_
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memoranda.app.blocking import BlockingMemoranda
from memoranda.config.agent_sections import Summarization
from memoranda.errors import NotFound
from memoranda.providers.chat.extractive import ExtractiveModel
from memoranda.providers.chat.scripted import ScriptedModel
from memoranda.responses import history, records
from memoranda.responses.conversations import Conversation
from memoranda.responses.history import (
    MAKING_SECONDS,
    SUMMARIZE_JOB,
    History,
    Past,
    UnknownResponse,
)
from memoranda.responses.items import check_calls, checked
from memoranda.responses.messages import mark, starts_of, tokens_of_items, turns_of
from memoranda.responses.truncation import ContextTooLong, fit
from memoranda.responses.values import Item, Response, Summary
from memoranda.storage.sql.sqlite import SqliteConnection
from memoranda.storage.sql.statements import statements
from memoranda.store.job_kinds import AGENT_LANE, JobKind
from memoranda.types import Subject
from support.growth import grows_in_proportion
from support.waiting import until, until_async

# --- where a conversation may be cut -------------------------------------------------------------------


def say(role: str, text: str = "x") -> dict[str, Any]:
    return {"role": role, "content": text}


def call(id_: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": id_, "name": "f", "arguments": "{}"}


def output(id_: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": id_, "output": "3"}


ASK = {"type": "mcp_approval_request", "id": "mcpr_1", "name": "f", "arguments": "{}", "server_label": "s"}
GRANT = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}


@pytest.mark.parametrize(
    ("items", "starts"),
    [
        ([], []),
        ([say("user"), say("assistant"), say("user"), say("assistant")], [0, 2]),
        ([say("developer"), say("user"), say("assistant"), say("developer"), say("user")], [0, 3]),
        ([say("assistant"), say("user")], [0, 1]),
        ([say("user"), call("a"), output("a"), say("assistant"), say("user")], [0, 4]),
        ([say("user"), call("a"), call("b"), output("b"), output("a"), say("user")], [0, 5]),
        ([say("user"), call("a"), say("user"), output("a"), say("assistant"), say("user")], [0, 5]),
        ([say("user"), call("a"), say("user"), say("assistant"), say("user")], [0, 2, 4]),
        ([say("user"), ASK, say("user"), GRANT, say("assistant"), say("user")], [0, 5]),
        ([say("user"), {"type": "reasoning"}, say("assistant"), say("user")], [0, 3]),
    ],
)
def test_turns_begin_where_the_user_asks(items: list[dict[str, Any]], starts: list[int]) -> None:
    held = checked(items)
    assert starts_of(held) == starts
    assert [item for turn in turns_of(held) for item in turn] == held


@st.composite
def talks(draw: st.DrawFn) -> list[Item]:
    """Turns with answers and calls, some of whose outputs come turns later or never."""
    raw: list[dict[str, Any]] = []
    waiting: list[str] = []
    for turn in range(draw(st.integers(0, 7))):
        raw.append(say("user", draw(st.sampled_from(["short", "a longer question " * 8]))))
        for step in range(draw(st.integers(0, 3))):
            kind = draw(st.sampled_from(["say", "call", "output", "late"]))
            if kind == "say":
                raw.append(say("assistant", "answer " * draw(st.integers(1, 12))))
            elif kind == "call":
                waiting.append(f"c{turn}.{step}")
                raw.append(call(waiting[-1]))
            elif waiting:
                raw.append(output(waiting.pop(0 if kind == "late" else -1)))
    held = checked(raw)
    mark(held)
    return held


def halves(items: Sequence[Item]) -> tuple[set[str], set[str]]:
    """The calls, and the outputs."""
    calls = {item["call_id"] for item in items if item["type"] == "function_call"}
    return calls, {item["call_id"] for item in items if item["type"] == "function_call_output"}


def must_stay(items: list[Item], new: list[Item]) -> int:
    """Where the turn begins whose call is answered in what is new."""
    wanted = halves(new)[1]
    called = [at for at, item in enumerate(items) if item.get("call_id") in wanted]
    return max(at for at in starts_of(items) if at <= called[0]) if called else len(items)


@given(talks(), st.integers(0, 400), st.integers(0, 100), st.data())
def test_what_fits_is_the_newest_whole_turns(items: list[Item], limit: int, used: int, data: Any) -> None:
    calls, outputs = halves(items)
    told = data.draw(st.one_of(st.none(), st.integers(1, 60)))
    summary = (
        None if told is None else Summary(summary="s", summarized_up_to="r", token_count=told, created_at=1)
    )
    open_ = sorted(calls - outputs)
    new = checked([output(data.draw(st.sampled_from(open_)))] if open_ and data.draw(st.booleans()) else [])
    whole = Past(
        items=items, summary=summary, turns=len(starts_of(items)), tokens=tokens_of_items(items) + (told or 0)
    )
    try:
        past = fit(whole, used, limit, "auto", new)
    except ContextTooLong:
        assert used + tokens_of_items(items[must_stay(items, new) :]) > limit
        return
    assert used + past.tokens <= limit
    assert past.items == items[len(items) - len(past.items) :]
    assert past.tokens == tokens_of_items(past.items) + (past.summary.token_count if past.summary else 0)
    kept_calls, kept_outputs = halves(past.items)
    assert kept_outputs <= kept_calls
    assert halves(new)[1] <= kept_calls
    assert (past.turns, past.dropped) == (len(starts_of(past.items)), whole.turns - past.turns)
    if past.dropped and (past.items or past.summary is None):  # not one turn more would have had room
        at = max(start for start in starts_of(items) if start < len(items) - len(past.items))
        kept_summary = past.tokens - tokens_of_items(past.items)
        assert used + kept_summary + tokens_of_items(items[at:]) > limit
    if past.summary is None and summary is not None:  # it gave way to turns, or had no room at all
        assert past.items or summary.token_count > limit - used


def test_disabled_truncation_says_how_long_it_is() -> None:
    items = checked([say("user", "word " * 50)])
    past = Past(items=items, turns=1, tokens=tokens_of_items(items))
    assert fit(past, 10, 10 + past.tokens, "disabled") is past
    with pytest.raises(ContextTooLong, match=f"{10 + past.tokens} tokens") as caught:
        fit(past, 10, 9 + past.tokens, "disabled")
    assert caught.value.field == "input"
    with pytest.raises(ContextTooLong, match="101 tokens"):
        fit(past, 101, 100, "auto")


# --- chains and conversations --------------------------------------------------------------------------

ON = Summarization(enabled=True, token_threshold=60, window_size=2, summary_max_tokens=40)


LIVE = ("queued", "running")


class Shelf:
    """A tenant whose chains are written as told, and a history of it."""

    def __init__(self, rc: BlockingMemoranda, tenant: str) -> None:
        self.rc, self.tenant = rc, tenant
        self.core = rc.inner.core
        self.subject = Subject(tenant_id=tenant)

    def history(self, settings: Summarization = ON, *turns: Any, model: Any = None) -> tuple[History, Any]:
        """A history, and the model that it asks."""
        says = [{"text": turn} if isinstance(turn, str) else turn for turn in turns]
        made = model or ScriptedModel(says)
        history = History(self.core, settings, made)
        self.core.jobs.kinds[SUMMARIZE_JOB] = JobKind(history.make, AGENT_LANE)
        return history, made

    def write(self, work: Callable[[Any], Any]) -> Any:
        return self.core.store.db.write(work, tenant=self.tenant).result()

    def response(
        self,
        id_: str,
        previous: str | None,
        *said: dict[str, Any],
        user: str | None = None,
        answer: list[dict[str, Any]] | None = None,
        marked: bool = True,
    ) -> str:
        """A stored response, by default with a question and an answer that name it."""
        asked = checked(list(said) or [say("user", f"Question of {id_}, please look at the kettle.")])
        told = checked(answer or [say("assistant", f"Answer of {id_}: the kettle is green.")])
        if marked:
            mark([*asked, *told])
        shown = Response(
            id=id_, created_at=1, status="completed", model="m", output=told, previous_response_id=previous
        )
        new = records.NewResponse(
            subject=Subject(tenant_id=self.tenant, user_id=user),
            response=shown,
            input=asked,
            session_id="first",
        )

        def work(c: Any) -> None:
            c.run("add_tenant", [self.tenant, 1])
            records.add(c, new)

        self.write(work)
        return id_

    def chain(self, length: int, **fields: Any) -> str:
        """A chain; its newest response."""
        previous: str | None = None
        for n in range(length):
            previous = self.response(f"r{n}", previous, **fields)
        assert previous is not None
        return previous

    def load(self, held: History, subject: Subject | None = None, **fields: Any) -> Past:
        past: Past = self.rc.portal.call(held.load(subject or self.subject, **fields))
        return past

    def stored(self, id_: str) -> dict[str, Any] | None:
        """The summary that a response's row has."""
        sql = "SELECT summary, summarized_to FROM responses WHERE tenant_id = ? AND id = ?"
        ((summary, to),) = self.core.store.db.read(lambda c: c.select(sql, [self.tenant, id_]), self.tenant)
        return None if summary is None else {**json.loads(summary), "to": to}

    def end(self) -> None:
        """Cancels the jobs that are left: the next history would work on them, with the turns of its model."""

        def left() -> list[str]:
            jobs = [
                job.id for job in self.rc.portal.call(self.core.jobs.list(self.tenant)) if job.state in LIVE
            ]
            for id_ in jobs:
                self.rc.portal.call(self.core.jobs.cancel(self.tenant, id_))
            return jobs

        until(left, "no job left", accept=not_)

    def settle(self) -> None:
        """Waits until no job is under way."""
        sql = "SELECT kind, state, error FROM jobs WHERE tenant_id = ? AND state IN ('queued', 'running')"
        until(
            lambda: self.core.store.db.read(lambda c: c.select(sql, [self.tenant]), self.tenant),
            "no job under way",
            accept=not_,
        )


@pytest.fixture(scope="module")
def shelves(lasting_home: Any) -> Iterator[Callable[[], Shelf]]:
    numbers = itertools.count()
    with lasting_home.empty(embedder={"url": "hash:16"}) as opened:
        kept = dict(opened.inner.core.jobs.kinds)
        yield lambda: Shelf(opened, f"tenant{next(numbers)}")
        opened.inner.core.jobs.kinds.update(kept)


@pytest.fixture
def shelf(shelves: Callable[[], Shelf]) -> Iterator[Shelf]:
    made = shelves()
    yield made
    made.end()


def texts(past: Past) -> list[str]:
    return [item["content"][0]["text"].split(",")[0].split(":")[0] for item in past.items]


def of(*names: str) -> list[str]:
    return [text for name in names for text in (f"Question of {name}", f"Answer of {name}")]


def test_nothing_came_before(shelf: Shelf) -> None:
    held, _ = shelf.history()
    assert shelf.load(held) == Past(settings=ON)


def test_a_chain_is_read_back_in_its_order(shelf: Shelf) -> None:
    newest = shelf.chain(4)
    shelf.response("branch", "r1")
    held, _ = shelf.history(Summarization())
    past = shelf.load(held, previous_response_id=newest)
    assert texts(past) == of("r0", "r1", "r2", "r3")
    assert (past.turns, past.dropped, past.broken, past.summary, past.notes) == (4, 0, False, None, [])
    assert past.session_id == "first"
    assert past.tokens == tokens_of_items(past.items)
    assert texts(shelf.load(held, previous_response_id="branch")) == of("r0", "r1", "branch")


def test_a_call_and_its_output_in_the_next_response_are_one_turn(shelf: Shelf) -> None:
    shelf.response("r0", None, answer=[call("c1")])
    shelf.response("r1", "r0", output("c1"))
    shelf.response("r2", "r1")
    held, _ = shelf.history(Summarization())
    past = shelf.load(held, previous_response_id="r2")
    assert past.turns == 2
    assert [item["type"] for item in past.items][:3] == ["message", "function_call", "function_call_output"]


def test_what_is_missing_or_goes_round_ends_the_walk(shelf: Shelf) -> None:
    newest = shelf.chain(4)
    held, _ = shelf.history(Summarization())
    shelf.write(lambda c: c.run("drop_response", [shelf.tenant, "r1"]))
    past = shelf.load(held, previous_response_id=newest)
    assert (texts(past), past.broken) == (of("r2", "r3"), True)
    for one, other in (("a", "b"), ("b", "a")):
        shelf.response(one, other)
    past = shelf.load(held, previous_response_id="a")
    assert (sorted(texts(past)), past.broken) == (sorted(of("a", "b")), True)
    shelf.response("self", "self")
    assert texts(shelf.load(held, previous_response_id="self")) == of("self")


def test_answers_to_calls_that_are_missing_are_left_out(shelf: Shelf) -> None:
    """Each output goes with its call, and so does an approval; models that number their calls give ids twice."""
    shelf.response("r0", None, say("user"), answer=[call("a"), ASK])
    shelf.response("r1", "r0", output("a"), GRANT, answer=[call("a"), call("b")])
    shelf.response("r2", "r1", output("a"), output("b"))
    shelf.response("r3", "r2")
    shelf.response("r4", "r3")
    held, _ = shelf.history(Summarization())
    whole = shelf.load(held, previous_response_id="r4").items
    shelf.write(lambda c: c.run("drop_response", [shelf.tenant, "r0"]))
    past = shelf.load(held, previous_response_id="r4")
    assert past.broken
    assert past.items == whole[5:]
    check_calls(past.items)
    assert (past.turns, past.tokens) == (3, tokens_of_items(past.items))
    shelf.write(lambda c: c.run("drop_response", [shelf.tenant, "r1"]))
    held, _ = shelf.history(ON, "The summary.")
    past = shelf.load(held, previous_response_id="r4")
    assert (texts(past), past.broken) == (of("r3", "r4"), True)
    assert shelf.stored("r4") is not None
    assert past.summary is not None
    assert past.summary.summarized_up_to == "r2"


def test_anothers_response_is_an_unknown_one(shelf: Shelf) -> None:
    shelf.response("anns", None, user="ann")
    held, _ = shelf.history()
    bob = Subject(tenant_id=shelf.tenant, user_id="bob", role="member")
    elsewhere = Subject(tenant_id=f"{shelf.tenant}-other")
    for subject in (bob, elsewhere):
        words = set()
        for id_ in ("anns", "nope", "\x00"):
            with pytest.raises(UnknownResponse) as caught:
                shelf.load(held, subject, previous_response_id=id_)
            words.add(str(caught.value).replace(repr(id_)[1:-1] if id_ != "\x00" else id_, "ID"))
            with pytest.raises(NotFound):
                shelf.load(held, subject, conversation_id=id_)
        assert words == {"Previous response with id 'ID' not found."}


def test_what_is_anothers_in_a_chain_is_not_told(shelf: Shelf) -> None:
    """An admin goes on from ann's response; what it makes belongs to nobody, and bob goes on from that."""
    shelf.response("anns", None, user="ann")
    shelf.response("open", "anns")
    held, _ = shelf.history()
    assert texts(shelf.load(held, previous_response_id="open")) == of("anns", "open")
    bob = Subject(tenant_id=shelf.tenant, user_id="bob", role="member")
    past = shelf.load(held, bob, previous_response_id="open")
    assert (texts(past), past.broken) == (of("open"), True)


def test_a_summary_of_mixed_owners_is_made_and_not_kept(shelf: Shelf) -> None:
    for n in range(6):
        shelf.response(f"r{n}", f"r{n - 1}" if n else None, user="ann" if n < 3 else None)
    held, _ = shelf.history(ON, "told")
    past = shelf.load(held, previous_response_id="r5")
    assert past.summary is not None
    assert shelf.stored("r5") is None


# --- summaries in the request ------------------------------------------------------------------------------


def test_above_the_threshold_all_but_the_window_is_summarized_and_kept(shelf: Shelf) -> None:
    newest = shelf.chain(6)
    held, model = shelf.history(ON, "Four questions about a green kettle.")
    past = shelf.load(held, previous_response_id=newest)
    assert texts(past) == of("r4", "r5")
    assert past.summary is not None
    assert past.summary.summary == "Four questions about a green kettle."
    assert past.summary.summarized_up_to == "r3"
    assert (past.turns, past.dropped, past.notes) == (2, 0, [])
    assert past.tokens == tokens_of_items(past.items) + past.summary.token_count
    told = model.asked[0].messages[1]["content"]
    assert [f"Question of r{n}" in told for n in range(6)] == [True] * 4 + [False] * 2
    stored = shelf.stored(newest)
    assert stored is not None
    assert (stored["summary"], stored["to"]) == (past.summary.summary, "r3")
    again = shelf.load(held, previous_response_id=newest)
    assert (texts(again), again.summary) == (texts(past), past.summary)
    assert len(model.asked) == 1


def test_at_the_threshold_or_switched_off_everything_is_told(shelf: Shelf) -> None:
    newest = shelf.chain(6)
    held, model = shelf.history(Summarization(token_threshold=1, window_size=1))
    whole = shelf.load(held, previous_response_id=newest)
    assert whole.turns == 6
    at = Summarization(enabled=True, token_threshold=whole.tokens, window_size=1)
    assert shelf.load(held, previous_response_id=newest, settings=at).turns == 6
    wide = Summarization(enabled=True, token_threshold=1, window_size=6)
    assert shelf.load(held, previous_response_id=newest, settings=wide).turns == 6
    assert model.asked == []


def test_a_later_summary_is_made_by_a_job_of_the_earlier_one_and_what_came_since(shelf: Shelf) -> None:
    newest = shelf.chain(4)
    settings = Summarization(enabled=True, token_threshold=70, window_size=2, summary_max_tokens=40)
    held, model = shelf.history(settings, "first notes", {"when": "first notes", "text": "second notes"})
    shelf.load(held, previous_response_id=newest)
    shelf.response("r4", "r3")
    past = shelf.load(held, previous_response_id="r4")
    assert past.summary is not None
    assert past.summary.summary == "first notes"
    assert texts(past) == of("r2", "r3", "r4")
    shelf.settle()
    past = shelf.load(held, previous_response_id="r4")
    assert past.summary is not None
    assert (past.summary.summary, past.summary.summarized_up_to) == ("second notes", "r2")
    assert texts(past) == of("r3", "r4")
    told = model.asked[1].messages[1]["content"]
    assert "Question of r2" in told
    assert "Question of r1" not in told


def test_far_above_the_threshold_no_job_is_waited_for(shelf: Shelf) -> None:
    newest = shelf.chain(6)
    held, _ = shelf.history(ON, "first notes", "second notes")
    shelf.load(held, previous_response_id=newest)
    for n in range(6, 12):
        newest = shelf.response(f"r{n}", newest)
    past = shelf.load(held, previous_response_id=newest)
    assert past.summary is not None
    assert past.summary.summary == "second notes"
    assert texts(past) == of("r10", "r11")


def test_a_call_is_not_cut_from_its_output_by_the_window(shelf: Shelf) -> None:
    for n in range(4):
        shelf.response(f"r{n}", f"r{n - 1}" if n else None)
    shelf.response("r4", "r3", answer=[call("c1")])
    shelf.response("r5", "r4", output("c1"), answer=[call("c2")])
    shelf.response("r6", "r5", output("c2"))
    shelf.response("r7", "r6")
    held, _ = shelf.history(ON, "notes", "notes")
    past = shelf.load(held, previous_response_id="r7")
    assert past.summary is not None
    assert past.summary.summarized_up_to == "r3"
    check_calls(past.items)
    assert past.turns == 2


def test_what_the_new_input_answers_stays(shelf: Shelf) -> None:
    shelf.response("r0", None)
    shelf.response("r1", "r0", answer=[call("late")])
    for n in range(2, 8):
        shelf.response(f"r{n}", f"r{n - 1}")
    held, _ = shelf.history(ON, "notes")
    new = checked([output("late")])
    past = shelf.load(held, previous_response_id="r7", new=new)
    check_calls([*past.items, *new])
    assert past.summary is not None
    assert past.summary.summarized_up_to == "r0"


def test_many_turns_in_one_response_stay_together(shelf: Shelf) -> None:
    """A summary reaches to the end of a response, so that a walk can stop there."""
    long = [
        item for n in range(8) for item in (say("user", f"Old question {n}"), say("assistant", "Old answer"))
    ]
    shelf.response("r0", None, *long, say("user", "And now?"))
    shelf.response("r1", "r0")
    held, model = shelf.history(ON, "notes")
    assert shelf.load(held, previous_response_id="r1").turns == 10
    assert model.asked == []
    shelf.response("r2", "r1")
    past = shelf.load(held, previous_response_id="r2")
    assert texts(past) == of("r1", "r2")


def test_without_a_model_sentences_are_chosen(shelf: Shelf) -> None:
    newest = shelf.chain(6)
    held, _ = shelf.history(ON, model=ExtractiveModel())
    past = shelf.load(held, previous_response_id=newest)
    assert past.summary is not None
    assert past.summary.by == "extractive"
    assert 0 < past.summary.token_count <= ON.summary_max_tokens
    assert "kettle" in past.summary.summary


@pytest.mark.parametrize("turn", [{"status": 503}, {"text": ""}, {"text": "half", "cut": True}])
def test_where_a_summary_fails_the_window_is_told_and_it_is_said(shelf: Shelf, turn: dict[str, Any]) -> None:
    newest = shelf.chain(6)
    held, model = shelf.history(ON, turn, "in time")
    past = shelf.load(held, previous_response_id=newest)
    assert (texts(past), past.summary, past.dropped) == (of("r4", "r5"), None, 4)
    assert past.notes[0].startswith("summary_failed: ")
    assert shelf.stored(newest) is None
    resting = shelf.load(held, previous_response_id=newest)
    assert (resting.dropped, len(model.asked)) == (4, 1)
    assert "not tried again" in resting.notes[0]
    held._resting.clear()
    healed = shelf.load(held, previous_response_id=newest)
    assert healed.summary is not None
    assert (healed.summary.summary, healed.notes) == ("in time", [])


def test_a_summary_that_takes_too_long_is_not_waited_for_and_there_for_the_next(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One turn of four leaves the window after it, which is too little for the job of another summary."""
    monkeypatch.setattr(history, "SECONDS", 0.05)
    newest = shelf.chain(8)
    held, model = shelf.history(
        replace(ON, window_size=4, token_threshold=100), {"text": "late", "pause_at": 0}
    )
    past = shelf.load(held, previous_response_id=newest)
    assert (past.dropped, past.notes) == (4, ["summary_failed: it took too long"])

    async def made() -> None:
        model.play.resume()
        await asyncio.gather(*held._making.values())

    shelf.rc.portal.call(made())
    past = shelf.load(held, previous_response_id=shelf.response("r8", newest))
    assert past.summary is not None
    assert (past.summary.summary, past.notes, len(model.asked)) == ("late", [], 1)
    assert shelf.rc.portal.call(shelf.core.jobs.list(shelf.tenant)) == []


def test_one_sessions_failure_holds_up_no_other(shelf: Shelf) -> None:
    first, second = (converse(shelf, range(6)) for _ in range(2))
    held, _ = shelf.history(ON, {"status": 503}, "of the second")
    assert shelf.load(held, conversation_id=first).notes
    assert shelf.load(held, conversation_id=second).summary is not None
    assert shelf.load(held, conversation_id=first).summary is None


def test_requests_at_once_ask_for_one_summary(shelf: Shelf) -> None:
    newest = shelf.chain(6)
    held, model = shelf.history(ON, {"text": "once", "first": 0.1})

    async def both() -> list[Past]:
        loads = [held.load(shelf.subject, previous_response_id=newest) for _ in range(5)]
        return await asyncio.gather(*loads)

    pasts = shelf.rc.portal.call(both())
    assert [past.summary.summary for past in pasts if past.summary] == ["once"] * 5
    assert len(model.asked) == 1


def test_a_request_that_is_given_up_does_not_stop_the_summary(shelf: Shelf) -> None:
    newest = shelf.chain(6)
    held, model = shelf.history(ON, {"text": "kept", "pause_at": 0})

    async def given_up() -> None:
        task = asyncio.create_task(held.load(shelf.subject, previous_response_id=newest))
        await until_async(lambda: model.play.paused, "a question of the model")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        model.play.resume()
        await asyncio.gather(*held._making.values())

    shelf.rc.portal.call(given_up())
    stored = shelf.stored(newest)
    assert stored is not None
    assert stored["summary"] == "kept"


def test_no_model_is_asked_inside_a_transaction(shelf: Shelf) -> None:
    """While the model thinks, another write of the same tenant goes through."""
    newest = shelf.chain(6)
    held, model = shelf.history(ON, {"text": "slow", "pause_at": 0})

    async def meanwhile() -> None:
        task = asyncio.create_task(held.load(shelf.subject, previous_response_id=newest))
        await until_async(lambda: model.play.paused, "a question of the model")
        write = shelf.core.store.db.write(
            lambda c: c.run("drop_response", [shelf.tenant, "nope"]), tenant=shelf.tenant
        )
        await shelf.core.threads.result(write)
        assert not task.done()
        model.play.resume()
        await task

    shelf.rc.portal.call(meanwhile())


def test_what_was_deleted_meanwhile_is_in_no_summary_that_is_kept(shelf: Shelf) -> None:
    newest = shelf.chain(6)
    held, model = shelf.history(ON, {"text": "of r1 too", "pause_at": 0})

    async def delete() -> Past:
        task = asyncio.create_task(held.load(shelf.subject, previous_response_id=newest))
        await until_async(lambda: model.play.paused, "a question of the model")
        write = shelf.core.store.db.write(
            lambda c: c.run("drop_response", [shelf.tenant, "r1"]), tenant=shelf.tenant
        )
        await shelf.core.threads.result(write)
        model.play.resume()
        return await task

    shelf.rc.portal.call(delete())
    assert shelf.stored(newest) is None


def test_deleting_a_response_deletes_the_summaries_that_tell_of_it(shelf: Shelf) -> None:
    newest = shelf.chain(6)
    held, _ = shelf.history(ON, "of r0 to r3")
    shelf.load(held, previous_response_id=newest)
    shelf.rc.portal.call(shelf.rc.inner.as_subject(shelf.subject).responses.delete("r1"))
    assert shelf.stored(newest) is None
    past = shelf.load(held, previous_response_id=newest, settings=Summarization())
    assert (texts(past), past.broken) == (of("r2", "r3", "r4", "r5"), True)


# --- summaries by a job --------------------------------------------------------------------------------------

EAGER = Summarization(
    enabled=True, strategy="eager", token_threshold=80, window_size=2, summary_max_tokens=40
)


def answer(shelf: Shelf, held: History, past: Past, id_: str, **fields: Any) -> None:
    shelf.rc.portal.call(held.answered(shelf.tenant, past, [], response_id=id_, **fields))
    shelf.settle()


def test_eager_ones_are_made_after_the_response(shelf: Shelf) -> None:
    newest = shelf.chain(6)
    held, model = shelf.history(EAGER, "made before anybody asked")
    past = shelf.load(held, previous_response_id="r4")
    assert past.summary is None
    shelf.settle()
    asked = len(model.asked)
    model.play.add({"text": "made before anybody asked"})
    answer(shelf, held, past, newest)
    stored = shelf.stored(newest)
    assert stored is not None
    assert (stored["summary"], stored["to"]) == ("made before anybody asked", "r3")
    past = shelf.load(held, previous_response_id=newest)
    assert past.summary is not None
    assert texts(past) == of("r4", "r5")
    assert len(model.asked) == asked + 1


def test_only_those_of_a_job_are_in_the_background(shelf: Shelf) -> None:
    """Replies have priority over them, and they count as such."""
    newest = shelf.chain(6)
    held, model = shelf.history(EAGER, {"text": "notes", "repeat": True})
    answer(shelf, held, Past(tokens=10_000, settings=EAGER), newest)
    assert [(ask.background, ask.seconds) for ask in model.asked] == [(True, MAKING_SECONDS)]
    shelf.rc.portal.call(shelf.core.costs.set_limits(shelf.tenant, {"background_tokens_per_day": 1}))
    for n in range(6):
        newest = shelf.response(f"s{n}", f"s{n - 1}" if n else None)
    big = Past(tokens=10_000, settings=EAGER)
    shelf.rc.portal.call(held.answered(shelf.tenant, big, [], response_id=newest))
    sql = "SELECT error FROM jobs WHERE tenant_id = ? AND state = 'queued' AND error IS NOT NULL"
    read = shelf.core.store.db.read
    ((error,),) = until(lambda: read(lambda c: c.select(sql, [shelf.tenant])), "the job to wait")
    assert "background_tokens_per_day" in error
    assert shelf.load(held, previous_response_id=newest, settings=ON).summary is not None
    assert [ask.background for ask in model.asked] == [True, False]
    costs = shelf.core.costs
    spent = shelf.rc.portal.call(costs.spent(shelf.tenant, costs.today(), costs.today()))
    assert {row.purpose: row.model_calls for row in spent} == {"summaries": 1, "summaries.background": 1}


def test_short_ones_cost_no_job(shelf: Shelf) -> None:
    shelf.chain(2)
    held, model = shelf.history(EAGER)
    answer(shelf, held, shelf.load(held, previous_response_id="r0"), "r1")
    lazy, _ = shelf.history(ON)
    shelf.rc.portal.call(lazy.answered(shelf.tenant, Past(tokens=10_000, settings=ON), [], response_id="r1"))
    jobs = shelf.core.store.db.read(
        lambda c: c.select("SELECT id FROM jobs WHERE tenant_id = ?", [shelf.tenant]), shelf.tenant
    )
    assert (jobs, model.asked) == ([], [])


def test_a_job_about_what_is_gone_ends(shelf: Shelf) -> None:
    shelf.chain(1)
    held, _ = shelf.history(EAGER)
    big = Past(tokens=10_000, settings=EAGER)
    answer(shelf, held, big, "nope")
    answer(shelf, held, big, "nope", conversation_id="conv_nope")
    states = shelf.core.store.db.read(
        lambda c: c.select("SELECT state FROM jobs WHERE tenant_id = ?", [shelf.tenant]), shelf.tenant
    )
    assert states == [("completed",), ("completed",)]


# --- the same for conversations ----------------------------------------------------------------------------


def converse(shelf: Shelf, turns: range, id_: str | None = None) -> str:
    verbs = shelf.rc.as_subject(shelf.subject).conversations
    held = id_ or verbs.create().id
    for n in turns:
        verbs.add_items(held, [say("user", f"Question of r{n}, please look at the kettle."),
                               say("assistant", f"Answer of r{n}: the kettle is green.")])  # fmt: skip
    return held


def conversation(shelf: Shelf, id_: str) -> Conversation:
    held: Conversation = shelf.rc.as_subject(shelf.subject).conversations.get(id_)
    return held


def test_a_conversation_is_summarized_and_goes_on_from_there(shelf: Shelf) -> None:
    id_ = converse(shelf, range(6))
    held, model = shelf.history(ON, "first notes", {"when": "first notes", "text": "second notes"})
    past = shelf.load(held, conversation_id=id_)
    assert (texts(past), past.session_id) == (of("r4", "r5"), id_)
    assert past.summary is not None
    assert past.summary == conversation(shelf, id_).summary
    items = shelf.rc.as_subject(shelf.subject).conversations.items(id_, limit=100, order="asc").data
    assert past.summary.summarized_up_to == items[7]["id"]
    converse(shelf, range(6, 12), id_)
    past = shelf.load(held, conversation_id=id_)
    assert past.summary is not None
    assert (past.summary.summary, texts(past)) == ("second notes", of("r10", "r11"))
    assert "Question of r3" not in model.asked[1].messages[1]["content"]


def test_deleting_an_item_brings_back_what_the_summary_told(shelf: Shelf) -> None:
    id_ = converse(shelf, range(6))
    held, _ = shelf.history(ON, "with r0", "without r0")
    shelf.load(held, conversation_id=id_)
    verbs = shelf.rc.as_subject(shelf.subject).conversations
    first = verbs.items(id_, limit=1, order="asc").data[0]["id"]
    assert verbs.delete_item(id_, first).summary is None
    past = shelf.load(held, conversation_id=id_)
    assert past.summary is not None
    assert past.summary.summary == "without r0"


def test_a_conversation_is_summarized_by_a_job(shelf: Shelf) -> None:
    id_ = converse(shelf, range(6))
    held, _ = shelf.history(EAGER, "by a job")
    answer(shelf, held, Past(tokens=10_000, settings=EAGER), "r", conversation_id=id_)
    made = conversation(shelf, id_).summary
    assert made is not None
    assert made.summary == "by a job"


# --- speed -------------------------------------------------------------------------------------------------


STEPS_A_TURN = 100
"""80 instructions of SQLite, or 11 rows of PostgreSQL, for each turn of a chain of any length; a step that read all
rows would take as many as there are turns, of either."""


def steps(shelf: Shelf, newest: str) -> int:
    """What the database does to read a chain: the instructions of SQLite, or the rows that pass through the plan of
    PostgreSQL."""

    def sqlite(c: Any) -> int:
        instructions = itertools.count()
        c.raw.set_progress_handler(lambda: next(instructions) and 0, 1)
        c.all("chain", [shelf.tenant, newest])
        c.raw.set_progress_handler(None, 1)
        return next(instructions)

    def rows(node: dict[str, Any]) -> float:
        passed = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
        return float(passed * node["Actual Loops"] + sum(map(rows, node.get("Plans", []))))

    def postgres(c: Any) -> int:
        sql = f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {statements('postgres')['chain']}"
        ((plan,),) = c.raw.cursor().execute(sql, [shelf.tenant, newest]).fetchall()
        return int(rows(plan[0]["Plan"]))

    def counted(c: Any) -> int:
        return sqlite(c) if isinstance(c, SqliteConnection) else postgres(c)

    return shelf.core.store.db.read(counted, shelf.tenant)


def test_a_chain_of_500_turns_is_walked_by_its_links(shelf: Shelf) -> None:
    """The work of the database and of this process grows with the chain and not with its square, as it would if a step
    read all rows of the tenant."""
    held, _ = shelf.history(Summarization())
    made: list[str] = []
    turns: list[int] = []

    def chain(length: int) -> str:
        for n in range(len(made), length):
            made.append(shelf.response(f"r{n}", made[-1] if made else None))
        return made[-1]

    def load(newest: str) -> None:
        turns.append(shelf.load(held, previous_response_id=newest).turns)

    grows_in_proportion(load, chain, 63)
    assert set(turns) == {63, 504}
    assert 504 <= steps(shelf, made[-1]) <= STEPS_A_TURN * 504
