"""Tests of the suite that one backend leaves to `./test --all`."""

from __future__ import annotations

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what the class of a test names in `slow_tests`."""
    for item in items:
        if isinstance(item, pytest.Function) and item.originalname in getattr(item.cls, "slow_tests", ()):
            item.add_marker(pytest.mark.slow)
