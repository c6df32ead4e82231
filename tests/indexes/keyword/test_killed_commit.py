"""What a process leaves that is killed between two files of the word index, and an index that cannot commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.errors import IndexUnavailable
from memoranda.indexes.keyword.base import WordDoc
from memoranda.indexes.keyword.files import listed_segments
from memoranda.indexes.keyword.tantivy import STUCK, TantivyWords
from memoranda.server.health import check
from support.waiting import until


def left_behind(folder: Path) -> list[Path]:
    """Lists of deleted documents with the stamps of the next commits, as a killed process leaves one."""
    path = folder / "segments"
    left = []
    for segment in listed_segments(path):
        name = segment["segment_id"].replace("-", "")
        for stamp in range(1, 40):
            file = path / f"{name}.{stamp}.del"
            if not file.exists():
                file.write_bytes(b"cut off")
                left.append(file)
    return left


@pytest.fixture
def words(tmp_path: Path) -> TantivyWords:
    """An index of five documents."""
    words = TantivyWords("tantivy:", tmp_path)
    words.put("t", [WordDoc(seq, f"green kettle number{seq}", {}) for seq in range(1, 6)])
    words.flush(5)
    return words


def test_what_a_killed_process_left_stops_no_commit(tmp_path: Path, words: TantivyWords) -> None:
    words.close()
    left = left_behind(tmp_path)
    words = TantivyWords("tantivy:", tmp_path)
    assert not any(file.exists() for file in left)
    assert len(words.search("t", "kettle", 10).seqs) == 5, "nothing is built anew"
    words.remove("t", [3])
    words.flush(6)
    words.compact()
    assert words.watermark == 6
    assert 3 not in words.search("t", "kettle", 10).seqs
    words.close()


def test_what_a_failed_commit_left_does_not_stop_the_next(tmp_path: Path, words: TantivyWords) -> None:
    words.compact()
    left = left_behind(tmp_path)
    words.remove("t", [3])
    words.flush(6)
    until(lambda: words.watermark, "the commit after a failed one", accept=lambda rev: rev == 6)
    assert words.health()["failure"] is None
    assert left
    words.close()


def test_an_index_that_cannot_commit_is_seen_and_built_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with memoranda.open(str(tmp_path / "data"), embedder={"url": "hash:64"}) as opened:
        core = opened.inner.core
        store, words = core.store, core.store.words
        assert isinstance(words, TantivyWords)
        kept = opened.memories.add("The kettle is green").memory.id
        gone = opened.memories.add("The secret is swordfish").memory.id
        until(lambda: words.health()["uncommitted"], "the commit", accept=lambda waiting: waiting == 0)
        segments, commit = words._segments, words._segments.commit
        broken = [True]

        def failing() -> None:
            if broken[0]:
                raise IndexUnavailable("The word index failed while committing: FileAlreadyExists")
            commit()

        monkeypatch.setattr(segments, "commit", failing)
        clear = segments.clear

        def cleared() -> None:
            broken[0] = False
            clear()

        monkeypatch.setattr(segments, "clear", cleared)
        opened.memories.add("The cup is blue")
        until(lambda: words.health()["failure"], "a failed commit", accept=bool)
        assert check(store)["words"] == "failing"
        until(lambda: words.stuck, f"{STUCK} failed commits", accept=bool)
        assert opened.memories.forget([gone]).memories == 1
        assert check(store) == {"rows": "ok", "index": "ok", "words": "ok"}
        found: Any = opened.memories.search("kettle", mode="keyword").results
        assert [hit.memory.id for hit in found] == [kept]
        assert opened.memories.search("swordfish", mode="keyword").results == []
