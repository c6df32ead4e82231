"""The operations on switches that servers, clients and interfaces have."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from memoranda.sessions.switches import Switches
from memoranda.store.operations import Operation
from memoranda.store.tenants import TenantName, TenantQuery


class ChannelSwitchesBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The switches to change; null leaves one to the tenant, then to the configuration."""

    extraction: bool | None | UnsetType = UNSET
    session_summaries: bool | None | UnsetType = UNSET
    conversation_summaries: bool | None | UnsetType = UNSET


class SwitchesBody(ChannelSwitchesBody, kw_only=True, forbid_unknown_fields=True):
    """The switches of a tenant to change; null leaves one to the configuration. `tenant` as in the query."""

    tenant: TenantName | None = None


TENANT, CHANNEL = "/v1/admin/switches", "/v1/channels/{channel_id}/switches"
OPERATIONS = (
    Operation(Switches.get, "GET", CHANNEL, "service", local=("tenant",)),
    Operation(Switches.set, "POST", CHANNEL, "service", ChannelSwitchesBody, local=("tenant",)),
    Operation(Switches.get, "GET", TENANT, "admin", TenantQuery, local=("channel_id",)),
    Operation(
        Switches.set,
        "POST",
        TENANT,
        "admin",
        SwitchesBody,
        beside=TenantQuery,
        local=("channel_id",),
    ),
)
