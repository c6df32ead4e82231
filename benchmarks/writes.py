"""What writing costs beside embedding: the product's rate over the embedder's own, in one run.

    python benchmarks/writes.py [--texts 600]

Short conversation turns with the default model. The embedder alone is given the same texts as the product embeds; both
rates are texts per CPU-second of the process, the best of three rounds each, in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

import numpy as np

import memoranda
from memoranda.providers.embeddings import open_embedder

WORDS = [
    "we",
    "met",
    "at",
    "the",
    "river",
    "market",
    "and",
    "talked",
    "about",
    "the",
    "winter",
    "trip",
    "to",
    "see",
    "her",
    "sister",
    "before",
    "school",
    "starts",
    "again",
]


def texts(count: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [
        " ".join(WORDS[j] for j in rng.integers(0, len(WORDS), 14)) + f" {seed} {i}" for i in range(count)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=600)
    parser.add_argument("--embedder", default="local:arctic-embed-s")
    args = parser.parse_args()
    alone, product = [], []
    embedder = open_embedder(args.embedder)
    asyncio.run(embedder.embed(["warm"]))
    with (
        tempfile.TemporaryDirectory() as folder,
        memoranda.open(Path(folder) / "data", embedder={"url": args.embedder}) as rc,
    ):
        rc.memories.add("warm")
        for round_ in range(3):
            began = time.process_time()
            asyncio.run(embedder.embed(texts(args.texts, 2 * round_)))
            alone.append(args.texts / (time.process_time() - began))
            began = time.process_time()
            rc.memories.add_many(texts(args.texts, 2 * round_ + 1))
            product.append(args.texts / (time.process_time() - began))
    print("| texts per CPU-second | embedder alone | written by the product | share |")
    print("|---|--:|--:|--:|")
    print(f"| {args.embedder} | {max(alone):.0f} | {max(product):.0f} | {max(product) / max(alone):.3f} |")


if __name__ == "__main__":
    main()
