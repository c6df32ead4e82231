"""What is wrong is said clearly, in one envelope, and nothing is lost by it."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest

from support.exports import undated

NAN = base64.b64encode(np.full(64, np.nan, "<f4").tobytes()).decode()
BAD: list[tuple[str, str, str, Any, int, str | None]] = [
    ("nul", "POST", "", {"content": "a\x00b"}, 400, "content"),
    ("nul in a tag", "POST", "", {"content": "a", "tags": ["\x00"]}, 400, "tags[0]"),
    ("nul in an id", "POST", "", {"content": "a", "id": "\x00"}, 400, "id"),
    ("surrogate", "POST", "", b'{"content": "ab\\ud800"}', 400, "content"),
    ("surrogate in a key", "POST", "", b'{"content": "a", "metadata": {"k": "\\udc00"}}', 400, "metadata.k"),
    ("tags", "POST", "", {"content": "a", "tags": [str(i) for i in range(100_000)]}, 400, "tags"),
    ("empty", "POST", "", {"content": " "}, 400, "content"),
    ("missing", "POST", "", {}, 400, "content"),
    ("unknown field", "POST", "", {"content": "a", "metdata": {}}, 400, "metdata"),
    ("type", "POST", "", {"content": 5}, 400, "content"),
    ("kind", "POST", "", {"content": "a", "kind": "nope"}, 400, "kind"),
    ("large number", "POST", "", {"content": "a", "importance": 2**70}, 400, "importance"),
    ("time", "POST", "", {"content": "a", "occurred_at": "yesterday"}, 400, "occurred_at"),
    ("dimension", "POST", "", {"content": "a", "embedding": [0.5] * 63}, 400, "embedding"),
    ("nan", "POST", "", b'{"content": "a", "embedding": [NaN, 1]}', 400, "embedding[0]"),
    ("infinity", "POST", "", b'{"content": "a", "embedding": [1, -Infinity]}', 400, "embedding[1]"),
    ("large float", "POST", "", b'{"content": "a", "embedding": [1e999]}', 400, "embedding[0]"),
    ("nan in base64", "POST", "", {"content": "a", "embedding": NAN}, 400, "embedding"),
    ("no base64", "POST", "", {"content": "a", "embedding": "??"}, 400, "embedding"),
    ("half a float", "POST", "", {"content": "a", "embedding": "AAAA"}, 400, "embedding"),
    ("strings for floats", "POST", "", {"content": "a", "embedding": ["1"]}, 400, "embedding[0]"),
    ("no JSON", "POST", "", b"{", 400, "body"),
    ("no UTF-8", "POST", "", b'{"content": "\xff"}', 400, "body"),
    ("deep", "POST", "", b"[" * 100_000, 400, "body"),
    ("a list", "POST", "", b"[]", 400, "body"),
    ("empty batch", "POST", "/batch", {"memories": []}, 400, "memories"),
    ("bad cursor", "GET", "?after=nope", None, 400, "after"),
    ("two cursors", "GET", "?after=a&before=b", None, 400, "before"),
    ("limit", "GET", "?limit=0", None, 400, "limit"),
    ("limit twice", "GET", "?limit=1&limit=2", None, 400, "limit"),
    ("limit no number", "GET", "?limit=x", None, 400, "limit"),
    ("order", "GET", "?order=up", None, 400, "order"),
    ("filters no JSON", "GET", "?filters={", None, 400, "filters"),
    ("unknown parameter", "GET", "?tag=x", None, 400, "tag"),
    ("scope", "POST", "/search", {"query": "a", "scopes": ["nope"]}, 400, "scopes[0]"),
    ("scope id alone", "POST", "/search", {"query": "a", "scope_id": "x"}, 400, "scope_id"),
    ("both scopes", "POST", "/search", {"query": "a", "scope": "global", "scopes": ["global"]}, 400, "scope"),
    ("threshold", "POST", "/search", {"query": "a", "threshold": 2}, 400, "threshold"),
    ("query dimension", "POST", "/search", {"query": "a", "embedding": [1]}, 400, "embedding"),
    ("nan in a query", "POST", "/search", {"query": "a", "embedding": NAN}, 400, "embedding"),
    ("no query", "POST", "/search", {"query": ""}, 400, "query"),
    ("mode", "POST", "/search", {"query": "a", "mode": "x"}, 400, "mode"),
    ("import", "POST", "/import", b'{"content": 5}\n{"content": "a"}', 400, "line 1"),
    ("rate", "POST", "/reembed", {"rows_per_second": 0}, 400, "rows_per_second"),
    ("unknown memory", "GET", "/nope", None, 404, None),
    ("unknown memory", "PATCH", "/nope", {}, 404, None),
    ("unknown memory", "DELETE", "/nope", None, 404, None),
]


@pytest.mark.parametrize(
    ("name", "method", "path", "body", "status", "param"), BAD, ids=[bad[0] for bad in BAD]
)
def test_bad_input(
    lasting: Any, name: str, method: str, path: str, body: Any, status: int, param: str | None
) -> None:
    before = undated(lasting.request("GET", "/v1/memories/export").content)
    content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    answer = lasting.request(method, f"/v1/memories{path}", content=content)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["param"], error["type"]) == (param, "invalid_request_error")
    assert len(error["message"]) < 600
    assert undated(lasting.request("GET", "/v1/memories/export").content) == before


def test_a_selection_by_an_id_is_told_the_scope(lasting: Any) -> None:
    listed = lasting.request("GET", "/v1/memories?user_id=ada")
    searched = lasting.request("POST", "/v1/memories/search", json={"query": "a", "user_id": "ada"})
    for answer in (listed, searched):
        error = answer.json()["error"]
        assert error["param"] == "user_id"
        assert error["message"].endswith("; use scope=user, scope_id=ada")
    assert lasting.request("GET", "/v1/memories?scope=user&scope_id=ada").json()["data"] == []


def test_a_hundred_megabytes_of_text_are_refused(lasting: Any) -> None:
    body = b'{"content": "' + b"a" * 100_000_000 + b'"}'
    answer = lasting.request("POST", "/v1/memories", content=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")
    answer = lasting.request("POST", "/v1/memories", json={"content": "a" * 2_000_000})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "content")
    assert lasting.request("POST", "/v1/memories/count").json()["count"] == 1


def test_a_conflict_is_409(house: Any) -> None:
    house.add("one", id="x")
    answer = house.request("POST", "/v1/memories", json={"content": "two", "id": "x"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "conflict")


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        ({"model": "gpt", "input": "a"}, 404, "model_not_found", "model"),
        ({}, 400, "invalid_value", "input"),
        ({"model": "hash-64", "input": []}, 400, "invalid_value", "input"),
        ({"model": "hash-64", "input": ""}, 400, "invalid_value", "input"),
        ({"model": "hash-64", "input": ["a", ""]}, 400, "invalid_value", "input[1]"),
        ({"model": "hash-64", "input": ["a", 5]}, 400, "invalid_value", "input[1]"),
        ({"model": "hash-64", "input": [[1], ["a"]]}, 400, "invalid_value", "input[1][0]"),
        ({"model": "hash-64", "input": [10**9]}, 400, "invalid_value", "input"),
        ({"model": "hash-64", "input": [-1]}, 400, "invalid_value", "input"),
        ({"model": "hash-64", "input": "a " * 600}, 400, "invalid_value", "input"),
        ({"model": "hash-64", "input": "a", "dimensions": 32}, 400, "dimension_mismatch", "dimensions"),
        ({"model": "hash-64", "input": "a", "encoding_format": "x"}, 400, "invalid_value", "encoding_format"),
        ({"model": "hash-64", "input": ["a"] * 2049}, 400, "invalid_value", "input"),
    ],
)
def test_bad_embeddings(lasting: Any, body: Any, status: int, code: str, param: str) -> None:
    answer = lasting.request("POST", "/v1/embeddings", json=body)
    assert answer.status_code == status, answer.text
    assert (answer.json()["error"]["code"], answer.json()["error"]["param"]) == (code, param)
