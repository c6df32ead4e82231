"""What a response costs beyond the language model: answers, first tokens, tokens, tools, streams at once, long chains.

    python benchmarks/responses.py [--rounds N] [--streams N] [--deltas N] [--turns N]

A chat-completions server that plays a script stands for the model, in a process of its own; Memoranda serves in
another. Each question goes straight to the model's server and through Memoranda, in turns, so that the difference is
what Memoranda adds. The machine should be quiet; the load is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from memoranda import Memoranda, Subject
from memoranda.providers.chat.scripted_app import scripted_app
from memoranda.responses.history import History

WORDS = [
    "The",
    "filter",
    "of",
    "the",
    "pump",
    "is",
    "changed",
    "every",
    "six",
    "months,",
    "and",
    "the",
    "belt",
    "too.",
]
SEARCH = {"name": "file_search", "arguments": {"query": "filter pump"}}
TURNS: list[dict[str, Any]] = [
    {"when": "^short", "text": "Every six months.", "repeat": True},
    {"when": "^first", "text": ["Every ", "six ", "months."], "repeat": True, "first": 0.02, "delay": 0.02},
    {
        "when": "^search",
        "offered": "file_search",
        "after": "",
        "text": "Every six months [1].",
        "repeat": True,
    },
    {"when": "^search", "offered": "file_search", "calls": [SEARCH], "repeat": True},
]


def model_server(port_file: Path, deltas: int) -> None:
    """The model's process: `long` answers have `deltas` pieces, as fast as they go."""
    pieces = [f"{WORDS[i % len(WORDS)]} " for i in range(deltas)]
    slow = {"when": "^slow", "text": pieces[:200], "repeat": True, "delay": 0.02}
    app = scripted_app([*TURNS, {"when": "^long", "text": pieces, "repeat": True}, slow])
    server = uvicorn.Server(uvicorn.Config(app, "127.0.0.1", 0, log_level="warning"))

    async def serve() -> None:
        task = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port_file.write_text(str(server.servers[0].sockets[0].getsockname()[1]))
        await task

    asyncio.run(serve())


@contextlib.contextmanager
def process(command: list[str], ready: Callable[[], str | None]) -> Iterator[tuple[str, int]]:
    """A process until the block ends: what `ready` found, and its id."""
    held = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while (found := ready()) is None:
            assert held.poll() is None, f"{command[1:4]} ended at once"
            assert time.monotonic() < until, f"{command[1:4]} did not start"
            time.sleep(0.05)
        yield found, held.pid
    finally:
        held.terminate()
        held.wait()


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads of a process so far."""
    used = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it ended meanwhile
            used += int((task / "schedstat").read_text().split()[0])
    return used / 1e9


def p50(values: list[float]) -> float:
    return statistics.median(values) * 1e3


def p90(values: list[float]) -> float:
    return statistics.quantiles(values, n=10)[-1] * 1e3


class Bench:
    """The questions, asked both ways."""

    def __init__(self, model: str, house: str, rounds: int) -> None:
        self.model, self.house, self.rounds = model, house, rounds
        self.client = httpx.Client(timeout=60)
        self.store = ""

    def straight(self, text: str, tools: int = 0) -> float:
        body = {"model": "scripted", "messages": [{"role": "user", "content": text}]}
        began = time.perf_counter()
        self.client.post(f"{self.model}/chat/completions", json=body).raise_for_status()
        return time.perf_counter() - began

    def through(self, text: str, **fields: Any) -> float:
        began = time.perf_counter()
        answer = self.client.post(f"{self.house}/v1/responses", json={"input": text, **fields})
        took = time.perf_counter() - began
        assert answer.json()["status"] == "completed", answer.text[:500]
        return took

    def embedding(self, text: str) -> float:
        began = time.perf_counter()
        body = {"input": text, "model": "arctic-embed-s", "input_type": "query"}
        self.client.post(f"{self.house}/v1/embeddings", json=body)
        return time.perf_counter() - began

    def first(self, url: str, body: dict[str, Any], mark: bytes) -> float:
        began = time.perf_counter()
        with self.client.stream("POST", url, json=body) as answer:
            took = None
            for chunk in answer.iter_bytes():
                if took is None and mark in chunk:
                    took = time.perf_counter() - began
        assert took is not None, "it did not come"
        return took

    def answers(self) -> None:
        """Whole answers, in turns."""
        kinds: dict[str, Callable[[int], float]] = {
            "model alone": lambda i: self.straight(f"short {i}"),
            "response, nothing stored, no memory": lambda i: self.through(f"short {i}", store=False, memory=False),
            "response, stored, no memory": lambda i: self.through(f"short {i}", memory=False),
            "response, stored, memory (embeds)": lambda i: self.through(f"short {i} of memory"),
            "one embedding over HTTP": lambda i: self.embedding(f"short {i} alone"),
            "file_search turn, no memory (embeds once)": lambda i: self.through(
                f"search {i}", memory=False, tools=[{"type": "file_search", "vector_store_ids": [self.store]}]
            ),
        }  # fmt: skip
        took: dict[str, list[float]] = {name: [] for name in kinds}
        for i in range(-5, self.rounds):
            for name, ask in kinds.items():
                seconds = ask(i)
                if i >= 0:
                    took[name].append(seconds)
        alone = p50(took["model alone"])
        print(f"\n| answer | p50, ms | p90, ms | beyond the model ({alone:.2f}), ms |\n|---|---|---|---|")
        for name, values in took.items():
            calls = 2 if name.startswith("file_search") else 1
            beyond = (
                ""
                if name in ("model alone", "one embedding over HTTP")
                else f"{p50(values) - calls * alone:.2f}"
            )
            print(f"| {name} | {p50(values):.2f} | {p90(values):.2f} | {beyond} |")

    def first_tokens(self) -> None:
        """The first token of a stream."""
        straight: list[float] = []
        through: list[float] = []
        chat = {"model": "scripted", "stream": True, "messages": [{"role": "user", "content": "first"}]}
        ours = {"input": "first", "stream": True, "memory": False}
        for i in range(-3, self.rounds // 2):
            one = self.first(f"{self.model}/chat/completions", chat, b"Every")
            other = self.first(f"{self.house}/v1/responses", ours, b"output_text.delta")
            if i >= 0:
                straight.append(one)
                through.append(other)
        print(f"\nfirst token: model alone {p50(straight):.2f} ms, through Memoranda {p50(through):.2f} ms,")
        print(f"  added {p50(through) - p50(straight):.2f} ms (p50)")

    def deltas(self, pid: int, count: int) -> None:
        """CPU for each streamed token."""
        ours = {"input": "long", "stream": True, "memory": False, "store": False}
        for _ in range(2):
            self.first(f"{self.house}/v1/responses", ours, b"completed")
        before, began = cpu_seconds(pid), time.perf_counter()
        for _ in range(5):
            self.first(f"{self.house}/v1/responses", ours, b"completed")
        used, took = cpu_seconds(pid) - before, time.perf_counter() - began
        print(
            f"\nCPU for a streamed delta: {used / (5 * count) * 1e6:.0f} us ({5 * count / took:.0f} deltas/s)"
        )


async def streams(house: str, count: int, pid: int) -> None:
    """Many streams at once: every event there, in order."""
    limits = httpx.Limits(max_connections=count)
    lost = deltas = 0

    async def one(client: httpx.AsyncClient, i: int) -> None:
        nonlocal lost, deltas
        text, number, done = "", -1, None
        body = {"input": f"slow {i}", "stream": True, "memory": False}
        async with client.stream("POST", f"{house}/v1/responses", json=body) as answer:
            async for line in answer.aiter_lines():
                if not line.startswith("data: "):
                    continue
                event = json.loads(line[6:])
                lost += event["sequence_number"] != number + 1
                number = event["sequence_number"]
                if event["type"] == "response.output_text.delta":
                    text += event["delta"]
                    deltas += 1
                elif event["type"] == "response.completed":
                    done = event["response"]["output"][-1]["content"][0]["text"]
        lost += done != text

    before, began = cpu_seconds(pid), time.perf_counter()
    async with httpx.AsyncClient(timeout=120, limits=limits) as client:
        await asyncio.gather(*(one(client, i) for i in range(count)))
    took, used = time.perf_counter() - began, cpu_seconds(pid) - before
    print(f"\n{count} streams at once: {deltas} deltas in {took:.1f} s, {lost} events lost or out of order,")
    print(f"  {used / deltas * 1e6:.0f} us CPU a delta")


async def chain(turns: int) -> None:
    """Loading a long chain."""
    script = {"turns": [{"text": "Every six months, says the manual of the pump.", "repeat": True}]}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "script.json"
        place.write_text(json.dumps(script))
        async with await Memoranda.open(
            Path(folder) / "data", embedder={"url": "hash:256"}, model={"url": f"scripted:{place}"}
        ) as r:
            last: str | None = None
            for i in range(turns):
                asked = f"How often is part {i} of the pump changed, and what does it cost?"
                answer = await r.responses.create(asked, previous_response_id=last, memory=False)
                last = answer.id
            history: History = r.engine.history
            took = []
            for _ in range(20):
                began = time.perf_counter()
                past = await history.load(Subject(), previous_response_id=last)
                took.append(time.perf_counter() - began)
            assert len(past.items) == 2 * turns, len(past.items)
            print(f"\na chain of {turns} turns ({past.tokens} tokens) loads in {p50(took):.1f} ms (p50)")


def main() -> None:
    """Everything, in a minute or two."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--deltas", type=int, default=2_000)
    parser.add_argument("--turns", type=int, default=500)
    parser.add_argument("--model-server", type=Path)
    asked = parser.parse_args()
    if asked.model_server:
        model_server(asked.model_server, asked.deltas)
        return
    print(f"load {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        port, log = Path(folder) / "port", Path(folder) / "data" / "memoranda.lock"
        me = [sys.executable, __file__, "--model-server", str(port), "--deltas", str(asked.deltas)]
        with process(me, lambda: port.read_text() or None if port.exists() else None) as (found, _):
            model = f"http://127.0.0.1:{found}/v1"
            serve = [sys.executable, "-m", "memoranda", "serve", "--port", "0", "--data", str(log.parent)]
            sets = ["--set", f"model.url={model}", "--set", "model.name=scripted"]
            with process([*serve, *sets], lambda: _address(log)) as (house, pid):
                bench = Bench(model, house, asked.rounds)
                bench.store = _filled(house)
                bench.answers()
                bench.first_tokens()
                bench.deltas(pid, asked.deltas)
                asyncio.run(streams(house, asked.streams, pid))
    asyncio.run(chain(asked.turns))


def _address(lock: Path) -> str | None:
    with contextlib.suppress(OSError, ValueError):
        return str(json.loads(lock.read_text()).get("url") or "") or None
    return None


def _filled(house: str) -> str:
    """A store with a hundred passages."""
    with httpx.Client(base_url=f"{house}/v1", timeout=60) as client:
        store = client.post("/vector_stores", json={"name": "bench"}).json()["id"]
        text = "\n\n".join(
            f"Part {i}: the filter of pump {i} is changed every {i} months." for i in range(2_000)
        )
        file = client.post(
            "/files", files={"file": ("pumps.txt", text)}, data={"purpose": "assistants"}
        ).json()
        client.post(f"/vector_stores/{store}/files", json={"file_id": file["id"]})
        while client.get(f"/vector_stores/{store}").json()["file_counts"]["completed"] < 1:
            time.sleep(0.2)
    return store


if __name__ == "__main__":
    main()
