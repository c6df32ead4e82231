"""The official conformance suite against the product's endpoint: every scenario that needs no fixtures."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest

from support.server_process import Process

SCENARIOS = {
    "server-initialize": ["2025-11-25"],
    "server-session-lifecycle": ["2025-11-25"],
    "ping": ["2025-11-25"],
    "tools-list": ["2025-11-25", "2026-07-28"],
    "resources-list": ["2025-11-25", "2026-07-28"],
    "prompts-list": ["2025-11-25", "2026-07-28"],
    "dns-rebinding-protection": ["2025-11-25", "2026-07-28"],
    "server-sse-multiple-streams": ["2025-11-25", "2026-07-28"],
    "caching": ["2026-07-28"],
    "sep-2164-resource-not-found": ["2026-07-28"],
    "http-header-validation": ["2026-07-28"],
    "input-required-result-missing-input-response": ["2026-07-28"],
    "input-required-result-unsupported-methods": ["2026-07-28"],
    "input-required-result-ignore-extra-params": ["2026-07-28"],
    "input-required-result-validate-input": ["2026-07-28"],
    "server-stateless": ["2026-07-28"],
}
"""By name, the protocol versions of the scenarios that call no tool, resource or prompt of the suite's own server."""
OWN_TOOLS = {"server-stateless": 4}
"""Checks of a scenario that need tools of the suite's own server."""
OF_SESSIONS = {("server-session-lifecycle", "2025-11-25"), ("server-sse-multiple-streams", "2025-11-25")}
"""Scenarios that check nothing on a server without sessions."""
CASES = [
    (sessions, scenario, version)
    for sessions in (False, True)
    for scenario, versions in SCENARIOS.items()
    for version in versions
    if sessions or (scenario, version) not in OF_SESSIONS
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on the PATH"),
]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[str]:
    """A server without keys."""
    made = Process(tmp_path_factory.mktemp("open") / "data", {"mcp": {"sessions": request.param}})
    yield f"{made.url}/mcp"
    made.end()


@pytest.mark.parametrize(("url", "scenario", "version"), CASES, indirect=["url"], scope="module")
def test_the_product_conforms(
    scenario_checks: Callable[[str, str, str], dict[str, int]], url: str, scenario: str, version: str
) -> None:
    checks = scenario_checks(url, scenario, version)
    assert checks["failed"] == OWN_TOOLS.get(scenario, 0)
    assert checks["passed"] > 0
