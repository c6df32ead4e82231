"""LangChain: `MemorandaVectorStore`, `MemorandaRetriever`, `MemorandaEmbeddings` and `MemorandaByteStore`."""

from memoranda.integrations.frameworks import require

require("langchain_core.vectorstores", "langchain-core")

from memoranda.integrations.langchain.byte_store import MemorandaByteStore  # noqa: E402 - says first what is missing
from memoranda.integrations.langchain.embeddings import MemorandaEmbeddings  # noqa: E402
from memoranda.integrations.langchain.retriever import MemorandaRetriever  # noqa: E402
from memoranda.integrations.langchain.vectorstore import MemorandaVectorStore  # noqa: E402

__all__ = ["MemorandaByteStore", "MemorandaEmbeddings", "MemorandaRetriever", "MemorandaVectorStore"]
