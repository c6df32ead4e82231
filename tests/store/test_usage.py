"""What is spent is counted, by tenant and purpose; a limit stops it, says so, and loses nothing."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from datetime import date
from operator import not_
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from memoranda.app.blocking import BlockingMemoranda
from memoranda.cli.app import app
from memoranda.config.agent_sections import Prices, Spending
from memoranda.errors import Forbidden, InvalidInput, ModelBroken, ModelError, SpendingLimit
from memoranda.providers.chat.base import Ask, Piece
from memoranda.providers.chat.script import Play, script_of
from memoranda.providers.chat.scripted_app import ScriptedApp
from memoranda.providers.embeddings.base import Embedded, Embedder, Span, Task
from memoranda.providers.embeddings.hash import HashEmbedder
from memoranda.server.errors import error_response
from memoranda.store.usage import DAY, Cost, CostTracker, Spent
from memoranda.types import Subject
from support.chat_server import playing
from support.waiting import until

SETTINGS = {"responses": {"memory_min_score": 0.0}}
COUNTS = list(Cost.__struct_fields__)
numbers = itertools.count(1)


class Priced(Embedder):
    """The hash embedder, as if a provider were asked, who charges a token a word."""

    remote = True

    def __init__(self) -> None:
        self.inner = HashEmbedder(64, 1)
        self.model, self.dim, self.max_tokens = self.inner.model, 64, self.inner.max_tokens
        self.calibration = self.inner.calibration
        self.texts: list[str] = []

    async def embed(self, texts: Any, task: Task = "document") -> Embedded:
        self.texts += texts
        made = await self.inner.embed(texts, task)
        return Embedded(made.vectors, sum(len(text.split()) for text in texts))

    def split(self, text: str) -> list[Span]:
        return self.inner.split(text)


class Shop:
    """A product whose model is served over HTTP and whose embedder charges."""

    def __init__(self, rc: BlockingMemoranda, app: ScriptedApp) -> None:
        self.rc, self.app = rc, app
        self.priced = Priced()
        rc.inner.core.embedder.inner = self.priced  # type: ignore[attr-defined]
        rc.inner.core.embedder.remote = True

    def tenant(self) -> Subject:
        """A new tenant."""
        return Subject(tenant_id=f"tenant{next(numbers)}")

    def ask(self, who: Subject, text: str = "hello", **fields: Any) -> Any:
        return self.rc.portal.call(self.rc.inner.as_subject(who).responses.create(text, **fields))

    def limit(self, who: Subject, **changes: int | None) -> None:
        self.rc.set_spending(changes, tenant=who.tenant_id)

    def spent(self, who: Subject, purpose: str) -> Cost:
        """What a tenant spent on one purpose."""
        found = [one for one in self.rc.usage(tenant=who.tenant_id).data if one.purpose == purpose]
        total = Cost()
        for one in found:
            total += Cost(*(getattr(one, name) for name in COUNTS))
        return total


@pytest.fixture(scope="module")
def shop(lasting_home: Any) -> Iterator[Shop]:
    with playing([]) as (url, app):
        model = {"url": url, "name": "m", "retries": 0}
        with lasting_home.empty(model=model, **SETTINGS) as rc:
            yield Shop(rc, app)


said = st.lists(st.tuples(st.integers(1, 5_000), st.integers(1, 5_000)), min_size=1, max_size=4)


@settings(max_examples=8)
@given(counted=said)
def test_the_sums_are_those_that_the_server_counted(shop: Shop, counted: list[tuple[int, int]]) -> None:
    who, before = shop.tenant(), len(shop.app.received)
    for given_, wrote in counted:
        shop.app.play.add({"text": "yes", "usage": {"input": given_, "output": wrote}})
        shop.ask(who)
    held = shop.spent(who, "responses")
    assert held == Cost(
        operations=len(counted),
        model_calls=len(shop.app.received) - before,
        tokens_in=sum(one for one, _ in counted),
        tokens_out=sum(one for _, one in counted),
    )
    assert shop.spent(shop.tenant(), "responses") == Cost()


def test_a_loop_is_one_operation_of_many_calls_and_what_breaks_off_is_estimated(shop: Shop) -> None:
    who = shop.tenant()
    shop.rc.as_subject(who).memories.add("the kettle is red")
    call = {"name": "memory_search", "arguments": {"query": "kettle"}}
    shop.app.play.add({"calls": [call], "usage": {"input": 10, "output": 1}})
    shop.app.play.add({"text": "red", "usage": {"input": 20, "output": 2}})
    shop.ask(who, tools=[{"type": "memory_search"}])
    assert shop.spent(who, "responses") == Cost(operations=1, model_calls=2, tokens_in=30, tokens_out=3)
    shop.app.play.add({"text": "x" * 40, "cut": True})
    shop.ask(who, "y" * 400)
    held = shop.spent(who, "responses")
    assert (held.operations, held.model_calls, held.tokens_out) == (2, 3, 13)
    assert held.tokens_in >= 30 + 100


def test_an_answer_that_timed_out_is_charged(shop: Shop) -> None:
    who, core = shop.tenant(), shop.rc.inner.core
    shop.app.play.add({"text": "x" * 40, "hang": True})
    messages = [{"role": "user", "content": "y" * 400}]
    pieces: list[Piece] = []

    async def ask() -> None:
        model = core.costs.paid(core.model, who.tenant_id, "facts", background=True)
        async for piece in model.answer(Ask(messages=messages, seconds=0.5)):
            pieces.append(piece)

    with pytest.raises(ModelBroken, match=r"did not end its answer within 0\.5 s"):
        shop.rc.portal.call(ask())
    assert pieces == []
    spent = shop.spent(who, "facts")
    assert (spent.operations, spent.model_calls, spent.tokens_in) == (1, 1, 100)
    assert spent.tokens_out in (0, 10)


@pytest.mark.parametrize(
    ("turn", "cost"),
    [
        ({"text": "x" * 40, "cut": True}, Cost(operations=1, model_calls=1, tokens_in=100, tokens_out=10)),
        ({"status": 500}, Cost()),
    ],
)
def test_a_background_answer_that_breaks_off_is_charged(shop: Shop, turn: dict[str, Any], cost: Cost) -> None:
    who, core = shop.tenant(), shop.rc.inner.core
    shop.app.play.add(turn)
    messages = [{"role": "user", "content": "y" * 400}]

    async def ask() -> list[Piece]:
        model = core.costs.paid(core.model, who.tenant_id, "facts", background=True)
        return [piece async for piece in model.answer(Ask(messages=messages))]

    with pytest.raises(ModelError):
        shop.rc.portal.call(ask())
    assert shop.spent(who, "facts") == cost


def test_only_what_the_model_read_is_counted(shop: Shop) -> None:
    who = shop.tenant()
    memories = shop.rc.as_subject(who).memories
    memories.add_many(["one two three", "four five"])
    memories.add("one two three")
    assert shop.spent(who, "write") == Cost(operations=3, texts_embedded=2, tokens_embedded=5)
    for _ in range(3):
        memories.search(f"six seven {who.tenant_id}")
    assert shop.spent(who, "search") == Cost(operations=3, texts_embedded=1, tokens_embedded=3)


def test_a_spent_day_is_said_and_quotes_go_on(shop: Shop) -> None:
    who, other = shop.tenant(), shop.tenant()
    shop.limit(who, model_calls_per_day=1)
    shop.app.play.add({"text": "yes", "repeat": True})
    assert shop.ask(who).output[-1]["content"][0]["text"] == "yes"
    before = len(shop.app.received)
    with pytest.raises(SpendingLimit, match=r"model_calls_per_day, which is 1, until .* UTC") as caught:
        shop.ask(who)
    assert 0 < caught.value.seconds <= 86_400
    assert len(shop.app.received) == before
    shop.rc.as_subject(who).memories.add("The kettle in the kitchen is red.")
    quoted = shop.ask(who, "Which colour is the kettle in the kitchen?")
    assert "red" in quoted.output[-1]["content"][0]["text"]
    assert quoted.extensions["answered_by"] == "extractive"
    assert "spending" in quoted.extensions["degraded"]
    assert shop.ask(other).status == "completed"
    shop.limit(who, model_calls_per_day=None)
    assert shop.ask(who).extensions["answered_by"] != "extractive"
    shop.app.play = Play(script_of([]))


def test_extraction_has_a_budget_of_its_own_and_replies_go_on(shop: Shop) -> None:
    who = shop.tenant()
    shop.limit(who, background_tokens_per_day=100)
    shop.app.play.add(
        {"when": "Conversation:", "text": '{"facts": []}', "usage": {"input": 90, "output": 30}}
    )
    shop.app.play.add({"text": "yes", "repeat": True})
    workspace = shop.rc.as_subject(who)
    sessions, facts = workspace.sessions, workspace.facts
    sessions.observe([{"content": "I like tea, and only green tea."}], session_id="one", extraction="lazy")
    facts.extract("one")
    assert shop.spent(who, "facts") == Cost(operations=1, model_calls=1, tokens_in=90, tokens_out=30)
    sessions.observe([{"content": "I like coffee, too."}], session_id="one", extraction="lazy")
    with pytest.raises(SpendingLimit, match="background_tokens_per_day, which is 100"):
        facts.extract("one")
    assert shop.ask(who).extensions["answered_by"] != "extractive"
    shop.limit(who, background_tokens_per_day=None)
    facts.extract("one")
    shop.app.play = Play(script_of([]))


def test_without_embeddings_writes_wait_and_words_answer_until_the_limit_rises(shop: Shop) -> None:
    who = shop.tenant()
    memories = shop.rc.as_subject(who).memories
    shop.limit(who, embedded_tokens_per_day=3)
    assert memories.add("a red kettle").embedded
    late = memories.add("a blue lamp by the window")
    assert not late.embedded
    found = memories.search("lamp by the window of a house")
    assert [hit.memory.id for hit in found.results] == [late.memory.id]
    assert {"spending", "embedding"} <= set(found.degraded)
    waiting = "SELECT error, attempts FROM jobs WHERE tenant_id = ? AND state = 'queued'"
    read = shop.rc.inner.core.store.db.read
    job = shop.rc.portal.call(shop.rc.inner.as_subject(who).memories.reembed()).id
    hurry = "UPDATE jobs SET run_at = 0 WHERE tenant_id = ? AND id = ? RETURNING 1"
    shop.rc.inner.core.store.db.write(lambda c: c.select(hurry, [who.tenant_id, job])).result()

    async def wake() -> None:
        shop.rc.inner.core.jobs.wake_all()

    shop.rc.portal.call(wake())

    def jobs() -> list[Any]:
        return [row for row in read(lambda c: c.select(waiting, [who.tenant_id])) if row[0]]

    until(
        jobs,
        "a job that waits for the budget",
        accept=lambda rows: rows and rows[0][0].startswith("spending: "),
    )
    assert jobs()[0][1] == 0
    assert "a blue lamp by the window" not in shop.priced.texts
    shop.limit(who, embedded_tokens_per_day=1_000)
    until(lambda: memories.stats()["unembedded"], "no pending embedding", accept=not_)
    assert memories.search("lamp by the window of a house").degraded == []


def test_who_reads_and_who_sets(shop: Shop) -> None:
    who = shop.tenant()
    inner, call = shop.rc.inner, shop.rc.portal.call
    for wrong in (Subject(tenant_id=who.tenant_id, user_id="u", role="member"), who):
        with pytest.raises(Forbidden):
            call(inner.as_subject(wrong).costs.usage(tenant="default"))
        with pytest.raises(Forbidden):
            call(inner.as_subject(wrong).costs.set_limits({"model_calls_per_day": 9}))
    assert call(inner.as_subject(who).costs.usage()).tenant == who.tenant_id
    for changes in ({"cups_per_day": 1}, {"model_calls_per_day": -1}):
        with pytest.raises(InvalidInput, match=next(iter(changes))):
            shop.limit(who, **changes)
    with pytest.raises(InvalidInput, match="since"):
        shop.rc.usage(since=date(2030, 1, 2), until=date(2030, 1, 1))
    assert shop.rc.usage(until=date.min).since == date.min


def test_a_day_ends_at_midnight_and_a_restart_forgets_nothing(home: Any) -> None:
    with home.open() as rc:
        core, call = rc.inner.core, rc.portal.call
        clock = [20_000 * DAY + DAY - 1]

        async def opened() -> CostTracker:
            return CostTracker(core.store.db, core.threads, Spending(model_calls_per_day=2), lambda: clock[0])

        async def one(costs: CostTracker) -> None:
            await costs.check("acme")
            costs.note("acme", "facts", Cost(operations=1, model_calls=1))

        first = call(opened())
        call(one(first))
        call(one(first))
        call(first.close())
        with pytest.raises(SpendingLimit):
            call(one(call(opened())))
        clock[0] += 1
        call(one(first))
        told = call(first.spent("acme", date(2024, 1, 1), date(2030, 1, 1)))
        assert [(one.day, one.model_calls) for one in told] == [
            (date(2024, 10, 4), 2),
            (date(2024, 10, 5), 1),
        ]
        assert isinstance(told[0], Spent)
        call(first.close())


@settings(max_examples=50)
@given(st.tuples(*[st.one_of(st.none(), st.floats(0, 1_000))] * 3), st.tuples(*[st.integers(0, 10**9)] * 3))
def test_a_cost_is_that_of_its_tokens(prices: Any, counts: Any) -> None:
    names = ("tokens_in", "tokens_out", "tokens_embedded")
    cost = Prices(**dict(zip(names, prices, strict=True))).cost(*counts)
    if prices == (None, None, None):
        assert cost is None
    else:
        whole = sum(n * (price or 0) / 1e6 for n, price in zip(counts, prices, strict=True))
        assert cost == pytest.approx(whole, abs=1e-6)


@pytest.mark.rows_in("sqlite")
def test_reports_and_responses_have_costs_in_money(home: Any) -> None:
    prices = {"tokens_in": 2.0, "tokens_out": 10.0, "currency": "EUR"}
    with (
        playing([{"text": "yes", "usage": {"input": 1_000, "output": 500}}]) as (url, _),
        home.open(model={"url": url, "name": "m"}, prices=prices, **SETTINGS) as rc,
    ):
        answer = rc.responses.create(input="Is it green?")
        assert answer.extensions["cost"] == {"amount": 0.007, "currency": "EUR"}
        (entry,) = rc.responses.list().data
        assert entry.cost == answer.extensions["cost"]
        report = rc.usage()
    assert (report.currency, report.cost) == ("EUR", 0.007)
    costs = {one.purpose: one.cost for one in report.data}
    assert costs["responses"] == 0.007
    assert set(costs.values()) == {0.0, 0.007}
    words = ["usage", "--data", str(home.folder / "data"), "--set", "embedder.url=hash:64"]
    shown = CliRunner().invoke(app, [*words, "--set", "prices.tokens_in=4", "--set", "prices.tokens_out=0"])
    assert re.search(r"USD\n", shown.output)
    assert re.search(r"in all +0\.0040\n", shown.output)
    assert "USD" not in CliRunner().invoke(app, words).output


@pytest.mark.rows_in("sqlite")
def test_without_prices_or_a_model_nothing_costs_money(home: Any) -> None:
    with home.open(prices={"tokens_in": 2.0}) as rc:
        rc.memories.add("The kettle is green.")
        assert "cost" not in rc.responses.create(input="What is green?").extensions
    with home.open() as rc:
        report = rc.usage()
        assert (report.cost, {one.cost for one in report.data}) == (None, {None})


@pytest.mark.rows_in("sqlite")
def test_over_http_and_on_the_command_line(home: Any) -> None:
    answer = error_response(SpendingLimit("spending: enough", "model_calls_per_day", 7.2))
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
    assert b'"type":"insufficient_quota"' in bytes(answer.body)
    with home.open() as rc:
        rc.memories.add("a kettle")
    words = ["usage", "--data", str(home.folder / "data"), "--set", "embedder.url=hash:64"]
    told = CliRunner().invoke(app, [*words, "--limit", "model_calls_per_day=5"])
    assert told.exit_code == 0, told.output
    assert "write" in told.output
    assert re.search(r"model_calls_per_day +5\n", told.output)
    assert CliRunner().invoke(app, [*words, "--limit", "cups=5"]).exit_code == 2
