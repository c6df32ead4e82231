"""Replies before what nobody waits for, on a server that answers few calls at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from memoranda.config.agent_sections import Model as Settings
from memoranda.errors import ModelBroken, ModelError, ModelRefused
from memoranda.providers.chat import open_model
from memoranda.providers.chat.base import AnswerTimedOut, Ask, Ended, Model, TextDelta, TokenUsage
from memoranda.providers.chat.priority import STOPPED, Priority
from support.raw_server import Raw, event, head, raw, stream, whole

ASK = Ask(messages=[{"role": "user", "content": "Hello"}])
BEHIND = Ask(messages=[{"role": "user", "content": "Which facts?"}], stream=False, background=True)
HELLO = stream({"content": "Hello"})


def opened(server: Raw, provider: str | None = None) -> Model:
    return open_model(Settings(url=server.url, name="small", provider=provider, timeout=30.0))


async def text(model: Model, ask: Ask) -> str:
    return "".join([piece.text async for piece in model.answer(ask) if isinstance(piece, TextDelta)])


async def last(model: Model, ask: Ask) -> Ended:
    ended = [piece async for piece in model.answer(ask) if isinstance(piece, Ended)]
    return ended[0]


async def once(condition: Callable[[], bool]) -> None:
    """Wait until it is so."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


def test_a_background_call_is_stopped_for_a_reply_and_made_again() -> None:
    async def test() -> None:
        async with raw(
            [head(), event({"content": "half"}), "hang"], [head(), HELLO], [head(), HELLO]
        ) as server:
            model = opened(server)
            behind = asyncio.create_task(text(model, BEHIND))
            await once(lambda: len(server.bodies) == 1)
            assert await text(model, ASK) == "Hello"
            assert await behind == "Hello"
            await once(lambda: server.left == 1)
            asked = [body["messages"][0]["content"] for body in server.bodies]
            assert asked == ["Which facts?", "Hello", "Which facts?"]

    run(test)


def test_the_usage_counts_what_was_stopped() -> None:
    async def test() -> None:
        async with raw(
            [head(), event({"content": "half" * 10}), "hang"], [head(), HELLO], [head(), HELLO]
        ) as server:
            model = opened(server)
            behind = asyncio.create_task(last(model, BEHIND))
            await once(lambda: len(server.bodies) == 1)
            await asyncio.sleep(0.05)
            await text(model, ASK)
            usage = (await behind).usage
            assert usage is not None
            assert usage.input == 2 * -(-len("Which facts?") // 4)
            assert usage.output in (-(-len("Hello") // 4), 10 + -(-len("Hello") // 4))

    run(test)


@pytest.mark.parametrize(
    ("then", "error", "out", "seconds"),
    [
        ([head(), event({"content": "half" * 10})], ModelBroken, 10, 60.0),
        ([head(), event({"content": "half" * 10}), "hang"], AnswerTimedOut, 10, 5.0),
        ([whole({}, "400 Bad Request")], ModelRefused, 0, 60.0),
    ],
)
def test_the_error_of_a_call_has_the_usage_of_all_attempts(
    then: list[Any], error: type[ModelError], out: int, seconds: float
) -> None:
    async def test() -> None:
        async with raw([head(), event({"content": "half"}), "hang"], [head(), HELLO], then) as server:
            model = opened(server)
            behind = asyncio.create_task(text(model, replace(BEHIND, seconds=seconds)))
            await once(lambda: len(server.bodies) == 1)
            await text(model, ASK)
            with pytest.raises(error) as caught:
                await behind
            usage = caught.value.usage
            assert isinstance(usage, TokenUsage)
            attempts = 1 if error is ModelRefused else 2
            assert usage.input == attempts * -(-len("Which facts?") // 4)
            assert usage.output in (out, out + 1)

    run(test)


def test_the_error_of_a_call_that_answered_nothing_has_no_usage() -> None:
    async def test() -> None:
        async with raw([whole({}, "400 Bad Request")]) as server:
            with pytest.raises(ModelRefused) as caught:
                await text(opened(server), BEHIND)
            assert caught.value.usage is None

    run(test)


def test_a_background_call_waits_while_a_reply_is_under_way() -> None:
    async def test() -> None:
        async with raw([head(), event({"content": "Hel"}), "hang"], [head(), HELLO]) as server:
            model = opened(server)
            reply = model.answer(ASK)
            await anext(reply)
            behind = asyncio.create_task(text(model, BEHIND))
            await asyncio.sleep(0.1)
            assert len(server.bodies) == 1
            await reply.aclose()  # type: ignore[attr-defined]
            assert await behind == "Hello"

    run(test)


@pytest.mark.parametrize("provider", ["vllm", "openai", "litellm", "gemini", "mistral"])
def test_servers_of_many_calls_at_once_are_asked_side_by_side(provider: str) -> None:
    async def test() -> None:
        async with raw([head(), event({"content": "half"}), "hang"], [head(), HELLO]) as server:
            model = opened(server, provider)
            behind = asyncio.create_task(text(model, BEHIND))
            await once(lambda: len(server.bodies) == 1)
            assert await text(model, ASK) == "Hello"
            assert not behind.done()
            behind.cancel()
            with pytest.raises(asyncio.CancelledError):
                await behind

    run(test)


@pytest.mark.parametrize("provider", [None, "openai"])
def test_a_background_call_that_never_ends_is_given_up(provider: str | None) -> None:
    async def test() -> None:
        async with raw([head(), event({"content": "half"}), "hang"], [head(), HELLO]) as server:
            model = opened(server, provider)
            coming = model.answer(replace(BEHIND, seconds=0.2))
            with pytest.raises(AnswerTimedOut, match=r"did not end its answer within 0\.2 s") as caught:
                await anext(coming)
            assert isinstance(caught.value, ModelBroken)
            assert caught.value.usage.input == -(-len("Which facts?") // 4)
            assert model.usage()["failures"] == 1
            assert await text(model, BEHIND) == "Hello"

    run(test)


def test_the_wait_for_replies_does_not_count_as_time_of_the_call() -> None:
    async def test() -> None:
        async with raw([head(), event({"content": "Hel"}), "hang"], [head(), HELLO]) as server:
            model = opened(server)
            reply = model.answer(ASK)
            await anext(reply)
            behind = asyncio.create_task(text(model, replace(BEHIND, seconds=2.0)))
            await asyncio.sleep(2.1)
            assert len(server.bodies) == 1
            await reply.aclose()  # type: ignore[attr-defined]
            assert await behind == "Hello"

    run(test)


def test_a_call_that_was_stopped_often_runs_to_its_end() -> None:
    async def test() -> None:
        priority, began, go_on = Priority(), asyncio.Semaphore(0), asyncio.Event()
        tries = 0

        async def work() -> str:
            nonlocal tries
            tries += 1
            began.release()
            await go_on.wait()
            return "done"

        behind = asyncio.create_task(priority.background(work))
        for number in range(STOPPED + 1):
            await began.acquire()
            with priority.reply():
                await asyncio.sleep(0)
            assert tries == number + 1
        go_on.set()
        assert await behind == "done"
        assert (tries, priority.stopped) == (STOPPED + 1, STOPPED)

    run(test)


def test_background_calls_run_one_at_a_time_and_fail_as_they_are() -> None:
    async def test() -> None:
        priority, running, most = Priority(), 0, 0

        async def work() -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            running -= 1
            raise ValueError("as it is")

        found = await asyncio.gather(*(priority.background(work) for _ in range(3)), return_exceptions=True)
        assert [str(one) for one in found] == ["as it is"] * 3
        assert most == 1

    run(test)


def test_who_is_cancelled_waits_no_more() -> None:
    """Also where a reply stopped the call at the same moment."""

    async def test() -> None:
        priority, began = Priority(), asyncio.Event()
        ended: list[str] = []

        async def work() -> None:
            began.set()
            try:
                await asyncio.sleep(60)
            finally:
                ended.append("ended")

        for with_reply in (False, True):
            began.clear()
            behind = asyncio.create_task(priority.background(work))
            await began.wait()
            behind.cancel()
            if with_reply:
                with priority.reply():
                    pass
            with pytest.raises(asyncio.CancelledError):
                await behind
        assert ended == ["ended"] * 2

    run(test)


def test_an_endpoint_that_is_never_idle_does_not_keep_background_calls_out() -> None:
    async def test() -> None:
        priority = Priority(patience=0.01)

        async def work() -> str:
            return "done"

        with priority.reply():
            assert await priority.background(work) == "done"

    run(test)
