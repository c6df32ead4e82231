"""Memories as points of a plane."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memoranda.app.blocking import BlockingMemoranda, BlockingMemories
from memoranda.errors import InvalidInput
from memoranda.memories.projection import principal_components
from memoranda.types import Subject
from support.waiting import until


@pytest.mark.parametrize("shape", [(2, 2), (40, 7), (7, 40)])
def test_the_components_are_those_of_the_singular_values(shape: tuple[int, int]) -> None:
    vectors = np.random.default_rng(3).normal(size=shape).astype(np.float32) * np.linspace(
        1, 3, shape[1], dtype="f4"
    )
    points, explained = principal_components(vectors)
    left, values, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    expected = left[:, :2] * values[:2]
    assert np.abs(points) == pytest.approx(np.abs(expected), abs=1e-3)
    assert explained == pytest.approx((values[:2] ** 2).sum() / (values**2).sum(), abs=1e-4)


def test_equal_vectors_are_one_point() -> None:
    points, explained = principal_components(np.ones((5, 3), np.float32))
    assert points.tolist() == [[0.0, 0.0]] * 5
    assert explained == 1.0


def test_each_memory_is_a_point_with_its_fields(memories: BlockingMemories) -> None:
    added = [memories.add(f"note {n} about {'tea' if n % 2 else 'rain'}", user_id="ada") for n in range(9)]
    added.append(memories.add("for everyone", kind="fact"))
    until(lambda: len(memories.projection().ids) == 10, "the vectors")
    shown = memories.projection()
    assert shown.ids == [one.memory.id for one in added]
    assert shown.kinds == ["note"] * 9 + ["fact"]
    assert shown.scopes == ["user:ada"] * 9 + ["global"]
    assert shown.occurred_at == [one.memory.occurred_at for one in added]
    assert len({*shown.points}) > 2
    assert 0 < shown.explained <= 1
    assert memories.projection() == shown
    few = memories.projection(limit=4)
    assert (few.ids, few.total) == (shown.ids[::3], 10)
    assert memories.projection(kinds=["fact"]).points == [(0.0, 0.0)]


def test_no_memories_are_no_points(memories: BlockingMemories) -> None:
    shown = memories.projection()
    assert (shown.ids, shown.total, shown.explained) == ([], 0, 1.0)


@pytest.mark.parametrize("limit", [0, 100_001, True, "9"])
def test_a_limit_out_of_range_is_named(memories: BlockingMemories, limit: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^limit: must be a whole number between 1 and 100000$"):
        memories.projection(limit=limit)


def test_only_visible_memories_are_points(rc: BlockingMemoranda) -> None:
    ann, bob = (
        rc.as_subject(Subject(tenant_id="default", user_id=name, role="member")).memories
        for name in ("ann", "bob")
    )
    mine = ann.add("mine", user_id="ann").memory.id
    bob.add("not mine", user_id="bob")
    until(lambda: len(rc.memories.projection().ids) == 2, "the vectors")
    assert ann.projection().ids == [mine]
