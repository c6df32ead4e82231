"""The switches of tenants and channels on a server."""

from __future__ import annotations

import msgspec
from typing_extensions import Unpack

from memoranda.client.remote import Remote
from memoranda.client.wire import query_of
from memoranda.sessions.switches import Switches, SwitchFields, SwitchState
from memoranda.store.operations import segment


class RemoteSwitches(Remote, Switches):
    """What is switched on and off on a server."""

    async def get(self, channel_id: str | None = None, *, tenant: str | None = None) -> SwitchState:
        """See `Switches.get`; a server takes no `tenant` beside a channel."""
        answer = await self._wire.call("GET", _path(channel_id), query=query_of({"tenant": tenant}))
        return msgspec.json.decode(answer, type=SwitchState)

    async def set(
        self, channel_id: str | None = None, *, tenant: str | None = None, **switches: Unpack[SwitchFields]
    ) -> SwitchState:
        """See `Switches.set`; a server takes no `tenant` beside a channel."""
        query = query_of({"tenant": tenant})
        answer = await self._wire.call("POST", _path(channel_id), body=switches, query=query)
        return msgspec.json.decode(answer, type=SwitchState)


def _path(channel_id: str | None) -> str:
    place = "admin" if channel_id is None else f"channels/{segment(channel_id)}"
    return f"/v1/{place}/switches"
