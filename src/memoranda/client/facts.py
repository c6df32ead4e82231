"""Facts of a server, as `facts.Facts` has them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec
from typing_extensions import Unpack

from memoranda.client.wire import Wire, query_of, quoted
from memoranda.facts.facts import Consolidated, Extracted
from memoranda.facts.history import FactHistory, Undone
from memoranda.facts.maintenance import Swept
from memoranda.facts.timeline import Timeline
from memoranda.types import Memory, SelectionFields

AT = "/v1/memories"


class ClientFacts:
    """The operations on facts of a server."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def extract(self, session_id: str) -> Extracted:
        """See `Facts.extract`."""
        path = f"/v1/sessions/{quoted(session_id)}/extract"
        return msgspec.json.decode(self._wire.call("POST", path), type=Extracted)

    def sweep(self) -> Swept:
        """See `Facts.sweep`."""
        return msgspec.json.decode(self._wire.call("POST", f"{AT}/sweep"), type=Swept)

    def consolidate(self, **fields: Unpack[SelectionFields]) -> Consolidated:
        """See `Facts.consolidate`."""
        return msgspec.json.decode(
            self._wire.call("POST", f"{AT}/consolidate", body=fields), type=Consolidated
        )

    def timeline(
        self,
        *,
        scopes: Sequence[str] | None = None,
        at: datetime | None = None,
        text: str = "",
        limit: int = 50,
        after: str | None = None,
    ) -> Timeline:
        """See `Facts.timeline`."""
        asked = {"scopes": scopes, "at": at, "text": text, "limit": limit, "after": after}
        return msgspec.json.decode(
            self._wire.call("GET", f"{AT}/timeline", query=query_of(asked)), type=Timeline
        )

    def history(self, id: str) -> FactHistory:
        """See `Facts.history`."""
        return msgspec.json.decode(self._wire.call("GET", f"{_path(id)}/history"), type=FactHistory)

    def confirm(self, id: str) -> Memory:
        """See `Facts.confirm`."""
        return msgspec.json.decode(self._wire.call("POST", f"{_path(id)}/confirm"), type=Memory)

    def undo(self, id: str) -> Undone:
        """See `Facts.undo`."""
        return msgspec.json.decode(self._wire.call("POST", f"{_path(id)}/undo"), type=Undone)


def _path(id: str) -> str:
    return f"{AT}/{quoted(id)}"
