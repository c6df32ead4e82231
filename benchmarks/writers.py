"""What a second writing process adds: writes a second through one process and through two, on one PostgreSQL.

    python benchmarks/writers.py [--seconds S] [--rounds N]

Each process has four threads that write one thing after another: memories (`add`) or messages of a session each
(`observe`), with `hash:64` and the default indexes. Beside them, in turns, the bare database: as many connections that
insert one row in a transaction each. Every run has an empty database of its own, in a temporary PostgreSQL with fsync.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import psycopg

import memoranda
from servers import database

THREADS = 4
HOW = ("bare", "add", "observe")
BARE = "CREATE TABLE IF NOT EXISTS written (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text text)"


def write(url: str, how: str, seconds: float) -> int:
    """Return how many writes four threads have ended."""
    counts: list[int] = []

    def repeat(one: Callable[[int], object]) -> None:
        until, done = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            one(done)
            done += 1
        counts.append(done)

    def bare(_: int) -> None:
        with psycopg.connect(url, autocommit=True) as raw:
            repeat(lambda n: raw.execute("INSERT INTO written (text) VALUES (%s)", [f"text {n}"]))

    with memoranda.open(":memory:", database={"url": url}, embedder={"url": "hash:64"}) as opened:
        own = f"{os.getpid()}"

        def add(thread: int) -> None:
            repeat(lambda n: opened.memories.add(f"{own} {thread} {n} about the garden and the river"))

        def observe(thread: int) -> None:
            session = f"{own}-{thread}"
            repeat(
                lambda n: opened.observe(
                    [{"content": f"message {n} about the garden", "user_id": "nora"}], session_id=session
                )
            )

        work = {"bare": bare, "add": add, "observe": observe}[how]
        threads = [threading.Thread(target=work, args=[n]) for n in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return sum(counts)


def measure(url: str, how: str, processes: int, seconds: float) -> float:
    """Return the writes a second of so many processes together."""
    command = [sys.executable, __file__, "--child", how, "--url", url, "--seconds", str(seconds)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    return sum(int(process.communicate()[0]) for process in running) / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", choices=HOW, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(write(given.url, given.child, given.seconds))
        return
    rates: dict[tuple[str, int], list[float]] = {(how, count): [] for how in HOW for count in (1, 2)}
    numbers = itertools.count()
    with database(None) as server:
        for _ in range(given.rounds):
            for (how, count), runs in rates.items():
                name = f"writers_{next(numbers)}"
                with psycopg.connect(server, autocommit=True) as raw:
                    raw.execute(f"CREATE DATABASE {name}")
                url = urlsplit(server)._replace(path=f"/{name}").geturl()
                with psycopg.connect(url, autocommit=True) as raw:
                    raw.execute("CREATE EXTENSION vector")
                    raw.execute(BARE)
                with memoranda.open(":memory:", database={"url": url}, embedder={"url": "hash:64"}):
                    pass  # the migrations
                runs.append(measure(url, how, count, given.seconds))
    report(rates)


def report(rates: dict[tuple[str, int], list[float]]) -> None:
    """The table, and how the machine was."""
    print("| writes/s | one process | two | two / one | one, of bare | two, of bare |")
    print("|---|--:|--:|--:|--:|--:|")
    speeds = {key: statistics.median(runs) for key, runs in rates.items()}
    for how in HOW:
        one, two = speeds[how, 1], speeds[how, 2]
        shares = f"{one / speeds['bare', 1]:.3f} | {two / speeds['bare', 2]:.3f}"
        print(f"| {how} | {one:.0f} | {two:.0f} | {two / one:.2f} | {shares} |")
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"\nload average {load} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
