"""How long changes hold the one thread that writes: every list and every unbounded thing at a size that hurts.

    python benchmarks/holds.py [--scale 1.0] [--cpu] [--database URL] [--index URL] [--only NAME ...]

Each case does one thing and prints for how long it took, and for how long its longest change, and its longest
transaction with the commit and what follows in the indexes, held the writer. Nobody else writes meanwhile. Ends with 1
when a transaction held it for more than 250 ms. Figures are wall time: run it on a machine that does nothing else. With
`--cpu` they are the CPU time of that thread, without its waits for the disk.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from growth import LANGUAGE
from memoranda import Memoranda
from memoranda.knowledge import Knowledge
from memoranda.knowledge.values import NewStoreFile
from memoranda.storage.sql import group
from memoranda.storage.sql.holds import SLOW_SECONDS, Histogram
from memoranda.text.splitting import Chunking
from memoranda.types import NewMemory, Subject

NOON = datetime(2024, 5, 6, 12, 0, tzinfo=UTC)
USER = "mara"


class House:
    """An open folder, and how large things are in it."""

    def __init__(self, rc: Memoranda, scale: float) -> None:
        self.rc = rc
        self.scale = scale

    def many(self, number: int) -> int:
        return max(1, round(number * self.scale))

    async def settled(self) -> None:
        """Waits until no job is left."""
        while True:
            rows = self.rc.core.store.db.read(lambda c: dict(c.all("count_jobs")))
            if not rows.get("queued") and not rows.get("running"):
                return
            await asyncio.sleep(0.05)


Case = Callable[[House], AsyncIterator[None]]
"""Prepares something, yields, and does what is measured."""


def said(number: int, at: int = 0, first: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "content": LANGUAGE.text(first + i),
            "speaker": "Ana",
            "user_id": USER,
            "occurred_at": NOON + timedelta(seconds=at + i),
        }
        for i in range(number)
    ]


async def observe(house: House, number: int, channel: str, at: int = 0, first: int = 0) -> None:
    for start in range(0, number, 5_000):
        some = said(min(5_000, number - start), at + start, first + start)
        await house.rc.observe(some, channel_id=channel)


async def add_many(house: House) -> AsyncIterator[None]:
    yield
    await house.rc.memories.add_many([f"{LANGUAGE.text(i)} note {i}" for i in range(house.many(10_000))])


async def add_sources(house: House) -> AsyncIterator[None]:
    refs = [f"doc_{i}" for i in range(256)]
    yield
    await house.rc.memories.add_many(
        [{"content": f"with sources {i}", "source_refs": refs} for i in range(house.many(1_000))]
    )


async def observing(house: House) -> AsyncIterator[None]:
    yield
    await observe(house, house.many(10_000), "busy", first=100_000)


async def indexing(house: House) -> AsyncIterator[None]:
    yield
    await _attached(house, "indexing.md")


async def _attached(house: House, name: str, knowledge: Knowledge | None = None) -> tuple[str, str]:
    knowledge = knowledge or house.rc.knowledge
    text = "\n".join(f"{LANGUAGE.text(200_000 + i)}." for i in range(house.many(9_000)))
    file = await knowledge.files.upload(text.encode(), name)
    store = await knowledge.stores.create(
        name=name, file_ids=[file.id], chunking=Chunking(size=100, overlap=0)
    )
    await house.settled()
    return store.id, file.id


async def batching(house: House) -> AsyncIterator[None]:
    files = [
        await house.rc.knowledge.files.upload(f"file {i}".encode(), f"{i}.txt")
        for i in range(house.many(2_000))
    ]
    store = await house.rc.knowledge.stores.create(name="batch")
    yield
    await house.rc.knowledge.stores.create_batch(store.id, [NewStoreFile(file_id=file.id) for file in files])
    await house.settled()


async def completing(house: House) -> AsyncIterator[None]:
    number = house.many(10_000)
    uploads = house.rc.knowledge.uploads
    upload = await uploads.create(filename="parts.txt", bytes=number, purpose="assistants")

    async def pieces() -> AsyncIterator[bytes]:
        yield b"a"

    parts = [(await uploads.add_part(upload.id, pieces())).id for _ in range(number)]
    yield
    await uploads.complete(upload.id, parts)


async def attributes(house: House) -> AsyncIterator[None]:
    store, file = await _attached(house, "attributes.md")
    yield
    await house.rc.knowledge.stores.set_attributes(store, file, {"year": 2024})
    await house.settled()


async def detaching(house: House) -> AsyncIterator[None]:
    store, file = await _attached(house, "detached.md")
    yield
    await house.rc.knowledge.stores.detach(store, file)
    await house.settled()


async def joining(house: House) -> AsyncIterator[None]:
    number = house.many(5_000)
    await observe(house, number, "joined", first=300_000)
    await observe(house, number, "joined", at=number + 2_700, first=310_000)
    await house.settled()
    yield
    between = NOON + timedelta(seconds=number + 1_350)
    await house.rc.observe({"content": "This stands between", "occurred_at": between}, channel_id="joined")
    await house.settled()
    assert len((await house.rc.sessions.list(channel_id="joined")).data) == 1


async def session(house: House) -> AsyncIterator[None]:
    await observe(house, house.many(10_000), "long", first=400_000)
    [held] = (await house.rc.sessions.list(channel_id="long")).data
    await house.settled()
    yield
    await house.rc.sessions.delete(held.id)


async def _facts(house: House, channel: str) -> tuple[str, str]:
    [one] = await house.rc.observe({"content": f"All rests on this, {channel}"}, channel_id=channel)
    number = house.many(3_000)
    drafts = [
        {
            "content": f"{LANGUAGE.text(500_000 + i)} {channel} {i}",
            "kind": "fact",
            "source_refs": [one.message.id],
        }
        for i in range(number)
    ]
    core, subject = house.rc.core, house.rc.sessions.subject
    made = core.ingest.drafts(subject, [NewMemory(**draft) for draft in drafts])  # type: ignore[arg-type]
    await core.ingest.write(subject.tenant_id, made)
    return one.message.session_id, one.message.id


async def unsaying(house: House) -> AsyncIterator[None]:
    place, id_ = await _facts(house, "unsaid")
    yield
    await house.rc.sessions.delete_message(place, id_)
    await house.settled()


async def editing(house: House) -> AsyncIterator[None]:
    place, id_ = await _facts(house, "edited")
    yield
    await house.rc.sessions.update_message(place, id_, "Something else was said")
    await house.settled()


async def losing(house: House) -> AsyncIterator[None]:
    """Facts that rest on many messages, and have a word of which the deleted one was the only source."""
    first, *others = said(house.many(100), first=550_000)
    first["content"] += " cardamom"
    observed = await house.rc.observe([first, *others], channel_id="lost", extraction=True)
    ids = [one.message.id for one in observed]
    drafts = [
        NewMemory(
            content=f"{LANGUAGE.text(560_000 + i)} cardamom {i}",
            kind="fact",
            source="extraction",
            source_refs=ids,
        )
        for i in range(house.many(150))
    ]
    core, subject = house.rc.core, house.rc.sessions.subject
    await core.ingest.write(subject.tenant_id, core.ingest.drafts(subject, drafts))
    yield
    await house.rc.sessions.delete_message(observed[0].message.session_id, ids[0])


async def forgetting(house: House) -> AsyncIterator[None]:
    texts = [
        {"content": f"{LANGUAGE.text(600_000 + i)} {i}", "user_id": "otto"} for i in range(house.many(10_000))
    ]
    await house.rc.memories.add_many(texts)
    yield
    await house.rc.memories.forget(scopes=["user:otto"])


async def conversation(house: House) -> AsyncIterator[None]:
    made = await house.rc.conversations.create()
    for start in range(0, house.many(20_000), 20):
        items = [{"type": "message", "role": "user", "content": LANGUAGE.text(start + i)} for i in range(20)]
        await house.rc.conversations.add_items(made.id, items)
    yield
    await house.rc.conversations.delete(made.id)
    await house.settled()


async def restoring(house: House) -> AsyncIterator[None]:
    kept, copy = (house.rc.as_subject(Subject(tenant_id=name)) for name in ("kept", "copy"))
    number = house.many(5_000)
    refs = [f"doc_{i}" for i in range(20)]
    notes = [{"content": f"{LANGUAGE.text(700_000 + i)} {i}", "source_refs": refs} for i in range(number)]
    for start in range(0, number, 5_000):
        await kept.memories.add_many(notes[start : start + 5_000])
    for start in range(0, number, 5_000):
        some = said(min(5_000, number - start), at=start, first=1_000_000 + start)
        await kept.sessions.observe(some, channel_id="kept")
    await _attached(house, "kept.md", kept.knowledge)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kept.zip"
        await kept.archives.export_to(path, vectors=True)
        yield
        await copy.archives.import_from(path)


async def reembedding(house: House) -> AsyncIterator[None]:
    yield
    job = await house.rc.memories.reembed(everything=True)
    await house.rc.memories.wait(job.id)


async def compacting(house: House) -> AsyncIterator[None]:
    yield
    job = await house.rc.memories.compact()
    await house.rc.memories.wait(job.id)


CASES: dict[str, tuple[str, Case]] = {
    "add": ("10 000 memories added at once", add_many),
    "sources": ("1 000 memories with 256 sources each", add_sources),
    "observe": ("10 000 messages observed", observing),
    "index": ("a file of 4 300 chunks indexed", indexing),
    "batch": ("a batch of 2 000 files attached and indexed", batching),
    "parts": ("an upload of 10 000 parts completed", completing),
    "attributes": ("attributes of a file of 4 300 chunks changed", attributes),
    "detach": ("a file of 4 300 chunks detached", detaching),
    "join": ("two sessions of 5 000 messages joined", joining),
    "session": ("a session of 10 000 messages deleted", session),
    "unsay": ("a message with 3 000 facts deleted", unsaying),
    "edit": ("a message with 3 000 facts changed", editing),
    "lose": ("the only source of a word of 150 facts, which rest on 100 messages, deleted", losing),
    "forget": ("a user with 10 000 memories forgotten", forgetting),
    "conversation": ("a conversation of 20 000 items deleted", conversation),
    "restore": ("an archive restored: 5 000 memories, 5 000 messages, 4 300 chunks", restoring),
    "reembed": ("everything embedded anew", reembedding),
    "compact": ("compacted", compacting),
}


async def measured(house: House, case: Case) -> tuple[float, float, float]:
    """Seconds of a case, of its longest change and of its longest transaction."""
    steps = case(house)
    await anext(steps)
    await house.settled()
    holds = house.rc.core.store.db.holds
    holds.changes.clear()
    holds.transactions = Histogram()
    began = time.perf_counter()
    async for _ in steps:
        raise AssertionError("a case yields once")
    spent = time.perf_counter() - began
    for _ in range(2):  # the last one is noted after its caller has gone on
        await house.rc.core.threads.result(house.rc.core.store.db.write(lambda c: None))
    longest = max((seconds.longest for seconds in holds.changes.values()), default=0.0)
    return spent, longest, holds.transactions.longest


async def run(scale: float, only: list[str], urls: dict[str, str | None]) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        settings: dict[str, Any] = {"embedder": {"url": "hash:384"}, "sessions": {"summarize": False}}
        settings |= {"quotas": {"max_files_per_store": 10_000}}
        settings |= {part: {"url": url} for part, url in urls.items() if url}
        rc = await Memoranda.open(folder, **settings)
        house, slow = House(rc, scale), False
        print("| what | s | longest change, ms | longest transaction, ms |\n|---|--:|--:|--:|")
        for name, (says, case) in CASES.items():
            if only and name not in only:
                continue
            spent, change, transaction = await measured(house, case)
            slow |= transaction > SLOW_SECONDS
            print(f"| {says} | {spent:.1f} | {1e3 * change:.0f} | {1e3 * transaction:.0f} |", flush=True)
        await rc.close()
    return slow


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=[])
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--database", help="of PostgreSQL; SQLite without it")
    parser.add_argument("--index", help="URL of the vector index")
    args = parser.parse_args()
    if args.cpu:
        group.perf_counter = time.thread_time  # type: ignore[attr-defined]
    sys.exit(asyncio.run(run(args.scale, args.only, {"database": args.database, "index": args.index})))


if __name__ == "__main__":
    main()
