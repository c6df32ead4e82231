"""Out and in again: exact, repeatable, and every damaged line named."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memoranda.app.blocking import BlockingMemoranda, BlockingMemories
from memoranda.concurrency.threads import until_cancelled
from memoranda.errors import Forbidden, InvalidInput, MemorandaError, StorageError
from memoranda.memories.export_files import write_file
from memoranda.providers.chat.scripted import ScriptedModel
from memoranda.types import KINDS, Subject
from support.exports import undated

QUICK = {"url": "hash:64"}
DAY = datetime(2024, 5, 1, 12, tzinfo=UTC)


def fill(memories: BlockingMemories) -> None:
    """Rows of every sort: dated and not, used, archived, ended, long, with vectors of their own."""
    memories.add_many([f"plain note {n}" for n in range(30)])
    memories.add(
        "dated", kind="message", role="user", session_id="s", occurred_at=DAY, metadata={"speaker": "Ann"}
    )
    memories.add(
        "dated", kind="message", role="user", session_id="s", occurred_at=DAY + timedelta(microseconds=1)
    )
    memories.add("undated", kind="message", role="user", session_id="s")
    memories.add("own vector", embedding=np.linspace(-1, 1, 64).astype(np.float32))
    memories.add("long " * 2_000)
    memories.add(
        "日本語 👩‍👩‍👧 é\u2028\u0301",
        tags=["ü", "b"],
        metadata={"a": [1, {"b": None}], "é": 1.5},
        user_id="ann",
    )
    ended = memories.add(
        "ended", valid_from=DAY, invalid_at=DAY + timedelta(days=1), source_refs=["m1"]
    ).memory
    archived = memories.add("archived", importance=-3, confidence=0.125, agent_id="a", channel_id="c").memory
    memories.update(archived.id, archived=True)
    memories.count_access([ended.id, archived.id])
    memories.update(memories.add("first").memory.id, content="rewritten")
    memories.delete(memories.add("deleted").memory.id)


def export(memories: BlockingMemories, **how: Any) -> bytes:
    """The whole export as bytes."""
    return b"".join(memories.export(**how))


def imported(out: bytes) -> bytes:
    """The same export where all of it comes from an import, without its date."""
    return re.sub(rb'"origin":"\w+"', b'"origin":"import"', undated(out))


@pytest.fixture
def other(home: Any) -> Any:
    """A second, empty home."""
    with home.open("other") as opened:
        yield opened


# --- the round trip ------------------------------------------------------------------------------------


@pytest.mark.parametrize("vectors", [False, True])
def test_the_round_trip_is_exact(memories: BlockingMemories, other: BlockingMemoranda, vectors: bool) -> None:
    fill(memories)
    out = export(memories, vectors=vectors)
    done = other.memories.import_from(out.splitlines(keepends=True))
    assert (done.read, done.created, done.present, done.conflicts) == (39, 39, 0, [])
    assert undated(export(other.memories, vectors=vectors)) == imported(out)
    mine = memories.list(limit=1000, include_archived=True).data
    for memory in mine:
        memory.origin = "import"
    assert other.memories.list(limit=1000, include_archived=True).data == mine
    for query in ("plain note 7", "rewritten", "own vector"):
        ours, theirs = memories.search(query, mode="dense"), other.memories.search(query, mode="dense")
        assert [(hit.memory.id, hit.similarity) for hit in ours.results] == [
            (hit.memory.id, hit.similarity) for hit in theirs.results
        ] or not vectors


@pytest.mark.parametrize("vectors", [False, True])
def test_importing_twice_changes_nothing(
    memories: BlockingMemories, other: BlockingMemoranda, vectors: bool
) -> None:
    fill(memories)
    out = export(memories, vectors=vectors)
    lines = out.splitlines(keepends=True)
    other.memories.import_from(lines)
    again = other.memories.import_from(lines)
    assert (again.read, again.created, again.present, again.conflicts) == (39, 0, 39, [])
    assert undated(export(other.memories, vectors=vectors)) == imported(out)
    home = memories.import_from(lines)
    assert (home.created, home.present) == (0, 39)
    assert undated(export(memories, vectors=vectors)) == undated(out)


def test_history_comes_along(memories: BlockingMemories, other: BlockingMemoranda) -> None:
    id_ = memories.add("used", occurred_at=DAY, invalid_at=DAY + timedelta(days=1)).memory.id
    for _ in range(3):
        memories.count_access([id_])
    memories.update(id_, archived=True)
    before = memories.get(id_)
    other.memories.import_from(memories.export())
    after = other.memories.get(id_)
    assert after == replace(before, origin="import")
    assert (after.access_count, after.archived_at is None, after.last_accessed_at is None) == (
        3,
        False,
        False,
    )


def test_every_version_of_a_fact_comes_along(memories: BlockingMemories, other: BlockingMemoranda) -> None:
    for id_, after, ends in (("first", 0, DAY + timedelta(days=30)), ("again", 150, None)):
        at = DAY + timedelta(days=after)
        memories.add("Ann owns a boat", kind="fact", id=id_, occurred_at=at, invalid_at=ends)
    lines = list(memories.export())
    for _ in range(2):
        done = other.memories.import_from([*lines[:2], *(GOOD for _ in range(500)), *lines[2:]])
        assert (done.present, [one.id for one in other.memories.list(kinds=["fact"]).data]) == (
            502 - done.created,
            ["again"],
        )
    assert [*map(undated, other.memories.export(kinds=["fact"]))] == [*map(imported, lines)]
    for created in (2, 0):
        assert memories.import_from(lines, scope="user:ann").created == created


def test_a_consolidated_fact_with_the_text_of_a_part_comes_along(
    rc: BlockingMemoranda, other: BlockingMemoranda
) -> None:
    for id_, text in (("a", "Ann uses Postgres in production."), ("b", "Ann uses Postgres")):
        rc.memories.add(text, kind="fact", id=id_, occurred_at=DAY)
    text = rc.memories.get("a").content
    model = ScriptedModel([{"text": json.dumps({"facts": [1, 2], "text": text})}])
    msgspec.structs.force_setattr(rc.inner.core, "model", model)
    (merged,) = rc.facts.consolidate().merged
    assert rc.memories.get(merged.id).content == rc.memories.get("a").content
    lines = list(rc.memories.export())
    for created in (3, 0):
        assert other.memories.import_from(lines).created == created
    assert [one.id for one in other.memories.list(kinds=["fact"]).data] == [merged.id]
    for created in (3, 0):
        assert rc.memories.import_from(lines, scope="user:ann").created == created


def test_the_first_moment_of_1970_is_a_moment(memories: BlockingMemories, other: BlockingMemoranda) -> None:
    start = datetime(1970, 1, 1, tzinfo=UTC)
    id_ = memories.add("the epoch", occurred_at=start).memory.id
    other.memories.import_from(memories.export())
    assert other.memories.get(id_).occurred_at == start


def test_a_vector_that_came_along_is_nobody_elses(memories: BlockingMemories) -> None:
    """An import cannot plant the vector that a text of that name gets later."""
    memories.add("the real text")
    line = json.loads(list(memories.export(vectors=True))[1])
    memories.forget(scopes=["all"])
    planted = base64.b64encode(np.full(64, 1.0, "<f4").tobytes()).decode()
    line["embeddings"][0]["vector"] = planted
    line["session_id"] = "elsewhere"
    memories.import_from([HEADER, json.dumps(line).encode()])
    id_ = memories.add("the real text").memory.id
    found = memories.search("the real text", mode="dense", scopes=["global"])
    assert [(hit.memory.id, hit.similarity) for hit in found.results] == [(id_, pytest.approx(1.0, abs=1e-4))]


def test_with_vectors_no_model_is_asked(memories: BlockingMemories, other: BlockingMemoranda) -> None:
    fill(memories)
    before = other.inner.core.embedder.work.texts
    other.memories.import_from(memories.export(vectors=True))
    assert other.inner.core.embedder.work.texts == before
    assert other.memories.stats()["vectors"] == memories.stats()["vectors"]


def test_vectors_of_another_model_are_not_taken(memories: BlockingMemories, home: Any) -> None:
    memories.add("a text")
    with home.open("wide", embedder={"url": "hash:128"}) as wide:
        wide.memories.import_from(memories.export(vectors=True))
        assert wide.memories.search("a text", mode="dense").results[0].similarity == pytest.approx(
            1.0, abs=1e-4
        )
        assert wide.inner.core.embedder.work.texts > 0


def test_without_vectors_nothing_of_them_leaves(memories: BlockingMemories) -> None:
    fill(memories)
    out = export(memories)
    assert b"embedding" not in out
    assert b'vector":' not in out


def test_a_file_is_written_whole_or_not_at_all(memories: BlockingMemories, tmp_path: Path) -> None:
    fill(memories)
    path = tmp_path / "out.jsonl"
    assert memories.export_to(path, vectors=True) == 39
    assert undated(path.read_bytes()) == undated(export(memories, vectors=True))
    assert memories.import_from(path).present == 39
    before = path.read_bytes()
    with pytest.raises(InvalidInput):
        memories.export_to(path, scopes=["nonsense"])
    assert path.read_bytes() == before
    with pytest.raises(StorageError):
        memories.export_to(tmp_path / "no folder" / "out.jsonl")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError):
        memories.export_to(tmp_path / "folder")
    assert {one.name for one in tmp_path.iterdir()} - {"data"} == {"folder", "out.jsonl"}


def test_a_cancelled_export_leaves_the_older_file(tmp_path: Path) -> None:
    path, stopped = tmp_path / "out.jsonl", Event()
    path.write_bytes(b"older")

    def lines() -> Iterator[bytes]:
        yield b"{}\n"
        stopped.set()
        yield b"{}\n"

    with pytest.raises(CancelledError):
        write_file(path, until_cancelled(stopped, lines()))
    assert path.read_bytes() == b"older"
    assert [*tmp_path.glob("*out.jsonl*")] == [path]


def test_an_export_is_cut_to_its_selection(memories: BlockingMemories, other: BlockingMemoranda) -> None:
    fill(memories)
    lines = list(memories.export(scopes=["session:s"]))
    assert len(lines) == 1 + 3
    assert len(list(memories.export(tags=["b"]))) == 2
    other.memories.import_from(lines)
    assert other.memories.count(scopes=["all"]) == 3


def test_a_json_array_is_read_too(memories: BlockingMemories, tmp_path: Path) -> None:
    path = tmp_path / "array.json"
    path.write_text(json.dumps([{"content": "one", "tags": ["a"]}, {"content": "two"}]))
    assert memories.import_from(path).created == 2
    path.write_text("[{]")
    with pytest.raises(InvalidInput, match="JSON"):
        memories.import_from(path)


def test_a_byte_order_mark_is_no_part_of_the_first_line(memories: BlockingMemories, tmp_path: Path) -> None:
    assert memories.import_from([b'\xef\xbb\xbf{"content": "marked"}\n']).created == 1
    path = tmp_path / "marked"
    for content in (b'{"content": "in a file"}\n', b'[{"content": "in an array"}]'):
        path.write_bytes(b"\xef\xbb\xbf" + content)
        assert memories.import_from(path).created == 1


def test_messages_of_sessions_are_there_already(rc: BlockingMemoranda) -> None:
    rc.observe([{"content": "I live in Bonn.", "user_id": "ada"}], session_id="s", extraction=False)
    rc.memories.add("a note")
    done = rc.memories.import_from(export(rc.memories).splitlines(keepends=True))
    assert (done.read, done.created, done.present, done.conflicts) == (2, 0, 2, [])


def test_bare_lines_are_enough(memories: BlockingMemories) -> None:
    done = memories.import_from(
        [b'{"content": "bare"}\n', b"\n", b'{"content": "bare"}', b'{"content": "other"}']
    )
    assert (done.read, done.created, done.present) == (3, 2, 1)


# --- another place -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "held"),
    [
        ("session:x", (None, None, None, "x")),
        ("user:x", ("x", None, None, None)),
        ("agent:x", (None, "x", None, None)),
        ("channel:a:b", (None, None, "a:b", None)),
        ("global", (None, None, None, None)),
    ],
)
def test_scope_puts_everything_there(
    memories: BlockingMemories, other: BlockingMemoranda, scope: str, held: tuple[str | None, ...]
) -> None:
    fill(memories)
    done = other.memories.import_from(memories.export(), scope=scope)
    rows = other.memories.list(limit=1000, include_archived=True, scopes=["all"]).data
    assert {(one.user_id, one.agent_id, one.channel_id, one.session_id) for one in rows} == {held}
    assert done.created == 39
    assert other.memories.import_from(memories.export(), scope=scope).created == 0


def test_an_import_into_another_scope_of_the_same_home_is_a_copy(memories: BlockingMemories) -> None:
    fill(memories)
    lines = list(memories.export(scopes=["session"]))
    assert len(lines) == 1 + 3
    assert (memories.import_from(lines, scope="channel:x").created, memories.count(scopes=["channel:x"])) == (
        3,
        3,
    )
    again = memories.import_from(lines, scope="channel:x")
    assert (again.created, again.present, again.conflicts) == (0, 3, [])
    assert memories.count(scopes=["session:s"]) == 3
    assert memories.search("dated", mode="keyword", scopes=["channel:x"]).total_count == 2


def test_a_scope_without_an_id_is_every_one(home: Any) -> None:
    with home.open() as rc:
        rc.memories.add("one", session_id="s1")
        rc.memories.add("two", session_id="s2", user_id="ann")
        rc.memories.add("three", channel_id="c", kind="fact")
        for subject, number in ((Subject(), 2), (Subject(user_id="bob", role="member"), 1)):
            memories = rc.as_subject(subject).memories
            assert memories.count(scopes=["session"]) == number
            assert len(list(memories.export(scopes=["session"]))) == 1 + number
        assert rc.memories.stats(scope="session")["by_kind"] == {"note": 2}
        assert rc.memories.stats(scope="channel") == {
            "scope": "channel", "memories": 1, "characters": 5, "by_kind": {"fact": 1},
        }  # fmt: skip
        assert [one.content for one in rc.memories.list(scopes=["user", "channel"]).data] == ["three", "two"]
        service = rc.as_subject(Subject(role="service")).memories
        with pytest.raises(Forbidden, match="admin"):
            service.count(scopes=["session"])
        with pytest.raises(Forbidden, match="admin"):
            service.stats(scope="session:s1")
        for wrong in ("session:", "room"):
            with pytest.raises(InvalidInput, match="scope"):
                rc.memories.stats(scope=wrong)
        for verb in (
            lambda: rc.memories.search("one", scopes=["session"]),
            lambda: rc.memories.forget(scopes=["user"]),
        ):
            with pytest.raises(InvalidInput, match="must be session:ID"):
                verb()


@pytest.mark.parametrize("scope", ["", "all", "room:1", "session:", "x"])
def test_an_unknown_scope_is_refused(memories: BlockingMemories, scope: str) -> None:
    with pytest.raises(InvalidInput, match="scope"):
        memories.import_from([b'{"content": "x"}'], scope=scope)
    assert memories.count() == 0


def test_conflicts_are_reported_and_left_alone(memories: BlockingMemories) -> None:
    memories.add("mine", id="x")
    lines = [
        b'{"content": "theirs", "id": "x"}',
        b'{"content": "new", "id": "y"}',
        b'{"content": "newer", "id": "y"}',
    ]
    done = memories.import_from(lines)
    assert (done.read, done.created, done.present, done.conflicts) == (3, 1, 0, ["x", "y"])
    assert memories.get("x").content == "mine"
    assert memories.get("y").content == "new"


def test_a_text_that_is_there_under_another_id_stays_what_it_is(memories: BlockingMemories) -> None:
    memories.add("same", id="mine")
    done = memories.import_from([b'{"content": "same", "id": "theirs"}'])
    assert (done.created, done.present) == (0, 1)
    assert [one.id for one in memories.list().data] == ["mine"]


def test_a_member_takes_in_its_own_and_nobodys(rc: BlockingMemoranda) -> None:
    member = rc.as_subject(Subject(user_id="ann", role="member")).memories
    member.import_from([b'{"content": "mine", "user_id": "ann"}', b'{"content": "nobodys"}'])
    with pytest.raises(Forbidden):
        member.import_from([b'{"content": "his", "user_id": "bob"}'])
    with pytest.raises(Forbidden):
        member.import_from([b'{"content": "x"}'], scope="user:bob")
    with pytest.raises(Forbidden):
        rc.as_subject(Subject(user_id="ann", role="reader")).memories.import_from([b'{"content": "x"}'])
    assert rc.memories.count() == 2
    rc.memories.add("bobs", user_id="bob")
    assert len(list(member.export())) == 1 + 2


# --- damage --------------------------------------------------------------------------------------------

HEADER = b'{"memoranda_export": 1, "model": "hash-64", "dim": 64}\n'
GOOD = b'{"content": "good"}\n'


def embedded(vector: str) -> bytes:
    """A line with one vector, as base64."""
    held = [{"start": 0, "stop": 1, "text_hash": "h", "vector": vector}]
    return json.dumps({"content": "vector", "embeddings": held}).encode()


SHORT = base64.b64encode(np.ones(3, "<f4").tobytes()).decode()
NAN = base64.b64encode(np.full(64, np.nan, "<f4").tobytes()).decode()
DAMAGED = [
    b"{",
    b"not json",
    b"[]",
    b"null",
    b"5",
    b'"text"',
    b"\xff\xfe",
    b"\x00\x00",
    b"{}",
    b'{"content": 5}',
    b'{"content": ""}',
    b'{"content": "a\\u0000b"}',
    b'{"content": "a\\ud800b"}',
    b'{"content": "x", "kind": "nonsense"}',
    b'{"content": "x", "tags": "a"}',
    b'{"content": "x", "metadata": {"$a": 1}}',
    b'{"content": "x", "metadata": {"a": 1e999}}',
    b'{"content": "x", "metadata": {"a": ' + b"9" * 400 + b"}}",
    b'{"content": "x", "occurred_at": "yesterday"}',
    b'{"content": "x", "occurred_at": "0001-01-01T00:00:00+14:00"}',
    b'{"content": "x", "created_at": "0001-01-01T00:00:00+14:00"}',
    b'{"content": "x", "updated_at": "9999-12-31T23:59:59-12:00"}',
    b'{"content": "x", "archived_at": "9999-12-31T23:59:59-12:00"}',
    b'{"content": "x", "last_accessed_at": "9999-12-31T23:59:59-12:00"}',
    b'{"content": "x", "access_count": -1}',
    b'{"content": "x", "access_count": ' + b"9" * 30 + b"}",
    b'{"content": "x", "access_count": "3"}',
    b'{"content": "x", "superseded_by": "a\\u0000"}',
    b'{"content": "x", "superseded_by": ""}',
    b'{"content": "x", "importance": 5000}',
    embedded("no base64!"),
    embedded("AAA="),
    embedded(SHORT),
    embedded(NAN),
    embedded(""),
    b"[" * 100_000,
]


@pytest.mark.parametrize("raw", DAMAGED, ids=[f"{n}-{raw[:24]!r}" for n, raw in enumerate(DAMAGED)])
def test_a_damaged_line_is_named(memories: BlockingMemories, raw: bytes) -> None:
    """The lines before it are stored, it and what follows are not, and mending it finishes the import."""
    lines = [HEADER, *(b'{"content": "good %d"}\n' % n for n in range(3)), raw.rstrip(b"\n") + b"\n", GOOD]
    with pytest.raises(InvalidInput, match="line 5") as told:
        memories.import_from(lines)
    assert len(str(told.value)) < 1_000
    assert memories.count() == 3
    lines[4] = b'{"content": "mended"}\n'
    assert memories.import_from(lines).created == 2


@pytest.mark.parametrize(
    "header",
    [b'{"memoranda_export": 2}', b'{"memoranda_export": "x"}', b'{"memoranda_export": 1, "dim": "x"}'],
)
def test_a_header_of_another_form_is_refused(memories: BlockingMemories, header: bytes) -> None:
    with pytest.raises(InvalidInput):
        memories.import_from([header, GOOD])
    assert memories.count() == 0


def test_a_source_that_cannot_be_read_is_named(memories: BlockingMemories, tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(InvalidInput, match="source"):
            memories.import_from(path)
    (tmp_path / "empty").write_bytes(b"")
    assert memories.import_from(tmp_path / "empty").read == 0


@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_an_export_with_flipped_bytes_never_breaks_the_rows(anew: Any, data: st.DataObject) -> None:
    """Whatever the bytes are: stored or refused by a house error, and the rows answer afterwards."""
    memories = anew()
    memories.add("one two", tags=["a"], metadata={"n": 1}, occurred_at=DAY, source_refs=["r"])
    raw = bytearray(export(memories, vectors=True))
    memories.forget(scopes=["all"])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at] = data.draw(st.integers(0, 255))
    with suppress(MemorandaError):
        memories.import_from(bytes(raw).splitlines(keepends=True))
    page = memories.list(include_archived=True)
    assert len(page.data) == memories.count(include_archived=True)
    memories.search("one")
    list(memories.export(vectors=True))


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=30)
NAME = st.none() | TEXT
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def test_an_import_keeps_the_order_of_kinds(memories: BlockingMemories, other: BlockingMemoranda) -> None:
    memories.add("0", kind="message")
    memories.add("0", kind="fact", occurred_at=DAY)
    memories.add("0")
    out = export(memories)
    other.memories.import_from(out.splitlines(keepends=True))
    assert undated(export(other.memories)) == imported(out)


MOMENT = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=st.just(UTC))
ROW = st.fixed_dictionaries(
    {"content": TEXT.filter(str.strip)},
    optional={
        "kind": st.sampled_from(KINDS),
        "user_id": NAME,
        "agent_id": NAME,
        "channel_id": NAME,
        "session_id": NAME,
        "role": NAME,
        "source": NAME,
        "tags": st.lists(TEXT, max_size=3),
        "metadata": st.dictionaries(TEXT.filter(lambda key: not key.startswith("$")), JSON, max_size=3),
        "importance": st.integers(-1000, 1000),
        "confidence": st.floats(0, 1),
        "valid_from": st.none() | MOMENT,
        "invalid_at": st.none() | MOMENT,
        "source_refs": st.lists(TEXT, max_size=2),
        "occurred_at": MOMENT,
    },
)


@settings(max_examples=6, deadline=None)
@given(rows=st.lists(ROW, min_size=1, max_size=6), vectors=st.booleans())
def test_any_row_survives_the_round_trip(anew: Any, rows: list[dict[str, Any]], vectors: bool) -> None:
    first, second = anew(), anew()
    for row in rows:
        held = first.add(**row).memory
        assert held == first.get(held.id)
        assert held.content == row["content"]
    out = export(first, vectors=vectors)
    assert second.import_from(out.splitlines(keepends=True)).conflicts == []
    assert undated(export(second, vectors=vectors)) == imported(out)
