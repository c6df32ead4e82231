"""Tools over documents: `search_documents`, `stores`, `index_text`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from memoranda.errors import InvalidInput
from memoranda.knowledge.passages import distinct, search_limit
from memoranda.knowledge.search import MAX_STORES
from memoranda.knowledge.values import Passages, VectorStore
from memoranda.mcp.caller import Caller
from memoranda.mcp.remembering import MOST, MaxTokens, Text, within
from memoranda.mcp.tool import Tool
from memoranda.store.paging import all_rows
from memoranda.types import says

PAGE = 100
SHOWN = 20
"""Names of stores in an error."""
Stores = Annotated[
    list[str],
    Meta(
        min_length=1,
        max_length=MAX_STORES,
        description=f"ids or names of stores; left out: the newest {MAX_STORES}",
    ),
]


class SearchDocuments(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    query: Annotated[Text, Meta(description="a question in a full sentence")]
    limit: Annotated[int, Meta(ge=1, le=MOST)] = 8
    stores: Stores | None = None
    max_tokens: MaxTokens | None = None


class FoundPassage(msgspec.Struct, kw_only=True):
    """A passage of a document. `start` and `end` are characters of the document's text; `score` is 0 to 1. `columns` is
    the row that names the columns of the table in which it begins."""

    id: str
    text: str
    file_id: str
    filename: str
    page: int | None
    last_page: int | None
    heading: str | None
    columns: str | None
    start: int
    end: int
    score: float


class SearchDocumentsResult(msgspec.Struct, kw_only=True):
    """The passages, best first; the other fields are as those of `recall`."""

    stores: list[str]
    evidence: str
    evidence_probability: float
    results: list[FoundPassage]
    omitted: int
    degraded: list[str]


async def search_documents(caller: Caller, asked: SearchDocuments) -> SearchDocumentsResult:
    """Search vector stores."""
    stores = await (newest_stores(caller) if asked.stores is None else named_stores(caller, asked.stores))
    if not stores:
        return SearchDocumentsResult(
            stores=[], evidence="none", evidence_probability=0.0, results=[], omitted=0, degraded=[]
        )
    answer = await searched(caller, stores, asked.query, asked.limit)
    results = [
        FoundPassage(
            id=passage.chunk_id,
            text=passage.text,
            file_id=passage.file_id,
            filename=passage.filename,
            page=passage.page,
            last_page=passage.last_page,
            heading=passage.heading,
            columns=passage.columns,
            start=passage.start,
            end=passage.end,
            score=round(passage.score, 4),
        )
        for passage in answer.data
    ]
    included = within(asked.max_tokens, [passage.text for passage in results])
    return SearchDocumentsResult(
        stores=[store.name or store.id for store in stores],
        evidence=answer.evidence,
        evidence_probability=answer.evidence_probability,
        results=results[:included],
        omitted=len(results) - included,
        degraded=answer.degraded,
    )


async def searched(caller: Caller, stores: list[VectorStore], query: str, limit: int) -> Passages:
    """Search stores together; a passage of a file that is in several of them is found once."""
    ids = [store.id for store in stores]
    answer = await caller.knowledge.stores.search(ids, query, limit=search_limit(limit, ids))
    answer.data = distinct(answer.data)[:limit]
    return answer


async def newest_stores(caller: Caller) -> list[VectorStore]:
    """Return the newest stores that the caller sees and that have not expired, at most `MAX_STORES`."""
    stores: list[VectorStore] = []
    async for store in _stores(caller):
        stores.append(store)
        if len(stores) == MAX_STORES:
            break
    return stores


async def named_stores(caller: Caller, names: Sequence[str]) -> list[VectorStore]:
    """Return the stores of these ids or names, of several with a name the newest.

    Raises:
        InvalidInput: the caller sees no such store.
    """
    matches: dict[str, VectorStore] = {}
    known: list[str] = []
    async for store in _stores(caller):
        known.append(store.name or store.id)
        for name in (store.id, store.name):
            if name in names:
                matches.setdefault(name, store)
        if len(matches) == len(set(names)):
            return [matches[name] for name in names]
    missing = next(name for name in names if name not in matches)
    shown = ", ".join(known[:SHOWN]) or "there are none"
    shown += f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
    raise InvalidInput("stores", f"{missing!r} is no store here; use one of: {shown}")


async def _stores(caller: Caller) -> AsyncIterator[VectorStore]:
    """Yield the stores that the caller sees and that have not expired, newest first."""
    async for store in all_rows(caller.knowledge.stores.list, PAGE):
        if store.status != "expired":
            yield store


class ListStores(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    pass


class Store(msgspec.Struct, kw_only=True):
    """A vector store, and how many of its files can be searched."""

    id: str
    name: str | None
    description: str | None
    files: int


class ListStoresResult(msgspec.Struct, kw_only=True):
    """The newest stores that can be searched, at most 100; `omitted` are older."""

    stores: list[Store]
    omitted: int


async def list_stores(caller: Caller, asked: ListStores) -> ListStoresResult:
    """List vector stores."""
    stores = [store async for store in _stores(caller)]
    return ListStoresResult(
        stores=[
            Store(
                id=store.id,
                name=store.name,
                description=store.description,
                files=store.file_counts.completed,
            )
            for store in stores[:MAX_STORES]
        ],
        omitted=max(0, len(stores) - MAX_STORES),
    )


class IndexText(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[Text, Meta(description="the document, as plain text or Markdown")]
    filename: Annotated[
        str,
        Meta(
            pattern=r"^[^/\\]+\.(md|txt)$",
            description="such as notes.md",
            extra=says("must be a file name that ends in .md or .txt, such as notes.md"),
        ),
    ]
    store: (
        Annotated[str, Meta(description="its id or name; left out: the newest of one's own, or a new one")]
        | None
    ) = None


class IndexTextResult(msgspec.Struct, kw_only=True):
    """The file and the store that it is in. `status` is `completed` once it can be searched."""

    file_id: str
    store_id: str
    status: str


async def index_text(caller: Caller, asked: IndexText) -> IndexTextResult:
    """Put a text into a store, and wait until it can be searched."""
    vector_stores = caller.knowledge.stores
    if asked.store is not None:
        [store] = await named_stores(caller, [asked.store])
    else:
        store = await _newest_filled(caller) or await vector_stores.create(name="Documents")
    file = await vector_stores.upload(store.id, asked.text.encode(), asked.filename)
    done = await vector_stores.wait_file(store.id, file.id)
    return IndexTextResult(file_id=done.id, store_id=store.id, status=done.status)


async def _newest_filled(caller: Caller) -> VectorStore | None:
    """Return the newest store of the caller, of the tenant, or that its owner lets the caller fill."""
    user = caller.subject.user_id
    async for store in _stores(caller):
        if store.user_id in (None, user) or user in store.writers:
            return store
    return None


SEARCH_DOCUMENTS = Tool(
    "search_documents",
    "Search documents",
    "Search the uploaded documents for passages that answer a question. Cite filename and page or heading.",
    SearchDocuments,
    SearchDocumentsResult,
    search_documents,
)
STORES = Tool(
    "stores",
    "List vector stores",
    "List the stores of documents that search_documents can search.",
    ListStores,
    ListStoresResult,
    list_stores,
)
INDEX_TEXT = Tool(
    "index_text",
    "Index a text",
    "Add a text as a document to a store, so that search_documents finds it.",
    IndexText,
    IndexTextResult,
    index_text,
    changes=True,
    idempotent=False,
)
