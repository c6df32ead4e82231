"""What a commit that fails does: documents stay searchable, the caller hears it, it is tried again."""

from __future__ import annotations

import errno
import os
import threading

import pytest

from memoranda.errors import IndexUnavailable
from memoranda.indexes.keyword import WordDoc, segments
from memoranda.indexes.keyword.files import Checkpoint, read_checkpoint, write_checkpoint
from memoranda.indexes.keyword.segments import Segments
from memoranda.indexes.keyword.tantivy import TantivyWords
from support.waiting import until


class FullDisk(Segments):
    """Segments on a disk that is full while `full` says so."""

    full = False

    def commit(self) -> None:
        if self.full:
            raise IndexUnavailable("The word index failed while committing: no space left on device")
        super().commit()


class OnFullDisk(TantivyWords):
    commit_docs = 4
    commit_seconds = 0.02
    max_tail = 20
    segments_type = FullDisk


def docs(*seqs: int) -> list[WordDoc]:
    return [WordDoc(seq, f"thing number{seq}", {}) for seq in seqs]


def fill(words: TantivyWords) -> None:
    """Put more than there is room for."""
    for seq in range(100, 200):
        words.put("t", docs(seq))


def test_a_failing_commit_loses_nothing_and_is_tried_again(tmp_path, caplog):
    words = OnFullDisk("", tmp_path)
    words.put("t", docs(*range(5)))
    words.compact()
    words._segments.full = True
    words.put("t", docs(3, 7, 8, 9))
    words.remove("t", [0])
    words.flush(9)
    with pytest.raises(IndexUnavailable, match="no space"):
        words.compact()
    assert sorted(words.search("t", "thing", 50).seqs) == [1, 2, 3, 4, 7, 8, 9]
    assert (words.count("t"), words.watermark) == (7, 0)
    assert "no space" in str(words.health()["failure"])
    with pytest.raises(IndexUnavailable, match="takes no more"):
        fill(words)
    words._segments.full = False
    words.compact()
    assert (words.watermark, words.health()["failure"]) == (9, None)
    held = words.count("t")
    assert held == len(words.search("t", "thing", 500)) > 7
    words.close()
    again = TantivyWords("", tmp_path)
    assert (again.count("t"), again.watermark) == (held, 9)
    again.close()


class TooManyOpen(Segments):
    """Segments whose writer cannot be opened while `full` says so."""

    full = False

    def _open_writer(self) -> None:
        if self.full:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        super()._open_writer()


class WithTooManyOpen(OnFullDisk):
    segments_type = TooManyOpen


def test_a_writer_that_could_not_be_opened_again_is_opened_later(tmp_path):
    words = WithTooManyOpen("", tmp_path)
    words.put("t", docs(1, 2))
    words._segments.full = True
    with pytest.raises(IndexUnavailable, match="Too many open files"):
        words.compact()
    words.put("t", docs(3))
    until(lambda: words.health()["failure"], "a commit fails")
    words._segments.full = False
    words.remove("t", [1])
    words.flush(4)
    until(lambda: words.watermark == 4, "what waited is committed")
    assert sorted(words.search("t", "thing", 9).seqs) == [2, 3]
    assert words.health()["failure"] is None
    words.close()


def test_closing_on_a_full_disk_says_so_and_lets_go(tmp_path):
    words = OnFullDisk("", tmp_path)
    words._segments.full = True
    words.put("t", docs(1))
    with pytest.raises(IndexUnavailable, match="no space"):
        words.close()
    words.close()
    again = TantivyWords("", tmp_path)
    assert (again.count("t"), again.watermark) == (0, 0)
    again.close()


def test_putting_waits_for_room_and_goes_on():
    words = OnFullDisk("", None)
    writers = [
        threading.Thread(target=words.put, args=("t", docs(*range(n, n + 700)))) for n in (0, 700, 1400)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)
    assert words.count("t") == 2100
    words.close()


def test_a_checkpoint_is_whole_or_nothing(tmp_path):
    path = tmp_path / "checkpoint"
    assert read_checkpoint(path) is None
    write_checkpoint(path, Checkpoint(7, "stamp"))
    write_checkpoint(path, Checkpoint(12, "stamp"))
    assert read_checkpoint(path) == Checkpoint(12, "stamp")
    content = path.read_bytes()
    for i in range(len(content)):
        path.write_bytes(content[:i] + bytes([content[i] ^ 1]) + content[i + 1 :])
        assert read_checkpoint(path) in (None, Checkpoint(12, "stamp"))
        path.write_bytes(content[:i])
        assert read_checkpoint(path) is None


def test_another_analyzer_starts_empty(tmp_path, caplog):
    words = TantivyWords("", tmp_path)
    words.put("t", docs(1))
    words.flush(5)
    words.close()
    write_checkpoint(tmp_path / "checkpoint", Checkpoint(5, "another"))
    again = TantivyWords("", tmp_path)
    assert (again.watermark, again.count("t")) == (0, 0)
    assert "another" in caplog.text
    again.close()


def test_a_file_that_the_end_of_a_merge_writes_is_removed_as_well(tmp_path, monkeypatch):
    folder, calls = tmp_path / "segments", []
    folder.mkdir()
    (folder / "one.idx").write_bytes(b"x")
    rmdir = os.rmdir

    def late(path, **how):
        calls.append(path)
        if len(calls) == 1:
            (folder / ".managed.json").write_bytes(b"[]")
        rmdir(path, **how)

    monkeypatch.setattr(os, "rmdir", late)
    segments.remove_folder(folder)
    assert (folder.exists(), len(calls)) == (False, 2)


def test_a_folder_that_cannot_be_removed_is_an_error(tmp_path, monkeypatch):
    def full(*_, **how):
        raise OSError(errno.ENOTEMPTY, "Directory not empty")

    monkeypatch.setattr(os, "rmdir", full)
    monkeypatch.setattr(segments, "REMOVAL_PAUSE", 0.0)
    (tmp_path / "segments").mkdir()
    with pytest.raises(OSError, match="not empty"):
        segments.remove_folder(tmp_path / "segments")
    monkeypatch.undo()
