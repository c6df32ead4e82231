"""Files that forms bring: their bytes are staged as they arrive, and become a file once the other fields are valid."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from memoranda.errors import InvalidInput
from memoranda.knowledge.files import Files, Staged
from memoranda.knowledge.values import Purpose, StoredFile, UploadPart
from memoranda.server.load import announced
from memoranda.server.multipart import BESIDE, FilePart, read_form, unflatten
from memoranda.server.route import Call, Form
from memoranda.validation import converted

MOST_BYTES = 1 << 40
"""Of a file: the tenant's quota is smaller and is checked while the bytes come."""


MOST_PART_BYTES = 64 << 20
"""Of a part of an upload, as OpenAI has it."""


class Arrived(msgspec.Struct):
    """A staged file, with the other fields of its form."""

    files: Files
    part: FilePart
    staged: Staged
    fields: Any = None
    adopted: bool = False

    async def adopt(self, purpose: Purpose, expires_after_seconds: int | None = None) -> StoredFile:
        """Makes it a file of the caller."""
        self.adopted = True
        return await self.files.adopt(
            self.staged,
            filename=self.part.filename,
            purpose=purpose,
            media_type=self.part.media_type,
            expires_after_seconds=expires_after_seconds,
        )

    async def drop(self) -> None:
        """Deletes the bytes, unless they were adopted."""
        if not self.adopted:
            await self.files.drop(self.staged)


@asynccontextmanager
async def arrived(call: Call[Any, Any], form: Form) -> AsyncIterator[Arrived]:
    """The file of a form and its `fields`. A file that is not adopted inside is deleted afterwards.

    Raises:
        InvalidInput: names the field.
        Refused: the body is not a form, or does not arrive.
        QuotaExceeded: the file is larger than one may be.
    """
    files = call.workspace.knowledge.files

    async def take(part: FilePart) -> Arrived:
        await files.expect(announced(call.request.headers) - BESIDE)
        return Arrived(files, part, await files.stage(part.pieces))

    filled = await read_form(
        call.request.receive,
        call.request.headers,
        take,
        undo=Arrived.drop,
        file=form.file,
        most=MOST_BYTES,
        patience=call.state.memoranda.config.server.request_timeout,
    )
    try:
        filled.file.fields = fields_of(filled.fields, form.fields)
        yield filled.file
    finally:
        await filled.file.drop()


def fields_of(given: list[tuple[str, str]], type_: Any) -> Any:
    """The fields of a form as a `type_`: an object is JSON, or a field for each of its keys (`a[b]=c`).

    Raises:
        InvalidInput: names the field and the fix.
    """
    raw = {name: _decoded(name, value) for name, value in unflatten(given).items()}
    return converted(raw, type_, strict=False)


def _decoded(name: str, value: Any) -> Any:
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as exc:
        raise InvalidInput(name, f"is not valid JSON: {exc}") from exc


async def arrived_part(call: Call[Any, Any], form: Form) -> UploadPart:
    """The part of an upload that a form holds. Errors as `arrived`."""
    uploads = call.workspace.knowledge.uploads

    async def take(part: FilePart) -> UploadPart:
        stored: UploadPart = await uploads.add_part(call.id, part.pieces)
        return stored

    async def undo(part: UploadPart) -> None:
        """No work: completing the upload deletes the parts that it does not name."""

    filled = await read_form(
        call.request.receive,
        call.request.headers,
        take,
        undo=undo,
        file=form.file,
        most=MOST_PART_BYTES,
        patience=call.state.memoranda.config.server.request_timeout,
    )
    return filled.file
