"""Sentences put together by meaning."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.errors import InvalidInput
from memoranda.text.semantic import group, peaks, turns
from memoranda.text.splitting import Chunking, ChunkPlace, split
from memoranda.text.tokens import count


def sentences(topics: list[int]) -> tuple[str, list[ChunkPlace], np.ndarray]:
    """A sentence per entry, its place, and a vector that is its topic's axis with a little noise."""
    text, places = "", []
    for n in range(len(topics)):
        sentence = f"This is sentence number {n} of them."
        places.append(
            ChunkPlace(len(text), len(text) + len(sentence), count(sentence), n // 4 + 1, n // 4 + 1)
        )
        text += sentence + " "
    rng = np.random.default_rng(1)
    vectors = np.eye(max(topics, default=0) + 2)[topics] + rng.normal(
        0, 0.02, (len(topics), max(topics, default=0) + 2)
    )
    return text, places, vectors.astype(np.float32)


def test_a_chunk_ends_where_the_topic_changes() -> None:
    text, places, vectors = sentences([0] * 8 + [1] * 7 + [2] * 9)
    chunks = group(text, places, vectors, 1_000)
    assert [chunk.start for chunk in chunks] == [places[0].start, places[8].start, places[15].start]
    assert [(chunk.page, chunk.last_page) for chunk in chunks] == [(1, 2), (3, 4), (4, 6)]


def test_one_odd_sentence_is_no_turn() -> None:
    """Without the neighbours in the window its two distances would be 1, twice that of the turn."""
    text, places, vectors = sentences([0] * 8 + [1] + [0] * 8 + [2] * 12)
    starts = {chunk.start for chunk in group(text, places, vectors, 1_000, percentile=95)}
    assert places[17].start in starts
    assert places[8].start not in starts


def test_distances_by_hand() -> None:
    assert turns(np.eye(2)) == pytest.approx([0.0])
    three = turns(np.array([[2.0, 0.0], [1.0, 0.0], [0.0, 5.0]]))
    assert three == pytest.approx([1 - 2 / 5**0.5, 1 - 3 / 10**0.5])
    assert peaks(np.array([0.1, 0.5, 0.1, 0.1, 0.9]), 50).tolist() == [2, 5]
    assert peaks(np.full(5, 0.3), 50).tolist() == []


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), max_size=25), st.integers(1, 60), st.floats(0, 100))
def test_groups_fit_and_hold_every_place(topics: list[int], size: int, percentile: float) -> None:
    text, places, vectors = sentences(topics)
    chunks = group(text, places, vectors, size, percentile)
    starts, ends = {p.start for p in places}, {p.end for p in places}
    assert bool(chunks) == bool(places)
    for chunk in chunks:
        assert chunk.start in starts
        assert chunk.end in ends
        assert chunk.tokens == count(text[chunk.start : chunk.end])
        assert chunk.tokens <= size or sum(chunk.start <= p.start < chunk.end for p in places) == 1
    for before, after in pairwise(chunks):
        assert not text[before.end : after.start].strip()
    if chunks:
        assert (chunks[0].start, chunks[-1].end) == (places[0].start, places[-1].end)


def test_a_group_has_the_first_heading_of_its_places() -> None:
    text = "No heading here. Then one."
    places = [ChunkPlace(0, 16, 4), ChunkPlace(17, 26, 3, 2, 3, "Then")]
    (chunk,) = group(text, places, np.ones((2, 3)), 100)
    assert (chunk.heading, chunk.page, chunk.last_page) == ("Then", None, 3)


def test_places_from_split_are_put_together() -> None:
    text = "\n\n".join(
        f"Paragraph {n} says something. It goes on for a while, as paragraphs do." for n in range(60)
    )
    places = split(text, [], [], Chunking(strategy="semantic", size=120))
    chunks = group(text, places, np.random.default_rng(0).normal(size=(len(places), 8)), 120)
    assert len(chunks) < len(places)
    assert max(chunk.tokens for chunk in chunks) <= 120


def test_vectors_are_one_per_place() -> None:
    with pytest.raises(InvalidInput) as refused:
        group("text", [ChunkPlace(0, 4, 1)], np.ones((2, 3)), 10)
    assert refused.value.field == "vectors"
