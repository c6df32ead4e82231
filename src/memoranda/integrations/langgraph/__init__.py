"""LangGraph: `MemorandaStore`, its long-term memory in Memoranda, and `MemorandaSaver`, its checkpoints."""

from memoranda.integrations.frameworks import require

require("langgraph.store.base", "langgraph")

from memoranda.integrations.langgraph.checkpointer import MemorandaSaver  # noqa: E402 - says first what is missing
from memoranda.integrations.langgraph.store import MemorandaStore  # noqa: E402

__all__ = ["MemorandaSaver", "MemorandaStore"]
