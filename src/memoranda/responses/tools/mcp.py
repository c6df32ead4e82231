"""Tools of remote MCP servers: listing, filters, approval, calls; the servers of one response are closed at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any

from memoranda.config.agent_sections import Responses as Settings
from memoranda.contexts.assembly import cut
from memoranda.errors import InvalidInput, MemorandaError
from memoranda.extras import needed
from memoranda.responses.events import EventEmitter
from memoranda.responses.mcp_declaration import SECRET_LENGTH, Declared, checked, origin
from memoranda.responses.steps import ToolCall
from memoranda.responses.tools.base import Result, Tool, Turn, begun_call, done_call, failed_call
from memoranda.responses.values import Item
from memoranda.store.ids import new_id
from memoranda.text import prompts

if TYPE_CHECKING:
    from memoranda.responses.tools.mcp_session import Session


OUTPUT_TOKENS = 8_000
"""How much of an output is kept and sent to the model."""


class Server:
    """One server for one response: connected when it is first asked, until `close`."""

    def __init__(self, asked: Declared, settings: Settings) -> None:
        self.label = asked.server_label
        self.seconds = settings.tool_timeout
        self._url = str(asked.server_url)
        self._headers = dict(asked.headers or {})
        if asked.authorization is not None:
            self._headers["authorization"] = f"Bearer {asked.authorization}"
        credentials = [*(asked.headers or {}).values(), asked.authorization or ""]
        self._secrets = [value for value in credentials if len(value) >= SECRET_LENGTH]
        self._session: Session | None = None
        self._lock = asyncio.Lock()
        self._closed = False

    async def tools(self) -> list[dict[str, Any]]:
        """Its tools as the `mcp_list_tools` item has them.

        Raises:
            MemorandaError: it did not list them.
        """
        return await (await self._opened()).tools()

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        """The output of a tool, and whether it is an error; our secrets are masked.

        Raises:
            MemorandaError: it did not answer.
        """
        said, is_error = await (await self._opened()).call(name, arguments)
        return self.without_secrets(said), is_error

    def without_secrets(self, text: str) -> str:
        """The text with stars for the credentials that we sent."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    async def _opened(self) -> Session:
        async with self._lock:
            if self._session is not None and not self._session.alive:
                await self._session.close()
                self._session = None
            if self._session is None and not self._closed:
                session = (await _sessions())(self.label, self._url, self._headers, self.seconds)
                try:
                    await session.open()
                except BaseException:
                    await session.close()
                    raise
                self._session = session
            if self._session is None or self._closed:
                await self.close()
                raise MemorandaError(f"the session with the MCP server {self.label!r} was closed")
            return self._session

    async def close(self) -> None:
        """Ends the session. Idempotent."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()


async def _sessions() -> type[Session]:
    """The class of sessions. The package behind it takes seconds to load: that is done when it is needed, beside the
    loop.

    Raises:
        MemorandaError: the package is not installed.
    """
    try:
        module = await asyncio.to_thread(import_module, "memoranda.responses.tools.mcp_session")
    except ModuleNotFoundError as exc:
        raise MemorandaError(f"a call of an MCP server {needed(exc) or exc}") from exc
    session_class: type[Session] = module.Session
    return session_class


class McpTool(Tool):
    """One tool of a server."""

    family = "mcp_call"

    def __init__(
        self, server: Server, tool: Mapping[str, Any], approved: bool, about: str | None = None
    ) -> None:
        self.server = server
        self.server_label = server.label
        self.name = str(tool["name"])
        self.description = "\n\n".join(text for text in (tool.get("description"), about) if text)
        schema = tool.get("input_schema")
        self.parameters = schema if isinstance(schema, dict) else {"type": "object", "properties": {}}
        self.approved = approved

    def begun(self, arguments: str) -> Item:
        """The item of a call that begins."""
        return begun_call(self.server_label, self.name, arguments)

    async def run(self, item: Item, arguments: dict[str, Any], turn: Turn) -> Result:
        """Calls the tool; a long output is cut after its beginning."""
        try:
            said, is_error = await self.server.call(self.name, arguments)
        except MemorandaError as exc:
            reason = self.server.without_secrets(str(exc))
            turn.reading.note([f"tool:{self.server_label}.{self.name}"], [reason])
            error = getattr(exc, "error", None)
            result = failed_call(item, reason, error)
            if error is None or error["type"] == "http_error":
                result.degraded.append("mcp")
            return result
        turn.reading.note([f"tool:{self.server_label}.{self.name}"], [said])
        text = cut(said, OUTPUT_TOKENS, turn.count)
        if text != said:
            text = prompts.shortened_output(text, OUTPUT_TOKENS)
        if is_error:
            return failed_call(item, text or "The tool failed and does not say why.")
        return Result(done_call(item, text), text or "The tool gave back nothing.")

    def failed(self, item: Item, reason: str) -> Result:
        """The result of a call that failed."""
        return failed_call(item, reason)

    def asks(self, arguments: str, turn: Turn) -> bool:
        """Return True if the call must be approved: as declared, or because it would take memories of the user to the
        server after something was read that the user did not write."""
        reading = turn.reading
        return not self.approved or (not reading.trusted and reading.carries_away(arguments, turn.said))

    async def close(self) -> None:
        """Ends the session with the server, which all its tools share."""
        await self.server.close()


async def listed(
    declared: Mapping[str, Any],
    cached: Item | None,
    settings: Settings,
    open_to_all: bool,
    where: str = "tools[0]",
) -> tuple[Item, list[Tool]]:
    """The tools of a declared server that the model is offered, and the `mcp_list_tools` item that lists them: `cached`
    of an earlier turn, or a new one. When the server does not answer, the item has an `error` and there are no tools.

    Raises:
        InvalidInput: see `checked`.
    """
    asked = checked(declared, settings, open_to_all, where)
    server = Server(asked, settings)
    item = cached if cached is not None and not cached.get("error") else await _list(server, asked)
    tools: list[Tool] = [
        McpTool(server, tool, asked.approves(tool), asked.server_description)
        for tool in item["tools"]
        if asked.allows(tool)
    ]
    if not tools:
        await server.close()
    return item, tools


async def _list(server: Server, asked: Declared) -> Item:
    tools: list[dict[str, Any]] = []
    error = None
    try:
        await _sessions()
        async with asyncio.timeout(server.seconds):
            tools = [tool for tool in await server.tools() if asked.allows(tool)]
    except TimeoutError:
        error = f"the MCP server {server.label!r} did not answer within {server.seconds:g} seconds"
    except MemorandaError as exc:
        error = server.without_secrets(str(exc))
    return {
        "id": new_id("mcpl_"),
        "type": "mcp_list_tools",
        "server_label": server.label,
        "tools": tools,
        "error": error,
    }


def approved(items: Sequence[Item]) -> dict[str, tuple[Item, bool]]:
    """The approval requests among the items that are answered and not called yet, by id, each with the answer; the
    reason that came with it is in the request as `_reason`. Of several answers the last one counts.

    Raises:
        InvalidInput: an answer belongs to no request.
    """
    requests = {item["id"]: item for item in items if item.get("type") == "mcp_approval_request"}
    called = {item.get("approval_request_id") for item in items if item.get("type") == "mcp_call"}
    answers: dict[str, tuple[Item, bool]] = {}
    for item in items:
        if item.get("type") != "mcp_approval_response":
            continue
        id_, approve = str(item.get("approval_request_id")), item.get("approve")
        if id_ not in requests:
            raise InvalidInput(
                "input", f"approval_request_id {id_!r} names no approval request of this conversation"
            )
        if not isinstance(approve, bool):
            raise InvalidInput("input", "`approve` of an mcp_approval_response must be true or false")
        if id_ not in called:
            answers[id_] = ({**requests[id_], "_reason": item.get("reason")}, approve)
    return answers


MCP = "mcp"
ORIGIN = "_origin"
"""The private key of a tool list for the `origin` digest of the server that it was listed from."""


class Servers:
    """The servers among the tools that a request declares. `tools` are theirs, once they are listed.

    Raises:
        InvalidInput: a declaration is wrong, or names a host that may not be called.
    """

    def __init__(self, declared: Sequence[Mapping[str, Any]], settings: Settings, open_to_all: bool) -> None:
        self._declared = {i: dict(tool) for i, tool in enumerate(declared) if tool.get("type") == MCP}
        self._settings = settings
        self._open_to_all = open_to_all
        self.tools: list[Tool] = []
        self.degraded: set[str] = set()
        """`mcp` if a server did not list its tools: it cannot be reached, or gives no usable answer."""
        labels: set[str] = set()
        for i, tool in self._declared.items():
            label = checked(tool, settings, open_to_all, f"tools[{i}]").server_label
            if label in labels:
                raise InvalidInput(
                    f"tools[{i}].server_label", f"{label!r} is there twice; give each server its own"
                )
            labels.add(label)

    async def __aenter__(self) -> Servers:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for tool in self.tools:
            await tool.close()

    async def list(self, emitter: EventEmitter, past: Sequence[Item]) -> None:
        """Lists all servers concurrently; those that were listed before in this conversation are not asked again. A
        list that a client sent, or that came from another server with the same label, is ignored."""
        known = {
            (item["server_label"], item.get(ORIGIN)): item
            for item in past
            if item["type"] == "mcp_list_tools"
        }
        await asyncio.gather(*(self._list(i, tool, known, emitter) for i, tool in self._declared.items()))

    async def _list(
        self,
        place: int,
        declared: dict[str, Any],
        known: Mapping[tuple[str, str | None], Item],
        emitter: EventEmitter,
    ) -> None:
        origin_digest = origin(declared)
        cached = known.get((declared["server_label"], origin_digest))
        item: Item | None = None
        if cached is None or cached.get("error"):
            item = {"id": new_id("mcpl_"), "type": "mcp_list_tools", "server_label": declared["server_label"]}
            item |= {"tools": [], ORIGIN: origin_digest}
            emitter.begin(item)
            emitter.stage(item, "in_progress")
        tool_list, tools = await listed(
            declared, cached, self._settings, self._open_to_all, f"tools[{place}]"
        )
        self.tools += tools
        if tool_list.get("error"):
            self.degraded.add(MCP)
        if item is not None:
            # Clients that check what they read take these fields as texts and objects, or left out.
            item["tools"] = [_without_none(tool) for tool in tool_list["tools"]]
            item |= _without_none({"error": tool_list["error"]})
            emitter.stage(item, "failed" if tool_list["error"] else "completed")
            emitter.end(item)

    def approved(self, items: Sequence[Item]) -> Iterator[tuple[str, ToolCall, Tool | None]]:
        """Return the calls that have been approved, each with the id of its request."""
        for id_, (request, approve) in approved(items).items():
            if approve:
                call = ToolCall(new_id("call_"), request["name"], request["arguments"])
                yield id_, call, self._tool(request)

    def _tool(self, request: Item) -> Tool | None:
        for tool in self.tools:
            label = getattr(tool, "server_label", None)
            if label == request["server_label"] and tool.name == request["name"]:
                return tool
        return None


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
