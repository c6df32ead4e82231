"""How fast and how true the word indexes are: CPU time per search, build cost, agreement with full BM25.

The corpus is conversation turns recombined from the sentences of LoCoMo (and SciFact, when given), 1 to 4
sentences each; the questions are LoCoMo's. Scopes are sessions of 5 000 turns. With `--tenants N`, N tenants hold
`--rows` turns each, in turn, and one is asked. CPU milliseconds of this process, all its threads; the seed is fixed.

    python benchmarks/words.py --locomo locomo.json [--scifact corpus.jsonl] [--rows 100000] [--only tantivy]
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from math import log
from pathlib import Path

import numpy as np

from memoranda.filters import EVERYTHING, Compare, Filter
from memoranda.indexes.keyword import WORDS, WordDoc, Words, open_words
from memoranda.text.terms import query_terms, terms

SCOPE = 5_000
BATCH = 500
LIMIT = 50
TAIL = 400
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def read_sources(locomo: Path, scifact: Path | None) -> tuple[list[str], list[str]]:
    """Sentences and questions."""
    sentences, questions = [], []
    for sample in json.loads(locomo.read_text()):
        questions += [entry["question"] for entry in sample["qa"]]
        for key, turns in sample["conversation"].items():
            if re.fullmatch(r"session_\d+", key):
                sentences += [s for turn in turns for s in SENTENCE_END.split(turn["text"]) if s]
    if scifact is not None:
        for line in scifact.read_text().splitlines():
            sentences += SENTENCE_END.split(json.loads(line)["text"])
    return sentences, questions


def corpus(sentences: Sequence[str], rows: int) -> Iterator[WordDoc]:
    """`rows` turns, always the same."""
    rng = random.Random(7)
    for seq in range(rows):
        text = " ".join(rng.choices(sentences, k=rng.randint(1, 4)))
        yield WordDoc(seq, text, attributes(seq))


def attributes(seq: int) -> dict[str, object]:
    return {
        "$seq": seq,
        "$kind": "message",
        "$session_id": f"s{seq // SCOPE}",
        "$user_id": f"u{seq % 50}",
        "$occurred_at": 1.7e9 + seq * 60.0,
        "$tags": ["chat"],
        "lang": "en",
    }


class FullBm25:
    """Every document scored from the definition, for the questions at hand."""

    def __init__(self, docs: Iterator[WordDoc], questions: Sequence[str]) -> None:
        wanted = {term for question in questions for term in query_terms(question)}
        postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        lengths = []
        for doc in docs:
            words = terms(doc.text)
            lengths.append(len(words))
            for term, count in Counter(words).items():
                if term in wanted:
                    postings[term].append((doc.seq, count))
        self._norms = 1.2 * (0.25 + 0.75 * np.array(lengths) / np.mean(lengths))
        self._postings = {term: np.array(pairs) for term, pairs in postings.items()}

    def scores(self, question: str) -> np.ndarray:
        """One score per document, 0 where no term occurs."""
        rows = len(self._norms)
        scores = np.zeros(rows)
        for term in query_terms(question):
            if term in self._postings:
                seqs, counts = self._postings[term].T
                idf = log(1 + (rows - len(seqs) + 0.5) / (len(seqs) + 0.5))
                scores[seqs] += idf * counts * 2.2 / (counts + self._norms[seqs])
        return scores

    def overlap(self, question: str, found: Sequence[int], top: int = 10) -> float:
        """The share of the best `top` that was found; what ties with the last of them counts too."""
        scores = self.scores(question)
        top = min(top, int(np.count_nonzero(scores)))
        if top == 0:
            return 1.0
        floor = np.partition(scores, -top)[-top]
        return float(np.count_nonzero(scores[list(found[:top])] >= floor - 1e-9)) / top


def cpu_ms(searches: Sequence[Callable[[], object]]) -> tuple[float, float]:
    """p50 and p99 of the CPU milliseconds of the calls."""
    taken = []
    for search in searches:
        start = time.process_time()
        search()
        taken.append((time.process_time() - start) * 1e3)
    taken.sort()
    return statistics.median(taken), taken[int(len(taken) * 0.99)]


def build(words: Words, docs: Iterator[WordDoc], tenants: Sequence[str]) -> tuple[float, float]:
    """CPU seconds until all is durable, and those of them on the calling thread."""
    start, calling = time.process_time(), 0.0
    batch: list[WordDoc] = []
    for doc in docs:
        batch.append(doc)
        if len(batch) == BATCH:
            begun = time.thread_time()
            for tenant in tenants:
                words.put(tenant, batch)
            calling += time.thread_time() - begun
            batch = []
    for tenant in tenants:
        words.put(tenant, batch)
    words.flush(1)
    while words.watermark < 1:
        time.sleep(0.05)
    return time.process_time() - start, calling


def measure(scheme: str, args: argparse.Namespace, sentences: list[str], questions: list[str]) -> list[str]:
    """One row of the table."""
    rows: int = args.rows
    tenants = ["default", *(f"tenant{i}" for i in range(1, args.tenants))]
    generating = time.process_time()
    for _ in corpus(sentences, rows):
        pass
    generating = time.process_time() - generating
    with tempfile.TemporaryDirectory() as folder:
        words = open_words(f"{scheme}:", Path(folder))
        built, calling = build(words, corpus(sentences, rows), tenants)
        words.search("default", questions[0], LIMIT)

        def searches(where: Filter = EVERYTHING) -> list[Callable[[], object]]:
            return [lambda q=q: words.search("default", q, LIMIT, where) for q in questions]

        everywhere = cpu_ms(searches())
        scoped = cpu_ms(searches(Compare("$session_id", "eq", f"s{rows // SCOPE // 2}")))
        since = cpu_ms(searches(Compare("$occurred_at", "gte", 1.7e9 + rows * 60.0 * 0.9)))
        reference = FullBm25(corpus(sentences, rows), questions)
        overlap = [reference.overlap(q, words.search("default", q, LIMIT).seqs.tolist()) for q in questions]
        tail = with_tail(words, sentences, rows, questions)
        size = words.health()["bytes"]
        words.close()
    cells = [scheme, *(f"{p50:.2f} / {p99:.2f}" for p50, p99 in (everywhere, scoped, since, tail))]
    held = rows * len(tenants)
    cells += [f"{built - generating:.1f}", f"{calling / held * 1e6:.1f}", f"{int(str(size)) / held:.0f}"]
    return [*cells, f"{statistics.mean(overlap):.3f}"]


def with_tail(words: Words, sentences: list[str], rows: int, questions: list[str]) -> tuple[float, float]:
    """Searches right after `TAIL` more documents, fewer than start a commit by themselves, kept waiting."""
    taken: list[float] = []
    docs = list(corpus(sentences, TAIL))
    for start in range(0, len(questions), 50):
        words.put("default", [WordDoc(rows + d.seq, d.text, d.attributes) for d in docs])
        words.search("default", questions[start], LIMIT)
        for question in questions[start : start + 50]:
            begun = time.process_time()
            words.search("default", question, LIMIT)
            taken.append((time.process_time() - begun) * 1e3)
        rows += TAIL
    taken.sort()
    return statistics.median(taken), taken[int(len(taken) * 0.99)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--locomo", type=Path, required=True)
    parser.add_argument("--scifact", type=Path)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--tenants", type=int, default=1)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--only", choices=sorted(WORDS), action="append")
    args = parser.parse_args()
    if not args.locomo.exists():
        print(f"skipped: {args.locomo} is not there", file=sys.stderr)
        return 0
    sentences, questions = read_sources(args.locomo, args.scifact)
    questions = [q for q in questions if query_terms(q)][: args.questions]
    print(
        f"{args.rows} rows, {args.tenants} tenant(s), {len(questions)} questions, limit {LIMIT}, CPU ms p50 / p99\n"
    )
    print(
        f"| | all | scope of 5k | last 10 % by date | all, tail of {TAIL} "
        "| build CPU s | put us/doc | B/doc | overlap@10 |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for scheme in args.only or WORDS:
        print("| " + " | ".join(measure(scheme, args, sentences, questions)) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
