"""Files and vector stores, blocking: the same verbs and answers from a folder and through a server."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memoranda import errors
from memoranda.app import blocking
from memoranda.client import Client
from memoranda.knowledge.values import NewStoreFile, PassageQuery, StoreChange
from memoranda.text.splitting import Chunking
from memoranda.types import Subject
from support.pdf_files import page, pdf_of


@pytest.fixture
def client(served: Callable[..., Any]) -> Iterator[Client]:
    with Client(served().url) as made:
        yield made


@pytest.fixture
def local() -> Iterator[blocking.BlockingMemoranda]:
    with blocking.open(":memory:", embedder={"url": "hash:64"}) as made:
        yield made


def test_a_small_file_is_completed_in_the_answer_that_waits(client: Client) -> None:
    stores = client.knowledge.stores
    store = stores.create(name="birds")
    stores.upload(store.id, b"The wren sings.", "first.txt")
    stores.wait(store.id)  # the first file starts the processes that read
    assert stores.upload(store.id, b"The heron stands.", "a.txt", wait=10).status == "completed"
    ids = [client.knowledge.files.upload(b"The kite circles.", f"{name}.txt").id for name in "bc"]
    (file,) = stores.attach(store.id, ids[:1], wait=10)
    assert file.status == "completed"
    assert stores.create_batch(store.id, [NewStoreFile(file_id=ids[1])], wait=10).status == "completed"
    with pytest.raises(errors.InvalidInput, match="wait"):
        stores.attach(store.id, ids[:1], wait=11)


UNTOLD = ("created_at", "last_active_at", "first_id", "last_id", "query_time", "sha256", "media_type")
"""What differs from run to run, or is not told over HTTP."""


def plain(value: Any, names: dict[str, str]) -> Any:
    """A value without what differs between two runs: ids by the order in which they came."""
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__ if name not in UNTOLD}
        return {name: plain(part, names) for name, part in fields.items()}
    if isinstance(value, list | tuple):
        return [plain(one, names) for one in value]
    if isinstance(value, str) and value.startswith(("file-", "vs_", "vsfb_", "chunk_")):
        return names.setdefault(value, f"{value.partition('_')[0][:4]}#{len(names)}")
    return value


def story(knowledge: Any, folder: Path) -> list[Any]:
    """The verbs in a row, and what they said."""
    said: list[Any] = []
    (folder / "kettle.md").write_text("# Kettles\n\nThe kettle is green.\n\n## Age\n\nIt is old.\n")
    path = knowledge.files.upload(folder / "kettle.md")
    raw = knowledge.files.upload(b"the meter is read in June", "meter.txt", purpose="user_data")
    with (folder / "kettle.md").open("rb") as file:
        again = knowledge.files.upload(file, "Grüße \"x\".md", expires_after_seconds=3_600)  # fmt: skip
    said += [path, raw, again.filename, again.expires_at - again.created_at]
    said += [knowledge.files.list(order="asc", limit=2), knowledge.files.get(raw.id)]
    pdf = knowledge.files.upload(pdf_of([page(["A page."]), page(["The kettle is green."])]), "two.pdf")
    drawn = knowledge.files.page_image(pdf.id, 2, width=200, highlight=["The kettle is green.", "a car"])
    said += [drawn, knowledge.files.page_image(pdf.id, width=200, highlight=["kettle is"], find=True).page]
    held, pieces = knowledge.files.content(raw.id)
    said += [held, b"".join(pieces)]
    store = knowledge.stores.create(
        name="s", metadata={"a": "b"}, expires_after_days=3, chunking=Chunking(size=100, overlap=10)
    )
    said += [store.name, store.metadata, store.chunking, store.expires_after_days, store.dimension]
    small = Chunking(strategy="recursive", size=12, overlap=0, header=True)
    new = NewStoreFile(file_id=path.id, attributes={"n": 1.5, "t": "x", "b": True}, chunking=small)
    said += [[one.id for one in knowledge.stores.attach(store.id, [new])]]
    said += [knowledge.stores.wait_file(store.id, path.id), knowledge.stores.text(store.id, path.id)]
    batch = knowledge.stores.create_batch(store.id, [NewStoreFile(file_id=raw.id)])
    said += [knowledge.stores.wait(store.id).file_counts, knowledge.stores.batch(store.id, batch.id)]
    said += [knowledge.stores.cancel_batch(store.id, batch.id).status]
    said += [[one.id for one in knowledge.stores.files(store.id, batch_id=batch.id).data]]
    said += [knowledge.stores.files(store.id, order="asc", state="completed", limit=1).has_more]
    # Before a row is replaced: until its segments are merged, the replaced one counts in BM25.
    explained = PassageQuery(queries=["green kettle"], limit=2, explain=True)
    said += [knowledge.stores.search([store.id], explained)]
    said += [knowledge.stores.set_attributes(store.id, raw.id, {"n": 2.0}).attributes]
    for query in (
        PassageQuery(queries=["meter", "kettle"], filters={"type": "eq", "key": "n", "value": 2}),
        PassageQuery(queries=["old"], mode="keyword", neighbours=1, weights={"dense": 0.5, "words": 0.5}),
    ):
        said.append(knowledge.stores.search([store.id], query))
    said.append(knowledge.stores.search(store.id, "green", limit=1, mode="keyword"))
    more = knowledge.stores.upload(
        store.id, b"a third text", "c.txt", attributes={"n": 3.0, "t": "true"}, chunking=Chunking(size=100)
    )
    said += [more.attributes, more.chunking, knowledge.stores.wait(store.id).file_counts]
    changed = knowledge.stores.update(store.id, StoreChange(name="t", expires_after_days=None))
    said += [changed.name, changed.expires_after_days, changed.metadata]
    knowledge.stores.detach(store.id, raw.id)
    knowledge.files.delete(path.id)
    said += [knowledge.stores.wait(store.id).file_counts, knowledge.stores.list().data[0].id]
    knowledge.stores.delete(store.id)
    said += [len(knowledge.stores.list().data)]
    names: dict[str, str] = {}
    return [plain(one, names) for one in said]


def test_the_same_story_is_told_both_ways(client: Client, local: Any, tmp_path: Path) -> None:
    assert story(client.knowledge, tmp_path) == story(local.knowledge, tmp_path)


FAILURES: list[tuple[type[Exception], str, Callable[[Any], Any]]] = [
    (errors.NotFound, "no file 'nope'", lambda k: k.files.get("nope")),
    (errors.NotFound, "no file 'a b\\?'", lambda k: k.files.delete("a b?")),
    (errors.NotFound, "no vector store 'nope'", lambda k: k.stores.wait("nope")),
    (errors.NotFound, "no file 'nope'", lambda k: k.files.page_image("nope", 1)),
    (errors.InvalidInput, "page: must be between 1 and 1000000", lambda k: k.files.page_image("nope", 0)),
    (
        errors.InvalidInput,
        "width: must be between 100 and 2000",
        lambda k: k.files.page_image("nope", 1, width=2_001),
    ),
    (errors.InvalidInput, "filename: is required", lambda k: k.files.upload(b"bytes")),
    (errors.InvalidInput, "cannot be read: no such file", lambda k: k.files.upload("/no/such/file")),
    (errors.InvalidInput, "cannot be read: is a directory", lambda k: k.files.upload(Path("/"), "x.txt")),
    (errors.NotFound, "no vector store 'vs_x'", lambda k: k.stores.upload("vs_x", b"x", "a.txt")),
    (
        errors.InvalidInput,
        "limit: goes inside",
        lambda k: k.stores.search("x", PassageQuery(queries=["x"]), limit=1),
    ),
    (errors.InvalidInput, "512", lambda k: k.stores.create(name="x" * 513)),
    (errors.InvalidInput, "after", lambda k: k.files.list(after="nope")),
]


@pytest.mark.parametrize(("error", "says", "verb"), FAILURES)
def test_the_same_exceptions_both_ways(
    local: Any, error: type[Exception], says: str, verb: Callable[[Any], Any]
) -> None:
    with pytest.raises(error, match=says):
        verb(local.knowledge)


def test_the_same_exceptions_through_a_server(client: Client) -> None:
    for error, says, verb in FAILURES:
        with pytest.raises(error, match=says):
            verb(client.knowledge)


def test_a_quota_is_named_through_a_server(served: Callable[..., Any]) -> None:
    server = served(quotas={"max_file_bytes": 10, "max_storage_bytes": 15})
    with Client(server.url) as client:
        for source, quota in (
            (b"x" * 11, "max_file_bytes"),
            (b"x" * 10, None),
            (b"y" * 9, "max_storage_bytes"),
        ):
            if quota is None:
                client.knowledge.files.upload(source, "a.txt")
                continue
            with pytest.raises(errors.QuotaExceeded) as told:
                client.knowledge.files.upload(source, "a.txt")
            assert told.value.quota == quota


def test_quotas_are_the_same_both_ways(client: Client, local: Any) -> None:
    def told(opened: Any) -> list[Any]:
        admin = opened.knowledge.admin
        opened.knowledge.files.upload(b"four", "a.txt")
        own, other = admin.set_quotas({"max_stores": 5}), admin.set_quotas({"max_stores": 6}, "acme")
        assert (admin.quotas(), admin.quotas("acme")) == (own, other)
        page = admin.tenants(limit=1)
        assert page.has_more
        rest = admin.tenants(after=page.last_id)
        names = [tenant.name for tenant in (*page.data, *rest.data)]
        default = admin.set_quotas({"max_stores": None})
        with pytest.raises(errors.InvalidInput, match="odd") as caught:
            admin.set_quotas({"odd": 1})
        return [names, own, other, default, caught.value.field, admin.usage(), admin.usage("acme")]

    assert told(client) == told(local)


def test_sources_that_give_no_bytes(local: Any) -> None:
    for source, says in ((io.StringIO("text"), "mode 'rb'"), (3, "is int")):
        with pytest.raises(errors.InvalidInput, match=says):
            local.knowledge.files.upload(source, "a.txt")
    assert local.knowledge.files.list().data == []


def test_an_upload_into_a_store_is_whole_or_not_there(local: Any) -> None:
    knowledge = local.knowledge
    store = knowledge.stores.create(name="s")
    for fields in ({"attributes": {"a": [1]}}, {"chunking": Chunking(size=0)}, {"purpose": "odd"}):
        with pytest.raises(errors.InvalidInput):
            knowledge.stores.upload(store.id, b"text", "a.txt", **fields)
    reader = local.as_subject(Subject(role="reader")).knowledge
    with pytest.raises(errors.Forbidden):
        reader.stores.upload(store.id, b"text", "a.txt")
    knowledge.admin.set_quotas({"max_files_per_store": 0})
    with pytest.raises(errors.QuotaExceeded, match="max_files_per_store"):
        knowledge.stores.upload(store.id, b"text", "a.txt")
    assert knowledge.files.list().data == []
    assert knowledge.admin.usage().storage_bytes == 0


def test_an_upload_by_parts(local: Any, tmp_path: Path) -> None:
    (tmp_path / "second").write_bytes(b"world")
    uploads = local.knowledge.uploads
    upload = uploads.create(filename="a.txt", bytes=11, purpose="assistants", media_type="text/plain")
    parts = [uploads.add_part(upload.id, b"hello "), uploads.add_part(upload.id, tmp_path / "second")]
    done = uploads.complete(upload.id, [part.id for part in parts])
    assert b"".join(local.knowledge.files.content(done.file.id)[1]) == b"hello world"
    assert local.knowledge.admin.usage().storage_bytes == 11
