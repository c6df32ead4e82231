"""Archives over HTTP: for the admin of a tenant, and of that tenant alone."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest

pytestmark = pytest.mark.rows_in("sqlite")
AT = "/v1/archive"
KEYS = [
    {"name": "a", "tenant": "a", "role": "admin", "key": "key-a"},
    {"name": "b", "tenant": "b", "role": "admin", "key": "key-b"},
    {"name": "m", "tenant": "a", "role": "member", "user": "ada", "key": "key-m"},
]


def restored(house: Any, key: str, raw: bytes, **fields: str) -> Any:
    return house.request("POST", AT, key=key, files={"file": ("all.zip", raw)}, data=fields)


def test_an_archive_goes_from_one_tenant_to_another(opened: Any) -> None:
    house = opened(keys=KEYS)
    body = {"content": "of a", "user_id": "ada"}
    assert house.request("POST", "/v1/memories", key="key-a", json=body).status_code == 200
    answer = house.request("GET", AT, key="key-a", params={"vectors": "true"})
    assert answer.headers["content-type"] == "application/zip"
    assert int(answer.headers["content-length"]) == len(answer.content)
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.read("rows/memories.jsonl").count(b"\n") == 1
    with zipfile.ZipFile(io.BytesIO(house.request("GET", AT, key="key-b").content)) as archive:
        assert archive.read("rows/memories.jsonl") == b""
    dry = restored(house, "key-b", answer.content, dry_run="true").json()
    assert (dry["object"], dry["dry_run"]) == ("archive.restored", True)
    assert house.request("POST", "/v1/memories/count", key="key-b", json={}).json()["count"] == 0
    made = restored(house, "key-b", answer.content, user_id="bob").json()
    assert made["imported"]["memory"] == {"read": 1, "created": 1, "present": 0, "ended": 0}
    (row,) = house.request("GET", "/v1/memories", key="key-b", params={"scopes": "all"}).json()["data"]
    assert (row["content"], row["user_id"]) == ("of a", "bob")
    assert (
        restored(house, "key-b", answer.content, user_id="bob").json()["imported"]["memory"]["present"] == 1
    )


def test_what_was_forgotten_stays_out(opened: Any) -> None:
    house = opened(keys=KEYS)

    def asked(path: str, **how: Any) -> Any:
        return house.request("POST", f"/v1/memories{path}", key="key-a", **how).json()

    id_ = asked("", json={"content": "of a", "user_id": "ada"})["id"]
    archive = house.request("GET", AT, key="key-a").content
    lines = house.request("GET", "/v1/memories/export", key="key-a").content
    asked("/forget", json={"ids": [id_]})
    (group,) = restored(house, "key-a", archive).json()["skipped"]
    assert (group["kind"], group["places"], group["failed"]) == ("memory", [id_], False)
    assert asked("/import", content=lines)["forgotten"] == [id_]
    assert asked("/count", json={"scopes": ["all"]})["count"] == 0
    took = asked("/import", content=lines, params={"include_forgotten": "true"})
    assert (took["created"], took["forgotten"]) == (1, [])
    asked("/forget", json={"ids": [id_]})
    assert restored(house, "key-a", archive, include_forgotten="true").json()["skipped"] == []


def test_who_may_not_and_what_is_wrong(opened: Any) -> None:
    house = opened(keys=KEYS)
    assert house.request("GET", AT, key="key-m").status_code == 403
    assert restored(house, "key-m", b"x").status_code == 403
    for raw, fields, says in (
        (b"no zip", {}, "source"),
        (b"no zip", {"color": "red"}, "color"),
        (b"no zip", {"scope": "room:1"}, "scope"),
    ):
        answer = restored(house, "key-a", raw, **fields)
        assert answer.status_code == 400
        assert says in answer.json()["error"]["message"]
    assert house.request("POST", AT, key="key-a", json={}).status_code == 415
