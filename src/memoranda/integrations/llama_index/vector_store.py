"""A LlamaIndex vector store in a product."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
from llama_index.core.schema import BaseNode, MetadataMode, TextNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from llama_index.core.vector_stores.utils import metadata_dict_to_node
from pydantic import PrivateAttr

from memoranda.errors import InvalidInput
from memoranda.integrations import entries
from memoranda.integrations.entries import Entries
from memoranda.integrations.llama_index.filters import filter_of
from memoranda.integrations.products import Product, memories_of
from memoranda.text.stored import compact_json
from memoranda.types import Memory

OWN = "llama_index."
"""Begins the metadata keys that are not the node's."""
ID, REF, NODE, CLASS = (f"{OWN}{name}" for name in ("id", "ref", "node", "class"))
MODES = {
    VectorStoreQueryMode.DEFAULT: "hybrid",
    VectorStoreQueryMode.HYBRID: "hybrid",
    VectorStoreQueryMode.SEMANTIC_HYBRID: "hybrid",
    VectorStoreQueryMode.TEXT_SEARCH: "keyword",
    VectorStoreQueryMode.SPARSE: "keyword",
}
"""How the product searches for each mode with a text."""


class MemorandaVectorStore(BasePydanticVectorStore):
    """Nodes in a folder or on a server of Memoranda, embedded by its own model and found by vectors and keywords.

    A node is a memory of kind `item`, which other searches of the product see only if they name that kind; `name` keeps
    several stores in one tenant apart. A node with the id of one that is there replaces it. Embeddings that come with
    nodes are not stored. A query by text searches vectors and keywords; one by a vector, which must be of the product's
    model (`MemorandaEmbedding`), vectors alone. The async methods run in worker threads.
    """

    stores_text: bool = True
    is_embedding_query: bool = False
    _entries: Entries = PrivateAttr()
    _name: str = PrivateAttr()

    def __init__(self, product: Product, *, name: str = "llama-index") -> None:
        super().__init__(stores_text=True, is_embedding_query=False)
        self._entries = Entries(memories_of(product), name)
        self._name = name

    @classmethod
    def class_name(cls) -> str:
        """The name by which LlamaIndex knows it."""
        return "MemorandaVectorStore"

    @property
    def client(self) -> Any:
        """The memories of the product."""
        return self._entries.memories

    # --- writing -----------------------------------------------------------------------------------

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Writes nodes and returns their ids.

        Raises:
            InvalidInput: a node has no text, or its metadata is wrong.
        """
        drafts = {node.node_id: self._draft(node) for node in nodes}
        if drafts:
            self._entries.put(list(drafts.values()), "metadata")
        return [node.node_id for node in nodes]

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """`add`, awaited."""
        return await asyncio.to_thread(self.add, nodes)

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Deletes the nodes of a document."""
        self._delete({"type": "eq", "key": REF, "value": ref_doc_id})

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """`delete`, awaited."""
        await asyncio.to_thread(self.delete, ref_doc_id)

    def delete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """Deletes the nodes of these ids that pass a filter.

        Raises:
            InvalidInput: neither is given; `clear` deletes all nodes.
        """
        if node_ids is None and filters is None:
            raise InvalidInput("node_ids", "name ids or filters; `clear` deletes all nodes")
        self._delete(_both(node_ids, ID, filters))

    async def adelete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """`delete_nodes`, awaited."""
        await asyncio.to_thread(self.delete_nodes, node_ids, filters)

    def clear(self) -> None:
        """Deletes all nodes of the store."""
        self._delete(None)

    async def aclear(self) -> None:
        """`clear`, awaited."""
        await asyncio.to_thread(self.clear)

    def _delete(self, chosen: dict[str, Any] | None) -> None:
        for memory in list(self._entries.listed(**_filtered(chosen))):
            self._entries.delete(memory.id)

    def _draft(self, node: BaseNode) -> dict[str, Any]:
        fields = node.model_dump(mode="json", exclude={"embedding", "metadata"})
        text = node.get_content(metadata_mode=MetadataMode.NONE)
        if isinstance(node, TextNode):
            fields.pop("text", None)
        own = {"id": node.node_id, "ref": node.ref_doc_id, "class": node.class_name(), "node": fields}
        return {
            "id": entries.id_of(self._name, node.node_id),
            "content": text,
            "metadata": entries.metadata_of(node.metadata, own, OWN),
        }

    # --- reading -----------------------------------------------------------------------------------

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """The nodes of these ids that pass a filter, first written first; all nodes without both."""
        chosen = _filtered(_both(node_ids, ID, filters))
        return [_node(memory) for memory in self._entries.listed(order="asc", **chosen)]

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """`get_nodes`, awaited."""
        return await asyncio.to_thread(self.get_nodes, node_ids, filters)

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The `similarity_top_k` best nodes for a text or a vector, with the score that orders them, 0..1.

        Raises:
            InvalidInput: the mode or a filter is unknown here, or the query has neither a text nor a vector.
            DimensionMismatch: the vector is not of the product's model.
        """
        if query.mode not in MODES:
            known = ", ".join(mode.value for mode in MODES)
            raise InvalidInput("mode", f"{query.mode.value!r} is unknown here; use one of {known}")
        how: dict[str, Any] = {"mode": MODES[query.mode]}
        if not query.query_str:
            if query.query_embedding is None:
                raise InvalidInput("query_str", "is missing; give a text, or query_embedding")
            how = {"mode": "dense", "embedding": np.array(query.query_embedding, np.float32)}
        # An index without a list of its nodes passes an empty list.
        parts = [_both(query.node_ids or None, ID, query.filters), _both(query.doc_ids or None, REF, None)]
        selection = {**self._entries.selection, **_filtered(_all(parts)), **how, "threshold": 0.0}
        limit = query.hybrid_top_k or query.similarity_top_k
        result = self._entries.memories.search(query.query_str or "vector", limit=limit, **selection)
        nodes = [_node(hit.memory) for hit in result.results]
        return VectorStoreQueryResult(
            nodes=nodes,
            similarities=[hit.score for hit in result.results],
            ids=[node.node_id for node in nodes],
        )

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """`query`, awaited."""
        return await asyncio.to_thread(self.query, query)


def _node(memory: Memory) -> BaseNode:
    """The node that a memory stores."""
    fields = {**memory.metadata[NODE], "metadata": entries.value_of(memory, OWN)}
    content = {"_node_content": compact_json(fields), "_node_type": memory.metadata[CLASS]}
    return metadata_dict_to_node(content, text=memory.content)


def _both(ids: Sequence[str] | None, key: str, filters: MetadataFilters | None) -> dict[str, Any] | None:
    """The filter for these values of a key and for what passes a filter of LlamaIndex; None is all."""
    named = None if ids is None else {"type": "in", "key": key, "value": list(ids)}
    return _all([named, None if filters is None else filter_of(filters)])


def _all(parts: Sequence[dict[str, Any] | None]) -> dict[str, Any] | None:
    given = [part for part in parts if part is not None]
    return {"type": "and", "filters": given} if given else None


def _filtered(chosen: dict[str, Any] | None) -> dict[str, Any]:
    return {} if chosen is None else {"filters": chosen}
