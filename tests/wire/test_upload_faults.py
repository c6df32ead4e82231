"""Uploads that break off, lie, are too large or have strange names: a defined answer, and nothing left of them."""

from __future__ import annotations

import http.client
import json
import socket
import sqlite3
import struct
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from memoranda.storage.data_lock import MARK
from support import live_files
from support.waiting import until

QUOTA = 1 << 20
SMALL = {"quotas": {"max_file_bytes": QUOTA}, "server": {"request_timeout": 1}}
HEAD = (
    b'--cut\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nassistants\r\n'
    b'--cut\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
)
TAIL = b"\r\n--cut--\r\n"
TYPE = "multipart/form-data; boundary=cut"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A server that takes files of a megabyte, and waits a second for what does not come."""
    process: Any = request.getfixturevalue("server")
    made = type(process)(tmp_path_factory.mktemp("small") / "data", SMALL)
    yield made
    made.end()


def kept(folder: Path) -> list[str]:
    """The bytes that are kept, begun or whole, by the ids of their files."""
    found = [path.name for path in (folder / "files").rglob("*") if path.is_file()]
    return sorted(name for name in found if name != MARK)


def known(folder: Path, column: str = "id", table: str = "files") -> list[str]:
    """What the rows know."""
    (rows,) = live_files.select(folder / "memoranda.db", f"SELECT {column} FROM {table}")
    return sorted(value for (value,) in rows)


def in_step(process: Any) -> list[str]:
    """The files of a server once bytes and rows agree."""
    _, rows = until(
        lambda: (kept(process.folder), known(process.folder)),
        "bytes and rows agree",
        accept=lambda both: both[0] == both[1],
    )
    return list(rows)


def opened(process: Any) -> socket.socket:
    """A connection without an HTTP library."""
    where = urlsplit(process.url)
    return socket.create_connection((where.hostname, where.port), timeout=20)


def head(process: Any, path: str, *lines: str) -> bytes:
    """The beginning of a request."""
    given = [
        f"POST {path} HTTP/1.1",
        f"Host: {urlsplit(process.url).netloc}",
        f"Content-Type: {TYPE}",
        *lines,
    ]
    return "\r\n".join([*given, "", ""]).encode()


def answer(door: socket.socket) -> tuple[int, dict[str, Any]]:
    """Status and body of the next answer."""
    reply = http.client.HTTPResponse(door)
    reply.begin()
    return reply.status, json.loads(reply.read())


def reset(door: socket.socket) -> None:
    """Closes it without a goodbye."""
    door.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    door.close()


def chunked(*pieces: bytes) -> bytes:
    """Pieces of a body whose length nobody told."""
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)


# --- the client goes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["close", "half", "reset"])
@pytest.mark.parametrize("into", ["files", "store", "part"])
@pytest.mark.gate("files-half", "store-reset", "part-close")
def test_a_client_that_goes_while_it_sends(server: Any, how: str, into: str) -> None:
    before = in_step(server)
    path = "/v1/files"
    if into == "store":
        path = f"/v1/vector_stores/{httpx.post(f'{server.url}/v1/vector_stores', json={}).json()['id']}/files"
    if into == "part":
        begun = {"filename": "a.txt", "bytes": 9 << 20, "purpose": "assistants", "mime_type": "text/plain"}
        path = f"/v1/uploads/{httpx.post(f'{server.url}/v1/uploads', json=begun).json()['id']}/parts"
    form = HEAD.replace(b'name="file"', b'name="data"') if into == "part" else HEAD
    form = form[form.index(b"\r\n--cut") + 2 :] if into == "part" else form
    door = opened(server)
    door.sendall(head(server, path, f"Content-Length: {8 << 20}") + form)
    for _ in range(12):
        door.sendall(b"x" * (1 << 18))
    until(lambda: kept(server.folder), "the bytes being written", accept=lambda now: now != before)
    if how == "half":
        door.shutdown(socket.SHUT_WR)
        door.recv(1_000)
    if how == "reset":
        reset(door)
    door.close()
    assert in_step(server) == before
    assert known(server.folder, "upload_id", "upload_parts") == []
    assert known(server.folder, "file_id", "store_files") == []
    assert "Traceback" not in server.said()


# --- too large -----------------------------------------------------------------------------------------


def too_large(status: int, body: dict[str, Any]) -> None:
    """413, and the quota is named."""
    assert (status, body["error"]["code"]) == (413, "file_too_large")
    assert str(QUOTA) in body["error"]["message"]
    assert "max_file_bytes" in body["error"]["message"]


def test_a_byte_too_many_of_unknown_length(small: Any) -> None:
    """And the connection takes the next request."""
    before = in_step(small)
    with opened(small) as door:
        file = [b"x" * (1 << 18)] * 4
        door.sendall(head(small, "/v1/files", "Transfer-Encoding: chunked"))
        door.sendall(chunked(HEAD, *file, b"y", TAIL) + b"0\r\n\r\n")
        too_large(*answer(door))
        door.sendall(head(small, "/v1/files", "Transfer-Encoding: chunked"))
        door.sendall(chunked(HEAD, *file, TAIL) + b"0\r\n\r\n")
        status, body = answer(door)
        assert (status, body["bytes"]) == (200, QUOTA)
    assert in_step(small) == sorted([*before, body["id"]])


def test_a_byte_too_many_of_told_length(small: Any) -> None:
    before = in_step(small)
    body = HEAD + b"x" * (QUOTA + 1) + TAIL
    with opened(small) as door:
        for _ in range(2):
            door.sendall(head(small, "/v1/files", f"Content-Length: {len(body)}") + body)
            too_large(*answer(door))
    assert in_step(small) == before


def test_more_than_was_told(small: Any) -> None:
    """The body ends where it was said to end; what follows is no request."""
    before = in_step(small)
    body = HEAD + b"x" * (QUOTA + 1) + TAIL
    with opened(small) as door:
        door.sendall(head(small, "/v1/files", "Content-Length: 1000") + body[:2_000])
        said = b""
        while piece := door.recv(65_536):
            said += piece
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b"HTTP/1.1 200" not in said
    assert in_step(small) == before


def test_less_than_was_told(small: Any) -> None:
    """Nobody waits for ever for what does not come."""
    before = in_step(small)
    with opened(small) as door:
        door.sendall(head(small, "/v1/files", "Content-Length: 100000") + HEAD + b"x" * 1_000)
        status, said = answer(door)
        assert (status, said["error"]["code"]) == (408, "request_timeout")
    assert in_step(small) == before


def test_half_a_gigabyte_is_refused_before_it_is_sent(server: Any) -> None:
    """By its told length: not a byte of it is kept. A client that sends it all the same reads why."""
    before, size = in_step(server), 513 << 20

    def body() -> Iterator[bytes]:
        yield HEAD
        for sent in range(513):
            assert sent % 16 or kept(server.folder) == before
            yield b"x" * (1 << 20)
        yield TAIL

    length = len(HEAD) + size + len(TAIL)
    with opened(server) as door:
        door.sendall(head(server, "/v1/files", f"Content-Length: {length}") + HEAD)
        status, said = answer(door)
        assert (status, said["error"]["code"]) == (413, "file_too_large")
    headers = {"content-type": TYPE, "content-length": str(length)}
    found = httpx.post(f"{server.url}/v1/files", content=body(), headers=headers, timeout=30)
    assert (found.status_code, found.json()["error"]["code"]) == (413, "file_too_large")
    assert "max_file_bytes" in found.json()["error"]["message"]
    assert in_step(server) == before


# --- what is no form, and what is in it ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "body", "status", "code"),
    [
        ({"content-type": "application/json"}, b"{}", 415, "unsupported_media_type"),
        ({}, b"text", 415, "unsupported_media_type"),
        ({"content-type": "multipart/form-data"}, HEAD + TAIL, 400, "invalid_multipart"),
        ({"content-type": TYPE}, b"no form at all", 400, "invalid_multipart"),
        ({"content-type": TYPE}, HEAD + b"cut off", 400, "invalid_multipart"),
        ({"content-type": TYPE}, HEAD[: HEAD.index(b"\r\n--cut", 5)] + TAIL, 400, "invalid_value"),
        ({"content-type": TYPE}, HEAD.replace(b"assistants", b"nothing") + b"x" + TAIL, 400, "invalid_value"),
        ({"content-type": TYPE}, HEAD.replace(b"a.txt", b"..") + b"x" + TAIL, 400, "invalid_value"),
        ({"content-type": TYPE, "content-encoding": "gzip"}, HEAD + b"x" + TAIL, 415, "unsupported_encoding"),
    ],
)
def test_a_body_that_is_no_upload(
    server: Any, headers: dict[str, str], body: bytes, status: int, code: str
) -> None:
    before = in_step(server)
    found = httpx.post(f"{server.url}/v1/files", content=body, headers=headers)
    assert (found.status_code, found.json()["error"]["code"]) == (status, code)
    assert set(found.json()["error"]) == {"message", "type", "param", "code"}
    assert in_step(server) == before


@pytest.mark.parametrize(
    ("sent", "held"),
    [
        ("../../etc/passwd", "passwd"),
        ("/etc/passwd", "passwd"),
        ("..\\\\..\\\\boot.ini", "boot.ini"),
        ("a/../../../b/./c.txt", "c.txt"),
        ("...", "..."),
        ("%2e%2e%2fpasswd", "%2e%2e%2fpasswd"),
        ("-rf $(reboot) `x`; '.txt", "-rf $(reboot) `x`; '.txt"),
        ("x" * 300 + ".txt", "x" * 300 + ".txt"),
        ("con", "con"),
    ],
)
@pytest.mark.gate("../../etc", "boot.ini", "sent7")
def test_a_path_in_a_name(server: Any, sent: str, held: str) -> None:
    """A name is only a name: where the bytes are kept is not its business."""
    around = sorted(server.folder.parent.rglob("*"))
    body = HEAD.replace(b"a.txt", sent.encode()) + b"some text" + TAIL
    found = httpx.post(f"{server.url}/v1/files", content=body, headers={"content-type": TYPE}).json()
    assert found["filename"] == held
    fresh = {path.name for path in server.folder.parent.rglob("*") if path.is_file()} - {
        path.name for path in around
    }
    assert fresh == {found["id"]}
    assert all(server.folder / "files" in path.parents for path in server.folder.rglob(found["id"]))
    assert found["id"] in in_step(server)
    assert httpx.get(f"{server.url}/v1/files/{found['id']}/content").content == b"some text"
    httpx.delete(f"{server.url}/v1/files/{found['id']}")
    assert found["id"] not in in_step(server)


def test_a_file_of_no_bytes(server: Any) -> None:
    """It is kept as it is; that it holds nothing is said where it is to be read."""
    with httpx.Client(base_url=server.url) as http:
        file = http.post("/v1/files", content=HEAD + TAIL, headers={"content-type": TYPE}).json()
        assert file["bytes"] == 0
        assert http.get(f"/v1/files/{file['id']}/content").content == b""
        store = http.post("/v1/vector_stores", json={"file_ids": [file["id"]]}).json()["id"]
        path = f"/v1/vector_stores/{store}/files/{file['id']}"
        held = until(
            lambda: http.get(path).json(),
            "the end of the indexing",
            accept=lambda held: held["status"] != "in_progress",
        )
        assert held["status"] == "failed"
        assert held["last_error"] == {"code": "invalid_file", "message": "is empty"}
        http.delete(f"/v1/vector_stores/{store}")
        http.delete(f"/v1/files/{file['id']}")


# --- attaching -----------------------------------------------------------------------------------------


def test_attaching_what_is_not_there_attaches_nothing(server: Any) -> None:
    with httpx.Client(base_url=server.url) as http:
        file = http.post("/v1/files", content=HEAD + b"text" + TAIL, headers={"content-type": TYPE}).json()
        store = http.post("/v1/vector_stores", json={}).json()["id"]
        for path, body in [
            (f"/v1/vector_stores/{store}/files", {"file_id": "file-none"}),
            (f"/v1/vector_stores/{store}/file_batches", {"file_ids": [file["id"], "file-none"]}),
            ("/v1/vector_stores", {"file_ids": [file["id"], "file-none"]}),
            ("/v1/vector_stores/vs_none/files", {"file_id": file["id"]}),
            ("/v1/vector_stores/vs_none/file_batches", {"file_ids": [file["id"]]}),
        ]:
            found = http.post(path, json=body)
            assert (found.status_code, found.json()["error"]["code"]) == (404, "not_found"), path
        assert known(server.folder, "file_id", "store_files") == []
        assert known(server.folder, "id", "file_batches") == []
        assert known(server.folder, "id", "vector_stores").count(store) == 1
        sent = http.post(
            "/v1/vector_stores/vs_none/files", content=HEAD + b"text" + TAIL, headers={"content-type": TYPE}
        )
        assert sent.status_code == 404
        assert in_step(server).count(file["id"]) == 1
        http.delete(f"/v1/vector_stores/{store}")
        http.delete(f"/v1/files/{file['id']}")
    assert in_step(server) == []


def test_attaching_twice_is_attaching_once(server: Any) -> None:
    with httpx.Client(base_url=server.url) as http:
        file = http.post("/v1/files", content=HEAD + b"text" + TAIL, headers={"content-type": TYPE}).json()
        store = http.post("/v1/vector_stores", json={}).json()["id"]
        path = f"/v1/vector_stores/{store}"
        first = [http.post(f"{path}/files", json={"file_id": file["id"]}).json() for _ in range(3)]
        assert {one["created_at"] for one in first} == {first[0]["created_at"]}
        http.post(f"{path}/file_batches", json={"file_ids": [file["id"], file["id"]]})
        until(
            lambda: http.get(path).json()["file_counts"],
            "no file in progress",
            accept=lambda counts: not counts["in_progress"],
        )
        assert http.get(path).json()["file_counts"]["total"] == 1
        again = http.post(f"{path}/files", json={"file_id": file["id"]}).json()
        assert again["status"] == "completed", again["last_error"]
        assert len(known(server.folder, "seq", "chunks")) == 1
        http.delete(path)
        http.delete(f"/v1/files/{file['id']}")


def test_a_file_sent_into_a_store_is_never_seen_outside_it(server: Any) -> None:
    """Both in one transaction: a server that is killed between the two would leave a file that nobody asked for."""
    alone = "SELECT count(*) FROM files WHERE id NOT IN (SELECT file_id FROM store_files)"
    seen, ended = set[int](), threading.Event()

    def look() -> None:
        with closing(sqlite3.connect(server.folder / "memoranda.db")) as raw:
            while not ended.is_set():
                seen.update(raw.execute(alone).fetchone())

    with httpx.Client(base_url=server.url) as http:
        path = f"/v1/vector_stores/{http.post('/v1/vector_stores', json={}).json()['id']}"
        looking = threading.Thread(target=look)
        looking.start()
        sent = [
            http.post(f"{path}/files", content=HEAD + b"text" + TAIL, headers={"content-type": TYPE})
            for _ in range(40)
        ]
        ended.set()
        looking.join()
        assert {one.status_code for one in sent} == {200}
        assert seen == {0}
        for one in sent:
            http.delete(f"/v1/files/{one.json()['id']}")
        http.delete(path)
    assert in_step(server) == []
