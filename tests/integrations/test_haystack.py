"""The document store and the retriever for Haystack, whose own suite is `suites/haystack_document_store.py`."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("haystack")

from haystack import Document, Pipeline
from haystack.dataclasses import ByteStream, SparseEmbedding
from haystack.errors import FilterError

import memoranda
from memoranda.errors import InvalidInput
from memoranda.integrations.haystack import MemorandaDocumentStore, MemorandaRetriever

from .conftest import QUICK

pytestmark = pytest.mark.gate("folder")
EXAMPLE = Path(__file__).parents[2] / "examples" / "haystack_documents.py"
TEXTS = ["the fence is red", "the kettle is green", "the kettle is old", "bees live in the garden"]


def documents() -> list[Document]:
    return [Document(id=str(n), content=text, meta={"n": n, "$odd": n % 2}) for n, text in enumerate(TEXTS)]


def ids(found: list[Document]) -> list[str]:
    return [document.id for document in found]


def test_documents_are_kept_exactly(product: Any) -> None:
    store = MemorandaDocumentStore(product)
    given = [
        Document(
            content=None,
            blob=ByteStream(bytes(range(256)), {"a": 1}, "image/png"),
            meta={"": [], "haystack.id": 1},
        ),
        Document(content="", embedding=[0.1, 1e300, -0.0]),
        Document(content=" text ", sparse_embedding=SparseEmbedding([1, 5], [0.5, 2.0]), score=0.25),
    ]
    assert store.write_documents(given) == 3
    assert store.filter_documents() == given
    assert store.search("text") != []
    assert ids(store.search("a document without text to search")) == [given[2].id]


def test_a_pipeline_retrieves_documents(product: Any) -> None:
    store = MemorandaDocumentStore(product)
    store.write_documents(documents())
    pipeline = Pipeline()
    pipeline.add_component("retriever", MemorandaRetriever(store, top_k=1))
    told = pipeline.run({"retriever": {"query": "red fence"}})["retriever"]["documents"]
    assert ids(told) == ["0"]
    assert 0.0 < told[0].score <= 1.0
    later = {"field": "meta.n", "operator": ">", "value": 1}
    assert ids(MemorandaRetriever(store, filters=later).run("kettle", top_k=1)["documents"]) == ["2"]
    with pytest.raises(FilterError):
        store.search("kettle", {"field": "meta.n", "operator": "~", "value": 1})
    memories = product if hasattr(product, "add_many") else product.memories
    assert memories.search("red fence").results == []


def test_a_pipeline_is_saved_with_its_folder(tmp_path: Path) -> None:
    store = MemorandaDocumentStore(str(tmp_path / "data"))
    store.write_documents(documents())
    pipeline = Pipeline()
    pipeline.add_component("retriever", MemorandaRetriever(store))
    saved = pipeline.dumps()
    store.close()
    loaded = Pipeline.loads(saved, allowed_modules=["memoranda.integrations.haystack.retriever"])
    assert ids(loaded.run({"retriever": {"query": "bees", "top_k": 1}})["retriever"]["documents"]) == ["3"]
    loaded.get_component("retriever").document_store.close()


def test_an_open_product_is_not_saved(folder: Any) -> None:
    store = MemorandaDocumentStore(folder)
    with pytest.raises(InvalidInput, match="product: is open and cannot be saved"):
        store.to_dict()
    store.close()
    assert store.count_documents() == 0


def test_haystack_in_an_event_loop(tmp_path: Path) -> None:
    async def story() -> None:
        async with await memoranda.Memoranda.open(tmp_path, embedder=QUICK) as opened:
            store = MemorandaDocumentStore(opened)
            await store.write_documents_async(documents())
            found = await MemorandaRetriever(store).run_async("bees", top_k=1)
            assert ids(found["documents"]) == ["3"]

    asyncio.run(story())


def test_the_example_finds_the_document_that_answers(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLE), str(tmp_path / "data"), "What does the kettle need?"]
    for _ in range(2):  # the second time the documents are there already
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert "The kettle is descaled with vinegar once a month. (kettle)" in told.splitlines()[0]


def test_the_page_says_what_happens(tmp_path: Path) -> None:
    page = (EXAMPLE.parents[1] / "docs" / "guides" / "integrations.md").read_text("utf-8")
    (code,) = re.findall(r"## Haystack\n.*?```python\n(.*?)```", page, flags=re.DOTALL)
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert told.stdout == "The kettle is descaled with vinegar.\n", told.stderr
