"""Metrics, logs, health: they say how the server does, never what it holds."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import opentelemetry.trace  # noqa: F401 - as a program that traces does
import pytest

from memoranda.config.data_sections import Server
from memoranda.errors import IndexUnavailable
from memoranda.server import logs
from memoranda.server.routes import ROUTES
from memoranda.tracing import request_span

SECRET = "xylophone-4711"


def metrics(house: Any) -> dict[str, float]:
    text = house.request("GET", "/metrics").text
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if line and line[0] != "#"]
    return {name: float(value) for name, value in lines}


def busy(house: Any) -> None:
    """Every kind of event once, each with the secret in it."""
    house.add(SECRET, tags=[SECRET], metadata={SECRET: SECRET}, id=SECRET)
    house.add(SECRET, tags=[SECRET], id=SECRET)
    house.request("POST", "/v1/memories", json={"content": f"{SECRET} other", "id": SECRET})
    house.request("POST", "/v1/memories", json={"content": "a", SECRET: 1})
    house.request("POST", "/v1/memories/search", json={"query": SECRET})
    house.request("POST", "/v1/memories/search", json={"query": SECRET, "filters": {"$x": SECRET}})
    house.request("GET", f"/v1/memories/{SECRET}")
    house.request("GET", "/v1/memories", params={"after": SECRET, "source": SECRET})
    house.request("GET", f"/{SECRET}")
    house.request("POST", "/v1/embeddings", json={"model": SECRET, "input": SECRET})
    house.request(SECRET, "/v1/memories")


def test_metrics_count_what_happens(house: Any) -> None:
    busy(house)
    seen = metrics(house)
    assert seen['memoranda_upserts_total{outcome="created"}'] == 1
    assert seen['memoranda_upserts_total{outcome="present"}'] == 1
    assert seen['memoranda_upsert_failures_total{code="Conflict"}'] == 1
    assert seen['memoranda_write_seconds_count{kind="store"}'] >= 1
    assert seen['memoranda_write_seconds_bucket{kind="store",le="+Inf"}'] >= 1
    assert seen["memoranda_write_transaction_seconds_count"] >= 1
    assert seen["memoranda_searches_total"] == 1
    assert seen["memoranda_search_hits_total"] == 1
    assert seen["memoranda_index_vectors"] == 1
    assert seen['memoranda_jobs{state="queued"}'] == 0
    assert seen["memoranda_embedding_texts_total"] >= 2
    assert seen['memoranda_stage_seconds_count{stage="recall"}'] == 1
    route = '{method="POST",route="/v1/memories/search",status="200"}'
    assert seen[f"memoranda_http_requests_total{route}"] == 1


def test_metrics_hold_no_contents_and_few_labels(house: Any) -> None:
    busy(house)
    text = house.request("GET", "/metrics").text
    assert SECRET not in text
    routes = {line.split('route="')[1].split('"')[0] for line in text.splitlines() if 'route="' in line}
    assert routes <= {route.path for route in ROUTES} | {"unknown"}


def test_a_degraded_search_is_counted_and_ready_says_which_side(
    house: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert house.request("GET", "/readyz").json()["checks"] == {"rows": "ok", "index": "ok", "words": "ok"}

    def away(*_: Any) -> None:
        raise IndexUnavailable("away")

    store = house.memoranda.core.store
    monkeypatch.setattr(store, "refresh", lambda: None)  # the watch would repair the index
    monkeypatch.setattr(store.words, "search", away)
    house.request("POST", "/v1/memories/search", json={"query": "a"})
    assert metrics(house)['memoranda_searches_degraded_total{side="words"}'] == 1
    monkeypatch.setitem(store.derived.behind, "words", 1)
    answer = house.request("GET", "/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"] == {"rows": "ok", "index": "ok", "words": "behind"}
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert house.request("GET", "/healthz").status_code == 200
    assert metrics(house)['memoranda_index_behind{side="words"}'] == 1


def test_the_log_says_what_was_asked_and_never_what_was_said(
    house: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "memoranda"):
        busy(house)
    shown = [{**vars(record), "said": record.getMessage()} for record in caplog.records]
    assert SECRET not in str([{k: v for k, v in one.items() if k != "exc_info"} for one in shown])
    first = next(one for one in shown if one["said"] == "request")
    assert (first["route"], first["status"], first["tenant"]) == ("/v1/memories", 200, "default")
    assert first["request_id"].startswith("req_")


@contextmanager
def configured(server: Server) -> Iterator[logging.Logger]:
    """The logger of requests, with the log as this configuration has it."""
    root = logging.getLogger()
    held, level = root.handlers[:], root.level
    try:
        logs.configure(server)
        yield logging.getLogger("memoranda.http")
    finally:
        root.handlers[:] = held
        root.setLevel(level)


def test_the_server_logs_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with configured(Server()) as log:
        log.info("request", extra={"route": "/healthz", "status": 200})
    line = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert (line["message"], line["route"], line["level"]) == ("request", "/healthz", "info")


REQUEST = {
    "request_id": "req_1", "method": "POST", "route": "/v1/files", "status": 200, "ms": 1.5, "tenant": "t", "key": None
}  # fmt: skip


@pytest.mark.parametrize(("log_format", "terminal", "text"), [
    ("auto", True, True), ("auto", False, False), ("text", False, True), ("json", True, False),
])  # fmt: skip
def test_the_log_is_text_on_a_terminal_and_json_elsewhere(
    monkeypatch: pytest.MonkeyPatch, log_format: Any, terminal: bool, text: bool
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("NO_COLOR", "1")
    with configured(Server(log_format=log_format)) as log:
        log.info("request", extra=REQUEST)
        try:
            raise OSError("torn")
        except OSError:
            log.exception("it failed")
    first, second, *rest = stream.getvalue().splitlines()
    if not text:
        assert json.loads(first).items() >= {"message": "request", **REQUEST}.items()
        assert "OSError: torn" in json.loads(second)["exception"]
        assert rest == []
        return
    clock, words = first.split(" ", 1)
    assert re.fullmatch(r"\d\d:\d\d:\d\d", clock)
    assert words == "[info     ] POST /v1/files 200 1.5 ms request_id=req_1 tenant=t"
    assert second.endswith("[error    ] it failed")
    assert rest[-1] == "OSError: torn"


def test_only_reads_that_succeed_at_once_are_of_level_debug(
    house: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def levels(method: str, path: str, **options: Any) -> list[str]:
        caplog.clear()
        with caplog.at_level(logging.DEBUG, "memoranda.http"):
            house.request(method, path, **options)
        return [one.levelname for one in caplog.records if one.getMessage() == "request"]

    assert levels("GET", "/v1/memories") == ["DEBUG"]
    assert levels("GET", "/v1/memories/none") == ["INFO"]
    assert levels("POST", "/v1/memories", json={"content": "one"}) == ["INFO"]
    assert levels("POST", "/v1/memories/search", json={"query": "one"}) == ["INFO"]
    monkeypatch.setattr(logs, "SLOW_SECONDS", 0.0)
    assert levels("GET", "/v1/memories") == ["INFO"]


def test_a_span_goes_on_with_the_callers_trace(lasting: Any) -> None:
    headers = {"traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"}
    with request_span("HTTP GET", {}, headers) as span:
        assert format(span.get_span_context().trace_id, "x") == "ab" * 16
    assert lasting.request("GET", "/healthz", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "options", "status"),
    [
        ("GET", "/v1/memories", {}, 200),
        ("GET", "/v1/memories/none", {}, 404),
        ("POST", "/v1/memories", {"content": b"{"}, 400),
        ("GET", "/v1/nowhere", {}, 404),
        ("PATCH", "/v1/files", {}, 405),
        ("GET", "/v3/memories/none", {}, 404),
        ("POST", "/retrieval", {"json": {}}, 400),
        ("GET", "/v1/files/{id}/content", {}, 200),
        ("GET", "/v1/files/{id}/image", {}, 400),
        ("GET", "/v1/memory_stores", {"headers": {"anthropic-version": "2023-06-01"}}, 200),
        ("POST", "/v1/responses", {"json": {"input": "hello", "stream": True}}, 200),
        ("GET", "/.well-known/oauth-protected-resource/mcp", {}, 200),
        ("GET", "/console/session", {}, 200),
    ],
)
def test_answers_are_neither_guessed_at_nor_kept_on_the_way(
    lasting: Any, method: str, path: str, options: Any, status: int
) -> None:
    form = {"files": {"file": ("a.txt", b"<b>text</b>")}, "data": {"purpose": "assistants"}}
    id_ = lasting.request("POST", "/v1/files", **form).json()["id"] if "{id}" in path else ""
    answer = lasting.request(method, path.replace("{id}", id_), **options)
    assert answer.status_code == status, answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers.get_list("cache-control") == ["no-store"]
