"""What a writer costs the searches beside it: the same questions without and with a thread that adds memories without a
pause, in one process.

    python benchmarks/beside_writer.py [--rows 5000] [--searches 400]

Wall milliseconds of one search by keywords and of one by both indexes, with the hash embedder.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import memoranda
from memoranda.app.blocking import BlockingMemoranda


@contextmanager
def writer(opened: BlockingMemoranda) -> Iterator[None]:
    """Adds memories in a thread, one after the other."""
    ended = threading.Event()

    def write() -> None:
        number = 0
        while not ended.is_set():
            opened.memories.add(f"written {number} cedar")
            number += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def milliseconds(opened: BlockingMemoranda, mode: str, searches: int) -> tuple[float, float]:
    """The median and the 95th percentile of a search."""
    taken = []
    for _ in range(searches):
        began = time.perf_counter()
        opened.memories.search("amber 7", mode=mode)
        taken.append((time.perf_counter() - began) * 1000)
    return float(np.percentile(taken, 50)), float(np.percentile(taken, 95))


def main() -> None:
    """Print a row for each mode."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--searches", type=int, default=400)
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        memoranda.open(folder, embedder={"url": "hash:64"}) as opened,
    ):
        opened.memories.add_many([{"content": f"entry {n} amber basalt {n % 97}"} for n in range(asked.rows)])
        print("| ms of a search | alone, p50 | p95 | beside a writer, p50 | p95 |")
        print("|---|--:|--:|--:|--:|")
        for mode in ("keyword", "hybrid"):
            alone = milliseconds(opened, mode, asked.searches)
            with writer(opened):
                beside = milliseconds(opened, mode, asked.searches)
            print(f"| {mode} |", *(f"{value:.2f} |" for value in (*alone, *beside)))


if __name__ == "__main__":
    main()
