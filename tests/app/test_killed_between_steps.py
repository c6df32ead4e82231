"""What goes in steps is completed by the next process when one is killed between two of them, and who reads between
sees neither what was deleted nor half of a change."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import count, groupby
from pathlib import Path
from typing import Any, Protocol

import pytest
from pysqlite3 import dbapi2 as sqlite

import memoranda
from memoranda.clock import now_micros
from memoranda.facts import versions
from memoranda.knowledge.values import NewStoreFile
from memoranda.text.splitting import Chunking
from memoranda.types import NewMemory, Subject
from support import postgres
from support.waiting import until

ON_SQLITE = """
from memoranda.storage.sql.sqlite import SqliteTransaction as Transaction

seen = 0

def changed(transaction):
    global seen
    before, seen = seen, transaction._raw.total_changes
    return seen != before

def has_begun(transaction):
    return transaction._raw.execute(first).fetchone() is not None
"""
ON_POSTGRESQL = """
import psycopg
from memoranda.storage.sql.postgres import PostgresTransaction as Transaction

reader = psycopg.connect(settings.pop("reader"), autocommit=True)
reader.execute("SET search_path TO rows")

def changed(transaction):
    if transaction._pending:
        return False
    return transaction.raw.execute("SELECT pg_current_xact_id_if_assigned()").fetchone()[0] is not None

def has_begun(transaction):
    return reader.execute(first).fetchone() is not None
"""
KILLED = """
rc = memoranda.open(**settings)
from memoranda.facts import provenance
from memoranda.knowledge import pipeline
from memoranda.sessions import log

provenance.MARKS = pipeline.MARKS = log.MARKS = log.ROWS = 3
commit, begun = Transaction.commit, False

def counted(transaction):
    global left, begun
    has_changed = changed(transaction)
    commit(transaction)
    if not has_changed:
        return
    begun = begun or has_begun(transaction)
    left -= begun
    if left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)

Transaction.commit = counted
"""
READ = """
import json, os, signal, sys
from datetime import UTC, datetime
import memoranda

settings, left, first = json.loads(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
"""
SETTLED = """
core = rc.inner.core

async def under_way():
    return core.store.db.read(lambda c: c.select("SELECT 1 FROM jobs WHERE state IN ('queued', 'running')"))

rc.portal.call(core.jobs.until_ended(under_way, lambda rows: not rows, 60.0))
os._exit(0)
"""
NOON = datetime(2024, 5, 6, 12, tzinfo=UTC)
BETWEEN = "what was said between them"
Rows = Callable[[str], list[tuple[Any, ...]]]


class Change(Protocol):
    """A change in steps: the script that makes it, and a query with a row once its first transaction is committed."""

    script: str
    first: str

    def prepare(self, rc: Any) -> None: ...

    def between(self, rows: Rows) -> int:
        """Checks what a reader sees; how much of the change is done."""

    def done(self, rc: Any, rows: Rows, begun: bool) -> None:
        """Checks the end; a change that had not `begun` when the process was killed was not made."""


class Joining:
    first = f"SELECT 1 FROM messages WHERE content = '{BETWEEN}'"
    script = f"""
rc.sessions.observe(
    [{{"content": {BETWEEN!r}, "occurred_at": datetime(2024, 5, 6, 12, 29, tzinfo=UTC)}}], channel_id="c"
)
"""

    def prepare(self, rc: Any) -> None:
        for name, at in (("early", 0), ("late", 50)):
            rc.sessions.observe(
                [
                    {"content": f"{name} message number {i}", "occurred_at": NOON + timedelta(minutes=at + i)}
                    for i in range(8)
                ],
                channel_id="c",
            )

    def between(self, rows: Rows) -> int:
        said = rows(
            "SELECT s.id, m.content, s.message_count, e.session_id FROM messages m"
            " JOIN sessions s ON s.tenant_id = m.tenant_id AND s.id = m.session_id"
            " JOIN memories e ON e.tenant_id = m.tenant_id AND e.id = m.id ORDER BY m.occurred_at"
        )
        assert all(session == found for session, _, _, found in said)
        parts = [(id_, list(part)) for id_, part in groupby(said, key=lambda row: row[0])]
        assert [row[1] for row in said if row[1] != BETWEEN] == [
            f"{name} message number {i}" for name in ("early", "late") for i in range(8)
        ]
        assert [(len(part), part[0][2]) for _, part in parts] == [
            (part[0][2], part[0][2]) for _, part in parts
        ]
        assert len({id_ for id_, _ in parts}) == len(parts) <= 2
        return len(parts[0][1])

    def done(self, rc: Any, rows: Rows, begun: bool) -> None:
        held = rc.sessions.list(order="asc").data
        assert [one.message_count for one in held] == ([17] if begun else [8, 8])
        if begun:
            told = [one.content for one in rc.sessions.messages(held[0].id, limit=100).data]
            assert (len(told), len(set(told)), told[8]) == (17, 17, BETWEEN)
            assert rc.memories.count(scopes=[f"session:{held[0].id}"], kinds=["message"]) == 17


class Deleting:
    """Ten facts rest on one message. The last but one was superseded by the first, and the last is a part of the
    second."""

    first = "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM messages)"
    script = """
[session] = rc.sessions.list().data
[said] = rc.sessions.messages(session.id).data
rc.sessions.delete_message(session.id, said.id)
"""

    def prepare(self, rc: Any) -> None:
        [said] = rc.sessions.observe([{"content": "I own many books."}], channel_id="c")
        core = rc.inner.core
        facts = [
            NewMemory(content=f"owns book {i}", kind="fact", source_refs=[said.message.id], id=f"mem_{i}")
            for i in range(10)
        ]
        rc.portal.call(core.ingest.write("default", core.ingest.drafts(Subject(), facts)))
        end(core, "mem_8", "mem_0")
        end(core, "mem_9", "mem_1")
        core.store.transact("default", lambda w: w.mark(
            [w.c.select("SELECT seq FROM memories WHERE id = 'mem_1'")[0][0]],
            lambda row: versions.put(row, {"consolidates": ["mem_9"]})
            ._replace(source_refs=f'["{said.message.id}","mem_9"]'),
        )).result()  # fmt: skip

    def between(self, rows: Rows) -> int:
        log = rows("SELECT id FROM messages")
        found = rows("SELECT id FROM memories WHERE kind = 'message'")
        assert log == found
        live = {id_ for (id_,) in rows("SELECT id FROM memories WHERE kind = 'fact' AND invalid_at IS NULL")}
        assert live <= {f"mem_{i}" for i in range(8)}
        assert len(live) == 8 or not log
        return 8 - len(live)

    def done(self, rc: Any, rows: Rows, begun: bool) -> None:
        assert rc.memories.count(scopes=["all"]) == (0 if begun else 9)
        assert (not rows("SELECT seq FROM memory_sources")) == begun
        assert (not rc.memories.search("many books", scopes=["all"]).results) == begun


class Attributes:
    first = "SELECT 1 FROM store_files WHERE attributes LIKE '%2025%'"
    script = """
[store] = rc.knowledge.stores.list().data
[file] = rc.knowledge.stores.files(store.id).data
rc.knowledge.stores.set_attributes(store.id, file.id, {"year": 2025})
"""

    def prepare(self, rc: Any) -> None:
        made = rc.knowledge.stores.create(chunking=Chunking(size=3, overlap=0))
        file = rc.knowledge.files.upload("".join(f"word{n}\n" for n in range(10)).encode(), "words.txt")
        rc.knowledge.stores.attach(made.id, [NewStoreFile(file_id=file.id, attributes={"year": 2024})])
        assert rc.knowledge.stores.wait_file(made.id, file.id).status == "completed"

    def between(self, rows: Rows) -> int:
        held = [metadata for (metadata,) in rows("SELECT metadata FROM memories WHERE kind = 'chunk'")]
        assert len(held) == 10
        assert set(held) <= {'{"year":2024}', '{"year":2025}'}
        return held.count('{"year":2025}')

    def done(self, rc: Any, rows: Rows, begun: bool) -> None:
        [store] = rc.knowledge.stores.list().data
        for year, number in ((2024, 0 if begun else 10), (2025, 10 if begun else 0)):
            search = rc.knowledge.stores.search
            hits = search(store.id, "word1", filters={"year": year}, limit=50, merge=False).data
            assert len(hits) == number


def end(core: Any, id_: str, by: str) -> None:
    """Lets one fact take the place of another."""

    def work(w: Any) -> None:
        [(seq,)] = w.c.select("SELECT seq FROM memories WHERE id = ?", [id_])
        w.mark([seq], lambda row: versions.ended(row, by, now_micros(), now_micros(), "superseded"))

    core.store.transact("default", work).result()


class OnSqlite:
    """Rows in a folder."""

    hooks = ON_SQLITE

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def settings(self) -> dict[str, Any]:
        return {"data": str(self.folder), "embedder": {"url": "hash:64"}}

    @property
    def settings_to_die(self) -> dict[str, Any]:
        return self.settings

    def copy(self, name: str) -> OnSqlite:
        """The same rows in a folder of its own."""
        shutil.copytree(self.folder, self.folder.with_name(name))
        return OnSqlite(self.folder.with_name(name))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Reads rows as they are, beside the product."""
        with closing(sqlite.connect(self.folder / "memoranda.db")) as connection:
            return list(connection.execute(sql).fetchall())


class OnPostgresql(OnSqlite):
    """Rows and files in a database of PostgreSQL. A job whose process was killed goes on once its lease has ended."""

    hooks = ON_POSTGRESQL

    def __init__(self, folder: Path, url: str | None = None) -> None:
        super().__init__(folder)
        self.url = url or postgres.server().migrated_url()

    @property
    def settings(self) -> dict[str, Any]:
        return {**super().settings, "database": {"url": self.url}, "jobs": {"lease_seconds": 1}}

    @property
    def settings_to_die(self) -> dict[str, Any]:
        return {**self.settings, "reader": postgres.server().admin_url(postgres.database(self.url))}

    def copy(self, name: str) -> OnPostgresql:
        return OnPostgresql(self.folder.with_name(name), postgres.server().copied_url(self.url))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with postgres.server().admin(postgres.database(self.url)) as raw:
            raw.execute("SET search_path TO rows")
            return raw.execute(sql).fetchall()


PLACES = {"sqlite": OnSqlite, "postgresql": OnPostgresql}


def killed(change: Change, place: OnSqlite, commits: int) -> bool:
    """Makes a change in a process that is killed after so many commits that changed rows, from the first one of the
    change on, or for 0 after whichever comes first; False if it ended before."""
    script = READ + place.hooks + KILLED + change.script + SETTLED
    command = [sys.executable, "-c", script, json.dumps(place.settings_to_die), str(commits), change.first]
    done = subprocess.run(command, check=False, timeout=120)
    assert done.returncode in (0, -signal.SIGKILL)
    return done.returncode != 0


def boundaries(change: Change, whole: OnSqlite) -> Iterator[int]:
    """Kills a process after its first commit, another after the first commit of the change, one after the second and so
    on, and completes what each left; how much was done by then."""
    with memoranda.open(**whole.settings) as rc:
        change.prepare(rc)
    for number in count():
        place = whole.copy(str(number))
        was_killed = killed(change, place, number)
        begun = bool(place.rows(change.first))
        done = change.between(place.rows)
        with memoranda.open(**place.settings) as rc:
            until(
                lambda rows=place.rows: rows(
                    "SELECT count(*) FROM jobs WHERE state IN ('queued', 'running')"
                ),  # type: ignore[misc]
                "no job is left",
                accept=lambda found: found == [(0,)],
            )
            assert change.between(place.rows) >= done
            change.done(rc, place.rows, begun)
        yield done
        if not was_killed:
            return


@pytest.mark.slow
@pytest.mark.parametrize("kind", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("change", [Joining(), Deleting(), Attributes()], ids=lambda one: type(one).__name__)
def test_a_change_is_completed_wherever_it_was_killed(
    change: Change, kind: type[OnSqlite], tmp_path: Path
) -> None:
    assert len(set(boundaries(change, kind(tmp_path / "whole")))) >= 3


def test_a_deletion_is_completed_after_its_first_step(tmp_path: Path) -> None:
    """A step takes three facts, in no promised order; two of the ten had ended before, so that they change no count."""
    assert next(filter(None, boundaries(Deleting(), OnSqlite(tmp_path / "whole")))) in (1, 2, 3)
