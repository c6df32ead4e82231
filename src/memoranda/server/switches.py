"""`/v1/admin/switches` and `/v1/channels/{channel_id}/switches`: extraction and summaries on or off."""

from __future__ import annotations

from memoranda.server import wire_switches as wire
from memoranda.server.memories import as_wire, changes_for, given
from memoranda.server.route import Call, Route
from memoranda.server.wire_tenants import TenantQuery


async def of_tenant(call: Call[None, TenantQuery]) -> wire.SwitchesObject:
    return as_wire(await call.workspace.switches.get(tenant=call.query.tenant), wire.SwitchesObject)


async def set_of_tenant(call: Call[wire.SwitchesBody, TenantQuery]) -> wire.SwitchesObject:
    changes, tenant = changes_for(call.body, call.query.tenant)
    return as_wire(await call.workspace.switches.set(tenant=tenant, **changes), wire.SwitchesObject)


async def of_channel(call: Call[None, None]) -> wire.SwitchesObject:
    return as_wire(await call.workspace.switches.get(call.id), wire.SwitchesObject)


async def set_of_channel(call: Call[wire.ChannelSwitchesBody, None]) -> wire.SwitchesObject:
    return as_wire(await call.workspace.switches.set(call.id, **given(call.body)), wire.SwitchesObject)


TENANT, CHANNEL = "/v1/admin/switches", "/v1/channels/{channel_id}/switches"
SHOWN = wire.SwitchesObject
ROUTES = (
    Route("GET", TENANT, "What a tenant has switched", of_tenant, "admin", SHOWN, query=TenantQuery),
    Route(
        "POST", TENANT, "Switch extraction and summaries of a tenant", set_of_tenant, "admin", SHOWN,
        wire.SwitchesBody, TenantQuery,
    ),
    Route("GET", CHANNEL, "What a channel has switched", of_channel, "service", SHOWN),
    Route(
        "POST", CHANNEL, "Switch extraction and summaries of a channel", set_of_channel, "service", SHOWN,
        wire.ChannelSwitchesBody,
    ),
)  # fmt: skip
