"""Disks that are full, folders that cannot be written, files that are not what they should be, two processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import memoranda
from memoranda.app.blocking import BlockingMemoranda, BlockingMemories
from memoranda.errors import FolderInUse, MemorandaError, StorageError
from support.disks import fill, mounted
from support.waiting import until

QUICK = {"url": "hash:64"}
HOLDER = """
import sys, time, memoranda
rc = memoranda.open(sys.argv[1], embedder={"url": "hash:64"})
rc.memories.add("kept")
print("open", flush=True)
time.sleep(120)
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    with mounted(tmp_path / "small", 8) as folder:
        yield folder


def until_refused(memories: BlockingMemories) -> Iterator[str]:
    """Ids of large rows, as they are stored."""
    for n in range(5_000):
        yield memories.add(f"into the full disk {n} " + "x" * 20_000).memory.id


def test_a_full_disk_refuses_and_loses_nothing(small_disk: Path) -> None:
    data = small_disk / "data"
    opened = memoranda.open(data, embedder=QUICK)
    try:
        kept = {opened.memories.add(f"before {n}").memory.id for n in range(50)}
        ballast = fill(small_disk)
        with pytest.raises(StorageError, match="nothing was stored"):
            kept.update(until_refused(opened.memories))
        assert len(opened.memories.search("before", limit=10).results) == 10
        assert {row.id for row in opened.memories.list(limit=1000).data} == kept
        ballast.unlink()
        kept.add(opened.memories.add("room again").memory.id)
        assert opened.memories.search("room again", mode="keyword").results[0].memory.content == "room again"
    finally:
        opened.close()
    with memoranda.open(data, embedder=QUICK) as again:
        assert {row.id for row in again.memories.list(limit=1000).data} == kept
        stats = again.memories.stats()
        assert stats["indexed_vectors"] == stats["indexed_words"] == len(kept)


def test_a_disk_that_fills_under_the_indexes_costs_no_row(small_disk: Path) -> None:
    """Many vectors: the index's own file meets the end of the disk too."""
    data = small_disk / "data"
    kept, counted, found = 0, -1, 0
    opened = memoranda.open(data, embedder={"url": "hash:256"})
    with suppress(MemorandaError), opened:  # a disk this full may refuse to save the indexes at the end, too
        with suppress(StorageError):
            while kept < 20_000:
                opened.memories.add_many([f"row {kept} {n}" for n in range(100)])
                kept += 100
        counted = opened.memories.count()
        found = len(opened.memories.search("row 0 5").results)
    assert 0 < kept < 20_000
    assert (counted, found) == (kept, 10)
    with_more_room = ["mount", "-o", "remount,size=64m", str(small_disk)]
    subprocess.run(with_more_room, check=True)
    with memoranda.open(data, embedder={"url": "hash:256"}) as again:
        stats = again.memories.stats()
        assert stats["memories"] == stats["indexed_vectors"] == stats["indexed_words"] == kept


def test_opening_on_a_full_disk_says_so(small_disk: Path) -> None:
    fill(small_disk)
    with pytest.raises(MemorandaError) as told:
        memoranda.open(small_disk / "data", embedder=QUICK)
    assert str(small_disk) in str(told.value) or "disk" in str(told.value)
    (small_disk / "ballast").unlink()
    with memoranda.open(small_disk / "data", embedder=QUICK) as opened:
        assert opened.memories.add("room").created


def test_a_file_size_limit_is_met_with_an_error(tmp_path: Path) -> None:
    """The same without root: the process may not write files beyond 2 MiB."""
    script = """
import resource, sys, memoranda
from memoranda.errors import MemorandaError
resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, 2 << 20))
rc = memoranda.open(sys.argv[1], embedder={"url": "hash:64"})
kept = 0
try:
    for n in range(10_000):
        rc.memories.add(f"row {n} " + "x" * 10_000)
        kept += 1
except MemorandaError as exc:
    print(type(exc).__name__, kept, rc.memories.count(), len(rc.memories.search("row", limit=5).results))
sys.stdout.flush()
import os
os._exit(0)
"""
    run = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=100, check=True
    )
    name, kept, held, found = run.stdout.split()
    assert (name, int(found)) == ("StorageError", 5)
    assert int(kept) == int(held) > 0
    with memoranda.open(tmp_path, embedder=QUICK) as opened:
        assert opened.memories.count() == int(kept)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o555)
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    script = (
        "import os, sys, memoranda\n"
        "from memoranda.errors import StorageError\n"
        "memoranda.open(':memory:', embedder={'url': 'hash:64'}).close()  # what is imported late, now\n"
        "if os.getuid() == 0: os.setuid(65534)\n"
        "try: memoranda.open(sys.argv[1], embedder={'url': 'hash:64'})\n"
        "except StorageError as exc: print(exc)\n"
    )
    for path in (folder, folder / "below"):
        run = subprocess.run(
            [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False
        )
        assert "cannot be used as a data folder: Permission denied" in run.stdout, run.stderr
        assert str(path) in run.stdout


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("not a folder")
    for wanted in (path, path / "below"):
        with pytest.raises(StorageError, match="cannot be used as a data folder"):
            memoranda.open(wanted, embedder=QUICK)
    assert path.read_text() == "not a folder"


def read_and_write(folder: Path) -> None:
    """Touches every row."""
    with memoranda.open(folder, embedder=QUICK) as opened:
        for row in opened.memories.list(limit=1000).data:
            opened.memories.update(row.id, importance=1)


@pytest.mark.parametrize("at", ["header", "pages", "empty half"])
def test_a_damaged_database_is_a_clear_error(tmp_path: Path, at: str) -> None:
    with memoranda.open(tmp_path, embedder=QUICK) as opened:
        opened.memories.add_many([f"row {n}" for n in range(500)])
    path = tmp_path / "memoranda.db"
    data = bytearray(path.read_bytes())
    if at == "header":
        data[:64] = b"\xff" * 64
    elif at == "pages":
        data[8192:] = b"\xa5" * (len(data) - 8192)
    else:
        del data[len(data) // 2 :]
    path.write_bytes(data)
    with pytest.raises(StorageError) as told:
        read_and_write(tmp_path)
    assert "memoranda.db" in str(told.value)
    assert path.read_bytes()[:64] == bytes(data[:64])


def test_a_database_that_is_a_folder_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "memoranda.db").mkdir()
    with pytest.raises(StorageError, match=r"memoranda\.db"):
        memoranda.open(tmp_path, embedder=QUICK)


def test_a_newer_folder_is_not_touched(tmp_path: Path) -> None:
    with memoranda.open(tmp_path, embedder=QUICK) as opened:
        opened.memories.add("x")
        opened.inner.core.store.db.write(lambda c: c.select("PRAGMA user_version = 9999")).result()
    with pytest.raises(StorageError, match="upgrade memoranda"):
        memoranda.open(tmp_path, embedder=QUICK)


# --- two processes -------------------------------------------------------------------------------------


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the folder open."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "data")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        yield other
        other.kill()


def test_a_second_process_is_told_who_has_the_folder(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(FolderInUse, match=rf"pid {holder.pid}\); stop it"):
        memoranda.open(tmp_path / "data", embedder=QUICK)
    lock = tmp_path / "data" / "memoranda.lock"
    assert json.loads(lock.read_text())["pid"] == holder.pid
    lock.write_text(json.dumps({"pid": holder.pid, "url": "http://127.0.0.1:9"}))
    with pytest.raises(FolderInUse, match=r"http://127\.0\.0\.1:9") as told:
        memoranda.open(tmp_path / "data", embedder=QUICK)
    assert told.value.url == "http://127.0.0.1:9"
    lock.write_text("torn {")
    with pytest.raises(FolderInUse, match="pid unknown"):
        memoranda.open(tmp_path / "data", embedder=QUICK)


def test_the_lock_goes_with_the_process(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait(20)

    def unlocked() -> BlockingMemoranda | None:
        try:
            return memoranda.open(tmp_path / "data", embedder=QUICK)
        except FolderInUse:
            return None

    with until(unlocked, "the lock of the folder") as opened:
        assert [row.content for row in opened.memories.list().data] == ["kept"]
