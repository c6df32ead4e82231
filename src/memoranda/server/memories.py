"""`/v1/memories`: the operations on memories over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from starlette.responses import Response, StreamingResponse

from memoranda.memories.inputs import BatchBody, ExportedBody, NewMemoryBody, SearchBody
from memoranda.memories.memories import Memories
from memoranda.memories.operations import AT, OPERATIONS
from memoranda.server import route, wire
from memoranda.server.auth import is_operator
from memoranda.server.route import (
    JSONL,
    Call,
    Observed,
    Route,
    as_wire,
    in_batch,
)
from memoranda.store.selections import named_scopes
from memoranda.types import Added, Change, Memory, SearchResult

T = TypeVar("T")
PIECE = 64 << 10
"""Bytes of an export sent at once."""


async def stats(call: Call[None, wire.StatsQuery]) -> wire.MemoryStats | wire.ScopeStats:
    if scopes := named_scopes(None, call.query.scope, call.query.scope_id):
        return as_wire(await call.workspace.memories.stats(scope=scopes[0]), wire.ScopeStats)
    counts = as_wire(await call.workspace.memories.stats(), wire.MemoryStats)
    if not is_operator(call.workspace.subject):
        counts.jobs = counts.database = counts.index = counts.words = None  # they include other tenants
    return counts


async def export(call: Call[wire.ExportBody | None, wire.ExportBody | None]) -> Response:
    """The stream begins once its first line is there, so that what is wrong is still an error."""
    asked = call.body or call.query or wire.ExportBody()
    lines = call.workspace.memories.export(**asked.arguments())
    return StreamingResponse(_pieces(await anext(lines), lines), media_type=JSONL)


async def _pieces(first: bytes, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    buffer = [first]
    size = len(first)
    async for line in lines:
        buffer.append(line)
        size += len(line)
        if size >= PIECE:
            yield b"".join(buffer)
            buffer, size = [], 0
    if buffer:
        yield b"".join(buffer)


async def import_(call: Call[bytes, wire.ImportQuery]) -> wire.ImportedMemories:
    telemetry = call.state.telemetry
    with telemetry.upserting():
        done = await call.workspace.memories.import_from(
            call.body.splitlines(), scope=call.query.scope, include_forgotten=call.query.include_forgotten
        )
    telemetry.wrote("created", done.created)
    telemetry.wrote("present", done.present)
    return as_wire(done, wire.ImportedMemories)


async def _observed_add(call: Call[NewMemoryBody, None], work: Awaitable[Added]) -> Added:
    with call.state.telemetry.upserting():
        added = await work
    call.state.telemetry.added([added])
    return added


async def _observed_batch(call: Call[BatchBody, None], work: Awaitable[list[Added]]) -> list[Added]:
    with call.state.telemetry.upserting(), in_batch("memories", len(call.body.memories)):
        added = await work
    call.state.telemetry.added(added)
    return added


async def _observed_update(call: Call[Change, None], work: Awaitable[Memory]) -> Memory:
    with call.state.telemetry.upserting():
        memory = await work
    call.state.telemetry.wrote("updated", 1)
    return memory


async def _observed_search(call: Call[SearchBody, None], work: Awaitable[SearchResult]) -> SearchResult:
    result = await work
    call.state.telemetry.searched(len(result.results), result.query_time, result.degraded)
    return result


async def _named_in_batch(call: Call[ExportedBody, None], work: Awaitable[Any]) -> Any:
    with in_batch("memories", len(call.body.memories)):
        return await work


OBSERVED: dict[Callable[..., Any], Observed] = {
    Memories.add: _observed_add,
    Memories.add_many: _observed_batch,
    Memories.update: _observed_update,
    Memories.search: _observed_search,
    Memories.forgotten: _named_in_batch,
}
ROUTES = (
    Route(
        "GET", f"{AT}/stats", "Counts and sizes", stats, "admin", wire.MemoryStats | wire.ScopeStats,
        query=wire.StatsQuery,
    ),
    Route("GET", f"{AT}/export", "Export as JSONL", export, "read", query=wire.ExportBody, media=JSONL, long=True),
    Route("POST", f"{AT}/export", "Export as JSONL", export, "read", body=wire.ExportBody, media=JSONL, long=True),
    Route(
        "POST", f"{AT}/import", "Import an export", import_, "write", wire.ImportedMemories, bytes,
        wire.ImportQuery, long=True,
    ),
    *route.routes("memories", OPERATIONS, OBSERVED),
)  # fmt: skip
