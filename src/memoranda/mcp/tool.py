"""The definition of a tool, and how a call is answered."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import Any

import mcp_types as wire
import msgspec

from memoranda.errors import InvalidInput, MemorandaError
from memoranda.mcp.caller import Caller
from memoranda.mcp.schemas import arguments_schema, result_schema
from memoranda.validation import converted

log = logging.getLogger("memoranda.mcp")


class Tool(msgspec.Struct, frozen=True, dict=True):
    """A tool: `run` answers a call with a `result`, its `arguments` read and checked. `changes` says that it writes,
    `deletes` that it may delete; `idempotent` that a second call with the same arguments changes nothing more."""

    name: str
    title: str
    description: str
    arguments: type[msgspec.Struct]
    result: type[msgspec.Struct]
    run: Callable[[Caller, Any], Awaitable[Any]]
    changes: bool = False
    deletes: bool = False
    idempotent: bool = True

    @cached_property
    def definition(self) -> wire.Tool:
        """The tool as a client lists it."""
        return wire.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=arguments_schema(self.arguments),
            output_schema=result_schema(self.result),
            annotations=wire.ToolAnnotations(
                title=self.title,
                read_only_hint=not self.changes,
                destructive_hint=self.deletes,
                idempotent_hint=self.idempotent,
                open_world_hint=False,
            ),
        )

    async def call(self, caller: Caller, arguments: Mapping[str, Any] | None) -> wire.CallToolResult:
        """The result of a call. Errors of the caller become an error result with the fix; no error ends the connection.
        Calls are counted by outcome."""
        tally = caller.core.tally
        try:
            result = await self.run(caller, self._read(arguments or {}))
        except MemorandaError as exc:
            tally["mcp_calls.refused"] += 1
            return _failed(str(exc))
        except Exception:
            tally["mcp_calls.failed"] += 1
            log.exception("the tool %s failed", self.name)
            return _failed(f"{self.name} failed inside the server; its log has the cause")
        tally["mcp_calls.completed"] += 1
        data = msgspec.to_builtins(result)
        text = msgspec.json.encode(data).decode()
        return wire.CallToolResult(content=[wire.TextContent(text=text)], structured_content=data)

    def _read(self, arguments: Mapping[str, Any]) -> Any:
        """The arguments; null counts as missing.

        Raises:
            InvalidInput: names the field and the fix.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        try:
            return converted(given, self.arguments, strict=False)
        except (ValueError, OverflowError) as exc:
            raise InvalidInput("arguments", str(exc)) from exc


def _failed(says: str) -> wire.CallToolResult:
    return wire.CallToolResult(content=[wire.TextContent(text=says)], is_error=True)
