"""Everything of a tenant in one file: exact, into any database, tenant and scope, once, and proof against damage."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memoranda
from memoranda.app.archive.chunks import ChunkLine
from memoranda.app.archive.lines import row_of
from memoranda.app.archive.restoring import UNCONFIRMED
from memoranda.app.archive.tables import LEFT_OUT, TABLES, Table
from memoranda.app.archive.writing import Manifest, Member, write_archive
from memoranda.app.blocking import BlockingMemoranda
from memoranda.app.history_report import HistoryImported
from memoranda.errors import Forbidden, InvalidInput
from memoranda.knowledge.values import NewStoreFile
from memoranda.memories.transfer import Vector
from memoranda.memory_stores.values import NewStore, NewStoreMemory, StoreMemoryChange
from memoranda.responses.profiles import NewProfile
from memoranda.types import Subject
from support.waiting import until

pytestmark = pytest.mark.rows_in("sqlite")
MAY = datetime(2026, 5, 1, 10, tzinfo=UTC)
BUSY = """
SELECT kind FROM jobs WHERE state IN ('queued', 'running') AND tenant_id = ?1
UNION ALL SELECT 'rollup' FROM rollups WHERE stale = 1 AND tenant_id = ?1
"""


def idle(rc: BlockingMemoranda, tenant: str = "default") -> None:
    db = rc.inner.core.store.db
    until(lambda: not db.read(lambda c: c.select(BUSY, [tenant])), "jobs to end and rollups to be written")


def fill(rc: BlockingMemoranda) -> str:
    """A tenant with something in every table; the id of its vector store."""
    rc.memories.add("the kettle is green", tags=["a"], metadata={"n": 1}, user_id="ada", occurred_at=MAY)
    old = rc.memories.add("the kettle was red", kind="fact", user_id="ada", occurred_at=MAY).memory
    rc.memories.update(old.id, archived=True)
    words = ("I live in Oslo.", "I like metric units.", "I no longer live in Oslo.")
    for minute, text in enumerate(words):
        said = {
            "role": "user",
            "content": text,
            "speaker": "Ada",
            "occurred_at": MAY + timedelta(minutes=minute),
        }
        rc.observe([said], channel_id="home", user_id="ada", extraction="eager")
    (session,) = rc.sessions.list(channel_id="home").data
    rc.sessions.close(session.id)
    rc.sessions.summarize(session.id)
    rc.facts.extract(session.id)
    tools = [
        {
            "type": "mcp",
            "server_label": "s",
            "server_url": "https://mcp.example.com/x",
            "authorization": "Bearer hunter2",
        }
    ]
    rc.agents.create(NewProfile(name="helper", instructions="Be brief.", tools=tools))
    talk = rc.conversations.create(items=[{"type": "message", "role": "user", "content": "hello"}])
    rc.responses.create(input="What is green?", conversation=talk.id)
    rc.responses.create(input="And red?", background=True)
    rc.switches.set("garden", extraction=False)
    file = rc.knowledge.files.upload(b"# Kettles\n\nA kettle boils water.\n" * 40, "kettles.md")
    store = rc.knowledge.stores.create(name="docs", metadata={"a": "b"})
    rc.knowledge.stores.attach(
        store.id, [NewStoreFile(file_id=file.id, attributes={"kind": "manual", "year": 2020})]
    )
    habits = rc.memory_stores.memories(rc.memory_stores.create(NewStore(name="habits")).id)
    note = habits.create(NewStoreMemory(path="/tea.md", content="green"))
    habits.update(note.id, StoreMemoryChange(content="white"))
    habits.delete(habits.create(NewStoreMemory(path="/old.md", content="black")).id)
    rc.upload_ask.documents.add_text("valve", "The relief valve opens at fourteen bar.")
    idle(rc)
    rc.upload_ask.ask("When does the relief valve open?")
    until(lambda: rc.memories.stats()["unembedded"] == 0, "every vector to be made")
    idle(rc)
    return store.id


def content(path: Path) -> dict[str, bytes]:
    """What an archive has, but for the date of writing."""
    with zipfile.ZipFile(path) as archive:
        return {
            name: re.sub(rb'"created_at":"[^"]*"', b"", archive.read(name))
            if name == "manifest.json"
            else archive.read(name)
            for name in archive.namelist()
        }


def without_order(parts: dict[str, bytes]) -> dict[str, Any]:
    return {name: sorted(raw.split(b"\n")) for name, raw in parts.items() if name != "manifest.json"}


def created(report: HistoryImported) -> int:
    return sum(tally.created for tally in report.imported.values())


@pytest.fixture(scope="module")
def full(lasting_home: Any) -> tuple[Path, str]:
    """An archive of `lasting_home`, with something in every table, and the id of the vector store in it."""
    path = lasting_home.folder / "full.zip"
    with lasting_home.open("full") as rc:
        store = fill(rc)
        rc.archives.export_to(path, vectors=True)
    return path, store


def test_every_table_and_column_is_in_an_archive_or_left_out_for_a_reason(
    full: tuple[Path, str], home: Any
) -> None:
    numbers = {
        "tenant_id",
        "seq",
        "rev",
        "facts_seq",
        "facts_rev",
        "summary_rev",
        "through",
        "model",
        "dim",
        "writing",
    }
    with closing(home.database()) as db:
        names = db.read(
            lambda c: c.select(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            )
        )
        columns = {
            name: {
                row[0]
                for row in db.read(
                    lambda c, name=name: c.select(f"SELECT name FROM pragma_table_info('{name}')")
                )
            }
            for (name,) in names
        }
    archived = {table.name: {*table.columns} for table in TABLES}
    assert columns.keys() == archived.keys() | LEFT_OUT.keys() | {"memories", "chunks"}
    for name, held in archived.items():
        assert held <= columns[name]
        assert columns[name] - held <= numbers - ({"model"} if name == "query_log" else set())
    parts = content(full[0])
    keys = {
        name: {key for line in parts[f"rows/{name}.jsonl"].splitlines() for key in json.loads(line)}
        for name in ("memories", "chunks")
    }
    assert columns["chunks"] - keys["chunks"] == {"tenant_id", "seq", "attached"}
    assert columns["memories"] - keys["memories"] == {"tenant_id", "seq", "rev"}


def test_a_line_may_lack_only_what_its_table_got_later() -> None:
    receipts = Table("tombstones", "receipt")
    line = {"id": "t", "erased_at": 1, "memories": 2, "vectors": 3}
    assert row_of(receipts, json.dumps(line).encode(), {}) == line | {"counts": "{}"}
    del line["vectors"]
    with pytest.raises(InvalidInput, match="vectors"):
        row_of(receipts, json.dumps(line).encode(), {})


def test_the_page_knows_the_tables_and_the_fields_of_lines() -> None:
    page = (Path(__file__).parents[2] / "docs" / "guides" / "export.md").read_text("utf-8")

    def names(begin: str, end: str) -> list[str]:
        return re.findall(r"`(\w+)`", page.partition(begin)[2].partition(end)[0])

    assert sorted(names("| a line is |", "| a row of")) == sorted(table.name for table in TABLES)
    assert [*names("| a chunk of a file", "|"), "embeddings"] == [*ChunkLine.__struct_fields__]
    manifest = [*Manifest.__struct_fields__, *Member.__struct_fields__]
    assert sorted(names("| `manifest.json` |", "|")) == sorted(manifest)
    assert names("is a list of ", ".") == [*Vector.__struct_fields__]


def test_a_restore_is_exact_and_happens_once(full: tuple[Path, str], home: Any, tmp_path: Path) -> None:
    path, store = full
    with home.open("other") as other:
        dry = other.archives.import_from(path, dry_run=True)
        assert other.memories.count(scopes=["all"], include_archived=True) == 0
        embedded = other.inner.core.embedder.work.texts
        first = other.archives.import_from(path)
        assert other.inner.core.embedder.work.texts == embedded
        idle(other)
        assert (first.failed, first.skipped) == (0, [])
        assert dry.imported == first.imported
        again = other.archives.import_from(path)
        assert (created(again), again.skipped) == (0, [])
        other.archives.export_to(tmp_path / "again.zip", vectors=True)
        assert content(tmp_path / "again.zip") == content(path)
        assert other.knowledge.stores.search(store, "what boils water?").data
        (asked,) = other.upload_ask.logs().data
        assert "fourteen" in asked.answer
    assert b"hunter2" not in content(path)["rows/agents.jsonl"]
    empty = {name for name, raw in content(path).items() if not raw}
    assert empty <= {
        f"rows/{name}.jsonl" for name in ("store_writers", "rollups", "file_batches", "ask_summaries")
    }


@pytest.mark.slow
def test_a_restore_crosses_databases_and_comes_back(
    full: tuple[Path, str], home: Any, tmp_path: Path, postgres_url: str
) -> None:
    path, _ = full
    there, back = tmp_path / "there.zip", tmp_path / "back.zip"
    quick = {"url": "hash:64"}
    with memoranda.open(tmp_path / "across", embedder=quick, database={"url": postgres_url}) as other:
        assert other.archives.import_from(path).skipped == []
        idle(other)
        assert created(other.archives.import_from(path)) == 0
        other.archives.export_to(there, vectors=True)
    assert content(there) == content(path)
    with home.open("back") as again:
        assert again.archives.import_from(there).skipped == []
        again.archives.export_to(back, vectors=True)
    assert content(back) == content(path)


def test_another_tenant_and_another_user(
    full: tuple[Path, str], home: Any, lasting_home: Any, tmp_path: Path
) -> None:
    path, store = full
    second = Subject(tenant_id="second")
    with lasting_home.open("full") as rc:
        before = rc.archives.export_to(tmp_path / "before.zip").rows
        report = rc.as_subject(second).archives.import_from(path, user_id="bob")
        idle(rc, "second")
        assert report.failed == 0
        found = rc.as_subject(second).memories.list(limit=1000, scopes=["all"], include_archived=True).data
        assert {one.user_id for one in found} == {"bob"}
        assert rc.as_subject(Subject(tenant_id="third")).memories.count(scopes=["all"]) == 0
        assert rc.archives.export_to(tmp_path / "after.zip").rows == before
        assert content(tmp_path / "after.zip") == content(tmp_path / "before.zip")
        again = rc.as_subject(second).archives.import_from(path, user_id="bob")
        assert created(again) == 0
        elsewhere = rc.archives.import_from(path, user_id="bob")
        assert created(elsewhere) == 0
        assert {each.reason for each in elsewhere.skipped if each.failed} >= {
            "is here already, in another scope"
        }
        assert not {"session", "message", "memory"} & {
            kind for kind, tally in elsewhere.imported.items() if tally.present
        }
        assert content(tmp_path / "after.zip") == content(tmp_path / "before.zip")
        assert rc.knowledge.stores.search(store, "what boils water?").data


def test_a_member_neither_writes_nor_restores_an_archive(
    full: tuple[Path, str], home: Any, lasting_home: Any, tmp_path: Path
) -> None:
    with lasting_home.open("full") as rc:
        for role in ("reader", "member", "service"):
            archives = rc.as_subject(Subject(user_id="ada", role=role)).archives  # type: ignore[arg-type]
            with pytest.raises(Forbidden):
                archives.export_to(tmp_path / "x.zip")
            with pytest.raises(Forbidden):
                archives.import_from(full[0])
    assert not (tmp_path / "x.zip").exists()


@pytest.mark.slow
def test_without_vectors_the_model_makes_them(
    full: tuple[Path, str], home: Any, lasting_home: Any, tmp_path: Path
) -> None:
    path, store = full
    with lasting_home.open("full") as rc:
        rc.archives.export_to(tmp_path / "bare.zip")
    with home.open("wide", embedder={"url": "hash:128"}) as wide:
        assert wide.archives.import_from(path).skipped == []  # its vectors are of another model
        assert wide.memories.stats()["unembedded"] == 0
        assert wide.knowledge.stores.search(store, "what boils water?").data
    with home.open("bare") as bare:
        assert bare.archives.import_from(tmp_path / "bare.zip").skipped == []
        assert bare.memories.stats()["unembedded"] == 0
        bare.archives.export_to(tmp_path / "again.zip")
    assert content(tmp_path / "again.zip") == content(tmp_path / "bare.zip")


# --- standing instructions -----------------------------------------------------------------------------


def altered(path: Path, to: Path, table: str, change: Callable[[bytes], bytes]) -> Path:
    """An archive whose rows of a table were changed by a person who knows how to."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(to, "w") as new:
        parts = {name: old.read(name) for name in old.namelist()}
        rows = f"rows/{table}.jsonl"
        parts[rows] = change(parts[rows])
        manifest = msgspec.json.decode(parts["manifest.json"])
        manifest["tables"][table] = {
            "rows": parts[rows].count(b"\n"), "bytes": len(parts[rows]),
            "sha256": hashlib.sha256(parts[rows]).hexdigest(),
        }  # fmt: skip
        parts["manifest.json"] = msgspec.json.encode(manifest)
        for name, raw in parts.items():
            new.writestr(name, raw)
    return to


def test_a_standing_instruction_is_proposed_again(home: Any, tmp_path: Path) -> None:
    """An archive cannot plant one, whatever it claims."""
    with home.open("first") as first:
        wish = first.memories.add(
            "Ada wants metric units", kind="fact", tags=["instruction"], user_id="ada"
        ).memory
        assert first.facts.confirm(wish.id).confirmed_at is not None
        first.archives.export_to(tmp_path / "first.zip")
    with home.open("second") as second:
        report = second.archives.import_from(tmp_path / "first.zip")
        assert [(each.reason, each.failed, each.places) for each in report.skipped] == [
            (UNCONFIRMED, False, [wish.id])
        ]
        (kept,) = second.memories.list(kinds=["fact"], tags=["instruction"]).data
        assert (kept.id, kept.confirmed_at, kept.confidence) == (wish.id, None, 1.0)
        assert "standing instruction" not in second.context("Which units?", scopes=["user:ada"]).text
        second.facts.confirm(wish.id)
        assert "standing instruction" in second.context("Which units?", scopes=["user:ada"]).text


# --- what is there already, and what is interrupted ----------------------------------------------------


def test_ids_of_something_else_are_refused_with_what_belongs_to_them(
    full: tuple[Path, str], home: Any
) -> None:
    path, store = full
    with home.open("other") as other:
        with zipfile.ZipFile(path) as archive:
            session = msgspec.json.decode(archive.read("rows/sessions.jsonl").splitlines()[0])["id"]
            memory = msgspec.json.decode(archive.read("rows/memories.jsonl").splitlines()[0])["id"]
        other.observe(
            [{"role": "user", "content": "mine", "user_id": "eve"}], session_id=session, user_id="eve"
        )
        other.memories.add("another text", id=memory)
        report = other.archives.import_from(path)
        refused = {(each.kind, each.reason) for each in report.skipped if each.failed}
        assert ("session", "has the id of something else that is here") in refused
        assert ("message", "belongs to what is not restored") in refused
        assert ("memory", "has the id of something else that is here") in refused
        assert [one.content for one in other.sessions.messages(session).data] == ["mine"]
        assert other.memories.get(memory).content == "another text"
        assert other.knowledge.stores.search(store, "what boils water?").data


@pytest.mark.slow
def test_quotas_hold_for_a_restore(full: tuple[Path, str], home: Any) -> None:
    with home.open("small", quotas={"max_file_bytes": 100}) as small:
        report = small.archives.import_from(full[0])
        assert any("max_file_bytes" in each.reason for each in report.skipped)
        assert [each.reason for each in report.skipped if each.kind == "file in a vector store"] == [
            "belongs to what is not restored"
        ]
        assert small.memories.count(scopes=["all"])
    with home.open("none", quotas={"max_stores": 0}) as none:
        report = none.archives.import_from(full[0])
        assert {each.reason for each in report.skipped if each.kind == "vector store"} == {
            "exceeds the quota max_stores"
        }
        assert none.knowledge.stores.list().data == []


CHILD = """
import sys
import memoranda
with memoranda.open(sys.argv[1], embedder={"url": "hash:64"}) as rc:
    def told(report):
        print(report.read, flush=True)
    rc.archives.import_from(sys.argv[2], on_progress=told)
"""


def test_a_cancelled_export_leaves_the_older_file(home: Any, tmp_path: Path) -> None:
    path, stopped = tmp_path / "all.zip", Event()
    path.write_bytes(b"older")
    stopped.set()
    with home.open() as rc:
        rc.memories.add("the kettle is green")
        with pytest.raises(CancelledError):
            write_archive(stopped, rc.inner.core, "default", path, vectors=False)
    assert path.read_bytes() == b"older"
    assert [*tmp_path.glob("*all.zip*")] == [path]


@pytest.mark.slow
def test_a_killed_restore_is_finished_by_the_next(home: Any, tmp_path: Path) -> None:
    with home.open("full") as rc:
        fill(rc)
        rc.memories.add_many([{"content": f"note {n}", "user_id": f"user {n % 7}"} for n in range(900)])
        rc.memories.add_many([{"content": f"more {n}"} for n in range(900)])
        rc.archives.export_to(tmp_path / "full.zip", vectors=True)
    for after in (1, 20, 60, 1_000):
        folder = tmp_path / f"killed-{after}"
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(folder), str(tmp_path / "full.zip")],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        for line in child.stdout:
            if int(line) >= after:
                child.kill()
                break
        child.wait()
        child.stdout.close()
        with memoranda.open(folder, embedder={"url": "hash:64"}) as other:
            report = other.archives.import_from(tmp_path / "full.zip")
            assert report.skipped == []
            idle(other)
            other.archives.export_to(tmp_path / "again.zip", vectors=True)
        assert without_order(content(tmp_path / "again.zip")) == without_order(content(tmp_path / "full.zip"))


# --- damage --------------------------------------------------------------------------------------------


def test_a_damaged_archive_changes_nothing(full: tuple[Path, str], home: Any, tmp_path: Path) -> None:
    raw = full[0].read_bytes()
    with home.open("other") as other:
        damaged = tmp_path / "damaged.zip"
        for size in (0, 1, 10, len(raw) // 2, len(raw) - 1):
            damaged.write_bytes(raw[:size])
            with pytest.raises(InvalidInput, match="source"):
                other.archives.import_from(damaged)
        for at in range(31, len(raw), len(raw) // 15):
            changed = bytearray(raw)
            changed[at] ^= 0x55
            damaged.write_bytes(changed)
            with suppress(InvalidInput):
                assert (
                    other.archives.import_from(damaged, dry_run=True).skipped == []
                )  # a date of a part was changed
        assert other.memories.count(scopes=["all"]) == 0


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("../../etc/passwd", b"x", "does not belong"),
        ("/etc/passwd", b"x", "does not belong"),
        ("files/../../x", b"x", "does not belong"),
        ("rows/secrets.jsonl", b"{}", "does not belong"),
        ("files/file-unknown", b"x", "belongs to no file"),
    ],
)
def test_parts_that_do_not_belong_are_refused(
    full: tuple[Path, str], home: Any, tmp_path: Path, name: str, data: bytes, says: str
) -> None:
    path = tmp_path / "more.zip"
    path.write_bytes(full[0].read_bytes())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, data)
    with home.open("other") as other:
        with pytest.raises(InvalidInput, match=says):
            other.archives.import_from(path)
        assert other.memories.count(scopes=["all"]) == 0


def test_a_bomb_is_not_unpacked(full: tuple[Path, str], home: Any, tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(full[0]) as old, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name == "rows/memories.jsonl":
                with new.open(name, "w") as member:
                    for _ in range(8):
                        member.write(b" " * (1 << 20))
            else:
                new.writestr(name, old.read(name))
    with home.open("other") as other, pytest.raises(InvalidInput, match="is not what was written"):
        other.archives.import_from(bomb)


@pytest.mark.slow
def test_damaged_rows_are_named_and_the_rest_is_restored(
    full: tuple[Path, str], home: Any, tmp_path: Path
) -> None:
    bad = b'{"id": 5}\nnot json\n{"id":"a\\u0000"}\n'
    path = full[0]
    for table in (*(one.name for one in TABLES), "memories", "chunks"):
        path = altered(path, tmp_path / f"{table}.zip", table, lambda raw: bad + raw)
    with home.open("other") as other:
        report = other.archives.import_from(path)
        damaged = {each.kind: each.count for each in report.skipped if each.reason == "is damaged"}
        assert damaged == dict.fromkeys([*(one.what for one in TABLES), "memory", "chunk"], 3)
        idle(other)
        other.archives.export_to(tmp_path / "again.zip", vectors=True)
    left = without_order(content(tmp_path / "again.zip"))
    assert left == without_order(content(full[0]))


def test_a_newer_format_and_other_files_are_refused(
    full: tuple[Path, str], home: Any, tmp_path: Path
) -> None:
    newer = tmp_path / "newer.zip"
    with zipfile.ZipFile(newer, "w") as archive:
        archive.writestr("manifest.json", b'{"memoranda_archive": 3, "created_at": "", "tables": {}}')
    with zipfile.ZipFile(tmp_path / "plain.zip", "w") as archive:
        archive.writestr("a.txt", "a")
    with home.open("other") as other:
        for path, says in (
            (newer, "format 3"),
            (tmp_path / "plain.zip", "no archive"),
            (tmp_path / "none.zip", "cannot be read"),
        ):
            with pytest.raises(InvalidInput, match=says):
                other.archives.import_from(path)
        with pytest.raises(InvalidInput, match="sessions of its own"):
            other.archives.import_from(full[0], scope="session:x")


# --- anything ------------------------------------------------------------------------------------------

TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=20
).filter(str.strip)
JSON = st.dictionaries(
    TEXT.filter(lambda key: not key.startswith("$")),
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | TEXT,
    max_size=3,
)
STEP = st.one_of(
    st.tuples(st.just("memory"), TEXT, JSON),
    st.tuples(st.just("message"), TEXT, JSON),
    st.tuples(st.just("file"), TEXT, st.binary(max_size=200)),
    st.tuples(st.just("talk"), TEXT, st.dictionaries(st.sampled_from("abc"), TEXT, max_size=2)),
)


@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEP, max_size=12))
def test_whatever_is_there_survives(
    home: Any, tmp_path_factory: pytest.TempPathFactory, steps: list[Any]
) -> None:
    folder = tmp_path_factory.mktemp("archives")
    with home.empty() as first, home.empty() as second:
        for kind, text, more in steps:
            if kind == "memory":
                first.memories.add(text, metadata=more, user_id="ada" if len(text) % 2 else None)
            elif kind == "message":
                first.observe(
                    [{"role": "user", "content": text, "metadata": more}], channel_id="c", extraction="off"
                )
            elif kind == "file":
                first.knowledge.files.upload(more, text)
            else:
                first.conversations.create(
                    metadata=more, items=[{"type": "message", "role": "user", "content": text}]
                )
        until(lambda: first.memories.stats()["unembedded"] == 0, "every vector to be made")
        first.archives.export_to(folder / "a.zip", vectors=True)
        assert second.archives.import_from(folder / "a.zip").skipped == []
        second.archives.export_to(folder / "b.zip", vectors=True)
        assert content(folder / "b.zip") == content(folder / "a.zip")
