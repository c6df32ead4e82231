"""Memories about the same thing: together in a context, the newest first and marked as the latest.

Whether two are about the same thing is measured by the similarity of their vectors. Arithmetic on values, no I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from memoranda.contexts.choosing import Chosen
from memoranda.contexts.telling import since
from memoranda.providers.embeddings.base import Calibration, centred
from memoranda.sessions.values import is_person
from memoranda.store.rows import memory_speaker
from memoranda.text.cover import only_asks
from memoranda.text.instructions import is_standing

KINDS = ("message", "fact", "note")
FEWEST = 8
"""Memories from whose vectors the direction that all have is estimated, where it is not known of the model."""
Vectors = Mapping[str, NDArray[np.float32]]
Floats = NDArray[np.float64]


def likeness(candidates: Sequence[Chosen], vectors: Vectors, calibration: Calibration) -> Floats:
    """Return (n, n) how similar the vectors of candidates are, as a share of `Calibration.same`: from 1 on, two are
    about the same thing. -inf where that is not known: of summaries, and of what has no vector.

    `vectors` are those of memories, by id.
    """
    alike = np.full((len(candidates), len(candidates)), -np.inf)
    at = [
        place
        for place, candidate in enumerate(candidates)
        if candidate.memory.kind in KINDS and candidate.memory.id in vectors
    ]
    center = calibration.center
    if len(at) < (FEWEST if center is None else 2):
        return alike
    matrix = np.stack([vectors[candidates[place].memory.id] for place in at])
    if center is None:
        center = tuple(centred(matrix, ()).mean(axis=0).tolist())
    units = centred(matrix, center)
    alike[np.ix_(at, at)] = units @ units.T / calibration.same
    return alike


def by_one_author(candidates: Sequence[Chosen]) -> NDArray[np.bool_]:
    """Return (n, n) which candidates are of the same author. A machine is not the person that it talks to: the two may
    say the same of themselves."""
    numbers: dict[tuple[str | None, bool], int] = {}
    who = np.array([numbers.setdefault(_author(one), len(numbers)) for one in candidates], np.int64)
    same: NDArray[np.bool_] = who[:, None] == who[None, :]
    return same


def together(candidates: Sequence[Chosen], vectors: Vectors, calibration: Calibration) -> list[Chosen]:
    """Return the candidates in their order, but those of one author about the same thing at the place of the first of
    them, newest first, which is marked, and what a machine said, or what only asks, behind what a person stated about
    the same thing. Scores stay: what has no place is decided by the question alone.

    Candidates that nothing relates to the question stay where they are.
    """
    joining = np.array([not one.weak and not is_standing(one.memory) for one in candidates], np.bool_)
    near = (likeness(candidates, vectors, calibration) >= 1) & joining[:, None] & joining[None, :]
    of_one = near & by_one_author(candidates)
    ordered: list[int] = []
    taken: set[int] = set()
    for lead in range(len(candidates)):
        if lead in taken:
            continue
        same = [at for at in np.flatnonzero(of_one[lead]).tolist() if at > lead and at not in taken]
        taken.update(same)
        ordered += _newest_first(candidates, [lead, *same])
    return [candidates[at] for at in _stated_first(candidates, ordered, near)]


def _newest_first(candidates: Sequence[Chosen], group: list[int]) -> list[int]:
    """Return the places of a group, newest first, and note in each what is older, and whether the day says which."""
    if len(group) == 1:
        return group
    began = {at: since(candidates[at].memory) for at in group}
    group = sorted(group, key=lambda at: began[at], reverse=True)
    for at in group:
        candidates[at].older = tuple(
            candidates[other].memory.id for other in group if began[other] < began[at]
        )
    candidates[group[0]].latest = bool(candidates[group[0]].older)
    days = Counter(began[at].date() for at in group)
    for at in group:
        candidates[at].hour = days[began[at].date()] > 1
    return group


def _stated_first(candidates: Sequence[Chosen], ordered: list[int], near: NDArray[np.bool_]) -> list[int]:
    """Return the order with what states nothing right behind the last statement of a person about the same thing."""
    states = [_states(candidate) for candidate in candidates]
    for at in [at for at in ordered if not states[at]]:
        place = ordered.index(at)
        behind = [later for later in ordered[place + 1 :] if states[later] and near[at, later]]
        if behind:
            ordered.remove(at)
            ordered.insert(ordered.index(behind[-1]) + 1, at)
            candidates[at].score = min(candidates[at].score, *(candidates[one].score for one in behind))
    return ordered


def _states(candidate: Chosen) -> bool:
    """Return True if a person says something, which is more than to ask."""
    return is_person(candidate.memory.role or "user") and not only_asks(candidate.memory.content)


def _author(candidate: Chosen) -> tuple[str | None, bool]:
    memory = candidate.memory
    if memory.kind != "message":
        return memory.user_id, False
    return memory.user_id or memory_speaker(memory), not is_person(memory.role or "user")
