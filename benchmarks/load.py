"""A server under load: how long `/healthz` takes meanwhile, what is refused, and what memory it takes.

    python benchmarks/load.py bodies     12 requests of 63 MiB at once
    python benchmarks/load.py announced  one request of 63 MiB beside 40 that announce as much and send nothing
    python benchmarks/load.py headers    1 500 connections with half a request
    python benchmarks/load.py replays    600 clients read the events of one response
    python benchmarks/load.py clients    200 clients ask for contexts for 15 seconds

Each is a server of its own in a temporary folder, with the default embedding model for `clients`. Seconds are wall time
as the clients see it; another process asks `/healthz` fifty times a second.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing.synchronize import Event
from pathlib import Path

import httpx

CLIENTS, SECONDS = 200, 15.0
BODY = 63 << 20
TEXT = "word " * 3_000


def healths(port: int, ended: Event, results: multiprocessing.Queue[list[float]]) -> None:
    """Put the seconds of each request for `/healthz` until the end."""
    seconds = []
    while not ended.is_set():
        began = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        connection.close()
        seconds.append(time.perf_counter() - began)
        time.sleep(0.02)
    results.put(seconds)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextlib.contextmanager
def server(port: int, *settings: str, data: Path | None = None, source: str | None = None) -> Iterator[int]:
    """Run a server and yield its process id; `source` is the `src` of another checkout."""
    with tempfile.TemporaryDirectory() as folder:
        options = [word for setting in settings for word in ("--set", setting)]
        command = [
            sys.executable,
            "-m",
            "memoranda",
            "serve",
            "--data",
            str(data or folder),
            "--port",
            str(port),
            *options,
        ]
        environment = os.environ | ({} if source is None else {"PYTHONPATH": source})
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
        )
        try:
            for _ in range(300):
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                time.sleep(0.1)
            yield process.pid
        finally:
            process.terminate()
            process.wait(30)


def resident(pid: int) -> int:
    """Return the MiB of memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmRSS"))


async def bodies(client: httpx.AsyncClient, pid: int) -> str:
    body = json.dumps({"content": "x" * BODY}).encode()
    before, peak = resident(pid), 0
    sending = asyncio.gather(*(client.post("/v1/memories", content=body) for _ in range(12)))
    while not sending.done():
        peak = max(peak, resident(pid))
        await asyncio.sleep(0.01)
    statuses = Counter(answer.status_code for answer in await sending)
    await asyncio.sleep(3.0)
    return f"{dict(statuses)}, {before} MiB before, {peak} at most, {resident(pid)} after"


async def announced(client: httpx.AsyncClient, pid: int) -> str:
    address = (client.base_url.host, client.base_url.port)
    silent = [await asyncio.open_connection(*address) for _ in range(40)]
    for _, writer in silent:
        writer.write(
            f"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Length: {BODY}\r\n\r\n".encode()
        )
    await asyncio.sleep(1.0)
    answer = await client.post("/v1/memories", content=json.dumps({"content": "x" * BODY}).encode())
    for _, writer in silent:
        writer.close()
    return f"{answer.status_code}, {answer.json()['error']['code']}"


async def headers(client: httpx.AsyncClient, pid: int) -> str:
    began, address = time.perf_counter(), (client.base_url.host, client.base_url.port)
    halves = [await asyncio.open_connection(*address) for _ in range(1_500)]
    for _, writer in halves:
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: ")
    await asyncio.gather(*(reader.read() for reader, _ in halves), return_exceptions=True)
    return f"all {len(halves)} closed after {time.perf_counter() - began:.1f} s"


async def replays(client: httpx.AsyncClient, pid: int) -> str:
    asked = await client.post("/v1/responses", json={"input": "Say it.", "background": True})
    path = f"/v1/responses/{asked.json()['id']}"
    while (await client.get(path)).json()["status"] in ("queued", "in_progress"):
        await asyncio.sleep(0.1)
    began = time.perf_counter()
    answers = await asyncio.gather(*(client.get(path, params={"stream": True}) for _ in range(600)))
    statuses = Counter(answer.status_code for answer in answers)
    return f"{dict(statuses)}, {len(answers[0].content):,} bytes each, {time.perf_counter() - began:.1f} s"


async def clients(client: httpx.AsyncClient, pid: int) -> str:
    texts = [{"content": f"memory {number} of kettles in city {number % 97}"} for number in range(2_000)]
    await client.post("/v1/memories/batch", json={"memories": texts})
    asked = {"query": "which city has kettles?"}
    await client.post("/v1/context", json=asked)
    until, seconds, statuses = time.perf_counter() + SECONDS, list[float](), Counter[int]()

    async def ask() -> None:
        while time.perf_counter() < until:
            began = time.perf_counter()
            answer = await client.post("/v1/context", json=asked)
            statuses[answer.status_code] += 1
            if answer.status_code == 200:
                seconds.append(time.perf_counter() - began)
            else:
                await asyncio.sleep(float(answer.headers["retry-after"]))

    await asyncio.gather(*(ask() for _ in range(CLIENTS)))
    seconds.sort()
    return f"{dict(statuses)}, an answer takes {seconds[len(seconds) // 2]:.1f} s, at most {seconds[-1]:.1f}"


ATTACKS = {
    "bodies": bodies,
    "announced": announced,
    "headers": headers,
    "replays": replays,
    "clients": clients,
}


async def attack(name: str) -> None:
    with contextlib.ExitStack() as opened:
        port = free_port()
        settings = [] if name == "clients" else ["embedder.url=hash:64"]
        if name == "replays":
            sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
            from support.chat_server import serving

            url, _ = opened.enter_context(serving([{"text": TEXT}]))
            settings += [f"model.url={url}", "model.name=scripted"]
        pid = opened.enter_context(server(port, *settings))
        context = multiprocessing.get_context("spawn")
        ended, results = context.Event(), context.Queue()
        probe = context.Process(target=healths, args=(port, ended, results))
        probe.start()
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", timeout=120, limits=limits
        ) as client:
            print(f"{name}: {await ATTACKS[name](client, pid)}")
        ended.set()
        seconds = sorted(results.get())
        probe.join()
        print(f"/healthz: {seconds[len(seconds) * 9 // 10]:.3f} s in nine of ten, at most {seconds[-1]:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("attack", choices=ATTACKS)
    asyncio.run(attack(parser.parse_args().attack))
