"""Ids of stored objects."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable

from memoranda.clock import now_micros

_NOWHERE = re.compile("[\x00\ud800-\udfff]")


def nameable(id_: str) -> bool:
    """Whether something stored may have this id: with NUL or half of a surrogate pair nothing has, and databases
    refuse even the question."""
    return _NOWHERE.search(id_) is None


def new_id(prefix: str) -> str:
    """An id that sorts by when it was made: the prefix, microseconds and chance, in hex."""
    return f"{prefix}{now_micros():013x}{secrets.token_hex(6)}"


def listed(texts: Iterable[str]) -> str:
    """Ids as a statement takes them; those that nothing can have are left out."""
    return json.dumps([text for text in texts if nameable(text)])
