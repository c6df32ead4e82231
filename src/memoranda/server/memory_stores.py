"""`/v1/memory_stores`: Anthropic's API of memory stores, whose memories are texts at paths."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from typing import Any, cast

from memoranda.memory_stores.operations import MEMORIES, STORES, VERSIONS, VersionsQuery
from memoranda.memory_stores.values import MemoryVersion, Page
from memoranda.memory_stores.versions import MemoryVersions
from memoranda.server import wire_memory_stores as wire
from memoranda.server.route import Api, Call, routes


async def _versions(call: Call[None, VersionsQuery], work: Awaitable[Any]) -> Page[MemoryVersion]:
    """Return none of the versions that agents wrote: here are none."""
    if call.query.by_agents:
        cast(Coroutine[Any, Any, Any], work).close()
        await call.workspace.memory_stores.get(call.parameters["memory_store_id"])
        return Page(data=[], next_page=None)
    page: Page[MemoryVersion] = await work
    return page


ANTHROPIC = Api("anthropic", key_header="x-api-key", envelope=wire.AnthropicFailure, failure=wire.failure)
ROUTES = (
    *routes("memory_stores", STORES[:-1], api=ANTHROPIC),
    *routes("memory_stores.memories", MEMORIES, api=ANTHROPIC),
    *routes("memory_stores.versions", VERSIONS, {MemoryVersions.list: _versions}, ANTHROPIC),
    *routes("memory_stores", STORES[-1:], api=ANTHROPIC),  # an archived store takes no memories
)
