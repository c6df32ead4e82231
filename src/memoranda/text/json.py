"""JSON as it is stored: compact, unicode as it is."""

from __future__ import annotations

from typing import Any

import msgspec


def compact_json(value: Any) -> str:
    """JSON without spaces, unicode as it is."""
    return msgspec.json.encode(value).decode("utf-8")
