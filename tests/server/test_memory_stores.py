"""`/v1/memory_stores`: keys, errors and lists as Anthropic's clients know them."""

from __future__ import annotations

from typing import Any

import pytest

KEYS = [
    {"name": "admin", "role": "admin", "key": "key-admin"},
    {"name": "ana", "role": "member", "user": "ana", "key": "key-ana"},
    {"name": "reader", "role": "reader", "key": "key-reader"},
]
AT = "/v1/memory_stores"


@pytest.fixture(scope="module")
def house(houses: Any) -> Any:
    return houses(keys=KEYS)


def sent(
    house: Any, method: str, path: str, status: int = 200, key: str = "key-admin", **options: Any
) -> Any:
    answer = house.request(method, f"{AT}{path}", headers={"x-api-key": key}, **options)
    assert answer.status_code == status, answer.text
    return answer.json()


@pytest.fixture
def store(house: Any) -> str:
    """The path of a new store."""
    return f"/{sent(house, 'POST', '?beta=true', json={'name': 'notes'})['id']}"


def test_a_key_is_in_either_header_on_these_routes_only(house: Any) -> None:
    for headers in ({"x-api-key": "key-ana"}, {"authorization": "Bearer key-ana"}):
        made = house.request("POST", AT, headers=headers, json={"name": "hers"}).json()
        assert house.request("GET", f"{AT}/{made['id']}", headers={"x-api-key": "key-ana"}).status_code == 200
    none = house.request("GET", AT)
    assert (none.status_code, none.json()["error"]["type"]) == (401, "authentication_error")
    assert "`x-api-key: KEY`" in none.json()["error"]["message"]
    assert sent(house, "GET", "", 401, key="key-nobody")["error"]["type"] == "authentication_error"
    assert (
        sent(house, "POST", "", 403, key="key-reader", json={"name": "x"})["error"]["type"]
        == "permission_error"
    )
    other = house.request("GET", "/v1/memories", headers={"x-api-key": "key-admin"})
    assert other.status_code == 401


def test_errors_have_the_types_of_anthropic(house: Any, store: str) -> None:
    note = sent(house, "POST", f"{store}/memories", json={"path": "/a", "content": "text"})
    wrong = sent(house, "POST", f"{store}/memories", 400, json={"path": "a", "content": "text"})
    assert (wrong["type"], wrong["error"]["type"]) == ("error", "invalid_request_error")
    assert wrong["error"]["message"].startswith("path: must be /")
    assert sent(house, "GET", "/memstore_none", 404)["error"]["type"] == "not_found_error"
    taken = sent(house, "POST", f"{store}/memories", 409, json={"path": "/a/b", "content": ""})["error"]
    assert (taken["type"], taken["conflicting_memory_id"], taken["conflicting_path"]) == (
        "memory_path_conflict_error", note["id"], "/a",
    )  # fmt: skip
    unmet = {"content": "x", "precondition": {"type": "content_sha256", "content_sha256": "0" * 64}}
    failed = sent(house, "POST", f"{store}/memories/{note['id']}", 409, json=unmet)["error"]
    assert failed["type"] == "memory_precondition_failed_error"
    assert "conflicting_path" not in failed
    gone = sent(house, "DELETE", f"{store}/memories/{note['id']}?expected_content_sha256={'0' * 64}", 409)
    assert gone["error"]["type"] == "memory_precondition_failed_error"
    sent(house, "POST", f"{store}/archive")
    late = sent(house, "POST", f"{store}/memories", 409, json={"path": "/b", "content": ""})
    assert late["error"]["type"] == "conflict_error"


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", "", {"name": ""}, "name"),
        ("POST", "", {"name": "a\nb"}, "name"),
        ("POST", "", {"name": "a", "metadata": {str(n): "" for n in range(17)}}, "metadata"),
        ("POST", "", {"name": "a", "metadata": {"a": 1}}, "metadata"),
        ("GET", "?limit=101", None, "limit"),
        ("GET", "?page=x", None, "page"),
        ("GET", "?created_at[gte]=yesterday", None, "created_at"),
        ("GET", "{store}/memories?path_prefix=/a", None, "path_prefix"),
        ("GET", "{store}/memories?depth=2", None, "depth"),
        ("GET", "{store}/memories?view=all", None, "view"),
        ("POST", "{store}/memories", {"path": "/a"}, "content"),
        ("POST", "{store}/memories/x", {"precondition": {"type": "content_sha256"}}, "content_sha256"),
    ],
)
def test_what_is_wrong_names_the_field(
    house: Any, store: str, method: str, path: str, body: Any, field: str
) -> None:
    answer = sent(house, method, path.replace("{store}", store), 400, json=body)
    assert field in answer["error"]["message"]
    assert answer["error"]["type"] == "invalid_request_error"


def test_views_and_lists_are_those_of_the_api(house: Any, store: str) -> None:
    made = sent(house, "POST", f"{store}/memories?view=full", json={"path": "/a/b.md", "content": "text"})
    assert (made["type"], made["content"], made["memory_store_id"]) == ("memory", "text", store[1:])
    (shown,) = sent(house, "GET", f"{store}/memories?beta=true")["data"]
    assert shown == {**made, "content": None}
    assert sent(house, "GET", f"{store}/memories?depth=1") == {
        "data": [{"type": "memory_prefix", "path": "/a/"}], "next_page": None,
    }  # fmt: skip
    at = made["created_at"]
    versions = sent(house, "GET", f"{store}/memory_versions?created_at[gte]={at}&created_at[lte]={at}")[
        "data"
    ]
    assert [version["id"] for version in versions] == [made["memory_version_id"]]
    for name in ("session_id", "api_key_id", "service_account_id"):
        assert sent(house, "GET", f"{store}/memory_versions?{name}=x")["data"] == []
        sent(house, "GET", f"/memstore_none/memory_versions?{name}=x", 404)


def test_unknown_fields_are_ignored(house: Any) -> None:
    made = sent(house, "POST", "?betas=x", json={"name": "a", "color": "red"})
    assert sent(house, "GET", f"/{made['id']}?include=all")["name"] == "a"
