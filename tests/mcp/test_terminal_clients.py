"""Agents of the terminal as their makers publish them, after `memoranda connect`: no account, a scripted model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from memoranda.client import Client
from support.server_process import Stage, staged
from support.waiting import until

CLIENTS = {
    "claude-code": "@anthropic-ai/claude-code@2.1.197",
    "codex": "@openai/codex@0.171.0",
    "gemini": "@google/gemini-cli@0.61.0",
    "opencode": "opencode-ai@1.18.33",
}
LISTS = {
    "claude-code": (["claude", "mcp", "list"], "Connected"),
    "codex": (["codex", "mcp", "list"], "enabled"),
    "gemini": (["gemini", "mcp", "list"], "Connected"),
    "opencode": (["opencode", "mcp", "list"], "connected"),
}
"""How a client lists its servers, and what it says of one that works."""
PROGRAMS = {
    "claude": "@anthropic-ai/claude-code-linux-x64/claude",
    "opencode": "opencode-linux-x64-baseline/bin/opencode",
}
SAID, ANSWER = "The spare key is under the blue pot.", "Noted: under the blue pot."
ASKED = "Where is the spare key?"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on the PATH"),
    pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="another platform"),
]


class Anthropic(BaseHTTPRequestHandler):
    """Anthropic's messages, streamed: one answer to everything. `bodies` is what was asked."""

    bodies: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        if not self.path.partition("?")[0].endswith("/messages"):
            self.send_error(404)
            return
        self.bodies.append(body)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        message = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": json.loads(body)["model"], "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip
        end = {"delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 9}}
        events: list[tuple[str, dict[str, Any]]] = [
            ("message_start", {"message": message}),
            ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
            ("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": ANSWER}}),
            ("content_block_stop", {"index": 0}),
            ("message_delta", end),
            ("message_stop", {}),
        ]
        for kind, fields in events:
            self.wfile.write(f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def anthropic() -> Iterator[str]:
    """The address of a server with Anthropic's API."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Anthropic)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def programs(npm: Callable[..., Path]) -> Path:
    """The folder of the clients' programs."""
    modules = npm(*CLIENTS.values())
    for name, program in PROGRAMS.items():  # which a script of the package would put there
        link = modules / ".bin" / name
        link.unlink()
        link.symlink_to(modules / program)
    return modules / ".bin"


class Home:
    """The home and a project of a user who works with a memory."""

    def __init__(self, folder: Path, programs: Path, anthropic: str, stage: Stage) -> None:
        self.project = folder / "project"
        self.project.mkdir(parents=True)
        self.stage = stage
        self._folder = folder
        self._environment = {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), str(programs), os.environ["PATH"]]),
            "HOME": str(folder),
            "PYTHONPATH": os.pathsep.join(sys.path),
            "ANTHROPIC_BASE_URL": anthropic,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }

    def connect(self, client: str) -> None:
        """Connects a client with the memory."""
        data = str(self.stage.process.folder)
        self.run([sys.executable, "-m", "memoranda", "connect", client, "--data", data, "--user", "ada"])

    def run(self, command: list[str]) -> str:
        """What a program prints."""
        ended = subprocess.run(
            command, cwd=self.project, env=self._environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=120, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout if ended.stdout.strip() else ended.stderr

    def sessions(self) -> list[list[tuple[str, str]]]:
        """What was said, by session."""
        with Client(self.stage.url) as client:
            return [
                [(one.role, one.content) for one in client.sessions.messages(session.id).data]
                for session in client.sessions.list(limit=100).data
            ]


@pytest.fixture
def home(tmp_path: Path, programs: Path, anthropic: str) -> Iterator[Home]:
    """A user with an empty memory, whose server is running, with a scripted model behind its own API."""
    with staged(tmp_path / "memory") as stage:
        stage.says({"text": ANSWER, "repeat": True})
        yield Home(tmp_path / "home", programs, anthropic, stage)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_finds_the_server(home: Home, client: str) -> None:
    home.connect(client)
    command, works = LISTS[client]
    listed = home.run(command)
    assert "memoranda" in listed
    assert works in listed


def test_claude_code_is_observed_and_given_context(home: Home) -> None:
    home.connect("claude-code")
    assert home.run(["claude", "-p", SAID]).strip() == ANSWER
    until(lambda: [("user", SAID), ("assistant", ANSWER)] in home.sessions(), "the session of Claude Code")
    Anthropic.bodies.clear()

    def has_context() -> bool:
        home.run(["claude", "-p", ASKED])
        return any(SAID in body for body in Anthropic.bodies)

    until(has_context, "a prompt with what was said before in its context")


def test_codex_is_observed_and_given_context(home: Home) -> None:
    home.connect("codex")
    provider = f'{{name="m", base_url="{home.stage.url}/v1", wire_api="responses"}}'
    command = ["codex", "exec", "--dangerously-bypass-hook-trust", "--skip-git-repo-check", "-c", "model=x"]
    command += ["-c", "model_provider=m", "-c", f"model_providers.m={provider}"]
    assert home.run([*command, SAID]).strip() == ANSWER
    until(lambda: [("user", SAID), ("assistant", ANSWER)] in home.sessions(), "the session of Codex")

    def has_context() -> bool:
        home.run([*command, ASKED])
        return SAID in json.dumps(home.stage.asked)

    until(has_context, "a prompt with what was said before in its context")
