"""`/v1/vector_stores/{id}/files` and `file_batches`: the files in a store, added one by one or many at once."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from memoranda.server import parsers, serializers
from memoranda.server import wire_knowledge as wire
from memoranda.server.form_files import arrived
from memoranda.server.route import Call, Form, Route, as_wire


async def attach(call: Call[wire.AttachBody | None, wire.WaitQuery]) -> wire.StoreFileObject:
    """An uploaded file by its id, or a file in the body: uploaded and added in one step, or neither."""
    store_id, stores = call.parameters["store_id"], call.workspace.knowledge.stores
    if call.body is not None:
        (file,) = await stores.attach(store_id, [parsers.new_file(call.body)], wait=call.query.wait)
        return serializers.store_file(file)
    async with arrived(call, FORM) as form:
        fields, split = form.fields, parsers.chunking(form.fields.chunking_strategy)
        form.adopted = True
        file = await stores.adopt(
            store_id,
            form.staged,
            filename=form.part.filename,
            attributes=fields.attributes,
            chunking=split,
            purpose=fields.purpose,
            media_type=form.part.media_type,
            wait=call.query.wait,
        )
    return serializers.store_file(file)


async def page(call: Call[None, wire.StoreFilesQuery]) -> wire.StoreFilePage:
    return await shown_page(call, call.parameters["store_id"])


async def shown_page(
    call: Call[Any, wire.StoreFilesQuery], store_id: str, batch_id: str | None = None
) -> wire.StoreFilePage:
    """A page of the files in a store, or of those that came in one batch."""
    query = call.query
    listed = await call.workspace.knowledge.stores.files(
        store_id,
        limit=query.limit,
        after=query.after,
        before=query.before,
        order=query.order,
        state=query.filter,
        batch_id=batch_id,
    )
    data = [serializers.store_file(file) for file in listed.data]
    return wire.StoreFilePage(
        data=data, first_id=listed.first_id or "", last_id=listed.last_id or "", has_more=listed.has_more
    )


async def get(call: Call[None, None]) -> Response:
    return serializers.polled_file(await call.workspace.knowledge.stores.file(*_ids(call)))


async def update(call: Call[wire.AttributesBody, None]) -> wire.StoreFileObject:
    file = await call.workspace.knowledge.stores.set_attributes(*_ids(call), call.body.attributes or {})
    return serializers.store_file(file)


async def content(call: Call[None, None]) -> wire.ContentPage:
    text = await call.workspace.knowledge.stores.text(*_ids(call))
    return wire.ContentPage(data=[wire.TextContent(text=text)])


async def chunks(call: Call[None, wire.ChunksQuery]) -> wire.ChunkPage:
    query, (store_id, file_id) = call.query, _ids(call)
    listed = await call.workspace.knowledge.stores.chunks(
        store_id, file_id, limit=query.limit, after=query.after
    )
    return wire.ChunkPage(
        data=[as_wire(chunk, wire.ChunkObject) for chunk in listed.data],
        first_id=listed.first_id or "",
        last_id=listed.last_id or "",
        has_more=listed.has_more,
    )


async def detach(call: Call[None, None]) -> wire.DetachedFile:
    store_id, file_id = _ids(call)
    await call.workspace.knowledge.stores.detach(store_id, file_id)
    return wire.DetachedFile(id=file_id)


def _ids(call: Call[Any, Any]) -> tuple[str, str]:
    return call.parameters["store_id"], call.parameters["file_id"]


async def create_batch(call: Call[wire.FileBatchBody, wire.WaitQuery]) -> wire.FileBatchObject:
    files, store_id = parsers.new_files(call.body), call.parameters["store_id"]
    batch = await call.workspace.knowledge.stores.create_batch(store_id, files, wait=call.query.wait)
    return serializers.batch(batch)


async def get_batch(call: Call[None, None]) -> Response:
    return serializers.polled_batch(await call.workspace.knowledge.stores.batch(*_batch_ids(call)))


async def cancel_batch(call: Call[None, None]) -> wire.FileBatchObject:
    return serializers.batch(await call.workspace.knowledge.stores.cancel_batch(*_batch_ids(call)))


async def batch_files(call: Call[None, wire.StoreFilesQuery]) -> wire.StoreFilePage:
    store_id, batch_id = _batch_ids(call)
    return await shown_page(call, store_id, batch_id)


def _batch_ids(call: Call[None, None] | Call[None, wire.StoreFilesQuery]) -> tuple[str, str]:
    return call.parameters["store_id"], call.parameters["batch_id"]


FORM = Form("file", wire.AttachFields)
AT = "/v1/vector_stores/{store_id}/files"
ONE = f"{AT}/{{file_id}}"
BATCHES = "/v1/vector_stores/{store_id}/file_batches"
BATCH = f"{BATCHES}/{{batch_id}}"
ROUTES = (
    Route(
        "POST", AT, "Add a file: an uploaded one, or one in the body", attach, "write", wire.StoreFileObject,
        wire.AttachBody, wire.WaitQuery, long=True, form=FORM,
    ),
    Route("GET", AT, "A page of files", page, "read", wire.StoreFilePage, query=wire.StoreFilesQuery),
    Route("GET", ONE, "One file", get, "read", wire.StoreFileObject),
    Route("POST", ONE, "Change a file's attributes", update, "write", wire.StoreFileObject, wire.AttributesBody),
    Route("GET", f"{ONE}/content", "The text read out of a file", content, "read", wire.ContentPage),
    Route("GET", f"{ONE}/chunks", "The chunks of a file", chunks, "read", wire.ChunkPage, query=wire.ChunksQuery),
    Route("DELETE", ONE, "Take a file out of the store", detach, "write", wire.DetachedFile),
    Route(
        "POST", BATCHES, "Add many files", create_batch, "write", wire.FileBatchObject, wire.FileBatchBody,
        wire.WaitQuery, long=True,
    ),
    Route("GET", BATCH, "One batch", get_batch, "read", wire.FileBatchObject),
    Route("POST", f"{BATCH}/cancel", "Stop a batch", cancel_batch, "write", wire.FileBatchObject),
    Route(
        "GET", f"{BATCH}/files", "A page of a batch's files", batch_files, "read", wire.StoreFilePage,
        query=wire.StoreFilesQuery,
    ),
)  # fmt: skip
