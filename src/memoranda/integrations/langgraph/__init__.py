"""LangGraph: `MemorandaStore`, its long-term memory in Memoranda."""

from memoranda.integrations.frameworks import require

require("langgraph.store.base", "langgraph")

from memoranda.integrations.langgraph.store import MemorandaStore  # noqa: E402 - says first what is missing

__all__ = ["MemorandaStore"]
