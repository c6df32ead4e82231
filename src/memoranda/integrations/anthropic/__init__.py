"""Anthropic's SDK: `MemorandaMemoryTool` and `AsyncMemorandaMemoryTool`, Claude's memory tool in Memoranda."""

from memoranda.integrations.frameworks import require

require("anthropic.tools", "anthropic")

from memoranda.integrations.anthropic.memory_tool import (  # noqa: E402 - says first what is missing
    AsyncMemorandaMemoryTool,
    MemorandaMemoryTool,
)

__all__ = ["AsyncMemorandaMemoryTool", "MemorandaMemoryTool"]
