"""The client of a server for coroutines: the classes of the library, with its results and exceptions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda import AsyncClient, Memoranda, errors
from memoranda.app.workspace import Features
from memoranda.client.features import REMOTE
from memoranda.concurrency.portal import Inline
from memoranda.facts.facts import Facts
from memoranda.knowledge import Files, Uploads
from memoranda.memories.memories import Memories
from memoranda.memory_stores.values import NewStore, NewStoreMemory


async def story(product: Features) -> list[Any]:
    """What is stored and read through a product, without what differs from run to run."""
    told: list[Any] = []
    added = await product.memories.add_many(
        ["The kettle is red", {"content": "Tea at four", "tags": ["tea"]}]
    )
    told += [one.created for one in added]
    told += [(await product.memories.pin(added[0].memory.id)).pinned]
    told += [one.content for one in (await product.memories.list(pinned=True)).data]
    told += [(await product.memories.unpin(added[0].memory.id)).pinned]
    told += [hit.memory.content for hit in (await product.memories.search("kettle", limit=1)).results]
    told += [line.count(b"Tea at four") async for line in product.memories.export()]
    observed = await product.observe("Where is the kettle?", session_id="kitchen")
    told += [observed[0].message.content, (await product.sessions.get("kitchen")).message_count]
    told += [(await product.context("kettle", scopes=["all"], enrich=False)).text.count("kettle")]
    told += [(await product.facts.sweep()).over, (await product.agents.list()).data]
    told += [(await product.missing()).summaries, (await product.usage()).tenant]
    evaluated = await product.evaluate([{"query": "kettle", "relevant": [added[0].memory.id]}])
    told += [len(evaluated.questions), (await product.switches.get()).in_force.extraction]
    store = await product.memory_stores.create(NewStore(name="Notes"))
    inside = product.memory_stores.memories(store.id)
    note = await inside.create(NewStoreMemory(path="/note.md", content="one"))
    told += [(await inside.get(note.id)).content]
    talk = await product.conversations.create(metadata={"about": "kettles"})
    told += [(await product.conversations.get(talk.id)).metadata]
    return told


async def pieces() -> AsyncIterator[bytes]:
    yield b"The heron "
    yield b"stands."


async def files(product: Features) -> list[Any]:
    """What becomes of a file whose bytes arrive piece by piece."""
    stored = await product.knowledge.files.upload(pieces(), "heron.txt")
    _, content = await product.knowledge.files.content(stored.id)
    return [stored.filename, stored.bytes, [piece async for piece in content]]


@pytest.mark.parametrize("told", [story, files])
async def test_the_same_story_is_told_both_ways(
    server: Any, tmp_path: Path, told: Callable[[Features], Awaitable[list[Any]]]
) -> None:
    async with AsyncClient(server.url) as client:
        remote = await told(client)
    async with await Memoranda.open(tmp_path / "own", embedder={"url": "hash:64"}) as local:
        assert remote == await told(local)


async def test_calls_at_once_share_a_client(server: Any) -> None:
    async with AsyncClient(server.url) as client:
        added = await asyncio.gather(*(client.memories.add(f"cup {number}") for number in range(20)))
        assert len({one.memory.id for one in added}) == 20
        with pytest.raises(errors.NotFound):
            await client.memories.get("nope")


def test_features_at_a_server_are_those_of_the_library() -> None:
    client = AsyncClient("http://127.0.0.1:9")
    assert isinstance(client.memories, Memories)
    assert isinstance(client.facts, Facts)
    assert isinstance(client.knowledge.files, Files)
    for kind, remote in REMOTE.items():
        assert issubclass(remote, kind)


async def test_what_no_server_offers_says_so() -> None:
    async with AsyncClient("http://127.0.0.1:9") as client:
        with pytest.raises(NotImplementedError, match=r"Facts\.learned_from"):
            await client.facts.learned_from([])
        assert isinstance(client.knowledge.uploads, Uploads)
        with pytest.raises(NotImplementedError, match=r"Uploads\.create"):
            await client.knowledge.uploads.create("a.txt", "assistants", 1, "text/plain")
        with pytest.raises(NotImplementedError, match="UploadAsk"):
            _ = client.upload_ask
        with pytest.raises(errors.StorageError, match="did not answer"):
            await client.memories.count()


def test_a_connection_is_made_as_a_folder_is_opened(server: Any) -> None:
    with memoranda.connect(server.url) as client:
        made = client.memories.add("The spoon is silver").memory
        assert client.memories.get(made.id).content == "The spoon is silver"
    with pytest.raises(errors.StorageError, match="is closed; connect again"):
        client.memories.count()
    client.close()


def test_what_waits_for_a_loop_is_refused_where_there_is_none() -> None:
    inline = Inline()

    async def waiting() -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="waits for an event loop"):
        inline.call(waiting())
    ended: list[str] = []

    async def letters() -> AsyncIterator[str]:
        try:
            for letter in "abc":
                yield letter
        finally:
            ended.append("closed")

    for letter in inline.following(letters()):
        if letter == "b":
            break
    assert ended == ["closed"]
    assert list(inline.following(letters())) == ["a", "b", "c"]
