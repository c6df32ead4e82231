"""A folder's texts as memories: each chunk is a `document`, kept in sync with its files.

A text is stored once per scope: a chunk that two files share is one memory, which lists both places. It is removed
with the last of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Unpack

import msgspec

from memoranda.app.folder_sync.scan import MAX_BYTES, Skipped, Text, read
from memoranda.app.folder_sync.sync import FolderSync, Synced
from memoranda.arguments import ChangeFields, SelectionFields
from memoranda.errors import NotFound
from memoranda.text.chunking import fixed
from memoranda.text.hashing import digest
from memoranda.text.stored import compact_json
from memoranda.text.terms import encodable
from memoranda.types import Added, Memory, NewMemory, Order, Page

BATCH = 32
PAGE = 1_000
MAX_SOURCE = 256
MAX_ALSO = 32_000
OURS = ("path", "chunk_index", "start", "end", "tokens", "title", "also")
_HEADING = re.compile(r"^#\s+(.+?)\s*#*\s*$", re.MULTILINE)

ChunkPosition = dict[str, Any]
"""The place of a chunk: path, chunk_index, start, end (characters), tokens, and title if the file has one."""


class Memories(Protocol):
    """The methods that indexing needs, of the library or of a running server."""

    def list(
        self,
        *,
        limit: int = ...,
        after: str | None = ...,
        order: Order = ...,
        **fields: Unpack[SelectionFields],
    ) -> Page: ...
    def add_many(self, memories: Iterable[NewMemory | Mapping[str, Any] | str]) -> Sequence[Added]: ...
    def update(self, id: str, **fields: Unpack[ChangeFields]) -> Memory: ...
    def delete(self, id: str) -> None: ...


class Chunk(NamedTuple):
    """A chunk of a file: the hash of its text, the text, and its place."""

    key: str
    content: str
    place: ChunkPosition


class StoredText(msgspec.Struct):
    """One stored chunk: its id (None if it is not ours), its metadata, and its places before and now."""

    id: str | None
    metadata: dict[str, Any]
    before: list[ChunkPosition] = msgspec.field(default_factory=list)
    now: list[ChunkPosition] = msgspec.field(default_factory=list)


class StoredChunks:
    """The stored chunks, and the changes of a new reading of some files."""

    def __init__(self, stored: Iterable[Memory]) -> None:
        self.texts: dict[str, StoredText] = {}
        self.files: dict[str, set[tuple[str, int]]] = {}
        self.read: set[str] = set()
        for memory in stored:
            places = places_of(memory.metadata)
            # A text that was added by hand gets no places, so it is never removed with a file.
            id_ = memory.id if places else None
            self.texts[memory.content_hash] = StoredText(id_, memory.metadata, places)
            for place in places:
                self.files.setdefault(place["path"], set()).add((memory.content_hash, place["start"]))

    def see(self, path: str, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Record the chunks that the file at `path` has now; return those whose text is not stored yet, each text
        once."""
        self.read.add(path)
        fresh: list[Chunk] = []
        for chunk in chunks:
            if chunk.key not in self.texts:
                self.texts[chunk.key] = StoredText(None, {})
                fresh.append(chunk)
            self.texts[chunk.key].now.append(chunk.place)
        return fresh

    def unchanged(self, path: str, chunks: Sequence[Chunk]) -> bool:
        """Return True if the file had exactly these chunks when it was last indexed."""
        return self.files.get(path, set()) == {(chunk.key, chunk.place["start"]) for chunk in chunks}

    def settled(self, dropped: Iterable[str]) -> Iterator[tuple[str, dict[str, Any] | None]]:
        """Yield each memory that must change: its id and its new metadata, None if it is to be deleted.

        `dropped` are files whose chunks are removed although they were not read.
        """
        away = self.read | set(dropped)
        for text in self.texts.values():
            if text.id is None:
                continue
            places = [place for place in text.before if place["path"] not in away] + text.now
            others = {key: value for key, value in text.metadata.items() if key not in OURS}
            wanted = others | metadata(places) if places else None
            if wanted != text.metadata:
                yield text.id, wanted


def places_of(fields: dict[str, Any]) -> list[ChunkPosition]:
    """Return the places in a chunk's metadata; empty for a document that was not indexed from a file."""
    if not _is_place(fields):
        return []
    also = fields.get("also")
    others = [place for place in also if _is_place(place)] if isinstance(also, list) else []
    return [{key: fields[key] for key in OURS if key in fields and key != "also"}, *others]


def _is_place(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("path"), str) and type(value.get("start")) is int


def metadata(places: Sequence[ChunkPosition]) -> dict[str, Any]:
    """Return the metadata of a chunk: its first place, and under `also` the others, as many as fit 32 000
    characters."""
    first, *others = sorted(places, key=lambda place: (place["path"], place["start"]))
    remaining = MAX_ALSO
    also = []
    for place in others:
        remaining -= len(compact_json(place))
        if remaining < 0:
            break
        also.append(place)
    return {**first, "also": also} if also else dict(first)


def source(path: str) -> str:
    """Return a path as a memory's source: itself, or a hash and its end if it is longer than a source may be."""
    if len(path) <= MAX_SOURCE:
        return path
    mark = blake2b(path.encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()
    return f"{mark}…{path[-(MAX_SOURCE - len(mark) - 1) :]}"


def chunks_of(text: Text, path: str, size: int, overlap: int) -> Iterator[Chunk]:
    """Yield the text's chunks with their places; blank ones are left out."""
    heading = _HEADING.search(text.text) if text.path.suffix.lower() in (".md", ".markdown") else None
    title = {"title": heading[1][:200]} if heading else {}
    for number, span in enumerate(fixed(text.text, size, overlap)):
        content = text.text[span.start : span.end]
        if content.strip():
            place = {"path": path, "chunk_index": number, "start": span.start, "end": span.end}
            yield Chunk(digest(content), content, {**place, "tokens": span.tokens, **title})


class Indexed(Synced):
    """The result of one indexing. `waiting` chunks have no vector yet."""

    files: int = 0
    updated: int = 0
    waiting: int = 0
    guessed: list[Text] = msgspec.field(default_factory=list)


class Indexing(msgspec.Struct, frozen=True):
    """How files become memories: `ids` are the scope (`session_id`, ...), None for those that are not set."""

    scope: str = "global"
    ids: dict[str, str | None] = msgspec.field(default_factory=dict)
    tags: list[str] = msgspec.field(default_factory=list)
    size: int = 512
    overlap: int = 50
    max_bytes: int = MAX_BYTES
    prune: bool = False


class MemorySync(FolderSync[Indexed]):
    """Files as memories of a scope; unchanged files change nothing.

    New chunks are stored before old ones go, so a break leaves every text findable.
    """

    skipped_stay = False

    def __init__(self, memories: Memories, how: Indexing) -> None:
        super().__init__(Indexed(), how.prune)
        self._memories = memories
        self._how = how
        self._costs = StoredChunks(())
        self._pending: list[Chunk] = []

    def _begin(self) -> None:
        self._costs = StoredChunks(stored(self._memories, self._how))
        self.stored, self.seen = self._costs.files, self._costs.read

    def _take(self, path: Path) -> None:
        self._pending += self._see(path)
        while len(self._pending) >= BATCH:
            self._store(self._pending[:BATCH])
            del self._pending[:BATCH]
        self._on_progress(self.done)

    def _see(self, path: Path) -> list[Chunk]:
        name, how, done = str(path), self._how, self.done
        text = (
            read(path, how.max_bytes) if name == encodable(name) else Skipped(path, "its name is not UTF-8")
        )
        if isinstance(text, Skipped):
            done.skipped.append(text)
            return []
        chunks = list(chunks_of(text, name, how.size, how.overlap))
        done.files += 1
        done.chunks += len(chunks)
        done.unchanged += self._costs.unchanged(name, chunks)
        if not chunks:
            done.skipped.append(Skipped(path, "empty"))
        if text.guessed:
            done.guessed.append(text)
        return self._costs.see(name, chunks)

    def _store(self, chunks: Sequence[Chunk]) -> None:
        outcomes = self._memories.add_many([_new(chunk, self._how) for chunk in chunks])
        for chunk, outcome in zip(chunks, outcomes, strict=True):
            self.done.added += outcome.created
            self.done.waiting += not outcome.embedded
            if outcome.created:
                text = self._costs.texts[chunk.key]
                text.id, text.metadata = outcome.memory.id, dict(chunk.place)
        self._on_progress(self.done)

    def _finish(self) -> None:
        if self._pending:
            self._store(self._pending)

    def _settle(self, gone: Iterable[str]) -> None:
        for id_, wanted in list(self._costs.settled(gone)):
            with suppress(NotFound):  # deleted meanwhile, which is the aim or leaves nothing to update
                if wanted is None:
                    self._memories.delete(id_)
                    self.done.removed += 1
                else:
                    self._memories.update(id_, metadata=wanted, source=source(wanted["path"]))
                    self.done.updated += 1


def stored(memories: Memories, how: Indexing) -> Iterator[Memory]:
    """Yield every document of exactly this scope, oldest first."""
    after = None
    while True:
        page = memories.list(
            limit=PAGE,
            after=after,
            order="asc",
            scopes=[how.scope],
            kinds=["document"],
            include_archived=True,
        )
        for memory in page.data:
            if all(getattr(memory, name) == value for name, value in how.ids.items()):
                yield memory
        if not page.has_more:
            return
        after = page.last_id


def _new(chunk: Chunk, how: Indexing) -> dict[str, Any]:
    return {
        "content": chunk.content,
        "kind": "document",
        "source": source(chunk.place["path"]),
        "tags": how.tags,
        "metadata": chunk.place,
        **{name: value for name, value in how.ids.items() if value is not None},
    }
