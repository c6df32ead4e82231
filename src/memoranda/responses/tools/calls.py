"""The item of a call that ran here or on an MCP server: begun, done, failed."""

from __future__ import annotations

from typing import Any

from memoranda.responses.tools.base import Result
from memoranda.responses.values import Item
from memoranda.store.ids import new_id
from memoranda.text import prompts


def begun_call(label: str, name: str, arguments: str) -> Item:
    """An `mcp_call` that begins."""
    return {
        "id": new_id("mcp_"),
        "type": "mcp_call",
        "status": "in_progress",
        "server_label": label,
        "name": name,
        "arguments": arguments,
        "output": None,
        "error": None,
        "approval_request_id": None,
    }


def asking(begun: Item) -> Item:
    """The item that asks whether this call may begin."""
    named = {key: begun[key] for key in ("server_label", "name", "arguments")}
    return {"id": new_id("mcpr_"), "type": "mcp_approval_request", **named}


def done_call(item: Item, output: str) -> Item:
    """The call with its output."""
    return {**item, "status": "completed", "output": output}


def failed_call(item: Item, reason: str, error: dict[str, Any] | None = None) -> Result:
    """The result of a call that failed; `error` is the item's, a tool execution error where none is given."""
    failure = error or {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": reason}]}
    return Result({**item, "status": "failed", "error": failure}, prompts.failed(reason))
