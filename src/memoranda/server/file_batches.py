"""`/v1/vector_stores/{id}/file_batches`: many files added to a store at once."""

from __future__ import annotations

from starlette.responses import Response

from memoranda.server import parsers, serializers
from memoranda.server import wire_knowledge as wire
from memoranda.server.route import Call, Route
from memoranda.server.store_files import shown_page


async def create(call: Call[wire.FileBatchBody, wire.WaitQuery]) -> wire.FileBatchObject:
    files, store_id = parsers.new_files(call.body), call.parameters["store_id"]
    batch = await call.workspace.knowledge.stores.create_batch(store_id, files, wait=call.query.wait)
    return serializers.batch(batch)


async def get(call: Call[None, None]) -> Response:
    return serializers.polled_batch(await call.workspace.knowledge.stores.batch(*_ids(call)))


async def cancel(call: Call[None, None]) -> wire.FileBatchObject:
    return serializers.batch(await call.workspace.knowledge.stores.cancel_batch(*_ids(call)))


async def files(call: Call[None, wire.StoreFilesQuery]) -> wire.StoreFilePage:
    store_id, batch_id = _ids(call)
    return await shown_page(call, store_id, batch_id)


def _ids(call: Call[None, None] | Call[None, wire.StoreFilesQuery]) -> tuple[str, str]:
    return call.parameters["store_id"], call.parameters["batch_id"]


AT = "/v1/vector_stores/{store_id}/file_batches"
ONE = f"{AT}/{{batch_id}}"
ROUTES = (
    Route(
        "POST", AT, "Add many files", create, "write", wire.FileBatchObject, wire.FileBatchBody, wire.WaitQuery,
        long=True,
    ),
    Route("GET", ONE, "One batch", get, "read", wire.FileBatchObject),
    Route("POST", f"{ONE}/cancel", "Stop a batch", cancel, "write", wire.FileBatchObject),
    Route(
        "GET", f"{ONE}/files", "A page of a batch's files", files, "read", wire.StoreFilePage,
        query=wire.StoreFilesQuery,
    ),
)  # fmt: skip
