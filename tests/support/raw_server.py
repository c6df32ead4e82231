"""Servers that send bytes by hand, so that what is cut, late or nonsense is so on the wire."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Step = bytes | float | str
"""Bytes go out in a write of their own; a number is seconds to wait; "hang" waits until the client leaves, "reset" ends
the connection with a RST. After the last step the connection is closed, unless that is "keep"."""


@dataclass
class Raw:
    """What one such server saw: a request's line and headers, its body, and whether the client left before the end;
    `given` counts the answers of which every step was done."""

    url: str = ""
    heads: list[str] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    connections: int = 0
    left: int = 0
    given: int = 0
    open: int = 0


@asynccontextmanager
async def raw(*answers: Sequence[Step], tls: ssl.SSLContext | None = None) -> AsyncIterator[Raw]:
    """A server that gives the answers in turn, the last one for ever; with `tls`, as `localhost`."""
    seen = Raw()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        seen.connections += 1
        seen.open += 1
        try:
            while await one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            seen.open -= 1
            writer.close()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lengths = [line for line in head.lower().split("\r\n") if line.startswith("content-length:")]
        body = await reader.readexactly(int(lengths[0].split(":")[1])) if lengths else b""
        seen.heads.append(head)
        seen.bodies.append(json.loads(body) if body else {})
        steps = answers[min(len(seen.heads), len(answers)) - 1]
        try:
            for step in steps:
                if step == "keep":
                    seen.given += 1
                    return True
                if step == "reset":
                    writer.transport.abort()
                elif step == "hang":
                    seen.left += not await reader.read(1)
                elif isinstance(step, float):
                    await asyncio.sleep(step)
                elif isinstance(step, bytes):
                    writer.write(step)
                    await writer.drain()
        except ConnectionError:  # the client has left while it was written to
            seen.left += 1
            raise
        seen.given += 1
        return False

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    place = "https://localhost" if tls else "http://127.0.0.1"
    seen.url = f"{place}:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield seen
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def head(status: str = "200 OK", kind: str = "text/event-stream", *more: str) -> bytes:
    """A status line and headers, of a body that ends with the connection."""
    lines = [f"HTTP/1.1 {status}", f"content-type: {kind}", "connection: close", *more]
    return "\r\n".join([*lines, "", ""]).encode()


def whole(document: Any, status: str = "200 OK", *more: str, kind: str = "application/json") -> bytes:
    """An answer of known length."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    lines = [f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(body)}", *more, "", ""]
    return "\r\n".join(lines).encode() + body


def chunked(*parts: bytes) -> bytes:
    """A streamed answer in the chunks of HTTP, on a connection that can be kept."""
    begins = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return begins + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def event(delta: dict[str, Any] | None = None, finish: str | None = None, **rest: Any) -> bytes:
    """A chunk of a completion as an event."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return b"data: " + json.dumps({"id": "c", "choices": choices, **rest}).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def stream(*deltas: dict[str, Any], finish: str | None = "stop") -> bytes:
    """Events of these deltas, the reason and the end."""
    return b"".join(event(delta) for delta in deltas) + event({}, finish) + DONE
