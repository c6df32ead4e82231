"""A folder's files in a vector store, kept in step with them.

A file is known by two of its attributes in the store, `path` and `sha256`. Files that have neither were put there by
others and are left alone. Each file is uploaded into the store in one step, so that a break leaves nothing half done
and the next run goes on from what the store has. Filing also deletes what it uploaded: a version that was replaced, a
file that is gone.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any, Protocol

import msgspec

from memoranda.app.folder_sync.scan import Skipped, sized, unreadable
from memoranda.app.folder_sync.sync import FolderSync, Synced
from memoranda.errors import InvalidInput, NotFound, QuotaExceeded
from memoranda.knowledge.checks import MAX_VALUE_CHARS
from memoranda.knowledge.sources import BlockingSource
from memoranda.knowledge.values import Attributes, FileState, NewStoreFile, StoreFile
from memoranda.store.paging import Listed
from memoranda.text.splitting import Chunking

PAGE = 100
AHEAD = 100
"""The most files that are uploaded and not yet indexed."""
SOONEST, LATEST, FEW = 0.02, 0.25, 4
"""Seconds between two checks of the files in progress, growing while more than a few are left or nothing changes."""
OURS = ("path", "sha256")
UNREADABLE = ("unsupported_file", "invalid_file")
"""Codes of failures that the same bytes would cause again."""


class Files(Protocol):
    """The methods of files that filing needs, of the library or of a running server."""

    def delete(self, id: str) -> int: ...


class Stores(Protocol):
    """The methods of vector stores that filing needs."""

    def attach(self, store_id: str, files: Sequence[NewStoreFile]) -> Sequence[StoreFile]: ...
    def upload(
        self,
        store_id: str,
        source: BlockingSource,
        filename: str | None = ...,
        *,
        attributes: Attributes | None = ...,
        chunking: Chunking | None = ...,
    ) -> StoreFile: ...
    def files(
        self,
        store_id: str,
        *,
        limit: int = ...,
        after: str | None = ...,
        order: str = ...,
        state: FileState | None = ...,
    ) -> Listed[StoreFile]: ...
    def file(self, store_id: str, file_id: str) -> StoreFile: ...
    def set_attributes(self, store_id: str, file_id: str, attributes: Attributes) -> StoreFile: ...


class Knowledge(Protocol):
    """Where the files go."""

    @property
    def files(self) -> Files: ...
    @property
    def stores(self) -> Stores: ...


class Failure(msgspec.Struct, frozen=True):
    """A file without chunks, and why. `code` is one of OpenAI's three, or `file_too_large`, `cancelled`, `gone`."""

    path: str
    file_id: str | None
    code: str
    message: str


class Filed(Synced):
    """The result of one filing. `chunks` are those of the files that were indexed now, `working` the files in
    progress."""

    working: int = 0
    replaced: int = 0
    failed: list[Failure] = msgspec.field(default_factory=list)
    notes: list[tuple[str, str]] = msgspec.field(default_factory=list)

    @property
    def settled(self) -> int:
        return self.unchanged + self.added + self.replaced + len(self.failed) + len(self.skipped)


class How(msgspec.Struct, frozen=True):
    """How files go into a store: `attributes` beside their path and hash; `chunking` other than the store's own;
    whether files that are gone are also removed from the store; whether files that could not be read are tried
    again."""

    attributes: Attributes = msgspec.field(default_factory=dict)
    chunking: Chunking | None = None
    prune: bool = False
    retry: bool = False


class Following(msgspec.Struct):
    """A file in progress: its path, and earlier versions, which are deleted once it is indexed."""

    path: str
    earlier: list[StoreFile]


class DocumentSync(FolderSync[Filed]):
    """Files in one vector store. A run raises NotFound if the store is gone."""

    skipped_stay = True

    def __init__(self, knowledge: Knowledge, store_id: str, how: How) -> None:
        super().__init__(Filed(), how.prune)
        self._knowledge = knowledge
        self._store = store_id
        self._how = how
        self._following: dict[str, Following] = {}
        self._wait, self._looked = SOONEST, time.monotonic()

    def _begin(self) -> None:
        self.stored, self.seen = defaultdict(list), set()
        for file in self._all():
            if all(isinstance(file.attributes.get(name), str) for name in OURS):
                self.stored[str(file.attributes["path"])].append(file)

    def _take(self, path: Path) -> None:
        try:
            self._index(path)
        except QuotaExceeded as exc:
            self.done.stopped = str(exc).removeprefix(f"{exc.field}: ")
        else:
            self._look(AHEAD)

    def _finish(self) -> None:
        self._look(0)
        if self.done.added or self.done.replaced:
            self._without_twins()

    def _settle(self, gone: Iterable[str]) -> None:
        for path in gone:
            self._drop(self.stored[path])
            self.done.removed += 1
            self._on_progress(self.done)

    def _without_twins(self) -> None:
        """Remove second copies of a file, which another run at the same time has indexed too: both keep the first."""
        first: set[tuple[str, ...]] = set()
        for file in list(self._all("completed")):
            version = tuple(str(file.attributes.get(name)) for name in OURS)
            if str(file.attributes.get("path")) not in self.seen:
                continue
            if version in first:
                self._drop([file])
                self.done.removed += 1
            first.add(version)

    # --- one file ----------------------------------------------------------------------------------

    def _index(self, path: Path) -> None:
        """Index a file unless the store has its current version."""
        key = name_of(path)
        self.seen.add(key)
        size = sized(path)
        if isinstance(size, Skipped):
            self.done.skipped.append(size)
            return
        try:
            with path.open("rb") as file:
                digest = file_digest(file, "sha256").hexdigest()
        except OSError as exc:
            self.done.skipped.append(unreadable(path, exc))
            return
        stored = self.stored.get(key, [])
        same = [
            version
            for version in stored
            if version.attributes["sha256"] == digest and self._split_alike(version)
        ]
        if same:
            self._keep(key, same[-1], [version for version in stored if version is not same[-1]])
        else:
            self._bring(path, key, digest, stored)

    def _split_alike(self, file: StoreFile) -> bool:
        return self._how.chunking in (None, file.chunking)

    def _keep(self, key: str, file: StoreFile, earlier: list[StoreFile]) -> None:
        """Keep a file that the store has: up to date, in progress, or to be tried again."""
        wanted = {**file.attributes, **self._how.attributes}
        if wanted != file.attributes:
            self._knowledge.stores.set_attributes(self._store, file.id, wanted)
        if file.status == "completed":
            self.done.unchanged += 1
            copies = [one for one in earlier if one.attributes["sha256"] == file.attributes["sha256"]]
            self.done.removed += len(copies)
            self._drop(earlier)
            return
        if not self._how.retry and file.last_error is not None and file.last_error.code in UNREADABLE:
            self._ended(file, Following(key, earlier))
            return
        if file.status != "in_progress":
            new = NewStoreFile(file_id=file.id, attributes=wanted, chunking=file.chunking)
            self._knowledge.stores.attach(self._store, [new])
        self._following[file.id] = Following(key, earlier)

    def _bring(self, path: Path, key: str, digest: str, earlier: list[StoreFile]) -> None:
        """Upload the file and attach it."""
        before = earlier[-1].attributes if earlier else {}
        attributes: Attributes = {**before, **self._how.attributes, "path": key, "sha256": digest}
        try:
            file = self._upload(path, attributes, earlier)
        except QuotaExceeded as exc:
            if exc.quota != "max_file_bytes":
                raise
            self.done.failed.append(Failure(str(path), None, "file_too_large", str(exc)))
        except InvalidInput as exc:
            if exc.field != "source":
                raise
            self.done.skipped.append(Skipped(path, "went away meanwhile", unreadable=True))
        else:
            self._following[file.id] = Following(key, earlier)

    def _upload(self, path: Path, attributes: Attributes, earlier: Sequence[StoreFile]) -> StoreFile:
        stores, name, how = self._knowledge.stores, safe(path.name), self._how
        try:
            return stores.upload(self._store, path, name, attributes=attributes, chunking=how.chunking)
        except QuotaExceeded as exc:
            if exc.quota != "max_files_per_store" or not earlier:
                raise
            self._drop(earlier)  # a full store cannot have both
            return stores.upload(self._store, path, name, attributes=attributes, chunking=how.chunking)

    def _drop(self, files: Sequence[StoreFile]) -> None:
        for file in files:
            with suppress(NotFound):  # deleted meanwhile, which is the aim
                self._knowledge.files.delete(file.id)

    # --- what becomes of them ----------------------------------------------------------------------

    def _look(self, most: int) -> None:
        """Report the progress of pending files, and wait while there are more than `most` of them."""
        while True:
            if time.monotonic() - self._looked >= self._wait:
                before = len(self._following)
                self._check()
                ending = len(self._following) < min(before, FEW)
                self._wait = SOONEST if ending else min(LATEST, 2 * self._wait)
                self._looked = time.monotonic()
            self.done.working = len(self._following)
            self._on_progress(self.done)
            if len(self._following) <= most:
                return
            time.sleep(self._wait)

    def _check(self) -> None:
        if not self._following:
            return
        working = {item.id for item in self._all("in_progress")}
        for id_ in [id_ for id_ in self._following if id_ not in working]:
            try:
                now = self._knowledge.stores.file(self._store, id_)
            except NotFound:
                item = self._following.pop(id_)
                self.done.failed.append(
                    Failure(item.path, id_, "gone", "was taken out of the store meanwhile")
                )
                continue
            if now.status != "in_progress":
                self._ended(now, self._following.pop(id_))

    def _ended(self, now: StoreFile, followed: Following) -> None:
        if now.status == "completed":
            self.done.added += not followed.earlier
            self.done.replaced += bool(followed.earlier)
            self.done.chunks += now.chunk_count
            self.done.notes += [(followed.path, note) for note in now.notes]
            self._drop(followed.earlier)
            return
        code: str = now.status
        message = "was cancelled; index it again"
        if now.last_error is not None:
            code, message = now.last_error.code, now.last_error.message
        self.done.failed.append(Failure(followed.path, now.id, code, message))
        self._drop([earlier for earlier in followed.earlier if earlier.status != "completed"])

    def _all(self, state: FileState | None = None) -> Iterator[StoreFile]:
        after = None
        while True:
            page = self._knowledge.stores.files(
                self._store, limit=PAGE, after=after, order="asc", state=state
            )
            yield from page.data
            if not page.has_more:
                return
            after = page.last_id


def safe(text: str) -> str:
    """Return a name as text: bytes that are not UTF-8 become question marks."""
    return os.fsencode(text).decode("utf-8", "replace")


def name_of(path: Path) -> str:
    """Return the attribute of a path: the path itself, or a hash and its end if it is not UTF-8 or longer than an
    attribute may be. (Such a file is never reported as gone.)"""
    text = str(path)
    plain = safe(text)
    if plain == text and len(text) <= MAX_VALUE_CHARS:
        return text
    mark = blake2b(os.fsencode(text), digest_size=6).hexdigest()
    return f"{mark}…{plain[-(MAX_VALUE_CHARS - len(mark) - 1) :]}"


def summary(done: Filed) -> dict[str, Any]:
    """Return the result of a filing in its JSON form."""
    return {
        "files": done.settled - len(done.skipped),
        "unchanged": done.unchanged,
        "added": done.added,
        "replaced": done.replaced,
        "removed": done.removed,
        "chunks": done.chunks,
        "failed": [
            {"path": item.path, "file_id": item.file_id, "code": item.code, "message": item.message}
            for item in done.failed
        ],
        "gone": done.gone,
        "stopped": done.stopped,
        "skipped": [{"path": safe(str(item.path)), "reason": item.reason} for item in done.skipped],
        "notes": [{"path": path, "note": note} for path, note in done.notes],
    }
