"""The switches of tenants and channels on a server, blocking."""

from __future__ import annotations

import msgspec
from typing_extensions import Unpack

from memoranda.client.wire import Wire, query_of
from memoranda.sessions.switches import SwitchFields, SwitchState
from memoranda.store.operations import segment


class ClientSwitches:
    """What is switched on and off on a server."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def get(self, channel_id: str | None = None, *, tenant: str | None = None) -> SwitchState:
        """See `Switches.get`; a server takes no `tenant` beside a channel."""
        answer = self._wire.call("GET", _path(channel_id), query=query_of({"tenant": tenant}))
        return msgspec.json.decode(answer, type=SwitchState)

    def set(
        self, channel_id: str | None = None, *, tenant: str | None = None, **switches: Unpack[SwitchFields]
    ) -> SwitchState:
        """See `Switches.set`; a server takes no `tenant` beside a channel."""
        query = query_of({"tenant": tenant})
        answer = self._wire.call("POST", _path(channel_id), body=switches, query=query)
        return msgspec.json.decode(answer, type=SwitchState)


def _path(channel_id: str | None) -> str:
    place = "admin" if channel_id is None else f"channels/{segment(channel_id)}"
    return f"/v1/{place}/switches"
