"""`/v1/vector_stores`: sets of files that are searched together."""

from __future__ import annotations

from memoranda.knowledge.values import StoreChange
from memoranda.server import parsers, serializers
from memoranda.server import wire_knowledge as wire
from memoranda.server.route import Call, Route, given
from memoranda.server.wire_passages import (
    FlatPage,
    PassagePage,
    PassagesBody,
    PassagesQuery,
    StoresPassagesBody,
)


async def create(call: Call[wire.StoreBody, None]) -> wire.StoreObject:
    body = call.body
    store = await call.workspace.knowledge.stores.create(
        name=body.name or "",
        description=body.description,
        file_ids=body.file_ids or (),
        metadata=body.metadata,
        expires_after_days=None if body.expires_after is None else body.expires_after.days,
        chunking=parsers.chunking(body.chunking_strategy),
        sharing=body.sharing,
        writers=body.writers,
    )
    return serializers.store(store)


async def page(call: Call[None, wire.StoresQuery]) -> wire.StorePage:
    query = call.query
    listed = await call.workspace.knowledge.stores.list(
        limit=query.limit, after=query.after, before=query.before, order=query.order
    )
    data = [serializers.store(store) for store in listed.data]
    return wire.StorePage(
        data=data, first_id=listed.first_id or "", last_id=listed.last_id or "", has_more=listed.has_more
    )


async def get(call: Call[None, None]) -> wire.StoreObject:
    return serializers.store(await call.workspace.knowledge.stores.get(call.id))


async def update(call: Call[wire.StoreChangeBody, None]) -> wire.StoreObject:
    return serializers.store(await call.workspace.knowledge.stores.update(call.id, change(call.body)))


def change(body: wire.StoreChangeBody) -> StoreChange:
    """The update of a body: `expires_after: null` ends expiry, `metadata: null` empties it."""
    fields = given(body)
    if "expires_after" in fields:
        expires = fields.pop("expires_after")
        fields["expires_after_days"] = None if expires is None else expires.days
    split = parsers.chunking(fields.pop("chunking_strategy", None))
    if split is not None:
        fields["chunking"] = split
    return StoreChange(**fields)


async def delete(call: Call[None, None]) -> wire.DeletedStore:
    await call.workspace.knowledge.stores.delete(call.id)
    return wire.DeletedStore(id=call.id)


async def search(call: Call[PassagesBody, PassagesQuery]) -> PassagePage | FlatPage:
    return await _search(call, [call.id])


async def search_several(
    call: Call[StoresPassagesBody, PassagesQuery],
) -> PassagePage | FlatPage:
    return await _search(call, call.body.vector_store_ids)


async def _search(
    call: Call[PassagesBody, PassagesQuery] | Call[StoresPassagesBody, PassagesQuery],
    store_ids: list[str],
) -> PassagePage | FlatPage:
    result = await call.workspace.knowledge.stores.search(store_ids, parsers.query(call.body))
    call.state.telemetry.searched(len(result.data), result.query_time, result.degraded)
    return serializers.flat(result) if call.query.format == "flat" else serializers.passages(result)


AT = "/v1/vector_stores"
ONE = f"{AT}/{{store_id}}"
FOUND = PassagePage | FlatPage
ROUTES = (
    Route("POST", AT, "Make a vector store", create, "write", wire.StoreObject, wire.StoreBody),
    Route("GET", AT, "A page of vector stores", page, "read", wire.StorePage, query=wire.StoresQuery),
    Route(
        "POST", f"{AT}/search", "Search several vector stores", search_several, "read", FOUND,
        StoresPassagesBody, PassagesQuery,
    ),
    Route("GET", ONE, "One vector store", get, "read", wire.StoreObject),
    Route("POST", ONE, "Change a vector store", update, "write", wire.StoreObject, wire.StoreChangeBody),
    Route("PUT", ONE, "Change a vector store", update, "write", wire.StoreObject, wire.StoreChangeBody),
    Route("DELETE", ONE, "Delete a vector store", delete, "write", wire.DeletedStore),
    Route("POST", f"{ONE}/search", "Search", search, "read", FOUND, PassagesBody, PassagesQuery),
)  # fmt: skip
