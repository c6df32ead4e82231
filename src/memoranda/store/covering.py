"""What `embedder: auto` has decided, in the metadata: which model the texts need, and what is said of it."""

from __future__ import annotations

from typing import Literal

from memoranda.storage.sql.base import Connection

AUTO = "auto"
ENGLISH = "local:arctic-embed-s"
MULTILINGUAL = "local:multilingual-e5-small"
DECIDED = "auto_embedder"
"""The key of the decision in the metadata."""
Decision = Literal["move", "missing"]
"""The multilingual model is used, or it is needed and its package is not installed."""
BEFORE = "texts are in languages that arctic-embed-s does not cover"


def decision(c: Connection) -> Decision | None:
    """Return the decision; None while the English model covers the texts, and with another `embedder.url`."""
    row = c.one("get_meta", [DECIDED])
    return None if row is None else "move" if row[0] == "move" else "missing"


def note(c: Connection, model: str) -> str | None:
    """Return a sentence about the decision, given the model that searches use; None if there is none."""
    decided = decision(c)
    if decided is None:
        return None
    if decided == "missing":
        return f"{BEFORE}: pip install memoranda-models-multilingual"
    if model == MULTILINGUAL.partition(":")[2]:
        return f"{BEFORE}: multilingual-e5-small is in use (embedder.url: {AUTO})"
    return f"{BEFORE}: vectors of multilingual-e5-small are being made (embedder.url: {AUTO})"
