"""Memories of one author about the same thing: together in a context, the newest first and marked as the latest.

Whether two are about the same thing is measured by the similarity of their vectors. Arithmetic on values, no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from memoranda.contexts.choosing import Chosen
from memoranda.contexts.telling import since
from memoranda.providers.embeddings.base import Calibration, centred
from memoranda.sessions.values import is_person
from memoranda.store.rows import memory_speaker
from memoranda.text.instructions import is_standing

KINDS = ("message", "fact", "note")


FEWEST = 8
"""Memories from whose vectors the direction that all have is estimated, where it is not known of the model."""


def together(
    candidates: Sequence[Chosen], vectors: Mapping[str, NDArray[np.float32]], calibration: Calibration
) -> list[Chosen]:
    """Return the candidates in their order, but those about the same thing at the place of the first of them, newest
    first, which is marked. Scores stay: what has no place is decided by the question alone.

    `vectors` are those of memories, by id; see `Calibration` for when two are about the same thing. Candidates that
    nothing relates to the question stay where they are.
    """
    placed = [
        candidate for candidate in candidates if _may_join(candidate) and candidate.memory.id in vectors
    ]
    center = calibration.center
    if len(placed) < (FEWEST if center is None else 2):
        return list(candidates)
    matrix = np.stack([vectors[candidate.memory.id] for candidate in placed])
    if center is None:
        center = tuple(centred(matrix, ()).mean(axis=0).tolist())
    units = centred(matrix, center)
    near = units @ units.T >= calibration.same
    groups: dict[str, list[Chosen]] = {}
    taken: set[int] = set()
    for lead, candidate in enumerate(placed):
        if lead in taken:
            continue
        same = [
            at
            for at in np.flatnonzero(near[lead]).tolist()
            if at >= lead and at not in taken and _author(placed[at]) == _author(candidate)
        ]
        taken.update(same)
        groups[candidate.memory.id] = _in_order([placed[at] for at in same])
    joined = {other.memory.id for group in groups.values() for other in group}
    ordered: list[Chosen] = []
    for candidate in candidates:
        id_ = candidate.memory.id
        ordered += groups.get(id_, [] if id_ in joined else [candidate])
    return ordered


def _in_order(group: list[Chosen]) -> list[Chosen]:
    group.sort(key=lambda candidate: since(candidate.memory), reverse=True)
    for candidate in group:
        began = since(candidate.memory)
        candidate.older = tuple(other.memory.id for other in group if since(other.memory) < began)
    group[0].latest = bool(group[0].older)
    return group


def _may_join(candidate: Chosen) -> bool:
    memory = candidate.memory
    return memory.kind in KINDS and not candidate.weak and not is_standing(memory)


def _author(candidate: Chosen) -> tuple[str | None, bool]:
    """Return who said it, and whether that is a machine: two people may say the same of themselves."""
    memory = candidate.memory
    if memory.kind != "message":
        return memory.user_id, False
    return memory.user_id or memory_speaker(memory), not is_person(memory.role or "user")
