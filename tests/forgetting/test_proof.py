"""A word that was said everywhere, and forgotten, is in no table, file, cache, log, listing or export."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from memoranda.app.blocking import BlockingMemoranda
from memoranda.types import ForgetPreview, Subject
from support import live_files, postgres

from .places import WORD, Planted, begun, settled

PLACES = {
    "agents", "chunks", "conversation_items", "conversations", "files", "jobs", "memories", "messages", "query_log",
    "memory_stores", "memory_versions", "response_events", "responses", "sessions", "store_files", "store_memories",
    "uploads", "vector_stores",
}  # fmt: skip
"""Tables that hold the word before it is forgotten: if one does not, the test proves nothing of it."""
KINDS = {"note", "message", "fact", "session_summary", "rollup", "qa_turn", "chunk"}
"""Kinds of memories that hold it before."""
BACKENDS: dict[str, dict[str, Any]] = {
    "default": {},
    "inside": {"index": {"url": "sqlitevec:"}, "words": {"url": "fts5:"}, "files": {"url": "database:"}},
}


def lines_of_sqlite(path: Path) -> Iterator[tuple[str, bytes]]:
    (tables,) = live_files.select(path, "SELECT name FROM sqlite_master WHERE type = 'table'")
    names = [name for (name,) in tables]
    contents = live_files.select(path, *(f'SELECT * FROM "{name}"' for name in names))
    for name, rows in zip(names, contents, strict=True):
        for row in rows:
            yield name, b"\n".join(v if isinstance(v, bytes) else str(v).encode() for v in row)


def lines_of_postgres(url: str) -> Iterator[tuple[str, bytes]]:
    schema = parse_qs(urlsplit(url).query)["schema"][0]
    with postgres.server().admin(postgres.database(url)) as raw:
        names = raw.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema]).fetchall()
        for (name,) in names:
            for row in raw.execute(f'SELECT * FROM "{schema}"."{name}"').fetchall():
                yield name, b"\n".join(bytes(v) if isinstance(v, bytes) else str(v).encode() for v in row)


def relations(url: str) -> list[Path]:
    """The files of the schema's tables, rewritten without what was deleted."""
    server = postgres.server()
    schema = parse_qs(urlsplit(url).query)["schema"][0]
    with server.admin(postgres.database(url)) as raw:
        named = [
            name for (name,) in raw.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema])
        ]
        for name in named:
            raw.execute(f'VACUUM FULL "{schema}"."{name}"')
        raw.execute("CHECKPOINT")
        found = raw.execute(
            "SELECT pg_relation_filepath(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = %s AND c.relkind IN ('r', 't', 'i')",
            [schema],
        ).fetchall()
    return [server.folder / "data" / path for (path,) in found if path]


PREVIEW: dict[str, Callable[[BlockingMemoranda], ForgetPreview]] = {
    "subject": lambda rc: rc.memories.preview_forget(scopes=["user:mara"]),
    "text": lambda rc: rc.memories.preview_forget(text=WORD.upper()),
}
FORGET: dict[str, Callable[[BlockingMemoranda], Any]] = {
    "subject": lambda rc: rc.memories.forget(scopes=["user:mara"]),
    "text": lambda rc: rc.memories.forget(text=WORD.upper()),
}


@pytest.mark.parametrize(
    ("how", "backends"), [("subject", "default"), ("text", "default"), ("subject", "inside")]
)
def test_what_is_forgotten_is_nowhere(
    home: Any, tmp_path: Path, how: str, backends: str, caplog: pytest.LogCaptureFixture
) -> None:
    if backends != "default" and home.rows_in != "sqlite":
        pytest.skip("backends of SQLite")
    caplog.set_level(logging.DEBUG, "memoranda")
    folder = home.folder / "data"

    def rows() -> Iterator[tuple[str, bytes]]:
        if home.rows_in == "sqlite":
            return lines_of_sqlite(folder / "memoranda.db")
        return lines_of_postgres(home.url())

    with begun(home, tmp_path, BACKENDS[backends]) as rc:
        planted = Planted(rc)
        planted.plant()
        assert planted.tables(rows) >= PLACES
        assert planted.kinds() >= KINDS
        assert planted.remembered()
        if home.rows_in == "sqlite":
            assert planted.files(folder)
        jobs = rc.inner.core.store.db.read(lambda c: c.select("SELECT kind, payload FROM jobs"))

        preview = PREVIEW[how](rc)
        assert planted.tables(rows) >= PLACES
        receipt = FORGET[how](rc)
        uncounted = {"vectors": receipt.vectors, "jobs": receipt.counts["jobs"]}
        assert preview.counts | uncounted == receipt.counts

        left = planted.tables(rows)
        assert left == set()
        assert planted.files(folder) == set()
        assert planted.remembered() == []
        counted = {"memories", "vectors", "messages", "responses", "queries", "files", "chunks", "uploads", "agents",
                   "stores", "jobs", "memory_stores", "memory_versions"}  # fmt: skip
        assert counted <= set(receipt.counts), receipt
        assert receipt.counts["memories"] == receipt.memories
        assert "exports" in receipt.note
        held = rc.inner.core.store.db.read(lambda c: c.select("SELECT counts FROM tombstones"))
        assert json.loads(held[0][0]) == receipt.counts

        again(rc, jobs)
        assert planted.tables(rows) == set()
        assert planted.told() == []
        assert rc.memories.get(planted.kept).content == "the garden gate is green"
        store, gate = planted.gate
        house = rc.inner.as_subject(Subject()).memory_stores
        assert planted.call(house.memories(store).get(gate)).content == "green, as ever"
        said = [one.content for session in rc.sessions.list(limit=100).data
                for one in rc.sessions.messages(session.id, limit=100).data]  # fmt: skip
        assert "The garden gate needs some paint, I will see to it on Friday." in said
        if home.rows_in != "sqlite":
            assert [path for path in relations(home.url()) if WORD.encode() in path.read_bytes()] == []
    with begun(home, tmp_path, BACKENDS[backends]) as rc:
        assert planted.files(folder) == set()
        planted.rc, planted.inner = rc, rc.inner
        assert planted.told() == []
    assert [one.getMessage() for one in caplog.records if WORD in one.getMessage().lower()] == []


def again(rc: BlockingMemoranda, jobs: list[Any]) -> None:
    """Jobs that were told of it before run once more, as if their process had died."""
    core = rc.inner.core
    for kind, payload in jobs:
        if payload != "{}" and kind in core.jobs.kinds and WORD not in payload:
            rc.portal.call(core.jobs.enqueue("default", kind, json.loads(payload)))
    settled(rc)
    rc.portal.call(rc.inner.memories.reembed())
    settled(rc)
