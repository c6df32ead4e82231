"""What it costs to live with a memory that grows: saying one more thing, searching an equal scope, at 10k to 1M rows.

    python benchmarks/living.py --rows 10000 100000 1000000

One tenant whose channels hold 5000 messages each, a session being 30 of them. Texts are words drawn by Zipf's law;
vectors are the hash embedder's (384 dimensions), made by the jobs while the folder is filled. Observing is one message
in a channel that is there, as a bot does before it replies, with no job beside it; `commits` are the transactions that
one took. A search asks one channel in both ways. CPU milliseconds of this process.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import memoranda
from growth import LANGUAGE, cpu

SCOPE = 5_000
SESSION = 30
BEGAN = datetime(2024, 1, 1, tzinfo=UTC)
SPEAKERS = ("Ana", "Ben", "Chloe", "Dana", "Emil")
EMBEDDER = {"url": "hash:384"}
OBSERVED = 400
SEARCHED = 200


def when(i: int) -> datetime:
    """When the i-th message of a channel was said: a minute after the one before, an hour between two sessions."""
    return BEGAN + timedelta(minutes=i + 60 * (i // SESSION))


def message(i: int) -> dict[str, object]:
    """The i-th message of all."""
    return {"content": LANGUAGE.text(i), "speaker": SPEAKERS[i % 5], "occurred_at": when(i % SCOPE)}


def fill(folder: Path, rows: int) -> float:
    """Observes all messages, a thousand at a time, and waits for their vectors; CPU microseconds a message."""
    quiet = {"summarize": False, "rollups": False, "batch_size": 1_000}
    began = time.process_time()
    with memoranda.open(folder, embedder=EMBEDDER, sessions=quiet) as rc:
        for channel in range(rows // SCOPE):
            for at in range(channel * SCOPE, (channel + 1) * SCOPE, 1_000):
                rc.observe(
                    [message(i) for i in range(at, at + 1_000)], channel_id=f"c{channel}", user_id=None
                )
        core = rc.inner.core
        while core.store.db.read(lambda c: c.select("SELECT 1 FROM unembedded LIMIT 1", [])):
            time.sleep(0.5)
    return (time.process_time() - began) / rows * 1e6


def counted(rc: memoranda.app.blocking.BlockingMemoranda) -> Callable[[], int]:
    """How many transactions have been committed so far."""
    transaction = rc.inner.core.store.db._group._transaction
    commits, real = [0], transaction.commit

    def commit() -> None:
        commits[0] += 1
        real()

    transaction.commit = commit
    return lambda: commits[0]


def measure(folder: Path, rows: int) -> dict[str, float]:
    """Opens the filled folder, says more and searches."""
    figures: dict[str, float] = {}
    channels = rows // SCOPE
    quiet = {"summarize": False, "rollups": False}
    with memoranda.open(folder, embedder=EMBEDDER, sessions=quiet, jobs={"workers": 0}) as rc:

        def ask(i: int) -> None:
            rc.memories.search(LANGUAGE.question(i * 7919 % rows), scopes=[f"channel:c{i % channels}"])

        def observe(i: int) -> None:
            said = {"content": LANGUAGE.text(rows + i), "speaker": "Ana", "occurred_at": when(SCOPE + i)}
            rc.observe([said], channel_id=f"c{i % min(channels, 2)}", user_id=None)

        for i in range(20):
            ask(i)
        figures["search_p50"], figures["search_p99"] = cpu(ask, SEARCHED)
        for i in range(20):
            observe(i)
        commits = counted(rc)
        figures["observe_p50"], figures["observe_p99"] = cpu(lambda i: observe(20 + i), OBSERVED)
        figures["commits"] = commits() / OBSERVED
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument(
        "--folder", type=Path, default=None, help="where to put the data (default: temporary)"
    )
    args = parser.parse_args()
    table: dict[int, dict[str, float]] = {}
    for rows in args.rows:
        folder = Path(tempfile.mkdtemp(prefix="living-", dir=args.folder))
        try:
            filled = fill(folder / "data", rows)
            table[rows] = {"filled_cpu_us": filled, **measure(folder / "data", rows)}
        finally:
            shutil.rmtree(folder)
    first = next(iter(table.values()))
    last = list(table.values())[-1]
    print("| figure | " + " | ".join(f"{rows:,}" for rows in table) + " | last / first |")
    print("|---|" + "--:|" * (len(table) + 1))
    for name in first:
        row = " | ".join(f"{table[rows][name]:.3g}" for rows in table)
        print(f"| {name} | {row} | {last[name] / first[name]:.2f} |")


if __name__ == "__main__":
    main()
