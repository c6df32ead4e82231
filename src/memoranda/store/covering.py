"""Texts in languages that the model does not cover, and what `embedder: auto` has decided, in the metadata: which model
the texts need, and what is said of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from typing import Literal

from memoranda.storage.sql.base import Connection
from memoranda.text.analysis import language_in

AUTO = "auto"
ENGLISH = "local:arctic-embed-s"
MULTILINGUAL = "local:multilingual-e5-small"
DECIDED = "auto_embedder"
"""The key of the decision in the metadata."""
NEWEST_TEXTS = 2_000
"""Texts of a tenant whose languages are looked at."""
Decision = Literal["move", "missing"]
"""The multilingual model is used, or it is needed and its package is not installed."""
BEFORE = "texts are in languages that arctic-embed-s does not cover"


def decision(c: Connection) -> Decision | None:
    """Return the decision; None while the English model covers the texts, and with another `embedder.url`."""
    row = c.one("get_meta", [DECIDED])
    return None if row is None else "move" if row[0] == "move" else "missing"


def uncovered(texts: Iterable[str], covered: Container[str]) -> Counter[str]:
    """Return the number of texts by language, of those in languages that a model does not cover."""
    return Counter(code for text in texts if (code := language_in(text)) and code not in covered)


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
