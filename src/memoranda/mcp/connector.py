"""The tools `search` and `fetch`, in the form that connectors of ChatGPT expect.

https://platform.openai.com/docs/mcp: `search` returns ids, titles and URLs, `fetch` the text of one id.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import msgspec

from memoranda.errors import NotFound
from memoranda.knowledge.values import Passage
from memoranda.mcp.caller import Caller
from memoranda.mcp.documents import newest_stores, searched
from memoranda.mcp.remembering import Text
from memoranda.mcp.tool import Tool
from memoranda.types import Memory

LIMIT = 10
TITLE = 80
"""Characters of a title."""
_FILE = ":"
"""Separates the ids of a store and of a file in the id of a document."""


class Search(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    query: Text


class SearchHit(msgspec.Struct, kw_only=True):
    """A memory or a document."""

    id: str
    title: str
    url: str


class SearchResult(msgspec.Struct, kw_only=True):
    """Memories and documents, best first."""

    results: list[SearchHit]


async def search(caller: Caller, asked: Search) -> SearchResult:
    """Search memories and documents together."""
    memories, passages = await asyncio.gather(
        caller.memories.search(asked.query, limit=LIMIT, hierarchy=caller.places or None, count_access=True),
        _passages(caller, asked.query),
    )
    scored = [(hit.score, _of_memory(caller, hit.memory)) for hit in memories.results]
    scored += [(passage.score, _of_file(caller, passage)) for passage in passages]
    unique = {hit.id: hit for _, hit in sorted(scored, key=lambda pair: -pair[0])}
    return SearchResult(results=list(unique.values())[:LIMIT])


async def _passages(caller: Caller, query: str) -> list[Passage]:
    stores = await newest_stores(caller)
    return (await searched(caller, stores, query, LIMIT)).data if stores else []


def _of_memory(caller: Caller, memory: Memory) -> SearchHit:
    title = " ".join(memory.content.split())[:TITLE]
    return SearchHit(id=memory.id, title=title, url=_url(caller, f"memories/{memory.id}"))


def _of_file(caller: Caller, passage: Passage) -> SearchHit:
    id_ = f"{passage.vector_store_id}{_FILE}{passage.file_id}"
    return SearchHit(
        id=id_, title=passage.title or passage.filename, url=_url(caller, f"files/{passage.file_id}/content")
    )


def _url(caller: Caller, path: str) -> str:
    """The address of a memory or a file: at the public URL of the server, where it is configured."""
    public = caller.core.config.server.public_url
    return f"memoranda:{path}" if public is None else f"{public.rstrip('/')}/v1/{path}"


class Fetch(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    id: Text


class FetchResult(msgspec.Struct, kw_only=True):
    """A memory or a document in full."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str]


async def fetch(caller: Caller, asked: Fetch) -> FetchResult:
    """Read a memory or a document."""
    with suppress(NotFound):
        memory = await caller.memories.get(asked.id)
        hit = _of_memory(caller, memory)
        metadata = {"kind": memory.kind, "time": memory.occurred_at.isoformat()}
        return FetchResult(id=hit.id, title=hit.title, text=memory.content, url=hit.url, metadata=metadata)
    store_id, _, file_id = asked.id.partition(_FILE)
    if not file_id:
        raise NotFound(f"no memory or document {asked.id!r}")
    file = await caller.knowledge.stores.file(store_id, file_id)
    text = await caller.knowledge.stores.text(store_id, file_id)
    return FetchResult(
        id=asked.id,
        title=file.title or file.filename,
        text=text,
        url=_url(caller, f"files/{file_id}/content"),
        metadata={"filename": file.filename, "time": file.created_at.isoformat()},
    )


SEARCH = Tool("search", "Search", "Search memories and documents.", Search, SearchResult, search)
FETCH = Tool("fetch", "Fetch", "Read a search result in full.", Fetch, FetchResult, fetch)
