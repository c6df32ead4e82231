"""What observing a message costs beside a plain write, as a tenant grows; and what closing and summarizing costs.

    python benchmarks/sessions.py [--sizes 10000 1000000] [--sessions 10000]

Figures are CPU of this process, on a folder; nothing embeds meanwhile: vectors of observed messages follow by a job,
and plain writes bring theirs along. Messages come in sessions of ten, in fifty channels. Ends with 1 when observing
costs over 1 ms more than a write, when it costs over 1.2 times as much at the largest size as at the smallest, or when
less than 500 sessions a second are closed and summarized by rules.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Any

from growth import LANGUAGE, vectors
from memoranda import Memoranda
from memoranda.clock import moment
from memoranda.sessions import summary_memories
from memoranda.sessions.boundaries import Clock, SessionCloser
from memoranda.store.job_kinds import MEMORY_LANE

BEGAN = 1_700_000_000_000_000
MINUTE = 60_000_000
SESSION = 10
CHANNELS = 50
DIM = 64
TIMES = 400
SPEAKERS = ("Ana", "Bo", "Cy")


def message(i: int) -> dict[str, Any]:
    """The `i`-th message of a channel's history: a minute apart, and an hour after each ten."""
    at = BEGAN + (i + i // SESSION * 60) * MINUTE
    return {"content": LANGUAGE.text(i), "speaker": SPEAKERS[i % 3], "occurred_at": moment(at)}


async def fill(rc: Memoranda, start: int, stop: int) -> None:
    """Observes messages up to a number, in all channels alike."""
    for at in range(start // CHANNELS, stop // CHANNELS, 1_000):
        until = min(stop // CHANNELS, at + 1_000)
        for channel in range(CHANNELS):
            said = [message(i) for i in range(at, until)]
            await rc.observe(said, channel_id=f"c{channel}")


async def cpu(act: Callable[[int], Awaitable[Any]]) -> float:
    """The median CPU milliseconds of an act."""
    spent = []
    for n in range(TIMES):
        began = time.process_time()
        await act(n)
        spent.append(time.process_time() - began)
    return statistics.median(spent) * 1_000


async def beside(rc: Memoranda, size: int) -> tuple[float, float]:
    """CPU milliseconds of a plain write that brings its vector, and of observing one message."""
    held = vectors(TIMES, size, None)[:, :DIM]

    async def add(n: int) -> None:
        await rc.memories.add(
            f"{LANGUAGE.text(5_000_000 + n)} {size}", kind="message", role="user", channel_id="plain",
            metadata={"speaker": SPEAKERS[n % 3]}, embedding=held[n], occurred_at=moment(BEGAN + size + n),
        )  # fmt: skip

    async def observe(n: int) -> None:
        said = {"content": f"{LANGUAGE.text(6_000_000 + n)} {size}", "speaker": SPEAKERS[n % 3]}
        await rc.observe(said, channel_id=f"c{n % CHANNELS}")

    return await cpu(add), await cpu(observe)


def settings(folder: str, workers: int = 0) -> dict[str, Any]:
    return {
        "data": folder,
        "embedder": {"url": f"hash:{DIM}"},
        "jobs": {"workers": workers},
        "sessions": {"summarize": False, "batch_size": 1_000},
    }


async def growing(sizes: list[int]) -> list[tuple[int, float, float]]:
    """Costs at each size."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        async with await Memoranda.open(**settings(folder)) as rc:
            held = 0
            for size in sizes:
                await fill(rc, held, size)
                held = size
                plain, observed = await beside(rc, size)
                found.append((size, plain, observed))
                print(f"{size:>9} messages: write {plain:.3f} ms, observe {observed:.3f} ms", flush=True)
    return found


async def summarizing(sessions: int) -> float:
    """Sessions that a core closes and summarizes by rules in a second, with their weeks."""
    summary_memories.QUIET = 0
    with tempfile.TemporaryDirectory() as folder:
        given = settings(folder) | {"sessions": {"summarize": False, "batch_size": 1_000}}
        async with await Memoranda.open(**given) as rc:
            await fill(rc, 0, sessions * SESSION)
        given["sessions"] = {"summarize": True}
        async with await Memoranda.open(**given) as rc:
            core = rc.core

            def reopen(c: Any) -> None:
                c.select("UPDATE sessions SET status = 'open', due_at = 1 RETURNING 1")

            await core.threads.result(core.store.db.write(reopen))
            began, wall = time.process_time(), time.perf_counter()
            clock = Clock(SessionCloser(core))
            while not await clock.look():
                pass
            closed = time.process_time() - began
            while (run := (await core.jobs.claim(MEMORY_LANE))[0]) is not None:
                await core.jobs.attempt(run)
            spent = time.process_time() - began
            made = core.tally["session_summaries.created"]
            print(
                f"{made} sessions of {SESSION} messages, {core.tally['session_rollups.created']} weeks: closing"
                f" {closed:.1f} s, all {spent:.1f} s CPU, {time.perf_counter() - wall:.1f} s"
            )
            return made / spent


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--sessions", type=int, default=10_000)
    asked = parser.parse_args()
    found = await growing(asked.sizes) if asked.sizes != [0] else []
    wrong = any(observed - plain > 1.0 for _, plain, observed in found)
    if len(found) > 1:
        ratio = found[-1][2] / found[0][2]
        print(f"observing at {found[-1][0]} costs {ratio:.2f} times what it costs at {found[0][0]}")
        wrong |= ratio > 1.2
    if asked.sessions:
        rate = await summarizing(asked.sessions)
        print(f"{rate:.0f} sessions a second and core")
        wrong |= rate < 500
    return int(wrong)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
