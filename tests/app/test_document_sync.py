"""Whatever happens to the files, the store holds exactly what the files hold, and nothing else that filing brought."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.app import blocking
from memoranda.app.folder_sync.document_sync import DocumentSync, How
from memoranda.knowledge.values import NewStoreFile
from memoranda.text.splitting import Chunking

NAMES = st.sampled_from(["a.txt", "b.txt", "c.txt"])
TEXTS = st.sampled_from(["one", "two", "three " * 40, "one"])
BROKEN = b"%PDF-1.7 this is no pdf"


@pytest.fixture(scope="module")
def opened() -> Iterator[blocking.BlockingMemoranda]:
    with blocking.open(":memory:", embedder={"url": "hash:32"}) as made:
        yield made


def filed(knowledge: Any, store: str, folder: Path, **how: Any) -> Any:
    paths = sorted(path for path in folder.iterdir())
    return DocumentSync(knowledge, store, How(**how)).run(paths, [folder])


def held(knowledge: Any, store: str) -> dict[str, tuple[str, str]]:
    """By path: the hash of the stored bytes, and the text in the store."""
    found = {}
    for one in knowledge.stores.files(store, limit=100).data:
        raw = b"".join(knowledge.files.content(one.id)[1])
        assert one.attributes["path"] not in found
        found[one.attributes["path"]] = (sha256(raw).hexdigest(), knowledge.stores.text(store, one.id))
        assert one.attributes["sha256"] == found[one.attributes["path"]][0]
    return found


@settings(max_examples=6, deadline=None)
@given(steps=st.lists(st.dictionaries(NAMES, TEXTS), min_size=1, max_size=4))
def test_the_store_follows_the_files(opened: blocking.BlockingMemoranda, steps: list[dict[str, str]]) -> None:
    knowledge = opened.knowledge
    store = knowledge.stores.create(name="s")
    with TemporaryDirectory() as made:
        folder = Path(made)
        for step in steps:
            before = {path.name: path.read_text() for path in folder.iterdir()}
            for path in folder.iterdir():
                path.unlink()
            for name, text in step.items():
                (folder / name).write_text(text)
            done = filed(knowledge, store.id, folder, prune=True)
            assert done.unchanged == sum(before.get(name) == text for name, text in step.items())
            assert done.added == len(step.keys() - before.keys())
            assert done.replaced == len(step) - done.added - done.unchanged
            assert done.removed == len(before.keys() - step.keys())
            assert held(knowledge, store.id) == {
                str(folder / name): (sha256(text.encode()).hexdigest(), text) for name, text in step.items()
            }
    for one in knowledge.stores.files(store.id).data:
        knowledge.files.delete(one.id)
    knowledge.stores.delete(store.id)
    assert knowledge.files.list().data == []


def test_files_of_others_are_left_alone(opened: blocking.BlockingMemoranda, tmp_path: Path) -> None:
    knowledge = opened.knowledge
    store = knowledge.stores.create(name="mixed")
    other = knowledge.files.upload(b"by hand", "hand.txt")
    knowledge.stores.attach(
        store.id, [NewStoreFile(file_id=other.id, attributes={"path": str(tmp_path / "x")})]
    )
    (tmp_path / "a.txt").write_text("a text")
    assert filed(knowledge, store.id, tmp_path, prune=True).added == 1
    assert knowledge.stores.wait(store.id).file_counts.completed == 2
    assert filed(knowledge, store.id, tmp_path, prune=True).removed == 0
    assert knowledge.files.get(other.id).filename == "hand.txt"


def test_what_was_cancelled_or_taken_out_is_told(opened: blocking.BlockingMemoranda, tmp_path: Path) -> None:
    knowledge = opened.knowledge
    store = knowledge.stores.create(name="cancelled")
    (tmp_path / "a.txt").write_text("word " * 20_000)

    def interfere(done: Any) -> None:
        files = knowledge.stores.files(store.id).data
        if files:
            knowledge.files.delete(files[0].id)

    how = How(chunking=Chunking(size=10, overlap=0))
    (failure,) = (
        DocumentSync(knowledge, store.id, how)
        .run([tmp_path / "a.txt"], [tmp_path], on_progress=interfere)
        .failed
    )
    assert (failure.code, failure.path) == ("gone", str(tmp_path / "a.txt"))
    assert filed(knowledge, store.id, tmp_path).added == 1


def test_a_file_that_cannot_be_read_is_left_out_and_not_gone(
    opened: blocking.BlockingMemoranda, tmp_path: Path
) -> None:
    knowledge = opened.knowledge
    store = knowledge.stores.create(name="unreadable")
    path = tmp_path / "a.txt"
    path.write_text("a text")
    assert filed(knowledge, store.id, tmp_path).added == 1
    path.unlink()
    done = DocumentSync(knowledge, store.id, How(prune=True)).run([path], [tmp_path])
    assert [one.reason for one in done.skipped] == ["cannot be read: no such file or directory"]
    assert (done.gone, done.removed) == ([], 0)
    done = DocumentSync(knowledge, store.id, How(prune=True)).run([], [tmp_path], [tmp_path])
    assert (done.gone, done.removed) == ([], 0)
    assert filed(knowledge, store.id, tmp_path, prune=True).removed == 1


def test_more_files_than_go_at_once(
    opened: blocking.BlockingMemoranda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoranda.app.folder_sync.document_sync.AHEAD", 3)
    monkeypatch.setattr("memoranda.app.folder_sync.document_sync.PAGE", 2)
    knowledge = opened.knowledge
    store = knowledge.stores.create(name="many")
    for number in range(20):
        (tmp_path / f"{number}.{'txt' if number % 5 else 'pdf'}").write_bytes(
            b"text %d" % number if number % 5 else BROKEN
        )
    working: list[int] = []
    sync, paths = DocumentSync(knowledge, store.id, How()), sorted(tmp_path.iterdir())
    done = sync.run(paths, [tmp_path], on_progress=lambda done: working.append(done.working))
    assert max(working) <= 4
    assert (done.added, done.chunks, len(done.failed)) == (16, 16, 4)
    assert {one.code for one in done.failed} == {"invalid_file"}
    assert done.settled == 20
    for retry in (False, True):
        calls: list[int] = []
        how = How(retry=retry)
        again = DocumentSync(knowledge, store.id, how).run(
            paths,
            [tmp_path],
            on_progress=lambda done: calls.append(done.working),  # noqa: B023
        )
        assert (again.unchanged, [one.code for one in again.failed]) == (16, ["invalid_file"] * 4)
        assert (max(calls) > 0) == retry


def test_two_runs_at_once_leave_one_copy_of_each_file(
    opened: blocking.BlockingMemoranda, tmp_path: Path
) -> None:
    knowledge = opened.knowledge
    store = knowledge.stores.create(name="s").id
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"This is {name}.")
    paths = sorted(tmp_path.iterdir())
    first, second = DocumentSync(knowledge, store, How()), DocumentSync(knowledge, store, How())
    list_all = second._all
    second._all = lambda state=None: list_all(state) if second.seen else iter(())  # type: ignore[method-assign]
    assert first.run(paths, [tmp_path]).added == 2
    done = second.run(paths, [tmp_path])  # it began before the first one had indexed anything
    assert (done.added, done.removed) == (2, 2)
    assert held(knowledge, store).keys() == {str(path) for path in paths}
    for path in paths:
        attributes = {"path": str(path), "sha256": sha256(path.read_bytes()).hexdigest()}
        id_ = knowledge.files.upload(path.read_bytes(), path.name).id
        knowledge.stores.attach(store, [NewStoreFile(file_id=id_, attributes=attributes)])
    knowledge.stores.wait(store)
    again = filed(knowledge, store, tmp_path)
    assert (again.unchanged, again.removed) == (2, 2)
    assert held(knowledge, store).keys() == {str(path) for path in paths}
