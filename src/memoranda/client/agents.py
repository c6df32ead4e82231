"""The blocking client for agent profiles of a server: the interface that `memoranda.open` returns for a folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from memoranda.client.wire import Wire, query_of
from memoranda.responses.profile_values import NewProfile, Profile, ProfileChange, fields_of
from memoranda.store.operations import segment
from memoranda.store.paging import Listed

AT = "/v1/agents"


class ClientAgents:
    """The agent profiles of a server; see `profiles.Agents`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def create(self, new: NewProfile | Mapping[str, Any], *, id: str | None = None) -> Profile:
        """See `Agents.create`."""
        fields = fields_of(new) if isinstance(new, NewProfile) else dict(new)
        body = fields if id is None else {**fields, "id": id}
        return msgspec.json.decode(self._wire.call("POST", AT, body=body), type=Profile)

    def get(self, id: str) -> Profile:
        """See `Agents.get`."""
        return msgspec.json.decode(self._wire.call("GET", _path(id)), type=Profile)

    def list(
        self,
        *,
        limit: int = 20,
        after: str | None = None,
        before: str | None = None,
        order: str = "desc",
        name: str | None = None,
    ) -> Listed[Profile]:
        """See `Agents.list`."""
        asked = {"limit": limit, "after": after, "before": before, "order": order, "name": name}
        return msgspec.json.decode(self._wire.call("GET", AT, query=query_of(asked)), type=Listed[Profile])

    def update(self, id: str, change: ProfileChange | Mapping[str, Any]) -> Profile:
        """See `Agents.update`."""
        body = fields_of(change, ProfileChange) if isinstance(change, ProfileChange) else dict(change)
        return msgspec.json.decode(self._wire.call("POST", _path(id), body=body), type=Profile)

    def delete(self, id: str) -> None:
        """See `Agents.delete`."""
        self._wire.call("DELETE", _path(id))


def _path(id: str) -> str:
    return f"{AT}/{segment(id)}"
