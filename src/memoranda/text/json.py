"""Compact JSON for storage, with unicode unescaped."""

from __future__ import annotations

from typing import Any

import msgspec


def compact_json(value: Any) -> str:
    """Return JSON without spaces, with unicode unescaped."""
    return msgspec.json.encode(value).decode("utf-8")
