"""Characters that no database stores."""

from __future__ import annotations

import re

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""NUL, and half of a surrogate pair."""


def storable(text: str) -> str:
    """Return the text with U+FFFD for characters that cannot be stored."""
    return UNSTORABLE.sub("\ufffd", text)
