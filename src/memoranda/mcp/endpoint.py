"""The path of the endpoint, and the parameters of its query string."""

from __future__ import annotations

import msgspec

from memoranda.config.agent_sections import ToolSet

PATH = "/mcp"


class EndpointQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The user and the agent whose memory it is, and the tools that are offered."""

    user: str | None = None
    agent: str | None = None
    tools: ToolSet | None = None
