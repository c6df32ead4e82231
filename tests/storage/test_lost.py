"""A database that is missing, empty or another's: no upload and no index is lost by opening what is left."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.app.blocking import BlockingMemoranda
from memoranda.errors import StorageError
from memoranda.knowledge import expiry
from memoranda.storage.blobs.folder import QUARANTINE
from memoranda.storage.data_lock import MARK

EMBEDDER = {"url": "hash:16"}


def opened(folder: Path, **settings: Any) -> BlockingMemoranda:
    return memoranda.open(folder, embedder=EMBEDDER, **settings)


def uploaded(product: BlockingMemoranda, text: str = "the only copy") -> str:
    return product.knowledge.files.upload(text.encode(), "copy.txt").id


def content(product: BlockingMemoranda, id_: str) -> bytes:
    return b"".join(product.knowledge.files.content(id_)[1])


def swept(product: BlockingMemoranda) -> int:
    """How many files the sweep sets aside, also those that came just now."""
    return int(product.portal.call(expiry.Expiry(product.inner.core).sweep(-10.0)))


def test_uploads_outlive_a_database_that_is_missing(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "data", tmp_path / "elsewhere.db"
    with opened(folder) as product:
        id_ = uploaded(product)
        product.memories.add("a note")
    (folder / "memoranda.db").rename(elsewhere)
    with pytest.raises(StorageError, match=r"memoranda\.db is missing beside files, .*bring it back"):
        opened(folder)
    assert not (folder / "memoranda.db").exists()
    elsewhere.rename(folder / "memoranda.db")
    with opened(folder) as product:
        assert swept(product) == 0
        assert content(product, id_) == b"the only copy"


def test_indexes_beside_no_database_are_no_new_folder(tmp_path: Path) -> None:
    with opened(tmp_path) as product:
        product.memories.add("a note")
    (tmp_path / "memoranda.db").unlink()
    with pytest.raises(StorageError, match=r"missing beside index-.*, words-"):
        opened(tmp_path)
    for path in list(tmp_path.glob("*-*")):
        path.rename(tmp_path.with_name(f"{tmp_path.name} {path.name}"))
    with opened(tmp_path) as product:
        assert product.memories.stats()["memories"] == 0


def test_indexes_beside_an_emptied_database_are_no_new_folder(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "data", tmp_path / "elsewhere.db"
    with opened(folder) as product:
        product.memories.add("a note")
    shutil.copy(folder / "memoranda.db", elsewhere)
    (folder / "memoranda.db").write_bytes(b"")
    for _ in range(2):
        with pytest.raises(
            StorageError, match=r"memoranda\.db is empty beside index-.*, words-.*bring it back"
        ):
            opened(folder)
    elsewhere.replace(folder / "memoranda.db")
    with opened(folder) as product:
        assert product.memories.stats()["memories"] == 1


def test_a_first_start_that_fails_behind_the_indexes_can_be_repeated(tmp_path: Path) -> None:
    folder, no_folder = tmp_path / "data", tmp_path / "file"
    no_folder.write_text("in the way")
    with pytest.raises(StorageError):
        opened(folder, files={"url": f"folder:{no_folder}"})
    assert any(path.is_file() for path in folder.glob("words-*/**/*"))
    with opened(folder) as product:
        assert product.memories.add("a note").created


def test_an_empty_database_takes_no_files_of_another(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with opened(folder) as product:
        uploaded(product)
    (folder / "files" / MARK).unlink()
    with opened(tmp_path / "empty"):
        pass
    (tmp_path / "empty" / "memoranda.db").replace(folder / "memoranda.db")
    with pytest.raises(StorageError, match="has files of uploads, and the database is empty"):
        opened(folder)


def test_a_folder_of_an_earlier_build_is_marked_when_it_is_opened(tmp_path: Path) -> None:
    with opened(tmp_path) as product:
        id_ = uploaded(product)
    (tmp_path / "files" / MARK).unlink()
    with opened(tmp_path) as product:
        assert content(product, id_) == b"the only copy"
    assert re.fullmatch("[0-9a-f]{32}", (tmp_path / "files" / MARK).read_text())


def test_an_empty_mark_is_none(tmp_path: Path) -> None:
    """A crash can leave one: the file is made before the id is in it."""
    with opened(tmp_path) as product:
        id_ = uploaded(product)
    (tmp_path / "files" / MARK).write_text("")
    with opened(tmp_path) as product:
        assert content(product, id_) == b"the only copy"
    assert re.fullmatch("[0-9a-f]{32}", (tmp_path / "files" / MARK).read_text())


@pytest.mark.rows_in("sqlite", "postgresql")
def test_two_databases_do_not_share_a_place_for_files(home: Any, tmp_path: Path) -> None:
    shared = {"url": f"folder:{tmp_path / 'shared'}"}
    with home.open(files=shared) as product:
        id_ = uploaded(product)
        with pytest.raises(StorageError, match=r"has the files of another database.*`files.url`"):
            opened(tmp_path / "second", files=shared)
        with pytest.raises(StorageError, match="has the files of another database"):
            opened(":memory:", files=shared)  # type: ignore[arg-type]
        assert content(product, id_) == b"the only copy"
    with home.open(files=shared) as product:
        assert content(product, id_) == b"the only copy"


def test_what_no_row_knows_is_set_aside_and_deleted_days_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as product:
        id_, kept = uploaded(product), uploaded(product, "kept")
        (path,) = (tmp_path / "files").rglob(id_)
        stray = path.with_name(f"file-stray{path.name[-2:]}")
        stray.write_bytes(path.read_bytes())
        assert swept(product) == 1
        (aside,) = (tmp_path / "files" / QUARANTINE).rglob("file-stray*")
        assert (aside.read_bytes(), stray.exists()) == (b"the only copy", False)
        assert swept(product) == 0
        assert aside.exists()
        monkeypatch.setattr(expiry, "DISCARDED_FOR", -10.0)
        swept(product)
        assert not aside.exists()
        assert (content(product, id_), content(product, kept)) == (b"the only copy", b"kept")


def test_forgetting_leaves_nothing_aside(tmp_path: Path) -> None:
    with opened(tmp_path) as product:
        id_ = uploaded(product)
        (path,) = (tmp_path / "files").rglob(id_)
        stray = path.with_name(f"file-stray{path.name[-2:]}")
        stray.write_bytes(path.read_bytes())
        assert swept(product) == 1
        product.memories.forget(text="the only copy")
        assert list((tmp_path / "files" / QUARANTINE).rglob("file-*")) == []
        stray.write_bytes(b"an upload that nobody knows")
        assert swept(product) == 1
        product.memories.forget(text="in no file that has a row")
        assert list((tmp_path / "files" / QUARANTINE).rglob("file-*")) == []


def test_indexes_have_no_row_that_an_older_database_lacks(tmp_path: Path) -> None:
    folder, older = tmp_path / "data", tmp_path / "older.db"
    with opened(folder) as product:
        product.memories.add_many([f"amber {n}" for n in range(10)])
    shutil.copy(folder / "memoranda.db", older)
    with opened(folder) as product:
        product.memories.add_many([f"basalt {n}" for n in range(10)])
    older.replace(folder / "memoranda.db")
    with opened(folder) as product:
        product.memories.add_many(
            [f"cedar {n}" for n in range(5)]
        )  # with revisions that the indexes have seen
        stats = product.memories.stats()
        assert [stats[key] for key in ("memories", "indexed_vectors", "indexed_words")] == [15, 15, 15]
        found = product.memories.search("basalt cedar", mode="keyword", limit=20).results
        assert {hit.memory.content.split()[0] for hit in found} == {"cedar"}
