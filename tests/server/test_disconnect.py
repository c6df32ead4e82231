"""Long reads end when their client goes."""

from __future__ import annotations

import asyncio

import pytest

from memoranda.server.errors import ClientGone
from memoranda.server.sse import while_connected


async def test_work_is_cancelled_when_the_client_goes() -> None:
    ended = asyncio.Event()
    going = asyncio.Event()

    async def work() -> None:
        try:
            going.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def receive() -> dict[str, str]:
        await going.wait()
        return {"type": "http.disconnect"}

    with pytest.raises(ClientGone):
        await while_connected(work(), receive)
    assert ended.is_set()


async def test_a_result_and_an_error_come_through() -> None:
    async def receive() -> dict[str, str]:
        await asyncio.Event().wait()
        raise AssertionError

    async def good() -> int:
        return 3

    async def bad() -> int:
        raise ValueError("so")

    assert await while_connected(good(), receive) == 3
    with pytest.raises(ValueError, match="so"):
        await while_connected(bad(), receive)
