"""Switches of tenants and channels: they decide whether facts are extracted and summaries made, if neither a request
nor an agent does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict, Unpack

import msgspec

from memoranda.clock import now_micros
from memoranda.config.sections import Config
from memoranda.errors import InvalidInput
from memoranda.sessions.values import extraction_mode
from memoranda.storage.sql.base import Connection
from memoranda.store.access import must_write, sees_all
from memoranda.store.core import Core, tenant_for
from memoranda.store.validation import check_name
from memoranda.text.stored import compact_json
from memoranda.types import Subject

TENANT = ""
"""The channel of rows for a whole tenant."""


class SwitchValues(msgspec.Struct, frozen=True, kw_only=True):
    """What is switched on or off; None: nothing is said here, and the next in order decides."""

    extraction: bool | None = None
    session_summaries: bool | None = None
    conversation_summaries: bool | None = None


class SwitchFields(TypedDict, total=False):
    """`SwitchValues` as keywords."""

    extraction: bool | None
    session_summaries: bool | None
    conversation_summaries: bool | None


class InForce(msgspec.Struct, kw_only=True):
    """What holds for a tenant or a channel where neither a request nor an agent says otherwise."""

    extraction: bool
    session_summaries: bool
    conversation_summaries: bool


class SwitchState(msgspec.Struct, kw_only=True, tag_field="object", tag="switches"):
    """The switches of a tenant, or of one of its channels, as they are set there (None: they are not), and what is in
    force with the tenant's own and the configuration."""

    tenant: str
    channel_id: str | None
    extraction: bool | None
    session_summaries: bool | None
    conversation_summaries: bool | None
    in_force: InForce


NAMES = SwitchValues.__struct_fields__
NOTHING = SwitchValues()


def switches_of(c: Connection, tenant: str, channels: Iterable[str | None]) -> dict[str | None, SwitchValues]:
    """Return the switches of each of a tenant's channels (None: outside of channels): those of the channel, else those
    of the tenant."""
    named = {channel for channel in channels if channel is not None}
    rows = c.all("switches_of", [tenant, compact_json([TENANT, *sorted(named)])])
    switched: dict[str, dict[str, bool]] = {}
    for channel, name, value in rows:
        if name in NAMES:
            switched.setdefault(channel, {})[name] = bool(value)
    general = switched.get(TENANT, {})
    return {
        channel: SwitchValues(**general | switched.get(channel or TENANT, {})) if switched else NOTHING
        for channel in (None, *named)
    }


def in_force(config: Config, switched: SwitchValues) -> InForce:
    """Return what is in force under the configuration with the switches of a tenant and channel. Sessions are not
    summarized if the configuration does not cut them."""
    sessions = config.sessions
    return InForce(
        extraction=_first(switched.extraction, extraction_mode(config.facts, None) != "off"),
        session_summaries=sessions.enabled and _first(switched.session_summaries, sessions.summarize),
        conversation_summaries=_first(switched.conversation_summaries, config.summarization.enabled),
    )


def summarized(c: Connection, config: Config, tenant: str, channel_id: str | None) -> bool:
    """Return True if closed sessions of a channel (None: outside of channels) are summarized."""
    return in_force(config, switches_of(c, tenant, [channel_id])[channel_id]).session_summaries


def _first(said: bool | None, default: bool) -> bool:
    return default if said is None else said


class Switches:
    """The switches of a tenant, which its admins read and set, and those of its channels, which a service key without a
    user reads and sets, too."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self._core = core
        self.subject = subject

    async def get(self, channel_id: str | None = None, *, tenant: str | None = None) -> SwitchState:
        """Return the switches of a channel, or of the whole tenant, and what is in force.

        Raises:
            InvalidInput: `channel_id` is invalid.
            Forbidden: the subject administers neither, or asks about another tenant and is not the operator.
        """
        named = self._may(channel_id, tenant)
        return await self._core.threads.run(
            self._core.store.db.read, lambda c: self._state(c, named, channel_id), named
        )

    async def set(
        self, channel_id: str | None = None, *, tenant: str | None = None, **switches: Unpack[SwitchFields]
    ) -> SwitchState:
        """Set the named switches of a channel, or of the whole tenant; None leaves it to the next level: for a
        channel to the tenant, for a tenant to the configuration. It applies to queued jobs, too.

        Raises:
            InvalidInput: names the switch, or `channel_id`.
            Forbidden: as `get`.
        """
        must_write(self.subject)
        named = self._may(channel_id, tenant)
        changes = checked(switches)

        def work(c: Connection) -> SwitchState:
            c.run("add_tenant", [named, now_micros()])
            for name, value in changes.items():
                key = [named, channel_id or TENANT, name]
                if value is None:
                    c.run("drop_switch", key)
                else:
                    c.run("set_switch", [*key, int(value)])
            return self._state(c, named, channel_id)

        return await self._core.threads.result(self._core.store.db.write(work, tenant=named))

    def _may(self, channel_id: str | None, tenant: str | None) -> str:
        check_name(channel_id, "channel_id")
        own = tenant is None or tenant == self.subject.tenant_id
        if channel_id is not None and own and sees_all(self.subject):
            return self.subject.tenant_id
        return tenant_for(self.subject, tenant, "switches")

    def _state(self, c: Connection, tenant: str, channel_id: str | None) -> SwitchState:
        place = channel_id or TENANT
        rows = c.all("switches_of", [tenant, compact_json([place])])
        own = {name: bool(value) for where, name, value in rows if where == place}
        switched = switches_of(c, tenant, [channel_id])[channel_id]
        return SwitchState(
            tenant=tenant,
            channel_id=channel_id,
            in_force=in_force(self._core.config, switched),
            **{name: own.get(name) for name in NAMES},
        )


def checked(changes: Mapping[str, Any]) -> dict[str, bool | None]:
    """Return the changes, validated.

    Raises:
        InvalidInput: names the switch.
    """
    for name, value in changes.items():
        if name not in NAMES:
            raise InvalidInput(name, f"is no switch; use {', '.join(NAMES)}")
        if value is not None and not isinstance(value, bool):
            raise InvalidInput(name, "must be true, false, or null for what is next in order")
    return dict(changes)
