"""The suite of the rows' door, over every database."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial, update_wrapper
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from memoranda.errors import ConfigError, StorageError
from memoranda.storage.sql import Connection, Database, open_database
from memoranda.storage.sql.group import GROUP_SECONDS
from memoranda.storage.sql.holds import SLOW_SECONDS, kind_of

ROW = (
    "seq", "rev", "id", "kind", "content", "content_hash", "dedup_key", "occurred_at", "created_at", "updated_at",
)  # fmt: skip


def put(key: str, value: str = "x") -> Callable[[Connection], int]:
    return lambda c: c.run("set_meta", [key, value])


def keys(c: Connection) -> list[str]:
    return [key for (key,) in c.select("SELECT key FROM meta ORDER BY key")]


def memory(seq: int, content: str = "text", tenant: str = "t") -> tuple[Any, ...]:
    """A row of `memories`, with its tenant first and what may be NULL left to be NULL."""
    return (tenant, seq, seq, f"id{seq}", "note", content, "hash", f"key{seq}", None, 1, 1, 1)


def load(c: Connection, rows: list[tuple[Any, ...]]) -> None:
    names = ("tenant_id", *ROW[:7], "user_id", *ROW[7:])
    c.load("memories", names, rows)


def held_up(db: Database) -> threading.Event:
    """Keeps the writing thread busy until the event is set, so that what is queued meanwhile is one group."""
    gate, begun = threading.Event(), threading.Event()

    def wait(c: Connection) -> None:
        begun.set()
        gate.wait(10)

    db.write(wait)
    assert begun.wait(10)
    return gate


@pytest.fixture
def db(home: Any) -> Iterator[Database]:
    database = home.database()
    yield database
    database.close()


def test_unknown_scheme_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"database\.url.*sqlite.*postgresql"):
        open_database("oracle:", tmp_path)


def test_a_write_is_seen_by_every_thread_once_its_future_is_done(db: Database) -> None:
    db.write(put("a")).result()
    seen: list[list[str]] = []
    thread = threading.Thread(target=lambda: seen.append(db.read(keys)))
    thread.start()
    thread.join()
    assert seen == [["a"]]


def test_what_follows_a_write_comes_in_order_and_before_its_future_is_done(db: Database) -> None:
    gate = held_up(db)
    order: list[str] = []
    futures: list[Future[int]] = []
    early: list[bool] = []

    def then(n: int) -> Callable[[int], None]:
        def follow(_: int) -> None:
            order.append(f"k{n}")
            early.append(futures[n].done())

        return follow

    futures += [db.write(put(f"k{n}"), then(n)) for n in range(50)]
    gate.set()
    for future in futures:
        future.result()
    assert order == [f"k{n}" for n in range(50)]
    assert not any(early)


def test_what_follows_is_the_callers_error_and_the_row_stays(db: Database) -> None:
    def fails(_: int) -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        db.write(put("kept"), fails).result()
    assert db.read(keys) == ["kept"]


def fails(c: Connection) -> None:
    c.run("set_meta", ["half", "done"])
    raise RuntimeError("no")


def breaks(c: Connection) -> None:
    c.run("set_meta", ["half", "done"])
    c.select("SELECT no_such_column FROM memories")


@pytest.mark.parametrize(("work", "error"), [(fails, RuntimeError), (breaks, StorageError)])
def test_one_failing_write_is_undone_alone(
    db: Database, work: Callable[[Connection], None], error: type[Exception]
) -> None:
    gate = held_up(db)
    first, bad, last = db.write(put("first")), db.write(work), db.write(put("last"))
    gate.set()
    first.result()
    with pytest.raises(error):
        bad.result()
    last.result()
    assert db.read(keys) == ["first", "last"]


@pytest.mark.parametrize(("work", "error"), [(fails, RuntimeError), (breaks, StorageError)])
def test_a_single_failing_write_leaves_nothing_and_the_next_one_works(
    db: Database, work: Callable[[Connection], None], error: type[Exception]
) -> None:
    with pytest.raises(error):
        db.write(work).result()
    db.write(put("next")).result()
    assert db.read(keys) == ["next"]


def test_an_error_is_reported_when_the_write_before_it_is_visible(db: Database) -> None:
    """A write that fails because of an earlier one of its commit group: its caller reads what that one wrote."""
    gate, seen = held_up(db), list[list[str]]()
    db.write(put("a"))
    failed = db.write(lambda c: c.run("no statement of that name"))
    failed.add_done_callback(lambda _: seen.append(db.read(keys)))
    gate.set()
    with pytest.raises(Exception, match="no statement"):
        failed.result(60)
    db.write(put("b")).result(60)
    assert seen == [["a"]]


def held(db: Database) -> int:
    """How many transactions there were."""
    return sum(db.holds.transactions.spread().counts)


def test_many_writes_share_a_transaction_until_its_time_is_over(db: Database) -> None:
    """However many wait, and whatever each takes, the next caller's turn comes soon; their order stays."""
    order: list[str] = []

    def slow(c: Connection) -> None:
        began = perf_counter()
        while perf_counter() <= began + GROUP_SECONDS:
            put("slow")(c)

    gate = held_up(db)
    futures: list[Future[Any]] = [
        db.write(work, lambda _, name=name: order.append(name))  # type: ignore[misc]
        for name, work in (("a", put("a")), ("slow", slow), ("b", put("b")), ("c", put("c")))
    ]
    db.erase()
    db.write(put("d"), lambda _: order.append("d"))
    gate.set()
    for future in futures:
        future.result()
    db.close()  # what is queued is finished, what was put off as well
    assert order == ["a", "slow", "b", "c", "d"]
    # the gate; a and slow; b and c; the erasing; d. PostgreSQL frees space beside the writer: b, c and d are together
    assert held(db) == (3 if db.shared else 5)


def test_each_change_is_measured_by_who_asked_for_it(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="memoranda")

    def slow(c: Connection) -> None:
        began = perf_counter()
        while perf_counter() <= began + SLOW_SECONDS:
            put("slow")(c)

    with pytest.raises(RuntimeError):
        db.write(fails).result()
    db.write(partial(update_wrapper(lambda c: slow(c), slow))).result()
    db.close()
    assert db.holds.changes.keys() == {"other"}
    spread = db.holds.changes["other"].spread()
    assert sum(spread.counts) == 2
    assert spread.seconds >= db.holds.changes["other"].longest > SLOW_SECONDS
    [said] = [
        record.getMessage() for record in caplog.records if "kept the writer busy" in record.getMessage()
    ]
    assert f"{slow.__module__}.{slow.__qualname__} kept the writer busy for" in said
    assert kind_of("memoranda.sessions.log.Log.write") == "sessions"


def test_close_finishes_what_was_queued(home: Any) -> None:
    db = home.database()
    futures = [db.write(put(f"k{n}")) for n in range(200)]
    db.close()
    assert all(future.done() for future in futures)
    again = home.database()
    assert len(again.read(keys)) == 200
    again.close()


def test_after_close_every_call_says_so(home: Any) -> None:
    db = home.database()
    db.close()
    db.close()
    with pytest.raises(StorageError, match="closed"):
        db.write(put("late"))
    with pytest.raises(StorageError, match="closed"):
        db.read(keys)


def test_close_waits_for_the_reads_under_way(home: Any) -> None:
    for _ in range(3):
        db = home.database()
        begun, seen = threading.Event(), []

        def slow(c: Connection, begun: threading.Event = begun) -> int:
            begun.set()
            sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT max(i) FROM n"
            return int(c.select(sql)[0][0])

        thread = threading.Thread(target=lambda db=db, slow=slow, seen=seen: seen.append(db.read(slow)))
        thread.start()
        begun.wait()
        db.close()
        thread.join()
        assert seen == [20_000]


def test_readers_cannot_write(db: Database) -> None:
    with pytest.raises(StorageError):
        db.read(put("sneaky"))
    assert db.read(keys) == []


def test_a_read_sees_one_moment(db: Database) -> None:
    db.write(put("before")).result()

    def twice(c: Connection) -> tuple[list[str], list[str]]:
        first = keys(c)
        db.write(put("meanwhile")).result()
        return first, keys(c)

    assert db.read(twice) == (["before"], ["before"])
    assert db.read(keys) == ["before", "meanwhile"]


def test_reads_beside_each_other(db: Database) -> None:
    """As many threads as a server has, more than a pool's connections."""
    db.write(put("a")).result()
    seen: list[list[str]] = []
    threads = [threading.Thread(target=lambda: seen.append(db.read(keys))) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [["a"]] * 40


@pytest.mark.parametrize("count", [1, 31, 32, 500])
def test_rows_go_in_as_they_are(db: Database, count: int) -> None:
    """By single statements or in bulk: every character, NULL, numbers up to 63 bits."""
    texts = [
        "é\u4e2d\U0001f600",
        "tab\tnew\nline",
        "\\N",
        "back\\slash",
        "",
        "'\"",
        "$1 ?1 {seqs ?}",
        "x" * 9_000,
    ]
    rows = [memory((1 << 62) + n, texts[n % len(texts)]) for n in range(count)]
    db.write(lambda c: load(c, rows)).result()
    sql = "SELECT seq, content, user_id, tags, confidence FROM memories ORDER BY seq"
    assert db.read(lambda c: c.select(sql)) == [
        ((1 << 62) + n, texts[n % len(texts)], None, "[]", 1.0) for n in range(count)
    ]


def test_a_bulk_with_one_bad_row_stores_none(db: Database) -> None:
    for count in (3, 100):
        rows = [*(memory(n) for n in range(count)), memory(0)]
        with pytest.raises(StorageError):
            db.write(lambda c, rows=rows: load(c, rows)).result()
        assert db.read(lambda c: c.select("SELECT count(*) FROM memories")) == [(0,)]


def test_bytes_come_back(db: Database) -> None:
    data = bytes(range(256))

    def work(c: Connection) -> None:
        load(c, [memory(1)])
        row = c.one("add_space", ["model", 64])
        assert row is not None
        c.run("add_embedding", ["t", row[0], 1, 0, 0, 4, "h", bytearray(data), None])

    db.write(work).result()
    ((vector,),) = db.read(lambda c: c.select("SELECT vector FROM embeddings"))
    assert bytes(vector) == data


def test_text_is_ordered_by_code_point(db: Database) -> None:
    names = ["Z", "a", "É", "~", "\u4e2d", "A", "_", "0", "é"]
    for name in names:
        db.write(put(name)).result()
    assert db.read(keys) == sorted(names)


def test_a_draw_is_nobody_elses(db: Database) -> None:
    futures = [db.write(lambda c: c.one("draw_revs", [3])) for _ in range(60)]
    assert sorted(future.result()[0] for future in futures) == list(range(3, 183, 3))


def test_forgetting_and_compacting_keep_the_rest(db: Database) -> None:
    db.write(lambda c: load(c, [memory(n) for n in range(200)])).result()
    db.write(lambda c: c.run("remove_memories", ["t", f"{list(range(100))}"])).result()
    db.erase().result()
    db.compact().result()
    assert db.read(lambda c: c.select("SELECT min(seq), count(*) FROM memories")) == [(100, 100)]
    db.write(put("goes on")).result()
    assert db.faults() == []
    health = db.health()
    assert health["version"]
    assert int(str(health["bytes"])) > 0
    assert db.erased
