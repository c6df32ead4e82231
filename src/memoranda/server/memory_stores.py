"""`/v1/memory_stores`: Anthropic's API of memory stores, whose memories are texts at paths."""

from __future__ import annotations

from typing import Any

from memoranda.memory_stores.memories import StoreMemories
from memoranda.memory_stores.values import (
    MemoryStore,
    MemoryVersion,
    NewStore,
    NewStoreMemory,
    StoreChange,
    StoreMemory,
    StoreMemoryChange,
)
from memoranda.memory_stores.versions import MemoryVersions
from memoranda.server import wire_memory_stores as wire
from memoranda.server.route import Api, Call, Route


async def create(call: Call[NewStore, wire.BetaQuery]) -> MemoryStore:
    return await call.workspace.memory_stores.create(call.body)


async def page(call: Call[None, wire.StoresQuery]) -> wire.MemoryStorePage:
    query = call.query
    found = await call.workspace.memory_stores.list(
        limit=query.limit, page=query.page, include_archived=query.include_archived, since=query.since,
        until=query.until,
    )  # fmt: skip
    return wire.MemoryStorePage(data=found.data, next_page=found.next_page)


async def get(call: Call[None, wire.BetaQuery]) -> MemoryStore:
    return await call.workspace.memory_stores.get(call.id)


async def update(call: Call[StoreChange, wire.BetaQuery]) -> MemoryStore:
    return await call.workspace.memory_stores.update(call.id, call.body)


async def archive(call: Call[None, wire.BetaQuery]) -> MemoryStore:
    return await call.workspace.memory_stores.archive(call.id)


async def delete(call: Call[None, wire.BetaQuery]) -> wire.DeletedMemoryStore:
    await call.workspace.memory_stores.delete(call.id)
    return wire.DeletedMemoryStore(id=call.id)


# --- memories --------------------------------------------------------------------------------------


def _memories(call: Call[Any, Any]) -> StoreMemories:
    return call.workspace.memory_stores.memories(call.parameters["memory_store_id"])


async def create_memory(call: Call[NewStoreMemory, wire.ViewQuery]) -> StoreMemory:
    return await _memories(call).create(call.body, view=call.query.view or "basic")


async def memory_page(call: Call[None, wire.MemoriesQuery]) -> wire.StoreMemoryPage:
    query = call.query
    found = await _memories(call).list(
        path_prefix=query.path_prefix, depth=query.depth, limit=query.limit, page=query.page, view=query.view
    )
    return wire.StoreMemoryPage(data=found.data, next_page=found.next_page)


async def get_memory(call: Call[None, wire.ViewQuery]) -> StoreMemory:
    return await _memories(call).get(call.parameters["store_memory_id"], view=call.query.view or "full")


async def update_memory(call: Call[StoreMemoryChange, wire.ViewQuery]) -> StoreMemory:
    return await _memories(call).update(
        call.parameters["store_memory_id"], call.body, view=call.query.view or "basic"
    )


async def delete_memory(call: Call[None, wire.DeletionQuery]) -> wire.DeletedStoreMemory:
    id_ = call.parameters["store_memory_id"]
    await _memories(call).delete(id_, expected_sha256=call.query.expected_content_sha256)
    return wire.DeletedStoreMemory(id=id_)


# --- versions --------------------------------------------------------------------------------------


def _versions(call: Call[Any, Any]) -> MemoryVersions:
    return call.workspace.memory_stores.versions(call.parameters["memory_store_id"])


async def version_page(call: Call[None, wire.VersionsQuery]) -> wire.MemoryVersionPage:
    query = call.query
    versions = _versions(call)
    if query.session_id or query.api_key_id or query.service_account_id:
        await call.workspace.memory_stores.get(versions.store_id)
        return wire.MemoryVersionPage(data=[], next_page=None)
    found = await versions.list(
        memory_id=query.memory_id, operation=query.operation, since=query.since, until=query.until, limit=query.limit,
        page=query.page, view=query.view,
    )  # fmt: skip
    return wire.MemoryVersionPage(data=found.data, next_page=found.next_page)


async def get_version(call: Call[None, wire.ViewQuery]) -> MemoryVersion:
    return await _versions(call).get(call.parameters["memory_version_id"], view=call.query.view or "full")


async def redact_version(call: Call[None, wire.BetaQuery]) -> MemoryVersion:
    return await _versions(call).redact(call.parameters["memory_version_id"])


AT = "/v1/memory_stores"
ONE = f"{AT}/{{memory_store_id}}"
MEMORIES = f"{ONE}/memories"
MEMORY = f"{MEMORIES}/{{store_memory_id}}"
VERSIONS = f"{ONE}/memory_versions"
VERSION = f"{VERSIONS}/{{memory_version_id}}"
ANTHROPIC = Api("anthropic", key_header="x-api-key", envelope=wire.AnthropicFailure, failure=wire.failure)


def _route(
    method: str, path: str, summary: str, handler: Any, answer: Any, query: Any, body: Any = None
) -> Route:
    needs: Any = "read" if method == "GET" else "write"
    return Route(method, path, summary, handler, needs, answer, body, query, api=ANTHROPIC)


ROUTES = (
    _route("POST", AT, "Make a memory store", create, MemoryStore, wire.BetaQuery, NewStore),
    _route("GET", AT, "A page of memory stores", page, wire.MemoryStorePage, wire.StoresQuery),
    _route("GET", ONE, "One memory store", get, MemoryStore, wire.BetaQuery),
    _route("POST", ONE, "Change a memory store", update, MemoryStore, wire.BetaQuery, StoreChange),
    _route("DELETE", ONE, "Delete a memory store", delete, wire.DeletedMemoryStore, wire.BetaQuery),
    _route(
        "POST", MEMORIES, "Write a memory at a path", create_memory, StoreMemory, wire.ViewQuery, NewStoreMemory
    ),
    _route(
        "GET", MEMORIES, "A page of the memories below a path", memory_page, wire.StoreMemoryPage, wire.MemoriesQuery
    ),
    _route("GET", MEMORY, "One memory of a store", get_memory, StoreMemory, wire.ViewQuery),
    _route(
        "POST", MEMORY, "Change a memory's content or path", update_memory, StoreMemory, wire.ViewQuery,
        StoreMemoryChange,
    ),
    _route(
        "DELETE", MEMORY, "Delete a memory of a store", delete_memory, wire.DeletedStoreMemory, wire.DeletionQuery
    ),
    _route("GET", VERSIONS, "A page of versions", version_page, wire.MemoryVersionPage, wire.VersionsQuery),
    _route("GET", VERSION, "One version of a memory", get_version, MemoryVersion, wire.ViewQuery),
    _route("POST", f"{VERSION}/redact", "Erase a version's content", redact_version, MemoryVersion, wire.BetaQuery),
    _route("POST", f"{ONE}/archive", "Make a memory store read-only", archive, MemoryStore, wire.BetaQuery),
)  # fmt: skip
