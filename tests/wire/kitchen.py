"""What the scripts of every client find: a server whose model knows their questions, a store, a server of tools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import openai
from mcp.server import MCPServer

SCRIPT = Path(__file__).parent / "sdks" / "script.json"
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
