"""SQLite's own: one commit a group, refusal of newer schemas, survival of a full disk, how connections close."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pysqlite3 import dbapi2 as sqlite

from memoranda.errors import StorageError
from memoranda.storage.sql import Connection, group
from memoranda.storage.sql import sqlite as storage
from memoranda.storage.sql.sqlite import SqliteDatabase


def put(key: str, value: str = "x"):
    return lambda c: c.run("set_meta", [key, value])


def keys(c: Connection) -> list[str]:
    return [key for (key,) in c.select("SELECT key FROM meta ORDER BY key")]


@pytest.fixture
def db(tmp_path: Path):
    database = SqliteDatabase(tmp_path)
    yield database
    database.close()


def test_writes_that_wait_together_are_committed_together(
    db: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group, "GROUP_SECONDS", 60.0)
    gate = threading.Event()
    db.write(lambda c: gate.wait(5))
    order: list[str] = []
    futures = [db.write(put(f"k{i}"), lambda _, i=i: order.append(f"k{i}")) for i in range(50)]
    commits = []
    db._writer.raw.set_trace_callback(lambda sql: commits.append(sql) if sql == "COMMIT" else None)
    gate.set()
    for future in futures:
        future.result()
    assert order == [f"k{i}" for i in range(50)]
    assert len(commits) <= 2


def test_a_full_disk_is_told_and_nothing_is_half_stored(db: SqliteDatabase) -> None:
    db.write(put("before")).result()
    pages = db._writer.raw.execute("PRAGMA page_count").fetchone()[0]
    db._writer.raw.execute(f"PRAGMA max_page_count={pages + 2}")
    with pytest.raises(StorageError, match="nothing was stored"):
        db.write(lambda c: c.many("set_meta", [(f"k{i}", "x" * 4000) for i in range(100)])).result()
    assert db.read(keys) == ["before"]
    db._writer.raw.execute("PRAGMA max_page_count=1000000")
    db.write(put("after")).result()
    assert db.read(keys) == ["after", "before"]


def test_a_folder_of_a_newer_version_is_refused_untouched(tmp_path: Path) -> None:
    SqliteDatabase(tmp_path).close()
    raw = sqlite.connect(str(tmp_path / "memoranda.db"))
    raw.execute("PRAGMA user_version=999")
    raw.close()
    with pytest.raises(StorageError, match="upgrade"):
        SqliteDatabase(tmp_path)


def test_durability_is_full_on_a_real_folder(db: SqliteDatabase) -> None:
    assert db._writer.raw.execute("PRAGMA synchronous").fetchone()[0] == 2
    assert db._writer.raw.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


def test_close_waits_for_the_reads_under_way(tmp_path: Path) -> None:
    for _ in range(20):
        db = SqliteDatabase(tmp_path)
        begun, seen = threading.Event(), []

        def slow(c: Connection, begun: threading.Event = begun) -> int:
            begun.set()
            sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT max(i) FROM n"
            return c.select(sql)[0][0]

        thread = threading.Thread(target=lambda db=db, slow=slow, seen=seen: seen.append(db.read(slow)))
        thread.start()
        begun.wait()
        db.close()
        thread.join()
        assert seen == [20_000]


def test_a_connection_opens_while_a_transaction_is_written(db: SqliteDatabase) -> None:
    begun, go, seen = threading.Event(), threading.Event(), []

    def slow(c: Connection) -> None:
        put("written")(c)
        begun.set()
        go.wait(60)

    written = db.write(slow)
    begun.wait()
    thread = threading.Thread(target=lambda: seen.append(db.read(keys)))  # one of its own
    thread.start()
    thread.join()
    go.set()
    written.result()
    assert seen == [[]]


def pages(db: SqliteDatabase, pragma: str) -> int:
    return int(db.read(lambda c: c.select(f"PRAGMA {pragma}"))[0][0])


def test_free_pages_are_given_back_in_steps(db: SqliteDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others write in between, no step gives back more than it may, and nothing of what was there is left."""
    monkeypatch.setattr(storage, "FREED_PAGES", 10)
    db.write(put("large", "large text" * 100_000)).result()
    db.write(put("kept")).result()
    before = pages(db, "page_count")
    db.write(put("large", "")).result()
    db.erase().result()
    free = pages(db, "freelist_count")
    steps = []
    db._writer.raw.set_trace_callback(lambda sql: steps.append(sql) if "incremental" in sql else None)
    done, meanwhile = db.compact(), db.write(put("meanwhile"))
    done.add_done_callback(lambda _: steps.append("written" if meanwhile.done() else "waits"))
    done.result()
    db._writer.raw.set_trace_callback(None)
    assert free > 90
    assert steps.count("PRAGMA incremental_vacuum(10)") >= free // 10
    assert steps[-1] == "written"
    assert pages(db, "freelist_count") < 10
    assert pages(db, "page_count") <= before - free + 10
    assert b"large text" not in db.path.read_bytes()
    assert db.faults() == []
    assert db.read(keys) == ["kept", "large", "meanwhile"]


def test_a_file_of_an_earlier_version_is_rebuilt_once(tmp_path: Path) -> None:
    SqliteDatabase(tmp_path).close()
    raw = sqlite.connect(str(tmp_path / "memoranda.db"), isolation_level=None)
    raw.execute("PRAGMA auto_vacuum=NONE")
    raw.execute("VACUUM")
    assert raw.execute("PRAGMA auto_vacuum").fetchone()[0] == 0
    raw.close()
    db = SqliteDatabase(tmp_path)
    assert pages(db, "auto_vacuum") == 0
    db.compact().result()
    db.close()
    db = SqliteDatabase(tmp_path)
    assert pages(db, "auto_vacuum") == 2
    db.close()
