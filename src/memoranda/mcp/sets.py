"""Which tools a client is offered."""

from __future__ import annotations

from memoranda.mcp.connector import FETCH, SEARCH
from memoranda.mcp.context import CONTEXT
from memoranda.mcp.documents import INDEX_TEXT, SEARCH_DOCUMENTS, STORES
from memoranda.mcp.listing import HISTORY, LIST, SESSIONS, UNDO
from memoranda.mcp.remembering import FORGET, GET, RECALL, REMEMBER
from memoranda.mcp.tool import Tool

CORE = (RECALL, REMEMBER, FORGET, GET, SEARCH_DOCUMENTS, CONTEXT)
FULL = (*CORE, LIST, HISTORY, UNDO, SESSIONS, STORES, INDEX_TEXT)
SETS: dict[str, dict[str, Tool]] = {
    name: {tool.name: tool for tool in tools}
    for name, tools in {
        "core": CORE,
        "full": FULL,
        "read": tuple(tool for tool in FULL if not tool.changes),
        "chatgpt": (SEARCH, FETCH),
    }.items()
}
"""Tools by name, by set. `read` are those that change nothing."""
