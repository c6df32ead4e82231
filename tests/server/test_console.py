"""The console over HTTP: its files, its login, and what its cookie may do."""

from __future__ import annotations

import re
import time
from typing import Any

import httpx
import pytest

from memoranda.server.console_session import COOKIE, SECONDS, csrf_token, new_session

KEYS = [
    {"name": "ops", "role": "admin", "key": "key-ops"},
    {"name": "ada", "role": "member", "key": "key-ada", "tenant": "acme", "user": "ada"},
    {"name": "viewer", "role": "reader", "key": "key-viewer", "tenant": "acme"},
]
CSRF = "X-Memoranda-CSRF"


@pytest.fixture(scope="module")
def keyed(houses: Any) -> Any:
    return houses(keys=KEYS)


def signed_in(house: Any, key: str, **options: Any) -> tuple[dict[str, str], dict[str, Any]]:
    """The header of a browser that has signed in, and what the server said."""
    answer = house.request("POST", "/console/login", json={"key": key}, **options)
    assert answer.status_code == 200, answer.text
    return {"cookie": f"{COOKIE}={answer.cookies[COOKIE]}"}, answer.json()


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_every_view_answers_with_the_shell(lasting: Any) -> None:
    shell = lasting.request("GET", "/console")
    assert shell.headers["content-type"].startswith("text/html")
    page = lasting.request("GET", "/console/memories?q=x").text
    preloaded = re.compile(r'<link rel="modulepreload" href="[^"]+">\n')
    assert preloaded.sub("", page) == preloaded.sub("", shell.text)
    assert lasting.request("GET", "/console/nothing/of/the/sort").content == shell.content
    policy = shell.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert shell.headers["x-content-type-options"] == "nosniff"
    assert shell.headers["referrer-policy"] == "no-referrer"
    assert code(lasting.request("POST", "/console")) == (405, "method_not_allowed")


def test_the_address_of_the_server_leads_to_the_console(lasting: Any) -> None:
    answer = lasting.request("GET", "/")
    assert (answer.status_code, answer.headers["location"]) == (307, "/console")
    assert code(lasting.request("POST", "/")) == (405, "method_not_allowed")


def test_files_are_cached_by_content(lasting: Any) -> None:
    shell = lasting.request("GET", "/console")
    assert (
        lasting.request("GET", "/console", headers={"if-none-match": shell.headers["etag"]}).status_code
        == 304
    )
    paths = re.findall(r'(?:src|href)="([^"]+)"', shell.text)
    paths.remove("/console/session")  # it is preloaded, and no file
    assert lasting.request("GET", "/console/session").headers["cache-control"] == "no-store"
    for path in paths:
        asset = lasting.request("GET", path)
        assert asset.status_code == 200
        assert "immutable" in asset.headers["cache-control"]
        assert "content-security-policy" in asset.headers
        assert (
            lasting.request("GET", path, headers={"if-none-match": asset.headers["etag"]}).status_code == 304
        )
    other = lasting.request("GET", "/console/assets/another-version/app.js")
    assert other.headers["cache-control"] == "no-cache"
    assert other.headers["content-type"].startswith("text/javascript")


@pytest.mark.parametrize(
    "path", ["nope.js", "../console.py", "%2e%2e/console.py", "index.html", "types.d.ts", ""]
)
def test_nothing_else_is_served(lasting: Any, path: str) -> None:
    answer = lasting.request("GET", f"/console/assets/v/{path}")
    assert answer.status_code == 404 or answer.text.startswith("<!doctype html>")


def test_without_keys_nobody_signs_in(lasting: Any) -> None:
    session = lasting.request("GET", "/console/session").json()
    assert (session["login"], session["signed_in"], session["role"]) == (False, True, "admin")
    assert COOKIE not in lasting.request("POST", "/console/login", json={"key": "x"}).cookies
    elsewhere = {"sec-fetch-site": "cross-site"}
    assert code(lasting.request("GET", "/console/session", headers=elsewhere)) == (403, "origin_not_allowed")


def test_a_key_signs_in_and_is_not_in_the_cookie(keyed: Any) -> None:
    assert keyed.request("GET", "/console/session").json()["signed_in"] is False
    answer = keyed.request("POST", "/console/login", json={"key": "key-ada"})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Secure" not in cookie
    assert "key-ada" not in cookie + answer.text
    assert {name: answer.json()[name] for name in ("name", "tenant", "user", "role")} == {
        "name": "ada", "tenant": "acme", "user": "ada", "role": "member",
    }  # fmt: skip
    https = keyed.request(
        "POST", "/console/login", json={"key": "key-ada"}, base_url="https://localhost:8377"
    )
    assert "Secure" in https.headers["set-cookie"]


def test_a_wrong_key_does_not_sign_in(keyed: Any) -> None:
    answer = keyed.request("POST", "/console/login", json={"key": "nope"})
    assert code(answer) == (401, "invalid_api_key")
    assert "set-cookie" not in answer.headers
    assert code(keyed.request("POST", "/console/login", json={})) == (400, "invalid_value")
    form = {"content-type": "text/plain"}  # what a form of another site can send
    assert (
        keyed.request("POST", "/console/login", content=b'{"key": "key-ada"}', headers=form).status_code
        == 415
    )


def test_the_cookie_is_the_key(keyed: Any) -> None:
    cookie, session = signed_in(keyed, "key-ada")
    headers = {**cookie, CSRF: session["csrf"]}
    made = keyed.request("POST", "/v1/memories", headers=headers, json={"content": "ada wrote this"}).json()
    assert made["user_id"] == "ada"
    assert keyed.request("GET", f"/v1/memories/{made['id']}", key="key-ada").status_code == 200
    other, _ = signed_in(keyed, "key-ops")
    assert keyed.request("GET", f"/v1/memories/{made['id']}", headers=other).status_code == 404
    assert keyed.request("GET", "/v1/memories/stats", headers=cookie).status_code == 403
    assert keyed.request("GET", "/v1/memories/stats", headers=other).status_code == 200
    viewer, reading = signed_in(keyed, "key-viewer")
    refused = keyed.request("DELETE", f"/v1/memories/{made['id']}", headers={**viewer, CSRF: reading["csrf"]})
    assert code(refused) == (403, "forbidden")
    acting = {**headers, "x-memoranda-user": "bob"}
    assert code(keyed.request("GET", "/v1/memories", headers=acting)) == (403, "forbidden")


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE", "PUT"])
def test_a_change_needs_the_token(keyed: Any, method: str) -> None:
    cookie, session = signed_in(keyed, "key-ops")
    _, other = signed_in(keyed, "key-ops")
    path = {"PUT": "/v1/vector_stores/none", "POST": "/v1/memories/search"}.get(method, "/v1/memories/none")
    for wrong in ({}, {CSRF: ""}, {CSRF: "ü".encode()}, {CSRF: other["csrf"]}):
        answer = keyed.request(method, path, headers={**cookie, **wrong}, json={"query": "x"})
        assert code(answer) == (403, "csrf_token_missing")
    right = keyed.request(method, path, headers={**cookie, CSRF: session["csrf"]}, json={"query": "x"})
    assert right.status_code not in (401, 403)
    assert keyed.request(method, path, key="key-ops", json={"query": "x"}).status_code not in (401, 403)


def test_a_key_in_the_header_goes_before_the_cookie(keyed: Any) -> None:
    cookie, _ = signed_in(keyed, "key-ops")
    answer = keyed.request(
        "POST", "/v1/memories", headers=cookie, key="key-ada", json={"content": "by header"}
    )
    assert answer.json()["user_id"] == "ada"
    assert keyed.request("GET", "/v1/memories", headers=cookie, key="wrong").status_code == 401


def test_pages_of_other_sites_have_no_use_of_the_cookie(keyed: Any) -> None:
    cookie, session = signed_in(keyed, "key-ops")
    for site in ("cross-site", "same-site"):
        headers = {**cookie, CSRF: session["csrf"], "sec-fetch-site": site}
        assert code(keyed.request("GET", "/v1/memories", headers=headers)) == (403, "origin_not_allowed")


def test_a_session_ends(keyed: Any, opened: Any) -> None:
    now = time.time()
    old = {"cookie": f"{COOKIE}={new_session('key-ops', now - SECONDS - 1)}"}
    assert code(keyed.request("GET", "/v1/memories", headers=old)) == (401, "invalid_api_key")
    assert keyed.request("GET", "/console/session", headers=old).json()["signed_in"] is False
    cookie, session = signed_in(keyed, "key-ops")
    end, nonce, mac = cookie["cookie"].partition("=")[2].split(".")
    for forged in (
        f"{int(end) + 9}.{nonce}.{mac}",
        f"{end}.{nonce}.",
        "x",
        "..",
        f"{'9' * 30}.{nonce}.{mac}",
    ):
        headers = {"cookie": f"{COOKIE}={forged}"}
        assert keyed.request("GET", "/v1/memories", headers=headers).status_code == 401
    rotated = opened(keys=[{**KEYS[0], "key": "another"}])  # the same name with another key
    assert rotated.request("GET", "/v1/memories", headers=cookie).status_code == 401
    same = opened(keys=[KEYS[0]])  # another server of the cluster
    assert same.request("GET", "/v1/memories", headers=cookie).status_code == 200
    out = keyed.request("POST", "/console/logout", headers={**cookie, CSRF: session["csrf"]})
    assert "Max-Age=0" in out.headers["set-cookie"]
    assert out.json()["signed_in"] is False
    assert code(keyed.request("POST", "/console/logout", headers=cookie)) == (403, "csrf_token_missing")


def test_the_token_belongs_to_one_session() -> None:
    one, two = new_session("key", 0.0), new_session("key", 0.0)
    assert one != two
    assert csrf_token("key", one) != csrf_token("key", two)
    assert csrf_token("key", one) not in one


def test_a_server_without_console(opened: Any) -> None:
    house = opened(keys=KEYS, console={"enabled": False})
    for path in ("/", "/console"):
        assert code(house.request("GET", path)) == (404, "unknown_route")
    assert code(house.request("POST", "/console/login", json={"key": "key-ops"})) == (404, "unknown_route")
    cookie = {"cookie": f"{COOKIE}={new_session('key-ops', time.time())}"}
    assert house.request("GET", "/v1/memories", headers=cookie).status_code == 401
