"""The committed part of a tantivy keyword index: documents in segment files, one writer, snapshots to search."""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tantivy import (
    Document,
    Index,
    IndexWriter,
    Query,
    Schema,
    SchemaBuilder,
    Searcher,
    TextAnalyzerBuilder,
    Tokenizer,
)

from memoranda.errors import IndexUnavailable
from memoranda.indexes.keyword.files import (
    Checkpoint,
    alive,
    check_unlocked,
    damage,
    listed_segments,
    read_checkpoint,
    remove_unnamed,
    write_checkpoint,
)
from memoranda.indexes.keyword.owned import owned
from memoranda.indexes.keyword.tail import Key, TailDoc
from memoranda.storage.attributes import indexed
from memoranda.storage.durable import sync_folder
from memoranda.text.analysis import STAMP
from memoranda.text.terms import encodable

logger = logging.getLogger(__name__)

FORMAT = f"tantivy 0.27, rows 2, {STAMP}"
WRITER_BYTES = 32_000_000
PAGE = 20_000
NO_TAG = "none"
"""A tag that no document has: the first letters of tags are others."""
REMOVALS, REMOVAL_PAUSE = 50, 0.02
"""Attempts to remove the folder of an index, and the seconds between two."""
COMPACT = json.JSONEncoder(separators=(",", ":"))


@contextmanager
def available(doing: str) -> Iterator[None]:
    """Engine errors raised inside leave as IndexUnavailable; that a writer could not be opened again, too."""
    try:
        yield
    except (ValueError, OSError, RuntimeError) as exc:
        raise IndexUnavailable(f"The word index failed while {doing}: {exc}") from exc


def documents(searcher: Searcher, query: Query) -> int:
    """Return the number of documents that match."""
    result: Any = searcher.search(query, 1, count=True)
    return int(result.count)


def id_tag(key: Key) -> str:
    """The term only the document of this key carries."""
    return f"i{key[1]}:{encodable(key[0])}"


def tenant_tag(tenant: str) -> str:
    """The term every document of the tenant carries."""
    return f"t{encodable(tenant)}"


def _schema() -> Schema:
    build = SchemaBuilder()
    build.add_text_field("text", tokenizer_name="terms", index_option="freq")
    build.add_text_field("tag", tokenizer_name="raw", index_option="basic")
    build.add_json_field("num", fast=True, tokenizer_name="raw", index_option="basic")
    # Signed: an unsigned fast field ends the writer's thread in tantivy-py 0.27.
    build.add_integer_field("seq", fast=True)
    build.add_bytes_field("row", stored=True)
    return build.build()


class Segments:
    """An index in `folder`, opened or created. The caller allows one thread to write at a time.

    The row is stored beside its terms, so that segments with removed words can be rewritten from their remaining rows.

    Raises:
        IndexUnavailable: another process writes the folder, or it cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / "segments"
        self._checkpoint = folder / "checkpoint"
        self._untouched = False
        """True if nothing was written since it started empty."""
        with available("opening"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                fault = self._try_open()
            except ValueError as exc:
                if "lock" in str(exc).lower():
                    raise
                fault = str(exc)
            if fault is not None:
                self._start_empty(fault)

    def _try_open(self) -> str | None:
        """Open the existing index; return the fault if it cannot be used."""
        checkpoint = read_checkpoint(self._checkpoint)
        if checkpoint is None:
            return "its checkpoint is missing or damaged" if self._path.exists() else ""
        if checkpoint.stamp != FORMAT:
            return f"it was built as {checkpoint.stamp!r}, not {FORMAT!r}"
        fault = damage(self._path)
        if fault is not None:
            return fault
        remove_unnamed(self._path, deletes_only=False)
        self._open()
        if documents(self.searcher, Query.all_query()) != self.searcher.num_docs:
            self.writer.wait_merging_threads()
            return "its document counts disagree"
        self.watermark = checkpoint.rev
        return None

    def _start_empty(self, fault: str) -> None:
        if fault:
            logger.warning(
                "word index in %s starts empty, to be filled from the rows: %s", self.folder, fault
            )
        if self._path.exists():
            check_unlocked(self._path)
            self._checkpoint.unlink(missing_ok=True)
            remove_folder(self._path)
        self._path.mkdir()
        self._open()
        self.checkpoint(0)
        self._untouched = True

    def _open(self) -> None:
        self.index = Index(_schema(), str(self._path))
        self.index.register_tokenizer("terms", TextAnalyzerBuilder(Tokenizer.whitespace()).build())
        self.index.config_reader("manual")
        self._open_writer()
        self._reload()

    def _open_writer(self) -> None:
        """Open a writer, and begin with a deletion that matches nothing.

        The first operation of a writer repeats the stamp of the last commit. A merge that starts before the next commit
        takes such a deletion for one that is in its segments, so the document would stay (tantivy 0.27).
        """
        self.writer: IndexWriter = self.index.writer(WRITER_BYTES, 1)
        self.writer.delete_documents_by_term("tag", NO_TAG)

    def _reload(self) -> None:
        self.index.reload()
        self.searcher: Searcher = self.index.searcher()

    def apply(self, changes: Iterable[tuple[Key, TailDoc | None]], careful: bool) -> None:
        """Pass changes to the writer; with `careful`, fresh documents are deleted before they are added, too."""
        self._untouched = False
        with available("adding documents"):
            for key, doc in changes:
                if doc is None or careful or not doc.fresh:
                    self.writer.delete_documents_by_term("tag", id_tag(key))
                if doc is not None:
                    self.writer.add_document(_document(doc))

    def commit(self) -> None:
        """Make the applied changes durable, and `searcher` a snapshot that has them."""
        with available("committing"):
            self.writer.commit()
            self._reload()

    def checkpoint(self, rev: int) -> None:
        """Record durably that every change up to `rev` is committed."""
        self._untouched = False
        with available("writing its checkpoint"):
            write_checkpoint(self._checkpoint, Checkpoint(rev, FORMAT))
        self.watermark = rev

    def revive(self) -> None:
        """After a failed commit, open a new writer on the last committed state."""
        with available("reopening"):
            self.settle()
            self._reload()

    def settle(self) -> None:
        """Wait until no merge runs, then open a new writer."""
        self._end_writer()
        remove_unnamed(self._path, deletes_only=True)
        self._open_writer()

    def _end_writer(self) -> None:
        with suppress(ValueError, RuntimeError):  # a writer that died cannot be waited for
            self.writer.wait_merging_threads()

    def purge(self) -> None:
        """Rewrite segments with deleted documents, until no file has a word of one.

        Takes about 45 us of CPU per document left in those segments.
        """
        with available("purging"):
            for _ in range(4):
                self.settle()
                self._reload()
                dirty = self._dirty()
                if not dirty:
                    break
                self._rewrite(dirty)
                self.commit()
            self.settle()
            self._reload()
            self.writer.garbage_collect_files()
            self._reload()
            sync_folder(self._path)
            if self._dirty():
                raise ValueError("deleted documents are still in the index; compact again")

    def leftovers(self) -> list[str]:
        """Return the files of removed segments; a running search keeps them until it ends."""
        with available("collecting files"):
            self.writer.garbage_collect_files()
            live = {segment["segment_id"].replace("-", "") for segment in listed_segments(self._path)}
        files = (path.name for path in self._path.iterdir() if path.suffix and path.name[0] != ".")
        return [name for name in files if name != "meta.json" and name.split(".")[0] not in live]

    def _dirty(self) -> set[int]:
        """Return the ordinals of segments with deleted documents; all ordinals if they cannot be identified."""
        segments = listed_segments(self._path)
        if not any(segment["deletes"] for segment in segments):
            return set()
        living = Counter(address.segment_ord for page in self._pages() for address in page)
        expected = [alive(segment) for segment in segments]
        if any(living[i] != count for i, count in enumerate(expected)):
            return set(range(len(segments)))
        return {i for i, segment in enumerate(segments) if segment["deletes"]}

    def _pages(self) -> Iterator[list[Any]]:
        for offset in range(0, self.searcher.num_docs, PAGE):
            hits = self.searcher.search(Query.all_query(), PAGE, count=False, offset=offset).hits
            yield [address for _, address in hits]

    def _rewrite(self, dirty: set[int]) -> None:
        for page in self._pages():
            for address in page:
                if address.segment_ord in dirty:
                    doc = stored_row(self.searcher.doc(address))
                    self.apply([((doc.tenant, doc.seq), doc)], careful=True)

    def clear(self) -> None:
        """Drop everything and start again with watermark 0."""
        if self._untouched:
            return
        with available("clearing"):
            self._end_writer()
            self._start_empty("")

    def close(self) -> None:
        """Wait for merges and close the folder."""
        with available("closing"):
            self.writer.wait_merging_threads()


def remove_folder(path: Path) -> None:
    """Remove a folder with its files. The end of a merge, which nothing waits for, may write one more meanwhile."""
    for attempt in range(1, REMOVALS + 1):
        try:
            shutil.rmtree(path)
        except OSError:
            if attempt == REMOVALS:
                raise
            time.sleep(REMOVAL_PAUSE)
        if not path.exists():
            return


def _document(doc: TailDoc) -> Document:
    marks = indexed(doc.attributes)
    document = Document()
    document.add_text("text", owned(doc.tenant, doc.text))
    document.add_text("tag", id_tag((doc.tenant, doc.seq)))
    document.add_text("tag", tenant_tag(doc.tenant))
    for tag in marks.tags:
        document.add_text("tag", tag)
    if marks.numbers:
        document.add_json("num", marks.numbers)
    document.add_integer("seq", doc.seq)
    document.add_bytes("row", _stored(doc))
    return document


def _stored(doc: TailDoc) -> bytes:
    head = COMPACT.encode([doc.tenant, doc.seq, doc.attributes])
    return head.encode() + b"\n" + encodable(doc.text).encode()


def stored_row(document: Document) -> TailDoc:
    """Return the stored document."""
    head, _, text = bytes(document["row"][0]).partition(b"\n")
    tenant, seq, attributes = json.loads(head)
    return TailDoc(tenant, seq, text.decode(), attributes, fresh=False)
