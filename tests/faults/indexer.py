"""A process that fills vector stores from a folder, slowly, until it is killed; and what must hold afterwards.

`python indexer.py fill DATA SOURCES SEED SETTINGS [DATABASE_URL]` opens DATA, says `ready`, and puts every file of
SOURCES into the store `library`, each by its name once, while it makes, fills and deletes other stores. `python
indexer.py work ...` only does the jobs. `python indexer.py serve SETTINGS` is `memoranda serve` with the slow model.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from operator import not_
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

import memoranda
from memoranda.app.blocking import BlockingMemoranda
from memoranda.config import load
from memoranda.filters import Compare
from memoranda.knowledge import pipeline
from memoranda.knowledge.expiry import Expiry
from memoranda.providers.embeddings.base import Embedded, Task
from memoranda.providers.embeddings.hash import HashEmbedder
from memoranda.server.serve import serve
from support.waiting import SECONDS, until

TESTS = str(Path(__file__).parents[1])
"""Where a process of this file finds `support`."""
LIBRARY = "library"
LARGE = "large.txt"
MARK = "INDEXER_LIFE"
"""Stands in the environment of a life's processes, so that what outlives it is known."""
SETTINGS: dict[str, Any] = {
    "embedder": {"url": "hash:64"},
    "knowledge": {"chunk_size": 40, "chunk_overlap": 8},
    "readers": {"seconds": 20},
    "jobs": {"max_attempts": 1_000},
}
TEXT_SECONDS = float(os.environ.get("INDEXER_TEXT_SECONDS", "0.0004"))
DAMAGED = b"%PDF-1.4\n1 0 obj << /Type /Catalog >> endobj\ntrailer << >>\nstartxref\n9\n%%EOF"
UNDER_WAY = "SELECT kind, state, error FROM jobs WHERE state IN ('queued', 'running')"
CHUNKS = (
    "SELECT c.idx, c.start, c.stop, c.tokens, c.page, c.last_page, c.heading, m.content FROM store_files s"
    " JOIN chunks c ON c.tenant_id = s.tenant_id AND c.attached = s.seq"
    " JOIN memories m ON m.tenant_id = c.tenant_id AND m.seq = c.seq"
    " WHERE s.store_id = ? AND s.file_id = ? ORDER BY c.idx"
)


# --- what is indexed -------------------------------------------------------------------------------


def write_sources(folder: Path, docs: Path) -> None:
    """About sixty files: plain, Markdown, HTML, PDF when `docs` is there, one of over a thousand chunks, and some that
    hold no text."""
    rng = random.Random(7)
    folder.mkdir()

    def words(count: int) -> str:
        return " ".join(f"w{rng.randrange(5_000)}" for _ in range(count))

    for n in range(24):
        (folder / f"plain{n}.txt").write_text("\n\n".join(words(rng.randrange(5, 90)) for _ in range(5)))
    for n in range(16):
        sections = "".join(f"# Part {at}\n\n{words(60)}\n\n## Below\n\n{words(40)}\n\n" for at in range(3))
        (folder / f"marked{n}.md").write_text(f"{sections}Grüße № {n} 語\n")
    for n in range(10 if (Path(memoranda.__file__).parent / "readers/html.py").exists() else 0):
        body = "".join(f"<h2>Head {at}</h2><p>{words(50)}</p>" for at in range(4))
        (folder / f"page{n}.html").write_text(f"<html><title>Page {n}</title><body>{body}</body></html>")
    (folder / LARGE).write_text("\n".join(words(14) for _ in range(1_000)))
    (folder / "empty.txt").write_bytes(b"")
    (folder / "blank.md").write_text(" \n\t\n")
    (folder / "damaged.pdf").write_bytes(DAMAGED)
    (folder / "noise.bin").write_bytes(rng.randbytes(5_000))
    (folder / "cut.docx").write_bytes(b"PK\x03\x04" + rng.randbytes(500))
    for path in sorted((docs / "pdf").glob("*.pdf"), key=lambda path: path.stat().st_size)[-60::20]:
        if path.stat().st_size < 200_000:
            (folder / path.name).write_bytes(path.read_bytes())


def fill(opened: BlockingMemoranda, sources: Path, rng: random.Random) -> str:
    """Puts the files that are not there yet into the library, whose id is returned; some in one step, some in two."""
    knowledge = opened.knowledge
    stores = {one.name: one.id for one in knowledge.stores.list(limit=100).data}
    library = stores.get(LIBRARY) or knowledge.stores.create(name=LIBRARY).id
    uploaded = {one.filename: one.id for one in knowledge.files.list().data}
    attached = {one.filename for one in every_file(opened, library)}
    paths = sorted(sources.iterdir())
    rng.shuffle(paths)
    paths.sort(key=lambda path: path.name != LARGE)  # so that it is often met half written
    for path in paths:
        if path.name in attached:
            continue
        if path.name in uploaded:
            knowledge.stores.attach(library, [uploaded[path.name]])
        elif rng.random() < 0.5:
            knowledge.stores.upload(library, path)
        else:
            knowledge.stores.attach(library, [knowledge.files.upload(path).id])
    return library


def pass_by(opened: BlockingMemoranda, rng: random.Random) -> None:
    """A store of some files that goes again while they are indexed."""
    knowledge = opened.knowledge
    ids = [one.id for one in knowledge.files.list(limit=50).data]
    store = knowledge.stores.create(name="passing", file_ids=rng.sample(ids, min(len(ids), 12))).id
    time.sleep(rng.random() * 2.0)
    for one in knowledge.stores.files(store, limit=3).data:
        knowledge.stores.detach(store, one.id)
    knowledge.stores.delete(store)


def every_file(opened: BlockingMemoranda, store: str) -> Iterator[Any]:
    """The files of a store, page by page."""
    after = None
    while True:
        page = opened.knowledge.stores.files(store, limit=100, after=after)
        yield from page.data
        if not page.has_more:
            return
        after = page.last_id


# --- what must hold --------------------------------------------------------------------------------


class Held(NamedTuple):
    """A file as the library has it, whoever indexed it and however often."""

    status: str
    error: tuple[str, str] | None
    title: str | None
    usage: int
    chunks: list[tuple[Any, ...]]


def rows(opened: BlockingMemoranda, sql: str, *params: Any) -> list[tuple[Any, ...]]:
    """Rows of the database."""
    return opened.inner.core.store.db.read(lambda c: c.select(sql, list(params)))


def settle(opened: BlockingMemoranda) -> None:
    """Waits until no work is under way."""
    until(lambda: rows(opened, UNDER_WAY), "no work under way", accept=not_)


def held(opened: BlockingMemoranda, library: str) -> dict[str, Held]:
    """The files of the library by name; a name that is there twice is an error."""
    found: dict[str, Held] = {}
    for one in every_file(opened, library):
        assert one.filename not in found, f"{one.filename} is there twice"
        error = None if one.last_error is None else (one.last_error.code, one.last_error.message)
        chunks = rows(opened, CHUNKS, library, one.id)
        assert len(chunks) == one.chunk_count, one.filename
        found[one.filename] = Held(one.status, error, one.title, one.usage_bytes, chunks)
    return found


def check_whole(found: dict[str, Held], sources: Path) -> None:
    """Every file is completed with chunks that cover its text, or failed with a reason and has none."""
    assert set(found) == {path.name for path in sources.iterdir()}
    for name, one in found.items():
        assert [chunk[0] for chunk in one.chunks] == list(range(len(one.chunks))), name
        if one.status == "failed":
            assert one.error is not None, name
            assert (one.chunks, bool(one.error[1])) == ([], True), name
            continue
        assert (one.status, one.error) == ("completed", None), name
        assert one.chunks, name
        if name.endswith(".txt"):
            text, covered = (sources / name).read_text(), set[int]()
            for _, start, stop, *_, content in one.chunks:
                assert text[start:stop] == content, name
                covered.update(range(start, stop))
            assert all(at in covered or text[at].isspace() for at in range(len(text))), name


def check_nothing_else(opened: BlockingMemoranda, library: str) -> None:
    """Rows, vectors, words and bytes are those of the library's files and no others."""
    core = opened.inner.core
    opened.portal.call(Expiry(opened.inner.core).sweep(-10.0))
    settle(opened)
    assert rows(opened, "SELECT * FROM removing") == []
    chunks = rows(opened, "SELECT seq, attached FROM chunks ORDER BY seq")
    searched = "COALESCE(header, '') || content"  # the first chunk of a file is embedded under its name
    stored = rows(
        opened, f"SELECT seq, {searched}, channel_id FROM memories WHERE kind = 'chunk' ORDER BY seq"
    )
    vectors = dict(rows(opened, "SELECT seq, vector FROM embeddings"))
    assert [seq for seq, _ in chunks] == [seq for seq, _, _ in stored] == sorted(vectors)
    assert {channel for _, _, channel in stored} <= {library}
    known = {seq for (seq,) in rows(opened, "SELECT seq FROM store_files WHERE status = 'completed'")}
    assert {attached for _, attached in chunks} == known
    assert core.store.index.count("default") == core.store.words.count("default") == len(chunks)
    check_vectors(core.store.index, stored, vectors)
    files = {id_ for (id_,) in rows(opened, "SELECT id FROM files")}
    assert {id_ for _, id_ in core.blobs.stored(-10.0)} == files
    assert {id_ for (id_,) in rows(opened, "SELECT file_id FROM store_files")} == files


def check_vectors(index: Any, stored: list[tuple[Any, ...]], vectors: dict[int, Any]) -> None:
    """Some chunks' vectors are those of their texts, in the rows and in the index."""
    for seq, content, _ in random.Random(1).sample(stored, min(len(stored), 40)):
        wanted = HashEmbedder(64, 1).compute([content], "document").vectors[0]
        assert np.allclose(np.frombuffer(vectors[seq], "<f4"), wanted, atol=1e-6)
        near = index.search("default", wanted, 1, Compare("$seq", "eq", seq))
        assert near.seqs.tolist() == [seq]
        assert abs(near.scores[0] - 1.0) < 1e-3


def check(opened: BlockingMemoranda, sources: Path, rng: random.Random) -> dict[str, Held]:
    """Lets what was begun come to its end, then holds the folder against its sources."""
    library = fill(opened, sources, rng)
    for one in opened.knowledge.stores.list(limit=100).data:
        if one.id != library:
            opened.knowledge.stores.delete(one.id)
    settle(opened)
    found = held(opened, library)
    check_whole(found, sources)
    check_nothing_else(opened, library)
    return found


# --- lives -----------------------------------------------------------------------------------------


class Life:
    """This file as a process, with everything it starts known by a mark."""

    def __init__(self, log: Path, *words: str, program: Path = Path(__file__), **environment: str) -> None:
        self.mark = f"{os.getpid()}-{random.randrange(1 << 60):x}"
        with log.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, str(program), *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                bufsize=0,
                stderr=said,
                env={
                    **os.environ,
                    "PYTHONPATH": TESTS,
                    **environment,
                    MARK: self.mark,
                    "MEMORANDA_CONFIG": "",
                },
            )
        self.log = log

    def ready(self) -> str:
        """Waits for its first line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode().strip()
        assert line, f"ended by itself: {self.log.read_text()}"
        return line

    def steps(self, count: int, seconds: float = 10.0) -> int:
        """Waits until it has told of so many steps of its work, or of none for some seconds; how many."""
        assert self.process.stdout is not None
        for step in range(count):
            if not select.select([self.process.stdout], [], [], seconds)[0]:
                return step
            if not os.read(self.process.stdout.fileno(), 1):
                return step
        return count

    def end(self, how: int = signal.SIGKILL) -> int:
        """Sends the signal; its exit status."""
        with suppress(ProcessLookupError):
            self.process.send_signal(how)
        status = self.process.wait(SECONDS)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return status

    def left(self) -> list[int]:
        """The processes of this life that are there now."""
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self._marked(pid)]

    def _marked(self, pid: int) -> bool:
        with suppress(OSError):
            if f"{MARK}={self.mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes():
                return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        return False

    def readers(self) -> list[int]:
        """Its processes that read documents."""
        return [pid for pid in self.left() if pid != self.process.pid]

    def gone(self) -> None:
        """Waits until nothing of it is left, for half as long as a reader without work would stay."""
        until(self.left, "the end of its processes", 30, accept=not_, every=0.05)


@contextmanager
def living(log: Path, *words: str, **more: Any) -> Iterator[Life]:
    """A life that is over at the end, whatever happens."""
    life = Life(log, *words, **more)
    try:
        yield life
    finally:
        life.end()


@contextmanager
def connected(folder: Path) -> Iterator[Any]:
    """The rows of a folder that nobody has open."""
    with closing(sqlite3.connect(folder / "memoranda.db")) as raw:
        yield raw


# --- this file as a process ------------------------------------------------------------------------


def slow_model(rng: random.Random) -> None:
    """The hash embedder takes its time from here on."""
    real = HashEmbedder.embed

    async def embed(self: HashEmbedder, texts: Any, task: Task = "document") -> Embedded:
        if task == "document":
            await asyncio.sleep(rng.random() * 0.03 + len(texts) * TEXT_SECONDS)
        return await real(self, texts, task)

    HashEmbedder.embed = embed  # type: ignore[assignment, method-assign]


def tell_steps(core: Any, rng: random.Random) -> None:
    """A byte to standard output whenever a step of indexing begins or ends; the indexes take their time."""

    def told(real: Callable[..., Any]) -> Callable[..., Any]:
        async def handler(run: Any) -> Any:
            os.write(1, b".")
            try:
                return await real(run)
            finally:
                os.write(1, b".")

        return handler

    def slow(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            os.write(1, b".")
            time.sleep(rng.random() * 0.01)
            made = real(*args)
            time.sleep(rng.random() * 0.01)
            return made

        return call

    kind = core.jobs.kinds["knowledge.index"]
    core.jobs.kinds["knowledge.index"] = replace(kind, handler=told(kind.handler))
    for part in (core.store.index, core.store.words):
        if not part.inside:
            part.put, part.remove = slow(part.put), slow(part.remove)


def main() -> None:
    what, *rest = sys.argv[1:]
    if what == "serve":
        slow_model(random.Random(1))
        serve(load(env={}, overrides=json.loads(rest[0])), started=lambda url: print(url, flush=True))
        return
    data, sources, seed, given, *url = rest
    rng = random.Random(int(seed))
    slow_model(random.Random(int(seed) + 1))
    beside = {"database": {"url": url[0]}} if url else {}
    settings = {**SETTINGS, "jobs": {**SETTINGS["jobs"], "lease_seconds": 2}, **beside, **json.loads(given)}
    opened = memoranda.open(data, **settings)
    pipeline.BATCH = 60
    tell_steps(opened.inner.core, rng)
    print("ready", flush=True)
    if what == "fill":
        fill(opened, Path(sources), rng)
        while True:
            pass_by(opened, rng)
    time.sleep(600)


if __name__ == "__main__":
    main()
