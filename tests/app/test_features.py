"""Features declare what they add to an open library; it is registered once, in their order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from memoranda.app import memoranda as module
from memoranda.app.features import features
from memoranda.app.memoranda import Memoranda
from memoranda.store.feature import Feature, install
from memoranda.store.job_kinds import MEMORY_LANE, JobKind, Run
from memoranda.store.workers import Workers


async def opened() -> Memoranda:
    return await Memoranda.open(":memory:", embedder={"url": "hash:16"})


async def work(run: Run) -> None: ...


async def erase(_: object) -> None: ...


def ignore(_: object) -> None: ...


async def test_what_features_declare_is_registered_in_their_order() -> None:
    due: list[int] = []

    async def erase_first(_: object) -> None: ...

    def clear() -> None: ...

    one = Feature(jobs={"test.one": JobKind(work, MEMORY_LANE)}, erasers=(erase_first,), due=(due.append,))
    two = Feature(erasers=(erase,), caches=(clear,))
    async with await opened() as product:
        core = product.core
        erasers, caches = [*core.erasers], [*core.store.caches]
        install(core, (one, two))
        assert core.erasers == [*erasers, erase_first, erase]
        assert core.store.caches == [*caches, clear]
        assert core.jobs.kinds["test.one"].lane == MEMORY_LANE
        core.due_times.announce(7)
    assert due == [7]


@pytest.mark.parametrize(
    "declared",
    [
        (Feature(jobs={"test.two": JobKind(work)}), Feature(jobs={"test.two": JobKind(work)})),
        (Feature(jobs={"memories.embed": JobKind(work)}),),
        (Feature(writers={"fact": None}),),  # type: ignore[dict-item]
        (Feature(on_pending=ignore), Feature(on_pending=ignore)),
        (Feature(on_behind=ignore), Feature(on_behind=ignore)),
    ],
)
async def test_two_features_cannot_declare_the_same(declared: tuple[Feature, ...]) -> None:
    async with await opened() as product:
        with pytest.raises(ValueError, match="two features"):
            install(product.core, declared)


async def test_erasers_go_from_responses_over_files_to_messages() -> None:
    async with await opened() as product:
        names = [getattr(call, "func", call).__name__ for call in product.core.erasers]
    assert names == [
        "responses", "conversations", "agents", "files", "uploads", "stores", "erase_messages", "erase_summaries",
        "erase_asked", "erase",
    ]  # fmt: skip


async def test_jobs_that_forgetting_leaves_are_declared() -> None:
    async with await opened() as product:
        kinds = product.core.jobs.kinds
    assert {name for name, kind in kinds.items() if kind.completes_deletion} == {
        "memories.release", "knowledge.remove", "memory_stores.clear",
    }  # fmt: skip
    assert {name for name, kind in kinds.items() if kind.maintenance} == {
        "memories.embed", "store.compact", "index.move", "memories.remodel", "store.repair",
    }  # fmt: skip


async def test_features_start_and_stop_while_jobs_run_and_close_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []

    def tells(event: str, call: Callable[..., Awaitable[None]] | None = None) -> Any:
        async def tell(*args: Any) -> None:
            told.append(event)
            if call is not None:
                await call(*args)

        return tell

    def with_two(*parts: Any) -> tuple[Feature, ...]:
        two = (
            Feature(start=tells(f"{name} starts"), stop=tells(f"{name} stops"), close=tells(f"{name} closes"))
            for name in ("one", "two")
        )
        return (*features(*parts), *two)

    monkeypatch.setattr(module, "features", with_two)
    monkeypatch.setattr(Workers, "start", tells("workers start", Workers.start))
    monkeypatch.setattr(Workers, "stop", tells("workers stop", Workers.stop))
    async with await opened():
        told.append("open")
    assert told == [
        "workers start", "one starts", "two starts", "open",
        "two stops", "one stops", "workers stop", "two closes", "one closes",
    ]  # fmt: skip
