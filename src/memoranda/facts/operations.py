"""The operations on facts that servers, clients and interfaces have."""

from __future__ import annotations

from memoranda.facts.facts import Facts
from memoranda.store.operations import Operation
from memoranda.store.selections import ScopedSelectionBody

AT = "/v1/memories"
OPERATIONS = (
    Operation(Facts.consolidate, "POST", f"{AT}/consolidate", "write", ScopedSelectionBody, long=True),
    Operation(Facts.sweep, "POST", f"{AT}/sweep", "admin", long=True, command="sweep"),
    Operation(Facts.extract, "POST", "/v1/sessions/{session_id}/extract", "write", long=True),
    Operation(Facts.timeline, "GET", f"{AT}/timeline", "read", long=True, compresses=True),
    Operation(Facts.history, "GET", f"{AT}/{{id}}/history", "read"),
    Operation(Facts.confirm, "POST", f"{AT}/{{id}}/confirm", "write", command="confirm"),
    Operation(Facts.undo, "POST", f"{AT}/{{id}}/undo", "write", command="undo"),
)
