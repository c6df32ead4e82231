"""A process that writes from four threads until it is killed, and says what was confirmed.

`python child.py FOLDER ACKS SEED [slow]`: each confirmed write is one JSON line in ACKS, written after the call
returned. `slow` makes the indexes take their time, so that a kill often falls between commit and index.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from typing import Any

import memoranda
from memoranda.app.blocking import BlockingMemories

QUICK = {"url": "hash:64"}


def write_for_ever(memories: BlockingMemories, acks: int, writer: int, seed: int) -> None:
    """Adds, batches, updates, deletes; each is announced before it begins and confirmed after it returned."""
    rng = random.Random(f"{seed}-{writer}")
    mine: list[str] = []
    n = 0

    def note(kind: str, verb: str, **facts: Any) -> None:
        line = {"kind": kind, "verb": verb, "writer": writer, **facts}
        os.write(acks, json.dumps(line).encode() + b"\n")

    while True:
        n += 1
        verb = rng.choice(["add", "add", "batch", "update", "delete"]) if mine else "add"
        if verb in ("add", "batch"):
            count = 1 if verb == "add" else rng.randint(2, 30)
            ids = [f"{seed}-{writer}-{n}-{i}" for i in range(count)]
            texts = [f"w{id_.replace('-', 'x')} first {rng.random()}" for id_ in ids]
            note("begin", verb, ids=ids, texts=texts)
            rows = [
                {"id": id_, "content": text, "session_id": f"s{writer}"}
                for id_, text in zip(ids, texts, strict=True)
            ]
            memories.add_many(rows)
            mine += ids
            note("done", verb, ids=ids, texts=texts)
        elif verb == "update":
            id_ = rng.choice(mine)
            text = f"w{id_.replace('-', 'x')} again {rng.random()}"
            note("begin", verb, ids=[id_], texts=[text])
            memories.update(id_, content=text)
            note("done", verb, ids=[id_], texts=[text])
        else:
            id_ = mine.pop(rng.randrange(len(mine)))
            note("begin", verb, ids=[id_], texts=[None])
            memories.delete(id_)
            note("done", verb, ids=[id_], texts=[None])


def slow_down(part: Any, rng: random.Random) -> None:
    """Makes an index's `put` and `remove` wait a moment before and after they work."""
    for name in ("put", "remove"):
        real = getattr(part, name)

        def call(*args: Any, real: Any = real) -> Any:
            time.sleep(rng.random() * 0.01)
            result = real(*args)
            time.sleep(rng.random() * 0.01)
            return result

        setattr(part, name, call)


def main() -> None:
    folder, path, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
    acks = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    opened = memoranda.open(folder, embedder=QUICK)
    if "slow" in sys.argv[4:]:
        store = opened.inner.core.store
        slow_down(store.index, random.Random(seed))
        slow_down(store.words, random.Random(seed + 1))
    os.write(acks, b'{"kind": "open"}\n')
    writers = [
        threading.Thread(target=write_for_ever, args=[opened.memories, acks, n, seed], daemon=True)
        for n in range(4)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()


if __name__ == "__main__":
    main()
