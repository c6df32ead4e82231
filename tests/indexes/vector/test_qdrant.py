"""Qdrant by its URL: options, the requests a server gets, what happens when it is away, and the folder's engine.

The server here is a real one over HTTP that writes down each request, reads it with the models of Qdrant's published
API, and lets the client's own engine answer. It is not Qdrant: no graph, no shards, no replicas.
"""

from __future__ import annotations

import gc
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.errors import ConfigError, IndexUnavailable
from memoranda.filters import AllOf, AnyOf, Compare, Filter, matches
from memoranda.indexes.vector import Index, IndexLocation, VectorBatch, open_index
from support import live_files

pytest.importorskip("qdrant_client")

from qdrant_client import QdrantClient, models
from qdrant_client.http.models import PointsList, UpdateOperations

from memoranda.indexes.vector import qdrant, qdrant_link

from . import test_vector_index as suite

DIM = 8


def batch(
    seqs: list[int], vectors: Any, rows: list[dict[str, Any]] | None = None, parts: Any = 0
) -> VectorBatch:
    held = rows if rows is not None else [{} for _ in seqs]
    return VectorBatch(
        np.array(seqs, np.int64),
        np.broadcast_to(np.array(parts, np.int32), (len(seqs),)).copy(),
        np.asarray(vectors, np.float32),
        [{**row, "$seq": seq} for row, seq in zip(held, seqs, strict=True)],
    )


def noise(count: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal((count, DIM), np.float32)


class Server(ThreadingHTTPServer):
    """Answers at `url`; `requests` holds (method, path, query, body), `troubles` the answers it gives first."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.engine = QdrantClient(":memory:")
        self.schema: dict[str, Any] = {}
        self.requests: list[tuple[str, str, dict[str, list[str]], Any]] = []
        self.headers: list[Any] = []
        self.troubles: list[tuple[int, dict[str, str]]] = []
        self.status = "completed"
        self.lock = threading.Lock()

    def sent(self, ending: str) -> list[Any]:
        """Bodies of the requests whose path ends so."""
        return [body for _, path, _, body in self.requests if path.endswith(ending)]


class Answers(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *args: object) -> None: ...

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        url = urlsplit(self.path)
        with self.server.lock:
            self.server.requests.append((self.command, url.path, parse_qs(url.query), body))
            self.server.headers.append(self.headers)
            if self.server.troubles:
                status, headers = self.server.troubles.pop(0)
                self._reply(status, {"status": {"error": "not now"}}, headers)
                return
            _, _, name, *verb = url.path.split("/")
            try:
                result = self._result(name, "/".join(verb), body)
            except Exception as exc:
                self._reply(500, {"status": {"error": f"{type(exc).__name__}: {exc}"}}, {})
                return
        self._reply(200, {"result": result, "status": "ok", "time": 0.0}, {})

    do_GET = do_PUT = do_POST = _answer  # noqa: N815 - the names http.server calls

    def _reply(self, status: int, body: Any, headers: dict[str, str]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _result(self, name: str, verb: str, body: Any) -> Any:
        engine = self.server.engine
        match self.command, verb:
            case "GET", "exists":
                return {"exists": engine.collection_exists(name)}
            case "PUT", "":
                asked = models.CreateCollection(**body)
                return engine.create_collection(name, vectors_config=asked.vectors)
            case "GET", "":
                info = json.loads(engine.get_collection(name).model_dump_json())
                return {**info, "payload_schema": self.server.schema}
            case "PUT", "index":
                asked_index = models.CreateFieldIndex(**body)
                kind = asked_index.field_schema.type.value
                self.server.schema[asked_index.field_name] = {"data_type": kind, "points": 0}
                return {"operation_id": 0, "status": "completed"}
            case "POST", "points/batch":
                operations = UpdateOperations(**body).operations
                for operation in operations:
                    assert not isinstance(operation, models.UpsertOperation) or isinstance(
                        operation.upsert, PointsList
                    )
                engine.batch_update_points(name, operations)
                return [{"operation_id": 0, "status": self.server.status} for _ in operations]
            case "POST", "points/count":
                asked_count = models.CountRequest(**body)
                return {"count": engine.count(name, asked_count.filter, exact=True).count}
            case "POST", "points/query":
                asked_query = models.QueryRequest(**body)
                found = engine.query_points(
                    name,
                    query=asked_query.query,
                    query_filter=asked_query.filter,
                    limit=asked_query.limit,
                    with_payload=asked_query.with_payload,
                )
                return json.loads(found.model_dump_json())
            case "POST", "points/scroll":
                asked_page = models.ScrollRequest(**body)
                points, following = engine.scroll(
                    name,
                    asked_page.filter,
                    limit=asked_page.limit,
                    offset=asked_page.offset,
                    with_payload=asked_page.with_payload,
                )
                return {
                    "points": [json.loads(p.model_dump_json()) for p in points],
                    "next_page_offset": following,
                }
            case "POST", "points":
                return [json.loads(p.model_dump_json()) for p in engine.retrieve(name, body["ids"])]
            case "POST", "facet":
                return json.loads(engine.facet(name, body["key"], limit=body["limit"]).model_dump_json())
        raise AssertionError(f"nobody answers {self.command} {verb}")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def opened(server: Server) -> Iterator[Callable[..., Any]]:
    held: list[Index] = []

    def open_one(options: str = "", **place: str) -> Index:
        held.append(open_index(f"qdrant:{server.url}{options}", DIM, None, **place))
        return held[-1]

    yield open_one
    server.troubles.clear()
    for index in held:
        index.close()


@pytest.fixture
def index(opened: Callable[..., Any]) -> Any:
    return opened()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qdrant_link, "WAITS", (0.01, 0.01, 0.01))


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("qdrant:http://h:6333?shard=3", "shards"),
        ("qdrant:http://h:6333?shards=many", "shards"),
        ("qdrant:http://h:6333?replicas=0", "replicas"),
        ("qdrant:http://h:6333?exact=perhaps", "exact"),
        ("qdrant:?shards=3", "http://host:6333"),
        ("qdrant:host:6333", "http://host:6333"),
        ("qdrant:https://h?api_key=geheim", "api_key_env"),
        ("qdrant:https://user:geheim@h", "api_key_env"),
        ("qdrant:https://h?api_key_env=MEMORANDA_UNSET", "MEMORANDA_UNSET"),
    ],
)
def test_a_wrong_url_is_refused_with_the_fix(url: str, word: str) -> None:
    with pytest.raises(ConfigError, match=word) as refused:
        open_index(url, DIM, None)
    assert "geheim" not in str(refused.value)


def test_the_collection_is_made_as_the_url_says(server: Server, opened: Callable[..., Index]) -> None:
    opened("?shards=6&replicas=2&write_consistency=2&on_disk=true&hnsw_m=24&ef_construct=200", space="a b")
    method, path, _, body = next(request for request in server.requests if request[0] == "PUT")
    assert (method, path) == ("PUT", "/collections/" + qdrant.collection_name("memoranda", "a b", DIM))
    assert {key: value for key, value in body.items() if value is not None} == {
        "vectors": {"size": DIM, "distance": "Dot", "on_disk": True},
        "shard_number": 6,
        "replication_factor": 2,
        "write_consistency_factor": 2,
        "on_disk_payload": True,
        "hnsw_config": {"m": 0, "payload_m": 24, "ef_construct": 200, "on_disk": True},
    }
    fields = {body["field_name"]: body["field_schema"] for body in server.sent("/index")}
    assert fields["tenant"]["is_tenant"] is True
    assert (fields["tags"]["type"], fields["seq"]["type"]) == ("keyword", "integer")
    assert [name for name, schema in fields.items() if schema.get("enable_hnsw") is not False] == ["tenant"]


def test_what_is_there_is_not_made_again(server: Server, opened: Callable[..., Index]) -> None:
    opened()
    made = len(server.requests)
    opened()
    assert {request[0] for request in server.requests[made:]} == {"GET", "POST"}


def test_names_are_safe_and_never_meet() -> None:
    name = qdrant.collection_name
    assert name("memoranda", "default", 384) == "memoranda-default-384"
    odd = {name("memoranda", space, 8) for space in ("a/b", "a?b", "a_b", "ä", "x" * 300, "x" * 301)}
    assert len(odd) == 6
    assert all(set(one) <= set(qdrant_link.re.sub("[^A-Za-z0-9_.-]", "", one)) for one in odd)


@pytest.mark.parametrize("distance", [models.Distance.COSINE, models.Distance.DOT])
def test_another_collection_under_the_name_is_refused(server: Server, distance: models.Distance) -> None:
    size = DIM if distance == models.Distance.COSINE else DIM + 1
    server.engine.create_collection(
        f"memoranda-default-{DIM}", vectors_config=models.VectorParams(size=size, distance=distance)
    )
    with pytest.raises(ConfigError, match="collection_prefix"):
        open_index(f"qdrant:{server.url}", DIM, None)


def test_a_put_waits_and_takes_former_parts_away(server: Server, opened: Callable[..., Index]) -> None:
    index = opened()
    index.put("t", batch([1, 1, 1], noise(3), parts=[0, 1, 2]))
    first = {point["id"] for point in server.sent("/points/batch")[-1]["operations"][0]["upsert"]["points"]}
    index.put("t", batch([1], noise(1, 1)))
    method, path, query, body = server.requests[-1]
    assert (method, path, query["wait"]) == (
        "POST",
        f"/collections/memoranda-default-{DIM}/points/batch",
        ["true"],
    )
    assert [next(iter(operation)) for operation in body["operations"]] == ["upsert", "delete"]
    assert body["operations"][0]["upsert"]["points"][0]["id"] in first
    assert index.count("t") == 1
    assert index.search("t", noise(1, 1)[0], 5).scores == pytest.approx([1.0])


def test_large_puts_go_in_batches_that_arrive_whole(
    server: Server, opened: Callable[..., Index], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qdrant, "REQUEST_POINTS", 16)
    index = opened()
    index.put("t", batch(list(range(50)), noise(50)))
    sizes = [len(body["operations"][0]["upsert"]["points"]) for body in server.sent("/points/batch")]
    assert sizes == [16, 16, 16, 2]
    assert index.count("t") == 50


def test_every_request_of_a_search_names_the_tenant(server: Server, opened: Callable[..., Index]) -> None:
    index = opened("?ef=77&exact=true")
    index.put("t", batch([1, 2], noise(2), [{"lang": "en"}, {"lang": "zh"}]))
    start = len(server.requests)
    index.search("t", noise(1)[0], 5, Compare("lang", "gt", "f"))
    index.count("t", Compare("lang", "eq", "en"))
    index.remove("t", [1])
    asked = [body for _, _, _, body in server.requests[start:]]
    assert asked[0]["params"]["hnsw_ef"] == 77
    assert asked[0]["params"]["exact"] is True
    own = {"key": "tenant", "match": {"value": "t"}}
    filters = [body.get("filter") or body["operations"][0]["delete"]["filter"] for body in asked]
    assert len(filters) == 4
    for condition in filters:
        named = {key: value for key, value in condition["must"][0].items() if value is not None}
        assert named == own


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("trouble", [(503, {}), (502, {}), (429, {"Retry-After": "0"})])
def test_a_server_that_is_briefly_away_is_asked_again(
    server: Server, opened: Callable[..., Index], trouble: tuple[int, dict[str, str]]
) -> None:
    index = opened()
    server.troubles = [trouble] * 3
    index.put("t", batch([1], noise(1)))
    assert server.troubles == []
    assert index.count("t") == 1
    server.troubles = [trouble] * 4
    with pytest.raises(IndexUnavailable, match=r"127\.0\.0\.1"):
        index.search("t", noise(1)[0], 5)
    assert index.search("t", noise(1)[0], 5).seqs.tolist() == [1]


def test_a_refusal_is_not_repeated(server: Server, opened: Callable[..., Index]) -> None:
    index = opened()
    start = len(server.requests)
    server.troubles = [(400, {})]
    with pytest.raises(IndexUnavailable, match=r"HTTP 400.*not now"):
        index.put("t", batch([1], noise(1)))
    assert len(server.requests) == start + 1
    server.troubles = [(403, {})]
    with pytest.raises(IndexUnavailable, match="api_key_env"):
        index.count("t")


def test_a_write_that_was_only_acknowledged_is_no_write(server: Server, opened: Callable[..., Index]) -> None:
    index = opened()
    server.status = "acknowledged"
    with pytest.raises(IndexUnavailable, match="acknowledged"):
        index.put("t", batch([1], noise(1)))
    server.status = "completed"


@pytest.mark.usefixtures("quick")
def test_a_server_that_is_not_there_is_named() -> None:
    with Server() as server:
        url = server.url  # nobody answers there once it is closed
    with pytest.raises(IndexUnavailable, match=url) as refused:
        open_index(f"qdrant:{url}", DIM, None)
    assert "index.url" in str(refused.value)


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
def test_the_key_comes_from_the_environment(
    server: Server, opened: Callable[..., Index], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORANDA_TEST_KEY", "geheim")
    index = opened("?api_key_env=MEMORANDA_TEST_KEY")
    assert {headers["api-key"] for headers in server.headers} == {"geheim"}
    assert "geheim" not in json.dumps(index.health())


def test_the_watermark_is_durable_lazy_and_shared(
    server: Server, opened: Callable[..., Index], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = opened()
    assert index.shared
    index.put("t", batch([1], noise(1)))
    index.flush(5)
    writes = len(server.sent("/points/batch"))
    for rev in range(6, 20):
        index.flush(rev)
    assert (index.watermark, len(server.sent("/points/batch"))) == (5, writes)
    assert opened().watermark == 5
    monkeypatch.setattr(qdrant, "LAZY", 0.0)
    index.flush(20)
    assert opened().watermark == 20
    assert index.health()["vectors"] == 1
    index.clear()
    assert opened().watermark == 0


KEYS = st.sampled_from(["a", "$kind"])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, 1.0, -0.0, 2**53, 2**53 + 1, 2**62 + 1, 2**62, float("inf"), float("-inf")]),
    st.sampled_from(["", "1", "a", "é", "\ue000", "\U0001f642", "z" * 300, "z" * 301]),
    st.floats(allow_nan=False),
)
HELD = st.one_of(VALUES, st.just(float("nan")), st.lists(VALUES, max_size=3))
ORDERS = st.sampled_from(["eq", "ne", "gt", "gte", "lt", "lte"])
WHERES: st.SearchStrategy[Filter] = st.recursive(
    st.builds(Compare, KEYS, ORDERS, VALUES),
    lambda parts: st.one_of(
        st.builds(AllOf, st.lists(parts, max_size=3).map(tuple)),
        st.builds(AnyOf, st.lists(parts, max_size=3).map(tuple)),
    ),
    max_leaves=4,
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(held=st.lists(st.dictionaries(KEYS, HELD), min_size=1, max_size=12), where=WHERES)
def test_filters_mean_the_same_over_the_wire(index: Index, held: list[dict[str, Any]], where: Filter) -> None:
    index.clear()
    seqs = list(range(len(held)))
    index.put("t", batch(seqs, noise(len(held)), held))
    expected = [seq for seq in seqs if matches(where, {**held[seq], "$seq": seq})]
    assert sorted(index.search("t", noise(1)[0], 50, where).seqs.tolist()) == expected
    assert index.count("t", where) == len(expected)


def test_what_qdrant_cannot_decide_is_decided_at_any_depth(
    server: Server, opened: Callable[..., Index], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qdrant, "DEEP", 30)
    monkeypatch.setattr(qdrant, "PAGE", 40)
    monkeypatch.setattr(qdrant, "IDS", 7)
    index, vectors = opened(), noise(300)
    index.put("t", batch(list(range(300)), vectors, [{"name": f"n{i:03}"} for i in range(300)]))
    query = noise(1, 5)[0]
    where = Compare("name", "gte", "n280")
    cosines = vectors[280:] @ query / np.linalg.norm(vectors[280:], axis=1) / np.linalg.norm(query)
    best = np.argsort(-cosines)[:10]
    found = index.search("t", query, 10, where)
    assert len(server.sent("/points/scroll")) == 8
    assert found.seqs.tolist() == (280 + best).tolist()
    assert found.scores == pytest.approx(cosines[best], abs=1e-5)
    assert index.search("t", query, 10, Compare("name", "gt", "n299")).seqs.tolist() == []


def test_scores_are_cosines_over_the_wire(opened: Callable[..., Index]) -> None:
    index = opened()
    vectors = noise(20) * np.logspace(-25, 25, 20)[:, None]
    vectors[7] = 0
    index.put("t", batch(list(range(20)), vectors))
    query = noise(1, 3)[0].astype(np.float64) * 1e20
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1) * np.linalg.norm(query)
    true = np.divide(vectors @ query, lengths, out=np.zeros(20), where=lengths > 0)
    found = index.search("t", query.astype(np.float32), 20)
    assert found.scores.dtype == np.float32
    assert found.scores == pytest.approx(true[found.seqs], abs=1e-5)
    assert found.seqs.tolist() == np.argsort(-true).tolist()


@pytest.fixture
def uncollected() -> Iterator[None]:
    """What is in a cycle stays: a connection that is closed, too, with the log of its file."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
def test_the_folder_keeps_everything_and_one_process_has_it(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    index = open_index("qdrant:", DIM, folder)
    assert not index.shared
    index.put("t", batch([1, 2, 3], noise(3), [{"name": "Quetzalcoatl"}, {}, {}]))
    index.put("u", batch([1], noise(1)))
    index.flush(1)
    index.flush(9)
    with pytest.raises(IndexUnavailable, match=str(folder)):
        open_index("qdrant:", DIM, folder)
    index.close()
    with closing(open_index("qdrant:", DIM, folder)) as again:
        assert again.watermark == 9
        assert again.search("t", noise(3)[1], 1).seqs.tolist() == [2]
        assert (again.count("t"), again.count("u")) == (3, 1)
        assert again.health()["bytes_on_disk"]
        again.remove("t", [1])
        again.compact()
        assert again.count("t") == 2
        assert live_files.holding(folder, b"Quetzalcoatl") == set()


def test_a_log_that_cannot_be_emptied_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qdrant_link, "FILE_SECONDS", 0.05)
    with closing(open_index("qdrant:", DIM, tmp_path)) as index:
        index.put("t", batch([1, 2], noise(2), [{"name": "Quetzalcoatl"}, {}]))
        index.remove("t", [1])
        (file,) = tmp_path.glob("collection/*/storage.sqlite")
        with closing(sqlite3.connect(file)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM points").fetchall()
            with pytest.raises(
                IndexUnavailable, match="compact: another connection reads its files; compact again"
            ):
                index.compact()
            assert index.count("t") == 1
        index.compact()
        assert index.count("t") == 1
        assert live_files.holding(tmp_path, b"Quetzalcoatl") == set()


def test_an_engine_that_could_not_be_compacted_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qdrant_link, "FILE_SECONDS", 0.05)
    with closing(open_index("qdrant:", DIM, tmp_path)) as index:
        index.put("t", batch([1, 2], noise(2), [{"name": "Quetzalcoatl"}, {}]))
        index.remove("t", [1])
        (file,) = tmp_path.glob("collection/*/storage.sqlite")
        assert isinstance(index, qdrant.QdrantIndex)
        with closing(sqlite3.connect(file)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            with (
                index._link.exclusive(),
                pytest.raises(IndexUnavailable, match=r"could not compact: .* locked"),
            ):
                index._link.reopen()
            assert index.count("t") == 1
        index.put("t", batch([3], noise(1)))
        index.compact()
        assert index.count("t") == 2
        assert live_files.holding(tmp_path, b"Quetzalcoatl") == set()


def test_spaces_and_prefixes_live_beside_each_other(tmp_path: Path) -> None:
    link_free = [("qdrant:", "a"), ("qdrant:", "b"), ("qdrant:?collection_prefix=other", "a")]
    for number, (url, space) in enumerate(link_free, 1):
        with closing(qdrant.QdrantIndex(url, DIM, IndexLocation(tmp_path, space))) as index:
            assert index.count("t") == 0
            index.put("t", batch(list(range(number)), noise(number)))
    for number, (url, space) in enumerate(link_free, 1):
        with closing(qdrant.QdrantIndex(url, DIM, IndexLocation(tmp_path, space))) as index:
            assert index.count("t") == number


def test_memory_keeps_nothing_that_was_removed() -> None:
    with closing(open_index("qdrant:", DIM, None)) as index:
        index.put("t", batch(list(range(100)), noise(100)))
        index.flush(3)
        index.remove("t", list(range(90)))
        index.compact()
        assert isinstance(index, qdrant.QdrantIndex)
        engine: Any = index._link.client()._client
        assert len(next(iter(engine.collections.values())).ids) == 11  # ten vectors and the watermark
        assert index.watermark == 3


def test_the_folders_engine_waits_for_the_disk_at_checkpoints_only(tmp_path: Path) -> None:
    with closing(open_index("qdrant:", DIM, tmp_path)) as index:
        for _ in range(2):
            assert isinstance(index, qdrant.QdrantIndex)
            engine: Any = index._link.client()._client
            (collection,) = engine.collections.values()
            connection = collection.storage.storage
            index.put("t", batch([1], noise(1)))
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert connection.execute("PRAGMA synchronous").fetchone() == (1,)
            index.compact()


def test_no_memory_is_missing_while_it_is_replaced(
    server: Server, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qdrant, "REQUEST_POINTS", 16)
    vectors, seqs = noise(40), list(range(40))
    missing: list[list[int]] = []
    done = threading.Event()

    def write(parts: int) -> None:
        numbers = list(range(parts)) * 40
        index.put(
            "t", batch(np.repeat(seqs, parts).tolist(), np.repeat(vectors, parts, axis=0), parts=numbers)
        )

    def read() -> None:
        while not done.is_set():
            found = sorted(index.search("t", vectors[0], 40).seqs.tolist())
            if found != seqs:
                missing.append(found)

    write(1)
    reader = threading.Thread(target=read)
    reader.start()
    try:
        for version in range(12):
            write(3 - version % 3)
    finally:
        done.set()
        reader.join()
    assert missing == []
    assert (index.count("t"), len(server.sent("/points/query")) > 3) == (40, True)


@pytest.mark.slow
class TestQdrantServer(suite.IndexDoor):  # type: ignore[misc]
    """The door's suite with every request on the wire. Whole writes only is what no server promises."""

    recall_rows = 2_500
    test_readers_meet_only_whole_writes = None

    @pytest.fixture
    def opened(self, server: Server) -> Iterator[Callable[..., Index]]:
        held: list[Index] = []

        def open_one(dim: int = suite.DIM) -> Index:
            held.append(open_index(f"qdrant:{server.url}?timeout=60", dim, None))
            return held[-1]

        yield open_one
        for index in held:
            index.close()
