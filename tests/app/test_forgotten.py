"""What was forgotten stays forgotten when an older export is imported, also where its tombstones were imported."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from memoranda.app.blocking import BlockingMemoranda
from memoranda.app.bundle_files import write_bundle
from memoranda.app.history_report import HistoryImported
from memoranda.memory_stores.values import NewStore, NewStoreMemory
from memoranda.responses.profiles import NewProfile
from memoranda.store.changes import MARKS
from memoranda.store.forgotten import FORGOTTEN, FORGOTTEN_WITH
from memoranda.types import Subject

WORD = "xylophonequartz"
MESSAGES = [f"The {WORD} is number {number} of what I own." for number in range(5)]


def fill(rc: BlockingMemoranda) -> dict[str, str]:
    """Everything that an archive has and a request forgets, for mara; ids by kind of row."""
    note = rc.memories.add(f"the {WORD} is green", user_id="mara").memory
    rc.memories.add("the kettle is green", user_id="dan")
    rc.observe(
        [{"role": "user", "content": text, "id": f"said-{at}"} for at, text in enumerate(MESSAGES)],
        session_id="talk",
        user_id="mara",
    )
    rc.sessions.close("talk")
    rc.sessions.summarize("talk")
    file = rc.knowledge.files.upload(f"# {WORD}\n\nIt is green.\n".encode(), f"{WORD}.md")
    store = rc.knowledge.stores.create(name=f"docs of {WORD}")
    rc.knowledge.stores.attach(store.id, [file.id], wait=10)
    talk = rc.conversations.create(items=[{"type": "message", "role": "user", "content": f"a {WORD}"}])
    response = rc.responses.create(input=f"What is a {WORD}?")
    agent = rc.agents.create(NewProfile(name=WORD, instructions=f"Speak of the {WORD}."))
    habits = rc.memory_stores.create(NewStore(name=WORD))
    habit = rc.memory_stores.memories(habits.id).create(NewStoreMemory(path="/tea.md", content=WORD))
    return {
        "memory": note.id,
        "message": "said-0",
        "session": "talk",
        "file": file.id,
        "vector store": store.id,
        "conversation": talk.id,
        "response": response.id,
        "agent profile": agent.id,
        "memory store": habits.id,
        "memory in a store": habit.id,
    }


def left_out(report: HistoryImported) -> dict[str, list[str]]:
    """The ids of what is reported as forgotten, by kind."""
    return {group.kind: group.places for group in report.skipped if group.reason == FORGOTTEN}


def there(rc: BlockingMemoranda) -> int:
    """How many rows of any table have the word."""

    def read(c: Any) -> int:
        tables = {
            "memories": "content", "messages": "content", "sessions": "summary", "files": "filename",
            "vector_stores": "name", "conversation_items": "item", "responses": "input", "agents": "name",
            "memory_stores": "name", "memory_versions": "content",
        }  # fmt: skip
        counts = [
            c.select(f"SELECT count(*) FROM {table} WHERE {column} LIKE ?", [f"%{WORD}%"])[0][0]
            for table, column in tables.items()
        ]
        return sum(counts)

    return int(rc.inner.core.store.db.read(read, "default"))


def without_ids(path: Path) -> list[bytes]:
    """The lines of an export as they would be if each memory were new: no ids."""
    lines = []
    for raw in path.read_bytes().splitlines():
        line = json.loads(raw)
        line.pop("id", None)
        lines.append(json.dumps(line).encode())
    return lines


def test_a_restore_leaves_out_what_was_forgotten(rc: BlockingMemoranda, home: Any, tmp_path: Path) -> None:
    ids = fill(rc)
    old, new = tmp_path / "old.zip", tmp_path / "new.zip"
    rc.archives.export_to(old)
    held = there(rc)
    assert held > 10
    rc.memories.forget(scopes=["all"])
    assert there(rc) == 0
    rc.archives.export_to(new)
    assert WORD.encode() not in b"".join(parts(new))
    for dry_run in (True, False):
        report = rc.archives.import_from(old, dry_run=dry_run)
        skipped = left_out(report)
        assert {kind: skipped[kind] for kind in ids if ids[kind] in skipped[kind]}.keys() == ids.keys()
        assert set(skipped["message"]) > {f"said-{at}" for at in range(5)}
        assert len(skipped["memory"]) == sum(
            group.count for group in report.skipped if group.kind == "memory"
        )
        assert "chunk" in {group.kind for group in report.skipped if group.reason == FORGOTTEN_WITH}
        assert report.failed == 0
        assert there(rc) == 0
    with home.open("other") as other:  # the tombstones go along
        assert other.archives.import_from(new).imported["tombstone"].created > 0
        assert left_out(other.archives.import_from(old)) == skipped
        assert there(other) == 0
        assert other.archives.import_from(old, include_forgotten=True).skipped == []
        assert there(other) == held
    assert rc.archives.import_from(old, include_forgotten=True).skipped == []
    assert there(rc) == held
    assert left_out(rc.archives.import_from(old)) == {}  # it is there already


def parts(path: Path) -> list[bytes]:
    with zipfile.ZipFile(path) as archive:
        return [archive.read(name) for name in archive.namelist()]


def test_what_is_deleted_one_by_one_is_left_out(rc: BlockingMemoranda, tmp_path: Path) -> None:
    ids = fill(rc)
    (item,) = rc.conversations.items(ids["conversation"]).data
    old = tmp_path / "old.zip"
    rc.archives.export_to(old)
    rc.memories.delete(ids["memory"])
    rc.sessions.delete_message("talk", "said-1")
    rc.knowledge.files.delete(ids["file"])
    rc.responses.delete(ids["response"])
    rc.conversations.delete_item(ids["conversation"], item["id"])
    rc.agents.delete(ids["agent profile"])
    rc.memory_stores.delete(ids["memory store"])
    skipped = left_out(rc.archives.import_from(old))
    assert ids["memory"] in skipped["memory"]
    assert "said-1" in skipped["message"]
    assert skipped["file"] == [ids["file"]]
    assert skipped["agent profile"] == [ids["agent profile"]]
    assert skipped["memory store"] == [ids["memory store"]]
    assert skipped["conversation item"] == [f"{ids['conversation']}, {item['id']}"]
    assert ids["response"] in skipped["response"]
    assert "talk" not in skipped["session"]
    rc.sessions.delete("talk")
    rc.conversations.delete(ids["conversation"])
    rc.knowledge.stores.delete(ids["vector store"])
    assert rc.archives.import_from(old).failed == 0
    assert there(rc) == 0


def test_what_is_added_again_is_exported_and_imported(
    rc: BlockingMemoranda, home: Any, tmp_path: Path
) -> None:
    rc.memories.add(f"the {WORD} is green", user_id="mara")
    rc.memories.forget(scopes=["user:mara"])
    again = rc.memories.add(f"the {WORD} is green", user_id="mara").memory
    archive, lines = tmp_path / "all.zip", tmp_path / "all.jsonl"
    rc.archives.export_to(archive)
    rc.memories.export_to(lines)
    with home.open("other") as other:
        assert left_out(other.archives.import_from(archive)) == {}
        assert other.memories.get(again.id).content == again.content
        assert other.memories.import_from(lines).forgotten == []
    assert rc.memories.import_from(lines).present == 1


def test_jsonl_leaves_out_what_was_forgotten(rc: BlockingMemoranda, home: Any, tmp_path: Path) -> None:
    gone = rc.memories.add(f"the {WORD} is green", user_id="mara").memory
    rc.memories.add(f"the {WORD} is green", user_id="dan")
    lines, archive = tmp_path / "old.jsonl", tmp_path / "new.zip"
    rc.memories.export_to(lines)
    rc.memories.forget(scopes=["user:mara"])
    done = rc.memories.import_from(lines)
    assert (done.created, done.present, done.forgotten) == (0, 1, [gone.id])
    assert rc.memories.import_from(lines, scope="user:eva").forgotten == [gone.id]
    assert rc.memories.import_from(without_ids(lines)).forgotten == ["line 2"]  # by its text in its scope
    rc.archives.export_to(archive)
    with home.open("other") as other:
        other.archives.import_from(archive)
        assert other.memories.import_from(lines).forgotten == [gone.id]
        assert other.memories.import_from(lines, include_forgotten=True).created == 1
    undated = [b'{"memoranda_export":1}', *lines.read_bytes().splitlines()[1:]]
    assert rc.memories.import_from(undated).forgotten == [gone.id]
    plain = undated[1:]  # no export: memories that a caller adds
    assert rc.memories.import_from(plain).created == 1


def test_tombstones_belong_to_a_tenant(rc: BlockingMemoranda, tmp_path: Path) -> None:
    rc.memories.add(f"the {WORD} is green", user_id="mara")
    lines = tmp_path / "old.jsonl"
    rc.memories.export_to(lines)
    rc.memories.forget(scopes=["user:mara"])
    other = rc.as_subject(Subject(tenant_id="other")).memories
    assert other.import_from(lines).created == 1


def test_tombstones_have_no_ids_and_no_text(rc: BlockingMemoranda) -> None:
    fill(rc)
    rc.memories.forget(scopes=["all"])

    def read(c: Any) -> list[Any]:
        return list(c.select("SELECT salt, mark FROM forgotten WHERE tenant_id = ?", ["default"]))

    rows = rc.inner.core.store.db.read(read, "default")
    assert len(rows) > 20
    assert len({salt for salt, _ in rows}) == 1
    assert all(len(bytes.fromhex(each)) == 16 for row in rows for each in row)


def test_what_goes_by_itself_has_no_tombstone(rc: BlockingMemoranda, tmp_path: Path) -> None:
    old = rc.memories.add("Mara lives in Oslo", kind="fact", user_id="mara").memory
    lines = tmp_path / "old.jsonl"
    rc.memories.export_to(lines)
    rc.memories.add("Mara lives in Rome", kind="fact", user_id="mara", replaces=[old.id])
    rc.memories.update(old.id, archived=True)
    count = rc.inner.core.store.db.read(lambda c: c.select("SELECT count(*) FROM forgotten"), "default")
    assert count == [(0,)]
    assert rc.memories.import_from(lines).forgotten == []


def test_an_archive_of_format_1_has_no_tombstones(rc: BlockingMemoranda, home: Any, tmp_path: Path) -> None:
    rc.memories.add(f"the {WORD} is green", user_id="mara")
    path, earlier = tmp_path / "new.zip", tmp_path / "earlier.zip"
    rc.archives.export_to(path)
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(earlier, "w") as older:
        manifest = json.loads(archive.read("manifest.json")) | {"memoranda_archive": 1}
        del manifest["tables"]["forgotten"]
        for name in {*archive.namelist()} - {"manifest.json", "rows/forgotten.jsonl"}:
            older.writestr(name, archive.read(name))
        older.writestr("manifest.json", json.dumps(manifest))
    with home.open("other") as other:
        assert other.archives.import_from(earlier).imported["memory"].created == 1
    rc.memories.forget(scopes=["user:mara"])
    assert list(left_out(rc.archives.import_from(earlier))) == ["memory"]


def test_facts_that_a_job_deletes_have_tombstones(rc: BlockingMemoranda, tmp_path: Path) -> None:
    rc.observe([{"role": "user", "content": MESSAGES[0], "id": "said"}], session_id="talk", user_id="mara")
    facts = [
        {"content": f"fact {at}", "kind": "fact", "user_id": "mara", "source_refs": ["said"]}
        for at in range(MARKS + 5)
    ]
    ids = {added.memory.id for added in rc.memories.add_many(facts)}
    lines = tmp_path / "old.jsonl"
    rc.memories.export_to(lines)
    rc.sessions.delete_message("talk", "said")
    assert {*rc.memories.import_from(lines).forgotten} == ids | {"said"}


def test_a_bundle_leaves_out_what_was_forgotten(rc: BlockingMemoranda, home: Any, tmp_path: Path) -> None:
    ids = {
        rc.memories.add(f"the {WORD} is {kind}", kind=kind, user_id="mara").memory.id
        for kind in ("note", "fact")
    }
    rc.memories.add("the kettle is green", user_id="dan")
    bundle, archive = tmp_path / "old.mem", tmp_path / "new.zip"
    write_bundle(bundle, rc.memories.export())
    rc.memories.forget(scopes=["user:mara"])
    rc.archives.export_to(archive)
    for dry_run in (True, False):
        assert set().union(*left_out(rc.import_history(bundle, dry_run=dry_run)).values()) == ids
        assert rc.memories.count(scopes=["all"]) == 1
    with home.open("other") as other:
        other.archives.import_from(archive)
        assert set().union(*left_out(other.import_history(bundle)).values()) == ids
        assert left_out(other.import_history(bundle, include_forgotten=True)) == {}
        assert other.memories.count(scopes=["all"]) == 3
