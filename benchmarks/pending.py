"""What a search costs while new rows wait for their vectors, beside the same search when none waits.

    python benchmarks/pending.py [--rows 10000] [--searches 30] [--postgresql]

One tenant of so many rows with given vectors, and the model that ships for what is written after them. Before each
search 2 messages are observed (a turn of a chat), or 32 (as many as a search embeds), or once 2 000 (an import);
nothing embeds in the background. Wall and CPU milliseconds of this process, the median over the searches, whose
questions are all new; a ratio is to the search with none pending, in the same run. With `--postgresql` the rows are
in a server that is started for this.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import memoranda
from growth import LANGUAGE, vectors
from memoranda.app.blocking import BlockingMemoranda
from memoranda.types import Subject

PENDING = (0, 2, 32, 2_000)
BATCH = 500
NUMBERS = itertools.count(10_000_000)
"""Of texts that were not written before."""


@contextmanager
def filled(rows: int, url: str | None) -> Iterator[BlockingMemoranda]:
    """A product with rows, and without workers."""
    settings: dict[str, Any] = {"jobs": {"workers": 0}}
    if url is not None:
        settings["database"] = {"url": url}
    with tempfile.TemporaryDirectory() as folder, memoranda.open(folder, **settings) as product:
        made = vectors(rows, 1, None)
        for at in range(0, rows, BATCH):
            product.memories.add_many(
                [
                    {"content": LANGUAGE.text(number), "embedding": made[number], "session_id": "talk"}
                    for number in range(at, min(rows, at + BATCH))
                ]
            )
        yield product


def settle(product: BlockingMemoranda) -> None:
    """Embed everything that is pending."""
    core, tenant = product.inner.core, Subject().tenant_id
    while rows := core.store.pending_rows(tenant, core.store.space, 64):
        product.portal.call(core.ingest.embed_pending(rows, tenant, reuse=True))


def measured(product: BlockingMemoranda, pending: int, searches: int) -> tuple[float, float]:
    """Median wall and CPU milliseconds of a search."""
    once = pending > 32
    wall, cpu = [], []
    for number in range(searches):
        if pending and not (once and number):
            said = [{"content": LANGUAGE.text(next(NUMBERS))} for _ in range(pending)]
            product.sessions.observe(said, session_id="talk")
        question = LANGUAGE.question(next(NUMBERS))
        began = time.perf_counter(), time.process_time()
        product.memories.search(question, scopes=["session:talk"])
        wall.append(1e3 * (time.perf_counter() - began[0]))
        cpu.append(1e3 * (time.process_time() - began[1]))
        if not once:
            settle(product)
    settle(product)
    return statistics.median(wall), statistics.median(cpu)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--searches", type=int, default=30)
    parser.add_argument("--postgresql", action="store_true")
    given = parser.parse_args()
    url = None
    if given.postgresql:
        from backends import postgres

        url = postgres().fresh_url()
    with filled(given.rows, url) as product:
        measured(product, 0, 3)
        base = measured(product, 0, given.searches)
        print(f"{'pending':>8} {'wall ms':>8} {'ratio':>6} {'CPU ms':>8} {'ratio':>6}")
        for pending in PENDING:
            wall, cpu = measured(product, pending, given.searches)
            print(f"{pending:>8} {wall:>8.1f} {wall / base[0]:>6.2f} {cpu:>8.1f} {cpu / base[1]:>6.2f}")


if __name__ == "__main__":
    main()
