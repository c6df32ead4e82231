"""Switches for callers without an event loop."""

from __future__ import annotations

from memoranda.concurrency.portal import Portal, blocking
from memoranda.sessions.switches import Switches


class BlockingSwitches:
    """`switches.Switches`, method for method."""

    def __init__(self, inner: Switches, portal: Portal) -> None:
        self.inner = inner
        self.portal = portal

    get = blocking(Switches.get)
    set = blocking(Switches.set)
