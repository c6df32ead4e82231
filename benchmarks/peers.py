"""Memoranda beside what people use today, on the same vectors, one after another in one run.

    python benchmarks/peers.py [--rows 10000] [--only memoranda,floor,...]

Every system stores the same short texts of 50 users with the same given vectors (384 dimensions, unit length), in a
folder on disk, and answers the same questions; no embedding model runs. Figures are CPU milliseconds of the process
per call (median of 200), so that a busy machine does not decide: `add` one at a time, `search` filtered to one user,
top 10, `list` 20 of one user, `open` a filled folder and answer a first search; `batch` is CPU ms per row in
batches of 1000. Peers that are not installed are left out: pip install chromadb lancedb mem0ai
langgraph-checkpoint-sqlite.

The floor is what a careful programmer would write by hand: sqlite3 with an index on the user, FULL durability, and
one numpy product over the user's rows. It has no words index, no filters, no tenants.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from growth import LANGUAGE

DIM = 384
USERS = 50
CALLS = 200


def corpus(rows: int) -> tuple[list[str], np.ndarray]:
    rng = np.random.default_rng(7)
    base = rng.standard_normal((rows + 2 * CALLS, DIM)).astype(np.float32)
    base /= np.linalg.norm(base, axis=1, keepdims=True)
    texts = [LANGUAGE.text(i) for i in range(len(base))]
    return texts, base


class Peer(Protocol):
    def __init__(self, folder: Path) -> None: ...
    def batch(self, ids: range, texts: list[str], vectors: np.ndarray) -> None: ...
    def add(self, i: int, text: str, vector: np.ndarray) -> None: ...
    def search(self, user: str, text: str, vector: np.ndarray) -> int: ...
    def list(self, user: str) -> int: ...
    def close(self) -> None: ...


def user_of(i: int) -> str:
    return f"user{i % USERS}"


class Memoranda:
    mode = "hybrid"

    def __init__(self, folder: Path) -> None:
        import memoranda

        self.rc = memoranda.open(folder, embedder={"url": f"hash:{DIM}"})
        self.memories = self.rc.memories

    def batch(self, ids: range, texts: list[str], vectors: np.ndarray) -> None:
        self.memories.add_many(
            [
                {"content": text, "user_id": user_of(i), "embedding": vector}
                for i, text, vector in zip(ids, texts, vectors, strict=True)
            ]
        )

    def add(self, i: int, text: str, vector: np.ndarray) -> None:
        self.memories.add(text, user_id=user_of(i), embedding=vector)

    def search(self, user: str, text: str, vector: np.ndarray) -> int:
        return self.memories.search(
            text, scopes=[f"user:{user}"], embedding=vector, mode=self.mode
        ).total_count

    def list(self, user: str) -> int:
        return len(self.memories.list(scopes=[f"user:{user}"], limit=20).data)

    def close(self) -> None:
        self.rc.close()


class MemorandaDense(Memoranda):
    mode = "dense"


class Floor:
    def __init__(self, folder: Path) -> None:
        import sqlite3

        folder.mkdir(exist_ok=True)
        self.db = sqlite3.connect(folder / "floor.db", isolation_level=None)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("PRAGMA synchronous=FULL")
        self.db.execute("CREATE TABLE IF NOT EXISTS m (id INTEGER PRIMARY KEY, user TEXT, text TEXT, v BLOB)")
        self.db.execute("CREATE INDEX IF NOT EXISTS m_user ON m (user, id)")
        self.users: dict[str, tuple[list[int], list[np.ndarray]]] = {}
        for id_, user, blob in self.db.execute("SELECT id, user, v FROM m"):
            self._keep(id_, user, np.frombuffer(blob, np.float32))

    def _keep(self, id_: int, user: str, vector: np.ndarray) -> None:
        ids, vectors = self.users.setdefault(user, ([], []))
        ids.append(id_)
        vectors.append(vector)

    def batch(self, ids: range, texts: list[str], vectors: np.ndarray) -> None:
        self.db.execute("BEGIN")
        self.db.executemany(
            "INSERT INTO m VALUES (?, ?, ?, ?)",
            [
                (i, user_of(i), text, vector.tobytes())
                for i, text, vector in zip(ids, texts, vectors, strict=True)
            ],
        )
        self.db.execute("COMMIT")
        for i, vector in zip(ids, vectors, strict=True):
            self._keep(i, user_of(i), vector)

    def add(self, i: int, text: str, vector: np.ndarray) -> None:
        self.batch(range(i, i + 1), [text], vector[None])

    def search(self, user: str, text: str, vector: np.ndarray) -> int:
        ids, vectors = self.users[user]
        best = np.argsort(-(np.stack(vectors) @ vector))[:10]
        wanted = ",".join(str(ids[j]) for j in best)
        return len(self.db.execute(f"SELECT id, user, text FROM m WHERE id IN ({wanted})").fetchall())

    def list(self, user: str) -> int:
        return len(
            self.db.execute(
                "SELECT id, user, text FROM m WHERE user = ? ORDER BY id DESC LIMIT 20", (user,)
            ).fetchall()
        )

    def close(self) -> None:
        self.db.close()


class Chroma:
    def __init__(self, folder: Path) -> None:
        import chromadb

        settings = chromadb.Settings(anonymized_telemetry=False)
        self.client = chromadb.PersistentClient(str(folder), settings=settings)
        self.c = self.client.get_or_create_collection(
            "memories", metadata={"hnsw:space": "cosine"}, embedding_function=None
        )

    def batch(self, ids: range, texts: list[str], vectors: np.ndarray) -> None:
        self.c.add(
            ids=[str(i) for i in ids],
            documents=texts,
            embeddings=vectors,
            metadatas=[{"user": user_of(i)} for i in ids],
        )

    def add(self, i: int, text: str, vector: np.ndarray) -> None:
        self.batch(range(i, i + 1), [text], vector[None])

    def search(self, user: str, text: str, vector: np.ndarray) -> int:
        return len(self.c.query(query_embeddings=vector[None], n_results=10, where={"user": user})["ids"][0])

    def list(self, user: str) -> int:
        return len(self.c.get(where={"user": user}, limit=20)["ids"])

    def close(self) -> None:
        pass


class Lance:
    def __init__(self, folder: Path) -> None:
        import lancedb
        import pyarrow as pa

        self.db = lancedb.connect(str(folder))
        schema = pa.schema(
            [
                ("id", pa.string()),
                ("user", pa.string()),
                ("text", pa.string()),
                ("vector", pa.list_(pa.float32(), DIM)),
            ]
        )
        self.t = self.db.create_table("m", schema=schema, exist_ok=True)

    def batch(self, ids: range, texts: list[str], vectors: np.ndarray) -> None:
        self.t.add(
            [
                {"id": str(i), "user": user_of(i), "text": t, "vector": v}
                for i, t, v in zip(ids, texts, vectors, strict=True)
            ]
        )

    def add(self, i: int, text: str, vector: np.ndarray) -> None:
        self.batch(range(i, i + 1), [text], vector[None])

    def settle(self) -> None:
        self.t.optimize()

    def search(self, user: str, text: str, vector: np.ndarray) -> int:
        q = self.t.search(vector).distance_type("cosine").where(f"user = '{user}'", prefilter=True).limit(10)
        return len(q.select(["id", "user", "text"]).to_list())

    def list(self, user: str) -> int:
        return len(
            self.t.search().where(f"user = '{user}'").limit(20).select(["id", "user", "text"]).to_list()
        )

    def close(self) -> None:
        pass


class Mem0:
    """mem0 with `infer=False` on Qdrant in local mode, its default kind of store; vectors come from a lookup."""

    def __init__(self, folder: Path) -> None:
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder), "OPENAI_API_KEY": "unused"}
        from mem0 import Memory

        self.m = Memory.from_config(
            {
                "vector_store": {
                    "provider": "qdrant",
                    "config": {"path": str(folder / "qdrant"), "on_disk": True, "embedding_model_dims": DIM},
                },
                "history_db_path": str(folder / "history.db"),
            }
        )
        self.next: np.ndarray | None = None
        peer = self

        class Given:
            config = type("Config", (), {"embedding_dims": DIM})()

            def embed(self, text: str, *_: Any, **__: Any) -> list[float]:
                return peer.next.tolist()

            def embed_batch(self, texts: list[str], *_: Any, **__: Any) -> list[list[float]]:
                return [peer.next.tolist() for _ in texts]

        self.m.embedding_model = Given()

    def batch(self, ids: range, texts: list[str], vectors: np.ndarray) -> None:
        for i, text, vector in zip(ids, texts, vectors, strict=True):
            self.add(i, text, vector)

    def add(self, i: int, text: str, vector: np.ndarray) -> None:
        self.next = vector
        self.m.add([{"role": "user", "content": text}], user_id=user_of(i), infer=False)

    def search(self, user: str, text: str, vector: np.ndarray) -> int:
        self.next = vector
        return len(self.m.search(text, filters={"user_id": user}, top_k=10, threshold=0.0)["results"])

    def list(self, user: str) -> int:
        return len(self.m.get_all(filters={"user_id": user}, top_k=20)["results"])

    def close(self) -> None:
        self.m.vector_store.client.close()


class LangGraph:
    """LangGraph's SqliteStore with its vector index; vectors come from a lookup."""

    def __init__(self, folder: Path) -> None:
        import pysqlite3 as sqlite3  # the standard library's may have been built without extensions

        sys.modules["sqlite3"] = sqlite3
        from langgraph.store.sqlite import SqliteStore

        folder.mkdir(exist_ok=True)
        self.next: list[np.ndarray] = []
        conn = sqlite3.connect(folder / "store.db", isolation_level=None, check_same_thread=False)

        def embed(texts: list[str]) -> list[list[float]]:
            return [v.tolist() for v in self.next]

        self.s = SqliteStore(conn, index={"dims": DIM, "embed": embed, "fields": ["text"]})
        self.s.setup()

    def batch(self, ids: range, texts: list[str], vectors: np.ndarray) -> None:
        from langgraph.store.base import PutOp

        self.next = list(vectors)
        self.s.batch(
            [PutOp((user_of(i),), str(i), {"text": text}) for i, text in zip(ids, texts, strict=True)]
        )

    def add(self, i: int, text: str, vector: np.ndarray) -> None:
        self.next = [vector]
        self.s.put((user_of(i),), str(i), {"text": text})

    def search(self, user: str, text: str, vector: np.ndarray) -> int:
        self.next = [vector]
        return len(self.s.search((user,), query=text, limit=10))

    def list(self, user: str) -> int:
        return len(self.s.search((user,), limit=20))

    def close(self) -> None:
        pass


PEERS: dict[str, type[Any]] = {
    "floor": Floor,
    "memoranda": Memoranda,
    "memoranda dense": MemorandaDense,
    "langgraph SqliteStore": LangGraph,
    "chromadb": Chroma,
    "lancedb": Lance,
    "mem0": Mem0,
}


def median_ms(work: Any) -> float:
    for i in range(10):
        work(i)
    spent = []
    for i in range(10, CALLS):
        began = time.process_time()
        work(i)
        spent.append(time.process_time() - began)
    return float(np.median(spent) * 1e3)


def run(name: str, folder: Path, rows: int) -> dict[str, float]:
    texts, vectors = corpus(rows)
    peer = PEERS[name](folder)
    step = 1_000 if name != "mem0" else rows
    began = time.process_time()
    for at in range(0, rows, step):
        peer.batch(range(at, at + step), texts[at : at + step], vectors[at : at + step])
    figures = {"batch": (time.process_time() - began) * 1e3 / rows}
    figures["add"] = median_ms(lambda i: peer.add(rows + i, texts[rows + i], vectors[rows + i]))
    if hasattr(peer, "settle"):
        peer.settle()
    queries = vectors[rows + CALLS :]

    def search(i: int) -> None:
        assert peer.search(user_of(i), LANGUAGE.question(i), queries[i]) == 10

    figures["search"] = median_ms(search)

    def listing(i: int) -> None:
        assert peer.list(user_of(i)) == 20

    figures["list"] = median_ms(listing)
    peer.close()
    return figures


def reopen(name: str, folder: Path, rows: int) -> float:
    texts, vectors = corpus(rows)
    # imports are paid by every process once and are not the folder's: a small folder pays them first
    with tempfile.TemporaryDirectory() as other:
        warm = PEERS[name](Path(other) / "warm")
        for at in range(0, 5_000 if name != "mem0" else 1_000, 1_000):
            warm.batch(range(at, at + 1_000), texts[at : at + 1_000], vectors[at : at + 1_000])
        warm.search(user_of(3), texts[3], vectors[3])
        warm.close()
    began = time.process_time()
    peer = PEERS[name](folder)
    assert peer.search(user_of(3), texts[3], vectors[-1]) == 10
    spent = (time.process_time() - began) * 1e3
    peer.close()
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--only", default=",".join(PEERS))
    parser.add_argument("--child", nargs=3, default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        name, step, folder = args.child
        out = (
            run(name, Path(folder), args.rows)
            if step == "run"
            else {"open": reopen(name, Path(folder), args.rows)}
        )
        print("RESULT " + json.dumps(out))
        return
    print(
        f"| CPU ms, {args.rows} rows, {USERS} users | batch, per row | add | search | list | open + first search |"
    )
    print("|---|--:|--:|--:|--:|--:|")
    for name in args.only.split(","):
        folder = tempfile.mkdtemp(prefix="peer-")
        figures: dict[str, float] = {}
        try:
            for step in ("run", "open"):
                command = [sys.executable, __file__, "--rows", str(args.rows), "--child", name, step, folder]
                done = subprocess.run(command, capture_output=True, text=True)
                line = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
                if not line:
                    print(
                        f"{name}: left out: {(done.stderr.strip().splitlines() or ['?'])[-1]}",
                        file=sys.stderr,
                    )
                    break
                figures |= json.loads(line[0][7:])
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if len(figures) == 5:
            row = " | ".join(f"{figures[key]:.3g}" for key in ("batch", "add", "search", "list", "open"))
            print(f"| {name} | {row} |", flush=True)


if __name__ == "__main__":
    main()
