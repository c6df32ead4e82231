"""Databases of other systems: real ones where their programs are here, else tables as their migrations make them."""

from __future__ import annotations

import json
import os
import pickle
import sqlite3
import uuid
from contextlib import closing
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from memoranda.errors import InvalidInput
from memoranda.importers import chroma, langgraph, pgvector, qdrant, zep
from memoranda.importers.databases import Remote
from memoranda.importers.formats import FORMATS, detected, format_of
from memoranda.importers.mapping import parsed
from memoranda.importers.sources import Source
from memoranda.importers.values import Entry, Item, Skipped
from memoranda.text.hashing import digest

MAY = datetime(2026, 5, 1, 10, tzinfo=UTC)


def read(path: Path, **fields: str) -> list[Item]:
    """What the detected format of a path yields; twice, to see that it is the same."""
    name = detected(path)
    with Source(path, fields) as source:
        found = list(FORMATS[name].read(source))
        assert list(FORMATS[name].read(source)) == found
    return found


def entries(items: list[Item]) -> list[Entry]:
    assert [each for each in items if isinstance(each, Skipped)] == []
    return [each for each in items if isinstance(each, Entry)]


def chroma_folder(folder: Path) -> Path:
    """The tables of a persistent client of Chroma 1.x that are read, with their columns."""
    folder.mkdir(exist_ok=True)
    with closing(sqlite3.connect(folder / "chroma.sqlite3")) as c, c:
        c.executescript(
            """
            CREATE TABLE collections (id TEXT PRIMARY KEY, name TEXT NOT NULL, dimension INTEGER, database_id TEXT);
            CREATE TABLE segments (id TEXT PRIMARY KEY, type TEXT NOT NULL, scope TEXT NOT NULL, collection TEXT);
            CREATE TABLE embeddings (id INTEGER PRIMARY KEY, segment_id TEXT NOT NULL, embedding_id TEXT NOT NULL,
                seq_id BLOB NOT NULL, created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP);
            CREATE TABLE embedding_metadata (id INTEGER, key TEXT NOT NULL, string_value TEXT, int_value INTEGER,
                float_value REAL, bool_value INTEGER, PRIMARY KEY (id, key));
            INSERT INTO collections VALUES ('c1', 'notes', 3, 'd'), ('c2', 'other', 3, 'd');
            INSERT INTO segments VALUES ('m1', 'm', 'METADATA', 'c1'), ('v1', 'v', 'VECTOR', 'c1');
            INSERT INTO segments VALUES ('m2', 'm', 'METADATA', 'c2');
            INSERT INTO embeddings VALUES (1, 'm1', 'a', 1, '2026-05-01 10:00:00');
            INSERT INTO embeddings VALUES (2, 'm2', 'a', 2, '2026-05-01 10:00:00');
            INSERT INTO embeddings VALUES (3, 'm1', 'empty', 3, '2026-05-01 10:00:00');
            INSERT INTO embedding_metadata VALUES (1, 'chroma:document', 'The kettle is green.', NULL, NULL, NULL),
                (1, 'page', NULL, 7, NULL, NULL), (1, 'weight', NULL, NULL, 0.5, NULL),
                (1, 'done', NULL, NULL, NULL, 1),
                (2, 'chroma:document', 'Another text.', NULL, NULL, NULL), (3, 'page', NULL, 1, NULL, NULL);
            """
        )
    return folder


def test_chroma(tmp_path: Path) -> None:
    first, second, empty = read(chroma_folder(tmp_path / "chroma"))
    assert isinstance(first, Entry)
    assert (first.content, first.occurred_at) == ("The kettle is green.", MAY)
    assert first.metadata == {
        "page": 7, "weight": 0.5, "done": True, "collection": "notes", "created_at": "2026-05-01 10:00:00",
    }  # fmt: skip
    assert isinstance(second, Entry)
    assert second.id != first.id
    assert isinstance(empty, Skipped)
    assert "--map text=" in empty.reason
    (tmp_path / "chroma" / "chroma.sqlite3").write_bytes(b"SQLite format 3\0 and nothing else")
    with pytest.raises(InvalidInput, match="no known format"):
        detected(tmp_path / "chroma")


def test_the_document_and_the_own_date_of_a_record_of_chroma_come_first(tmp_path: Path) -> None:
    folder = chroma_folder(tmp_path / "chroma")
    with closing(sqlite3.connect(folder / "chroma.sqlite3")) as c, c:
        c.executescript(
            """
            INSERT INTO embedding_metadata VALUES (1, 'text', 'A label', NULL, NULL, NULL),
                (1, 'document', 'ledger.pdf', NULL, NULL, NULL), (1, 'date', '2019-03-03', NULL, NULL, NULL),
                (2, 'date', '01/05/2024', NULL, NULL, NULL), (3, 'text', 'Text alone', NULL, NULL, NULL);
            """
        )
    first, date, second, alone = read(folder)
    assert isinstance(first, Entry)
    assert (first.content, first.occurred_at) == ("The kettle is green.", datetime(2019, 3, 3, tzinfo=UTC))
    own = {key: first.metadata[key] for key in ("text", "document", "created_at")}
    assert own == {"text": "A label", "document": "ledger.pdf", "created_at": "2026-05-01 10:00:00"}
    assert isinstance(date, Skipped)
    assert (date.kind, date.place.endswith(": '01/05/2024'")) == ("date", True)
    assert isinstance(second, Entry)
    assert second.occurred_at == MAY
    assert isinstance(alone, Entry)
    assert alone.content == "Text alone"
    mapped = read(folder, text="text")
    assert [each.content for each in mapped if isinstance(each, Entry)] == ["A label", "Text alone"]


def test_ids_of_databases_are_those_of_the_folder_or_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sources(path: Path) -> set[str | None]:
        return {each.source for each in read(path) if isinstance(each, Entry)}

    folder = chroma_folder(tmp_path / "tea")
    monkeypatch.chdir(folder)
    assert sources(folder) == sources(Path()) == sources(folder / "chroma.sqlite3") == {"tea"}
    assert sources(chroma_folder(tmp_path / "coffee")) == {"coffee"}
    for url in (
        "postgresql://me:secret@DB:5432/app",
        "postgres://db/app?user=me",
        "postgresql:///app?host=db",
    ):
        assert Remote(url, {}).database == "db/app"
    assert Remote("postgresql://db/other", {}).database == "db/other"
    assert Remote("https://me:secret@Host:6333/docs", {}).host == "host:6333"


def test_qdrant_folder(tmp_path: Path) -> None:
    client = pytest.importorskip("qdrant_client").QdrantClient(path=str(tmp_path / "q"))
    models = pytest.importorskip("qdrant_client.models")
    client.create_collection("docs", vectors_config=models.VectorParams(size=2, distance=models.Distance.DOT))
    one, two = str(uuid.uuid4()), 7
    tea = {"data": "likes tea", "user_id": "ada", "created_at": MAY.isoformat()}
    points = [
        models.PointStruct(
            id=one, vector=[1, 2], payload={"page_content": "green kettle", "metadata": {"page": 3}}
        ),
        models.PointStruct(id=two, vector=[1, 2], payload=tea),
    ]
    client.upsert("docs", points)
    client.close()
    found = {each.content: each for each in entries(read(tmp_path / "q"))}
    assert found["green kettle"].metadata == {"page": 3, "collection": "docs"}
    likes = found["likes tea"]
    assert (likes.user_id, likes.occurred_at) == ("ada", MAY)
    renamed = entries([each for each in read(tmp_path / "q", text="user_id") if isinstance(each, Entry)])
    assert [each.content for each in renamed] == ["ada"]


class Evil:
    """A point whose pickle would make a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.folder),)


def test_a_pickle_runs_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "q" / "collection" / "docs"
    folder.mkdir(parents=True)
    (tmp_path / "q" / "meta.json").write_text("{}")
    with closing(sqlite3.connect(folder / "storage.sqlite")) as c, c:
        c.execute("CREATE TABLE points (id TEXT PRIMARY KEY, point BLOB)")
        c.execute("INSERT INTO points VALUES ('a', ?)", [pickle.dumps(Evil(tmp_path / "made"))])
        c.execute("INSERT INTO points VALUES ('b', ?)", [b"no pickle"])
    found = read(tmp_path / "q")
    assert [each.reason for each in found if isinstance(each, Skipped)] == ["is damaged"] * 2
    assert not (tmp_path / "made").exists()


class Points(BaseHTTPRequestHandler):
    """Answers as a Qdrant server with two pages of points."""

    def log_message(self, *args: Any) -> None:
        """Nothing is logged."""

    def do_GET(self) -> None:
        self._send({"collections": [{"name": "docs"}]})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        number = asked["offset"] or 0
        self._send(
            {
                "points": [{"id": number, "payload": {"text": f"text {number}"}}],
                "next_page_offset": 1 if number == 0 else None,
            }
        )

    def _send(self, result: Any) -> None:
        raw = json.dumps({"result": result, "status": "ok"}).encode()
        right = self.headers.get("api-key") == "secret"
        self.send_response(200 if right else 401)
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


def test_qdrant_server(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Points)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        assert format_of(url, None) == "qdrant"
        with pytest.raises(InvalidInput, match="QDRANT_API_KEY"):
            list(qdrant.read_url(Remote(url, {})))
        monkeypatch.setenv(qdrant.KEY, "secret")
        assert [each.content for each in entries(list(qdrant.read_url(Remote(url, {}))))] == [
            "text 0",
            "text 1",
        ]
        assert len(list(qdrant.read_url(Remote(f"{url}/docs", {})))) == 2
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def database(postgres_url: str) -> str:
    """The URL of a database as libpq knows it."""
    url, _, schema = postgres_url.partition("&schema=")
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(url, autocommit=True) as c:
        c.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    return f"{url}&options=-csearch_path%3D{schema},public"


def test_pgvector_and_langgraph_in_postgres(database: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(database, autocommit=True) as c:
        c.execute(
            "CREATE TABLE langchain_pg_embedding (id TEXT, document TEXT, cmetadata JSONB, embedding vector(2))"
        )
        c.execute("INSERT INTO langchain_pg_embedding VALUES ('a', 'green kettle', '{\"page\": 3}', '[1,2]')")
        c.execute("INSERT INTO langchain_pg_embedding VALUES ('b', '', NULL, NULL)")
        c.execute("CREATE TABLE store (prefix TEXT, key TEXT, value JSONB, created_at TIMESTAMPTZ)")
        value = json.dumps({"text": "likes tea", "n": 1})
        c.execute("INSERT INTO store VALUES ('users.ada', 'k', %s, %s)", [value, MAY])
    remote = Remote(database, {})
    first, second = pgvector.read_url(remote)
    assert isinstance(first, Entry)
    assert (first.content, first.metadata) == ("green kettle", {"page": 3, "table": "langchain_pg_embedding"})
    assert isinstance(second, Skipped)
    (entry,) = entries(list(langgraph.read_url(remote)))
    assert (entry.content, entry.occurred_at) == ("likes tea", MAY)
    assert entry.metadata["namespace"] == ["users", "ada"]
    with psycopg.connect(database, autocommit=True) as c:
        c.execute("CREATE TABLE mine (number INT PRIMARY KEY, body TEXT, said TIMESTAMPTZ, e vector(2))")
        c.execute("INSERT INTO mine VALUES (1, 'my text', %s, '[1,2]')", [MAY])
    with pytest.raises(InvalidInput, match=r"several tables .*--map table="):
        list(pgvector.read_url(remote))
    mapped = parsed(["table=mine", "id=number", "text=body", "date=said"])
    (mine,) = entries(list(pgvector.read_url(Remote(database, mapped))))
    assert (mine.content, mine.occurred_at) == ("my text", MAY)
    wrong = (
        ({"table": "none"}, "no table"),
        ({"table": "mine"}, "--map id="),
        ({**mapped, "text": "x"}, "no column"),
    )
    for fields, says in wrong:
        with pytest.raises(InvalidInput, match=says):
            list(pgvector.read_url(Remote(database, fields)))


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(InvalidInput, match="cannot be read") as told:
        list(pgvector.read_url(Remote("postgresql://me:hunter2@127.0.0.1:1/x", {})))
    assert "hunter2" not in str(told.value)


def test_langgraph_in_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path)) as c, c:
        c.execute(
            "CREATE TABLE store (prefix text NOT NULL, key text NOT NULL, value text NOT NULL,"
            " created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP, PRIMARY KEY (prefix, key))"
        )
        c.execute(
            "INSERT INTO store VALUES ('a.b', '1', '{\"memory\": \"likes tea\"}', '2026-05-01 10:00:00', NULL)"
        )
        c.execute(
            "INSERT INTO store VALUES ('a.b', '2', '{\"theme\": \"dark\"}', '2026-05-01 10:00:00', NULL)"
        )
        c.execute("INSERT INTO store VALUES ('a.b', '3', 'no json', '2026-05-01 10:00:00', NULL)")
        for key, value in (
            ("4", '{"text": "has a boat", "date": "2020-01-02"}'),
            ("5", '{"date": "2020-01-02"}'),
        ):
            c.execute("INSERT INTO store VALUES ('a.b', ?, ?, '2026-05-01 10:00:00', NULL)", [key, value])
    tea, dark, damaged, *dated = read(path)
    assert [each.occurred_at for each in entries(dated)] == [datetime(2020, 1, 2, tzinfo=UTC)] * 2
    assert isinstance(tea, Entry)
    assert (tea.content, tea.occurred_at, tea.metadata["key"]) == ("likes tea", MAY, "1")
    assert isinstance(dark, Entry)
    assert dark.content == '{"theme":"dark"}'
    assert isinstance(damaged, Skipped)


def test_langgraph_memories_of_langmem(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    wrapped = {"kind": "Memory", "content": {"content": "Ada likes tea", "mood": "sure"}, "user_id": "ada"}
    profile = {"kind": "Profile", "content": {"age": 30}}
    with closing(sqlite3.connect(path)) as c, c:
        c.execute("CREATE TABLE store (prefix text, key text, value text, created_at TIMESTAMP)")
        rows = [("m", "1", json.dumps(wrapped), None), ("m", "2", json.dumps(profile), None)]
        c.executemany("INSERT INTO store VALUES (?, ?, ?, ?)", rows)
    tea, age = entries(read(path))
    assert (tea.content, tea.user_id) == ("Ada likes tea", "ada")
    assert tea.metadata == {"kind": "Memory", "mood": "sure", "namespace": ["m"], "key": "1"}
    assert json.loads(age.content) == profile


def test_langgraph_keys_with_slashes_have_ids_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path)) as c, c:
        c.execute("CREATE TABLE store (prefix text, key text, value text, created_at TIMESTAMP)")
        rows = [(*each, '{"text": "tea"}') for each in (("a", "b/c"), ("a/b", "c"), ("a", "b"))]
        c.executemany("INSERT INTO store VALUES (?, ?, ?, NULL)", rows)
    ids = {(*each.metadata["namespace"], each.metadata["key"]): each.id for each in entries(read(path))}
    assert len({*ids.values()}) == 3
    assert (ids["a", "b"], ids["a", "b/c"]) == (digest("a/b"), digest("a/b/c"))  # as ever


def test_zep(tmp_path: Path) -> None:
    dates = {"created_at": "2026-05-02T00:00:00Z", "valid_at": "2026-05-01T10:00:00Z"}
    fact_edge = {"uuid": "e1", "name": "LIKES", "fact": "Ada likes tea", "source_node_uuid": "n1", **dates}
    person = {"uuid": "n1", "name": "Ada", "summary": "A person.", "labels": ["Person"], **dates}
    said = {"uuid": "p1", "source": "message", "content": "I like tea", **dates}
    edges = [{**fact_edge, "invalid_at": "2026-06-01T00:00:00Z"}, {"fact": "without uuid"}]
    graph = {"edges": edges, "nodes": [person], "episodes": [said]}
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(graph))
    fact, wrong, node, episode = read(path)
    assert isinstance(fact, Entry)
    assert (fact.kind, fact.content, fact.occurred_at) == ("fact", "Ada likes tea", MAY)
    assert fact.invalid_at == datetime(2026, 6, 1, tzinfo=UTC)
    assert isinstance(wrong, Skipped)
    assert isinstance(node, Entry)
    assert node.content == "Ada: A person."
    assert isinstance(episode, Entry)
    assert detected(path) == zep.NAME
    assert chroma.NAME in FORMATS


def test_fields_are_named_as_name_and_field() -> None:
    assert parsed(["text=a=b"]) == {"text": "a=b"}
    for wrong in ("text", "text=", "color=red"):
        with pytest.raises(InvalidInput, match=r"table, id, text, date"):
            parsed([wrong])
