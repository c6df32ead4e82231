"""The providers' servers, one for each test."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location(
    "memoranda_tests_providers", Path(__file__).parent.parent / "providers.py"
)
assert _spec is not None
assert _spec.loader is not None
providers = sys.modules.setdefault(_spec.name, importlib.util.module_from_spec(_spec))
if not hasattr(providers, "Provider"):
    _spec.loader.exec_module(providers)


@pytest.fixture
def provider() -> Iterator[object]:
    """A provider that answers by the references and fails on demand."""
    served = providers.Provider()
    yield served
    served.close()
