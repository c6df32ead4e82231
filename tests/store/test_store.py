"""Rows and indexes in step: through restarts, damage, outages, failing indexes and forgetting."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import memoranda
from memoranda.app import maintenance
from memoranda.app.blocking import BlockingMemoranda, BlockingMemories
from memoranda.errors import (
    DimensionMismatch,
    EmbedderUnavailable,
    FolderInUse,
    IndexUnavailable,
    InvalidInput,
    NotFound,
    StorageError,
)
from memoranda.providers.embeddings.base import Embedded, Embedder, Span, Task
from memoranda.providers.embeddings.hash import HashEmbedder
from memoranda.storage.sql import Connection, Database
from memoranda.store import index_sync
from memoranda.types import SearchResult
from support import live_files
from support.live_files import holding
from support.waiting import until

QUICK = {"url": "hash:64"}
pytestmark = pytest.mark.rows_in("sqlite", "postgresql", "postgresql-local")
WORDS = [
    "amber",
    "basalt",
    "cedar",
    "dune",
    "ember",
    "fjord",
    "grove",
    "heath",
    "islet",
    "jetty",
    "kelp",
    "lagoon",
    "mesa",
    "nectar",
    "oasis",
]


def texts(count: int) -> list[str]:
    """Distinct texts of different lengths that share words, so that hardly two scores are equal."""
    rng = np.random.default_rng(count)
    rare = [" ".join(f"word{n}" for n in rng.integers(0, 400, 2 + n % 23)) for n in range(count)]
    return [f"{WORDS[n % 15]} {WORDS[n // 3 % 15]} entry{n} {rare[n]}" for n in range(count)]


def answers(memories: BlockingMemories) -> dict[str, list[SearchResult]]:
    """What a handful of searches say, by mode."""
    return {
        mode: [memories.search(f"{word} lagoon", limit=30, mode=mode) for word in WORDS[:4]]
        for mode in ("dense", "keyword", "hybrid")
    }


def same(
    ours: dict[str, list[SearchResult]], theirs: dict[str, list[SearchResult]], *, words_anew: bool = False
) -> None:
    """The same answers, to the last bit; with `words_anew`, BM25 scores within a tenth.

    A word index counts removed documents in its frequencies until their segment merges, and scores those it
    has not committed yet in other floats: one that is made again weighs a little differently, and orders
    equal scores differently.
    """
    for mode, results in ours.items():
        for mine, other in zip(results, theirs[mode], strict=True):
            assert mine.degraded == other.degraded == []
            if mode == "dense" or not words_anew:
                assert mine.results == other.results
            elif mode == "keyword":
                scores = [hit.score for hit in mine.results]
                assert scores == pytest.approx([hit.score for hit in other.results], abs=0.1)


def agree(opened: BlockingMemoranda) -> None:
    """Both indexes hold exactly the rows."""
    stats = until(
        opened.memories.stats,
        "every vector in the index, which follows the rows",
        accept=lambda stats: stats["indexed_vectors"] == stats["vectors"],
    )
    assert stats["indexed_words"] == stats["memories"]
    assert stats["behind"] == []


class Fragile(Embedder):
    """The hash embedder, with a switch that takes it away."""

    def __init__(self, dim: int = 64) -> None:
        self.inner = HashEmbedder(dim, 1)
        self.model, self.dim, self.max_tokens = self.inner.model, dim, self.inner.max_tokens
        self.calibration = self.inner.calibration
        self.away = False
        self.asked = 0

    async def embed(self, texts: Sequence[str], task: Task = "document") -> Embedded:
        self.asked += 1
        if self.away:
            raise EmbedderUnavailable("switched off")
        return await self.inner.embed(texts, task)

    def split(self, text: str) -> list[Span]:
        return self.inner.split(text)

    def close(self) -> None:
        self.inner.close()


@pytest.fixture
def fragile(rc: BlockingMemoranda, monkeypatch: pytest.MonkeyPatch) -> Fragile:
    """The switch of `rc`'s embedder; jobs that wait for it try again at once."""
    monkeypatch.setattr(maintenance, "RETRY_AFTER", 0.05)
    monkeypatch.setattr(maintenance, "SOON", 0.05)
    embedder = Fragile()
    rc.inner.core.embedder.inner = embedder
    return embedder


def settled(opened: BlockingMemoranda) -> dict[str, Any]:
    """The stats once no embedding is pending and no index is behind."""
    stats: dict[str, Any] = until(
        opened.memories.stats,
        "no pending embedding and no index behind",
        accept=lambda stats: not stats["unembedded"] and not stats["behind"],
    )
    return stats


# --- restart -------------------------------------------------------------------------------------------


def test_a_restart_changes_no_answer(home: Any) -> None:
    with home.open() as opened:
        added = opened.memories.add_many(texts(300))
        for one in added[::7]:
            opened.memories.delete(one.memory.id)
        for n, one in enumerate(added[1::7]):
            opened.memories.update(one.memory.id, content=f"kelp rewritten {n}")
        before = answers(opened.memories)
        listed = opened.memories.list(limit=1000)
    for _ in range(2):
        with home.open() as opened:
            same(answers(opened.memories), before, words_anew=True)
            assert opened.memories.list(limit=1000) == listed
            agree(opened)


def test_a_second_restart_changes_no_score(
    saved: tuple[Path, dict[str, list[SearchResult]]], tmp_path: Path
) -> None:
    original, before = saved
    shutil.copytree(original, tmp_path / "data")
    for _ in range(2):
        with memoranda.open(tmp_path / "data", embedder=QUICK) as opened:
            same(answers(opened.memories), before)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[SearchResult]]]:
    """A closed folder large enough for its vectors to be in a file, and what it answers."""
    folder = tmp_path_factory.mktemp("saved") / "data"
    with memoranda.open(folder, embedder=QUICK) as opened:
        added = opened.memories.add_many(texts(2_600))
        opened.memories.forget([one.memory.id for one in added[::10]])
    with memoranda.open(folder, embedder=QUICK) as opened:
        before = answers(opened.memories)
    return folder, before


def flip(path: Path) -> None:
    """Changes bytes all over the file."""
    data = bytearray(path.read_bytes())
    for at in range(0, len(data), max(1, len(data) // 64)):
        data[at] ^= 0xFF
    path.write_bytes(data)


DAMAGE = {
    "delete": lambda path: path.unlink(),
    "halve": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "flip": flip,
    "flip the first byte": lambda path: path.write_bytes(
        bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:]
    ),
    "flip the last byte": lambda path: path.write_bytes(
        path.read_bytes()[:-1] + bytes([path.read_bytes()[-1] ^ 1])
    ),
    "grow": lambda path: path.write_bytes(path.read_bytes() + b"\x00" * 4096),
}


USUAL = ("halve",)
"""What is done to the files of words, which are many, in the normal run."""


@pytest.mark.parametrize(
    ("side", "damage"),
    [("index-", damage) for damage in DAMAGE]
    + [
        pytest.param("words-", damage, marks=[] if damage in USUAL else pytest.mark.slow) for damage in DAMAGE
    ],
)
@pytest.mark.gate("index--flip the last byte", "words--halve")
@pytest.mark.long
def test_a_damaged_cache_is_made_again(
    saved: tuple[Path, dict[str, list[SearchResult]]], tmp_path: Path, side: str, damage: str
) -> None:
    original, before = saved
    cache = next(path for path in original.iterdir() if path.name.startswith(side))
    for victim in sorted(path.relative_to(original) for path in cache.rglob("*") if path.is_file()):
        if not (original / victim).stat().st_size or victim.suffix == ".lock":
            continue
        folder = tmp_path / str(victim).replace("/", "-")
        shutil.copytree(original, folder)
        DAMAGE[damage](folder / victim)
        with memoranda.open(folder, embedder=QUICK) as opened:
            same(answers(opened.memories), before, words_anew=side == "words-")
            agree(opened)
        shutil.rmtree(folder)


@pytest.mark.parametrize("side", ["index-", "words-"])
def test_a_lost_cache_is_made_again(
    saved: tuple[Path, dict[str, list[SearchResult]]], tmp_path: Path, side: str
) -> None:
    original, before = saved
    folder = tmp_path / "data"
    shutil.copytree(original, folder)
    shutil.rmtree(next(path for path in folder.iterdir() if path.name.startswith(side)))
    with memoranda.open(folder, embedder=QUICK) as opened:
        same(answers(opened.memories), before, words_anew=side == "words-")
        agree(opened)


def test_an_older_cache_is_brought_up_to_the_rows(tmp_path: Path) -> None:
    """As after a crash: the rows went on, the caches did not."""
    folder, kept = tmp_path / "data", tmp_path / "kept"
    with memoranda.open(folder, embedder=QUICK) as opened:
        added = opened.memories.add_many(texts(200))
    shutil.copytree(folder, kept)
    with memoranda.open(folder, embedder=QUICK) as opened:
        opened.memories.add_many([f"oasis later {n}" for n in range(50)])
        for one in added[::3]:
            opened.memories.delete(one.memory.id)
        for n, one in enumerate(added[1::3]):
            opened.memories.update(one.memory.id, content=f"jetty later {n}")
        before = answers(opened.memories)
        live_files.copy(folder, tmp_path / "crashed")
    crashed = tmp_path / "crashed"
    for cache in [path for path in kept.iterdir() if path.is_dir()]:
        shutil.rmtree(crashed / cache.name)
        shutil.copytree(cache, crashed / cache.name)
    with memoranda.open(crashed, embedder=QUICK) as opened:
        same(answers(opened.memories), before, words_anew=True)
        agree(opened)


def test_a_text_rewritten_in_an_outage_does_not_keep_its_old_vector(tmp_path: Path) -> None:
    """The cache holds the vector of the old text; the process dies before it is saved again."""
    folder, crashed = tmp_path / "data", tmp_path / "crashed"
    with memoranda.open(folder, embedder=QUICK) as opened:
        id_ = opened.memories.add("amber amber amber").memory.id
        opened.memories.add("kelp")
    with memoranda.open(folder, embedder=QUICK) as opened:
        embedder = Fragile()
        opened.inner.core.embedder.inner = embedder
        embedder.away = True
        opened.memories.update(id_, content="basalt basalt basalt")
        live_files.copy(folder, crashed)
    with memoranda.open(crashed, embedder=QUICK) as opened:
        found = opened.memories.search("amber", mode="dense", limit=10)
        assert id_ not in [hit.memory.id for hit in found.results if (hit.similarity or 0) > 0.5]
        until(lambda: opened.memories.stats()["vectors"] == 2, "the vector of the new text")
        agree(opened)


# --- long memories -------------------------------------------------------------------------------------

FILLER = "the committee met again to discuss the budget and the agenda for the coming quarter in detail"
LAST = "Grandmother hid the emerald necklace beneath the walnut floorboard."


def long_note(words: int) -> str:
    """Filler of so many words, and one sentence at its end that is about something else."""
    filler = FILLER.split()
    return " ".join(filler[n % len(filler)] for n in range(words)) + ". " + LAST


def test_the_last_sentence_of_a_long_note_is_found(home: Any) -> None:
    with home.open(embedder={"url": "hash:4096"}) as opened:
        find_the_last_sentence(opened.memories)


def find_the_last_sentence(memories: BlockingMemories) -> None:
    id_ = memories.add(long_note(5_000)).memory.id
    memories.add_many([f"{FILLER} {n}" for n in range(40)])
    assert memories.stats()["vectors"] > 48
    found = memories.search(
        "emerald necklace beneath the walnut floorboard", mode="dense", limit=5, highlights=True
    )
    assert found.results[0].memory.id == id_
    assert len([hit for hit in found.results if hit.memory.id == id_]) == 1
    assert "emerald" in found.results[0].highlights[0].text
    memories.delete(id_)
    assert memories.stats()["indexed_vectors"] == 40


def test_the_shown_window_is_the_one_that_matched(memories: BlockingMemories) -> None:
    memories.add(" ".join(["zinnia"] * 3_000) + " " + " ".join(["quartz"] * 500))
    hit = memories.search("quartz mineral", mode="dense", highlights=True).results[0]
    assert not memories.search("quartz mineral").results[0].highlights
    shown = hit.highlights[0]
    assert "quartz" in shown.text
    assert hit.memory.content[shown.start : shown.end] == shown.text


def test_the_default_model_finds_the_last_sentence_too(tmp_path: Path) -> None:
    with memoranda.open(tmp_path) as opened:
        id_ = opened.memories.add(long_note(5_000)).memory.id
        opened.memories.add_many(
            ["The budget was approved.", "A recipe for walnut bread.", "The floor needs sweeping."]
        )
        found = opened.memories.search("where is the jewellery hidden?", mode="dense", limit=1)
        assert found.results[0].memory.id == id_


# --- the embedding stays inside ------------------------------------------------------------------------


def test_no_answer_holds_an_embedding(
    rc: BlockingMemoranda, memories: BlockingMemories, tmp_path: Path
) -> None:
    vector = np.linspace(0.111, 0.999, 64).astype(np.float32)
    added = memories.add("vector inside", embedding=vector)
    id_ = added.memory.id
    told = [
        added,
        memories.get(id_),
        memories.list(),
        memories.update(id_, importance=3),
        memories.search("vector inside", explain=True, threshold=0.0),
        memories.near_duplicates(),
        memories.stats(),
        memories.reembed(),
        memories.compact(),
        list(memories.export()),
        memories.forget([id_]),
    ]
    for one in told:
        for text in (repr(one), msgspec.json.encode(one).decode()):
            assert "embedding=" not in text
            assert '"vector"' not in text
            assert "0.111" not in text
            assert not re.search(r"(?:-?\d+\.\d+(?:e-?\d+)?,\s*){8}", text)


# --- the model away ------------------------------------------------------------------------------------


def test_an_outage_blocks_no_write_and_shows_in_the_search(
    rc: BlockingMemoranda, memories: BlockingMemories, fragile: Fragile
) -> None:
    memories.add("the heron by the canal")
    fragile.away = True
    added = memories.add("the heron flew north")
    assert (added.created, added.embedded) == (True, False)
    again = memories.add("the heron flew north")
    assert (again.created, again.embedded) == (False, False)
    assert memories.search("heron canal").degraded == ["embedding"]
    assert len(memories.search("heron").results) == 2
    assert memories.search("heron", mode="keyword").degraded == []
    with pytest.raises(EmbedderUnavailable, match="keyword search"):
        memories.search("a question nobody asked before", mode="dense")
    fragile.away = False
    settled(rc)
    assert memories.search("heron").degraded == []
    assert len(memories.search("heron flew north", mode="dense", limit=10).results) == 2
    agree(rc)


def test_a_search_says_that_embeddings_are_pending(
    rc: BlockingMemoranda, memories: BlockingMemories, fragile: Fragile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "SOON", 600.0)
    fragile.away = True
    memories.add("an owed text")
    assert memories.search("owed").degraded == ["embedding"]
    assert memories.stats()["unembedded"] == 1
    memories.forget(scopes=["all"])
    assert memories.stats()["unembedded"] == 0
    memories.add("another owed text")
    fragile.away = False
    found = memories.search("owed")
    assert found.degraded == []
    assert found.results[0].similarity is not None
    until(lambda: memories.stats()["unembedded"] == 0, "the vector that the search made, stored")


def test_an_outage_longer_than_every_retry_heals(
    rc: BlockingMemoranda, memories: BlockingMemories, fragile: Fragile
) -> None:
    fragile.away = True
    memories.add_many(texts(5))
    while fragile.asked < 3 * rc.config.jobs.max_attempts:
        threading.Event().wait(0.05)
    assert memories.stats()["unembedded"] == 5
    fragile.away = False
    assert settled(rc)["vectors"] == 5


def test_an_outage_over_a_restart_heals(home: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "SOON", 0.2)
    with home.open() as opened:
        opened.inner.core.embedder.inner = embedder = Fragile()
        embedder.away = True
        opened.memories.add_many(texts(70))
    with home.open() as opened:
        assert settled(opened)["vectors"] == 70
        agree(opened)


def test_texts_deleted_and_rewritten_while_their_embeddings_are_pending(
    rc: BlockingMemoranda, memories: BlockingMemories, fragile: Fragile
) -> None:
    fragile.away = True
    added = memories.add_many(texts(10))
    memories.delete(added[0].memory.id)
    memories.update(added[1].memory.id, content="quite another text")
    memories.update(added[2].memory.id, tags=["kept"])
    memories.forget([added[3].memory.id])
    assert memories.stats()["unembedded"] == 8
    fragile.away = False
    assert settled(rc)["vectors"] == 8
    found = memories.search("quite another text", mode="dense", limit=1)
    assert found.results[0].memory.id == added[1].memory.id
    agree(rc)


def test_a_vector_handed_in_needs_no_model(memories: BlockingMemories, fragile: Fragile) -> None:
    fragile.away = True
    assert memories.add("brought along", embedding=np.ones(64)).embedded
    assert memories.stats()["unembedded"] == 0


def test_a_model_that_writes_during_its_work_does_not_deadlock(rc: BlockingMemoranda) -> None:
    """It could only hang if the model were asked inside the transaction."""
    core = rc.inner.core

    class Writing(Fragile):
        async def embed(self, texts: Sequence[str], task: Task = "document") -> Embedded:
            core.store.db.write(lambda c: c.run("set_meta", ["probe", "x"])).result(10)
            return await super().embed(texts, task)

    core.embedder.inner = Writing()
    done = threading.Event()

    def work() -> None:
        rc.memories.add_many(texts(20))
        rc.memories.update(rc.memories.add("soon rewritten").memory.id, content="rewritten")
        rc.memories.search("amber")
        rc.memories.wait(rc.memories.reembed(everything=True).id)
        done.set()

    threading.Thread(target=work, daemon=True).start()
    assert done.wait(60)
    assert rc.memories.stats()["unembedded"] == 0


def test_no_model_is_asked_on_the_writing_thread(rc: BlockingMemoranda) -> None:
    seen: set[str] = set()

    class Watched(Fragile):
        async def embed(self, texts: Sequence[str], task: Task = "document") -> Embedded:
            seen.add(threading.current_thread().name)
            return await super().embed(texts, task)

    rc.inner.core.embedder.inner = Watched()
    rc.memories.add("a")
    rc.memories.search("a")
    assert seen
    assert "memoranda-writer" not in seen


# --- another model -------------------------------------------------------------------------------------


def test_another_model_never_answers_for_the_configured_one(home: Any) -> None:
    with home.open() as opened:
        opened.memories.add_many(texts(80))
        first = answers(opened.memories)
    with home.open(embedder={"url": "hash:128"}) as opened:
        during = answers(opened.memories)
        for mode, results in during.items():
            assert all(result.degraded == (["embedding"] if mode != "keyword" else []) for result in results)
            for result, before in zip(results, first[mode], strict=True):
                assert [(hit.memory.id, hit.score) for hit in result.results] == [
                    (hit.memory.id, hit.score) for hit in before.results
                ]
        late = opened.memories.add("written while the vectors are still the first model's")
        assert (
            opened.memories.search("still the first model's", mode="dense").results[0].memory == late.memory
        )
        assert opened.memories.stats()["unembedded"] == 81
        opened.memories.delete(late.memory.id)
        job = opened.memories.wait(opened.memories.reembed().id)
        assert (job.state, job.done, job.total) == ("completed", 80, 80)
        assert opened.memories.search("amber entry0").degraded == []
        agree(opened)
    with home.open() as opened:
        same(answers(opened.memories), first, words_anew=True)
        agree(opened)


def test_without_the_embedder_of_its_vectors_a_folder_answers_from_words(home: Any) -> None:
    with home.open() as opened:
        opened.memories.add_many(texts(80))
        db = opened.inner.core.store.db
        db.write(lambda c: c.run("set_meta", ["embedder", "local:/no/such/model"])).result()
    with home.open(embedder={"url": "hash:128"}) as opened:
        found = opened.memories.search("amber entry0")
        assert found.degraded == ["embedding"]
        assert "entry0" in found.results[0].memory.content
        assert all(hit.similarity is None for hit in found.results)
        assert opened.memories.search("amber entry0", mode="dense").results == []
        assert opened.memories.wait(opened.memories.reembed().id).state == "completed"
        agree(opened)


def test_going_back_to_a_model_that_answered_all_along_misses_nothing(home: Any) -> None:
    with home.open() as opened:
        kept = opened.memories.add("amber one").memory.id
        rewritten = opened.memories.add("basalt two").memory.id
        gone = opened.memories.add("cedar three").memory.id
    with home.open(embedder={"url": "hash:128"}) as opened:
        opened.memories.update(rewritten, content="fjord two")
        opened.memories.delete(gone)
        added = opened.memories.add("dune four").memory.id
    with home.open() as opened:
        found = opened.memories.search("fjord two", mode="dense", limit=10)
        assert found.degraded == []
        assert {hit.memory.id for hit in found.results} == {kept, rewritten, added}
        agree(opened)


def test_going_back_to_a_model_says_what_it_missed(home: Any) -> None:
    with home.open() as opened:
        kept = opened.memories.add("amber one").memory.id
        rewritten = opened.memories.add("basalt two").memory.id
        gone = opened.memories.add("cedar three").memory.id
    with home.open(embedder={"url": "hash:128"}) as opened:
        opened.memories.wait(opened.memories.reembed().id)
        opened.memories.update(rewritten, content="fjord two")
        opened.memories.delete(gone)
        opened.memories.add("dune four")
    with home.open() as opened:
        stats = opened.memories.stats()
        assert (stats["unembedded"], stats["vectors"], stats["indexed_vectors"]) == (2, 3, 3)
        assert opened.memories.search("dune four").degraded == ["embedding"]
        found = opened.memories.search("basalt two", mode="dense", limit=10).results
        assert kept in {hit.memory.id for hit in found}
        opened.memories.wait(opened.memories.reembed().id)
        agree(opened)
        assert opened.memories.stats()["vectors"] == 3


def test_a_model_with_another_dimension_is_refused(home: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with home.open() as opened:
        opened.memories.add("x")
    make = HashEmbedder.__init__

    def renamed(self: HashEmbedder, dim: int, threads: int) -> None:
        make(self, dim, threads)
        self.model = "hash-64"

    monkeypatch.setattr(HashEmbedder, "__init__", renamed)
    with pytest.raises(DimensionMismatch, match="128 dimensions here, 64 in the stored vectors"):
        home.open(embedder={"url": "hash:128"})
    monkeypatch.undo()
    with home.open() as opened:
        assert opened.memories.count() == 1


def test_reembedding_misses_none_and_can_be_interrupted(home: Any) -> None:
    with home.open() as opened:
        opened.memories.add_many(texts(500))
    with home.open(embedder={"url": "hash:32"}) as opened:
        job = opened.memories.reembed(rows_per_second=400)
    with home.open(embedder={"url": "hash:32"}) as opened:
        assert opened.memories.wait(job.id).state == "completed"
        stats = opened.memories.stats()
        assert (stats["vectors"], stats["unembedded"]) == (500, 0)
        agree(opened)


def test_a_cancelled_reembedding_goes_on_where_it_stopped(home: Any) -> None:
    with home.open() as opened:
        opened.memories.add_many(texts(300))
    with home.open(embedder={"url": "hash:32"}) as opened:
        job = opened.memories.reembed(rows_per_second=200)
        while opened.memories.job(job.id).done == 0:
            threading.Event().wait(0.02)
        opened.memories.cancel(job.id)
        assert opened.memories.wait(job.id).state == "cancelled"
        left = opened.memories.stats()["unembedded"]
        assert 0 < left < 300
        second = opened.memories.wait(opened.memories.reembed().id)
        assert (second.done, second.total) == (left, left)
        agree(opened)


# --- an index that fails -------------------------------------------------------------------------------


def failing(times: int, real: Any, error: BaseException) -> Any:
    """`real`, which raises the first `times` it is called."""
    left = [times]

    def call(*args: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise error
        return real(*args)

    return call


@pytest.mark.rows_in("sqlite", "postgresql-local")
@pytest.mark.parametrize("side", ["index", "words"])
@pytest.mark.parametrize("verb", ["put", "remove", "flush"])
@pytest.mark.gate("put-index", "remove-words")
def test_an_index_that_fails_is_repaired(
    rc: BlockingMemoranda, memories: BlockingMemories, monkeypatch: pytest.MonkeyPatch, side: str, verb: str
) -> None:
    first = memories.add_many(texts(20))
    part = getattr(rc.inner.core.store, side)
    repairs: list[str] = []
    queue = rc.inner.core.store.derived.on_behind
    monkeypatch.setattr(rc.inner.core.store.derived, "on_behind", repairs.append)
    monkeypatch.setattr(part, verb, failing(1, getattr(part, verb), RuntimeError("torn")))
    if verb == "remove":
        memories.delete(first[3].memory.id)
    else:
        assert memories.add("the write that the index missed").created
    assert repairs == [side]
    assert memories.search("write missed").degraded == [side]
    kept = memories.add("and one after it").memory.id
    assert memories.get(kept)
    queue(side)
    settled(rc)
    agree(rc)
    assert memories.search("write missed").degraded == []
    if verb != "remove":
        for mode in ("dense", "keyword"):
            found = memories.search("the write that the index missed", mode=mode, limit=1)
            assert found.results[0].memory.content == "the write that the index missed"


@pytest.mark.rows_in("sqlite", "postgresql-local")
def test_a_panic_in_a_native_index_does_not_fail_the_write(
    rc: BlockingMemoranda, memories: BlockingMemories, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Panic(BaseException):
        """What native code raises here: no Exception."""

    index = rc.inner.core.store.index
    monkeypatch.setattr(index, "put", failing(1, index.put, Panic("unwrap on None")))
    assert memories.add("survives a panic").created
    settled(rc)
    agree(rc)


@pytest.mark.rows_in("sqlite")
@pytest.mark.parametrize(
    ("error", "traced"), [(IndexUnavailable("no answer"), False), (OSError("disk"), True)]
)
def test_an_index_that_does_not_answer_is_logged_in_one_line(
    memories: BlockingMemories, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    rc: BlockingMemoranda, error: Exception, traced: bool,
) -> None:  # fmt: skip
    index = rc.inner.core.store.index
    monkeypatch.setattr(index, "put", failing(1, index.put, error))
    memories.add("missed")
    (record,) = (one for one in caplog.records if one.name == "memoranda.store")
    assert record.getMessage() == f"the index did not take a change, it will be repaired: {error}"
    assert bool(record.exc_info) is traced


@pytest.mark.rows_in("sqlite", "postgresql-local")
def test_a_repair_that_fails_is_tried_again(
    rc: BlockingMemoranda, memories: BlockingMemories, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "RETRY_AFTER", 0.2)
    index = rc.inner.core.store.index
    monkeypatch.setattr(index, "put", failing(2, index.put, OSError("disk")))
    memories.add("missed twice")
    settled(rc)
    agree(rc)
    assert memories.search("missed twice", mode="dense").results


@pytest.mark.rows_in("sqlite", "postgresql-local")
def test_an_index_left_behind_is_whole_after_a_restart(home: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with home.open() as opened:
        opened.memories.add_many(texts(30))
        store = opened.inner.core.store
        monkeypatch.setattr(store.derived, "on_behind", lambda side: None)
        for side in (store.index, store.words):
            monkeypatch.setattr(side, "put", failing(1, side.put, RuntimeError("torn")))
        opened.memories.add("missed by both")
        opened.memories.add_many([f"later {n}" for n in range(5)])
    with home.open() as opened:
        agree(opened)
        for mode in ("dense", "keyword"):
            assert (
                opened.memories.search("missed by both", mode=mode).results[0].memory.content
                == "missed by both"
            )


def test_words_are_put_once_when_their_vectors_come_later(
    rc: BlockingMemoranda, memories: BlockingMemories, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = rc.inner.core.store
    seen: list[int] = []
    put = type(store.words).put

    def counting(words: Any, tenant: str, docs: Any) -> None:
        seen.extend(doc.seq for doc in docs)
        put(words, tenant, docs)

    monkeypatch.setattr(type(store.words), "put", counting)
    rc.observe(
        [{"role": "user", "content": f"The heron of pond {n} is grey."} for n in range(70)], channel_id="pond"
    )
    settled(rc)
    assert not store.pending_rows("default", store.space, 1)
    assert len(seen) == len(set(seen)) == 70
    agree(rc)
    found = memories.search("heron of pond 33", mode="keyword", kinds=["message"]).results
    assert found[0].memory.content == "The heron of pond 33 is grey."


def test_a_rebuild_changes_no_answer(rc: BlockingMemoranda, memories: BlockingMemories) -> None:
    memories.add_many(texts(200))
    before = answers(memories)
    assert rc.inner.core.store.derived.rebuild() == {"index": 200, "words": 200}
    same(answers(memories), before, words_anew=True)
    agree(rc)


@pytest.mark.rows_in("sqlite", "postgresql-local")
@pytest.mark.parametrize("repaired", [True, False])
def test_a_rebuild_that_is_interrupted_after_a_write_is_finished_later(
    home: Any, monkeypatch: pytest.MonkeyPatch, repaired: bool
) -> None:
    with home.open() as opened:
        opened.memories.add_many(texts(30))
        derived = opened.inner.core.store.derived
        marked: list[str] = []
        monkeypatch.setattr(derived, "on_behind", marked.append)
        for side in ("index", "words"):

            def interrupted(*_: object, side: str = side) -> int:
                opened.memories.add(f"written while the {side} is filled")
                assert side in opened.inner.core.store.behind
                raise KeyboardInterrupt

            with monkeypatch.context() as patch:
                patch.setattr(index_sync, "replay", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    derived.catch_up(side, 0, clear=True)
        assert marked == ["index", "words"]
        if repaired:
            derived.repair()
            agree(opened)
            assert opened.memories.search("amber").degraded == []
    with home.open() as opened:
        agree(opened)


@pytest.mark.rows_in("sqlite")
def test_an_index_that_could_not_be_cleared_is_cleared_by_the_repair(
    rc: BlockingMemoranda, memories: BlockingMemories, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories.add_many(texts(10))
    derived = rc.inner.core.store.derived
    monkeypatch.setattr(derived, "on_behind", lambda side: None)
    cleared: list[str] = []
    for side in ("index", "words"):
        index = derived.index_of(side)
        clear = index.clear

        def failing() -> None:
            raise OSError("no space")

        def noted(side: str = side, clear: Callable[[], None] = clear) -> None:
            cleared.append(side)
            clear()

        monkeypatch.setattr(index, "clear", failing)
        with pytest.raises(OSError, match="no space"):
            derived.catch_up(side, 0, clear=True)
        monkeypatch.setattr(index, "clear", noted)
        derived.repair()
    assert cleared == ["index", "words"]
    agree(rc)


def test_a_write_that_fails_in_the_database_leaves_nothing(
    rc: BlockingMemoranda, memories: BlockingMemories, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories.add("before")
    db: Database = rc.inner.core.store.db
    broken = db.write(lambda c: _break(c))
    with pytest.raises(StorageError, match="nothing was stored"):
        broken.result(10)
    assert memories.add("after").created
    assert memories.count() == 2
    agree(rc)


def _break(c: Connection) -> None:
    c.run("set_meta", ["half", "done"])
    c.select("SELECT no_such_column FROM memories")


# --- forgetting ----------------------------------------------------------------------------------------

SECRET = "xylophonequartzvortex"


def needles_of(opened: BlockingMemoranda, id_: str) -> list[bytes]:
    """A row's secret word in every spelling, and pieces of its vectors, stored and normalised."""
    core = opened.inner.core
    row = core.store.by_id("default", [id_])[id_]
    vectors = core.store.db.read(
        lambda c: c.all("embeddings_of", ["default", core.store.space, f"[{row.seq}]"])
    )
    blobs = [vector[offset : offset + 32] for *_, vector in vectors for offset in (0, 96, 192)]
    return [
        SECRET.encode(),
        SECRET.upper().encode(),
        SECRET.encode("utf-16-le"),
        SECRET[:12].encode(),
        *blobs,
    ]


def stories(secrets: int, others: int) -> list[dict[str, Any]]:
    """Rows of which some, in a session of their own, hold the secret."""
    rng = np.random.default_rng(5)
    held = [
        {
            "content": f"{SECRET} story {n}",
            "session_id": "told",
            "tags": [f"tag-{SECRET}"],
            "metadata": {"where": SECRET, SECRET: n},
            "embedding": rng.normal(size=64).astype(np.float32),
        }
        for n in range(secrets)
    ]
    return held + [{"content": text, "session_id": "kept"} for text in texts(others)]


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("others", [30, pytest.param(5_000, marks=pytest.mark.slow)])
def test_what_is_forgotten_is_in_no_file(tmp_path: Path, others: int, restart: bool) -> None:
    opened = memoranda.open(tmp_path, embedder=QUICK)
    try:
        added = opened.memories.add_many(stories(20, others))
        needles = [needle for one in added[:20] for needle in needles_of(opened, one.memory.id)]
        opened.memories.update(added[0].memory.id, content=f"{SECRET} rewritten")
        if restart:
            opened.close()
            assert {name for name, _ in holding(tmp_path, *needles)} > {"memoranda.db"}
            opened = memoranda.open(tmp_path, embedder=QUICK)
        assert holding(tmp_path, *needles)
        receipt = opened.memories.forget(scopes=["session:told"])
        assert (receipt.memories, receipt.vectors) == (20, 20)
        assert holding(tmp_path, *needles) == set()
        agree(opened)
        found = opened.memories.search(f"{SECRET} story", mode="keyword")
        assert found.results == []
        assert opened.memories.count() == others
        opened.close()
        assert holding(tmp_path, *needles) == set()
    finally:
        opened.close()


def test_the_receipt_counts_and_the_tombstone_stays(
    rc: BlockingMemoranda, memories: BlockingMemories
) -> None:
    long = memories.add(long_note(2_000)).memory.id
    short = memories.add("short").memory.id
    vectors = memories.stats()["vectors"]
    receipt = memories.forget([long, short, short, "mem_unknown"])
    assert (receipt.memories, receipt.vectors) == (2, vectors)
    assert "exports" in receipt.note
    rows = rc.inner.core.store.db.read(
        lambda c: c.select("SELECT id, memories, vectors FROM tombstones WHERE tenant_id = ?", ["default"])
    )
    assert rows == [(receipt.tombstone, 2, vectors)]


def test_archived_and_superseded_rows_are_forgotten_too(memories: BlockingMemories) -> None:
    old = memories.add("archived", session_id="s").memory.id
    memories.update(old, archived=True)
    past = memories.add("ended", session_id="s", invalid_at="2001-01-01T00:00:00Z").memory.id
    assert memories.forget(scopes=["session:s"]).memories == 2
    for id_ in (old, past):
        with pytest.raises(NotFound):
            memories.get(id_)


def test_a_vector_of_a_model_used_before_is_forgotten_too(tmp_path: Path) -> None:
    with memoranda.open(tmp_path, embedder=QUICK) as opened:
        added = opened.memories.add_many(stories(5, 40))
        needles = [needle for one in added[:5] for needle in needles_of(opened, one.memory.id)]
    with memoranda.open(tmp_path, embedder={"url": "hash:128"}, words={"url": "fts5:"}) as opened:
        assert opened.memories.forget(scopes=["session:told"]).vectors == 5
        assert holding(tmp_path, *needles) == set()
    with memoranda.open(tmp_path, embedder=QUICK) as opened:
        agree(opened)


@pytest.mark.rows_in("sqlite")
def test_forgetting_beside_searches(
    rc: BlockingMemoranda, memories: BlockingMemories, tmp_path: Path
) -> None:
    added = memories.add_many(stories(60, 200))
    needles = [needle for one in added[:60] for needle in needles_of(rc, one.memory.id)[:2]]
    stop = threading.Event()
    failures: list[BaseException] = []

    def searching() -> None:
        while not stop.is_set():
            try:
                memories.search(f"{SECRET} amber")
            except BaseException as exc:
                failures.append(exc)
                return

    threads = [threading.Thread(target=searching) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for n in range(0, 60, 20):
            memories.forget([one.memory.id for one in added[n : n + 20]])
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert holding(tmp_path / "data", *needles) == set()


@pytest.mark.rows_in("sqlite")
def test_what_is_noted_about_removals_and_jobs_has_no_text(
    rc: BlockingMemoranda, memories: BlockingMemories, fragile: Fragile, tmp_path: Path
) -> None:
    fragile.away = True
    added = memories.add_many(stories(3, 3))
    memories.add(f"{SECRET} owed", session_id="told")
    memories.delete(added[0].memory.id)
    memories.forget(scopes=["session:told"])
    assert holding(tmp_path / "data", SECRET.encode()) == set()


@pytest.mark.rows_in("sqlite")
def test_deleting_and_compacting_leaves_no_text_either(
    rc: BlockingMemoranda, memories: BlockingMemories, tmp_path: Path
) -> None:
    added = memories.add_many(stories(10, 30))
    for one in added[:10]:
        memories.delete(one.memory.id)
    assert memories.wait(memories.compact().id).state == "completed"
    assert holding(tmp_path / "data", SECRET.encode()) == set()
    agree(rc)


# --- groups of writes ----------------------------------------------------------------------------------


def test_one_refused_write_in_a_group_does_not_touch_the_others(rc: BlockingMemoranda) -> None:
    """Writes that commit together stand or fall alone."""
    memories = rc.inner.memories
    rc.memories.add("taken", id="taken")

    async def together() -> list[Any]:
        work = [memories.add(f"text {n}", id="taken" if n % 5 == 0 else f"id-{n}") for n in range(60)]
        return await asyncio.gather(*work, return_exceptions=True)

    outcomes = rc.portal.call(together())
    refused = [n for n, one in enumerate(outcomes) if isinstance(one, BaseException)]
    assert refused == list(range(0, 60, 5))
    assert rc.memories.count() == 1 + 48
    agree(rc)


def test_a_caller_that_goes_away_leaves_whole_writes(rc: BlockingMemoranda) -> None:
    """Cancelled at any point, a write is there with its vectors and words, or not at all."""

    async def leaving() -> None:
        for n in range(60):
            task = asyncio.create_task(rc.inner.memories.add_many([f"left {n} {i}" for i in range(5)]))
            for _ in range(n % 12):
                await asyncio.sleep(0)
            await asyncio.sleep(n % 5 / 1000)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    rc.portal.call(leaving())
    rc.memories.add("the last one")
    assert rc.memories.count() % 5 == 1
    agree(rc)


def test_a_search_sees_the_writes_finished_before_it(memories: BlockingMemories) -> None:
    for n in range(60):
        id_ = memories.add(f"unique{n} word").memory.id
        for mode in ("keyword", "dense"):
            found: SearchResult = memories.search(f"unique{n}", mode=mode, limit=100)
            assert id_ in [hit.memory.id for hit in found.results]
        if n % 3 == 0:
            memories.update(id_, content=f"changed{n} word")
            assert memories.search(f"changed{n}", mode="keyword").results[0].memory.id == id_
            assert memories.search(f"unique{n}", mode="keyword").results == []
        if n % 3 == 1:
            memories.delete(id_)
            assert memories.search(f"unique{n}", mode="keyword").results == []


def test_concurrent_updates_of_one_row_end_in_one_of_them(
    rc: BlockingMemoranda, memories: BlockingMemories
) -> None:
    id_ = memories.add("start").memory.id

    async def together() -> None:
        mine = rc.inner.memories
        work = [mine.update(id_, content=f"version {n}") for n in range(20)]
        work += [mine.update(id_, tags=[f"t{n}"]) for n in range(20)]
        await asyncio.gather(*work)

    rc.portal.call(together())
    held = memories.get(id_)
    assert held.content.startswith("version ")
    assert held.tags[0].startswith("t")
    found = memories.search(held.content, mode="dense", limit=1)
    assert found.results[0].similarity == pytest.approx(1.0, abs=1e-4)
    agree(rc)


def test_memory_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with memoranda.open(":memory:", embedder=QUICK) as opened:
        opened.memories.add("fleeting")
        assert opened.memories.search("fleeting").results
        opened.memories.forget(scopes=["all"])
        opened.memories.wait(opened.memories.compact().id)
        assert list(tmp_path.iterdir())
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_never_closes_loses_nothing(home: Any) -> None:
    script = (
        "import json, os, sys, memoranda\n"
        "rc = memoranda.open(sys.argv[1], **json.loads(sys.argv[2]))\n"
        "rc.memories.add_many([f'left open {n}' for n in range(20)])\n"
        "os._exit(0)\n"
    )
    told = [str(home.folder / "data"), json.dumps(home.settings())]
    subprocess.run([sys.executable, "-c", script, *told], check=True, timeout=60)
    with home.open() as opened:
        assert opened.memories.count() == 20
        agree(opened)


@pytest.mark.rows_in("sqlite")
def test_a_folder_opened_twice_in_one_process_is_refused(rc: BlockingMemoranda, tmp_path: Path) -> None:
    with pytest.raises(FolderInUse, match="open in this program already; use the object"):
        memoranda.open(tmp_path / "data", embedder=QUICK)


def test_an_unknown_backend_lists_the_known_ones(tmp_path: Path) -> None:
    for section in ("index", "words", "embedder", "database"):
        with pytest.raises(InvalidInput, match="nonsense"):
            memoranda.open(tmp_path, **{section: {"url": "nonsense:"}})


def test_a_text_said_again_comes_back_from_the_archive(memories: BlockingMemories) -> None:
    first = memories.add("The attic door sticks in winter.").memory
    memories.update(first.id, archived=True)
    assert memories.search("attic door").results == []
    again = memories.add("The attic door sticks in winter.")
    assert (again.created, again.memory.id, again.memory.archived_at) == (False, first.id, None)
    assert [hit.memory.id for hit in memories.search("attic door").results] == [first.id]
    assert memories.list().data[0].archived_at is None


@pytest.mark.rows_in("sqlite")
def test_removed_rows_leave_no_note_once_both_indexes_are_without_them(rc: BlockingMemoranda) -> None:
    kept = rc.memories.add("kept").memory
    gone = rc.memories.add("gone").memory
    rc.memories.forget([gone.id])
    rows = rc.inner.core.store.db.read(lambda c: c.select("SELECT * FROM removals"))
    assert rows == []
    assert [memory.id for memory in rc.memories.list().data] == [kept.id]
