"""The size of a model, read from its name."""

from __future__ import annotations

import re

SMALL = 10e9
"""Parameters of the largest model that is called small."""
UNITS = {"b": 1e9, "m": 1e6}
_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)([bm])(?![^\W_])", re.IGNORECASE)


def is_small(model: str) -> bool:
    """Return True if the name of a model says that it has at most `SMALL` parameters, as `qwen3:8b` and `smollm2-360m`
    do. A name that says nothing (`gpt-5-mini`), or several sizes (`8x7b`), is not small."""
    sizes = [float(size) * UNITS[unit.lower()] for size, unit in _SIZE.findall(model)]
    return bool(sizes) and max(sizes) <= SMALL
