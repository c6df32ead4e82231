"""What the routes of switches take and answer."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from memoranda.server.wire_tenants import TenantName
from memoranda.sessions.switches import SwitchState


class ChannelSwitchesBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The switches to change; null leaves one to the tenant, then to the configuration."""

    extraction: bool | None | UnsetType = UNSET
    session_summaries: bool | None | UnsetType = UNSET
    conversation_summaries: bool | None | UnsetType = UNSET


class SwitchesBody(ChannelSwitchesBody, kw_only=True, forbid_unknown_fields=True):
    """The switches of a tenant to change; null leaves one to the configuration. `tenant` as in the query."""

    tenant: TenantName | None = None


class SwitchesObject(SwitchState, kw_only=True, tag_field="object", tag="switches"):
    """What is switched for a tenant or a channel, and what is in force there."""
