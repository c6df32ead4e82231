"""What HTTP adds to a search: the same questions to the library and through a server, taken in turns.

    python benchmarks/over_http.py [--memories N] [--searches N] [--embedder URL]

One process holds the library and the server; the client has its own. `added` is the difference of the medians of wall
time. The questions are asked once before the clock runs, so that embedding them is a matter of the cache on both sides.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import multiprocessing
import random
import statistics
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import uvicorn

from memoranda import Memoranda
from memoranda.server import create_app
from memoranda.server.serve import listening, url_of

WORDS = (
    "kettle",
    "green",
    "car",
    "red",
    "garden",
    "winter",
    "letter",
    "sister",
    "music",
    "bread",
    "river",
    "window",
)


def texts(count: int, seed: int) -> list[str]:
    """Sentences of twelve words."""
    draw = random.Random(seed)
    return [f"{' '.join(draw.choices(WORDS, k=12))} {i}" for i in range(count)]


def caller(url: str, pipe: Connection) -> None:
    """Answers each question that comes through the pipe with the seconds its search took."""
    http_ = http.client.HTTPConnection(url.removeprefix("http://"))
    while (question := pipe.recv()) is not None:
        body = json.dumps({"query": question})
        began = time.perf_counter()
        http_.request("POST", "/v1/memories/search", body)
        answer = http_.getresponse()
        held = answer.read()
        seconds = time.perf_counter() - began
        assert answer.status == 200, held
        pipe.send(seconds)


async def measure(memories: int, searches: int, embedder: str) -> dict[str, list[float]]:
    """Seconds of each search, by way."""
    async with await Memoranda.open(":memory:", embedder={"url": embedder}) as rc:
        held = texts(memories, 1)
        for at in range(0, memories, 5_000):
            await rc.memories.add_many(held[at : at + 5_000])
        with listening("127.0.0.1", 0) as door:
            server = uvicorn.Server(
                uvicorn.Config(create_app(rc), lifespan="off", log_config=None, access_log=False)
            )
            serving = asyncio.create_task(server.serve(sockets=[door]))
            here, there = multiprocessing.get_context("spawn").Pipe()
            process = multiprocessing.get_context("spawn").Process(target=caller, args=(url_of(door), there))
            process.start()
            taken = await both(rc, here, texts(50, 2), searches)
            here.send(None)
            process.join()
            server.should_exit = True
            await serving
    return taken


async def both(rc: Memoranda, pipe: Connection, asked: list[str], searches: int) -> dict[str, list[float]]:
    """The questions in turns: library, HTTP, library, ..."""
    loop = asyncio.get_running_loop()

    def over_http(question: str) -> float:
        pipe.send(question)
        seconds: float = pipe.recv()
        return seconds

    taken: dict[str, list[float]] = {"library": [], "http": []}
    for i in range(searches + len(asked)):
        question = asked[i % len(asked)]
        began = time.perf_counter()
        await rc.memories.search(question)
        library = time.perf_counter() - began
        through = await loop.run_in_executor(None, over_http, question)
        if i >= len(asked):
            taken["library"].append(library)
            taken["http"].append(through)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--searches", type=int, default=1_000)
    parser.add_argument("--embedder", default="hash:384")
    given = parser.parse_args()
    taken = asyncio.run(measure(given.memories, given.searches, given.embedder))
    rank: Callable[[list[float], float], float] = lambda s, q: sorted(s)[int(q * len(s))] * 1000  # noqa: E731
    print("| ms | p50 | p95 |\n|---|---|---|")
    for way, seconds in taken.items():
        print(f"| {way} | {statistics.median(seconds) * 1000:.2f} | {rank(seconds, 0.95):.2f} |")
    added = [statistics.median(taken["http"]) - statistics.median(taken["library"])]
    print(
        f"| added | {added[0] * 1000:.2f} | {rank(taken['http'], 0.95) - rank(taken['library'], 0.95):.2f} |"
    )


if __name__ == "__main__":
    main()
