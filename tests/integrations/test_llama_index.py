"""The adapters for LlamaIndex: vector store, embedding, retriever and memory block, on a folder and on a server."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core import VectorStoreIndex
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import MetadataFilters, VectorStoreQuery, VectorStoreQueryMode

import memoranda
from memoranda.errors import InvalidInput
from memoranda.integrations.llama_index import (
    MemorandaEmbedding,
    MemorandaMemoryBlock,
    MemorandaRetriever,
    MemorandaVectorStore,
)

from .conftest import QUICK

pytestmark = pytest.mark.gate("folder")
EXAMPLE = Path(__file__).parents[2] / "examples" / "llama_index_nodes.py"
TEXTS = ["the fence is red", "the kettle is green", "the kettle is old", "bees live in the garden"]


def nodes() -> list[TextNode]:
    made = []
    for n, text in enumerate(TEXTS):
        source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"doc{n // 2}")}
        meta = {"n": n, "$odd": n % 2, "tags": ["all", str(n)]}
        made.append(TextNode(id_=str(n), text=text, metadata=meta, relationships=source, start_char_idx=n))
    return made


def where(*conditions: dict[str, Any], condition: str = "and") -> MetadataFilters:
    return MetadataFilters.model_validate({"filters": list(conditions), "condition": condition})


@pytest.fixture
def store(product: Any) -> MemorandaVectorStore:
    """A vector store with the nodes."""
    made = MemorandaVectorStore(product)
    assert made.add(nodes()) == list("0123")
    return made


def asked(store: MemorandaVectorStore, text: str, **fields: Any) -> list[str]:
    return list(store.query(VectorStoreQuery(query_str=text, **fields)).ids or [])


def test_nodes_come_back_as_they_were(store: MemorandaVectorStore) -> None:
    assert store.get_nodes() == nodes()
    assert store.get_nodes(["2"]) == nodes()[2:3]
    store.add([TextNode(id_="2", text="another text")])
    assert store.get_nodes(["2"])[0].get_content() == "another text"


def test_nodes_are_found_by_text_vector_and_filters(store: MemorandaVectorStore) -> None:
    assert asked(store, "red fence", similarity_top_k=1) == ["0"]
    assert asked(store, "bees", similarity_top_k=1, mode=VectorStoreQueryMode.TEXT_SEARCH) == ["3"]
    later = where({"key": "n", "operator": ">", "value": 1})
    assert asked(store, "kettle", similarity_top_k=1, filters=later) == ["2"]
    assert asked(store, "kettle", similarity_top_k=4, doc_ids=["doc0"], filters=later) == []
    assert set(asked(store, "kettle", similarity_top_k=4, node_ids=["1", "3"])) == {"1", "3"}
    every = where({"key": "tags", "operator": "all", "value": ["all", "3"]})
    assert asked(store, "kettle", similarity_top_k=4, filters=every) == ["3"]
    vector = MemorandaEmbedding(store.client).get_text_embedding(TEXTS[3])
    assert store.query(VectorStoreQuery(query_embedding=vector, similarity_top_k=1)).ids == ["3"]
    with pytest.raises(InvalidInput, match=r"filters\.n: 'text_match' is unknown here"):
        asked(store, "kettle", filters=where({"key": "n", "operator": "text_match", "value": "x"}))
    with pytest.raises(InvalidInput, match="mode: 'mmr' is unknown here"):
        asked(store, "kettle", mode=VectorStoreQueryMode.MMR)


def test_nodes_are_deleted(store: MemorandaVectorStore) -> None:
    store.delete("doc0")
    assert [node.node_id for node in store.get_nodes()] == ["2", "3"]
    store.delete_nodes(filters=where({"key": "n", "operator": "==", "value": 3}))
    assert [node.node_id for node in store.get_nodes()] == ["2"]
    with pytest.raises(InvalidInput, match="node_ids: name ids or filters"):
        store.delete_nodes()
    store.clear()
    assert store.get_nodes() == []


def test_an_index_needs_no_other_model(product: Any) -> None:
    store = MemorandaVectorStore(product)
    index = VectorStoreIndex.from_vector_store(store, embed_model=MemorandaEmbedding(product))
    index.insert_nodes(nodes())
    (found,) = index.as_retriever(similarity_top_k=1).retrieve("red fence")
    assert (found.id_, found.node) == ("0", nodes()[0])


def test_memories_are_retrieved(product: Any) -> None:
    memories = product if hasattr(product, "add_many") else product.memories
    memories.add("Ana likes tea", user_id="ana", metadata={"cup": "blue"})
    memories.add("Ben likes tea", user_id="ben")
    retriever = MemorandaRetriever(product, search={"scopes": ["user:ana"]})
    (found,) = retriever.retrieve("tea")
    assert found.text == "Ana likes tea"
    assert {"cup": "blue", "user_id": "ana"}.items() <= found.metadata.items()


async def test_a_memory_block_observes_and_recalls(tmp_path: Path) -> None:
    async with await memoranda.Memoranda.open(tmp_path, embedder=QUICK) as opened:
        block = MemorandaMemoryBlock(opened, user_id="ana", session_id="chat")
        memory = Memory.from_defaults(
            session_id="chat", token_limit=40, token_flush_size=10, chat_history_token_ratio=0.5,
            memory_blocks=[block],
        )  # fmt: skip
        for n in range(12):
            await memory.aput(ChatMessage(role="user", content=f"I am allergic to peanuts {n}"))
            await memory.aput(ChatMessage(role="assistant", content=f"Noted {n}"))
        said = [one.content for one in (await opened.sessions.messages("chat")).data]
        assert "I am allergic to peanuts 0" in said
        told = await block.aget([ChatMessage(role="user", content="which peanuts?")])
        assert "allergic to peanuts" in told
        assert await block.aget([]) == ""


def test_llama_index_in_an_event_loop(tmp_path: Path) -> None:
    async def story() -> None:
        async with await memoranda.Memoranda.open(tmp_path, embedder=QUICK) as opened:
            store = MemorandaVectorStore(opened)
            await store.async_add(nodes())
            assert len((await store.aquery(VectorStoreQuery(query_str="bees"))).ids or []) == 1
            assert len(await MemorandaEmbedding(opened).aget_query_embedding("bees")) == 64

    asyncio.run(story())


def test_the_example_finds_the_node_that_answers(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLE), str(tmp_path / "data"), "What does the kettle need?"]
    for _ in range(2):  # the second time the nodes are there already
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert "The kettle is descaled with vinegar once a month. (kettle)" in told.splitlines()[0]


def test_the_page_says_what_happens(tmp_path: Path) -> None:
    page = (EXAMPLE.parents[1] / "docs" / "guides" / "integrations.md").read_text("utf-8")
    (code,) = re.findall(r"## LlamaIndex\n.*?```python\n(.*?)```", page, flags=re.DOTALL)
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert told.stdout == "The kettle is descaled with vinegar.\n", told.stderr
