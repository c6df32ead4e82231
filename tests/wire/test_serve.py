"""The server as a process: it starts, says where, ends in order, and loses nothing."""

from __future__ import annotations

import json
import signal
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from memoranda.app import blocking
from memoranda.client import Client
from memoranda.config import load
from memoranda.errors import ConfigError, FolderInUse
from memoranda.server.serve import serve
from support.waiting import until

Served = Callable[..., Any]


def test_models_are_loaded_before_they_are_asked(served: Served) -> None:
    server = served(embedder={"url": "local:potion-base-8m"})
    until(lambda: "models loaded" in server.said(), "the models")


def test_a_folder_in_use_says_where_its_server_is(served: Served) -> None:
    server = served()
    with pytest.raises(FolderInUse) as caught:
        blocking.open(server.folder, embedder={"url": "hash:64"})
    assert caught.value.url == server.url
    with Client(caught.value.url) as client:
        assert client.add("through the server").created


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.gate("15")
def test_a_signal_ends_it_in_order(served: Served, how: int) -> None:
    server = served()
    with Client(server.url) as client:
        client.add("before the end")
        assert server.end(how) == 0
    assert "Traceback" not in server.said()
    with blocking.open(server.folder, embedder={"url": "hash:64"}) as opened:
        assert opened.memories.count() == 1


def test_what_was_begun_is_answered_before_the_end(served: Served) -> None:
    server = served()
    batch = {"memories": [{"content": f"memory {i} " + "word " * 200} for i in range(3000)]}
    answers: list[httpx.Response] = []
    sender = threading.Thread(
        target=lambda: answers.append(httpx.post(f"{server.url}/v1/memories/batch", json=batch, timeout=60))
    )
    sender.start()
    until(
        lambda: httpx.get(f"{server.url}/metrics").text,
        "the first embedding",
        accept=lambda text: "memoranda_embedding_texts_total 0.0" not in text,
        every=0.02,
    )
    assert server.end() == 0
    sender.join(60)
    assert answers[0].status_code == 200
    with blocking.open(server.folder, embedder={"url": "hash:64"}) as opened:
        assert opened.memories.count() == 3000


def test_a_body_too_large_is_answered_while_it_is_still_sent(served: Served) -> None:
    """urllib writes the whole body before it reads: cut off half way, it would see no answer at all."""
    server = served(server={"max_body_bytes": 1 << 20})
    request = urllib.request.Request(f"{server.url}/v1/memories", data=b"a" * 100_000_000, method="POST")
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=30)
    assert caught.value.code == 413
    assert json.load(caught.value)["error"]["code"] == "request_too_large"
    assert httpx.get(f"{server.url}/healthz").status_code == 200


def test_a_client_that_hangs_up_harms_nobody(served: Served) -> None:
    server = served()
    host, port = server.url.removeprefix("http://").split(":")
    for part in (b"POST /v1/memories HTTP/1.1\r\n", b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\n"):
        with socket.create_connection((host, int(port))) as raw:
            raw.sendall(part + b"Content-Length: 1000\r\n\r\n{" if b"Host" in part else part)
    with Client(server.url) as client:
        assert client.count() == 0
    assert "Traceback" not in server.said()


def test_an_address_that_is_taken_is_a_clear_error(served: Served, tmp_path: Any) -> None:
    port = int(served().url.rpartition(":")[2])
    config = load(env={}, overrides={"data": str(tmp_path / "other"), "server.port": port})
    with pytest.raises(ConfigError, match=r"^server\.port: 127\.0\.0\.1:\d+ cannot be listened on"):
        serve(config)


def test_an_open_address_without_keys_is_refused(tmp_path: Any) -> None:
    config = load(env={}, overrides={"data": str(tmp_path / "other"), "server.host": "0.0.0.0"})
    with pytest.raises(ConfigError, match=r"^keys: is empty"):
        serve(config)
    assert not (tmp_path / "other").exists()


def test_the_log_is_json_without_contents(served: Served) -> None:
    server = served()
    with Client(server.url) as client:
        client.add("xylophone", id="xylophone-1")
        client.search("xylophone")
    server.end()
    lines = [json.loads(line) for line in server.said().splitlines()]
    routes = [line["route"] for line in lines if line["message"] == "request"]
    assert routes == ["/v1/memories", "/v1/memories/search"]
    assert "xylophone" not in server.said()
