"""The scenarios that the conformance suite requires of a server, against its fixtures behind the product's mount."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from anyio.from_thread import start_blocking_portal

from support.conformance_server import serving

REQUIRED = {
    "2025-11-25": [
        "server-initialize",
        "logging-set-level",
        "ping",
        "completion-complete",
        "tools-list",
        "tools-call-simple-text",
        "tools-call-image",
        "tools-call-audio",
        "tools-call-embedded-resource",
        "tools-call-mixed-content",
        "tools-call-with-logging",
        "tools-call-error",
        "tools-call-with-progress",
        "tools-call-sampling",
        "tools-call-elicitation",
        "elicitation-sep1034-defaults",
        "server-sse-multiple-streams",
        "elicitation-sep1330-enums",
        "resources-list",
        "resources-read-text",
        "resources-read-binary",
        "resources-templates-read",
        "resources-subscribe",
        "resources-unsubscribe",
        "prompts-list",
        "prompts-get-simple",
        "prompts-get-with-args",
        "prompts-get-embedded-resource",
        "prompts-get-with-image",
        "dns-rebinding-protection",
    ],
    "2026-07-28": [
        "server-stateless",
        "completion-complete",
        "tools-list",
        "tools-call-simple-text",
        "tools-call-image",
        "tools-call-audio",
        "tools-call-embedded-resource",
        "tools-call-mixed-content",
        "tools-call-error",
        "tools-call-with-progress",
        "server-sse-multiple-streams",
        "resources-list",
        "resources-read-text",
        "resources-read-binary",
        "resources-templates-read",
        "sep-2164-resource-not-found",
        "prompts-list",
        "prompts-get-simple",
        "prompts-get-with-args",
        "prompts-get-embedded-resource",
        "prompts-get-with-image",
        "dns-rebinding-protection",
        "caching",
        "input-required-result-basic-elicitation",
        "input-required-result-basic-sampling",
        "input-required-result-basic-list-roots",
        "input-required-result-request-state",
        "input-required-result-multiple-input-requests",
        "input-required-result-multi-round",
        "input-required-result-missing-input-response",
        "input-required-result-non-tool-request",
        "input-required-result-result-type",
        "input-required-result-unsupported-methods",
        "input-required-result-tampered-state",
        "input-required-result-capability-check",
        "input-required-result-ignore-extra-params",
        "input-required-result-validate-input",
    ],
}
"""By protocol version, what the suite requires."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on the PATH"),
    pytest.mark.filterwarnings("ignore:The logging capability is deprecated"),
]


@pytest.fixture(scope="module", autouse=True)
def required(conformance: Path) -> None:
    """No scenario that the suite requires is missing."""
    for version, scenarios in REQUIRED.items():
        text = (conformance / "requirements" / f"{version}.yaml").read_text("utf-8")
        assert yaml.safe_load(text)["server"] == scenarios


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server without keys that has the fixtures of the suite."""
    folder = tmp_path_factory.mktemp("fixtures") / "data"
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serving(folder)) as url:
        yield url


@pytest.mark.parametrize(
    ("version", "scenario"),
    [(version, one) for version, scenarios in REQUIRED.items() for one in scenarios],
)
def test_required_scenarios_pass_behind_the_mount(
    scenario_checks: Callable[[str, str, str], dict[str, int]], url: str, version: str, scenario: str
) -> None:
    counts = scenario_checks(url, scenario, version)
    assert counts["passed"]
    assert counts["failed"] == counts["warned"] == 0
