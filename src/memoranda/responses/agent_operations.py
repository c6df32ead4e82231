"""The operations on agent profiles that servers, clients and interfaces have."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from memoranda.responses.profile_values import ID, NewProfile, ProfileChange, fields_of
from memoranda.responses.profiles import Agents
from memoranda.store.operations import Deleted, Operation
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

    def arguments(self) -> dict[str, Any]:
        """Return the profile and its id."""
        return {"new": fields_of(self), "id": self.id}

    @classmethod
    def completed(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a body for the arguments of a call."""
        new = values.pop("new")
        return values | (fields_of(new) if isinstance(new, NewProfile) else dict(new))


class AgentChangeBody(ProfileChange, kw_only=True):
    """The fields of an agent to change; what is left out stays, null is what a new agent has."""

    def arguments(self) -> dict[str, Any]:
        """Return the change."""
        return {"change": self}

    @classmethod
    def completed(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a body for the arguments of a call."""
        change = values["change"]
        return fields_of(change, ProfileChange) if isinstance(change, ProfileChange) else dict(change)


class DeletedAgent(Deleted, kw_only=True, tag_field="object", tag="agent.deleted"):
    """The agent that is gone; what was answered and learned under it stays."""


AT = "/v1/agents"
ONE = f"{AT}/{{agent_id}}"
OPERATIONS = (
    Operation(Agents.create, "POST", AT, "write", NewAgentBody, local=("new",)),
    Operation(Agents.list, "GET", AT, "read"),
    Operation(Agents.get, "GET", ONE, "read"),
    Operation(Agents.update, "POST", ONE, "write", AgentChangeBody, local=("change",)),
    Operation(Agents.delete, "DELETE", ONE, "write", shows=DeletedAgent),
)
