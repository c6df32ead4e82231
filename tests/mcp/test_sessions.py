"""Sessions at `/mcp`: each is one client's, ends with it or with the server, and is for those that read streams."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from memoranda.storage.data_lock import url_of_other
from support.server_process import Process
from support.waiting import until

ADA, EVE = {"authorization": "Bearer ada-key"}, {"authorization": "Bearer eve-key"}
STREAMS = {"accept": "application/json, text/event-stream"}
VERSION = {"mcp-protocol-version": "2025-11-25"}
KEYS = [
    {"name": "ada", "key": "ada-key", "role": "member", "user": "ada"},
    {"name": "eve", "key": "eve-key", "role": "member", "user": "eve"},
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server with sessions."""
    made = Process(tmp_path_factory.mktemp("sessions") / "data", {"keys": KEYS, "mcp": {"sessions": True}})
    yield made
    made.end()


@pytest.fixture
def http(server: Process) -> Iterator[httpx.Client]:
    """A client of Ada's that reads event streams."""
    with httpx.Client(base_url=server.url, headers=ADA | STREAMS, timeout=30) as client:
        yield client


def asking(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def begun(http: httpx.Client) -> dict[str, str]:
    """Begin a session; the headers that name it."""
    client = {"name": "test", "version": "1"}
    hello = asking("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
    answer = http.post("/mcp", json=hello)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert message_of(answer)["result"]["serverInfo"]["name"] == "memoranda"
    return VERSION | {"mcp-session-id": answer.headers["mcp-session-id"]}


def message_of(answer: httpx.Response) -> Any:
    """The message of an event stream that has one."""
    (line,) = [line for line in answer.text.splitlines() if line.startswith("data: {")]
    return json.loads(line.removeprefix("data: "))


def test_a_session_is_of_the_client_that_began_it(http: httpx.Client) -> None:
    session = begun(http)
    remember = asking("tools/call", name="remember", arguments={"text": "The bike is in the shed."})
    made = message_of(http.post("/mcp", json=remember, headers=session))["result"]["structuredContent"]
    recall = asking("tools/call", name="recall", arguments={"query": "Where is the bike?"})
    found = message_of(http.post("/mcp", json=recall, headers=session))["result"]["structuredContent"][
        "results"
    ]
    assert [one["id"] for one in found] == [made["id"]]
    assert http.post("/mcp", json=recall, headers=session | EVE).status_code == 404
    assert http.delete("/mcp", headers=session | EVE).status_code == 404
    assert http.delete("/mcp", headers=session).status_code == 200
    assert http.post("/mcp", json=recall, headers=session).status_code == 404


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_has_a_session(server: Process, mode: str) -> None:
    async def recalled() -> Any:
        async with (
            httpx2.AsyncClient(headers=EVE, timeout=60) as http,
            Client(streamable_http_client(f"{server.url}/mcp", http_client=http), mode=mode) as client,
        ):
            await client.call_tool("remember", {"text": "The ladder is in the attic."})
            return await client.call_tool("recall", {"query": "Where is the ladder?"})

    found = asyncio.run(recalled()).structured_content["results"]
    assert [one["text"] for one in found] == ["The ladder is in the attic."]


def test_a_client_that_reads_no_streams_needs_no_session(server: Process) -> None:
    headers = ADA | VERSION | {"accept": "application/json"}
    answer = httpx.post(f"{server.url}/mcp", json=asking("tools/list"), headers=headers)
    assert "mcp-session-id" not in answer.headers
    assert "recall" in {tool["name"] for tool in answer.json()["result"]["tools"]}
    refused = httpx.put(f"{server.url}/mcp", headers=headers)
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST, GET, DELETE")


def test_a_process_at_standard_input_goes_through_a_server_with_sessions(server: Process) -> None:
    words = ["-m", "memoranda", "mcp", "--data", str(server.folder), "--set", "embedder.url=hash:64"]
    environment = {**os.environ, "MEMORANDA_KEY": "ada-key"}

    async def named() -> set[str]:
        process = StdioServerParameters(command=sys.executable, args=words, env=environment)
        async with Client(stdio_client(process)) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    assert "recall" in asyncio.run(named())


@pytest.mark.parametrize("how", ["a signal", "its client goes"])
def test_a_stream_ends_with_the_server(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "data"
    words = ["serve", "--port", "0"] if how == "a signal" else ["mcp"]
    words += ["--data", str(folder), "--set", "embedder.url=hash:64", "--set", "mcp.sessions=true"]
    command = [sys.executable, "-m", "memoranda", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        until(lambda: url_of_other(folder) is not None, "the folder is served")
        with httpx.Client(base_url=str(url_of_other(folder)), headers=STREAMS, timeout=60) as http:
            session = begun(http)
            with http.stream("GET", "/mcp", headers=session | {"accept": "text/event-stream"}) as stream:
                assert stream.status_code == 200
                if how == "a signal":
                    process.terminate()
                _, said = process.communicate(timeout=40)
                assert not [line for line in stream.iter_lines() if line.startswith("data")]
    assert process.returncode == 0
    assert "Traceback" not in said
