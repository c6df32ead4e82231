"""The models that come with the product, each loaded once in a test process: every product that is opened with the
multilingual one would take a second of CPU for it. Files in temporary folders, which tests make, are not kept."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from memoranda.providers.embeddings import onnx, wordpieces


def share() -> None:
    """Let the products that this process opens from here on share what they load."""
    for module in (onnx, wordpieces):
        pytest.MonkeyPatch().setattr(module, "load", _once(module.load))


def _once(load: Callable[[Path], Any]) -> Callable[[Path], Any]:
    kept = cache(load)
    return lambda path: (load if path.is_relative_to(tempfile.gettempdir()) else kept)(path)
