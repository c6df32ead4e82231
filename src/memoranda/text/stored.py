"""Texts as they are stored: compact JSON, stable hashes, and without characters that no database stores."""

from __future__ import annotations

import re
from typing import Any

import msgspec


def compact_json(value: Any) -> str:
    """Return JSON without spaces, with unicode unescaped."""
    return msgspec.json.encode(value).decode("utf-8")


UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""NUL, and half of a surrogate pair."""


def storable(text: str) -> str:
    """Return the text with U+FFFD for characters that cannot be stored."""
    return UNSTORABLE.sub("\ufffd", text)
