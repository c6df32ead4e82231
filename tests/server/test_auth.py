"""Who may: roles by routes, keys, acting for a user, and a server without keys."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.requests import HTTPConnection

from memoranda.config import Config, Server
from memoranda.config.agent_sections import ServerKey
from memoranda.errors import ConfigError, Unauthorized
from memoranda.server.auth import FORWARDED, Guard
from memoranda.server.routes import ROUTES

ROLES = ("admin", "service", "member", "reader")
MAY = {
    "open": {*ROLES, None},
    "read": set(ROLES),
    "write": {"admin", "service", "member"},
    "service": {"admin", "service"},
    "admin": {"admin"},
    "operator": {"admin"},
}


@pytest.fixture(scope="module")
def keyed(houses: Any) -> Any:
    keys = [{"name": role, "role": role, "key": f"key-{role}"} for role in ROLES]
    keys += [
        {"name": "ada", "role": "member", "user": "ada", "key": "key-ada"},
        {"name": "bound", "role": "service", "user": "bob", "key": "key-bound"},
        {"name": "other", "role": "admin", "tenant": "other", "key": "key-other"},
    ]
    return houses(keys=keys, server={"host": "0.0.0.0"})


@pytest.mark.parametrize("role", [*ROLES, None])
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_roles_by_routes(keyed: Any, route: Any, role: str | None) -> None:
    """What a role may not is 403, no key is 401; what it may is neither."""
    path = route.path.replace("{id}", "nope").replace("{model}", "hash-64")
    key = None if role is None else f"key-{role}"
    status = keyed.request(route.method, path, key=key, content=b"{}" if route.body else None).status_code
    if role in MAY[route.needs]:
        assert status not in (401, 403)
    else:
        assert status == (401 if role is None else 403)


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer nope", "Basic a2V5LWFkbWlu", "key-admin", "Bearer key-admi"]
)
def test_an_unknown_key_is_401(keyed: Any, header: str) -> None:
    answer = keyed.request("GET", "/v1/memories", headers={"authorization": header})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["error"]["type"] == "authentication_error"
    assert answer.json()["error"]["code"] == "invalid_api_key"


def test_a_key_is_a_tenant_a_user_and_a_role(keyed: Any) -> None:
    made = keyed.request("POST", "/v1/memories", key="key-ada", json={"content": "ada's"}).json()
    assert made["user_id"] == "ada"
    at = f"/v1/memories/{made['id']}"
    assert keyed.request("GET", at, key="key-admin").status_code == 200
    assert keyed.request("GET", at, key="key-member").status_code == 404
    assert keyed.request("GET", at, key="key-other").status_code == 404
    everything = {"query": "ada", "scopes": ["all"]}
    assert keyed.request("POST", "/v1/memories/search", key="key-ada", json=everything).status_code == 403
    foreign = {"content": "x", "user_id": "bob"}
    assert keyed.request("POST", "/v1/memories", key="key-ada", json=foreign).status_code == 403


def test_an_import_says_that_it_is_one(keyed: Any) -> None:
    headers = {"x-memoranda-import": "gespräche.json".encode()}
    made = keyed.request(
        "POST", "/v1/memories", key="key-admin", headers=headers, json={"content": "old"}
    ).json()
    assert (made["origin"], made["written_by"]) == ("import", ["key:admin", "import:gespräche.json"])
    page = keyed.request("GET", "/v1/memories", key="key-admin", params={"source": "import:gespräche.json"})
    assert [memory["id"] for memory in page.json()["data"]] == [made["id"]]
    headers = {"x-memoranda-import": ""}
    refused = keyed.request("POST", "/v1/memories", key="key-admin", headers=headers, json={"content": "x"})
    assert refused.status_code == 400


def test_a_service_acts_for_the_user_it_names(keyed: Any) -> None:
    def asked(key: str, user: str, **options: Any) -> Any:
        headers = {"x-memoranda-user": user.encode()}
        return keyed.request("POST", "/v1/memories", key=key, headers=headers, **options)

    made = asked("key-service", "zoë", json={"content": "hers"})
    assert made.json()["user_id"] == "zoë"
    assert (made.json()["origin"], made.json()["written_by"]) == ("user", ["key:service"])
    assert asked("key-service", "zoë", json={"content": "x", "user_id": "ada"}).status_code == 403
    assert asked("key-bound", "bob", json={"content": "his"}).status_code == 200
    for key in ("key-bound", "key-admin", "key-member", "key-reader"):
        assert asked(key, "zoë", json={"content": "not hers"}).status_code == 403
    assert asked("key-service", "", json={"content": "x"}).status_code == 400
    assert asked("key-service", "x" * 257, json={"content": "x"}).status_code == 400


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({}, 200),
        ({"base_url": "http://127.0.0.1:8377"}, 200),
        ({"base_url": "http://[::1]:8377", "client": ("::1", 1)}, 200),
        ({"client": ("::ffff:127.0.0.1", 1)}, 200),
        ({"client": ("192.168.1.5", 1)}, 401),
        ({"headers": {"x-forwarded-for": "1.2.3.4"}}, 401),
        ({"headers": {"forwarded": "for=1.2.3.4"}}, 401),
        ({"base_url": "http://evil.example:8377"}, 403),
        ({"headers": {"host": "localhost.evil.example"}}, 403),
        ({"headers": {"host": "[bad"}}, 403),
        ({"headers": {"origin": "http://localhost:8377"}}, 200),
        ({"headers": {"origin": "http://localhost:3000"}}, 403),
        ({"headers": {"origin": "https://evil.example"}}, 403),
        ({"headers": {"origin": "null"}}, 403),
        ({"headers": {"sec-fetch-site": "same-origin"}}, 200),
        ({"headers": {"sec-fetch-site": "cross-site"}}, 403),
        ({"headers": {"sec-fetch-site": "same-site"}}, 403),
        ({"headers": {"x-memoranda-user": "ada"}}, 403),
    ],
)
def test_without_keys_only_this_machine_is_answered(lasting: Any, options: Any, status: int) -> None:
    answer = lasting.request("GET", "/v1/memories", **options)
    assert answer.status_code == status, answer.text
    assert lasting.request("GET", "/healthz", **options).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_a_server_for_others_needs_keys(host: str) -> None:
    with pytest.raises(ConfigError, match=r"^keys: is empty"):
        Guard(Config(server=Server(host=host)))


def test_a_browser_page_is_no_danger_with_keys(keyed: Any) -> None:
    headers = {"origin": "https://app.example", "sec-fetch-site": "cross-site"}
    assert keyed.request("GET", "/v1/models", key="key-admin", headers=headers).status_code == 200


def asking(version: str = "1.1", **headers: str) -> HTTPConnection:
    """A request from this machine to a server on it."""
    named = {"host": "127.0.0.1:8377"} | {name.replace("_", "-"): value for name, value in headers.items()}
    raw = [(name.encode(), value.encode()) for name, value in named.items()]
    scope = {
        "type": "http",
        "http_version": version,
        "headers": raw,
        "client": ("127.0.0.1", 50_000),
        "path": "/",
    }
    return HTTPConnection(scope)


@pytest.mark.parametrize("header", FORWARDED)
def test_a_server_without_keys_refuses_what_a_proxy_sends(header: str) -> None:
    guard = Guard(Config())
    assert guard.subject(asking(), "read").role == "admin"
    for request in (asking(**{header.replace("-", "_"): "x"}), asking(version="1.0")):
        with pytest.raises(Unauthorized, match="answers its own machine only"):
            guard.subject(request, "read")
    keyed = Guard(Config(keys=(ServerKey(name="a", role="admin", key="key-a"),)))
    proxied = asking(version="1.0", authorization="Bearer key-a", x_forwarded_for="10.0.0.1")
    assert keyed.subject(proxied, "read").key == "a"


def test_keys_can_be_required() -> None:
    with pytest.raises(ConfigError, match="keys: is empty while server"):
        Guard(Config(server=Server(require_keys=True)))
    keys = (ServerKey(name="a", role="admin", key="key-a"),)
    assert Guard(Config(server=Server(require_keys=True), keys=keys)).has_keys


def test_an_archive_needs_a_key(opened: Any) -> None:
    house = opened()
    refused = house.request("GET", "/v1/archive")
    assert refused.status_code == 401
    assert "an archive needs a key" in refused.json()["error"]["message"]
    refused = house.request("POST", "/v1/archive", files={"file": ("all.zip", b"PK")})
    assert refused.status_code == 401
