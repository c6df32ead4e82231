"""A response under way: its events as they come, its end, and what happens when nobody waits any more."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from operator import not_
from pathlib import Path
from typing import Any

import msgspec
import pytest

import memoranda
from memoranda.errors import NotFound
from memoranda.responses import runs
from memoranda.responses.runs import ENDING, Run
from memoranda.responses.values import Response, ResponseRequest
from support.waiting import until_async

pytestmark = pytest.mark.rows_in("sqlite")
AGENT = str(Path(runs.__file__).parent)
"""Stands in the text of each task that runs code of the agent."""
WORDS = " ".join(f"word{n}" for n in range(40))


async def hear(run: Run) -> list[dict[str, Any]]:
    return [event async for batch in run for event in batch]


def text(response: Response) -> str:
    return "".join(part["text"] for item in response.output for part in item.get("content", ()))


def test_events_come_as_they_happen(desk: Any) -> None:
    desk.script({"text": "one two", "pause_at": 1})

    async def test() -> None:
        run = await desk.start()
        seen: list[tuple[str, bool]] = []
        async for batch in run:
            seen += [
                (event["delta"], run._ended.is_set())
                for event in batch
                if event["type"].endswith("text.delta")
            ]
            if seen:
                desk.model.play.resume()
        assert seen == [("one", False), (" two", False)]
        assert (await run.done()).status == "completed"

    desk.run(test())


def test_the_end_can_be_fetched_when_it_is_heard_of(desk: Any) -> None:
    desk.script({"text": "hi"})

    async def test() -> None:
        run = await desk.start()
        async for batch in run:
            if batch[-1]["type"] == "response.completed":
                held = await desk.responses.get(run.response.id)
                sent = msgspec.json.decode(msgspec.json.encode(batch[-1]["response"]))
                assert msgspec.json.decode(msgspec.json.encode(held)) == sent

    desk.run(test())


def test_whoever_listens_may_go_away(desk: Any) -> None:
    """It is made to its end all the same, unless a caller abandons it."""
    desk.script({"text": WORDS})

    async def test() -> None:
        run = await desk.start()
        async for _ in run:
            break
        assert text(await run.done()) == WORDS

    desk.run(test())


def test_events_that_nobody_wants_are_not_kept(desk: Any) -> None:
    desk.script({"text": WORDS, "repeat": True})

    async def test() -> None:
        run = await desk.start()
        run.mute()
        assert text(await run.done()) == WORDS
        assert await hear(run) == []

    desk.run(test())
    assert text(desk.create()) == WORDS


def test_a_run_that_is_queued_has_nothing_more_to_tell(desk: Any) -> None:
    desk.script({"text": "hi"})

    async def test() -> str:
        run = await desk.start(background=True)
        async with asyncio.timeout(2):
            assert await hear(run) == []
            assert (await run.done()).status == "queued"
        return str(run.response.id)

    assert desk.ended(desk.run(test())).status == "completed"


@pytest.mark.parametrize("store", [True, False])
def test_abandoned_while_the_model_speaks(desk: Any, store: bool) -> None:
    """The call of the model ends; what it had said is stored, and can be gone on from."""
    desk.script({"text": WORDS, "pause_at": 1})

    async def test() -> Run:
        run = await desk.start("go", store=store)
        async for batch in run:
            if any(event["type"].endswith("text.delta") for event in batch):
                break
        run.abandon()
        run.abandon()
        response = await run.done()
        assert response.status == "cancelled"
        assert desk.model.left == 1
        rest = await hear(run)
        assert rest[-1]["type"] == "response.incomplete"
        assert rest[-1]["response"]["status"] == "cancelled"
        return run

    run = desk.run(test())
    said = text(run.response)
    assert WORDS.startswith(said)
    assert "word0" in said
    assert said != WORDS
    if not store:
        with pytest.raises(NotFound):
            desk.run(desk.responses.get(run.response.id))
        return
    held = desk.run(desk.responses.get(run.response.id))
    assert (held.status, text(held), held.output[0]["status"]) == ("cancelled", said, "incomplete")
    desk.script({"text": "on we go"})
    assert desk.create("go on", previous_response_id=held.id).status == "completed"
    assert [message["content"] for message in desk.told()] == ["go", said, "go on"]


def test_abandoned_before_it_began(desk: Any) -> None:
    desk.script({"text": "never"})

    async def test() -> None:
        run = await desk.start()
        run.abandon()
        response = await run.done()
        assert (response.status, response.output) == ("cancelled", [])
        events = await hear(run)
        assert [event["type"] for event in events] == [
            "response.created",
            "response.in_progress",
            "response.incomplete",
        ]
        assert desk.model.asked == []
        assert (await desk.responses.get(run.response.id)).status == "cancelled"

    desk.run(test())


def test_abandoned_while_a_tool_works(desk: Any) -> None:
    """A tool that would not end by itself."""
    store = desk.store("The boss is Ada.")
    desk.script(
        {"offered": "file_search", "calls": [{"name": "file_search", "arguments": {"query": "boss"}}]}
    )

    async def test() -> None:
        embedder = desk.inner.core.embedder
        reached, real = asyncio.Event(), embedder.inner

        class Stuck:
            def __getattr__(self, name: str) -> Any:
                return getattr(real, name)

            async def embed(self, texts: Sequence[str], task: str = "document") -> Any:
                if task == "query":
                    reached.set()
                    await asyncio.sleep(60)
                return await real.embed(texts, task)  # a document, which an earlier test left

        tools = [{"type": "file_search", "vector_store_ids": [store]}]
        embedder.inner = Stuck()
        try:
            run = await desk.start("a question nobody asked before", tools=tools, memory=False)
            await asyncio.wait_for(reached.wait(), 5)
            run.abandon()
            response = await run.done()
        finally:
            embedder.inner = real
        assert response.status == "cancelled"
        (item,) = response.output
        assert (item["type"], item["status"]) == ("file_search_call", "incomplete")
        events = await hear(run)
        assert [event["sequence_number"] for event in events] == list(range(len(events)))

    desk.run(test())


def test_abandoned_while_it_is_stored(desk: Any) -> None:
    """Too late: it is complete, and stays so."""
    desk.script({"text": "whole"})

    async def test() -> None:
        run = await desk.start()
        await until_async(lambda: run.response.status == "completed", "the end of the response")
        run.abandon()
        assert (await run.done()).status == "completed"
        assert (await desk.responses.get(run.response.id)).status == "completed"

    desk.run(test())


def test_a_product_that_is_closed_ends_what_is_under_way(tmp_path: Any, desk: Any) -> None:
    """With the reason; a background response that said nothing is made by whoever opens the folder next."""
    script = tmp_path / "script.json"
    script.write_text(
        '{"turns": [{"when": "speak", "text": "half a", "hang": true, "repeat": true}, {"when": "wait", "hang": true},'
        ' {"when": "wait", "text": "made later"}]}'
    )
    settings = {"embedder": {"url": "hash:64"}, "model": {"url": f"scripted:{script}"}}
    with memoranda.open(tmp_path / "data", **settings) as opened:
        responses = opened.inner.responses

        async def begin() -> tuple[str, str, str]:
            spoken = await responses.start(ResponseRequest(input="speak"))
            behind = await responses.create("speak behind", background=True)
            waiting = await responses.create("wait", background=True)
            await until_async(lambda: len(opened.inner.engine.model.asked) == 3, "three questions")
            await until_async(lambda: text(spoken.response) == "half a", "the text")
            kept = opened.inner.engine.background._keeping
            await until_async(lambda: text(kept[behind.id].run.response) == "half a", "the text")
            return spoken.response.id, behind.id, waiting.id

        ids = opened.portal.call(begin())
    script.write_text('{"turns": [{"when": "wait", "text": "made later"}]}')
    with memoranda.open(tmp_path / "data", **settings) as opened:
        responses = opened.inner.responses
        for id_ in ids[:2]:
            held = opened.portal.call(responses.get(id_))
            assert (held.status, held.error["message"], text(held)) == ("failed", ENDING, "half a")

        async def wait() -> Response:
            async with asyncio.timeout(5):
                while (held := await responses.get(ids[2])).status in ("queued", "in_progress"):
                    await asyncio.sleep(0.01)
            return held

        made = opened.portal.call(wait())
        assert (made.status, text(made)) == ("completed", "made later")

        async def events(id_: str) -> list[int]:
            return [one["sequence_number"] async for batch in await responses.events(id_) for one in batch]

        for id_ in ids[1:]:
            told = opened.portal.call(events(id_))
            assert told == list(range(len(told)))


def test_what_follows_a_response(desk: Any) -> None:
    """Hooks hear of each one that is stored, after its end was told; one that fails harms nobody, and is counted."""
    desk.script({"text": "hi", "repeat": True})
    failures = desk.inner.core.tally["background_failures.responses"]
    engine, heard, kept = desk.inner.engine, [], list(desk.inner.engine.hooks)

    async def fail(answered: Any) -> None:
        raise ValueError("it failed")

    async def note(answered: Any) -> None:
        held = await desk.inner.as_subject(answered.subject).responses.get(answered.response.id)
        heard.append((held.id, held.status, answered.input[0]["content"][0]["text"]))

    engine.hooks += [fail, note]
    try:
        stored, behind = desk.create("one"), desk.create("two", background=True)
        desk.create("three", store=False)
        desk.run(until_async(lambda: len(heard) == 2, "two events"))
    finally:
        engine.hooks[:] = kept
    assert sorted(heard) == sorted([(stored.id, "completed", "one"), (behind.id, "completed", "two")])
    assert desk.inner.core.tally["background_failures.responses"] == failures + 2


def test_two_hundred_streams_at_once_lose_nothing(desk: Any) -> None:
    desk.script({"text": WORDS, "repeat": True})

    async def one(n: int) -> None:
        run = await desk.start(f"number {n}", store=n % 10 == 0, memory=False)
        events = await hear(run)
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        deltas = [event["delta"] for event in events if event["type"].endswith("text.delta")]
        assert "".join(deltas) == WORDS
        assert events[-1]["type"] == "response.completed"

    def left() -> list[str]:
        return [task for task in map(repr, asyncio.all_tasks()) if AGENT in task]

    async def test() -> None:
        await asyncio.gather(*(one(n) for n in range(200)))
        await until_async(left, "the end of its tasks", accept=not_)

    desk.run(test())
    assert desk.rows("SELECT count(*) FROM responses WHERE tenant_id = ?", desk.tenant) == [(20,)]
    assert not desk.inner.engine._runs
