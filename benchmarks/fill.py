"""Fill a new store with memories of twelve words, half of them messages.

    python benchmarks/fill.py FOLDER MEMORIES EMBEDDER

Uses only what every version has, so that versions can be compared: `PYTHONPATH` is the `src` of one.
"""

from __future__ import annotations

import asyncio
import random
import sys

from memoranda import Memoranda

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


async def filled(folder: str, memories: int, embedder: str) -> None:
    """Write so many memories into a new store."""
    kinds: list[dict[str, str]] = [{"kind": "note"}, {"kind": "message", "role": "user", "session_id": "s"}]
    new = [{"content": text} | kinds[i % 2] for i, text in enumerate(texts(memories, 1))]
    async with await Memoranda.open(folder, embedder={"url": embedder}) as rc:
        for at in range(0, memories, 1_000):
            await rc.memories.add_many(new[at : at + 1_000])


if __name__ == "__main__":
    asyncio.run(filled(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
