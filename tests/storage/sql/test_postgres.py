"""PostgreSQL's own: row security, migrations, what cannot be reached, and servers and connections that go away."""

from __future__ import annotations

import json
import re
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

import memoranda
from memoranda.errors import ConfigError, StorageError
from memoranda.storage.sql import Connection, Options, group
from memoranda.storage.sql.postgres import ANALYZE_AFTER, PostgresConnection, PostgresDatabase
from memoranda.storage.sql.sqlite import SqliteDatabase
from memoranda.storage.sql.statements import migrations, statements
from support import postgres
from support.waiting import SECONDS, until


def draw(c: Connection) -> int:
    """Moves the counter by one: what was done twice, or not at all, shows in it."""
    row = c.one("draw_revs", [1])
    assert row is not None
    return int(row[0])


def drawn(db: PostgresDatabase) -> int:
    row = db.read(lambda c: c.one("last_rev"))
    assert row is not None
    return int(row[0])


def memory(tenant: str, seq: int, content: str = "text", more: int = 0) -> Callable[[Connection], None]:
    names = ("tenant_id", "seq", "rev", "id", "kind", "content", "content_hash", "dedup_key", "occurred_at",
             "created_at", "updated_at")  # fmt: skip
    return lambda c: c.load(
        "memories",
        names,
        [
            (tenant, n, n, f"id{n}", "note", content, "h", f"k{n}", 1, 1, 1)
            for n in range(seq, seq + more + 1)
        ],
    )


@pytest.fixture
def db(postgres_url: str) -> Iterator[PostgresDatabase]:
    opened = PostgresDatabase(postgres_url)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def own() -> Any:
    """A server that tests may stop, and that asks one role for a password."""
    server = postgres.Server()
    rules = server.folder / "data" / "pg_hba.conf"
    rules.write_text("local all guarded scram-sha-256\n" + rules.read_text())
    with server.admin() as raw:
        raw.execute("CREATE ROLE guarded LOGIN PASSWORD 'right'")
        raw.execute("CREATE ROLE bare LOGIN")
        raw.execute("SELECT pg_reload_conf()")
    return server


# --- encodings -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_texts_are_the_same_whatever_encoding_clients_have(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", encoding)
    opened = PostgresDatabase(postgres_url)
    opened.write(memory("a", 1, "Zoë likes café au lait, 花子 does not"), tenant="a").result()
    known = opened.read(lambda c: c.select("SELECT content, octet_length(content) FROM memories"), "a")
    opened.close()
    assert known == [("Zoë likes café au lait, 花子 does not", 41)]


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_of_another_encoding_is_refused(own: Any, encoding: str) -> None:
    name = f"of_{encoding.lower()}"
    with own.admin() as raw:
        raw.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(ConfigError, match=f"has the encoding {encoding}; use one .* 'UTF8'"):
        PostgresDatabase(own.admin_url(name))


# --- row security --------------------------------------------------------------------------------------


def test_a_table_that_grows_is_analyzed_before_the_server_looks(db: PostgresDatabase) -> None:
    """Else the check of a foreign key goes on with a plan from when the table was empty, and reads all of its rows."""

    def known() -> float:
        asked = "SELECT reltuples FROM pg_class WHERE oid = 'memories'::regclass"
        return float(db.read(lambda c: c.select(asked)[0][0]))

    db.write(lambda c: c.run("add_tenant", ["a", 1])).result()
    db.write(memory("a", 1, more=599), tenant="a").result()
    assert known() <= 0
    db.write(memory("a", 601, more=599), tenant="a").result()
    assert known() == 1_200


def test_writes_go_on_beside_a_vacuum(db: PostgresDatabase) -> None:
    with psycopg.connect(db.address.conninfo) as other:
        other.execute(
            f"LOCK TABLE {db.address.schema}.memories IN SHARE UPDATE EXCLUSIVE MODE"
        )  # VACUUM waits for it
        vacuumed = db.erase()
        assert db.write(lambda c: c.run("add_tenant", ["beside", 1])).result(30) == 1
        db.write(memory("beside", 1, more=ANALYZE_AFTER), tenant="beside").result(30)  # it would be analyzed
        assert not vacuumed.done()
    assert vacuumed.result(30) is None


def test_a_query_without_a_condition_sees_its_tenants_rows_alone(db: PostgresDatabase) -> None:
    for tenant in ("a", "b"):
        db.write(memory(tenant, 1, f"of {tenant}"), tenant=tenant).result()

    def everything(c: Connection) -> list[Any]:
        return c.select("SELECT content FROM memories ORDER BY content")

    for ask in (db.read, lambda work, tenant=None: db.write(work, tenant=tenant).result()):
        assert ask(everything, "a") == [("of a",)]
        assert ask(everything, "b") == [("of b",)]
        assert ask(everything, "") == []
        assert ask(everything, "a' OR 'x") == []
        assert ask(everything) == [("of a",), ("of b",)]


def test_a_work_cannot_touch_another_tenants_rows(db: PostgresDatabase) -> None:
    db.write(memory("b", 1), tenant="b").result()
    with pytest.raises(StorageError, match="row-level security"):
        db.write(memory("b", 2), tenant="a").result()
    with pytest.raises(StorageError, match="row-level security"):
        db.write(lambda c: [memory("b", n)(c) for n in range(2, 100)], tenant="a").result()
    assert db.write(lambda c: c.run("remove_memories", ["b", "[1]"]), tenant="a").result() == 0
    assert db.write(lambda c: c.run("set_rev", [9, "b", 1]), tenant="a").result() == 0
    assert db.read(lambda c: c.select("SELECT tenant_id, seq, rev FROM memories")) == [("b", 1, 1)]


def test_works_of_one_group_have_each_its_own_tenant(db: PostgresDatabase) -> None:
    gate = threading.Event()
    db.write(lambda c: gate.wait(10))
    tenants = [None, "a", "b", "a", None, "b"] * 5
    works = [db.write(memory(tenant or "house", n), tenant=tenant) for n, tenant in enumerate(tenants)]
    seen = [db.write(lambda c: c.select("SELECT DISTINCT tenant_id FROM memories"), tenant=t) for t in "ab"]
    gate.set()
    for work in works:
        work.result()
    assert [one.result() for one in seen] == [[("a",)], [("b",)]]


def test_every_table_of_tenants_is_walled(postgres_url: str) -> None:
    with memoranda.open(":memory:", embedder={"url": "hash:16"}, database={"url": postgres_url}) as opened:
        opened.memories.add("x")
        db = opened.inner.core.store.db
        bare = db.read(
            lambda c: c.select(
                "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
                " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'"
                " WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p')"
                " AND NOT (c.relrowsecurity AND c.relforcerowsecurity)"
            )
        )
        assert bare == []
        assert db.health()["row_security"] is True


# --- the schema ----------------------------------------------------------------------------------------


def test_openings_at_once_make_one_schema() -> None:
    url = postgres.fresh_url()
    opened: list[PostgresDatabase] = []
    failures: list[BaseException] = []

    def go() -> None:
        try:
            opened.append(PostgresDatabase(url))
        except BaseException as exc:
            failures.append(exc)

    threads = [threading.Thread(target=go) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    history = opened[0].read(lambda c: c.select("SELECT version FROM schema_history ORDER BY version"))
    assert history == [(version,) for version, _ in migrations("postgres")]
    for one in opened:
        one.write(draw).result()
    assert drawn(opened[0]) == 4
    for one in opened:
        one.close()


def test_both_dialects_have_the_same_versions_tables_and_columns(
    db: PostgresDatabase, tmp_path: Path
) -> None:
    versions = [[version for version, _ in migrations(dialect)] for dialect in ("sqlite", "postgres")]
    assert versions[0] == versions[1]
    theirs = db.read(
        lambda c: c.select(
            "SELECT table_name::text, column_name::text, is_nullable = 'NO' FROM information_schema.columns"
            " WHERE table_schema = current_schema() AND table_name <> 'schema_history' ORDER BY 1, 2"
        )
    )
    file = SqliteDatabase(tmp_path)
    ours = file.read(
        lambda c: c.select(
            'SELECT m.name, p.name, p."notnull" OR p.pk > 0 FROM sqlite_master m, pragma_table_info(m.name) p'
            " WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY 1, 2"
        )
    )
    file.close()
    assert [(table, column, bool(fixed)) for table, column, fixed in ours] == theirs


def test_deleting_responses_reads_what_goes_with_them_by_an_index(db: PostgresDatabase) -> None:
    """Of 10,000 rows: where there are few, PostgreSQL reads all."""
    ids = [f"resp_{n}" for n in range(10_000)]
    items = ("tenant_id", "conversation_id", "seq", "id", "response_id", "item", "created_at")
    responses = ("tenant_id", "id", "seq", "session_id", "status", "body", "input", "output", "created_at")
    text = "word " * 100

    def fill(c: Connection) -> None:
        c.run("add_conversation", ["a", "talk", 1, None, "{}", 1])
        said = [("a", "talk", n, id_, id_, text, 1) for n, id_ in enumerate(ids)]
        c.load("conversation_items", items, said)
        made = [("a", id_, n, "talk", "completed", text, "[]", "[]", 1) for n, id_ in enumerate(ids)]
        c.load("responses", responses, made)

    def index_of(name: str, params: list[Any]) -> list[str]:
        sql = f"EXPLAIN {statements('postgres')[name]}"
        steps = db.write(lambda c: c.select(sql, params), tenant="a").result()
        return re.findall(r"Index Scan using (\w+)", "\n".join(step for (step,) in steps))

    db.write(fill).result()
    db.write(lambda c: c.raw.execute("ANALYZE conversation_items, responses")).result()
    assert index_of("items_of_responses", ["a", json.dumps(ids[:150])]) == ["conversation_items_response"]
    assert index_of("drop_later_summaries", ["a", "talk", 1]) == ["responses_summary"]


def test_a_newer_schema_is_refused_untouched(postgres_url: str) -> None:
    db = PostgresDatabase(postgres_url)
    db.write(
        lambda c: c.select("INSERT INTO schema_history (version) VALUES (999) RETURNING version")
    ).result()
    db.close()
    with pytest.raises(StorageError, match=r"schema 999.*upgrade"):
        PostgresDatabase(postgres_url)


def test_a_role_that_may_make_no_schema_is_told(own: Any) -> None:
    url = own.fresh_url().replace(postgres.OWNER, "bare")
    with pytest.raises(ConfigError, match=r"database\.url.*grant it CREATE.*\?schema="):
        PostgresDatabase(url)


# --- what cannot be reached ----------------------------------------------------------------------------


def unused_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


UNREACHABLE = {
    "password": (lambda base: base.replace(f"{postgres.OWNER}@", "guarded:hush@"), "check user and password"),
    "no password": (lambda base: base.replace(postgres.OWNER, "guarded"), "PGPASSWORD"),
    "role": (lambda base: base.replace(f"{postgres.OWNER}@", "nobody:hush@"), "correct the name"),
    "database": (
        lambda base: base.replace("/postgres?", "/nothing?").replace("_owner@", "_owner:hush@"),
        "create it",
    ),
    "host": (lambda base: "postgresql://u:hush@nowhere.invalid/db", "correct the host"),
    "no port": (lambda base: "postgresql://u:hush@localhost:port/db", "correct the port"),
    "port": (lambda base: f"postgresql://u:hush@127.0.0.1:{unused_port()}/db", "host and port"),
    "socket": (lambda base: "postgresql://u:hush@/db?host=/nowhere&password=hush", "socket's folder"),
}


@pytest.mark.parametrize("what", UNREACHABLE)
def test_what_cannot_be_reached_is_told_with_the_fix_and_without_the_password(own: Any, what: str) -> None:
    change, fix = UNREACHABLE[what]
    with pytest.raises(StorageError, match=re.escape(fix)) as told:
        PostgresDatabase(change(own.fresh_url()))
    assert str(told.value).startswith("database.url: ")
    assert "hush" not in str(told.value)
    assert "hush" not in repr(told.value)


@pytest.mark.parametrize("url", ["postgresql://u:hush@h/db?no_such_option=1", "postgresql://u:hush@[h/db"])
def test_a_url_that_is_none_is_told_without_its_password(url: str) -> None:
    with pytest.raises(ConfigError, match=r"database\.url") as told:
        PostgresDatabase(url)
    assert "hush" not in str(told.value)


# --- limits --------------------------------------------------------------------------------------------


def test_a_statement_that_takes_too_long_ends_and_the_next_one_works(postgres_url: str) -> None:
    db = PostgresDatabase(postgres_url, Options(statement_timeout=0.2))
    with pytest.raises(StorageError, match=r"writing.*nothing was stored.*statement timeout"):
        db.write(lambda c: (draw(c), c.select("SELECT pg_sleep(5)"))).result()
    with pytest.raises(StorageError, match=r"reading.*statement timeout"):
        db.read(lambda c: c.select("SELECT pg_sleep(5)"))
    assert db.write(draw).result() == 1
    assert drawn(db) == 1
    db.close()


def test_a_pool_without_a_free_connection_says_what_to_raise(postgres_url: str) -> None:
    db = PostgresDatabase(postgres_url, Options(pool_size=1, retry_seconds=0.3))
    gate, begun = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: db.read(lambda c: (begun.set(), gate.wait(10))))
    thread.start()
    begun.wait(10)
    with pytest.raises(StorageError, match=r"database\.pool_size"):
        db.read(drawn_again)
    gate.set()
    thread.join()
    assert drawn(db) == 0
    db.close()


def drawn_again(c: Connection) -> Any:
    return c.one("last_rev")


# --- connections that break ----------------------------------------------------------------------------


def kill(pid: int) -> None:
    """Ends a backend of the shared server, and waits until it is gone."""
    with postgres.server().admin() as raw:
        raw.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


def pid_of(c: Connection) -> int:
    return int(c.select("SELECT pg_backend_pid()")[0][0])


@pytest.mark.parametrize("beside", [0, 3])
def test_a_writer_cut_in_the_middle_of_a_work_does_it_again_once(db: PostgresDatabase, beside: int) -> None:
    tries = []
    gate = threading.Event()
    db.write(lambda c: gate.wait(10))

    def work(c: Connection) -> int:
        tries.append(pid_of(c))
        draw(c)
        if len(tries) == 1:
            kill(tries[0])
        return draw(c)

    others = [db.write(draw) for _ in range(beside)]
    cut = db.write(work)
    others += [db.write(draw) for _ in range(beside)]
    gate.set()
    assert cut.result(20) == beside + 2
    assert {one.result(20) for one in others} == set(range(1, 2 * beside + 3)) - {beside + 1, beside + 2}
    assert len(set(tries)) == len(tries) == 2
    assert drawn(db) == 2 * beside + 2


def test_a_reader_cut_between_two_reads_reads_again(db: PostgresDatabase) -> None:
    db.write(draw).result()
    for _ in range(3):
        kill(db.read(pid_of))
        assert drawn(db) == 1


def test_a_reader_cut_in_the_middle_reads_again(db: PostgresDatabase) -> None:
    pids: list[int] = []

    def work(c: Connection) -> Any:
        pids.append(pid_of(c))
        if len(pids) == 1:
            kill(pids[0])
        return c.one("last_rev")

    assert db.read(work) == (0,)
    assert len(set(pids)) == 2


class Proxy:
    """Stands before the server's socket; armed, it cuts the connection at the client's next COMMIT, before or
    after the server has it, so that no answer comes back."""

    def __init__(self, target: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="memoranda-proxy-"))
        self.armed = ""
        self.cuts = 0
        self._target = str(target)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.folder / ".s.PGSQL.5432"))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._target)
            threading.Thread(target=self._forth, args=[client, server], daemon=True).start()
            threading.Thread(target=self._back, args=[client, server], daemon=True).start()

    def _forth(self, client: socket.socket, server: socket.socket) -> None:
        while data := _received(client):
            if self.armed and b"COMMIT" in data:
                how, self.armed = self.armed, ""
                self.cuts += 1
                client.shutdown(socket.SHUT_RDWR)  # nothing goes back from here on
                if how == "after":
                    server.sendall(data)
                    time.sleep(0.3)
                break
            server.sendall(data)
        _end(client, server)

    def _back(self, client: socket.socket, server: socket.socket) -> None:
        while data := _received(server):
            try:
                client.sendall(data)
            except OSError:
                return
        _end(client, server)

    def close(self) -> None:
        self._listener.close()
        shutil.rmtree(self.folder)


def _received(one: socket.socket) -> bytes:
    try:
        return one.recv(65536)
    except OSError:
        return b""


def _end(*sockets: socket.socket) -> None:
    for one in sockets:
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            continue


@pytest.mark.parametrize("how", ["before", "after"])
def test_a_commit_without_an_answer_is_looked_up_and_done_once(postgres_url: str, how: str) -> None:
    host = re.search(r"host=([^&]+)", postgres_url)
    assert host is not None
    proxy = Proxy(Path(host[1].replace("%2F", "/")) / ".s.PGSQL.5432")
    db = PostgresDatabase(postgres_url.replace(host[1], str(proxy.folder).replace("/", "%2F")))
    told: list[int] = []
    try:
        proxy.armed = how
        assert db.write(draw, told.append).result(20) == 1
        assert (proxy.cuts, told) == (1, [1])
        assert db.write(draw).result(20) == 2
        assert drawn(db) == 2
    finally:
        db.close()
        proxy.close()


def test_a_server_that_restarts_loses_and_doubles_nothing(own: Any) -> None:
    db = PostgresDatabase(own.fresh_url(), Options(retry_seconds=60))
    stop = threading.Event()
    done: list[int] = []
    failures: list[BaseException] = []

    def write() -> None:
        while not stop.is_set():
            try:
                done.append(db.write(draw).result(90))
            except BaseException as exc:
                failures.append(exc)
                return

    def read() -> None:
        while not stop.is_set():
            try:
                drawn(db)
            except BaseException as exc:
                failures.append(exc)
                return

    threads = [threading.Thread(target=write) for _ in range(3)] + [threading.Thread(target=read)]
    for thread in threads:
        thread.start()
    until(lambda: len(done) >= 20 or failures, "twenty writes")
    own.stop()
    before = len(done)
    own.start()
    until(lambda: len(done) >= before + 20 or failures, "twenty writes more")
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(done) == list(range(1, len(done) + 1))
    assert drawn(db) == len(done) > before
    db.close()


def test_a_server_that_stays_away_is_told_in_time(own: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write is tried again until half a second is over, a read waits as long for a connection."""
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        time.sleep(seconds)

    db = PostgresDatabase(own.fresh_url(), Options(retry_seconds=0.5))
    own.stop()
    try:
        monkeypatch.setattr(group, "time", SimpleNamespace(monotonic=time.monotonic, sleep=pause))
        with pytest.raises(StorageError, match=r"nothing was stored|cannot connect"):
            db.write(draw).result(SECONDS)
        assert pauses == [0.02, 0.04, 0.08, 0.16, 0.32][: len(pauses)]
        with pytest.raises(StorageError) as told:
            drawn(db)
        assert "after 0.50 sec" in str(told.value.__cause__)
    finally:
        own.start()
    assert db.write(draw).result(SECONDS) == 1
    db.close()


# --- two processes -------------------------------------------------------------------------------------


def test_the_same_text_written_by_two_at_once_is_one_row(postgres_url: str) -> None:
    told = {"embedder": {"url": "hash:16"}, "database": {"url": postgres_url}}
    with memoranda.open(":memory:", **told) as one, memoranda.open(":memory:", **told) as other:
        for n in range(10):
            start = threading.Barrier(2)
            ids: list[str] = []

            def add(opened: Any, n: int = n, start: threading.Barrier = start, ids: list[str] = ids) -> None:
                start.wait(10)
                ids.append(opened.memories.add(f"the same text {n}").memory.id)

            threads = [threading.Thread(target=add, args=[opened]) for opened in (one, other)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(ids) == 2
            assert ids[0] == ids[1]
        assert one.memories.count() == other.memories.count() == 10


def test_a_key_taken_between_the_look_and_the_insert_is_looked_up_again(postgres_url: str) -> None:
    """The other writer, which takes no turns, commits while this one's transaction is open."""
    one, looks = PostgresDatabase(postgres_url), []

    def work(c: Connection) -> str:
        looks.append(c.select("SELECT id FROM memories WHERE dedup_key = 'k1'"))
        if looks[-1]:
            return "found"
        if len(looks) == 1:
            with postgres.server().admin(postgres.database(postgres_url)) as other:
                other.execute(f"SET search_path TO {postgres_url.rpartition('schema=')[2]}, public")
                other.cursor_factory = psycopg.RawCursor
                memory("t", 1)(PostgresConnection(other))
        memory("t", 1)(c)
        return "made"

    assert one.write(work, tenant="t").result(20) == "found"
    assert looks == [[], [("id1",)]]
    one.close()


# --- erasing -------------------------------------------------------------------------------------------

SECRET = "xylophonequartzvortex"


def holding(url: str) -> list[str]:
    """Tables of the schema of which some row, in any of its columns, holds the secret."""
    schema = url.rpartition("schema=")[2]
    with postgres.server().admin(postgres.database(url)) as raw:
        named = raw.execute(
            "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = %s AND c.relkind = 'r'",
            [schema],
        ).fetchall()
        needles = [f"%{SECRET}%", f"%{SECRET.encode().hex()}%"]
        return [
            name
            for (name,) in named
            if raw.execute(
                f"SELECT 1 FROM {schema}.{name} t WHERE t::text LIKE %s OR t::text LIKE %s LIMIT 1", needles
            ).fetchone()
        ]


def test_what_is_forgotten_is_in_no_row_of_any_table(postgres_url: str) -> None:
    with memoranda.open(":memory:", embedder={"url": "hash:16"}, database={"url": postgres_url}) as opened:
        for n in range(60):
            place = {"session_id": "told", "tags": [SECRET], "metadata": {SECRET: SECRET}} if n % 2 else {}
            opened.memories.add(f"{SECRET} {n}" if n % 2 else f"other {n}", **place)
        assert {"memories", "words"} <= set(holding(postgres_url))
        receipt = opened.memories.forget(scopes=["session:told"])
        assert receipt.memories == 30
        assert "freed space" in receipt.note
        assert holding(postgres_url) == []
