"""The messages of an MCP client at standard input and output, sent to a server and back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import msgspec

from memoranda.errors import MemorandaError
from memoranda.mcp.endpoint import PATH, EndpointQuery

PATIENCE = 60.0
"""Seconds within which the folder has a server again after one has ended."""
PAUSE = 0.1
"""Seconds between two attempts."""
ANSWER_SECONDS = 300.0
"""Seconds that an answer may take."""
META_VERSION = "io.modelcontextprotocol/protocolVersion"
INTERNAL_ERROR = -32603
INVALID_REQUEST = -32600
PARSE_ERROR = -32700
LOST = (httpx.ConnectError, httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)
"""How a request fails whose server has ended."""
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter that the header `Mcp-Name` repeats, by method."""


class Bridge:
    """Sends the messages of one client to a server, and its answers back.

    A request whose server ends is sent again to the next one: tools may be called twice with the same arguments.
    """

    def __init__(
        self,
        address: Callable[[str | None], Awaitable[str]],
        place: EndpointQuery,
        key: str | None,
        say: Callable[[bytes], None],
    ) -> None:
        self._address = address
        self._query = {name: value for name, value in msgspec.to_builtins(place).items() if value is not None}
        # a server with sessions gives none to a client that reads no event streams
        self._headers = {"accept": "application/json", "content-type": "application/json"}
        if key is not None:
            self._headers["authorization"] = f"Bearer {key}"
        self._say = say
        self._version: str | None = None
        self._tasks: dict[Any, asyncio.Task[None]] = {}
        self._client = httpx.AsyncClient(timeout=httpx.Timeout(ANSWER_SECONDS, connect=10.0))

    def take(self, line: bytes) -> None:
        """Begin to answer a message."""
        try:
            message = json.loads(line)
            assert isinstance(message, dict)
        except (ValueError, AssertionError):
            self._failed(None, PARSE_ERROR, "a line is no JSON-RPC message; write one JSON object a line")
            return
        id_, params = message.get("id"), message.get("params") or {}
        if not isinstance(id_, str | int | None) or not isinstance(params, dict):
            says = "`id` is a string or a whole number, `params` an object"
            self._failed(id_ if isinstance(id_, str | int) else None, INVALID_REQUEST, says)
            return
        if message.get("method") == "notifications/cancelled":
            asked = params.get("requestId")
            running = self._tasks.get(asked) if isinstance(asked, str | int) else None
            if running is not None:
                running.cancel()
            return
        key = object() if id_ is None else id_
        task = asyncio.create_task(self._answer(message, line))
        self._tasks[key] = task
        task.add_done_callback(lambda _: self._tasks.pop(key, None))

    async def drain(self) -> None:
        """Wait until every message is answered."""
        while self._tasks:
            await asyncio.wait(set(self._tasks.values()))
        await self._client.aclose()

    async def _answer(self, message: dict[str, Any], line: bytes) -> None:
        try:
            reply = await self._sent(message, line)
        except MemorandaError as exc:
            self._failed(message.get("id"), INTERNAL_ERROR, str(exc))
            return
        except httpx.HTTPError as exc:
            self._failed(message.get("id"), INTERNAL_ERROR, f"the server does not answer: {exc}")
            return
        if "id" not in message or not reply.content:
            return
        if (
            reply.headers.get("content-type", "").startswith("application/json")
            and b'"jsonrpc"' in reply.content
        ):
            self._note(message, reply.content)
            self._say(reply.content)
        else:
            self._failed(
                message["id"], INTERNAL_ERROR, f"the server answered {reply.status_code}: {reply.text[:500]}"
            )

    async def _sent(self, message: dict[str, Any], line: bytes) -> httpx.Response:
        end = asyncio.get_running_loop().time() + PATIENCE
        lost = None
        while True:
            url = await self._address(lost)
            try:
                reply = await self._client.post(
                    f"{url}{PATH}",
                    params=self._query,
                    content=line,
                    headers=self._headers | self._era(message),
                )
            except LOST:
                if asyncio.get_running_loop().time() > end:
                    raise
                lost = url
                await asyncio.sleep(PAUSE)
                continue
            return reply

    def _era(self, message: dict[str, Any]) -> dict[str, str]:
        """The headers that repeat what a message says of its protocol version, method and name."""
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        version = meta.get(META_VERSION) if isinstance(meta, dict) else None
        if version is None:
            known = self._version is not None and message.get("method") != "initialize"
            return {"mcp-protocol-version": str(self._version)} if known else {}
        headers = {"mcp-protocol-version": str(version), "mcp-method": str(message.get("method"))}
        name = NAMED.get(str(message.get("method")))
        if name is not None and isinstance(params, dict) and isinstance(params.get(name), str):
            headers["mcp-name"] = params[name]
        return headers

    def _note(self, message: dict[str, Any], reply: bytes) -> None:
        """Note the version that a handshake agreed on."""
        if message.get("method") == "initialize":
            self._version = json.loads(reply).get("result", {}).get("protocolVersion")

    def _failed(self, id_: Any, code: int, says: str) -> None:
        self._say(
            msgspec.json.encode({"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": says}})
        )
