"""Makes the projection of token vectors, and the weights of a question's tokens (`embeddings.token_vectors`).

    python benchmarks/token_projection.py pairs.jsonl locomo.json [--embedder URL] [--out tokens.npz]

The projection is the principal components of the token vectors of texts, and the weights predict how rare a token is,
by ridge regression on questions: no label is used. The table has the recall of token similarity alone.

A projection trained on which text answers which question (listwise loss, hard negatives, straight-through signs, 811
pairs and the other conversations) has R@10 .778 alone where this has .756, and as one feature of the second stage .844
where this has .840 and principal components of LoCoMo alone .847: nothing that is not noise.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.app.evals import locomo
from memoranda.config.data_sections import Embedder as Settings
from memoranda.providers.embeddings.local import open_local
from memoranda.providers.embeddings.onnx import OnnxEmbedder
from memoranda.store.rows import searched_text
from memoranda.store.validation import Bounds, draft
from memoranda.types import Subject

Floats = NDArray[np.float32]
BOUNDS = Bounds(1 << 20, 64, 1 << 16)
DIM = 128
RIDGE = 3.0


class Asked(msgspec.Struct):
    """A question: the unit states (t, hidden) of its tokens, the rarity (t,) of each, the texts that answer it, and its
    category."""

    states: Floats
    rarity: Floats
    right: NDArray[np.int64]
    category: str = ""


class Pool(msgspec.Struct):
    """Texts among which questions choose: unit states (n, hidden) of all their tokens, where each text begins."""

    name: str
    states: Floats
    starts: NDArray[np.int64]
    asked: list[Asked]


class Fit(msgspec.Struct):
    """The projection (hidden, DIM) and the weights (hidden,)."""

    projection: Floats
    weights: Floats

    def signs(self, states: Floats) -> Floats:
        signs: Floats = np.where(states @ self.projection > 0, 1.0, -1.0).astype(np.float32) / np.sqrt(DIM)
        return signs

    def of_question(self, states: Floats) -> tuple[Floats, Floats]:
        """Return the projected unit vectors (t, DIM) of a question's tokens, and their weights (t,)."""
        logits = states @ self.weights
        weights = np.exp(logits - logits.max())
        return units(states @ self.projection), weights / weights.sum()

    def scores(self, pool: Pool, asked: Asked, signs: Floats) -> Floats:
        """Return the token similarity of each text of the pool."""
        vectors, weights = self.of_question(asked.states)
        scores: Floats = np.maximum.reduceat(signs @ vectors.T, pool.starts, axis=0) @ weights
        return scores


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", type=Path)
    parser.add_argument("locomo", type=Path)
    parser.add_argument("--embedder", default="local:arctic-embed-s")
    parser.add_argument("--out", type=Path, help="write the projection and the weights")
    options = parser.parse_args()
    embedder = open_local(options.embedder, Settings())
    assert isinstance(embedder, OnnxEmbedder)
    languages = embedder.languages or {"en"}
    pairs = [json.loads(line) for line in options.pairs.read_text("utf-8").splitlines()]
    read = of_pairs(embedder, [pair for pair in pairs if pair["language"] in languages])
    talks = list(of_talks(embedder, options.locomo))
    embedder.close()
    print(
        f"{len(read.asked)} pairs, {sum(len(talk.asked) for talk in talks)} questions to {len(talks)} conversations"
    )
    fit = fitted([read, *talks])
    report(fit, talks)
    if options.out:
        np.savez(options.out, projection=fit.projection.astype(np.float16), weights=fit.weights)


def of_pairs(embedder: OnnxEmbedder, pairs: Sequence[dict[str, str]]) -> Pool:
    """Return the pairs as one pool: each question has one text that answers it."""
    texts = [embedder.token_states(pair["text"], "document") for pair in pairs]
    asked = [(pair["question"], [place], "") for place, pair in enumerate(pairs)]
    return pool_of(embedder, "pairs", texts, asked)


def of_talks(embedder: OnnxEmbedder, path: Path) -> Iterator[Pool]:
    """Yield a pool for each conversation of a LoCoMo file. Turns are embedded as stored, with date and speaker."""
    dataset = locomo.read(path)
    for name in sorted({question.group for question in dataset.questions}):
        turns = {key: turn for key, turn in dataset.memories.items() if turn.session_id == name}
        place = {key: number for number, key in enumerate(turns)}
        rows = [draft(turn, Subject(), 0, BOUNDS, "").row for turn in turns.values()]
        texts = [embedder.token_states(searched_text(row), "document") for row in rows]
        asked = [
            (question.text, sorted(place[key] for key in question.grades if key in place), question.category)
            for question in dataset.questions
            if question.group == name
        ]
        yield pool_of(embedder, name, texts, asked)


def pool_of(
    embedder: OnnxEmbedder,
    name: str,
    texts: Sequence[tuple[list[int], Floats]],
    asked: Sequence[tuple[str, list[int], str]],
) -> Pool:
    counts = Counter(id_ for ids, _ in texts for id_ in set(ids))
    questions = []
    for question, right, category in asked:
        ids, states = embedder.token_states(question, "query")
        rarity = np.log([1.0 + len(texts) / (1.0 + counts[id_]) for id_ in ids]).astype(np.float32)
        questions.append(Asked(units(states), rarity, np.array(right), category))
    starts = np.cumsum([0, *(len(ids) for ids, _ in texts[:-1])])
    return Pool(name, units(np.concatenate([states for _, states in texts])), starts, questions)


def fitted(pools: Sequence[Pool]) -> Fit:
    """Return principal components as the projection, and weights that predict the rarity of a token (ridge)."""
    states = np.concatenate([pool.states for pool in pools])
    directions = np.linalg.svd(states.T @ states)[0][:, :DIM]
    x = np.concatenate([asked.states for pool in pools for asked in pool.asked])
    y = np.log(np.concatenate([asked.rarity for pool in pools for asked in pool.asked]))
    solved = np.linalg.solve(x.T @ x + RIDGE * np.eye(x.shape[1]), x.T @ (y - y.mean()))
    return Fit(np.ascontiguousarray(directions, np.float32), solved.astype(np.float32))


def units(vectors: Floats) -> Floats:
    result: Floats = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9)
    return result


def report(fit: Fit, talks: Sequence[Pool]) -> None:
    """Print the recall at 10 of token similarity alone."""
    recalls: dict[str, list[float]] = {}
    for talk in talks:
        signs = fit.signs(talk.states)
        for asked in talk.asked:
            first = np.argsort(-fit.scores(talk, asked, signs), kind="stable")[:10]
            recalls.setdefault(asked.category, []).append(
                len(np.intersect1d(first, asked.right)) / len(asked.right)
            )
    overall = np.mean([value for category in locomo.OVERALL for value in recalls[category]])
    multi_hop, adversarial = (np.mean(recalls[category]) for category in ("1", "5"))
    print(f"R@10 {overall:.3f}, multi-hop {multi_hop:.3f}, adversarial {adversarial:.3f}")


if __name__ == "__main__":
    main()
