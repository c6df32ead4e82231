"""The data folder of one process: whom it lets in, and who can read it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import memoranda
from memoranda.errors import FolderInUse

EMBEDDER = {"url": "hash:16"}
OPEN = "import sys, memoranda; memoranda.open(sys.argv[1], embedder={'url': 'hash:16'}).close()"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def filled(folder: Path) -> None:
    with memoranda.open(folder, embedder=EMBEDDER) as product:
        product.memories.add("a note")
        product.knowledge.files.upload(b"a file", "file.txt")


def test_what_is_in_a_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    filled(folder)
    parts = [folder, *folder.iterdir()]
    assert len(parts) >= 6
    for part in parts:
        part.chmod(0o755 if part.is_dir() else 0o644)
    with memoranda.open(folder, embedder=EMBEDDER):
        assert {part.name: oct(mode(part)) for part in parts if mode(part) & 0o077} == {}
        assert not [path.name for path in folder.iterdir() if mode(path) & 0o077]


def test_what_is_new_in_a_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "page.html").write_text("not part of the data folder")
    filled(tmp_path)
    assert {path.name for path in tmp_path.iterdir() if mode(path) & 0o077} == {"page.html"}
    assert mode(tmp_path) == 0o755


def test_links_in_a_folder_are_left_alone(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    filled(folder)
    (folder / "files").rename(elsewhere)
    (folder / "files").symlink_to(elsewhere)
    elsewhere.chmod(0o755)
    with memoranda.open(folder, embedder=EMBEDDER):
        assert mode(elsewhere) == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_of_others_in_a_folder_are_left_alone(tmp_path: Path) -> None:
    filled(tmp_path / "data")
    other = tmp_path / "data" / "index-of-another"
    other.write_text("")
    other.chmod(0o644)
    os.chown(other, 12345, 12345)
    with memoranda.open(tmp_path / "data", embedder=EMBEDDER):
        assert mode(other) == 0o644


@pytest.mark.parametrize("replaced", [False, True])
def test_a_folder_without_its_lock_file_lets_no_second_process_in(tmp_path: Path, replaced: bool) -> None:
    with memoranda.open(tmp_path, embedder=EMBEDDER) as product:
        (tmp_path / "memoranda.lock").unlink()
        if replaced:
            (tmp_path / "memoranda.lock").write_text("{}")
        second = subprocess.run(
            [sys.executable, "-c", OPEN, str(tmp_path)], capture_output=True, text=True, check=False
        )
        assert "is open in another process" in second.stderr
        with pytest.raises(FolderInUse):
            memoranda.open(tmp_path, embedder=EMBEDDER)
        product.memories.add("the first process still writes")
    memoranda.open(tmp_path, embedder=EMBEDDER).close()
