"""One envelope for every error, and no word about the inside of the server."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from memoranda import errors
from memoranda.responses.history import UnknownResponse
from memoranda.responses.truncation import ContextTooLong
from memoranda.server.errors import problem


def caused(exc: Exception, cause: Exception) -> Exception:
    exc.__cause__ = cause
    return exc


FULL = caused(errors.StorageError("writing /srv/secret failed"), OSError(errno.ENOSPC, "No space left"))
FULL_SQLITE = errors.StorageError("writing /srv/secret failed, nothing was stored: database or disk is full")


@pytest.mark.parametrize(
    ("exc", "status", "code", "type_"),
    [
        (errors.InvalidInput("a", "b"), 400, "invalid_value", "invalid_request_error"),
        (errors.DimensionMismatch("a", "b"), 400, "dimension_mismatch", "invalid_request_error"),
        (errors.ConfigError("a", "b"), 400, "invalid_value", "invalid_request_error"),
        (errors.QuotaExceeded("a", "b", "max_stores"), 400, "quota_exceeded", "invalid_request_error"),
        (errors.QuotaExceeded("a", "b", "max_file_bytes"), 413, "file_too_large", "invalid_request_error"),
        (errors.Unauthorized("x"), 401, "invalid_api_key", "authentication_error"),
        (errors.Forbidden("x"), 403, "forbidden", "permission_error"),
        (errors.SpendingLimit("x"), 429, "insufficient_quota", "insufficient_quota"),
        (errors.UnknownModel("x", 404), 404, "model_not_found", "invalid_request_error"),
        (errors.NotFound("x"), 404, "not_found", "invalid_request_error"),
        (errors.Conflict("x"), 409, "conflict", "invalid_request_error"),
        (errors.StorageError("/srv/secret"), 503, "storage_unavailable", "server_error"),
        (FULL, 507, "disk_full", "server_error"),
        (FULL_SQLITE, 507, "disk_full", "server_error"),
        (errors.FolderInUse("/srv/secret"), 503, "storage_unavailable", "server_error"),
        (errors.IndexUnavailable("x"), 503, "index_unavailable", "server_error"),
        (errors.EmbedderUnavailable("x"), 503, "embedder_unavailable", "server_error"),
        (errors.ModelUnavailable("x"), 503, "model_unavailable", "server_error"),
        (errors.ModelRefused("x", 422), 400, "model_refused", "invalid_request_error"),
        (errors.ModelBroken("x"), 502, "model_error", "server_error"),
        (UnknownResponse("x"), 400, "previous_response_not_found", "invalid_request_error"),
        (ContextTooLong("input", "x"), 400, "context_length_exceeded", "invalid_request_error"),
        (KeyError("/srv/secret"), 500, "internal_error", "server_error"),
        (errors.MemorandaError("/srv/secret"), 500, "internal_error", "server_error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_errors(exc: Exception, status: int, code: str, type_: str) -> None:
    got, told = problem(exc)
    assert (got, told.code, told.type) == (status, code, type_)
    assert "/srv/secret" not in told.message


def test_every_error_of_the_tree_has_a_status() -> None:
    def below(kind: type[Exception]) -> list[type[Exception]]:
        return [found for sub in kind.__subclasses__() for found in (sub, *below(sub))]

    for kind in below(errors.MemorandaError):
        if kind.__module__ == "memoranda.errors":
            given = ["says"] if not issubclass(kind, errors.InvalidInput) else ["field", "says"]
            made = kind(*given, *(["max_stores"] if kind is errors.QuotaExceeded else []))
            assert problem(made)[1].code != "internal_error", kind


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nope", 404, "unknown_route"),
        ("GET", "/v1/batch/", 405, "method_not_allowed"),
        ("PUT", "/v1/memories", 405, "method_not_allowed"),
        ("DELETE", "/healthz", 405, "method_not_allowed"),
        ("BREW", "/healthz", 405, "method_not_allowed"),
    ],
)
def test_what_is_no_route(lasting: Any, method: str, path: str, status: int, code: str) -> None:
    answer = lasting.request(method, path)
    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert answer.json()["error"]["code"] == code
    assert (status == 405) == ("allow" in answer.headers)
    assert (status == 503) == ("retry-after" in answer.headers)
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/chat/completions", "/v1/chat/completions"),
        ("/v1/v1/ping/", "/v1/ping/"),
        ("/v1/retrieval", "/retrieval"),
    ],
)
def test_a_base_url_with_too_much_or_too_little_is_told(lasting: Any, path: str, meant: str) -> None:
    says = lasting.request("POST", path, json={}).json()["error"]["message"]
    assert says == f"no route {path!r}; use {meant!r}, or correct the base URL"
    assert "openapi" in lasting.request("GET", "/nope").json()["error"]["message"]


def test_a_model_that_is_away_is_logged_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    problem(caused(errors.ModelUnavailable("the model at a:1 did not answer"), OSError("refused")))
    assert [record.getMessage() for record in caplog.records] == [
        "model_unavailable: the model at a:1 did not answer"
    ]
    assert "Traceback" not in caplog.text


def test_a_mistake_of_ours_is_a_500_that_is_logged(
    lasting: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("the inside of the server")

    monkeypatch.setattr(lasting.memoranda.core.recall, "search", broken)
    answer = lasting.request("POST", "/v1/memories/search", json={"query": "a"})
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal_error"
    assert "inside" not in answer.text
    assert "ZeroDivisionError" in caplog.text


def test_a_request_keeps_its_own_id(lasting: Any) -> None:
    given = lasting.request("GET", "/healthz", headers={"x-request-id": "mine-1.2_3"})
    assert given.headers["x-request-id"] == "mine-1.2_3"
    ugly = lasting.request("GET", "/healthz", headers={"x-request-id": "a b\tc"})
    assert ugly.headers["x-request-id"].startswith("req_")
