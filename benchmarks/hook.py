"""What a prompt waits for memory: the hook of a client, with the start of its process, as a share of its 300 ms.

    python benchmarks/hook.py [--memories N] [--prompts N] [--embedder URL]

A server has the folder, as that of `memoranda mcp` does. Each prompt is a process of its own; `bare` is a process of
the same interpreter that does nothing. `answered` are the prompts that were told something within the limit.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time

from memoranda import Memoranda
from memoranda.config import load
from memoranda.server.serve import listening, serving, url_of

LIMIT_MS = 300.0
THINGS = ("kettle", "car", "garden", "letter", "bread", "river", "window", "bicycle", "lamp", "guitar")
PLACES = ("the kitchen", "the hall", "Lisbon", "the cellar", "the office", "Ada's room", "the shed", "Oslo")


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--prompts", type=int, default=50)
    parser.add_argument("--embedder", default="")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings: dict[str, object] = {"data": folder}
        if asked.embedder:
            settings["embedder.url"] = asked.embedder
        config = load(overrides=settings)
        await fill(config, asked.memories)
        with listening("127.0.0.1", 0) as door:
            async with serving(config, door, signals=False) as server:
                running = asyncio.create_task(server.serve(sockets=[door]))
                print(f"{asked.memories} memories, served at {url_of(door)}")
                await asyncio.to_thread(measure, folder, asked.prompts)
                server.should_exit = True
                await running


async def fill(config: object, count: int) -> None:
    """Remember so many things."""
    drawn = random.Random(7)
    texts = [
        {"content": f"The {drawn.choice(THINGS)} number {n} is in {drawn.choice(PLACES)}.", "user_id": "ada"}
        for n in range(count)
    ]
    async with await Memoranda.open(config=config) as opened:  # type: ignore[arg-type]
        for start in range(0, count, 1_000):
            await opened.memories.add_many(texts[start : start + 1_000])


def measure(folder: str, prompts: int) -> None:
    """Ask each prompt in a process of its own, and print the times."""
    hook = [sys.executable, "-m", "memoranda", "hook", "prompt", "--data", folder, "--user", "ada"]
    times, bare, answered = [], [], 0
    for number in range(prompts + 3):
        prompt = f"Where is the {THINGS[number % len(THINGS)]} number {number}?"
        given = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": prompt}
        start = time.perf_counter()
        done = subprocess.run(hook, input=json.dumps(given).encode(), capture_output=True, check=True)
        took = time.perf_counter() - start
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", ""], check=True)
        if number >= 3:  # the first ones warm the server
            times.append(took * 1_000)
            bare.append((time.perf_counter() - start) * 1_000)
            answered += bool(done.stdout)
    middle, most = statistics.median(times), statistics.quantiles(times, n=20)[-1]
    print(f"answered {answered} of {prompts}")
    print(f"median   {middle:6.1f} ms  {middle / LIMIT_MS:.2f} of the limit")
    print(f"p95      {most:6.1f} ms  {most / LIMIT_MS:.2f} of the limit")
    print(f"bare     {statistics.median(bare):6.1f} ms")


if __name__ == "__main__":
    asyncio.run(main())
