"""`/v1/archive`: export of all data of a tenant as one zip file, and restore. Both use a temporary folder."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO, Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response, StreamingResponse

from memoranda.app.history_report import HistoryImported
from memoranda.errors import MissingKey
from memoranda.server.form_files import MOST_BYTES, fields_of
from memoranda.server.multipart import FilePart, read_form
from memoranda.server.route import Call, Form, Route
from memoranda.types import Id, Subject, says

ZIP = "application/zip"
PIECE = 1 << 18


class ArchiveQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Whether the archive has the vectors, so that a restore with the same model embeds nothing."""

    vectors: bool = False


ArchivePlace = Annotated[
    str,
    Meta(
        pattern=r"^(global|(user|agent|channel):[\s\S]+)$",
        extra=says("must be user:ID, agent:ID, channel:ID or global"),
    ),
]


class ArchiveFields(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Where everything goes instead of where it was, whether only a report is wanted, and whether what was forgotten
    after the archive was written is restored, too."""

    scope: ArchivePlace | None = None
    user_id: Id | None = None
    dry_run: bool = False
    include_forgotten: bool = False


class ArchiveRestored(HistoryImported, kw_only=True, tag_field="object", tag="archive.restored"):
    """What became of an archive: rows by kind, new and there already, and what was refused and why."""


async def export(call: Call[None, ArchiveQuery]) -> Response:
    """The archive is complete before its first byte is sent, so that what goes wrong is an error."""
    _must_have_key(call.workspace.subject)
    with tempfile.TemporaryDirectory(prefix="memoranda-archive-") as folder:
        path = Path(folder, "archive.zip")
        archive = await call.workspace.archives.export_to(path, vectors=call.query.vectors)
        file = path.open("rb")  # it stays readable when its name is gone
    headers = {
        "content-length": str(archive.bytes),
        "content-disposition": 'attachment; filename="memoranda.zip"',
    }
    return StreamingResponse(_pieces(call, file), headers=headers, media_type=ZIP)


def _must_have_key(subject: Subject) -> None:
    """Check that a key asks: an archive is everything that there is.

    Raises:
        MissingKey: the server has no keys.
    """
    if subject.key is None:
        raise MissingKey(
            "an archive needs a key; configure `keys`, or stop the server and use `memoranda export`"
        )


async def _pieces(call: Call[None, ArchiveQuery], file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while piece := await call.state.memoranda.core.threads.run(file.read, PIECE):
            yield piece


async def restore(call: Call[None, None]) -> ArchiveRestored:
    memoranda = call.state.memoranda
    _must_have_key(call.workspace.subject)
    threads = memoranda.core.threads
    with tempfile.TemporaryDirectory(prefix="memoranda-archive-") as folder:
        path = Path(folder, "archive.zip")

        async def take(part: FilePart) -> None:
            with path.open("wb") as file:
                async for piece in part.pieces:
                    await threads.run(file.write, piece)

        async def undo(_: None) -> None:
            """The folder goes with the request."""

        filled = await read_form(
            call.request.receive,
            call.request.headers,
            take,
            undo=undo,
            file=FORM.file,
            most=MOST_BYTES,
            patience=memoranda.config.server.request_timeout,
        )
        fields = fields_of(filled.fields, ArchiveFields)
        report = await call.workspace.archives.import_from(
            path,
            scope=fields.scope,
            user_id=fields.user_id,
            dry_run=fields.dry_run,
            include_forgotten=fields.include_forgotten,
        )
    return ArchiveRestored(**{name: getattr(report, name) for name in report.__struct_fields__})


FORM = Form("file", ArchiveFields)
AT = "/v1/archive"
ROUTES = (
    Route("GET", AT, "Everything as a zip file", export, "admin", query=ArchiveQuery, media=ZIP, long=True),
    Route("POST", AT, "Restore an archive", restore, "admin", ArchiveRestored, long=True, form=FORM),
)
