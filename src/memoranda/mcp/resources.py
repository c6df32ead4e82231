"""Resources: facts about the user, recent sessions, one memory, one document."""

from __future__ import annotations

from urllib.parse import unquote

import mcp_types as wire
from mcp.shared.exceptions import MCPError

from memoranda.errors import NotFound
from memoranda.mcp.caller import Caller

PROFILE, RECENT = "memoranda://profile", "memoranda://sessions"
MEMORY, DOCUMENT = "memoranda://memories/", "memoranda://documents/"
FACTS = 50
SESSIONS = 10
LOOKED_AT = 100
"""Sessions without a current summary that are searched for one of their earlier messages."""
MARKDOWN = "text/markdown"

RESOURCES = [
    wire.Resource(
        uri=PROFILE,
        name="profile",
        title="What is known",
        description="Current facts, newest first",
        mime_type=MARKDOWN,
    ),
    wire.Resource(
        uri=RECENT,
        name="sessions",
        title="Recent sessions",
        description="The last sessions with their summaries",
        mime_type=MARKDOWN,
    ),
]
TEMPLATES = [
    wire.ResourceTemplate(
        uri_template=f"{MEMORY}{{id}}", name="memory", title="A memory", mime_type=MARKDOWN
    ),
    wire.ResourceTemplate(
        uri_template=f"{DOCUMENT}{{store_id}}/{{file_id}}",
        name="document",
        title="The text of a document",
        mime_type=MARKDOWN,
    ),
]


async def read(caller: Caller, uri: str) -> str:
    """Return the text of a resource.

    Raises:
        MCPError: there is no such resource for this caller.
    """
    try:
        return await _text(caller, uri)
    except NotFound as exc:
        raise MCPError(wire.INVALID_PARAMS, f"no resource {uri!r}: {exc}", {"uri": uri}) from exc


async def _text(caller: Caller, uri: str) -> str:
    if uri == PROFILE:
        return await profile(caller)
    if uri == RECENT:
        return await recent(caller)
    if uri.startswith(MEMORY):
        return (await caller.memories.get(unquote(uri.removeprefix(MEMORY)))).content
    store_id, _, file_id = uri.removeprefix(DOCUMENT).partition("/")
    if uri.startswith(DOCUMENT) and file_id:
        return await caller.knowledge.stores.text(unquote(store_id), unquote(file_id))
    known = f"{PROFILE}, {RECENT}, {MEMORY}ID, {DOCUMENT}STORE/FILE"
    raise NotFound(f"resources are {known}")


async def profile(caller: Caller) -> str:
    """Return the current facts of the caller as a list, newest first."""
    page = await caller.memories.list(kinds=["fact"], scopes=caller.default_scopes, limit=FACTS)
    lines = [f"- {fact.content} ({fact.occurred_at:%Y-%m-%d})" for fact in page.data]
    return "\n".join(lines) or "No facts are known yet."


async def recent(caller: Caller) -> str:
    """Return the summaries of the last sessions of the caller, newest first."""
    summarized = await caller.sessions.list(status="summarized", limit=SESSIONS)
    reopened = await caller.sessions.list(status=["open", "closed", "failed"], limit=LOOKED_AT)
    sessions = summarized.data + [session for session in reopened.data if session.summary]
    sessions.sort(key=lambda session: session.ended_at, reverse=True)
    parts = [
        f"## {session.ended_at:%Y-%m-%d} {', '.join(session.participants)}\n\n{session.summary}"
        for session in sessions[:SESSIONS]
    ]
    return "\n\n".join(parts) or "No session has a summary yet."
