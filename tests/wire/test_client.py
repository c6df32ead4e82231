"""The client gives over HTTP what the library gives in the process, errors included."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memoranda.client.memories
from memoranda import errors
from memoranda.app import blocking
from memoranda.app.bundle_files import write_bundle
from memoranda.app.evals.evaluation import EvaluationQuestion, SearchConfiguration
from memoranda.client import Client
from memoranda.memory_stores.values import (
    ContentChanged,
    NewStore,
    NewStoreMemory,
    PathTaken,
    Precondition,
    StoreChange,
    StoreMemoryChange,
)
from memoranda.responses.profile_values import NewProfile, ProfileChange
from memoranda.types import NewMemory, Query
from support.exports import undated


@pytest.fixture
def client(served: Callable[..., Any]) -> Iterator[Client]:
    with Client(served().url) as made:
        yield made


@pytest.fixture
def local() -> Iterator[blocking.BlockingMemoranda]:
    with blocking.open(":memory:", embedder={"url": "hash:64"}) as made:
        yield made


WHEN = datetime(2024, 5, 1, 12, 30, tzinfo=UTC)


def story(memories: Any) -> list[Any]:
    """The verbs in a row, and what they said."""
    said: list[Any] = []
    vector = np.linspace(-1, 1, 64, dtype=np.float32)
    added = memories.add("the kettle is green", id="k/1", tags=["a"], session_id="s", occurred_at=WHEN)
    said += [
        added.created,
        added.embedded,
        memories.add("the kettle is green", id="k/1", session_id="s").created,
    ]
    many = memories.add_many(
        ["one", {"content": "two", "id": "2"}, NewMemory(content="v", id="v", embedding=vector)]
    )
    said += [[one.created for one in many]]
    said += [memories.update("2", tags=["x"], source=None).tags, memories.get("k/1").occurred_at]
    said += [memories.count_access(["2", "v", "none"]), memories.get("2").access_count]
    said += [memories.count(scopes=["session:s"]), memories.count(filters={"n": 1}), memories.count()]
    page = memories.list(limit=2, order="asc", since=WHEN)
    said += [[one.content for one in page.data], page.has_more]
    rest = memories.list(after=page.last_id, order="asc", tags=["x"], include_archived=True)
    said += [[one.content for one in rest.data]]
    for found in (
        memories.search("green kettle", scopes=["session:s"], explain=True, highlights=True),
        memories.search(Query(query="anything", embedding=vector, mode="dense", limit=1)),
    ):
        said += [[(hit.memory.content, hit.score, hit.similarity, hit.highlights) for hit in found.results]]
        said += [found.total_count, found.degraded]
    embedded = memories.embed(["kettle", "fence"], "query")
    said += [embedded.vectors.tolist(), embedded.tokens]
    near = memories.near_duplicates()
    said += [[pair.reason for pair in near.data], near.compared, near.has_more]
    said += [memories.facets(limit=3, include_archived=True)]
    shown = memories.projection(limit=50)
    said += [shown.kinds, shown.scopes, shown.points, shown.total, shown.explained]
    for job in (memories.reembed(everything=True), memories.compact()):
        ended = memories.wait(job.id)
        said += [ended.kind, ended.state, memories.job(job.id).state, memories.cancel(job.id).state]
        said += [[one.kind for one in memories.jobs(1)], len(memories.jobs())]
    stats = memories.stats()
    said += [stats["memories"], stats["by_kind"], stats["model"]]
    memories.delete("2")
    said += [memories.forget(["k/1"]).memories, memories.forget(scopes=["all"]).memories, memories.count()]
    return said


def test_the_same_story_is_told_both_ways(client: Client, local: Any) -> None:
    assert story(client) == story(local.memories)


FAILURES: list[tuple[type[Exception], Callable[[Any], Any]]] = [
    (errors.NotFound, lambda m: m.get("nope")),
    (errors.NotFound, lambda m: m.update("nope", tags=[])),
    (errors.NotFound, lambda m: m.delete("nope")),
    (errors.NotFound, lambda m: m.job("nope")),
    (errors.InvalidInput, lambda m: m.add("")),
    (errors.InvalidInput, lambda m: m.add("a", tags=["x", ""])),
    (errors.InvalidInput, lambda m: m.list(after="nope")),
    (errors.InvalidInput, lambda m: m.search("a", threshold=3.0)),
    (errors.InvalidInput, lambda m: m.import_from([b'{"content": "a"}\n', b'{"content": 5}\n'])),
    (errors.InvalidInput, lambda m: m.embed([])),
    (errors.InvalidInput, lambda m: m.embed(["a", ""])),
    (errors.DimensionMismatch, lambda m: m.add("a", embedding=[1.0])),
    (errors.Conflict, lambda m: (m.add("one", id="x"), m.add("two", id="x"))),
]


@pytest.mark.parametrize(("kind", "act"), FAILURES)
def test_errors_are_the_same_exceptions(server: Any, local: Any, kind: Any, act: Any) -> None:
    with Client(server.url) as client:
        told = []
        for memories in (client, local.memories):
            with pytest.raises(kind) as caught:
                act(memories)
            told.append((type(caught.value), str(caught.value), getattr(caught.value, "field", None)))
    assert told[0] == told[1]


def test_a_key_is_needed_where_there_are_keys(served: Callable[..., Any]) -> None:
    url = served(keys=[{"name": "s", "role": "service", "key": "right"}]).url
    with Client(url, "wrong") as wrong, pytest.raises(errors.Unauthorized):
        wrong.count()
    with Client(url, "right", user="ada") as right:
        assert right.add("hers").memory.user_id == "ada"
        with pytest.raises(errors.Forbidden):
            right.stats()


def test_a_server_that_is_not_there_is_said(server: Any) -> None:
    with Client("http://127.0.0.1:9") as nobody, pytest.raises(errors.StorageError, match="did not answer"):
        nobody.count()


def test_a_large_import_goes_in_parts_and_names_the_line(
    client: Client, local: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memoranda.client.memories, "PART", 2_000)
    local.memories.add_many([f"memory number {i}" for i in range(40)])
    out, back = tmp_path / "out.jsonl", tmp_path / "back.jsonl"
    assert local.memories.export_to(out, vectors=True) == 40
    took = client.import_from(out)
    assert (took.read, took.created, took.present) == (40, 40, 0)
    assert client.import_from(out).present == 40
    assert client.export_to(back, vectors=True) == 40
    expected = undated(out.read_bytes()).replace(b'"origin":"user"', b'"origin":"import"')
    assert undated(back.read_bytes()) == expected
    lines = out.read_bytes().splitlines(keepends=True)
    for number in (1, 2, 20, 41):
        wrong = [*lines[:number], b'{"content": 5}\n', *lines[number:]]
        with pytest.raises(errors.InvalidInput) as caught:
            client.import_from(wrong)
        assert caught.value.field == f"line {number + 1}"
        with pytest.raises(errors.InvalidInput) as caught:
            client.import_from([b'{"content": "x"}\n', *wrong[1:]])
        assert caught.value.field == f"line {number + 1}"


def test_what_was_forgotten_is_left_out_of_imports(served: Callable[..., Any], tmp_path: Path) -> None:
    url = served(keys=[{"name": "a", "role": "admin", "key": "right"}]).url
    archive, lines = tmp_path / "all.zip", tmp_path / "all.jsonl"
    with Client(url, "right") as client:
        id_ = client.add("the kettle is green").memory.id
        client.archives.export_to(archive)
        client.export_to(lines)
        bundle = tmp_path / "all.mem"
        write_bundle(bundle, client.export())
        client.forget([id_])
        assert [group.places for group in client.import_history(bundle).skipped] == [[id_]]
        assert [group.places for group in client.archives.import_from(archive).skipped] == [[id_]]
        assert client.import_from(lines).forgotten == [id_]
        assert client.import_from(lines, include_forgotten=True).created == 1
        client.forget([id_])
        assert client.archives.import_from(archive, include_forgotten=True).skipped == []


def test_a_dry_run_of_an_import_reads_and_counts(client: Client, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one")
    tally = client.import_history(tmp_path, dry_run=True).imported["note"]
    assert (tally.read, tally.created, tally.present) == (1, 0, 0)
    assert client.count() == 0


def test_what_is_said_is_said_both_ways(client: Client, local: Any) -> None:
    def told(sessions: Any) -> list[Any]:
        said = [
            {"content": "the kettle is green", "speaker": "Ana", "occurred_at": WHEN, "id": "m 1"},
            "quite so",
        ]
        kept = sessions.observe(said, session_id="talk 1", extraction=False)
        again = sessions.observe(said[0], session_id="talk 1")
        page = sessions.messages("talk 1", limit=1)
        held = sessions.list(participant="Ana", status=["open"], since=WHEN).data
        told = [
            [one.created for one in kept],
            again[0].created,
            again[0].message.speaker,
            page.has_more,
            len(held),
        ]
        told += [sessions.update_message("talk 1", "m 1", "the kettle is red").content]
        told += [sessions.close("talk 1").status, sessions.summarize("talk 1").summary]
        sessions.delete_message("talk 1", "m 1")
        told += [sessions.get("talk 1").message_count]
        sessions.delete("talk 1")
        return [*told, sessions.list().data]

    assert told(client.sessions) == told(local.sessions)
    for sessions in (client.sessions, local.sessions):
        with pytest.raises(errors.NotFound):
            sessions.get("talk 1")
        with pytest.raises(errors.InvalidInput, match="channel_id"):
            sessions.observe("nowhere")


def test_facts_and_responses_are_the_same_both_ways(client: Client, local: Any) -> None:
    def told(opened: Any) -> list[Any]:
        place = {"session_id": "tea", "user_id": "mara", "extraction": True}
        opened.sessions.observe([{"content": "I prefer green tea.", "speaker": "Mara"}], **place)
        opened.facts.extract("tea")  # a job does so at a time of its own, and the answer quotes the fact
        asked = {"input": "What tea does Mara prefer?", "store": False, "memory": {"user_id": "mara"}}
        events = list(opened.responses.stream(**asked))
        made = opened.responses.create(asked["input"])
        answer = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
        seen = [made.status, opened.responses.get(made.id).id == made.id]
        opened.responses.delete(made.id)
        with pytest.raises(errors.NotFound):
            opened.responses.get(made.id)
        with pytest.raises(errors.InvalidInput, match=r"memory\.min_score"):
            next(iter(opened.responses.stream("x", memory={"min_score": 2.0})))
        return [answer, seen, opened.facts.extract("tea"), opened.facts.sweep()]

    assert told(client) == told(local)


def test_agents_are_the_same_both_ways(client: Client, local: Any) -> None:
    def told(opened: Any) -> list[Any]:
        agents = opened.agents
        made = agents.create(NewProfile(name="Desk", instructions="Be brief."), id="agent_desk")
        agents.create({"name": "Support", "temperature": 0.5}, id="agent_support")
        changed = agents.update("agent_desk", ProfileChange(instructions=None, model="small"))
        page = agents.list(limit=1, after="agent_support")
        assert agents.get("agent_desk") == page.data[0] == changed
        assert agents.list(name="Desk").data == [changed]
        agents.delete("agent_desk")
        with pytest.raises(errors.NotFound):
            agents.get("agent_desk")
        with pytest.raises(errors.Conflict):
            agents.create({"name": "Support"}, id="agent_support")
        with pytest.raises(errors.InvalidInput, match="temperature"):
            agents.update("agent_support", {"temperature": 9})
        return [made.instructions, changed.instructions, changed.model, page.has_more, page.last_id]

    assert told(client) == told(local)


def test_conversations_are_the_same_both_ways(client: Client, local: Any) -> None:
    def told(opened: Any) -> list[Any]:
        conversations = opened.conversations
        id_ = conversations.create([{"role": "user", "content": "one"}], metadata={"topic": "tea"}).id
        two = {"id": "msg_2", "type": "message", "role": "user", "content": "two"}
        added = conversations.add_items(id_, [two], include=["file_search_call.results"])
        page = conversations.items(id_, limit=1)
        assert page.data == added.data == [conversations.get_item(id_, "msg_2")]
        changed = conversations.update(id_, metadata={"topic": "coffee"})
        emptied = conversations.update(id_, metadata=None)
        left = conversations.delete_item(id_, "msg_2")
        assert left.id == emptied.id == id_
        seen = [added, page, changed.metadata, emptied.metadata, left.metadata, left.summary]
        seen += [[item["content"] for item in conversations.items(id_).data]]
        with pytest.raises(errors.InvalidInput, match=r"items\[0\]"):
            conversations.add_items(id_, [{"role": "user"}])
        with pytest.raises(errors.NotFound, match="msg_2"):
            conversations.get_item(id_, "msg_2")
        with pytest.raises(errors.NotFound, match="msg_2"):
            conversations.delete_item(id_, "msg_2")
        conversations.delete(id_)
        with pytest.raises(errors.NotFound):
            conversations.update(id_, metadata=None)
        return seen

    assert told(client) == told(local)


def _versions(versions: Any, note: Any) -> list[Any]:
    """The versions of a memory that was created and modified; the first is redacted."""
    last = versions.list(memory_id=note.id, limit=1, view="full")
    rest = versions.list(memory_id=note.id, page=last.next_page, since=note.created_at).data
    assert [one.operation for one in (*last.data, *rest)] == ["modified", "created"]
    assert versions.list(operation="created", until=note.created_at).data[-1:] == rest
    first = versions.get(note.memory_version_id)
    redacted = versions.redact(first.id)
    assert versions.get(first.id, view="basic") == redacted
    with pytest.raises(errors.Conflict, match="latest version"):
        versions.redact(last.data[0].id)
    with pytest.raises(errors.NotFound, match="memver_none"):
        versions.get("memver_none")
    return [first.content, first.path, redacted.content, redacted.redacted_at is not None]


def test_memory_stores_are_the_same_both_ways(client: Client, local: Any) -> None:
    def told(opened: Any) -> list[Any]:
        stores = opened.memory_stores
        store = stores.create(NewStore(name="Preferences", metadata={"team": "a", "old": "b"}))
        other = stores.create(NewStore(name="Other"))
        changed = stores.update(store.id, StoreChange(description="reports", metadata={"old": None}))
        assert stores.get(store.id) == changed
        page = stores.list(limit=1, since=store.created_at)
        assert page.data == [other]
        assert stores.list(page=page.next_page).data == [changed]
        assert stores.list(until=store.created_at).data == [changed]
        memories = stores.memories(store.id)
        note = memories.create(NewStoreMemory(path="/a/note.md", content="one"), view="full")
        memories.create(NewStoreMemory(path="/b.md", content=None))
        for path in ("/a/note.md", "/a"):
            with pytest.raises(PathTaken, match=note.id) as taken:
                memories.create(NewStoreMemory(path=path, content="two"))
            assert (taken.value.memory_id, taken.value.path) == (note.id, "/a/note.md")
        two = memories.update(note.id, StoreMemoryChange(content="two", path="/a/two.md"))
        stale = Precondition(content_sha256=note.content_sha256, type="content_sha256")
        with pytest.raises(ContentChanged, match="content_sha256"):
            memories.update(note.id, StoreMemoryChange(content="three", precondition=stale))
        with pytest.raises(ContentChanged, match="content_sha256"):
            memories.delete(note.id, expected_sha256=note.content_sha256)
        top = memories.list(depth=1, limit=1)
        seen = [top, [item.path for item in memories.list(page=top.next_page, depth=1).data]]
        assert memories.list(path_prefix="/a/").data == [two]
        seen += [memories.get(note.id).content, note.content, two.content, two.content_sha256]
        seen += _versions(stores.versions(store.id), note)
        memories.delete(note.id, expected_sha256=two.content_sha256)
        with pytest.raises(errors.NotFound, match=note.id):
            memories.get(note.id)
        with pytest.raises(errors.InvalidInput, match="path"):
            memories.create(NewStoreMemory(path="note.md", content="x"))
        archived = stores.archive(other.id)
        assert archived.archived_at is not None
        assert stores.list(include_archived=True, limit=1).data == [archived]
        stores.delete(store.id)
        with pytest.raises(errors.NotFound, match=store.id):
            stores.get(store.id)
        return [*seen, changed.name, changed.description, changed.metadata, archived.name]

    assert told(client) == told(local)


@pytest.mark.parametrize("id_", [".", ".."])
def test_an_id_of_dots_names_nothing_else(server: Any, id_: str) -> None:
    with Client(server.url) as client:
        store = client.memory_stores.create(NewStore(name="Preferences"))
        memories = client.memory_stores.memories(store.id)
        note = memories.create(NewStoreMemory(path="/note.md", content="one"))
        talk = client.sessions.observe("quite so", channel_id="kitchen")[0].message.session_id
        attempts: list[Callable[[str], Any]] = [
            memories.delete,
            memories.get,
            client.memory_stores.delete,
            client.memory_stores.get,
            lambda id_: client.sessions.delete_message(talk, id_),
            client.sessions.get,
            client.knowledge.stores.get,
            client.get,
            client.delete,
            client.agents.get,
            client.conversations.get,
            client.responses.get,
            client.facts.history,
            client.job,
        ]
        for attempt in attempts:
            with pytest.raises(errors.NotFound):
                attempt(id_)
        assert memories.get(note.id).content == "one"
        assert client.sessions.get(talk).message_count >= 1
        client.add("the kettle is green", id=id_)
        assert client.get(id_).content == "the kettle is green"
        client.delete(id_)


def test_evaluations_are_the_same_both_ways(client: Client, local: Any) -> None:
    def evaluated(product: Any, memories: Any) -> Any:
        memories.add_many([{"content": "the kettle is green", "id": "k"}, {"content": "a car", "id": "c"}])
        questions = [
            EvaluationQuestion(query="green kettle", relevant=["k"]),
            {"query": "car", "relevant": ["c"]},
        ]
        return product.evaluate(questions, [{"name": "A"}, SearchConfiguration(mode="keyword")], limit=2)

    over_http = evaluated(client, client)
    assert over_http == evaluated(local, local.memories)
    assert type(over_http.configurations[0].scores["all"]["questions"]) is int
