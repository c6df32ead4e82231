"""Clients of Node: the official TypeScript SDK in both protocol versions, and the command line of the Inspector."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.server_process import Process

SDKS = ("@modelcontextprotocol/sdk@1.32.2", "@modelcontextprotocol/client@2.4.0")
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
SCRIPT = Path(__file__).parent / "clients" / "typescript.mjs"
CORE = ["recall", "remember", "forget", "get", "search_documents", "context"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on the PATH"),
]


@pytest.fixture(scope="module")
def script(npm: Callable[..., Path]) -> Path:
    """The program of the TypeScript client, beside its packages."""
    return Path(shutil.copy(SCRIPT, npm(*SDKS).parent))


@pytest.fixture(scope="module")
def inspector(node: Path, npm: Callable[..., Path]) -> list[str]:
    """The command of the Inspector."""
    return [str(node), str(npm(INSPECTOR) / ".bin" / "mcp-inspector"), "--cli"]


def stdio(folder: Path) -> list[str]:
    """The command of a server on a folder."""
    return [sys.executable, "-m", "memoranda", "mcp", "--set", "embedder.url=hash:64", "--data", str(folder)]


def printed(command: list[str]) -> Any:
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=os.environ)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_the_typescript_client_remembers_and_recalls(
    node: Path, script: Path, server: Process, tmp_path: Path, version: str, transport: str
) -> None:
    where = stdio(tmp_path / "data") if transport == "stdio" else [f"{server.url}/mcp", "ada-key"]
    got = printed([str(node), str(script), version, transport, *where])
    assert (got["server"], got["tools"], got["outputs"]) == ("memoranda", CORE, True)
    assert [got["id"], "The lamp in the hall is blue."] in got["found"]
    assert got["wrong"] == [True, "limit: must be between 1 and 50, not 0"]
    assert got["read"] == "The lamp in the hall is blue."
    assert "The lamp in the hall is blue." in got["prompt"]
    assert got["resources"] == ["memoranda://profile", "memoranda://sessions"]


@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_the_inspector_shows_and_calls_what_there_is(
    inspector: list[str], server: Process, tmp_path: Path, transport: str
) -> None:
    over_http = [f"{server.url}/mcp", "--transport", "http", "--header", "Authorization: Bearer ada-key"]
    where = stdio(tmp_path / "data") if transport == "stdio" else over_http

    def asked(*words: str) -> Any:
        command = [*inspector, *where]
        return printed([*command, *(["--"] if transport == "stdio" else []), *words])

    assert [tool["name"] for tool in asked("--method", "tools/list")["tools"]] == CORE
    kept = asked("--method", "tools/call", "--tool-name", "remember", "--tool-arg", "text=The gate is green.")
    found = asked("--method", "tools/call", "--tool-name", "recall", "--tool-arg", "query=green gate")
    ids = [hit["id"] for hit in found["structuredContent"]["results"]]
    assert kept["structuredContent"]["id"] in ids
    assert {one["name"] for one in asked("--method", "resources/templates/list")["resourceTemplates"]} == {
        "memory", "document",
    }  # fmt: skip
    prompts = asked("--method", "prompts/list")["prompts"]
    assert [prompt["name"] for prompt in prompts] == ["answer_from_memory", "remember_session"]
