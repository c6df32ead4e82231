"""Memory stores: texts at unique paths, every version of each, and what becomes of them elsewhere."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memoranda
from memoranda.app.blocking import BlockingMemoranda
from memoranda.app.blocking.features import BlockingStoreMemories
from memoranda.errors import Conflict, Forbidden, InvalidInput, MemorandaError, NotFound
from memoranda.memory_stores.rows import cursor
from memoranda.memory_stores.values import (
    MAX_CONTENT,
    ContentChanged,
    MemoryPrefix,
    NewStore,
    NewStoreMemory,
    PathTaken,
    Precondition,
    StoreChange,
    StoreMemory,
    StoreMemoryChange,
)
from memoranda.types import Subject
from support.waiting import until

ANA = Subject(user_id="ana", role="member")
BEN = Subject(user_id="ben", role="member")
READER = Subject(user_id="ana", role="reader")


@pytest.fixture
def notes(rc: BlockingMemoranda) -> BlockingStoreMemories:
    """The memories of a new store of the tenant."""
    return rc.memory_stores.memories(rc.memory_stores.create(NewStore(name="notes")).id)


def put(notes: BlockingStoreMemories, path: str, content: str = "") -> StoreMemory:
    return notes.create(NewStoreMemory(path=path, content=content))


def hashed(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def rows(rc: BlockingMemoranda, sql: str) -> list[Any]:
    return rc.inner.core.store.db.read(lambda c: c.select(sql))


# --- stores ----------------------------------------------------------------------------------------


def test_a_store_is_changed_listed_archived_and_deleted(rc: BlockingMemoranda) -> None:
    stores = rc.memory_stores
    made = [stores.create(NewStore(name=f"store {n}", metadata={"n": str(n), "x": "y"})) for n in range(5)]
    changed = stores.update(made[0].id, StoreChange(description="of n", metadata={"n": None, "z": "1"}))
    assert (changed.name, changed.description, changed.metadata) == ("store 0", "of n", {"x": "y", "z": "1"})
    assert changed.updated_at > changed.created_at
    assert stores.update(made[0].id, StoreChange()) == changed
    archived = stores.archive(made[1].id)
    assert archived.archived_at is not None
    assert stores.archive(made[1].id) == archived
    page = stores.list(limit=2)
    rest = stores.list(limit=2, page=page.next_page)
    assert [store.name for store in [*page.data, *rest.data]] == ["store 4", "store 3", "store 2", "store 0"]
    assert rest.next_page is None
    assert len(stores.list(include_archived=True).data) == 5
    assert stores.list(since=made[3].created_at, until=made[3].created_at).data == [made[3]]
    stores.delete(made[2].id)
    with pytest.raises(NotFound):
        stores.get(made[2].id)
    with pytest.raises(InvalidInput, match="page"):
        stores.list(page="no page")


def test_an_archived_store_is_read_and_deleted_only(
    rc: BlockingMemoranda, notes: BlockingStoreMemories
) -> None:
    first, second = put(notes, "/a", "one"), put(notes, "/b", "two")
    rc.memory_stores.archive(notes.inner.store_id)
    for write in (
        lambda: put(notes, "/c"),
        lambda: notes.update(first.id, StoreMemoryChange(content="other")),
        lambda: notes.update(first.id, StoreMemoryChange(content="one")),
        lambda: rc.memory_stores.update(notes.inner.store_id, StoreChange(name="other")),
    ):
        with pytest.raises(Conflict, match="archived"):
            write()
    assert notes.get(first.id).content == "one"
    notes.delete(second.id)
    assert notes.list().data == [first]


def test_a_store_belongs_to_its_maker_or_to_the_tenant(rc: BlockingMemoranda) -> None:
    ana, ben = rc.as_subject(ANA).memory_stores, rc.as_subject(BEN).memory_stores
    own, shared = ana.create(NewStore(name="own")), rc.memory_stores.create(NewStore(name="shared"))
    note = put(ana.memories(own.id), "/a", "mine")
    for attempt in (
        lambda: ben.get(own.id),
        lambda: ben.delete(own.id),
        lambda: ben.memories(own.id).list(),
        lambda: ben.memories(own.id).get(note.id),
        lambda: ben.memories(shared.id).get(note.id),
        lambda: ben.versions(own.id).list(),
        lambda: ben.versions(own.id).get(note.memory_version_id),
        lambda: rc.as_subject(Subject(tenant_id="other")).memory_stores.get(own.id),
    ):
        with pytest.raises(NotFound):
            attempt()
    assert {store.name for store in ana.list().data} == {"own", "shared"}
    assert {store.name for store in ben.list().data} == {"shared"}
    put(ben.memories(shared.id), "/b", "ours")
    assert [
        version.created_by.user_id for version in ana.versions(shared.id).list().data if version.created_by
    ] == ["ben"]
    for change in (lambda: ana.delete(shared.id), lambda: ana.update(shared.id, StoreChange(name="x"))):
        with pytest.raises(Forbidden):
            change()
    with pytest.raises(Forbidden):
        put(rc.as_subject(READER).memory_stores.memories(own.id), "/c")
    assert rc.as_subject(READER).memory_stores.memories(own.id).get(note.id).content == "mine"
    assert [hit.memory.id for hit in rc.as_subject(ANA).memories.search("mine").results] == [note.id]
    assert note.id not in [hit.memory.id for hit in rc.as_subject(BEN).memories.search("mine").results]


# --- memories --------------------------------------------------------------------------------------


def test_a_memory_keeps_its_id_and_every_version(rc: BlockingMemoranda, notes: BlockingStoreMemories) -> None:
    note = put(notes, "/style/reports.md", "in metric units")
    assert (note.content, note.content_sha256, note.content_size_bytes) == (
        None,
        hashed("in metric units"),
        15,
    )
    moved = notes.update(note.id, StoreMemoryChange(path="/reports.md", content="ü"), view="full")
    assert (moved.id, moved.path, moved.content, moved.content_size_bytes) == (note.id, "/reports.md", "ü", 2)
    assert (moved.created_at, moved.updated_at > note.updated_at) == (note.created_at, True)
    assert notes.update(note.id, StoreMemoryChange(content="ü"), view="full") == moved
    assert notes.get(note.id) == moved
    notes.delete(note.id)
    for gone in (lambda: notes.get(note.id), lambda: notes.delete(note.id)):
        with pytest.raises(NotFound):
            gone()
    versions = rc.memory_stores.versions(notes.inner.store_id)
    listed = versions.list(memory_id=note.id, view="full").data
    assert [(v.operation, v.path, v.content) for v in listed] == [
        ("deleted", "/reports.md", None),
        ("modified", "/reports.md", "ü"),
        ("created", "/style/reports.md", "in metric units"),
    ]
    assert [v.id for v in versions.list(operation="modified").data] == [moved.memory_version_id]
    assert versions.get(note.memory_version_id).content == "in metric units"
    assert put(notes, "/reports.md", "anew").id != note.id


def test_a_search_finds_the_latest_text_by_content_and_path(
    rc: BlockingMemoranda, notes: BlockingStoreMemories
) -> None:
    note = put(notes, "/kitchen/kettles.md", "They whistle in the morning.")
    found = rc.memories.search("what whistles?").results[0].memory
    assert (found.id, found.metadata) == (note.id, {"path": "/kitchen/kettles.md"})
    assert rc.memories.search("kettles").results[0].memory.id == note.id
    notes.update(note.id, StoreMemoryChange(content="They are silent.", path="/pots.md"))
    assert rc.memories.get(note.id).content == "/pots.md\n\nThey are silent."
    assert rc.memories.search("whistle", mode="keyword").results == []
    assert rc.memories.search("silent pots", source="memory_store").results[0].memory.id == note.id


def test_a_path_is_taken_once_and_no_memory_is_a_directory(notes: BlockingStoreMemories) -> None:
    note = put(notes, "/a/b", "text")
    for path in ("/a/b", "/a", "/a/b/c", "/a/b/c/d"):
        with pytest.raises(PathTaken) as taken:
            put(notes, path)
        assert (taken.value.memory_id, taken.value.path) == (note.id, "/a/b")
    other = put(notes, "/a/b-c")
    assert put(notes, "/A/B").path == "/A/B"
    with pytest.raises(PathTaken):
        notes.update(other.id, StoreMemoryChange(path="/a/b"))
    assert notes.update(other.id, StoreMemoryChange(path="/a/b-c/d")).path == "/a/b-c/d"
    assert notes.update(note.id, StoreMemoryChange(path="/a/b/c")).path == "/a/b/c"


def test_a_change_applies_to_the_content_it_was_made_for(notes: BlockingStoreMemories) -> None:
    note = put(notes, "/a", "first")
    expected = Precondition(type="content_sha256", content_sha256=hashed("other"))
    with pytest.raises(ContentChanged):
        notes.update(note.id, StoreMemoryChange(content="second", precondition=expected))
    assert notes.update(note.id, StoreMemoryChange(content="first", precondition=expected)) == note
    with pytest.raises(ContentChanged):
        notes.delete(note.id, expected_sha256=hashed("other"))
    met = Precondition(type="content_sha256", content_sha256=hashed("first"))
    notes.update(note.id, StoreMemoryChange(content="second", precondition=met))
    notes.delete(note.id, expected_sha256=hashed("second"))


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("a", "must be /"),
        ("/", "empty segment"),
        ("/a//b", "empty segment"),
        ("/a/../b", r"`\.\.`"),
        ("/a/./b", "empty segment"),
        ("/a\nb", "control"),
        ("/a\u200bb", "format"),
        ("/a\u2028b", "separator"),
        ("/a\u0308", "form C"),
        ("/" + "/".join("x" * 21), "20 segments"),
        ("/" + "ü" * 512, "1024 bytes"),
    ],
)
def test_what_is_no_path_is_refused_with_the_reason(
    notes: BlockingStoreMemories, path: str, says: str
) -> None:
    with pytest.raises(InvalidInput, match=says) as refused:
        put(notes, path)
    assert refused.value.field == "path"
    assert notes.list().data == []


def test_content_may_be_empty_and_has_a_limit(notes: BlockingStoreMemories) -> None:
    note = put(notes, "/a")
    assert notes.get(note.id).content == ""
    assert (
        notes.update(note.id, StoreMemoryChange(content="x" * MAX_CONTENT)).content_size_bytes == MAX_CONTENT
    )
    for content, says in (
        ("ü" * (MAX_CONTENT // 2 + 1), "longer"),
        ("a\x00", "NUL"),
        ("\ud800", "surrogate"),
    ):
        with pytest.raises(InvalidInput, match=says):
            put(notes, "/b", content)


SEGMENTS = st.sampled_from(["a", "b", "a-b", "a.b", "ü", "0", "~"])
PATHS = st.lists(SEGMENTS, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


@given(
    paths=st.lists(PATHS, unique=True, max_size=12),
    parts=st.lists(SEGMENTS, max_size=2),
    depth=st.integers(0, 1),
    limit=st.integers(1, 4),
)
@settings(max_examples=60)
def test_pages_list_each_path_once_and_in_order(
    anew_stores: Any, paths: list[str], parts: list[str], depth: int, limit: int
) -> None:
    notes = anew_stores()
    there = []
    for path in paths:
        try:
            put(notes, path)
        except PathTaken:
            assert any(f"{one}/".startswith(f"{path}/") or f"{path}/".startswith(f"{one}/") for one in there)
        else:
            there.append(path)
    prefix = "/" + "".join(f"{part}/" for part in parts)
    below = [path for path in there if path.startswith(prefix)]
    expected = {
        prefix + path.removeprefix(prefix).partition("/")[0] + "/"
        if depth and "/" in path.removeprefix(prefix)
        else path
        for path in below
    }
    found, page = list[str](), None
    while True:
        got = notes.list(path_prefix=prefix, depth=depth, limit=limit, page=page)
        assert all(isinstance(item, MemoryPrefix) == item.path.endswith("/") for item in got.data)
        assert len(got.data) == limit or got.next_page is None
        found += [item.path for item in got.data]
        page = got.next_page
        if page is None:
            break
    assert found == sorted(expected, key=str.encode)


@pytest.fixture(scope="module")
def anew_stores(lasting_home: Any) -> Any:
    """Memories of a new store, each time, in one product."""
    with lasting_home.empty(embedder={"url": "hash:16"}) as opened:
        stores = opened.memory_stores
        yield lambda: stores.memories(stores.create(NewStore(name="anew")).id)


def test_a_full_page_has_contents_and_at_most_twenty_memories(notes: BlockingStoreMemories) -> None:
    for n in range(23):
        put(notes, f"/{n:02}", f"text {n}")
    page = notes.list(limit=100, view="full")
    assert [(item.path, item.content) for item in page.data] == [(f"/{n:02}", f"text {n}") for n in range(20)]  # type: ignore[union-attr]
    assert len(notes.list(limit=100, view="full", page=page.next_page).data) == 3
    assert len(notes.list(limit=100).data) == 23
    for token in (page.next_page, cursor("/a\x00"), "?"):
        with pytest.raises(InvalidInput, match="page"):
            notes.list(path_prefix="/a/", page=token)
    for wrong in ({"limit": 0}, {"limit": 101}, {"depth": 2}, {"path_prefix": "/a"}, {"path_prefix": "/a//"}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            notes.list(**wrong)  # type: ignore[arg-type]


def test_concurrent_changes_lose_nothing(rc: BlockingMemoranda, notes: BlockingStoreMemories) -> None:
    """Of those that expect the same content one applies; without a condition each is a version."""
    note = put(notes, "/a", "0")
    met = Precondition(type="content_sha256", content_sha256=hashed("0"))

    def change(content: str, precondition: Precondition | None) -> bool:
        try:
            notes.update(note.id, StoreMemoryChange(content=content, precondition=precondition))
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(lambda n: change(f"met {n}", met), range(4))) == 1
        applied = sum(pool.map(lambda n: change(f"free {n}", None), range(4)))
        taken = [pool.submit(put, notes, "/b", str(n)) for n in range(4)]
        assert sum(future.exception() is None for future in taken) == 1
    versions = rc.memory_stores.versions(notes.inner.store_id).list(memory_id=note.id, view="full").data
    assert len(versions) == 2 + applied
    assert versions[0].content == notes.get(note.id).content
    assert rc.memories.get(note.id).content == f"/a\n\n{versions[0].content}"


@pytest.mark.rows_in("postgresql")
class TestTwoProcesses:
    """Two products on one database: their writers wait for each other, not only for their own."""

    @pytest.fixture
    def pair(self, home: Any) -> Iterator[tuple[BlockingStoreMemories, BlockingStoreMemories]]:
        with home.open("data") as one, memoranda.open(home.folder / "other", **home.settings("data")) as two:
            store = one.memory_stores.create(NewStore(name="notes"))
            yield one.memory_stores.memories(store.id), two.memory_stores.memories(store.id)

    def both(self, *works: Callable[[], Any]) -> list[Any]:
        """The results of works that begin together, errors as such."""
        barrier = threading.Barrier(len(works))

        def run(work: Callable[[], Any]) -> Any:
            barrier.wait()
            try:
                return work()
            except MemorandaError as exc:
                return exc

        with ThreadPoolExecutor(len(works)) as pool:
            return list(pool.map(run, works))

    def test_one_of_two_changes_meets_its_precondition(self, pair: Any) -> None:
        for n in range(15):
            note = put(pair[0], f"/{n}", "0")
            met = Precondition(type="content_sha256", content_sha256=hashed("0"))
            change = StoreMemoryChange(content="1", precondition=met)
            other = StoreMemoryChange(content="2", precondition=met)
            got = self.both(
                lambda n=note, c=change: pair[0].update(n.id, c),
                lambda n=note, c=other: pair[1].update(n.id, c),
            )
            assert sum(isinstance(one, ContentChanged) for one in got) == 1

    def test_one_of_two_paths_that_overlap_is_taken(self, pair: Any) -> None:
        for n in range(15):
            got = self.both(lambda n=n: put(pair[0], f"/{n}"), lambda n=n: put(pair[1], f"/{n}/a"))
            assert sum(isinstance(one, PathTaken) for one in got) == 1

    def test_a_memory_is_deleted_once_and_stays_deleted(self, pair: Any) -> None:
        for n in range(15):
            note = put(pair[0], f"/{n}", "0")
            change = StoreMemoryChange(content="1")
            got = self.both(
                lambda n=note: pair[0].delete(n.id),
                lambda n=note: pair[1].delete(n.id),
                lambda n=note, c=change: pair[1].update(n.id, c),
            )
            assert got[:2].count(None) == 1
        assert pair[0].list().data == []


# --- versions --------------------------------------------------------------------------------------


def test_a_redacted_version_has_no_text_anywhere(rc: BlockingMemoranda, notes: BlockingStoreMemories) -> None:
    note = put(notes, "/xylophonequartz", "xylophonequartz")
    versions = rc.memory_stores.versions(notes.inner.store_id)
    with pytest.raises(Conflict, match="latest"):
        versions.redact(note.memory_version_id)
    notes.update(note.id, StoreMemoryChange(path="/plain", content="plain"))
    redacted = versions.redact(note.memory_version_id)
    assert (redacted.path, redacted.content, redacted.content_sha256, redacted.content_size_bytes) == (
        None,
    ) * 4
    assert (redacted.operation, redacted.redacted_at is not None) == ("created", True)
    assert versions.redact(note.memory_version_id) == redacted == versions.get(note.memory_version_id)
    assert "xylophone" not in str(rows(rc, "SELECT path, content FROM memory_versions"))
    notes.delete(note.id)
    deleted, modified, _ = versions.list(memory_id=note.id).data
    assert versions.redact(deleted.id).path is None
    assert versions.redact(modified.id).path is None
    with pytest.raises(NotFound):
        versions.redact("memver_none")


def test_versions_are_paged_and_limited_to_a_time(
    rc: BlockingMemoranda, notes: BlockingStoreMemories
) -> None:
    ids = [put(notes, f"/{n}").memory_version_id for n in range(5)]
    versions = rc.memory_stores.versions(notes.inner.store_id)
    found, page = list[str](), None
    for _ in range(3):
        got = versions.list(limit=2, page=page)
        found, page = [*found, *(version.id for version in got.data)], got.next_page
    assert (found, page) == (ids[::-1], None)
    at = versions.get(ids[2]).created_at
    assert [version.id for version in versions.list(since=at, until=at).data] == [ids[2]]
    assert versions.list(since=datetime.now(UTC) + timedelta(days=1)).data == []
    assert versions.list(memory_id="nul\x00").data == []


# --- elsewhere -------------------------------------------------------------------------------------


def test_a_memory_is_changed_in_its_store_only(rc: BlockingMemoranda, notes: BlockingStoreMemories) -> None:
    note = put(notes, "/a", "text")
    for change in ({"content": "other"}, {"kind": "fact"}):
        with pytest.raises(Conflict, match=r"/a of the memory store"):
            rc.memories.update(note.id, **change)
    rc.memories.update(note.id, tags=["t"], importance=3)
    notes.update(note.id, StoreMemoryChange(content="new"))
    kept = rc.memories.get(note.id)
    assert (kept.content, kept.tags, kept.importance) == ("/a\n\nnew", ["t"], 3)


def test_a_note_with_the_same_text_in_the_channel_is_a_conflict(
    rc: BlockingMemoranda, notes: BlockingStoreMemories
) -> None:
    other = rc.memories.add("/a\n\ntext", channel_id=notes.inner.store_id).memory.id
    with pytest.raises(Conflict, match=other):
        put(notes, "/a", "text")
    assert notes.list().data == []
    rc.memories.delete(other)
    put(notes, "/a", "text")


def test_a_memory_deleted_elsewhere_is_erased_with_its_versions(
    rc: BlockingMemoranda, notes: BlockingStoreMemories
) -> None:
    kept, note = put(notes, "/kept", "kept"), put(notes, "/a", "one")
    notes.update(note.id, StoreMemoryChange(content="two"))
    rc.memories.delete(note.id)
    assert notes.list().data == [kept]
    versions = rc.memory_stores.versions(notes.inner.store_id)
    assert [version.memory_id for version in versions.list().data] == [kept.id]
    with pytest.raises(NotFound):
        versions.get(note.memory_version_id)
    until(lambda: len(rows(rc, "SELECT id FROM memory_versions")) == 1, "the erased versions to be deleted")


def test_versions_of_a_deleted_memory_are_forgotten_by_its_id(
    rc: BlockingMemoranda, notes: BlockingStoreMemories
) -> None:
    note, kept = put(notes, "/a", "the zebra"), put(notes, "/b", "the lion")
    for one in (note, kept):
        notes.delete(one.id)
    hers = rc.as_subject(ANA).memory_stores.create(NewStore(name="hers"))
    own = put(rc.as_subject(ANA).memory_stores.memories(hers.id), "/a", "hers")
    rc.as_subject(ANA).memory_stores.memories(hers.id).delete(own.id)
    rc.as_subject(BEN).memories.forget([own.id])
    assert rc.memories.forget([note.id]).counts == {"memory_versions": 2}
    assert {memory_id for (memory_id,) in rows(rc, "SELECT memory_id FROM memory_versions")} == {
        kept.id,
        own.id,
    }


def test_a_note_with_the_id_of_a_deleted_memory_is_not_that_memory(
    rc: BlockingMemoranda, notes: BlockingStoreMemories
) -> None:
    note = put(notes, "/a", "text")
    notes.delete(note.id)
    rc.memories.add("hello", id=note.id)
    rc.memories.update(note.id, content="hello again")
    rc.memories.delete(note.id)
    assert len(rc.memory_stores.versions(notes.inner.store_id).list(memory_id=note.id).data) == 2


def test_what_others_set_on_a_memory_stays_but_for_its_path(
    rc: BlockingMemoranda, notes: BlockingStoreMemories
) -> None:
    note = put(notes, "/a", "text")
    rc.memories.update(note.id, metadata={"path": "/wrong", "team": "red"}, archived=True)
    notes.update(note.id, StoreMemoryChange(path="/b"))
    kept = rc.memories.get(note.id)
    assert (kept.metadata, kept.archived_at) == ({"path": "/b", "team": "red"}, None)


def test_a_store_is_deleted_while_others_write_into_it(
    rc: BlockingMemoranda, notes: BlockingStoreMemories
) -> None:
    ended = threading.Event()

    def write(number: int) -> None:
        for n in itertools.count():
            if ended.is_set():
                return
            with suppress(Conflict, NotFound):
                put(notes, f"/{number}/{n}", "text")

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, number) for number in range(4)]
        try:
            rc.memory_stores.delete(notes.inner.store_id)
        finally:
            ended.set()
        for writer in writers:
            writer.result()
    assert rows(rc, "SELECT * FROM store_memories") == rows(rc, "SELECT * FROM memory_versions") == []


def test_what_the_library_is_given_is_checked(rc: BlockingMemoranda) -> None:
    for wrong in (NewStore(name=""), NewStore(name="a\nb"), NewStore(name="a", metadata={"a": 1})):  # type: ignore[dict-item]
        with pytest.raises(InvalidInput):
            rc.memory_stores.create(wrong)


def test_a_deleted_store_leaves_no_row(rc: BlockingMemoranda, notes: BlockingStoreMemories) -> None:
    other = rc.memories.add("the garden gate").memory.id
    ids = [put(notes, f"/{n}", f"text {n}").id for n in range(200)]
    for id_ in ids[:60]:
        notes.update(id_, StoreMemoryChange(content="changed"))
    notes.delete(ids[0])
    rc.memory_stores.delete(notes.inner.store_id)
    for table in ("memory_stores", "store_memories", "memory_versions"):
        assert rows(rc, f"SELECT * FROM {table}") == []
    assert rows(rc, "SELECT id FROM memories") == [(other,)]


def test_a_store_whose_description_is_forgotten_is_blank(rc: BlockingMemoranda) -> None:
    store = rc.memory_stores.create(NewStore(name="cellar", description="x", metadata={"a": "b"}))
    for text in ("cellar", "forgotten"):
        rc.memories.forget(text=text)
        blank = rc.memory_stores.get(store.id)
        assert (blank.name, blank.description, blank.metadata) == ("forgotten", "", {})
    assert rc.memories.forget(text="forgotten").counts == {}


def test_forgetting_takes_matching_versions(rc: BlockingMemoranda, notes: BlockingStoreMemories) -> None:
    early, late = put(notes, "/early", "the cellar key"), put(notes, "/late", "the attic")
    notes.update(early.id, StoreMemoryChange(content="nothing"))
    notes.update(late.id, StoreMemoryChange(content="the cellar door"))
    receipt = rc.memories.forget(text="cellar")
    assert receipt.counts["memory_versions"] >= 2
    assert [item.path for item in notes.list().data] == ["/early"]
    history = rc.memory_stores.versions(notes.inner.store_id).list(view="full").data
    assert [(version.content, version.redacted_at is None) for version in history] == [
        ("nothing", True),
        (None, False),
    ]


def test_forgetting_a_user_takes_what_the_user_wrote_and_owned(rc: BlockingMemoranda) -> None:
    ana, ben = rc.as_subject(ANA).memory_stores, rc.as_subject(BEN).memory_stores
    own = ana.create(NewStore(name="own"))
    put(ana.memories(own.id), "/a", "hers")
    shared = rc.memory_stores.create(NewStore(name="shared"))
    first = put(ana.memories(shared.id), "/first", "by ana")
    ben.memories(shared.id).update(first.id, StoreMemoryChange(content="by ben"))
    put(ana.memories(shared.id), "/second", "by ana, too")
    receipt = rc.memories.forget(scopes=["user:ana"])
    assert receipt.counts["memory_stores"] == 1
    assert [store.name for store in rc.memory_stores.list().data] == ["shared"]
    assert [item.path for item in rc.memory_stores.memories(shared.id).list().data] == ["/first"]
    later, redacted = rc.memory_stores.versions(shared.id).list(view="full").data
    assert (later.content, later.created_by and later.created_by.user_id) == ("by ben", "ben")
    assert (redacted.content, redacted.created_by) == (None, None)


def test_a_member_forgets_no_text_of_others(rc: BlockingMemoranda, notes: BlockingStoreMemories) -> None:
    theirs = put(rc.as_subject(BEN).memory_stores.memories(notes.inner.store_id), "/a", "the cellar")
    rc.as_subject(ANA).memories.forget(text="cellar", scopes=["user:ana"])
    assert notes.get(theirs.id).content == "the cellar"
