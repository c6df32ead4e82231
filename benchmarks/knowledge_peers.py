"""A folder of text files into a store that answers searches: documents a second, beside what people use today.

    python benchmarks/knowledge_peers.py [--embedder URL] [--rounds N] [--only NAME ...] FOLDER

All split by 512 tokens with 50 of overlap and embed with the same model, in a process of its own each, in turns; a
first search is part of the time, so that what a system puts off until then is counted. Memoranda reads the files in its
reader processes, keeps files, rows and both indexes on disk, and cuts chunks that are longer than the model's window
into two. chromadb is handed the chunks ready made, a file's at a time or a thousand. LlamaIndex and LangChain read,
split and store as their documentation shows it. What is not installed is skipped and named:
pip install chromadb llama-index-core langchain-text-splitters langchain-community langchain-chroma
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from memoranda.providers.embeddings import open_embedder
from memoranda.text.chunking import fixed

SIZE, OVERLAP = 512, 50
AT_ONCE = 1_000
QUESTION = "what is said about a question like this one"


class Clock:
    """Wall and CPU seconds from `start` to `stop`, those of reader processes included."""

    def start(self) -> None:
        self._wall, self._cpu = time.perf_counter(), sum(os.times()[:4])

    def stop(self) -> None:
        self.wall, self.cpu = time.perf_counter() - self._wall, sum(os.times()[:4]) - self._cpu


class Model:
    """The embedder as a plain function."""

    def __init__(self, url: str) -> None:
        self._compute: Any = open_embedder(url).inner.compute  # type: ignore[attr-defined]
        self.array(["warm"])

    def array(self, texts: Sequence[str], task: str = "document") -> Any:
        """One row for each text."""
        return self._compute(list(texts), task).vectors

    def __call__(self, texts: Sequence[str], task: str = "document") -> list[list[float]]:
        vectors: list[list[float]] = self.array(texts, task).tolist()
        return vectors


def files_in(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


# --- the systems: each indexes the folder into `data`, searches once, and tells how many chunks it has --------


def with_memoranda(folder: Path, data: Path, url: str, clock: Clock) -> int:
    from memoranda import Memoranda

    async def run() -> int:
        async with await Memoranda.open(data, embedder={"url": url}) as rc:
            stores = rc.knowledge.stores
            await rc.core.embedder.embed(["warm"])
            clock.start()
            store = (await stores.create()).id
            for path in files_in(folder):
                await stores.upload(store, path)
            while (counts := (await stores.get(store)).file_counts).in_progress:
                await asyncio.sleep(0.02)
            assert counts.completed == counts.total, counts
            assert (await stores.search(store, QUESTION)).data
            await rc.core.readers.close()  # the CPU time of processes counts once they have ended
            clock.stop()
            page, count = await stores.files(store, limit=100), 0
            while page.data:
                count += sum(one.chunk_count for one in page.data)
                page = await stores.files(store, limit=100, after=page.last_id)
            return count

    return asyncio.run(run())


def with_chromadb(folder: Path, data: Path, url: str, clock: Clock, at_once: int = AT_ONCE) -> int:
    """`at_once` 0 is a file."""
    import chromadb

    model = Model(url)
    files: list[list[tuple[str, str, dict[str, Any]]]] = []
    for path in files_in(folder):
        text = path.read_text()
        spans = enumerate(fixed(text, SIZE, OVERLAP))
        about = {"file": path.name}
        files.append(
            [(f"{path.name}-{i}", text[at.start : at.end], {**about, "index": i}) for i, at in spans]
        )
    chunks = [chunk for file in files for chunk in file]
    batches = [chunks[at : at + at_once] for at in range(0, len(chunks), at_once)] if at_once else files
    client = chromadb.PersistentClient(str(data), chromadb.Settings(anonymized_telemetry=False))
    collection = client.create_collection("documents")
    clock.start()
    for batch in batches:
        ids, texts, attributes = zip(*batch, strict=True)
        collection.add(list(ids), model.array(texts), list(attributes), list(texts))
    assert collection.query(model.array([QUESTION], "query"), n_results=10)["ids"]
    clock.stop()
    return collection.count()


def with_llamaindex(folder: Path, data: Path, url: str, clock: Clock) -> int:
    from llama_index.core import Settings, SimpleDirectoryReader, VectorStoreIndex
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.node_parser import TokenTextSplitter

    model = Model(url)

    class Embedding(BaseEmbedding):  # type: ignore[misc]
        def _get_text_embedding(self, text: str) -> list[float]:
            return model([text])[0]

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return model(texts)

        def _get_query_embedding(self, query: str) -> list[float]:
            return model([query], "query")[0]

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_query_embedding(query)

    Settings.embed_model = Embedding(embed_batch_size=256)
    splitter = TokenTextSplitter(chunk_size=SIZE, chunk_overlap=OVERLAP)
    clock.start()
    documents = SimpleDirectoryReader(str(folder)).load_data()
    index = VectorStoreIndex.from_documents(documents, transformations=[splitter])
    index.storage_context.persist(str(data))
    assert index.as_retriever(similarity_top_k=10).retrieve(QUESTION)
    clock.stop()
    return len(index.docstore.docs)


def langchain(folder: Path, url: str, clock: Clock) -> tuple[list[Any], Any]:
    """The documents, split, and the embeddings; the clock runs from here on."""
    import llama_index.core

    # LangChain's splitter fetches its vocabulary; LlamaIndex brings the same one along.
    os.environ["TIKTOKEN_CACHE_DIR"] = str(
        Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache"
    )
    from langchain_community.document_loaders import DirectoryLoader, TextLoader
    from langchain_core.embeddings import Embeddings
    from langchain_text_splitters import TokenTextSplitter

    model = Model(url)

    class Embedding(Embeddings):  # type: ignore[misc]
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return model(texts)

        def embed_query(self, text: str) -> list[float]:
            return model([text], "query")[0]

    splitter = TokenTextSplitter(encoding_name="cl100k_base", chunk_size=SIZE, chunk_overlap=OVERLAP)
    clock.start()
    documents = DirectoryLoader(str(folder), glob="**/*", loader_cls=TextLoader).load()
    return splitter.split_documents(documents), Embedding()


def with_langchain_memory(folder: Path, data: Path, url: str, clock: Clock) -> int:
    from langchain_core.vectorstores import InMemoryVectorStore

    chunks, embedding = langchain(folder, url, clock)
    store = InMemoryVectorStore.from_documents(chunks, embedding)
    store.dump(str(data))
    assert store.similarity_search(QUESTION, k=10)
    clock.stop()
    return len(chunks)


def with_langchain_chroma(folder: Path, data: Path, url: str, clock: Clock) -> int:
    from langchain_chroma import Chroma

    chunks, embedding = langchain(folder, url, clock)
    store = Chroma(embedding_function=embedding, persist_directory=str(data))
    for at in range(0, len(chunks), AT_ONCE):
        store.add_documents(chunks[at : at + AT_ONCE])
    assert store.similarity_search(QUESTION, k=10)
    clock.stop()
    return len(chunks)


System = Callable[[Path, Path, str, Clock], int]
SYSTEMS: dict[str, tuple[System, tuple[str, ...], tuple[str, ...]]] = {
    "memoranda": (with_memoranda, ("memoranda",), ()),
    "chromadb by the file": (partial(with_chromadb, at_once=0), ("chromadb",), ("chromadb",)),
    "chromadb by the thousand": (with_chromadb, ("chromadb",), ("chromadb",)),
    "llamaindex": (with_llamaindex, ("llama_index.core",), ("llama-index-core",)),
    "langchain, in memory": (
        with_langchain_memory,
        ("langchain_community", "langchain_text_splitters", "llama_index.core"),
        ("langchain-core",),
    ),
    "langchain, chromadb": (
        with_langchain_chroma,
        ("langchain_chroma", "langchain_community", "langchain_text_splitters", "llama_index.core"),
        ("langchain-core", "chromadb"),
    ),
}
"""By name: how it indexes, the modules it needs, the packages whose versions are told."""


def missing(modules: Sequence[str]) -> list[str]:
    """Those that cannot be imported."""
    return [name for name in modules if find_spec(name.partition(".")[0]) is None or find_spec(name) is None]


def one(name: str, folder: Path, url: str) -> dict[str, float]:
    """Indexes the folder in this process."""
    clock = Clock()
    with tempfile.TemporaryDirectory(prefix="peer-") as place:
        chunks = SYSTEMS[name][0](folder, Path(place) / "data", url, clock)
    return {"wall": clock.wall, "cpu": clock.cpu, "chunks": chunks}


def elsewhere(name: str, folder: Path, url: str) -> dict[str, float]:
    """As `one`, in a process of its own."""
    command = [sys.executable, __file__, str(folder), "--embedder", url, "--one", name]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name} failed: {done.stderr[-2_000:]}")
    told: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return told


def compare(folder: Path, url: str, rounds: int, names: Sequence[str]) -> None:
    """Prints the table."""
    there = [name for name in names if not missing(SYSTEMS[name][1])]
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in there}
    for _ in range(rounds):
        for name in there:
            taken[name].append(elsewhere(name, folder, url))
    files = len(files_in(folder))
    print(
        f"\n| {url}, {files} files | chunks | documents/s | documents per CPU s | memoranda is, wall | CPU |"
    )
    print("|---|--:|--:|--:|--:|--:|")
    for name in there:
        wall = statistics.median(files / run["wall"] for run in taken[name])
        cpu = statistics.median(files / run["cpu"] for run in taken[name])
        times = ["-", "-"]
        if "memoranda" in taken and name != "memoranda":
            pairs = list(zip(taken[name], taken["memoranda"], strict=True))
            times = [f"x{statistics.median(a[of] / b[of] for a, b in pairs):.2f}" for of in ("wall", "cpu")]
        versions = " ".join(version(package) for package in SYSTEMS[name][2])
        label = f"{name} {versions}".strip()
        print(
            f"| {label} | {taken[name][0]['chunks']:,.0f} | {wall:.1f} | {cpu:.1f} | {times[0]} | {times[1]} |"
        )
    for name in names:
        if gone := missing(SYSTEMS[name][1]):
            print(f"\nSkipped {name}: not installed are {', '.join(gone)}.")


def main() -> None:
    """Prints the table, or the figures of one system."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--embedder", default="hash:256", metavar="URL")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=SYSTEMS, default=list(SYSTEMS), metavar="NAME")
    parser.add_argument("--one", choices=SYSTEMS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(given.one, given.folder, given.embedder)))
    else:
        compare(given.folder, given.embedder, given.rounds, given.only)


if __name__ == "__main__":
    main()
