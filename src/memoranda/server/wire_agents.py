"""What `/v1/agents` answers beside the agents themselves, which are the values of `responses.profiles`. These routes
are ours: unknown fields are refused."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from memoranda.responses.profile_values import ID
from memoranda.responses.profiles import NewProfile, Profile
from memoranda.server.wire_knowledge import Limit
from memoranda.types import says

AgentId = Annotated[
    str,
    Meta(
        pattern=f"^{ID.pattern}$",
        extra=says("must be agent_ and then up to 64 letters, digits, _, . and -"),
    ),
]


class NewAgentBody(NewProfile, kw_only=True):
    """An agent to be made; with an `id` of the caller's (`agent_` and letters, digits, `_`, `.`, `-`), or a new one."""

    id: AgentId | None = None


class AgentsQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A page of agents, or of those with exactly this name."""

    limit: Limit = 20
    after: str | None = None
    before: str | None = None
    order: Literal["asc", "desc"] = "desc"
    name: str | None = None


class AgentPage(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """A page of agents; `after=last_id` asks for the next one."""

    data: list[Profile]
    first_id: str | None
    last_id: str | None
    has_more: bool


class DeletedAgent(msgspec.Struct, kw_only=True, tag_field="object", tag="agent.deleted"):
    """The agent that is gone; what was answered and learned under it stays."""

    id: str
    deleted: bool = True
