"""Ids of stored objects."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable

from memoranda.clock import now_micros
from memoranda.errors import InvalidInput
from memoranda.text.stored import UNSTORABLE


def nameable(id_: str) -> bool:
    """Return True if a stored object may have this id. No id contains NUL or half of a surrogate pair, and databases
    refuse such a parameter.

    Raises:
        InvalidInput: it is no string.
    """
    if not isinstance(id_, str):
        raise InvalidInput("id", f"must be a string, not {type(id_).__name__}")
    return UNSTORABLE.search(id_) is None


def new_id(prefix: str) -> str:
    """Return an id that sorts by creation time: the prefix, microseconds and random digits, in hex."""
    return f"{prefix}{now_micros():013x}{secrets.token_hex(6)}"


def listed(texts: Iterable[str]) -> str:
    """Return ids as a JSON list for a statement, without those that no object can have."""
    return json.dumps([text for text in texts if nameable(text)])
