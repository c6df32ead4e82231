"""Whatever happens to the files, the memories hold exactly what the files hold."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.app.blocking import BlockingMemories
from memoranda.app.folder_sync.memory_sync import (
    MAX_ALSO,
    Indexing,
    MemorySync,
    StoredChunks,
    chunks_of,
    metadata,
    places_of,
)
from memoranda.app.folder_sync.scan import Skipped, Text, read
from memoranda.app.folder_sync.sync import gone
from memoranda.store.validation import digest
from memoranda.text.stored import compact_json
from memoranda.types import Memory

NAMES = st.sampled_from(["a.txt", "b.txt", "c.txt"])
TEXTS = st.sampled_from(["", "one", "two", "three " * 40, "one", "two three " * 30 + "one"])
STEPS = st.lists(st.dictionaries(NAMES, TEXTS), min_size=1, max_size=4)
HOW = Indexing(
    ids=dict.fromkeys(["session_id", "user_id", "agent_id", "channel_id"]), size=20, overlap=3, prune=True
)


def texts(memories: BlockingMemories) -> dict[str, Memory]:
    return {memory.content: memory for memory in memories.list(limit=1000, kinds=["document"]).data}


def places(folder: Path) -> set[tuple[str, str, int, int]]:
    """Every (text, path, start, end) that the files hold."""
    return {
        (chunk.content, chunk.place["path"], chunk.place["start"], chunk.place["end"])
        for path in folder.iterdir()
        for chunk in chunks_of(Text(path, path.read_text(), "utf-8"), str(path), HOW.size, HOW.overlap)
    }


@settings(max_examples=10, deadline=None)
@given(steps=STEPS)
def test_memories_follow_files_and_a_second_run_changes_nothing(
    anew: Any, steps: list[dict[str, str]]
) -> None:
    memories = anew()
    with TemporaryDirectory() as name:
        folder = Path(name)
        for files in steps:
            for path in folder.iterdir():
                path.unlink()
            for file, text in files.items():
                (folder / file).write_text(text)
            found = sorted(folder.iterdir())
            MemorySync(memories, HOW).run(found, [folder])
            held = texts(memories)
            kept = {
                (content, place["path"], place["start"], place["end"])
                for content, memory in held.items()
                for place in places_of(memory.metadata)
            }
            assert kept == places(folder)
            again = MemorySync(memories, HOW).run(found, [folder])
            assert (again.added, again.updated, again.removed) == (0, 0, 0)
            assert texts(memories) == held


def test_what_cannot_be_read_is_not_gone() -> None:
    memory = memoranda_memory("text", {"path": "/d/sub/a.txt", "start": 0, "end": 4})
    stored = StoredChunks([memory])
    assert gone(stored.files, [Path("/d")], []) == ["/d/sub/a.txt"]
    assert gone(stored.files, [Path("/d")], [Path("/d/sub")]) == []
    assert gone(stored.files, [Path("/d")], [Path("/d/sub/a.txt")]) == []
    assert gone(stored.files, [Path("/other")], []) == []
    missing = read(Path("/no/such/file"))
    assert isinstance(missing, Skipped)
    assert missing.unreadable


def test_metadata_of_strangers_is_not_taken_for_a_place() -> None:
    assert places_of({"path": 3, "start": 0}) == []
    assert places_of({"path": "x", "start": "0"}) == []
    assert places_of({"path": "x", "start": 0, "also": "y"}) == [{"path": "x", "start": 0}]
    assert len(places_of({"path": "x", "start": 0, "also": [{"path": "z", "start": 1}, 7, {"path": 1}]})) == 2


def test_what_others_put_into_the_metadata_stays() -> None:
    memory = memoranda_memory("text", {"path": "/a", "start": 0, "end": 4, "mine": 1})
    stored = StoredChunks([memory])
    stored.see("/a", list(chunks_of(Text(Path("/a"), "  text", "utf-8"), "/a", 20, 0)))
    stored.see("/b", list(chunks_of(Text(Path("/b"), "text", "utf-8"), "/b", 20, 0)))
    ((id_, wanted),) = stored.settled([])
    assert (id_, wanted) == (
        memory.id,
        {"path": "/b", "chunk_index": 0, "start": 0, "end": 4, "tokens": 1, "mine": 1},
    )


def test_a_text_in_very_many_files_fits_into_its_metadata() -> None:
    many = [{"path": f"/{'x' * 100}/{number:05}", "start": 0, "end": 10} for number in range(2_000)]
    made = metadata(many)
    assert len(places_of(made)) > 100
    assert len(compact_json(made)) < MAX_ALSO + 1_000


def memoranda_memory(content: str, held: dict[str, object]) -> Memory:
    now = datetime.now(UTC)
    return Memory(
        id="mem_1", kind="document", content=content, content_hash=digest(content), metadata=held,
        occurred_at=now, created_at=now, updated_at=now,
    )  # fmt: skip


def test_a_name_that_is_not_utf_8_keeps_no_other_file_out(memories: BlockingMemories, tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("the good one")
    odd = tmp_path / os.fsdecode(b"odd\xff.txt")
    odd.write_text("the odd one")
    done = MemorySync(memories, HOW).run([odd, tmp_path / "good.txt"], [tmp_path])
    assert list(texts(memories)) == ["the good one"]
    assert [(skipped.path, skipped.reason) for skipped in done.skipped] == [(odd, "its name is not UTF-8")]
