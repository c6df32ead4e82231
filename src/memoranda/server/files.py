"""`/v1/files`: files that were uploaded."""

from __future__ import annotations

from urllib.parse import quote

from starlette.responses import Response, StreamingResponse

from memoranda.knowledge.values import PageQuery, StoredFile
from memoranda.server import serializers
from memoranda.server import wire_knowledge as wire
from memoranda.server.form_files import arrived
from memoranda.server.route import BINARY, Call, Form, Route


async def create(call: Call[None, None]) -> wire.FileObject:
    async with arrived(call, FORM) as form:
        expires = form.fields.expires_after
        file = await form.adopt(form.fields.purpose, None if expires is None else expires.seconds)
    return serializers.stored_file(file)


async def page(call: Call[None, wire.FilesQuery]) -> wire.FilePage:
    query = call.query
    listed = await call.workspace.knowledge.files.list(
        limit=query.limit, after=query.after, order=query.order, purpose=query.purpose
    )
    data = [serializers.stored_file(file) for file in listed.data]
    return wire.FilePage(
        data=data, first_id=listed.first_id or "", last_id=listed.last_id or "", has_more=listed.has_more
    )


async def get(call: Call[None, None]) -> wire.FileObject:
    return serializers.stored_file(await call.workspace.knowledge.files.get(call.id))


async def content(call: Call[None, None]) -> Response:
    """The bytes, streamed; for HEAD only what they are."""
    if call.request.method == "HEAD":
        return Response(
            headers=_headers(await call.workspace.knowledge.files.get(call.id)), media_type=BINARY
        )
    file, pieces = await call.workspace.knowledge.files.content(call.id)
    return StreamingResponse(pieces, headers=_headers(file), media_type=BINARY)


async def image(call: Call[None, PageQuery]) -> Response:
    query = call.query
    drawn = await call.workspace.knowledge.files.page_image(
        call.id, query.page, width=query.width, highlight=query.highlight, find=query.find
    )
    headers = {f"memoranda-{name}": str(getattr(drawn, name)) for name in ("page", "pages", "marked")}
    return Response(drawn.image, media_type=PNG, headers=headers)


def _headers(file: StoredFile) -> dict[str, str]:
    """Headers that make browsers download the file and never render it."""
    return {
        "content-length": str(file.bytes),
        "content-disposition": f"attachment; filename*=UTF-8''{quote(file.filename, safe='')}",
    }


async def delete(call: Call[None, None]) -> wire.DeletedFile:
    derived = await call.workspace.knowledge.files.delete(call.id)
    return wire.DeletedFile(id=call.id, derived=derived)


PNG = "image/png"
FORM = Form("file", wire.FileFields)
AT = "/v1/files"
ONE = f"{AT}/{{file_id}}"
ROUTES = (
    Route("POST", AT, "Upload a file", create, "write", wire.FileObject, long=True, form=FORM),
    Route("GET", AT, "A page of files", page, "read", wire.FilePage, query=wire.FilesQuery),
    Route("GET", ONE, "One file", get, "read", wire.FileObject),
    Route("GET", f"{ONE}/content", "A file's bytes", content, "read", media=BINARY, long=True),
    Route(
        "GET", f"{ONE}/image", "A page of a PDF as an image", image, "read", query=PageQuery, media=PNG,
        long=True,
    ),
    Route("DELETE", ONE, "Delete a file, in every store too", delete, "write", wire.DeletedFile),
)  # fmt: skip
