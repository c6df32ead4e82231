import asyncio
from collections.abc import Sequence
from threading import Event

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.providers.embeddings.base import (
    Calibration,
    Embedded,
    Span,
    Task,
    ThreadedEmbedder,
    slices,
    unit,
)


class Gated(ThreadedEmbedder):
    """Makes documents' vectors only while its gate is open, and notes the order of its work."""

    model, dim, max_tokens, calibration, slice_chars = "gated", 1, 9, Calibration(), 1

    def __init__(self) -> None:
        super().__init__(threads=1)
        self.gate = Event()
        self.order: list[str] = []

    def compute(self, texts: Sequence[str], task: Task) -> Embedded:
        if task == "document":
            assert self.gate.wait(10)
        self.order += texts
        return Embedded(np.ones((len(texts), 1), np.float32), 1)

    def split(self, text: str) -> list[Span]:
        return [Span(0, len(text))]


def test_a_question_does_not_wait_for_a_bulk_job() -> None:
    async def both() -> None:
        bulk = asyncio.create_task(embedder.embed(list("abcdefgh")))
        await asyncio.sleep(0)
        await embedder.embed(["?"], "query")
        assert not bulk.done()
        embedder.gate.set()
        assert len((await bulk).vectors) == 8

    embedder = Gated()
    asyncio.run(both())
    assert embedder.order[0] == "?"
    assert embedder.order[1:] == list("abcdefgh")


def test_bulk_jobs_take_turns() -> None:
    async def both() -> None:
        jobs = [asyncio.create_task(embedder.embed(list(texts))) for texts in ("abcdefgh", "1")]
        await asyncio.sleep(0)
        embedder.gate.set()
        await asyncio.gather(*jobs)

    embedder = Gated()
    asyncio.run(both())
    assert embedder.order.index("1") <= 2


def test_a_cancelled_job_does_no_more_work() -> None:
    async def cancelled() -> None:
        bulk = asyncio.create_task(embedder.embed(list("abcdefgh")))
        await asyncio.sleep(0)
        bulk.cancel()
        with pytest.raises(asyncio.CancelledError):
            await bulk
        embedder.gate.set()
        await embedder.embed(["!"])

    embedder = Gated()
    asyncio.run(cancelled())
    assert embedder.order == ["a", "!"]


@settings(deadline=None)
@given(st.lists(st.text(max_size=12), max_size=30), st.integers(1, 20))
def test_slices_hold_every_text_in_order_and_stay_small(texts: list[str], chars: int) -> None:
    cut = list(slices(texts, chars))
    assert [text for piece in cut for text in piece] == texts
    assert all(piece and (len(piece) == 1 or sum(map(len, piece)) <= chars) for piece in cut)


@settings(deadline=None)
@given(st.text(), st.integers(1, 70))
def test_a_zero_vector_gets_a_direction_of_its_own(text: str, dim: int) -> None:
    made = unit(np.zeros(dim, np.float32), text)
    assert np.linalg.norm(made) == pytest.approx(1, abs=1e-5)
    assert np.array_equal(made, unit(np.zeros(dim, np.float32), text))
