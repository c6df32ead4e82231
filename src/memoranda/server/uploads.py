"""`/v1/uploads`: a file that arrives in parts."""

from __future__ import annotations

from memoranda.server import serializers
from memoranda.server import wire_knowledge as wire
from memoranda.server.form_files import arrived_part
from memoranda.server.route import Call, Form, Route


async def create(call: Call[wire.UploadBody, None]) -> wire.UploadObject:
    body = call.body
    upload = await call.workspace.knowledge.uploads.create(
        filename=body.filename,
        bytes=body.bytes,
        purpose=body.purpose,
        media_type=body.mime_type,
        expires_after_seconds=None if body.expires_after is None else body.expires_after.seconds,
    )
    return serializers.upload(upload)


async def get(call: Call[None, None]) -> wire.UploadObject:
    return serializers.upload(await call.workspace.knowledge.uploads.get(call.id))


async def add_part(call: Call[None, None]) -> wire.PartObject:
    return serializers.part(await arrived_part(call, PART))


async def complete(call: Call[wire.CompleteBody, None]) -> wire.UploadObject:
    body = call.body
    return serializers.upload(
        await call.workspace.knowledge.uploads.complete(call.id, body.part_ids, body.md5)
    )


async def cancel(call: Call[None, None]) -> wire.UploadObject:
    return serializers.upload(await call.workspace.knowledge.uploads.cancel(call.id))


PART = Form("data", wire.NoFields)
AT = "/v1/uploads"
ONE = f"{AT}/{{upload_id}}"
ROUTES = (
    Route("POST", AT, "Begin a file that comes in parts", create, "write", wire.UploadObject, wire.UploadBody),
    Route("GET", ONE, "How far an upload is", get, "read", wire.UploadObject),
    Route("POST", f"{ONE}/parts", "Send a part", add_part, "write", wire.PartObject, long=True, form=PART),
    Route(
        "POST", f"{ONE}/complete", "Make the file of its parts", complete, "write", wire.UploadObject,
        wire.CompleteBody, long=True,
    ),
    Route("POST", f"{ONE}/cancel", "Give an upload up", cancel, "write", wire.UploadObject),
)  # fmt: skip
