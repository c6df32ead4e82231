"""Neighbouring hits are one passage, through the whole pipeline and on every surface."""

from __future__ import annotations

from typing import Any

import pytest

from memoranda.knowledge.chunks import LONGEST, Part, merged, neighbouring
from memoranda.text.splitting import Chunking

PARAGRAPHS = [
    "The harbour office keeps a ledger of every vessel that has ever tied up at the quay.",
    "A beacon of the lighthouse burns whale oil, and its keeper trims the wick at dusk.",
    "At dawn the keeper of the lighthouse beacon puts the wick out and cleans the lens.",
    "Bakers in the upper town sell rye loaves with caraway on the days of the market.",
    "Sheep graze on the common until the first snow, and then they are brought below.",
    "The mill was moved downstream after a flood that took the bridge and two barns.",
]
TEXT = "\n\n".join(PARAGRAPHS)
ASKED = "keeper of the lighthouse beacon trims the wick"


@pytest.mark.parametrize(
    "chunking", [Chunking(size=24, overlap=6), Chunking(strategy="recursive", size=24, overlap=0)]
)
def test_neighbouring_hits_are_one_passage(lone: Any, chunking: Chunking) -> None:
    made = lone.admin.stores.create(chunking=chunking).id
    file = lone.attach(made, TEXT)
    by_chunk = lone.search(made, ASKED, limit=4, merge=False).data
    assert all(hit.chunk_ids == [hit.chunk_id] for hit in by_chunk)
    assert abs(by_chunk[0].chunk_index - by_chunk[1].chunk_index) == 1, "the two about the keeper"
    found = lone.search(made, ASKED, limit=4).data
    assert len(found) < len(by_chunk)
    best = found[0]
    assert (best.chunk_id, best.chunk_index) == (by_chunk[0].chunk_id, by_chunk[0].chunk_index)
    assert best.chunk_ids[:2] == [hit.chunk_id for hit in by_chunk[:2]]
    assert (best.score, best.similarity) == (by_chunk[0].score, max(hit.similarity for hit in by_chunk[:2]))
    assert [id_ for hit in found for id_ in hit.chunk_ids] == [hit.chunk_id for hit in by_chunk], (
        "all, in order"
    )
    whole = lone.admin.stores.text(made, file)
    for hit in found:
        own = [one for one in by_chunk if one.chunk_id in hit.chunk_ids]
        assert (hit.start, hit.end) == (min(one.start for one in own), max(one.end for one in own))
        assert hit.text == whole[hit.start : hit.end], "overlaps once, gaps as they are"
    assert best.text.count("trims the wick") == 1
    scores = [hit.score for hit in found]
    assert scores == sorted(scores, reverse=True)


def test_no_more_passages_than_asked_for_and_none_from_beyond(lone: Any) -> None:
    made = lone.admin.stores.create(chunking=Chunking(size=24, overlap=6)).id
    lone.attach(made, TEXT)
    for limit in (1, 2, 3):
        found = lone.search(made, ASKED, limit=limit).data
        chunks = [id_ for hit in found for id_ in hit.chunk_ids]
        assert len(found) <= len(chunks) == limit
    (alone,) = lone.search(made, ASKED, limit=1).data
    assert alone.chunk_ids == [alone.chunk_id]


def test_hits_of_two_files_and_of_two_stores_stay_apart(lone: Any) -> None:
    stores = [lone.admin.stores.create(chunking=Chunking(size=24, overlap=6)).id for _ in range(2)]
    for store in stores:
        lone.attach(store, TEXT)
    for hit in lone.search(stores, ASKED, limit=8).data:
        assert len({id_.rpartition("_")[0] for id_ in hit.chunk_ids}) == 1


def part(first: int, last: int | None = None, tokens: int = 10, file: int = 1) -> Part:
    last = first if last is None else last
    return Part(
        file=("tenant", file), first=first, last=last, tokens=tokens, start=first * 8, end=last * 8 + 10,
        text="".join(f"<{at:06d}>" for at in range(first, last + 1)) + f"<{last + 1:06d}>"[:2], page=first,
        last_page=last, heading=f"h{first}", header=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("parts", "groups"),
    [
        ([], []),
        ([part(3)], [[0]]),
        ([part(3), part(4), part(2)], [[0, 1, 2]]),
        ([part(3), part(5), part(4)], [[0], [1, 2]]),
        ([part(3), part(7), part(4)], [[0], [1], [2]]),
        ([part(3), part(4, file=2)], [[0], [1]]),
        ([part(3, tokens=LONGEST // 2), part(4, tokens=LONGEST // 2), part(5)], [[0, 1], [2]]),
        ([part(1, 5, LONGEST), part(3)], [[0, 1]]),
        ([part(1, 5, LONGEST), part(4, 6)], [[0], [1]]),
    ],
)
def test_what_follows_in_the_ranking_and_in_the_file_is_a_group(
    parts: list[Part], groups: list[list[int]]
) -> None:
    assert neighbouring(parts) == groups


def test_merged_parts_are_the_text_between_them() -> None:
    one = merged([part(4), part(2), part(3)])
    assert (one.first, one.last, one.start, one.end) == (2, 4, 16, 42)
    assert one.text == "<000002><000003><000004><0"
    assert (one.page, one.last_page, one.heading, one.tokens) == (2, 4, "h2", 30)
    assert merged([part(1, 5), part(3)]).text == part(1, 5).text
