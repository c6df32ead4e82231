"""A session with one MCP server. Loading this module loads the `mcp` package, which takes long: see `mcp.Server`."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from inspect import signature
from typing import Any

import httpcore2  # noqa: F401 - what httpx2 loads when its first client is made, on the loop's time
import httpx2
import mcp_types as wire
from mcp.client.client import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, Implementation

from memoranda.errors import MemorandaError

MAX_BYTES = 16 << 20
"""How long one answer of a server may be."""
EVENT_SIZE: dict[str, Any] = (
    {"max_sse_event_size": MAX_BYTES}
    if "max_sse_event_size" in signature(streamable_http_client).parameters
    else {}
)
"""The same bound for events, which mcp has from 2.3 on, where its own is lower; before, the answer's bound is all."""
MAX_TOOLS = 1_000
GRACE = 2.0
"""Seconds that saying goodbye may take."""
IDLE = 300.0
"""Seconds without a byte after which a connection counts as broken."""
TLS = httpx2.create_ssl_context()
"""Made once, while this module is loaded: it takes 40 ms."""

for _name in ("mcp.client", "mcp.shared", "httpx2"):
    # Their log lines contain URLs and contents, which our log must not; the item of the call reports the failure.
    logging.getLogger(_name).setLevel(logging.CRITICAL)


class McpFailed(MemorandaError):
    """An MCP server did not do what it was asked. `error` is the error of the call's item."""

    def __init__(self, message: str, error: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.error = error


class Session:
    """A connection to the server at `url`, made by `open`. It lives in its own task: its context managers must be
    entered and exited in one task, while calls come from several. Errors refer to the server as `name`."""

    def __init__(self, name: str, url: str, headers: dict[str, str], seconds: float) -> None:
        self._name = name
        self._url = url
        self._headers = {**headers, "accept-encoding": "identity"}
        self._seconds = seconds
        self._client: Client | None = None
        self._status = 0
        self._ending = asyncio.Event()
        self._ready: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connects.

        Raises:
            McpFailed: there is no MCP server, or it denies access.
        """
        self._ready = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live(self._ready), name="mcp-session")
        await asyncio.shield(self._ready)

    async def _live(self, ready: asyncio.Future[None]) -> None:
        try:
            async with self._connected() as client:
                self._client = client
                ready.set_result(None)
                await self._ending.wait()
        except Exception as exc:
            if not ready.done():
                ready.set_exception(self._failure(exc))
        finally:
            self._client = None
            if not ready.done():
                ready.set_exception(McpFailed(f"the session with the MCP server {self._name!r} was closed"))
            ready.exception()  # retrieved, so that an unawaited future logs no error

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Client]:
        about = Implementation(name="memoranda", version="1")
        if httpx2.URL(self._url).path.rstrip("/").endswith("/sse"):
            async with Client(
                sse_client(self._url, httpx_client_factory=self._http), client_info=about
            ) as client:
                yield client
            return
        async with self._http() as http:
            transport = streamable_http_client(self._url, http_client=http, **EVENT_SIZE)
            async with Client(transport, client_info=about) as client:
                yield client

    def _http(self, headers: Any = None, timeout: Any = None, auth: Any = None) -> httpx2.AsyncClient:
        """A client for this server; the arguments of the transport are ignored."""
        return httpx2.AsyncClient(
            headers=self._headers,
            verify=TLS,
            timeout=httpx2.Timeout(self._seconds, read=max(IDLE, self._seconds)),
            event_hooks={"request": [self._asking], "response": [self._received]},
        )

    async def _asking(self, request: httpx2.Request) -> None:
        self._status = 0

    async def _received(self, response: httpx2.Response) -> None:
        """Records the status of the server, and bounds the length of its answer. A server need not offer the stream of
        its own messages, for which the transport asks by GET once it is connected."""
        if response.request.method == "POST" or self._client is None:
            self._status = response.status_code
        response.stream = _Bounded(response)

    async def tools(self) -> list[dict[str, Any]]:
        """The server's tools: name, description, input_schema, annotations.

        Raises:
            McpFailed: it did not list them.
        """
        client, tools, cursor = self._open_client(), list[dict[str, Any]](), None
        try:
            while len(tools) <= MAX_TOOLS:
                page = await client.list_tools(cursor=cursor)
                tools += [_tool(tool) for tool in page.tools]
                cursor = page.next_cursor
                if cursor is None:
                    return tools
        except Exception as exc:
            raise self._failure(exc) from exc
        raise McpFailed(f"the MCP server {self._name!r} lists more than {MAX_TOOLS} tools")

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        """The output of a tool, and whether it is an error.

        Raises:
            McpFailed: the call did not come to an answer.
        """
        client = self._open_client()
        try:
            result = await client.call_tool(name, arguments)
        except Exception as exc:
            raise self._failure(exc) from exc
        return text_of(result), bool(result.is_error)

    def _open_client(self) -> Client:
        if self._client is None:
            raise McpFailed(f"the MCP server {self._name!r} closed the connection")
        return self._client

    @property
    def alive(self) -> bool:
        """True while the connection is open."""
        return self._client is not None

    async def close(self) -> None:
        """Closes the connection, waiting for at most `GRACE` seconds per step. Idempotent."""
        if self._task is None:
            return
        self._ending.set()
        if self.alive:
            await asyncio.wait({self._task}, timeout=GRACE)
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=GRACE)

    def _failure(self, exc: Exception) -> McpFailed:
        """The error as `McpFailed`, whose message contains nothing of the request."""
        first = next(_leaves(exc))
        at = f"the MCP server {self._name!r}"
        if isinstance(first, httpx2.TimeoutException | TimeoutError):
            return McpFailed(f"{at} did not answer in time")
        if isinstance(first, httpx2.TransportError):
            return McpFailed(f"{at} cannot be reached")
        if isinstance(first, MCPError) and first.code == CONNECTION_CLOSED:
            self._client = None
            return McpFailed(f"{at} closed the connection")
        if 300 <= self._status < 400:
            return McpFailed(
                f"{at} sends on to another address, which is not followed; name that one as server_url"
            )
        if self._status >= 400:
            fix = (
                ": it does not let us in; check `authorization` or `headers`"
                if self._status in (401, 403)
                else ""
            )
            says = f"{at} answered {self._status}{fix}"
            return McpFailed(says, {"type": "http_error", "code": self._status, "message": says})
        if isinstance(first, MCPError):
            says = f"{at} says: {first.message}"
            return McpFailed(says, {"type": "mcp_protocol_error", "code": first.code, "message": says})
        return McpFailed(f"{at} gave an answer that is no MCP ({type(first).__name__})")


class _Bounded(httpx2.AsyncByteStream):
    """The body of a response, bounded in length; compressed bodies are refused."""

    def __init__(self, response: httpx2.Response) -> None:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        self._inner = response.stream
        self._packed = response.headers.get("content-encoding", "identity") != "identity"

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = 0 if self._packed else MAX_BYTES
        async for piece in self._inner:
            left -= len(piece)
            if left < 0:
                raise httpx2.StreamError("packed" if self._packed else f"more than {MAX_BYTES} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


def _leaves(exc: BaseException) -> Iterator[BaseException]:
    """The single errors in nested exception groups."""
    if isinstance(exc, BaseExceptionGroup):
        for inner in exc.exceptions:
            yield from _leaves(inner)
    else:
        yield exc


def _tool(tool: wire.Tool) -> dict[str, Any]:
    notes = (
        None if tool.annotations is None else tool.annotations.model_dump(by_alias=True, exclude_none=True)
    )
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.input_schema,
        "annotations": notes,
    }


def text_of(result: wire.CallToolResult) -> str:
    """A result as text: its texts, and a line for each other part; its structured data if there is nothing else."""
    parts = [_part(content) for content in result.content]
    if not parts and result.structured_content is not None:
        return wire.jsonrpc_message_adapter.serializer.to_json(result.structured_content).decode()
    return "\n".join(parts)


def _part(content: wire.ContentBlock) -> str:
    if isinstance(content, wire.TextContent):
        return content.text
    if isinstance(content, wire.ImageContent | wire.AudioContent):
        return f"[{content.type}: {content.mime_type}, {len(base64.b64decode(content.data, validate=False))} bytes]"
    if isinstance(content, wire.ResourceLink):
        return f"[{content.name}: {content.uri}]"
    if isinstance(content.resource, wire.TextResourceContents):
        return content.resource.text
    return f"[resource: {content.resource.uri}]"
