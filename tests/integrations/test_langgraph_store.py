"""`MemorandaStore`: LangGraph's store on a folder and on a server, and what the rest of the product sees of it."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import GetOp, InvalidNamespaceError, PutOp, SearchOp

import memoranda
from memoranda.errors import InvalidInput
from memoranda.integrations.frameworks import require
from memoranda.integrations.langgraph import MemorandaStore
from support.waiting import until

from .conftest import QUICK

EXAMPLE = Path(__file__).parents[2] / "examples" / "langgraph_store.py"
ANA, BEN = ("users", "ana"), ("users", "ben")
SOON = 1e-9
"""Minutes after which an item has expired when it is next looked at."""


@pytest.fixture
def store(product: Any) -> MemorandaStore:
    """A store with the default index."""
    return MemorandaStore(product)


def keys(items: Any) -> list[str]:
    return [item.key for item in items]


def test_an_item_is_put_replaced_read_and_deleted(store: MemorandaStore) -> None:
    store.put(ANA, "city", {"text": "Ana lives in Munich."})
    before = store.get(ANA, "city")
    store.put(ANA, "city", {"text": "Ana lives in Berlin."})
    after = store.get(ANA, "city")

    assert before is not None
    assert after is not None
    assert (after.value, after.key, after.namespace) == ({"text": "Ana lives in Berlin."}, "city", ANA)
    assert after.created_at == before.created_at < after.updated_at
    assert store.get(BEN, "city") is None

    store.delete(ANA, "city")
    store.delete(ANA, "city")
    assert store.get(ANA, "city") is None


def test_the_same_value_is_kept_under_every_key(store: MemorandaStore) -> None:
    for namespace, key in ((ANA, "a"), (ANA, "b"), (BEN, "a")):
        store.put(namespace, key, {"text": "likes tea"})
    store.put(BEN, "a", {"text": "likes tea"})
    assert len(store.search(())) == 3


def test_items_are_found_by_namespace_filter_and_page(store: MemorandaStore) -> None:
    for number in range(6):
        owner = ANA if number % 2 else BEN
        value = {"n": number, "even": number % 2 == 0, "tags": ["x", str(number)], "at": {"room": number}}
        store.put(owner, f"k{number}", value)
    store.put(("usersX",), "other", {"n": 1})

    assert keys(store.search(("users",))) == ["k5", "k4", "k3", "k2", "k1", "k0"]
    assert keys(store.search(("users",), limit=2, offset=3)) == ["k2", "k1"]
    assert keys(store.search(ANA)) == ["k5", "k3", "k1"]
    assert keys(store.search(("users",), filter={"even": True, "n": {"$gt": 0}})) == ["k4", "k2"]
    assert keys(store.search(("users",), filter={"n": {"$gte": 2, "$lte": 3}})) == ["k3", "k2"]
    assert keys(store.search(("users",), filter={"n": {"$lt": 3, "$ne": 1}})) == ["k2", "k0"]
    assert keys(store.search(("users",), filter={"tags": ["x", "2"]})) == ["k2"]
    assert keys(store.search(("users",), filter={"tags": "x"})) == []
    assert keys(store.search(("users",), filter={"at": {"room": 4}})) == ["k4"]
    assert keys(store.search(("users",), filter={"at.room": {"$eq": 4}})) == ["k4"]
    with pytest.raises(InvalidInput, match=r"filter\.n: '\$in' is unknown; use one of \$eq"):
        store.search(("users",), filter={"n": {"$in": [1]}})


def test_a_query_finds_the_items_that_are_like_it(store: MemorandaStore) -> None:
    store.put(ANA, "food", {"text": "Ana is allergic to peanuts"})
    store.put(ANA, "sport", {"text": "Ana plays tennis on Sundays"})
    store.put(BEN, "food", {"text": "Ben is allergic to peanuts"})
    store.put(ANA, "hidden", {"text": "Ana is allergic to peanuts too"}, index=False)

    found = store.search(ANA, query="allergic to peanuts")
    assert keys(found) == ["food", "sport"]
    assert found[0].score is not None
    assert found[1].score is not None
    assert 1.0 >= found[0].score > found[1].score >= 0.0
    assert keys(
        store.search(("users",), query="peanuts", filter={"text": {"$ne": "x"}}, limit=1, offset=1)
    ) == ["food"]
    assert {item.score for item in store.search(ANA)} == {None}
    assert len(store.search(ANA)) == 3


def test_each_field_has_a_vector_of_its_own(product: Any) -> None:
    store = MemorandaStore(product, index={"fields": ["title", "parts[*].text"], "mode": "dense"})
    long = "a sentence about nothing in particular, and then another one, and more of that kind"
    store.put(
        ("docs",), "a", {"title": "kettle descaling", "parts": [{"text": long}, {"text": "green fence"}]}
    )
    store.put(("docs",), "b", {"title": long, "other": "green fence"})
    store.put(("docs",), "c", {"other": "green fence"})

    first, second = store.search(("docs",), query="green fence")
    assert (first.key, second.key) == ("a", "b")
    assert first.score == pytest.approx(1.0, abs=1e-3)
    assert second.score is not None
    assert second.score < 0.6
    store.put(("docs",), "b", {"title": long, "other": "green fence"}, index=["other"])
    assert store.search(("docs",), query="green fence", limit=2)[1].score == pytest.approx(1.0, abs=1e-3)


def test_namespaces_are_listed(store: MemorandaStore) -> None:
    for namespace in (ANA, BEN, ("users", "ana", "notes"), ("docs", "notes")):
        store.put(namespace, "k", {"v": 1})
    assert store.list_namespaces() == [("docs", "notes"), ANA, ("users", "ana", "notes"), BEN]
    assert store.list_namespaces(prefix=("users", "ana")) == [ANA, ("users", "ana", "notes")]
    assert store.list_namespaces(suffix=("notes",), limit=1, offset=1) == [("users", "ana", "notes")]
    assert store.list_namespaces(prefix=("users", "*", "notes")) == [("users", "ana", "notes")]
    assert store.list_namespaces(max_depth=1) == [("docs",), ("users",)]


def test_a_batch_reads_before_it_writes_and_is_refused_whole(store: MemorandaStore) -> None:
    store.put(ANA, "k", {"v": 1})
    read, put, found = store.batch(
        [GetOp(ANA, "k"), PutOp(ANA, "k", {"v": 2}), SearchOp(ANA, filter={"v": 1})]
    )
    assert (read.value, put, keys(found)) == ({"v": 1}, None, ["k"])  # type: ignore[union-attr]
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(ANA, "k", {"v": 3}), GetOp(("a.b",), "k")])
    held = store.get(ANA, "k")
    assert held is not None
    assert held.value == {"v": 2}


def test_expired_items_are_not_returned_and_are_swept(product: Any) -> None:
    store = MemorandaStore(product, ttl={"default_ttl": SOON})
    store.put(ANA, "gone", {"text": "a code"})
    store.put(ANA, "kept", {"text": "a name"}, ttl=None)
    store.put(ANA, "later", {"text": "a date"}, ttl=60)

    assert store.get(ANA, "gone") is None
    assert keys(store.search(ANA)) == ["later", "kept"]
    assert "gone" not in keys(store.search(ANA, query="a code"))
    assert (store.sweep_ttl(), store.sweep_ttl()) == (1, 0)
    store.put(ANA, "gone", {"text": "again"}, ttl=None)
    assert len(store.search(ANA)) == 3


def test_reading_an_item_lets_its_time_begin_anew(folder: Any) -> None:
    store = MemorandaStore(folder, ttl={"default_ttl": 60})
    store.put(ANA, "k", {"v": 1})

    def ends() -> Any:
        return folder.memories.list(kinds=["item"]).data[0].invalid_at

    first = ends()
    item = store.get(ANA, "k", refresh_ttl=False)
    assert ends() == first
    again = store.get(ANA, "k")
    second = ends()
    assert second > first
    store.search(ANA)
    assert ends() > second
    assert item == again, "reading is no update"


def test_the_sweeper_runs_until_it_is_stopped(folder: Any) -> None:
    store = MemorandaStore(folder)
    store.put(ANA, "gone", {"v": 1}, ttl=SOON)
    store.start_ttl_sweeper(SOON)
    store.start_ttl_sweeper(SOON)
    until(lambda: len(list(folder.memories.export(kinds=["item"]))) == 1, "the sweep")
    assert store.stop_ttl_sweeper(10)


def test_values_come_back_as_they_were_put(store: MemorandaStore) -> None:
    value = {
        "": 1,
        "$set": [None, True],
        "langgraph.key": "mine",
        "extracted_by": "rules",
        "x": {"y": [1.5, "ü"]},
    }
    store.put(ANA, "k" * 300, value)
    store.batch([PutOp((), "root", {})])
    held, root = store.batch([GetOp(ANA, "k" * 300), GetOp((), "root")])
    assert held is not None
    assert root is not None
    assert (held.value, root.value) == (value, {})  # type: ignore[union-attr]
    with pytest.raises(InvalidInput, match=r"^value: is longer than 65536 bytes"):
        store.put(ANA, "large", {"text": "a" * 70_000})
    with pytest.raises(InvalidInput, match=r"^namespace: is longer than 256 characters"):
        store.put(("n" * 200, "m" * 60), "k", {})


def test_stores_of_other_names_and_other_memories_are_apart(folder: Any) -> None:
    store = MemorandaStore(folder)
    store.put(ANA, "k", {"text": "the kettle is green"})
    MemorandaStore(folder, name="second").put(ANA, "k", {"text": "the kettle is blue"})
    folder.memories.add("the kettle is old")

    assert len(store.search(())) == 1
    assert [hit.memory.content for hit in folder.memories.search("kettle").results] == ["the kettle is old"]
    assert (folder.memories.count(), folder.memories.count(kinds=["item"])) == (1, 2)
    assert "green" not in folder.context("kettle").text
    assert len(folder.memories.search("kettle", kinds=["item", "note"]).results) == 3
    assert len(list(folder.memories.export())) == 4
    folder.memories.forget(scopes=["channel:langgraph"])
    assert store.search(()) == []


@pytest.mark.parametrize("scope", ["user:ana", "agent:helper", "channel:garden", "global"])
@pytest.mark.parametrize("form", ["zip", "jsonl"])
def test_a_store_is_whole_in_another_scope(folder: Any, tmp_path: Path, scope: str, form: str) -> None:
    store = MemorandaStore(folder)
    store.put(ANA, "city", {"text": "Ana lives in Berlin."})
    store.put(BEN, "city", {"text": "Ben lives in Munich."})
    folder.memories.add("the kettle is old")
    path = tmp_path / f"all.{form}"
    (folder.archives if form == "zip" else folder.memories).export_to(path)
    with memoranda.open(":memory:", embedder=QUICK) as other:
        (other.archives if form == "zip" else other.memories).import_from(path, scope=scope)
        moved = MemorandaStore(other)
        assert [item.value for item in moved.search((), query="Berlin", limit=1)] == [
            {"text": "Ana lives in Berlin."}
        ]
        assert moved.list_namespaces() == [ANA, BEN]
        moved.put(ANA, "city", {"text": "Ana lives in Paris."})
        assert keys(moved.search(ANA)) == ["city"]
        items = other.memories.list(kinds=["item"], scopes=["all"]).data
        assert {item.user_id for item in items} == {"ana" if scope == "user:ana" else None}
        (again,) = other.memories.list(scopes=[scope]).data
        assert again.content == "the kettle is old"


def test_an_import_into_another_scope_copies_no_item(folder: Any) -> None:
    store = MemorandaStore(folder)
    store.put(ANA, "city", {"text": "Ana lives in Berlin."})
    (item,) = folder.memories.list(kinds=["item"]).data
    assert folder.memories.import_from(folder.memories.export(), scope="user:ana").conflicts == [item.id]
    assert len(store.search(())) == 1


def test_writers_of_one_key_do_not_collide(folder: Any) -> None:
    stores = [MemorandaStore(folder) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: stores[number % 4].put(ANA, "k", {"n": number}), range(24)))
    assert len(stores[0].search(())) == 1


def test_in_an_event_loop(tmp_path: Path) -> None:
    async def story() -> None:
        async with await memoranda.Memoranda.open(tmp_path, embedder=QUICK) as opened:
            store = MemorandaStore(opened)
            await asyncio.gather(*(store.aput(ANA, f"k{n}", {"n": n}) for n in range(8)))
            assert len(await store.asearch(ANA, query="n")) == 8
            assert await store.alist_namespaces() == [ANA]
            await store.adelete(ANA, "k0")
            assert await store.aget(ANA, "k0") is None
            with pytest.raises(asyncio.InvalidStateError, match="await the async method instead"):
                store.get(ANA, "k1")
            opened_again = await asyncio.to_thread(store.get, ANA, "k1")
            assert opened_again is not None

    asyncio.run(story())


def test_what_cannot_be_used_is_refused(folder: Any) -> None:
    with pytest.raises(InvalidInput, match=r"product: is str; use memoranda\.open"):
        MemorandaStore("data")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"index\.embed: is unknown; the product's model embeds"):
        MemorandaStore(folder, index={"embed": "openai:x", "dims": 3})  # type: ignore[typeddict-unknown-key]
    with pytest.raises(ImportError, match="needs no-such-framework: pip install no-such-framework"):
        require("no_such_framework", "no-such-framework")


def test_a_file_of_the_name_of_a_framework_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some_framework.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        ImportError, match=r"pip install 'some>=2'\. some_framework is imported from .*framework\.py"
    ):
        require("some_framework.parts", "some>=2")


def test_nothing_is_searched_without_an_index(folder: Any) -> None:
    store = MemorandaStore(folder, index=False)
    store.put(ANA, "a", {"text": "tea"})
    assert [item.score for item in store.search(ANA, query="tea")] == [None]
    assert MemorandaStore(folder).search(ANA, query="tea") == []


def test_a_graph_remembers_after_the_folder_was_opened_again(tmp_path: Path) -> None:
    def answer(state: dict[str, Any], runtime: Runtime[Any]) -> dict[str, Any]:
        assert runtime.store is not None
        known = keys(runtime.store.search(ANA, query=state["message"]))
        runtime.store.put(ANA, state["message"], {"text": state["message"]})
        return {"known": known}

    def asked(message: str, *, awaited: bool = False) -> Any:
        with memoranda.open(tmp_path, embedder=QUICK) as opened:
            builder = StateGraph(dict)
            builder.add_node("answer", answer)
            builder.add_edge(START, "answer")
            graph = builder.compile(store=MemorandaStore(opened))
            state = {"message": message}
            return (asyncio.run(graph.ainvoke(state)) if awaited else graph.invoke(state))["known"]

    assert asked("allergic to peanuts") == []
    assert asked("plays tennis") == ["allergic to peanuts"]
    assert asked("which peanuts?", awaited=True) == ["allergic to peanuts", "plays tennis"]


@pytest.mark.slow
def test_the_example_remembers_over_two_processes(tmp_path: Path) -> None:
    def said(message: str) -> str:
        command = [sys.executable, str(EXAMPLE), str(tmp_path / "data"), "ana", message]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert "I know nothing of that yet." in said("I am allergic to peanuts.")
    assert "I am allergic to peanuts." in said("What am I allergic to?")


@pytest.mark.slow
def test_the_page_says_what_happens(tmp_path: Path) -> None:
    page = (EXAMPLE.parents[1] / "docs" / "guides" / "integrations.md").read_text("utf-8")
    (code,) = re.findall(r"## LangGraph\n.*?```python\n(.*?)```", page, flags=re.DOTALL)
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert told.stdout == "Ana is allergic to peanuts.\n", told.stderr
