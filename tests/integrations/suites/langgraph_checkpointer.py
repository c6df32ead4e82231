"""LangGraph's conformance tests of checkpointers, one by one, on a folder."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES, DetectedCapabilities

from memoranda.integrations.langgraph import MemorandaSaver

SPEC = "langgraph.checkpoint.conformance.spec.test_"
NAMES = sorted(capability.value for capability in ALL_CAPABILITIES)
TESTS = [
    test for name in NAMES for test in getattr(import_module(f"{SPEC}{name}"), f"ALL_{name.upper()}_TESTS")
]


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.__name__)
async def test_conformance(test: Any, folder: Any) -> None:
    saver = MemorandaSaver(folder)
    assert not DetectedCapabilities.from_instance(saver).missing
    await test(saver)
