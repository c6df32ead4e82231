"""The official conformance suite against the product's endpoint: every scenario that needs no fixtures."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.server_process import Process

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
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

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on the PATH"),
]


@pytest.fixture(scope="module")
def conformance(node: Path, npm: Callable[..., Path]) -> list[str]:
    """The command of the suite."""
    return [str(node), str(npm(SUITE) / "@modelcontextprotocol/conformance/dist/index.js")]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server without keys."""
    made = Process(tmp_path_factory.mktemp("open") / "data", {})
    yield f"{made.url}/mcp"
    made.end()


@pytest.mark.parametrize(
    ("scenario", "version"), [(name, one) for name, versions in SCENARIOS.items() for one in versions]
)
def test_the_product_conforms(
    conformance: list[str], url: str, scenario: str, version: str, tmp_path: Path
) -> None:
    command = [*conformance, "server", "--url", url, "--scenario", scenario, "--spec-version", version]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert "Passed: " in ended.stdout, ended.stdout + ended.stderr
    failed = int(ended.stdout.split("Passed: ")[1].split(", ")[1].split()[0])
    assert failed == OWN_TOOLS.get(scenario, 0), ended.stdout
