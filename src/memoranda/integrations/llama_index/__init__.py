"""LlamaIndex: `MemorandaVectorStore`, `MemorandaEmbedding`, `MemorandaRetriever` and `MemorandaMemoryBlock`."""

from memoranda.integrations.frameworks import require

require("llama_index.core", "llama-index-core")

from memoranda.integrations.llama_index.embedding import MemorandaEmbedding  # noqa: E402 - says first what is missing
from memoranda.integrations.llama_index.memory_block import MemorandaMemoryBlock  # noqa: E402
from memoranda.integrations.llama_index.retriever import MemorandaRetriever  # noqa: E402
from memoranda.integrations.llama_index.vector_store import MemorandaVectorStore  # noqa: E402

__all__ = ["MemorandaEmbedding", "MemorandaMemoryBlock", "MemorandaRetriever", "MemorandaVectorStore"]
