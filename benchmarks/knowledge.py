"""What documents cost: indexed, searched over HTTP, searched while others are indexed, and in memory.

    python benchmarks/knowledge.py [--only pipeline search busy memory peers] [--embedder URL ...] [--files N]
        [--chunks N] [--rounds N] [--seconds S] [--pages N] [--corpus corpus.jsonl]

Documents are markdown files of 1 to 20 chunks: abstracts of `--corpus` (lines of JSON with a `text`), or words drawn
by Zipf's law. Every part takes what it compares in turns, in one run, and says how busy the machine was.

pipeline  chunks a second, from files that are attached to files that are completed, beside the embedder alone, which is
          given the texts of all chunks at once, cut to its window as the product cuts them. CPU time is that of
          all processes.
search    wall time of searches over HTTP in a store of `--chunks` chunks, each question new, and of embedding the
          same questions. Chunks of 100 tokens, a file of a hundred chunks each.
busy      wall time of searches over HTTP, one every 20 ms, while nothing else happens and while files are indexed.
memory    what server and readers hold at most while one long PDF is indexed.
peers     documents a second into a store on disk, see `knowledge_peers.py`; not one of the default parts.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import random
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import memoranda
from growth import LANGUAGE
from memoranda import Memoranda
from memoranda.client import Client
from memoranda.knowledge.values import NewStoreFile
from memoranda.providers.embeddings import open_embedder
from memoranda.text.splitting import Chunking
from reading import made_pdf

WARM = 30
LINES = 206
"""Lines of made-up text in a hundred chunks of 100 tokens."""
PAUSE = 0.02
"""Seconds between two searches of a client that does not press."""
PARTS = ("pipeline", "search", "busy", "memory")
ROOM = {"max_files_per_store": 100_000, "max_storage_bytes": 1 << 40}


# --- documents -----------------------------------------------------------------------------------------


class Documents:
    """Texts to index, always the same: of real abstracts where there are some, else of made-up words."""

    def __init__(self, corpus: Path | None) -> None:
        self.paragraphs: list[str] = []
        if corpus is not None:
            with corpus.open(encoding="utf-8") as lines:
                self.paragraphs = [json.loads(line)["text"] for line in lines]

    def paragraph(self, i: int) -> str:
        """About 300 tokens, unlike any other."""
        if self.paragraphs:
            return f"{self.paragraphs[i % len(self.paragraphs)]} ({i})"
        return "\n".join(f"{LANGUAGE.text(8 * i + line)}." for line in range(8))

    def file(self, i: int) -> str:
        """Markdown of 1 to 20 chunks of 512 tokens, as many small ones as large ones on a scale of logarithms."""
        draw = random.Random(i)
        many = max(1, round(20 ** draw.random() * 1.5))
        return "\n\n".join(
            [f"# Document {i}", *(f"## Part {j}\n\n{self.paragraph(100 * i + j)}" for j in range(many))]
        )

    def write(self, folder: Path, files: int) -> list[Path]:
        """Writes so many files."""
        folder.mkdir()
        paths = [folder / f"document-{i:05}.md" for i in range(files)]
        for i, path in enumerate(paths):
            path.write_text(self.file(i), encoding="utf-8")
        return paths

    def question(self, i: int) -> str:
        """Some words of a document, not the same twice."""
        if not self.paragraphs:
            return f"{LANGUAGE.question(i)} {i}"
        draw = random.Random(-i)
        words = draw.choice(self.paragraphs).split()
        at = draw.randrange(max(1, len(words) - 8))
        return f"{' '.join(words[at : at + 8])} {i}"


# --- what is watched -----------------------------------------------------------------------------------


def below(pid: int) -> list[int]:
    """The processes that this one has started, and those that they have."""
    found = []
    with contextlib.suppress(OSError):  # it ended meanwhile
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *below(int(child))]
    return found


def cpu_seconds() -> float:
    """CPU seconds of this process so far, and of those below it, ended or not."""
    used = sum(os.times()[:4])
    for pid in below(os.getpid()):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


class Watch:
    """The most that a process and those below it hold together, looked at every 20 ms on a thread."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.most = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            self.most = max(self.most, sum(resident(pid) for pid in [self.pid, *below(self.pid)]))


def resident(pid: int) -> int:
    """Bytes that a process holds; what it shares with others counts for each."""
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def load() -> str:
    """How busy the machine was in the last minute."""
    return f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints a table, the first column to the left."""
    print("\n| " + " | ".join(head) + " |\n|---|" + "--:|" * (len(head) - 1))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print(f"\nLoad afterwards: {load()}.", flush=True)


def ms(seconds: Sequence[float], percentile: float) -> float:
    """Milliseconds."""
    return float(np.percentile(np.array(seconds), percentile)) * 1e3


# --- a server of its own -------------------------------------------------------------------------------


class Served:
    """`memoranda serve` on a folder, in a process of its own."""

    def __init__(self, folder: Path, embedder: str) -> None:
        self.log = folder.with_suffix(".log")
        command = [sys.executable, "-m", "memoranda", "serve", "--port", "0", "--data", str(folder)]
        sets = {"embedder.url": embedder, **{f"quotas.{name}": value for name, value in ROOM.items()}}
        command += [word for name, value in sets.items() for word in ("--set", f"{name}={value}")]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        self.url = self._url()

    def _url(self) -> str:
        while self.process.poll() is None:
            said = self.log.read_text()
            if said.startswith("Memoranda serves"):
                return "http://" + said.split("\n")[0].split("http://")[1].strip()
            time.sleep(0.05)
        raise SystemExit(self.log.read_text())

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


class Asking:
    """Searches over one connection that stays open."""

    def __init__(self, url: str, store: str) -> None:
        self._http = http.client.HTTPConnection(url.removeprefix("http://"))
        self._path = f"/v1/vector_stores/{store}/search"

    def __call__(self, question: str, filters: dict[str, Any] | None = None) -> float:
        """Seconds of one search."""
        body = json.dumps({"query": question, "max_num_results": 10, "filters": filters})
        began = time.perf_counter()
        self._http.request("POST", self._path, body, {"content-type": "application/json"})
        answer = self._http.getresponse()
        held = answer.read()
        spent = time.perf_counter() - began
        assert answer.status == 200, held
        return spent


@contextlib.contextmanager
def temporary() -> Iterator[Path]:
    """A folder that goes."""
    place = Path(tempfile.mkdtemp(prefix="knowledge-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


# --- the pipeline --------------------------------------------------------------------------------------


@dataclass
class Round:
    """One indexing of all files beside the embedder alone: chunks and the windows of text that they are embedded in,
    seconds, and CPU seconds of each."""

    chunks: int
    windows: int
    product: float
    product_cpu: float
    alone: float
    alone_cpu: float


async def indexed(folder: Path, paths: Sequence[Path], embedder: str) -> tuple[list[str], float, float]:
    """Indexes all files into a new folder: the texts of the chunks, seconds, CPU seconds."""
    async with await Memoranda.open(folder, embedder={"url": embedder}, quotas=ROOM) as rc:
        files, stores = rc.knowledge.files, rc.knowledge.stores
        await rc.core.embedder.embed(["warm"])
        first = await stores.create(name="warm")
        await asyncio.gather(*(stores.upload(first.id, b"warm", f"{i}.txt") for i in range(4)))
        await stores.wait(first.id)
        store = await stores.create(name="documents")
        held = [NewStoreFile(file_id=(await files.upload(path)).id) for path in paths]
        began, used = time.perf_counter(), cpu_seconds()
        for at in range(0, len(held), 500):
            await stores.attach(store.id, held[at : at + 500])
        while (now := await stores.get(store.id)).file_counts.in_progress:
            await asyncio.sleep(0.05)
        spent, used = time.perf_counter() - began, cpu_seconds() - used
        assert now.file_counts.completed == len(paths), now.file_counts
    with contextlib.closing(sqlite3.connect(folder / "memoranda.db")) as db:
        rows = db.execute("SELECT content FROM memories WHERE channel_id = ? ORDER BY seq", [store.id])
        return [text for (text,) in rows], spent, used


async def alone(texts: Sequence[str], url: str) -> tuple[int, float, float]:
    """Windows that the texts are embedded in, seconds and CPU seconds of embedding them."""
    embedder = open_embedder(url)
    await embedder.embed(["warm"])
    windows = [text[span.start : span.end] for text in texts for span in embedder.split(text)]
    began, used = time.perf_counter(), cpu_seconds()
    await embedder.embed(windows)
    spent, used = time.perf_counter() - began, cpu_seconds() - used
    embedder.close()
    return len(windows), spent, used


def pipeline(documents: Documents, embedder: str, files: int, rounds: int) -> list[object]:
    """One row: how near the whole comes to the embedder."""
    done = []
    with temporary() as place:
        paths = documents.write(place / "documents", files)
        for i in range(rounds):
            texts, product, used = asyncio.run(indexed(place / f"data-{i}", paths, embedder))
            windows, by_itself, its_cpu = asyncio.run(alone(texts, embedder))
            done.append(Round(len(texts), windows, product, used, by_itself, its_cpu))
    share = statistics.median(one.alone / one.product for one in done)
    of_cpu = statistics.median(one.alone_cpu / one.product_cpu for one in done)
    chunks = done[0].chunks
    best, fastest = min(one.product for one in done), min(one.alone for one in done)
    return [
        embedder, files, f"{chunks:,}", f"{done[0].windows:,}", f"{chunks / fastest:,.1f}", f"{chunks / best:,.1f}",
        f"{files / best:,.1f}", f"{share:.2f}", f"{of_cpu:.2f}",
        f"{1e3 * min(one.product_cpu - one.alone_cpu for one in done) / chunks:.2f}",
    ]  # fmt: skip


def show_pipeline(given: argparse.Namespace, documents: Documents) -> None:
    rows = []
    for url in given.embedder:
        files = min(given.files, given.slow_files) if "arctic" in url or "onnx" in url else given.files
        rows.append(pipeline(documents, url, files, given.rounds))
    head = ("embedder", "files", "chunks", "windows", "alone, chunks/s", "whole, chunks/s", "files/s")
    table((*head, "share, wall", "share, CPU", "CPU ms a chunk beside"), rows)


# --- searching -----------------------------------------------------------------------------------------


def fill(folder: Path, chunks: int, embedder: str) -> tuple[str, int]:
    """A store of at least so many chunks of 100 tokens, made by indexing files of about a hundred: its id, and how many
    chunks it has. Files have a `percent`."""
    with memoranda.open(folder, embedder={"url": embedder}, quotas=ROOM) as rc:
        stores = rc.knowledge.stores
        store = stores.create(chunking=Chunking(size=100, overlap=0)).id
        for i in range(-(-chunks // 100)):
            text = "\n".join(LANGUAGE.text(400 * i + line) for line in range(LINES))
            stores.upload(store, text.encode(), f"{i}.txt", attributes={"percent": i % 100})
        stores.wait(store)
        count, after = 0, None
        while (page := stores.files(store, limit=100, after=after, state="completed")).data:
            count, after = count + sum(one.chunk_count for one in page.data), page.last_id
    return store, count


async def timed(work: Coroutine[Any, Any, object]) -> float:
    """Seconds until it is done."""
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


def show_search(given: argparse.Namespace, documents: Documents) -> None:
    embedder = given.search_embedder
    filters: dict[str, dict[str, Any] | None] = {
        "all": None,
        "filter 1 %": {"type": "eq", "key": "percent", "value": 7},
        "filter 10 %": {"type": "lt", "key": "percent", "value": 10},
    }
    taken: dict[str, list[float]] = {name: [] for name in ("embedding alone", *filters)}
    model = open_embedder(embedder)
    with temporary() as place, asyncio.Runner() as loop:
        began = time.perf_counter()
        store, count = fill(place / "data", given.chunks, embedder)
        seconds = time.perf_counter() - began
        with Served(place / "data", embedder) as server:
            ask = Asking(server.url, store)
            for i in range(WARM + given.searches):
                for j, (name, where) in enumerate(filters.items()):
                    question = LANGUAGE.question(10 * i + j)
                    taken[name].append(ask(f"{question} {i} {j}", where))
                taken["embedding alone"].append(loop.run(timed(model.embed([f"{question} {i}"], "query"))))
    base = ms(taken["embedding alone"][WARM:], 50)
    print(f"\n{count:,} chunks, {embedder}, stored in {seconds:.0f} s ({count / seconds:,.0f} chunks/s).")
    rows: list[list[object]] = []
    for name, spent in taken.items():
        spent = spent[WARM:]
        beyond = "-" if name == "embedding alone" else f"{ms(spent, 50) - base:.2f}"
        rows.append([name, *(f"{ms(spent, q):.2f}" for q in (50, 95, 99)), beyond])
    table(("ms over HTTP", "p50", "p95", "p99", "p50 beyond embedding"), rows)


# --- searching while others are indexed ----------------------------------------------------------------


def asked(ask: Asking, documents: Documents, first: int, going: Callable[[float], bool]) -> list[float]:
    """Seconds of each search, with a pause after each, for as long as `going(seconds so far)`."""
    taken, began = [], time.perf_counter()
    while going(time.perf_counter() - began):
        taken.append(ask(documents.question(first + len(taken))))
        time.sleep(PAUSE)
    return taken


def busy(documents: Documents, embedder: str, given: argparse.Namespace) -> list[object]:
    """One row: searches while nothing is indexed, and while files are."""
    with temporary() as place, Served(place / "data", embedder) as server:
        knowledge = Client(server.url).knowledge
        paths = documents.write(place / "documents", given.files)
        store = knowledge.stores.create(name="searched").id
        for path in paths[: given.slow_files]:
            knowledge.stores.upload(store, path)
        knowledge.stores.wait(store)
        other = knowledge.stores.create(name="filled").id
        held = [NewStoreFile(file_id=knowledge.files.upload(path).id) for path in paths]
        ask = Asking(server.url, store)
        asked(ask, documents, 0, lambda spent: spent < 1.0)
        idle = asked(ask, documents, 10_000, lambda spent: spent < given.seconds)
        knowledge.stores.create_batch(other, held)

        looked = 0.0

        def going(spent: float) -> bool:
            nonlocal looked
            if spent < looked + 0.5:
                return True
            looked = spent
            return spent < given.seconds and knowledge.stores.get(other).file_counts.in_progress > 0

        began = time.perf_counter()
        during = asked(ask, documents, 20_000, going)
        spent = time.perf_counter() - began
        done = knowledge.stores.get(other).file_counts.completed
        idle += asked(ask, documents, 30_000, lambda spent: done == len(paths) and spent < given.seconds)
    return [
        embedder, f"{done:,} in {spent:.0f} s", len(idle), len(during),
        *(f"{ms(idle, q):.1f}" for q in (50, 99)), *(f"{ms(during, q):.1f}" for q in (50, 99)),
        f"{ms(during, 99) / ms(idle, 99):.1f}",
    ]  # fmt: skip


def show_busy(given: argparse.Namespace, documents: Documents) -> None:
    rows = [busy(documents, url, given) for url in given.embedder]
    head = ("embedder", "files indexed", "searches idle", "searches during", "idle p50", "idle p99")
    table((*head, "during p50", "during p99", "p99 during / idle"), rows)


# --- memory --------------------------------------------------------------------------------------------


def memory(embedder: str, pages: int) -> list[object]:
    """One row: what one long PDF needs."""
    with temporary() as place, Served(place / "data", embedder) as server:
        made_pdf(place / "long.pdf", pages)
        knowledge = Client(server.url).knowledge
        store = knowledge.stores.create(name="long").id
        knowledge.stores.search(store, "a question, so that the model is there")
        idle = resident(server.process.pid)
        with Watch(server.process.pid) as watch:
            began = time.perf_counter()
            knowledge.stores.upload(store, place / "long.pdf")
            counts = knowledge.stores.wait(store).file_counts
            spent = time.perf_counter() - began
        assert counts.completed == 1, counts
        chunks = knowledge.stores.files(store).data[0].chunk_count
    mega = 1 << 20
    return [
        embedder, f"{pages:,}", f"{chunks:,}", f"{spent:.1f}", f"{idle / mega:.0f}", f"{watch.most / mega:.0f}",
        f"{(watch.most - idle) / mega:.0f}",
    ]  # fmt: skip


def show_memory(given: argparse.Namespace, documents: Documents) -> None:
    rows = [memory(url, given.pages) for url in given.embedder]
    table(("embedder", "pages", "chunks", "s", "idle, MB", "at most, MB", "over idle, MB"), rows)


def show_peers(given: argparse.Namespace, documents: Documents) -> None:
    command = [
        sys.executable,
        str(Path(__file__).with_name("knowledge_peers.py")),
        "--rounds",
        str(given.rounds),
    ]
    for url in given.embedder:
        files = min(given.files, given.slow_files) if "arctic" in url else given.files
        with temporary() as place:
            documents.write(place / "documents", files)
            subprocess.run([*command, "--embedder", url, str(place / "documents")], check=True)
        print(f"\nLoad afterwards: {load()}.", flush=True)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=(*PARTS, "peers"), default=PARTS)
    parser.add_argument("--embedder", nargs="+", default=["hash:256", "local:potion-base-8m"], metavar="URL")
    parser.add_argument("--search-embedder", default="hash:384", metavar="URL")
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--slow-files", type=int, default=40, help="files where the model is a transformer")
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--searches", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", type=int, default=1_000)
    parser.add_argument("--corpus", type=Path, help="a corpus.jsonl of abstracts (default: made-up words)")
    given = parser.parse_args()
    documents = Documents(given.corpus)
    print(f"Load before: {load()}.")
    show = {
        "pipeline": show_pipeline, "search": show_search, "busy": show_busy, "memory": show_memory,
        "peers": show_peers,
    }  # fmt: skip
    for part in given.only:
        show[part](given, documents)


if __name__ == "__main__":
    main()
