"""`memoranda mcp`: a process per client, one server per folder, which changes hands."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

import memoranda
from memoranda.storage.data_lock import LOCK
from support.waiting import until

QUICK = {"url": "hash:64"}
ARGUMENTS = ["-m", "memoranda", "mcp", "--set", "embedder.url=hash:64", "--tools", "full"]


class Speaker:
    """A client that writes JSON-RPC by hand, so that its process may be killed."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *ARGUMENTS, "--data", str(folder), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._number = 0

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured content of a tool's result."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._number += 1
        params = {"name": tool, "arguments": arguments}
        asked = {"jsonrpc": "2.0", "id": self._number, "method": "tools/call", "params": params}
        self.process.stdin.write(json.dumps(asked).encode() + b"\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline() or b'{"error": "the process has ended"}')
        assert answer.get("id") == self._number, answer
        found: dict[str, Any] = answer["result"]["structuredContent"]
        return found

    def leave(self) -> int:
        """The exit status after its client has gone."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        status = self.process.wait(60)
        self.close()
        return status

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)
        self.close()

    def close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            with suppress(BrokenPipeError):  # a last line to a process that was killed
                stream.close()


def holder(folder: Path) -> int:
    """The process that serves the folder, 0 while one takes it."""
    text = (folder / LOCK).read_text()
    return int(json.loads(text)["pid"]) if text else 0


@pytest.mark.slow
@pytest.mark.long
def test_a_folder_goes_on_when_the_process_that_serves_it_is_killed_or_leaves(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    first = Speaker(folder, "--user", "ada")
    first.call("remember", text="The first one.")
    second, third = Speaker(folder), Speaker(folder)
    second.call("remember", text="The second one.")
    assert holder(folder) == first.process.pid
    first.kill()
    third.call("remember", text="The third one.")
    inside = {holder(folder): one for one in (second, third)}
    assert inside.keys() <= {second.process.pid, third.process.pid}
    leaving, staying = (second, third) if holder(folder) == second.process.pid else (third, second)
    assert leaving.leave() == 0
    staying.call("remember", text="The fourth one.")
    assert holder(folder) == staying.process.pid
    assert staying.leave() == 0
    with memoranda.open(folder, embedder=QUICK) as opened:
        page = opened.memories.list(order="asc").data
    assert [one.content for one in page] == [f"The {n} one." for n in ("first", "second", "third", "fourth")]
    assert [one.user_id for one in page] == ["ada", None, None, None]


def test_the_official_client_of_each_version(tmp_path: Path) -> None:
    parameters = StdioServerParameters(
        command=sys.executable, args=[*ARGUMENTS, "--data", str(tmp_path / "data")], env=dict(os.environ)
    )

    async def test() -> None:
        async with (
            Client(stdio_client(parameters), mode="legacy") as old,
            Client(stdio_client(parameters), mode="auto") as new,
        ):
            kept = await old.call_tool("remember", {"text": "Tea is in the left cupboard."})
            for client, version in ((old, "2025-11-25"), (new, "2026-07-28")):
                found = await client.call_tool("recall", {"query": "Where is the tea?"})
                assert found.structured_content["results"][0]["id"] == kept.structured_content["id"]
                assert client.protocol_version == version
                read = await client.read_resource("memoranda://profile")
                assert read.contents[0].uri == "memoranda://profile"

    asyncio.run(test())


@pytest.mark.slow
def test_a_line_that_is_no_message_and_a_signal(tmp_path: Path) -> None:
    one = Speaker(tmp_path / "data")
    assert one.process.stdin is not None
    assert one.process.stdout is not None
    bad = [
        (b"hello\n\n", None, -32700),
        (b'{"jsonrpc": "2.0", "id": [1], "method": "ping"}\n', None, -32600),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": "none"}\n', 7, -32600),
    ]
    for line, id_, code in bad:
        one.process.stdin.write(line)
        one.process.stdin.flush()
        answer = json.loads(one.process.stdout.readline())
        assert (answer["id"], answer["error"]["code"]) == (id_, code), line
    for params in (b'{"requestId": {}}', b"null", b'{"requestId": 3}'):
        one.process.stdin.write(b'{"method": "notifications/cancelled", "params": ' + params + b"}\n")
    assert one.call("list")["memories"] == []
    one.process.send_signal(signal.SIGTERM)
    assert one.process.wait(60) == 0
    one.close()


@pytest.mark.slow
@pytest.mark.parametrize("url", ["localhost:8377", "http://host:abc", "ftp://host", "http://"])
def test_an_address_that_is_no_url_is_named(url: str) -> None:
    command = [sys.executable, "-m", "memoranda", "mcp", "--url", url]
    ended = subprocess.run(command, input=b"", capture_output=True, check=False, timeout=60)
    assert ended.returncode == 2
    assert f"--url: {url!r} is no URL" in ended.stderr.decode()


@pytest.mark.slow
def test_the_keys_of_a_configuration_stay_with_its_own_server(tmp_path: Path) -> None:
    """Another server gets the key that is named for it, or none."""
    heard: list[str | None] = []

    class Other(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(self.headers["authorization"])
            self.rfile.read(int(self.headers["content-length"]))
            body = b'{"jsonrpc": "2.0", "id": 1, "result": {}}'
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    config = tmp_path / "memoranda.yaml"
    config.write_text("keys:\n  - {name: operator, role: admin, key: operator-key}\n")
    with HTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        command = [sys.executable, "-m", "memoranda", "mcp", "--config", str(config), "--url", url]
        for more in ([], ["--key", "for-it"]):
            ping = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
            ended = subprocess.run([*command, *more], input=ping, capture_output=True, check=True, timeout=60)
            assert json.loads(ended.stdout)["result"] == {}
        server.shutdown()
    assert heard == [None, "Bearer for-it"]


@pytest.mark.slow
def test_ten_processes_lose_nothing_while_some_are_killed(tmp_path: Path) -> None:
    """Each writes until it is killed or the time is over; what was confirmed is there once."""
    folder = tmp_path / "data"
    confirmed: list[str] = []
    over = threading.Event()

    def live(number: int) -> None:
        life = 0
        while not over.is_set():
            one = Speaker(folder, "--user", f"user {number}")
            running[number] = one
            try:
                for n in range(1_000):
                    text = f"Writer {number}, life {life}, item {n}."
                    assert one.call("remember", text=text)["created"] is not None
                    confirmed.append(text)
                    if over.is_set():
                        break
            except (AssertionError, BrokenPipeError, ValueError):
                assert one.process.wait(60) == -signal.SIGKILL
            if one.process.poll() is None:
                assert one.leave() == 0
            life += 1

    running: dict[int, Speaker] = {}
    threads = [threading.Thread(target=live, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    until(lambda: len(confirmed) > 20, "the writers begin")
    choose = random.Random(os.environ.get("TEST_SEED", "1"))
    for _ in range(12):
        time.sleep(2.5)
        pid = holder(folder) if choose.random() < 0.7 else 0
        victims = [one for one in running.values() if one.process.pid == pid]
        (victims or choose.choices(list(running.values())))[0].process.kill()
    over.set()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    assert len(confirmed) > 100
    with memoranda.open(folder, embedder=QUICK) as opened:
        lines = [json.loads(line) for line in opened.memories.export()][1:]
    texts = [line["content"] for line in lines]
    assert len(set(texts)) == len(texts)
    assert set(confirmed) <= set(texts)
