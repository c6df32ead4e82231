"""Semantic chunking: neighbouring sentences of similar meaning are joined. No I/O: the caller embeds them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memoranda.errors import InvalidInput
from memoranda.text.splitting import ChunkPlace
from memoranda.text.tokens import count

PERCENTILE = 90.0
"""The meaning turns where the distance between neighbours is above this percentile."""


def group(
    text: str,
    places: Sequence[ChunkPlace],
    vectors: NDArray[np.floating],
    size: int,
    percentile: float = PERCENTILE,
) -> list[ChunkPlace]:
    """Return the neighbouring places of `text` joined into chunks of at most `size` tokens, ascending; a single place
    that has more is a chunk of its own. `vectors` (n, d), of any length but 0, are those of the n places, in order.

    A chunk ends where the meaning turns (`turns`), or where the next place does not fit: then at the greatest distance
    in its second half. It has the page of its first place, and the first heading of its places.

    Raises:
        InvalidInput: `vectors` has not one row per place.
    """
    if len(vectors) != len(places):
        raise InvalidInput("vectors", f"has {len(vectors)} rows for {len(places)} places; give one per place")
    distances = turns(vectors)
    cuts = set(peaks(distances, percentile).tolist())
    chunks: list[ChunkPlace] = []
    first = 0
    while first < len(places):
        after = _fitting(text, places, first, size)
        turn = next((at for at in range(first + 1, after) if at in cuts), None)
        if turn is not None:
            after = turn
        elif after < len(places) and after not in cuts:
            half = first + (after - first + 1) // 2
            after = half + int(np.argmax(distances[half - 1 : after])) if half < after else after
        chunks.append(_joined(text, places[first:after]))
        first = after
    return chunks


def turns(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the cosine distances of neighbours: (n - 1,), 0..2, at i between places i and i + 1.

    As in the usual semantic chunking with a buffer of 1 (G. Kamradt, 5 Levels of Text Splitting, level 4), each place
    is combined with its neighbours on either side, so that one odd sentence is no turn: there the three texts are
    embedded as one, here their unit vectors are added.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.asarray(vectors, np.float64) / np.maximum(lengths, 1e-12)
    windows = unit.copy()
    windows[1:] += unit[:-1]
    windows[:-1] += unit[1:]
    windows /= np.maximum(np.linalg.norm(windows, axis=1, keepdims=True), 1e-12)
    cosines: NDArray[np.float64] = (windows[:-1] * windows[1:]).sum(axis=1)
    return np.clip(1.0 - cosines, 0.0, 2.0)


def peaks(distances: NDArray[np.float64], percentile: float) -> NDArray[np.int64]:
    """Return the places, from 1, at which the meaning turns: after a distance that is above the percentile and no
    smaller than those beside it."""
    if not len(distances):
        return np.empty(0, np.int64)
    beside = np.concatenate(([-1.0], distances, [-1.0]))
    peak = (distances >= beside[:-2]) & (distances > beside[2:])
    return np.flatnonzero(peak & (distances > np.percentile(distances, percentile))) + 1


def _fitting(text: str, places: Sequence[ChunkPlace], first: int, size: int) -> int:
    """Return the place after the last one that fits into a chunk beginning with place `first`."""
    after, total = first + 1, places[first].tokens
    while after < len(places) and total + places[after].tokens <= size:
        total += places[after].tokens
        after += 1
    while after > first + 1 and count(text[places[first].start : places[after - 1].end]) > size:
        after -= 1
    return after


def _joined(text: str, places: Sequence[ChunkPlace]) -> ChunkPlace:
    start, end = places[0].start, places[-1].end
    tokens = places[0].tokens if len(places) == 1 else count(text[start:end])
    heading = next((place.heading for place in places if place.heading), None)
    return ChunkPlace(start, end, tokens, places[0].page, places[-1].last_page, heading, places[0].columns)
