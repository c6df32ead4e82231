"""What a context costs beyond the embedding of its question, over many memories of one tenant.

    python benchmarks/context.py [--rows 100000] [--questions 100] [--data FOLDER]

Messages in sessions of thirty, a summary for one session in fifty, and a store of documents; vectors are given, and
every question is embedded before the clock starts. Figures are CPU milliseconds of this process; the searches that a
context is made of are measured in the same run, so that the last column is what putting it together costs on top. Ends
with 1 when the whole context's median is above 15 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np

from growth import DIM, LANGUAGE, vectors
from memoranda import Memoranda
from memoranda.clock import moment
from memoranda.contexts.assembly import semantic_query
from memoranda.types import KINDS

BEGAN = 1_700_000_000_000_000
MINUTE = 60_000_000
SESSION = 30
EVERY = 50
LIMIT = 15.0
RECENT = [
    {"role": ("user", "assistant")[at % 2], "content": LANGUAGE.text(9_000_000 + at)} for at in range(12)
]
WHOLE: dict[str, Any] = {
    "system": "Answer from what follows, and cite it.",
    "summary": LANGUAGE.text(8_000_000) * 4,
    "recent": RECENT,
}


async def fill(rc: Memoranda, rows: int) -> str:
    """Writes all of it; the id of the store."""
    base = vectors(rows, 7, None)
    for at in range(0, rows, 1_000):
        batch = []
        for i in range(at, min(rows, at + 1_000)):
            session, text = f"s{i // SESSION}", LANGUAGE.text(i)
            if i % (SESSION * EVERY) == 0:
                window = {
                    "started_at": BEGAN + i * MINUTE,
                    "ended_at": BEGAN + (i + SESSION) * MINUTE,
                    "session_id": session,
                }
                said: dict[str, Any] = {
                    "kind": "session_summary", "metadata": window, "tags": text.split()[:4],
                    "content": " ".join(LANGUAGE.text(i + n) for n in range(6)),
                }  # fmt: skip
            else:
                said = {
                    "kind": "message",
                    "content": text,
                    "role": "user",
                    "metadata": {"speaker": ("Mara", "Bob")[i % 2]},
                }
            batch.append(
                {"id": f"m{i}", "session_id": session, "channel_id": "c", "embedding": base[i], **said}
                | {"occurred_at": moment(BEGAN + i * MINUTE)}
            )
        await rc.memories.add_many(batch)
    await log(rc, rows)
    stores = rc.knowledge.stores
    store = await stores.create(name="papers")
    for n in range(20):
        text = "\n\n".join(
            " ".join(LANGUAGE.text(n * 1_000 + k) for k in range(at, at + 8)) for at in range(0, 400, 8)
        )
        file = await stores.upload(store.id, text.encode(), f"{n}.txt")
        await stores.wait_file(store.id, file.id, every=0.02)
    return store.id


async def log(rc: Memoranda, rows: int) -> None:
    """The message log of those messages, for neighbours."""
    columns = [
        "tenant_id", "seq", "id", "key", "session_id", "channel_id", "role", "speaker", "content", "tokens", "metadata",
        "indexed", "extract", "occurred_at", "created_at",
    ]  # fmt: skip
    insert = (
        f"INSERT INTO messages ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) RETURNING 1"
    )

    def work(c: Any) -> None:
        for i in range(rows):
            at = BEGAN + i * MINUTE
            c.select(
                insert,
                [
                    "default",
                    i,
                    f"m{i}",
                    f"k{i}",
                    f"s{i // SESSION}",
                    "c",
                    "user",
                    "Mara",
                    LANGUAGE.text(i),
                    20,
                    "{}",
                    1,
                    0,
                    at,
                    at,
                ],
            )

    await rc.core.threads.result(rc.core.store.db.write(work, tenant="default"))


async def cost(
    work: Callable[[int], Awaitable[Any]], before: Callable[[int], Awaitable[Any]], questions: int
) -> list[float]:
    """(p50, p99) CPU milliseconds of `work(i)`, each after `before(i)`."""
    spent = []
    for i in range(questions):
        await before(i)
        began = time.process_time()
        await work(i)
        spent.append((time.process_time() - began) * 1e3)
    return [float(np.percentile(spent, at)) for at in (50, 99)]


async def measure(rc: Memoranda, store: str, rows: int, questions: int) -> float:
    """Prints the table; the median of the whole context."""
    brief = [one["content"] for one in RECENT]
    core, kinds = rc.core, [kind for kind in KINDS if kind not in ("session_summary", "rollup")]

    def question(i: int) -> str:
        return LANGUAGE.question(i * (rows // questions))

    async def embedded(i: int) -> None:
        await core.embedder.embed([question(i), semantic_query(question(i), brief)], "query")

    async def searched(i: int) -> None:
        query = question(i)
        await asyncio.gather(
            rc.memories.search(query, limit=15, kinds=kinds, explain=True),  # type: ignore[arg-type]
            rc.memories.search(query, limit=8, kinds=["session_summary", "rollup"], explain=True),
            rc.knowledge.stores.search(store, query, limit=5),
        )

    def context(**fields: Any) -> Callable[[int], Awaitable[Any]]:
        return lambda i: rc.context(question(i), **fields)

    cases: dict[str, Callable[[int], Awaitable[Any]]] = {
        "one search, ten memories": lambda i: rc.memories.search(question(i), limit=10),
        "the three searches of a context": searched,
        "memories": context(sessions=0),
        "memories, sessions": context(),
        "the whole: documents, rules, summary, 12 messages": context(stores=[store], **WHOLE),
        "the whole, neighbours 2": context(stores=[store], neighbours=2, **WHOLE),
        "the whole, diversity .3": context(stores=[store], diversity=0.3, **WHOLE),
        "the whole, budget 8000": context(stores=[store], budget=8_000, limit=40, passages=15, **WHOLE),
    }
    print(f"| CPU ms beyond the embedding, {rows:,} memories | p50 | p99 | searches x |\n|---|--:|--:|--:|")
    medians = {}
    for name, work in cases.items():
        await cost(work, embedded, 5)
        medians[name], worst = await cost(work, embedded, questions)
        times = medians[name] / medians.get("the three searches of a context", medians[name])
        print(f"| {name} | {medians[name]:.3g} | {worst:.3g} | {times:.2f} |", flush=True)
    return medians["the whole: documents, rules, summary, 12 messages"]


async def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--rows", type=int, default=100_000)
    given.add_argument("--questions", type=int, default=100)
    given.add_argument("--data", type=Path, help="a folder to keep the memories in, for another run")
    asked = given.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings: dict[str, Any] = {"embedder": {"url": f"hash:{DIM}"}, "sessions": {"summarize": False}}
        async with await Memoranda.open(asked.data or Path(folder) / "data", **settings) as rc:
            held = (await rc.knowledge.stores.list()).data
            store = held[0].id if held else await fill(rc, asked.rows)
            spent = await measure(rc, store, asked.rows, asked.questions)
    sys.exit(spent > LIMIT)


asyncio.run(main())
