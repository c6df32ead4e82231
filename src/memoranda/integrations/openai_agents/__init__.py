"""OpenAI Agents SDK: `MemorandaSession`, the history of a conversation, and `memory_tools`."""

from memoranda.integrations.frameworks import require

require("agents.memory", "openai-agents")

from memoranda.integrations.openai_agents.session import MemorandaSession  # noqa: E402 - says first what is missing
from memoranda.integrations.openai_agents.tools import memory_tools  # noqa: E402

__all__ = ["MemorandaSession", "memory_tools"]
