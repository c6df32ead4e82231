"""Ranking as arithmetic: normalising, fusing, weighing. No I/O, no state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fused:
    """One candidate's place in a fused ranking and the parts it came from."""

    seq: int
    score: float
    dense: float | None
    words: float | None
    scope_weight: float
    rank_before: int


def min_max(scores: Mapping[int, float]) -> dict[int, float]:
    """Scores mapped linearly onto [0, 1]: the lowest to 0, the highest to 1, all to 1 when they are equal."""
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    if high - low < 1e-12:
        return dict.fromkeys(scores, 1.0)
    return {key: (value - low) / (high - low) for key, value in scores.items()}


def fuse(
    cosines: Mapping[int, float],
    bm25: Mapping[int, float],
    *,
    dense_weight: float,
    words_weight: float,
    scope_weights: Mapping[int, float],
) -> list[Fused]:
    """Candidates by descending `scope weight x (dense_weight x dense + words_weight x words)`.

    `dense` is the min-max normalised cosine, `words` BM25 over the best BM25 (0 where no term matched, so its
    floor means something). Weights are scaled to sum to 1 over the sides that have any candidate. Ties go to
    the older memory. `rank_before` is the 1-based rank without scope weights.
    """
    if not bm25:
        words_weight = 0.0
    if not cosines:
        dense_weight = 0.0
    total = dense_weight + words_weight or 1.0
    dense = min_max(cosines)
    best = max(bm25.values(), default=1.0)
    scores = {
        seq: (dense_weight * dense.get(seq, 0.0) + words_weight * bm25.get(seq, 0.0) / best) / total
        for seq in cosines.keys() | bm25.keys()
    }
    before = {seq: i + 1 for i, seq in enumerate(sorted(scores, key=lambda seq: (-scores[seq], seq)))}
    fused = [
        Fused(
            seq=seq,
            score=score * scope_weights.get(seq, 1.0),
            dense=dense.get(seq),
            words=bm25[seq] / best if seq in bm25 else None,
            scope_weight=scope_weights.get(seq, 1.0),
            rank_before=before[seq],
        )
        for seq, score in scores.items()
    ]
    return sorted(fused, key=lambda one: (-one.score, one.rank_before))
