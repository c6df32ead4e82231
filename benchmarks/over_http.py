"""What HTTP adds to a search: the same questions to the library and through a server, taken in turns.

    python benchmarks/over_http.py [--memories N] [--searches N] [--embedder URL]
    python benchmarks/over_http.py --trees before=SRC now=src [--only NAME ...]

One process holds the library and the server; the client has its own. `added` is the difference of the medians of wall
time. The questions are asked once before the clock runs, so that embedding them is a matter of the cache on both sides.

The second compares servers of several source trees, in turns: CPU of the server per request, and requests a second.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import math
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import uvicorn

import fill
from fill import texts
from load import free_port, server
from memoranda import Memoranda
from memoranda.server.app import create_app
from memoranda.server.serve import listening, url_of


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


# --- source trees -------------------------------------------------------------------------------

ROUNDS, TICKS = 5, os.sysconf("SC_CLK_TCK")
SEARCH, LIST, CONTEXT = "/v1/memories/search", "/v1/memories?limit=200", "/v1/context"
CASES = {
    "search, 1 client": (SEARCH, 1, 200),
    "search, 8 clients": (SEARCH, 8, 400),
    "search, 32 clients": (SEARCH, 32, 400),
    "list of 200": (LIST, 1, 100),
    "context": (CONTEXT, 1, 50),
    "add": ("/v1/memories", 1, 200),
}
"""Path, clients and requests of each case."""


def request(path: str, number: int) -> bytes:
    """The bytes of a request; searches and contexts repeat 50 questions, whose embeddings are cached."""
    question = texts(50, 2)[number % 50]
    body = {SEARCH: {"query": question}, CONTEXT: {"query": question}, LIST: None}.get(
        path, {"content": f"{texts(1, 1_000_000 + number)[0]} {time.time_ns()}"}
    )
    data = b"" if body is None else json.dumps(body).encode()
    verb = "GET" if body is None else "POST"
    return f"{verb} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


async def asked(port: int, path: str, clients: int, number: int) -> None:
    """Send so many requests, each client its next one once the last is answered."""
    requests = iter([request(path, i) for i in range(number)])

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for data in requests:
            writer.write(data)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            body = await reader.readexactly(int(head.partition(b"content-length: ")[2].split()[0]))
            assert head.startswith(b"http/1.1 20"), body
        writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))


def spent(pid: int) -> float:
    """CPU seconds of a process, all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@contextlib.contextmanager
def serving(sources: dict[str, str], memories: int, embedder: str) -> Iterator[dict[str, tuple[int, int]]]:
    """Servers of source trees with the same memories, half of them messages: port and process id by name. Each tree
    fills its own store, since an older version does not open that of a newer one."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as opened:
        ends = {}
        for name, source in sources.items():
            data, port = Path(folder, name), free_port()
            command = [sys.executable, fill.__file__, str(data), str(memories), embedder]
            subprocess.run(command, env=os.environ | {"PYTHONPATH": source}, check=True)
            serves = server(port, f"embedder.url={embedder}", data=data, source=source)
            ends[name] = (port, opened.enter_context(serves))
        yield ends


def compared(sources: dict[str, str], memories: int, embedder: str, only: list[str] | None) -> None:
    """Print the table: the best of several rounds, in which the trees take turns."""
    print(f"| CPU ms (requests/s) | {' | '.join(sources)} |\n|---{'|--:' * len(sources)}|")
    with serving(sources, memories, embedder) as ends:
        for name in only or CASES:
            path, clients, number = CASES[name]
            best = dict.fromkeys(ends, (math.inf, 0.0))
            for turn in range(ROUNDS + 1):
                for tree, (port, pid) in list(ends.items())[:: 1 if turn % 2 else -1]:
                    began, used = time.perf_counter(), spent(pid)
                    asyncio.run(asked(port, path, clients, number))
                    cpu, rate = spent(pid) - used, number / (time.perf_counter() - began)
                    if turn:  # the first fills caches
                        best[tree] = min(best[tree][0], cpu / number * 1e3), max(best[tree][1], rate)
            cells = " | ".join(f"{cpu:.2f} ({rate:.0f})" for cpu, rate in best.values())
            print(f"| {name} | {cells} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--searches", type=int, default=1_000)
    parser.add_argument("--embedder", default="hash:384")
    parser.add_argument("--trees", nargs="+", metavar="NAME=SRC", help="servers of these checkouts' `src`")
    parser.add_argument("--only", nargs="+", choices=CASES)
    given = parser.parse_args()
    if given.trees:
        sources = dict(tree.split("=", 1) for tree in given.trees)
        compared(sources, given.memories, given.embedder, given.only)
        return
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
