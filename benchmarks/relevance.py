"""Fits which memories are relevant enough for a context (`memoranda.contexts.relevance`).

    python benchmarks/relevance.py locomo.json longmemeval.json

On the sets of `benchmarks/superseding.py`; each counts the same. Weights for a conversation are fitted on the others,
in five parts; those of `current, fit` are fitted on it as well, and `current, report` takes no part. Printed are the
recall of what answers in a context of at most 1 000 tokens, and the tokens that it takes, by the least probability.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.contexts import choosing, relevance
from memoranda.contexts.telling import listed, memory_text
from memoranda.memories.vectors import stored_vectors
from memoranda.text import tokens
from superseding import PARTS, Case, Fitted, cases, logistic

DEPTH = 50
BUDGET = 1_000
EFFECTIVE = 300.0
"""The number of right memories that all sets together count as, beside a penalty of 1 on squared weights."""
BOUNDS = (0.0, 0.002, 0.003, 0.004, 0.006, 0.01, 0.02)
Floats = NDArray[np.float64]


class Example(msgspec.Struct):
    """A question: its set, its conversation, features, scores and tokens of its candidates, and which answer it."""

    set: str
    group: str
    features: Floats
    scores: Floats
    tokens: NDArray[np.int64]
    right: NDArray[np.bool_]


async def example_of(case: Case) -> Example:
    """Ask the product."""
    product, subject, set_, question, is_right = case
    found = await product.acting_as(subject).search(
        question.text, scopes=question.scopes, limit=DEPTH, threshold=0.0, explain=True
    )
    candidates = choosing.candidates(found.results)
    ids = [candidate.memory.id for candidate in candidates]
    core = product.core
    vectors = await core.threads.run(stored_vectors, core, subject.tenant_id, ids)
    shown = relevance.features(question.text, candidates, vectors, core.recall.calibration)
    texts = [listed([memory_text(candidate.memory)], "[10]") for candidate in candidates]
    return Example(
        set_,
        question.group,
        shown,
        np.array([candidate.score for candidate in candidates]),
        np.array([tokens.count(text) + 1 for text in texts]),
        np.array([is_right(one.memory.id, one.memory.content) for one in candidates], np.bool_),
    )


async def examples(locomo_file: Path, longmemeval_file: Path) -> list[Example]:
    """All cases as examples."""
    return [await example_of(case) async for case in cases(locomo_file, longmemeval_file, {})]


def fitted(asked: Sequence[Example]) -> Fitted:
    """Weights under which what answers is likely; each set counts the same."""
    sets = {name: [one for one in asked if one.set == name] for name in {one.set for one in asked}}
    x = np.concatenate([one.features for some in sets.values() for one in some])
    y = np.concatenate([one.right for some in sets.values() for one in some]).astype(np.float64)
    weight = np.concatenate(
        [
            np.full(len(one.right), EFFECTIVE / len(sets) / sum(int(each.right.sum()) for each in some))
            for some in sets.values()
            for one in some
        ]
    )
    penalty = np.ones(1 + x.shape[1])
    penalty[0] = 0.0
    return logistic(x, y, weight, penalty)


def in_context(one: Example, fit: Fitted, bound: float) -> tuple[float, int]:
    """The recall of what answers among the relevant candidates that fit, and their tokens."""
    sure = fit.probabilities(one.features) >= bound
    spent, kept = 0, []
    for at in np.argsort(-one.scores, kind="stable").tolist():
        if sure[at] and spent + one.tokens[at] <= BUDGET:
            kept.append(at)
            spent += int(one.tokens[at])
    return float(one.right[kept].sum() / max(1, one.right.sum())), spent


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("locomo", type=Path)
    parser.add_argument("longmemeval", type=Path)
    given = parser.parse_args()
    asked = asyncio.run(examples(given.locomo, given.longmemeval))
    learnt = [one for one in asked if one.set != "current, report"]
    groups = {name: i % PARTS for i, name in enumerate(sorted({one.group for one in learnt}))}
    parts = [
        fitted([one for one in learnt if one.set.startswith("current") or groups[one.group] != part])
        for part in range(PARTS)
    ]
    whole = fitted(learnt)
    print(f"INTERCEPT = {whole.intercept:.3f}")
    print("WEIGHTS", dict(zip(relevance.FEATURES, whole.weights.round(3).tolist(), strict=True)))
    print("recall and tokens, by the least probability")
    for name in dict.fromkeys(one.set for one in asked):
        own = [one for one in asked if one.set == name]
        fits = [whole if name.startswith("current") else parts[groups[one.group]] for one in own]
        for bound in BOUNDS:
            shown = [in_context(one, fit, bound) for one, fit in zip(own, fits, strict=True)]
            recall, spent = np.mean(np.array(shown), axis=0)
            print(f"{name:16} {len(own):4} {bound:7} {recall:.3f} {spent:6.0f}")


if __name__ == "__main__":
    main()
