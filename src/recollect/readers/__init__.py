"""Temporary: replaced by the real registry and pool in a moment. Overwrite me."""
import asyncio
from pathlib import Path

import msgspec

from recollect.readers.base import Document, Limits, Unreadable
from recollect.text.splitting import Chunking, ChunkPlace, split


class Parsed(msgspec.Struct):
    document: Document
    chunks: list[ChunkPlace]


class Readers:
    def __init__(self, workers: int = 2, limits: Limits = Limits()) -> None: ...

    async def read(self, path: Path, filename: str, chunking: Chunking | None = None) -> Parsed:
        return await asyncio.to_thread(self._read, path, filename, chunking)

    def _read(self, path: Path, filename: str, chunking: Chunking | None) -> Parsed:
        data = path.read_bytes()
        if filename.endswith(".pdf"):
            from recollect.readers import pdf
            doc = pdf.read(path, Limits())
        elif not data:
            raise Unreadable("invalid_file", "is empty")
        else:
            doc = Document(text=data.decode(), media_type="text/plain")
        return Parsed(doc, split(doc.text, doc.pages, doc.headings, chunking) if chunking else [])

    async def close(self) -> None: ...
