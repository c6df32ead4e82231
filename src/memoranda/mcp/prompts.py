"""Prompts that a user picks in a client."""

from __future__ import annotations

from collections.abc import Mapping

import mcp_types as wire
from mcp.shared.exceptions import MCPError

from memoranda.mcp.caller import Caller
from memoranda.mcp.context import composed

BUDGET = 4_000
"""Tokens of context in a prompt."""
ANSWER = wire.Prompt(
    name="answer_from_memory",
    title="Answer from memory",
    description="Answer a question from what is remembered and from the documents",
    arguments=[wire.PromptArgument(name="question", description="The question", required=True)],
)
KEEP = wire.Prompt(
    name="remember_session",
    title="Remember this session",
    description="Store what this conversation established",
    arguments=[],
)
PROMPTS = [ANSWER, KEEP]
_KEEP = (
    "Look through this conversation for what will matter later: decisions and their reasons, preferences, facts about"
    " me or the project, open tasks. Call `remember` once for each, in sentences that are understood without this"
    " conversation. Leave out what is stored already, secrets, and what only mattered today. Then list what you stored."
)


async def prompt(caller: Caller, name: str, arguments: Mapping[str, str] | None) -> wire.GetPromptResult:
    """Return a prompt.

    Raises:
        MCPError: there is no such prompt, or an argument is missing.
    """
    if name == KEEP.name:
        return _user(_KEEP)
    if name != ANSWER.name:
        known = ", ".join(each.name for each in PROMPTS)
        raise MCPError(wire.INVALID_PARAMS, f"no prompt {name!r}; use {known}")
    question = (arguments or {}).get("question", "").strip()
    if not question:
        raise MCPError(wire.INVALID_PARAMS, "question: is required; write what is to be answered")
    return _user((await composed(caller, question, BUDGET)).text)


def _user(text: str) -> wire.GetPromptResult:
    return wire.GetPromptResult(
        messages=[wire.PromptMessage(role="user", content=wire.TextContent(text=text))]
    )
