"""`memoranda mcp`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from typing import Annotated, Any

import httpx
import typer

from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.mcp_bridge import Bridge
from memoranda.cli.mcp_folder import Folder
from memoranda.config.sections import Config
from memoranda.errors import InvalidInput
from memoranda.mcp.endpoint import EndpointQuery
from memoranda.validation import convert

READ = 1 << 16


@common_options(json=False)
def mcp(
    invocation: Invocation,
    user: Annotated[
        str | None, typer.Option(metavar="ID", help="Whose memory it is [default: everything here].")
    ] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="ID", help="The agent whose memory it is, too.")
    ] = None,
    tools: Annotated[
        str | None, typer.Option(metavar="SET", help="core, full, read or chatgpt [default: mcp.tools].")
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(help="A server to go to instead of the data folder, such as http://host:8377."),
    ] = None,
    key: Annotated[
        str | None, typer.Option(envvar="MEMORANDA_KEY", help="The key for a server that has keys.")
    ] = None,
) -> None:
    """Serve memory and documents to an MCP client at standard input and output."""
    config = invocation.config
    if url is None:
        key = key or config.operator_key()
    else:
        _check_url(url)
    options: dict[str, Any] = {"user": user, "agent": agent, "tools": tools}
    place = convert({name: value for name, value in options.items() if value is not None}, EndpointQuery)
    asyncio.run(run(config, place, key, url))


def _check_url(url: str) -> None:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as exc:
        raise InvalidInput("--url", f"{url!r} is no URL: {exc}") from exc
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidInput("--url", f"{url!r} is no URL of a server, such as http://127.0.0.1:8377")


async def run(config: Config, place: EndpointQuery, key: str | None, url: str | None) -> None:
    """Serve one client at standard input and output until it leaves.

    Raises:
        MemorandaError: the folder cannot be opened.
    """
    folder = Folder(config)

    async def address(lost: str | None) -> str:
        return await folder.url(lost) if url is None else url.rstrip("/")

    lines = _lines()
    try:
        await address(None)
        bridge = Bridge(address, place, key, _write)
        while line := await lines.get():
            if line.strip():
                bridge.take(line)
        await bridge.drain()
    finally:
        await folder.close()


def _write(message: bytes) -> None:
    sys.stdout.buffer.write(message.replace(b"\n", b" ") + b"\n")
    sys.stdout.buffer.flush()


def _lines() -> asyncio.Queue[bytes]:
    """The lines of standard input, and b"" at its end or when the process gets a signal to end. A thread reads them,
    which a process may end without."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        begun = b""
        while data := os.read(0, READ):  # `sys.stdin` has a lock, which a process that ends would wait for
            *whole, begun = (begun + data).split(b"\n")
            for line in whole:
                loop.call_soon_threadsafe(queue.put_nowait, line + b"\n")
        loop.call_soon_threadsafe(queue.put_nowait, b"")

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, queue.put_nowait, b"")
    threading.Thread(target=read, name="stdin", daemon=True).start()
    return queue
