"""What splitting a document costs beside tokenizing it: MB/s of each strategy over those of the bare tokenizer.

    python benchmarks/chunking.py [--corpus corpus.jsonl] [--megabytes 4] [--rounds 3]

The corpus is JSON lines with `title` and `text` (the abstracts of SciFact); without one, sentences are made up. They
are one document, abstracts a paragraph each. Rates are megabytes of UTF-8 per CPU-second, the best of the rounds. The
bare tokenizer is tiktoken's own `encode_ordinary` on slabs of the text, the least that any splitter by tokens can do.
`over` counts chunks that are over the size. semchunk (with our exact counter, not remembered from round to round) and
langchain-text-splitters are measured where they are installed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from memoranda.text import semantic, tokens
from memoranda.text.splitting import Chunking, split
from memoranda.text.tokens import count

SIZE, OVERLAP = 512, 50
PROSE = "we met at the river market and talked about the winter trip to see her sister before school starts"


def made_up(size: int) -> str:
    """Sentences of 8 to 25 words, six to a paragraph, of `size` characters in all."""
    rng, words = np.random.default_rng(0), PROSE.split()
    paragraphs: list[str] = []
    length = 0
    while length < size:
        lines = (
            " ".join(words[j] for j in rng.integers(0, len(words), rng.integers(8, 25))) for _ in range(6)
        )
        paragraphs.append(" ".join(line.capitalize() + "." for line in lines))
        length += len(paragraphs[-1]) + 2
    return "\n\n".join(paragraphs)[:size]


def document(corpus: Path | None, size: int) -> str:
    """The corpus as one text of at most `size` characters."""
    if corpus is None:
        return made_up(size)
    rows = map(json.loads, corpus.read_text("utf-8").splitlines())
    return "\n\n".join(f"{row['title']}\n{row['text']}" for row in rows)[:size]


def splitters() -> dict[str, Callable[[str], Sequence[str]]]:
    """The ways to split, by name: text to chunks."""

    def ours(chunking: Chunking) -> Callable[[str], Sequence[str]]:
        return lambda text: [text[place.start : place.end] for place in split(text, [], [], chunking)]

    def grouped(text: str) -> Sequence[str]:
        places = split(text, [], [], Chunking(strategy="semantic", size=SIZE))
        vectors = np.random.default_rng(0).normal(size=(len(places), 384)).astype(np.float32)
        return [text[place.start : place.end] for place in semantic.group(text, places, vectors, SIZE)]

    ways: dict[str, Callable[[str], Sequence[str]]] = {
        "fixed": ours(Chunking(strategy="fixed", size=SIZE, overlap=OVERLAP)),
        "recursive": ours(Chunking(strategy="recursive", size=SIZE, overlap=OVERLAP)),
        "semantic, sentences": ours(Chunking(strategy="semantic", size=SIZE, overlap=0)),
        "semantic, grouped": grouped,
    }
    if find_spec("semchunk"):
        import semchunk

        ways["semchunk"] = lambda text: semchunk.chunk(text, SIZE, count, memoize=False)
        ways[f"semchunk, overlap {OVERLAP}"] = lambda text: semchunk.chunk(
            text, SIZE, count, memoize=False, overlap=OVERLAP
        )
    if find_spec("langchain_text_splitters"):
        from langchain_text_splitters import RecursiveCharacterTextSplitter

        ways["langchain, recursive"] = RecursiveCharacterTextSplitter(
            chunk_size=SIZE, chunk_overlap=OVERLAP, length_function=count
        ).split_text
    return ways


def best(call: Callable[[], object], rounds: int) -> float:
    """CPU seconds of the fastest of the calls."""
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        call()
        taken.append(time.process_time() - began)
    return min(taken)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--megabytes", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    text = document(args.corpus, int(args.megabytes * 1e6))
    size = len(text.encode()) / 1e6
    total = count(text)
    bpe = tokens._load(tokens.DEFAULT_ENCODING).bpe
    slabs = [text[at : at + tokens.SLAB] for at in range(0, len(text), tokens.SLAB)]
    bare = best(lambda: [bpe.encode_ordinary(slab) for slab in slabs], args.rounds)
    print(f"{size:.1f} MB, {total} tokens; chunks of {SIZE} tokens, overlap {OVERLAP}\n")
    print("| | MB/s | M tokens/s | of the tokenizer | chunks | mean tokens | over |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    print(f"| bare tokenizer | {size / bare:.1f} | {total / bare / 1e6:.2f} | 1.00 | | | |")
    for name, way in splitters().items():
        taken = best(lambda way=way: way(text), args.rounds)  # type: ignore[misc]
        costs = [count(chunk) for chunk in way(text)]
        cells = [f"{size / taken:.1f}", f"{total / taken / 1e6:.2f}", f"{bare / taken:.2f}"]
        cells += [str(len(costs)), f"{np.mean(costs):.0f}", str(sum(cost > SIZE for cost in costs))]
        print("| " + " | ".join([name, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
