"""Pydantic AI: `MemorandaMemory`, a capability; `MemorandaConversationStore`; and `MemorandaEmbeddingModel`."""

from memoranda.integrations.frameworks import require

require("pydantic_ai.conversation_store", "pydantic-ai-slim>=2.68")

from memoranda.integrations.pydantic_ai.capability import MemorandaMemory  # noqa: E402 - says first what is missing
from memoranda.integrations.pydantic_ai.conversations import MemorandaConversationStore  # noqa: E402
from memoranda.integrations.pydantic_ai.embeddings import MemorandaEmbeddingModel  # noqa: E402

__all__ = ["MemorandaConversationStore", "MemorandaEmbeddingModel", "MemorandaMemory"]
