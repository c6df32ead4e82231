"""Background maintenance: what fails is counted and tried again."""

from __future__ import annotations

import asyncio

import pytest

from memoranda.app import maintenance
from memoranda.app.memoranda import Memoranda
from support.waiting import until_async


async def test_each_failure_to_follow_other_processes_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    async with await Memoranda.open(":memory:", embedder={"url": "hash:16"}) as product:
        core, followed = product.core, list[int]()

        def refresh() -> None:
            followed.append(len(followed))
            if len(followed) < 3:
                raise ValueError("a defect of an index")

        monkeypatch.setattr(maintenance, "WATCH_SECONDS", 0.001)
        monkeypatch.setattr(core.store, "refresh", refresh)
        watching = asyncio.create_task(maintenance.Maintenance(core, asyncio.get_running_loop())._watch())
        await until_async(lambda: len(followed) > 3, "it goes on")
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        assert core.tally["background_failures.indexes"] == 2
