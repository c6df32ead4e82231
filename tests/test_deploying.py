"""What is deployed passes the linters of its kind, and its settings are settings."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from memoranda.config import load

ROOT = Path(__file__).parent.parent
LINTERS = Path(sys.executable).parent
UNIT = ROOT / "deploy" / "memoranda.service"


def linted(*command: str | Path) -> tuple[int, str]:
    done = subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_dockerfile_is_clean() -> None:
    assert linted(LINTERS / "hadolint", "Dockerfile") == (0, "")


def test_the_compose_file_has_its_schema() -> None:
    code, said = linted(
        LINTERS / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml"
    )
    assert code == 0, said


def test_the_settings_of_the_compose_file_are_valid() -> None:
    service = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["memoranda"]
    image = {
        "MEMORANDA_DATA": "/data",
        "MEMORANDA_SERVER__HOST": "0.0.0.0",
        "MEMORANDA_SERVER__REQUIRE_KEYS": "true",
    }
    said = (ROOT / "Dockerfile").read_text()
    assert all(f"{name}={value}" in said for name, value in image.items())
    config = load(env=image | service["environment"])
    assert (config.server.host, config.server.require_keys, config.keys[0].name) == ("0.0.0.0", True, "app")
    assert (config.index.url, config.words.url) == ("pgvector:", "tsvector:")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_the_unit_is_sound() -> None:
    program = "/opt/memoranda/bin/memoranda"
    _, said = linted("systemd-analyze", "verify", UNIT)
    assert [line for line in said.splitlines() if program not in line] == []


def test_the_unit_has_settings_that_exist() -> None:
    lines = UNIT.read_text().splitlines()
    given = [line.partition("=")[2] for line in lines if line.startswith("Environment=")]
    load(
        env=dict(pair.split("=", 1) for pair in given)
        | {"MEMORANDA_KEYS": "[{name: a, role: admin, key: s3cr3t-value}]"}
    )
