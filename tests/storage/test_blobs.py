"""What every place for bytes promises; another backend joins by opening in `place`."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import ConfigError, Conflict, InvalidInput, NotFound, StorageError
from memoranda.storage.blobs import Blobs, open_blobs
from memoranda.storage.blobs.disk import folder_names
from memoranda.storage.sql import Database, open_database
from support.disks import mounted

PLACES = ("folder", "database-sqlite", "database-postgresql")
ODD_TENANTS = (
    "../x", "a/b", "a", "A", "", ".", "..", "%", "a%2fb", "a+", "a\\b", "Zoë \U0001f600", "x" * 300, "x" * 200,
    "\u4e2d" * 300, "con", "a b", "-", "x" * 200 + "/" + "y",
)  # fmt: skip


class Place:
    """One backend over one folder, which can be opened again."""

    def __init__(self, name: str, folder: Path, fresh_url: Callable[[], str]) -> None:
        self.folder = folder
        self.url = name.partition("-")[0] + ":"
        self.rows: Database | None = None
        self._database = {"database-sqlite": "sqlite:", "database-postgresql": ""}.get(name)
        if self._database == "":
            self._database = fresh_url()
        self.blobs = self.open()

    def open(self) -> Blobs:
        if self._database is not None:
            self.rows = open_database(self._database, self.folder)
        self.blobs = open_blobs(self.url, self.folder, self.rows)
        return self.blobs

    def close(self) -> None:
        self.blobs.close()
        if self.rows is not None:
            self.rows.close()

    def again(self) -> Blobs:
        """What another process would see."""
        self.close()
        return self.open()

    def leftovers(self) -> list[str]:
        """Every byte of files that is left, by whatever name."""
        files = [
            path for path in self.folder.rglob("*") if path.is_file() and "memoranda.db" not in path.name
        ]
        rows = [] if self.rows is None else self.rows.read(lambda c: c.select("SELECT id FROM blobs"))
        if self.rows is not None:
            rows += self.rows.read(lambda c: c.select("SELECT id FROM blob_pieces"))
        return [str(path) for path in files] + [str(row[0]) for row in rows]


@pytest.fixture(params=PLACES)
def place(request: Any, tmp_path: Path) -> Iterator[Place]:
    folder = tmp_path / "data"
    folder.mkdir()
    opened = Place(request.param, folder, lambda: request.getfixturevalue("postgres_url"))
    yield opened
    opened.close()


@pytest.fixture
def blobs(place: Place) -> Blobs:
    return place.blobs


def put(blobs: Blobs, tenant: str, id: str, data: bytes, piece: int = 300_000) -> None:
    writer = blobs.writer(tenant, id)
    for start in range(0, len(data), piece):
        writer.write(data[start : start + piece])
    assert writer.size == len(data)
    writer.commit()


def get(blobs: Blobs, tenant: str, id: str) -> bytes:
    return b"".join(blobs.read(tenant, id))


def test_unknown_scheme_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'s3' is unknown; use one of folder, database"):
        open_blobs("s3:", tmp_path, None)
    with pytest.raises(ConfigError, match="needs the database"):
        open_blobs("database:", tmp_path, None)


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, 2 << 20, (3 << 20) + 7])
def test_bytes_come_back(place: Place, size: int) -> None:
    data = os.urandom(size)
    put(place.blobs, "t", "file-1", data)
    for look in (lambda: place.blobs, place.again):
        blobs = look()
        assert get(blobs, "t", "file-1") == data
        with blobs.local("t", "file-1") as path:
            assert path.read_bytes() == data
            assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_pieces_are_no_larger_than_asked_for(blobs: Blobs) -> None:
    data = os.urandom((1 << 20) + 100)
    put(blobs, "t", "file-1", data)
    pieces = list(blobs.read("t", "file-1", 5_000))
    assert max(map(len, pieces)) <= 5_000
    assert b"".join(pieces) == data


def test_one_large_write_is_cut(blobs: Blobs) -> None:
    data = os.urandom((3 << 20) + 7)
    put(blobs, "t", "file-1", data, len(data))
    assert get(blobs, "t", "file-1") == data


def test_nothing_is_there_until_it_is_committed(blobs: Blobs) -> None:
    writer = blobs.writer("t", "file-1")
    for _ in range(2):
        writer.write(b"x" * (1 << 20))
        with pytest.raises(NotFound):
            blobs.read("t", "file-1")
        with pytest.raises(NotFound), blobs.local("t", "file-1"):
            pass
        assert not blobs.delete("t", "file-1")
    writer.commit()
    writer.commit()
    writer.abort()
    assert len(get(blobs, "t", "file-1")) == 2 << 20


@pytest.mark.parametrize("written", [0, 100, (1 << 20) * 2 + 1])
def test_an_abort_leaves_nothing(place: Place, written: int) -> None:
    writer = place.blobs.writer("t", "file-1")
    writer.write(b"x" * written)
    writer.abort()
    writer.abort()
    assert place.leftovers() == []
    with pytest.raises(StorageError, match="taken back"):
        writer.write(b"x")
    with pytest.raises(StorageError, match="taken back"):
        writer.commit()
    assert list(place.blobs.stored(0)) == []
    put(place.blobs, "t", "file-1", b"again")
    assert get(place.blobs, "t", "file-1") == b"again"


def test_what_is_there_is_not_written_over(blobs: Blobs) -> None:
    put(blobs, "t", "file-1", b"first")
    with pytest.raises(Conflict):
        put(blobs, "t", "file-1", b"second")
    assert get(blobs, "t", "file-1") == b"first"
    assert list(blobs.stored(0)) == [("t", "file-1")]


def test_two_writers_of_one_id_never_mix(blobs: Blobs) -> None:
    first = blobs.writer("t", "file-1")
    first.write(b"1" * (1 << 20))
    with pytest.raises(Conflict):
        put(blobs, "t", "file-1", b"2" * (1 << 20))
    first.commit()
    assert get(blobs, "t", "file-1") == b"1" * (1 << 20)


def test_a_deletion_takes_everything(place: Place) -> None:
    put(place.blobs, "t", "file-1", os.urandom(20 << 20), 1 << 20)
    put(place.blobs, "t", "file-2", b"small")
    assert place.blobs.delete("t", "file-1")
    assert not place.blobs.delete("t", "file-1")
    with pytest.raises(NotFound):
        place.blobs.read("t", "file-1")
    assert place.blobs.delete("t", "file-2")
    assert place.leftovers() == []


def test_readers_see_all_or_hear_of_a_deletion(blobs: Blobs) -> None:
    data = os.urandom(6 << 20)
    put(blobs, "t", "file-1", data)
    begun = threading.Barrier(5)
    seen: list[bytes | str] = []

    def read() -> None:
        pieces = blobs.read("t", "file-1")
        found = [next(pieces)]
        begun.wait(20)
        try:
            for piece in pieces:
                found.append(piece)
                time.sleep(0.002)
            seen.append(b"".join(found))
        except NotFound as exc:
            seen.append(str(exc))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    begun.wait(20)
    assert blobs.delete("t", "file-1")
    for thread in threads:
        thread.join()
    assert len(seen) == 4
    assert all(one == data or one == "the bytes of file-1 were deleted while they were read" for one in seen)


def test_a_file_that_is_open_outlives_its_deletion(tmp_path: Path) -> None:
    blobs = open_blobs("folder:", tmp_path, None)
    put(blobs, "t", "file-1", b"x" * 1_000_000)
    pieces = blobs.read("t", "file-1")
    assert blobs.delete("t", "file-1")
    assert b"".join(pieces) == b"x" * 1_000_000


def test_writers_beside_each_other(blobs: Blobs) -> None:
    data = {f"file-{n}": os.urandom((1 << 20) + n) for n in range(6)}
    threads = [threading.Thread(target=put, args=(blobs, "t", id, held)) for id, held in data.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {id: get(blobs, "t", id) for id in data} == data
    assert sorted(blobs.stored(0)) == sorted(("t", id) for id in data)


def test_a_writer_that_died_is_swept(place: Place) -> None:
    put(place.blobs, "t", "file-1", b"whole")
    dead = place.blobs.writer("t", "file-2")
    dead.write(b"x" * (3 << 20))
    blobs = place.again()
    with pytest.raises(NotFound):
        blobs.read("t", "file-2")
    assert sorted(blobs.stored(0)) == [("t", "file-1"), ("t", "file-2.part")]
    assert list(blobs.stored(3600)) == []
    assert blobs.delete("t", "file-2.part")
    assert not blobs.delete("t", "file-2.part")
    assert not blobs.delete("t", "file-1.part")
    assert list(blobs.stored(0)) == [("t", "file-1")]
    assert blobs.delete("t", "file-1")
    assert place.leftovers() == []


def test_a_writer_that_was_swept_hears_so(place: Place) -> None:
    writer = place.blobs.writer("t", "file-1")
    writer.write(b"x" * (1 << 20))
    assert place.blobs.delete("t", "file-1.part")
    with pytest.raises(StorageError, match="went away"):
        writer.commit()
    assert place.leftovers() == []


def test_a_deletion_that_died_goes_on(tmp_path: Path) -> None:
    rows = open_database("sqlite:", tmp_path)
    blobs = open_blobs("database:", tmp_path, rows)
    put(blobs, "t", "file-1", b"x" * (3 << 20))
    rows.write(lambda c: c.run("end_blob", [0, "t", "file-1", "complete", "complete"])).result()
    rows.write(lambda c: c.run("drop_blob_pieces", ["t", "file-1", 1])).result()
    with pytest.raises(NotFound):
        blobs.read("t", "file-1")
    assert list(blobs.stored(0)) == [("t", "file-1.part")]
    assert blobs.delete("t", "file-1.part")
    assert rows.read(lambda c: c.select("SELECT count(*) FROM blob_pieces")) == [(0,)]
    rows.close()


def test_tenants_do_not_meet(place: Place) -> None:
    for number, tenant in enumerate(ODD_TENANTS):
        put(place.blobs, tenant, "file-1", b"%d" % number)
    for number, tenant in enumerate(ODD_TENANTS):
        assert get(place.blobs, tenant, "file-1") == b"%d" % number
    blobs = place.again()
    assert sorted(blobs.stored(0)) == sorted((tenant, "file-1") for tenant in ODD_TENANTS)
    assert blobs.delete("a/b", "file-1")
    assert get(blobs, "a", "file-1") == b"2"
    with pytest.raises(NotFound):
        blobs.read("a/b", "file-1")
    outside = [path for path in place.folder.parent.rglob("*") if not path.is_relative_to(place.folder)]
    assert outside == []


def test_folder_names_are_one_per_tenant_where_case_is_ignored() -> None:
    names = ["/".join(folder_names(tenant)).lower() for tenant in ODD_TENANTS]
    assert len(set(names)) == len(ODD_TENANTS)
    assert all(len(part) < 255 and part not in ("", ".", "..") for name in names for part in name.split("/"))


def test_ids_that_are_not_ours_are_refused(blobs: Blobs) -> None:
    for id in ("", ".", "..", "../x", "a/b", "a.part", "é", "a\n", "a b", "x" * 129, ".part"):
        with pytest.raises(InvalidInput, match="id"):
            blobs.writer("t", id)
        with pytest.raises(InvalidInput, match="id"):
            blobs.read("t", id)
        with pytest.raises(InvalidInput, match="id"), blobs.local("t", id):
            pass
        with pytest.raises(InvalidInput, match="id"):
            blobs.delete("t", f"{id}.part")


def test_what_a_reader_had_on_disk_goes_after(place: Place) -> None:
    put(place.blobs, "t", "file-1", b"x" * (2 << 20))
    before = set(place.folder.rglob("*"))
    with pytest.raises(ZeroDivisionError), place.blobs.local("t", "file-1"):
        raise ZeroDivisionError
    assert {path for path in place.folder.rglob("*") if path.is_file()} <= before


def test_what_a_dead_process_was_reading_goes_at_the_next_start(tmp_path: Path) -> None:
    rows = open_database("sqlite:", tmp_path)
    blobs = open_blobs("database:", tmp_path, rows)
    put(blobs, "t", "file-1", b"secret")
    held = blobs.local("t", "file-1")
    path = held.__enter__()
    assert path.is_relative_to(tmp_path)
    open_blobs("database:", tmp_path, rows)
    assert not path.exists()
    rows.close()


def test_only_the_owner_reads_the_files(tmp_path: Path) -> None:
    blobs = open_blobs(f"folder:{tmp_path}/new/place", None, None)
    put(blobs, "t", "file-1", b"x")
    blobs.writer("t", "file-2").write(b"x")
    modes = {path.is_dir(): stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").rglob("*")}
    assert modes == {True: 0o700, False: 0o600}
    assert blobs.shared
    assert blobs.health()["path"] == f"{tmp_path}/new/place"


def test_without_a_data_folder_nothing_stays(tmp_path: Path) -> None:
    blobs = open_blobs("folder:", None, None)
    put(blobs, "t", "file-1", b"x")
    root = Path(str(blobs.health()["path"]))
    assert root.is_dir()
    blobs.close()
    blobs.close()
    assert not root.exists()


def test_health_names_the_backend(place: Place) -> None:
    facts = place.blobs.health()
    assert facts["backend"] == place.url.removesuffix(":")
    if not place.blobs.shared:
        assert int(str(facts["bytes_free"])) > 0
    assert place.blobs.shared == (place.rows is not None and place.rows.shared)


def test_files_that_are_not_ours_are_left_alone(tmp_path: Path) -> None:
    blobs = open_blobs(f"folder:{tmp_path}", None, None)
    put(blobs, "t", "file-1", b"x")
    for name in ("lost+found/xx", "Upper/xx", "t/xx", "t/-1/yy"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("README", "Upper/xx/file-xx", "t/xx/file-yy", "t/note"):
        (tmp_path / name).write_text("someone's")
    assert list(blobs.stored(0)) == [("t", "file-1")]


FULL = """
import errno, resource, sys
from pathlib import Path
from memoranda.storage.blobs import open_blobs
from memoranda.storage.sql import open_database
from memoranda.errors import StorageError
folder = Path(sys.argv[2])
rows = open_database("sqlite:", folder) if sys.argv[1] == "database:" else None
blobs = open_blobs(sys.argv[1], folder, rows)
first = blobs.writer("t", "first")
first.write(b"x" * 1_000_000)
first.commit()
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, hard))
writer = blobs.writer("t", "second")
try:
    for _ in range(20):
        writer.write(b"y" * 1_000_000)
    writer.commit()
except StorageError as exc:
    print(exc)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
writer.abort()
try:
    writer.commit()
except StorageError as exc:
    print(exc)
print(sorted(id.removesuffix(".part") for _, id in blobs.stored(0)))
again = blobs.writer("t", "third")
again.write(b"z" * 10_000_000)
again.commit()
print(len(b"".join(blobs.read("t", "first"))), len(b"".join(blobs.read("t", "third"))))
"""


@pytest.mark.parametrize("url", ["folder:", "database:"])
def test_a_disk_that_is_full(tmp_path: Path, url: str) -> None:
    """No file may grow beyond 4 MiB, of a file that would be 20."""
    run = subprocess.run(
        [sys.executable, "-c", FULL, url, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    told, again, held, sizes = run.stdout.splitlines() or pytest.fail(run.stderr)
    assert str(tmp_path) in told
    if url == "folder:":
        assert "ulimit -f" in told
        assert held == "['first']"
    assert "taken back" in again
    assert sizes == "1000000 10000000"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    with mounted(tmp_path / "small", 4) as folder:
        yield folder


def test_no_room_is_named_and_nothing_is_left(small_disk: Path) -> None:
    blobs = open_blobs(f"folder:{small_disk}", None, None)
    writer = blobs.writer("t", "file-1")
    with pytest.raises(StorageError, match=rf"{small_disk}.* the disk is full; free some space there"):
        writer.write(b"x" * (5 << 20))
    assert [path for path in small_disk.rglob("*") if path.is_file()] == []
    put(blobs, "t", "file-1", b"x" * (3 << 20))
    assert len(get(blobs, "t", "file-1")) == 3 << 20


def test_a_folder_that_may_not_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "files").write_text("not a folder")
    with pytest.raises(StorageError, match=r"keeping files in .*files"):
        open_blobs("folder:", tmp_path, None)


def test_row_security_keeps_tenants_apart(postgres_url: str, tmp_path: Path) -> None:
    rows = open_database(postgres_url, tmp_path)
    blobs = open_blobs("database:", tmp_path, rows)
    put(blobs, "ours", "file-1", b"x")
    for table in ("blobs", "blob_pieces"):
        sql = f"SELECT count(*) FROM {table}"
        assert rows.read(lambda c, sql=sql: c.select(sql), "ours") == [(1,)]
        assert rows.read(lambda c, sql=sql: c.select(sql), "theirs") == [(0,)]
    rows.close()
