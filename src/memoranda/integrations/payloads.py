"""JSON of any size in the metadata of entries, in parts that fit."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

PART = 14_000
"""Characters of a part: at four bytes each they fit `limits.max_metadata_bytes` beside other keys."""
SHOWN = 2_000
"""Characters of an entry's text that searches match."""
_LONE = re.compile("[\ud800-\udfff]")


def text_of(value: Any) -> str:
    """The value as JSON that can be stored: lone surrogates are escaped."""
    return _LONE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


def parts_of(text: str) -> list[str]:
    """A text in parts of at most 14 000 characters."""
    return [text[start : start + PART] for start in range(0, len(text), PART)]


def searchable(texts: Sequence[str], otherwise: str) -> str:
    """The searchable text of an entry with these texts: their beginning; `otherwise` if it is empty."""
    text = "\n\n".join(texts).replace("\x00", "").encode("utf-8", "replace").decode()[:SHOWN]
    return text if text.strip() else otherwise
