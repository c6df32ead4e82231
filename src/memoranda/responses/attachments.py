"""Files inside a message: their texts by the readers of documents, images as data URLs."""

from __future__ import annotations

import asyncio
import base64
import binascii
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from memoranda.errors import InvalidInput, NotFound
from memoranda.knowledge import Knowledge
from memoranda.readers.base import Unreadable
from memoranda.responses.values import TEXTS, Item
from memoranda.store.core import Core
from memoranda.types import Subject

MAX_IMAGE_BYTES = 50 << 20
MAX_CHARS = 16 << 20
"""Characters that the files of one request may have together: more than any model reads."""
AT_ONCE = 8
"""Files of one request that are read at the same time."""
IMAGES = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
SUFFIXES = {"application/pdf": ".pdf", "text/plain": ".txt", "text/markdown": ".md", "text/html": ".html"}


class Attachments:
    """The files that one subject's messages name or carry."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self._core = core
        self._files = Knowledge(core, subject).files
        self._tenant = subject.tenant_id
        self._texts: dict[str, str] = {}
        self._chars_left, self._bytes = MAX_CHARS, MAX_IMAGE_BYTES
        self._few = asyncio.Semaphore(AT_ONCE)

    async def read(self, items: Sequence[Item], where: str = "input") -> None:
        """Puts the texts of files beside the parts that name them, under a private key.

        Raises:
            InvalidInput: names the part whose file is not there, cannot be read, or is too much.
        """
        await asyncio.gather(
            *(
                self._read_one(items[i], j, f"{where}[{i}].content[{j}]")
                for i, j, kind in _parts(items)
                if kind == "input_file"
            )
        )

    async def _read_one(self, item: Item, place: int, where: str) -> None:
        if str(place) in item.get(TEXTS, {}):
            return
        part = item["content"][place]
        async with self._few:
            text = await self._text(part, where)
        self._chars_left -= len(text)
        if self._chars_left < 0:
            raise InvalidInput(where, f"is more than {MAX_CHARS} characters with the files before it")
        item.setdefault(TEXTS, {})[str(place)] = text

    async def _text(self, part: Item, where: str) -> str:
        """The text of a file; one that several parts name is read once.

        Raises:
            InvalidInput: it is not there, or cannot be read; or the files before it were too much already.
        """
        if self._chars_left < 0:
            raise InvalidInput(where, f"is more than {MAX_CHARS} characters with the files before it")
        try:
            return await (self._uploaded(part) if part.get("file_id") else self._sent(part, where))
        except NotFound as exc:
            raise InvalidInput(f"{where}.file_id", str(exc)) from exc
        except Unreadable as exc:
            raise InvalidInput(where, f"the file cannot be read: {exc}") from exc

    async def _uploaded(self, part: Item) -> str:
        file = await self._files.get(part["file_id"])
        part.setdefault("filename", file.filename)
        if file.id in self._texts:
            return self._texts[file.id]
        async with self._core.local_file(self._tenant, file.id, file.sha256) as path:
            text = (await self._core.readers.read(path, file.filename)).document.text
        return self._texts.setdefault(file.id, text)

    async def _sent(self, part: Item, where: str) -> str:
        media, data = decoded(part["file_data"], f"{where}.file_data")
        name = part.get("filename") or f"file{SUFFIXES.get(media, '')}"
        with tempfile.TemporaryDirectory(prefix="memoranda-") as folder:
            path = Path(folder) / "file"
            await asyncio.to_thread(path.write_bytes, data)
            return (await self._core.readers.read(path, name)).document.text

    async def images(self, items: Sequence[Item], where: str = "input", past: bool = False) -> dict[str, str]:
        """Return data URLs of the images that are uploaded files, by file id. With `past`, images that no longer exist
        are left out.

        Raises:
            InvalidInput: an image of a new input is not there, too large, or none.
        """
        urls: dict[str, str] = {}
        self._bytes = MAX_IMAGE_BYTES
        for i, j, kind in _parts(items):
            part = items[i]["content"][j]
            if kind != "input_image" or part.get("image_url") or part["file_id"] in urls:
                continue
            try:
                urls[part["file_id"]] = await self._image(
                    part["file_id"], f"{where}[{i}].content[{j}].file_id"
                )
            except InvalidInput:
                if not past:
                    raise
        return urls

    async def _image(self, id_: str, where: str) -> str:
        try:
            file, pieces = await self._files.content(id_)
        except NotFound as exc:
            raise InvalidInput(where, str(exc)) from exc
        if file.bytes > self._bytes:
            says = (
                f"the image has {file.bytes} bytes; at most {MAX_IMAGE_BYTES} are sent, all images together"
            )
            raise InvalidInput(where, says)
        self._bytes -= file.bytes
        data = b"".join([piece async for piece in pieces])
        if (media := media_of(data, file.media_type)) is None:
            raise InvalidInput(where, f"{file.filename!r} is no image; send other files as `input_file`")
        return f"data:{media};base64,{base64.b64encode(data).decode('ascii')}"


def media_of(data: bytes, declared: str | None) -> str | None:
    """Return the media type of an image by its first bytes, else as declared; None if it is no image."""
    for start, media in IMAGES.items():
        if data.startswith(start):
            return media
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return declared if declared is not None and declared.startswith("image/") else None


def decoded(text: str, where: str) -> tuple[str, bytes]:
    """The media type ("" when it is not said) and the bytes of a data URL, or of plain base64.

    Raises:
        InvalidInput: it is neither.
    """
    media = ""
    if text.startswith("data:"):
        head, comma, text = text.partition(",")
        if not comma or not head.endswith(";base64"):
            raise InvalidInput(where, "must be a data URL in base64, as data:application/pdf;base64,...")
        media = head.removeprefix("data:").removesuffix(";base64").partition(";")[0]
    try:
        return media, base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise InvalidInput(where, f"is no valid base64: {exc}") from exc


def _parts(items: Sequence[Item]) -> Iterator[tuple[int, int, str]]:
    for i, item in enumerate(items):
        if item["type"] == "message":
            for j, part in enumerate(item["content"]):
                yield i, j, part["type"]
