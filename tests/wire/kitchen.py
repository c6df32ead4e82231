"""What the scripts of every client find: a server whose model knows their questions, a store, a server of tools."""

from __future__ import annotations

import io
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import openai
from mcp.server import MCPServer

SCRIPT = Path(__file__).parent / "sdks" / "script.json"
EXAMPLES = Path(__file__).parents[2] / "examples"
MANUAL = b"Fill the kettle with vinegar to clean it."


class Kitchen(NamedTuple):
    """Where everything is. `received` are the requests that the model got, of which those from `first` are ours."""

    url: str
    store: str
    mcp: str
    received: list[Any]
    first: int

    def told(self, question: str) -> list[list[str]]:
        """What the model was told, as texts, each time when this was the last thing said to it."""
        told = [[_text(message) for message in request.messages] for request in self.received[self.first :]]
        return [texts for texts in told if texts[-1] == question]

    def example(self, name: str, *words: str) -> str:
        """What an example prints."""
        told = {"MEMORANDA_URL": self.url, "MEMORANDA_MODEL": "scripted"}
        with patch.dict(os.environ, told):
            return _python(name, words) if name.endswith(".py") else _node(name, words)


def _python(name: str, words: Sequence[str]) -> str:
    # Here, where its packages are imported already.
    printed = io.StringIO()
    with patch.object(sys, "argv", [name, *words]), redirect_stdout(printed):
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return printed.getvalue()


def _node(name: str, words: Sequence[str]) -> str:
    # From stdin: the packages are those of the folder that it runs in.
    starts = ["node", "--input-type=module", "-", *words]
    said = (EXAMPLES / name).read_text()
    made = subprocess.run(
        starts, input=said, cwd=SCRIPT.parent, capture_output=True, text=True, timeout=60, check=False
    )
    assert made.returncode == 0, made.stderr
    return made.stdout


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", f"[{part['type']}]") for part in content)


@contextmanager
def kitchen(stage: Any, running: Any) -> Iterator[Kitchen]:
    """The kitchen on this stage; `running` runs an app and gives its URL."""
    stage.says(*json.loads(SCRIPT.read_text())["turns"])
    client = openai.OpenAI(base_url=f"{stage.url}/v1", api_key="none", max_retries=0)
    store = client.vector_stores.create(name="manuals")
    client.vector_stores.files.upload_and_poll(
        vector_store_id=store.id, file=("manual.txt", MANUAL), poll_interval_ms=50
    )
    with running(tools().streamable_http_app()) as url:
        yield Kitchen(stage.url, store.id, f"{url}/mcp", stage.model.received, len(stage.model.received))


def tools() -> MCPServer:
    """A server with one tool."""
    server = MCPServer("small")

    @server.tool(description="Says what it is told.")
    def echo(text: str) -> str:
        return text

    return server
