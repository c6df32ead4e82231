"""Data of other systems in the store: complete, once, with its dates, and with an exact report."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memoranda
from memoranda.app.blocking import BlockingMemoranda
from memoranda.app.history_import import (
    BATCH,
    Add,
    Check,
    Import,
    ImportOptions,
    Observe,
    Write,
    advance,
    importing,
)
from memoranda.app.history_report import HistoryImported, Stored
from memoranda.errors import InvalidInput
from memoranda.store.changes import CHARS
from memoranda.types import Memory
from support.exports import SAMPLES, Sample, chatgpt_conversation, chatgpt_node, jsonl, packed, write

pytestmark = pytest.mark.rows_in("sqlite")
BY_FORMAT = {each.format: each for each in SAMPLES}


def stored(rc: BlockingMemoranda) -> list[tuple[str, str, datetime]]:
    """Every message and memory: id, text, date."""
    found = []
    for session in rc.sessions.list(limit=100).data:
        messages = rc.sessions.messages(session.id, limit=1000).data
        found += [(each.id, each.content, each.occurred_at) for each in messages]
    kinds: list[Any] = ["note", "fact", "document"]
    memories = rc.memories.list(limit=1000, kinds=kinds, include_archived=True).data
    return sorted([*found, *((each.id, each.content, each.occurred_at) for each in memories)])


def counts(report: HistoryImported) -> dict[str, int]:
    return {kind: tally.read for kind, tally in report.imported.items()}


def by_text(rc: BlockingMemoranda) -> dict[str, Memory]:
    return {each.content: each for each in rc.memories.list(limit=1000).data}


@pytest.mark.parametrize("dry_run", [False, True])
def test_equal_parts_are_stored_together(tmp_path: Path, dry_run: bool) -> None:
    path = tmp_path / "memory.jsonl"
    entity = {"type": "entity", "name": "kettle", "entityType": "thing", "observations": ["is green"] * 1_000}
    path.write_text(json.dumps(entity))
    sizes = []

    def perform(step: Write) -> list[Stored]:
        write = step.write if isinstance(step, Check) else step
        assert isinstance(write, Add)
        sizes.append(len(write.memories))
        return ["read" if dry_run else "created"] * len(write.memories)

    report = run(importing(path, ImportOptions(format="mcp-memory", dry_run=dry_run)), perform)
    assert sizes == [1] * (1_000 // BATCH)
    assert counts(report) == {"fact": 1_000}


def run(work: Import, perform: Callable[[Write], Sequence[Stored]]) -> HistoryImported:
    """The report of an import whose writes `perform` carries out."""
    step = advance(work, None)
    while not isinstance(step, HistoryImported):
        step = advance(work, perform(step))
    return step


@pytest.mark.parametrize("one", SAMPLES, ids=lambda one: f"{one.format}-{one.form}")
def test_twice_changes_nothing_and_the_report_is_exact(
    one: Sample, rc: BlockingMemoranda, tmp_path: Path
) -> None:
    path = write(one, tmp_path / "export")
    dry = rc.import_history(path, dry_run=True)
    assert stored(rc) == []
    first = rc.import_history(path)
    before = stored(rc)
    again = rc.import_history(path)
    assert stored(rc) == before
    assert len(before) == sum(one.imported.values()) - one.imported.get("conversation", 0)
    for report in (dry, first, again):
        assert (report.format, counts(report)) == (one.format, one.imported)
        assert Counter({(each.kind, each.reason): each.count for each in report.skipped}) == one.skipped
    assert dry.dry_run
    assert {kind: tally.created for kind, tally in first.imported.items()} == one.imported
    assert {kind: tally.present for kind, tally in again.imported.items()} == one.imported


def test_a_dry_run_reports_what_the_import_reports(rc: BlockingMemoranda, tmp_path: Path) -> None:
    long = "x" * (1 << 20) + "y"
    vault = packed({"a.md": "one", "b.md": "two", "c.md": "three"}, "folder", tmp_path / "vault")
    rc.import_history(vault)
    notes = {"a.md": "changed", "long.md": long, "new.md": "new"}
    packed(notes | {f"{n}.md": f"{n}\n\nSame {n % 2}" for n in range(BATCH + 5)}, "folder", vault)
    old, new = chatgpt_node("a", None, "user", "First"), chatgpt_node("b", "a", "user", "Second")
    chats = {}
    for name, nodes in (
        ("chats", [old]),
        ("more", [{**old, "message": chatgpt_node("a", None, "user", "Other")["message"]}, new]),
        ("new", [old, new, chatgpt_node("c", "b", "user", long)]),
    ):
        conversation = chatgpt_conversation("n" if name == "new" else "c", nodes, nodes[-1]["id"])
        files = {"conversations.json": json.dumps([conversation])}
        chats[name] = packed(files, "folder", tmp_path / name)
    rc.import_history(chats["chats"])
    graph = {"uuid": "e1", "fact": "Ann works at X", "labels": [], "source": "text", "content": "c"}
    facts = {name: tmp_path / f"{name}.json" for name in ("held", "ended")}
    facts["held"].write_text(json.dumps([graph]))
    facts["ended"].write_text(json.dumps([{**graph, "invalid_at": "2025-01-01T00:00:00Z"}]))
    rc.import_history(facts["held"])
    for path in (vault, chats["more"], chats["new"], facts["ended"]):
        before = stored(rc)
        dry = rc.import_history(path, dry_run=True)
        assert stored(rc) == before
        done = rc.import_history(path)
        assert (dry.imported, dry.skipped) == (done.imported, done.skipped)
        tallies = done.imported.values()
        assert done.failed or any(tally.ended for tally in tallies)
        assert path == chats["more"] or all(tally.created or tally.ended for tally in tallies)


def test_a_dry_run_takes_the_steps_of_the_import(rc: BlockingMemoranda, tmp_path: Path) -> None:
    """Other writes wait for the end of each, and each knows what those before it would have stored."""
    changes = rc.inner.core.store.db.holds.changes["app"]
    notes = {f"{n:02}.md": f"{n % 28} {'x' * 10 * CHARS}" for n in range(30)}
    nodes = [chatgpt_node(f"m{n}", f"m{n - 1}" if n else None, "user", f"Text {n}") for n in range(150)]
    chats = {"conversations.json": json.dumps([chatgpt_conversation("c", nodes, "m149")])}
    for name, files in (("vault", notes), ("chats", chats)):
        path = packed(files, "folder", tmp_path / name)
        before = sum(changes.spread().counts)
        dry = rc.import_history(path, dry_run=True)
        assert sum(changes.spread().counts) - before == 2
        assert dry.imported == rc.import_history(path).imported


@pytest.mark.parametrize("source", ["zep", "mem0"])
def test_what_ended_in_the_other_system_ends_here(source: str, rc: BlockingMemoranda, tmp_path: Path) -> None:
    def export(end: str | None) -> Path:
        if source == "mem0":
            memory = {"id": "e1", "memory": "Ann works at X", "user_id": "ann", "expiration_date": end}
            data: dict[str, Any] = {"results": [memory]}
        else:
            nodes = {"source_node_uuid": "n1", "target_node_uuid": "n2", "name": "WORKS_AT"}
            edge = {
                "uuid": "e1",
                "fact": "Ann works at X",
                "created_at": "2024-01-01T00:00:00Z",
                "invalid_at": end,
            }
            data = {"edges": [edge | nodes], "nodes": [], "episodes": []}
        path = tmp_path / "export.json"
        path.write_text(json.dumps(data))
        return path

    rc.import_history(export(None))
    (id_,) = [memory.id for memory in rc.memories.list(kinds=["note", "fact"]).data]
    for ended in (1, 0):
        (tally,) = rc.import_history(export("2025-01-01T00:00:00Z")).imported.values()
        assert (tally.created, tally.present, tally.ended) == (0, 1, ended)
        assert rc.memories.get(id_).invalid_at == datetime(2025, 1, 1, tzinfo=UTC)
    rc.import_history(export(None))
    assert rc.memories.get(id_).invalid_at is not None


def test_a_later_version_of_a_fact_ends_as_in_the_other_system(rc: BlockingMemoranda, tmp_path: Path) -> None:
    def export(end: str | None) -> Path:
        times = [("e1", "2024-01-01", "2024-02-01T00:00:00Z"), ("e2", "2024-06-01", end)]
        edges = [
            {"uuid": id_, "fact": "Ann owns a boat", "source_node_uuid": "n1", "target_node_uuid": "n2",
             "name": "OWNS", "valid_at": f"{day}T00:00:00Z", "invalid_at": ended}
            for id_, day, ended in times
        ]  # fmt: skip
        path = tmp_path / "export.json"
        path.write_text(json.dumps({"edges": edges, "nodes": [], "episodes": []}))
        return path

    for end, expected in ((None, (2, 0, 0)), ("2040-01-01T00:00:00Z", (0, 2, 1))):
        dry = rc.import_history(export(end), dry_run=True).imported["fact"]
        done = rc.import_history(export(end)).imported["fact"]
        assert [(tally.created, tally.present, tally.ended) for tally in (dry, done)] == [expected] * 2
    assert by_text(rc)["Ann owns a boat"].invalid_at == datetime(2040, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("first", [True, False])
def test_a_fact_that_ended_and_began_again_is_two(first: bool, rc: BlockingMemoranda, tmp_path: Path) -> None:
    def export(*times: tuple[str, str, str | None]) -> Path:
        edges = [
            {"uuid": id_, "fact": "Ann owns a boat", "source_node_uuid": "n1", "target_node_uuid": "n2",
             "name": "OWNS", "valid_at": f"{day}T00:00:00Z", "invalid_at": ended}
            for id_, day, ended in times
        ]  # fmt: skip
        path = tmp_path / "export.json"
        path.write_text(json.dumps({"edges": edges, "nodes": [], "episodes": []}))
        return path

    rc.import_history(export(("e1", "2024-01-01", None)))
    versions = [("e1", "2024-01-01", "2024-02-01T00:00:00Z"), ("e2", "2024-06-01", None)]
    path = export(*(versions if first else reversed(versions)))
    for expected in ((1, 1, 1), (0, 2, 0)):
        dry = rc.import_history(path, dry_run=True).imported["fact"]
        done = rc.import_history(path).imported["fact"]
        assert [(tally.created, tally.present, tally.ended) for tally in (dry, done)] == [expected] * 2
    (live,) = rc.memories.list(kinds=["fact"]).data
    assert (live.occurred_at or live.valid_from, live.invalid_at) == (datetime(2024, 6, 1, tzinfo=UTC), None)


@pytest.mark.parametrize("apart", [0, 20, BATCH])
def test_a_dry_run_compares_facts_as_the_import(apart: int, rc: BlockingMemoranda, tmp_path: Path) -> None:
    """What is said again, and holds again after it ended; also where another write has the earlier versions."""
    said = [
        ("Ann lives in Rome", 1, None), ("Ann owns a boat", 1, 3), ("Ann lives in Oslo", 5, None),
        ("Cy lives in Oslo", 5, None),
        *((f"Ben likes dish number {n} of the menu {n}", 1, None) for n in range(apart)),
        ("Ann lives in Rome", 9, None), ("Ann owns a boat", 9, None), ("Ann owns a boat", 10, None),
        ("Cy lives in Rome", 1, None), ("Cy lives in Rome", 9, None),
    ]  # fmt: skip
    edges = [
        {"uuid": f"e{n}", "fact": text, "source_node_uuid": "n1", "target_node_uuid": "n2", "name": "X",
         "valid_at": f"2024-01-{start:02}T00:00:00Z", "invalid_at": end and f"2024-01-{end:02}T00:00:00Z"}
        for n, (text, start, end) in enumerate(said)
    ]  # fmt: skip
    path = tmp_path / "export.json"
    for count, present in ((len(edges) - 5, 0), (len(edges), len(edges) - 2)):
        path.write_text(json.dumps({"edges": edges[:count], "nodes": [], "episodes": []}))
        before = stored(rc)
        dry = rc.import_history(path, dry_run=True)
        assert stored(rc) == before
        done = rc.import_history(path)
        assert (dry.imported, dry.skipped) == (done.imported, done.skipped)
        assert done.imported["fact"].present == present
    rc.memories.forget(scopes=["all"])
    dry = rc.import_history(path, dry_run=True)
    done = rc.import_history(path)
    assert (dry.imported, dry.skipped) == (done.imported, done.skipped)
    assert done.imported["fact"].present == 3


def test_a_dry_run_counts_the_versions_of_a_fact(rc: BlockingMemoranda, tmp_path: Path) -> None:
    texts = [f"Ann likes dish {n} of the menu" for n in range(60)]
    ends = ("2024-01-03T00:00:00Z", None)
    edges = [
        {"uuid": f"e{n}-{start}", "fact": text, "source_node_uuid": "n1", "target_node_uuid": "n2", "name": "X",
         "valid_at": f"2024-01-0{start}T00:00:00Z", "invalid_at": end}
        for start, end in zip((1, 5), ends, strict=True)
        for n, text in enumerate([*texts, "Ann owns a boat"])
    ]  # fmt: skip
    path = tmp_path / "export.json"
    path.write_text(json.dumps({"edges": edges, "nodes": [], "episodes": []}))
    dry = rc.import_history(path, dry_run=True)
    assert dry.imported["fact"].created == len(edges)


def test_conversations_become_sessions_with_their_ids_and_dates(
    rc: BlockingMemoranda, tmp_path: Path
) -> None:
    rc.import_history(write(BY_FORMAT["chatgpt"], tmp_path), user_id="ada")
    session = rc.sessions.get("chatgpt-c1")
    assert (session.user_id, session.message_count) == ("ada", 4)
    assert session.started_at == datetime.fromtimestamp(1736209420.25, UTC)
    message = rc.sessions.messages("chatgpt-c1").data[1]
    assert (message.role, message.content) == ("assistant", "In colonies, in trees.")
    assert message.metadata == {"imported_from": "chatgpt", "project": "g-p-birds", "title": "Title of c1"}
    undated = rc.sessions.messages("chatgpt-c2").data[1]
    assert undated.occurred_at == datetime.fromtimestamp(1736300000, UTC)
    hit = rc.memories.search("Where do herons nest?", scopes=["user:ada"]).results[0].memory
    assert hit.content == "Where do herons nest?"


def test_scopes(rc: BlockingMemoranda, tmp_path: Path) -> None:
    mem0 = write(BY_FORMAT["mem0"], tmp_path / "a")
    rc.import_history(mem0)
    assert (by_text(rc)["Prefers tea"].user_id, by_text(rc)["Prefers tea"].session_id) == ("ada", "r1")
    assert by_text(rc)["Owns a boat"].agent_id == "bot"
    rc.memories.forget(scopes=["all"])
    rc.import_history(mem0, scope="channel:c", user_id="eve")
    assert {each.scope for each in by_text(rc).values()} == {by_text(rc)["Owns a boat"].scope}
    assert by_text(rc)["Prefers tea"].user_id == "eve"
    assert by_text(rc)["Prefers tea"].channel_id == "c"
    other = rc.import_history(mem0, scope="session:s")
    assert [(each.reason, each.count) for each in other.skipped if each.failed][-1] == (
        "is stored already, with another text or in another scope", 3,
    )  # fmt: skip
    chats = write(BY_FORMAT["open-webui"], tmp_path / "b")
    with pytest.raises(InvalidInput, match="sessions of their own"):
        rc.import_history(chats, scope="session:s")
    rc.import_history(chats, scope="agent:bot")
    session = rc.sessions.get("open-webui-w1")
    assert (session.agent_id, session.user_id) == ("bot", None)


def test_a_newer_export_adds_what_is_new(rc: BlockingMemoranda, tmp_path: Path) -> None:
    nodes = [
        chatgpt_node(f"m{n}", f"m{n - 1}" if n else None, "user", f"Text {n}", 1.7e9 + n)
        for n in range(BATCH + 5)
    ]
    for last, new in ((3, 4), (BATCH + 4, BATCH + 1)):
        chosen = [{**node, "children": []} for node in nodes[: last + 1]]
        files = {"conversations.json": json.dumps([chatgpt_conversation("c", chosen, f"m{last}")])}
        report = rc.import_history(packed(files, "zip", tmp_path / f"export{last}"))
        assert report.imported["message"].created == new
        assert report.imported["conversation"].present == (last > 3)
    messages = rc.sessions.messages("chatgpt-c", limit=1000).data
    assert [each.content for each in messages] == [f"Text {n}" for n in range(BATCH + 5)]


def test_what_is_refused_is_named_and_the_rest_is_stored(rc: BlockingMemoranda, tmp_path: Path) -> None:
    nodes = [chatgpt_node("a", None, "user", "First"), chatgpt_node("b", "a", "user", "x" * (1 << 20) + "y")]
    nodes.append(chatgpt_node("c", "b", "user", "Last"))
    files = {"conversations.json": json.dumps([chatgpt_conversation("c", nodes, "c")])}
    report = rc.import_history(packed(files, "folder", tmp_path / "export"))
    assert [each.content for each in rc.sessions.messages("chatgpt-c").data] == ["First", "Last"]
    assert (report.failed, counts(report)) == (1, {"message": 2, "conversation": 1})
    assert report.skipped[-1].reason == "is refused"
    assert (
        report.skipped[-1]
        .places[0]
        .startswith("conversations.json, conversation 1, message b: content: is longer")
    )


def chats(*nodes: Any) -> dict[str, str]:
    return {"conversations.json": json.dumps([chatgpt_conversation("c", [*nodes], nodes[-1]["id"])])}


@pytest.mark.parametrize("kind", ["note", "message", "fact"])
def test_what_is_stored_beside_a_refused_part_is_new(
    kind: str, rc: BlockingMemoranda, tmp_path: Path
) -> None:
    """Where a write takes several steps, and the part belongs to a later one: it is refused before the first."""
    graph = {"labels": [], "source": "text", "content": "c"}
    old, new, created = {
        "note": (
            {"29.md": "Other"},
            {f"{n:02}.md": f"{n} {'x' * 10 * CHARS}" for n in range(30)},
            29,
        ),
        "message": (
            chats(chatgpt_node("m140", None, "user", "Other")),
            chats(*(chatgpt_node(f"m{n}", f"m{n - 1}" if n else None, "user", f"{n}") for n in range(150))),
            149,
        ),
        "fact": (
            {"a.json": json.dumps([{**graph, "uuid": "e", "fact": "Ann owns a boat"}])},
            {
                "a.json": json.dumps(
                    [{**graph, "uuid": f"e{n % 20}", "fact": f"Ann owns {n} boats"} for n in range(21)]
                )
            },
            20,
        ),
    }[kind]
    for files in (old, new):
        path = packed(files, "folder", tmp_path / "export")
        dry = rc.import_history(path, dry_run=True)
        done = rc.import_history(path)
        assert (dry.imported, dry.skipped) == (done.imported, done.skipped)
    assert (done.imported[kind].created, done.imported[kind].present, done.failed) == (created, 0, 1)


def test_a_changed_text_is_left_alone(rc: BlockingMemoranda, tmp_path: Path) -> None:
    vault = packed({"a.md": "one", "b.md": "two"}, "folder", tmp_path / "vault")
    rc.import_history(vault)
    (vault / "a.md").write_text("three")
    report = rc.import_history(vault)
    assert [(each.reason, each.places) for each in report.skipped] == [
        ("is stored already, with another text or in another scope", ["a.md"])
    ]
    assert report.imported["note"].present == 1


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("note.md", "Tea of {}"),
        ("note.md", "---\npermalink: note\n---\n- [drink] tea of {}\n"),
        ("memory/MEMORY.md", "Tea of {}"),
    ],
    ids=["obsidian", "basic-memory", "claude-code"],
)
def test_two_sources_with_the_same_names_are_both_imported(
    file: str, text: str, rc: BlockingMemoranda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"type": "user", "sessionId": "s", "uuid": "u", "message": {"content": "Hello"}}
    for project in ("work", "home"):
        packed(
            {file: text.format(project), "s.jsonl": jsonl(said)}
            if "/" in file
            else {file: text.format(project)},
            "folder",
            tmp_path / project,
        )
    counted = [rc.import_history(tmp_path / project) for project in ("work", "home")]
    assert [report.failed for report in counted] == [0, 0]
    assert {tally.created for kind, tally in counted[1].imported.items() if kind in ("note", "fact")} == {1}
    before = stored(rc)
    monkeypatch.chdir(tmp_path / "work")
    for path in ("../home/", ".", "../work", *([".."] if "/" in file else [])):
        assert rc.import_history(path).failed == 0
        assert stored(rc) == before


def test_options_are_checked(rc: BlockingMemoranda, tmp_path: Path) -> None:
    own = packed({"own.jsonl": jsonl({"memoranda_export": 1})}, "file", tmp_path)
    with pytest.raises(InvalidInput, match=r"use memories\.import_from"):
        rc.import_history(own)
    with pytest.raises(InvalidInput, match="is no format; use one of memoranda, memoranda-archive, chatgpt"):
        rc.import_history(own, format="word")
    with pytest.raises(InvalidInput, match="scope"):
        rc.import_history(own, scope="planet:x")
    with pytest.raises(InvalidInput, match="user_id"):
        rc.import_history(own, user_id="")
    with pytest.raises(InvalidInput, match="it is not there"):
        rc.import_history(tmp_path / "nowhere")


def test_for_coroutines(tmp_path: Path) -> None:
    path = write(BY_FORMAT["claude"], tmp_path)

    async def imported() -> None:
        async with await memoranda.Memoranda.open(":memory:", embedder={"url": "hash:16"}) as opened:
            report = await opened.import_history(path, extraction=False)
            assert counts(report) == BY_FORMAT["claude"].imported
            assert (await opened.sessions.get("claude-0c1")).extraction == "off"

    asyncio.run(imported())


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.just("\x00\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def spoiled(value: Any, at: int, by: Any) -> Any:
    """The value with its `at`th part replaced, counted in depth."""
    count = -1

    def walk(part: Any) -> Any:
        nonlocal count
        count += 1
        if count == at:
            return by
        if isinstance(part, dict):
            return {key: walk(each) for key, each in part.items()}
        return [walk(each) for each in part] if isinstance(part, list) else part

    return walk(value)


@given(st.sampled_from(SAMPLES), st.integers(0, 120), JSON)
def test_values_of_wrong_types_never_end_an_import(
    tmp_path_factory: pytest.TempPathFactory, one: Sample, at: int, by: Any
) -> None:
    """Everything that is sent to the store, and the report, can be encoded."""
    files: dict[str, str] = {}
    for name, content in one.files.items():
        try:
            files[name] = json.dumps(spoiled(json.loads(content), at, by))
        except ValueError:
            try:
                files[name] = jsonl(*spoiled([json.loads(line) for line in content.splitlines()], at + 1, by))
            except ValueError:
                files[name] = content.replace("coffee", str(by).encode("utf-8", "replace").decode())

    def perform(write: Write) -> list[Stored]:
        sent = write.messages if isinstance(write, Observe) else write.memories
        assert msgspec.json.encode(write)
        assert all(each["content"] for each in sent)
        return ["created"] * len(sent)

    path = packed(files, "folder", tmp_path_factory.mktemp("spoiled"))
    assert msgspec.json.encode(run(importing(path, ImportOptions(format=one.format)), perform))


def test_file_names_that_are_not_text(rc: BlockingMemoranda, tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.md")
    (tmp_path / name).write_text("Coffee")
    (tmp_path / os.fsdecode(b"empty\xe9.md")).write_text("")
    report = rc.import_history(tmp_path)
    assert (report.imported["note"].created, report.skipped[0].places) == (1, ["empty\ufffd.md"])
    assert rc.memories.list().data[0].metadata["path"] == "caf\ufffd.md"


ROLES = st.sampled_from(["user", "assistant", "tool", "system"])
NODES = st.lists(
    st.tuples(st.integers(0, 9), ROLES, st.text(st.sampled_from("ab \x00\ud800"), max_size=3)),
    min_size=1,
    max_size=10,
)


@settings(max_examples=25)
@given(conversations=st.lists(NODES, min_size=1, max_size=3), current=st.integers(0, 12))
def test_no_message_is_lost(
    anew_product: BlockingMemoranda,
    tmp_path_factory: pytest.TempPathFactory,
    conversations: list[Any],
    current: int,
) -> None:
    """Whatever the tree: each message is stored or counted as not imported, and stored ones are there once."""
    number = sum(session.message_count for session in anew_product.sessions.list(limit=1000).data)
    values = []
    mark = tmp_path_factory.mktemp("tree")
    for place, nodes in enumerate(conversations):
        made = [
            chatgpt_node(f"n{n}", f"n{parent % n}" if n else None, role, said, 1.7e9 + n)
            for n, (parent, role, said) in enumerate(nodes)
        ]
        values.append(chatgpt_conversation(f"{mark.name}-{place}", made, f"n{current}"))
    report = anew_product.import_history(
        packed({"conversations.json": json.dumps(values)}, "zip", mark / "export")
    )
    skipped = sum(each.count for each in report.skipped if each.kind == "message")
    read = report.imported["message"].read if "message" in report.imported else 0
    assert read + skipped == sum(map(len, conversations))
    now = sum(session.message_count for session in anew_product.sessions.list(limit=1000).data)
    assert now - number == read
    assert report.failed == 0


@pytest.fixture(scope="module")
def anew_product(lasting_home: Any) -> Any:
    with lasting_home.empty(embedder={"url": "hash:16"}) as opened:
        yield opened
