"""What goes over the wire about files and stores, to the last key: for clients that are not OpenAI's own."""

from __future__ import annotations

import json
from typing import Any

import pytest

STATIC = {"type": "static", "static": {"max_chunk_size_tokens": 200, "chunk_overlap_tokens": 50}}
SIZES = {"chunk_size": 200, "chunk_overlap": 50, "contextual_header": True}


@pytest.fixture(scope="module")
def ids(lasting: Any) -> dict[str, str]:
    made: dict[str, str] = lasting.stock()
    return made


def get(house: Any, path: str, **params: Any) -> Any:
    answer = house.request("GET", f"/v1/{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def post(house: Any, path: str, body: Any, status: int = 200, **options: Any) -> Any:
    answer = house.request("POST", f"/v1/{path}", json=body, **options)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_a_file(lasting: Any, ids: dict[str, str]) -> None:
    file = get(lasting, f"files/{ids['file_id']}")
    assert list(file) == [
        "object", "id", "bytes", "created_at", "filename", "purpose", "status", "sha256", "media_type",
    ]  # fmt: skip
    assert isinstance(file["created_at"], int)
    page = get(lasting, "files", limit=1)
    assert list(page) == ["object", "data", "first_id", "last_id", "has_more"]
    assert (page["object"], page["has_more"]) == ("list", True)
    assert page["first_id"] == page["last_id"] == page["data"][0]["id"]


def test_an_empty_page(opened: Any) -> None:
    empty = {"object": "list", "data": [], "first_id": "", "last_id": "", "has_more": False}
    house = opened()
    for path in ("files", "vector_stores"):
        assert get(house, path) == empty
    store = post(house, "vector_stores", {})["id"]
    assert get(house, f"vector_stores/{store}/files") == empty


def test_a_store(lasting: Any, ids: dict[str, str]) -> None:
    store = get(lasting, f"vector_stores/{ids['store_id']}")
    assert list(store) == [
        "object", "id", "created_at", "name", "description", "usage_bytes", "file_counts", "status",
        "last_active_at", "expires_at", "metadata", "chunking_strategy", "model", "dimension", "owner", "sharing",
        "writers",
    ]  # fmt: skip
    assert store["file_counts"] == {"in_progress": 0, "completed": 2, "failed": 0, "cancelled": 0, "total": 2}
    assert store["chunking_strategy"] == {**STATIC, **SIZES}
    assert (store["owner"], store["expires_at"]) == (None, None)


def test_a_file_in_a_store(lasting: Any, ids: dict[str, str]) -> None:
    file = get(lasting, f"vector_stores/{ids['store_id']}/files/{ids['file_id']}")
    assert file.pop("usage_bytes") > 0
    assert isinstance(file.pop("created_at"), int)
    assert file == {
        "id": ids["file_id"], "object": "vector_store.file", "vector_store_id": ids["store_id"],
        "status": "completed", "last_error": None, "chunking_strategy": {**STATIC, **SIZES},
        "attributes": {"mark": "the kettle is green"}, "filename": "kettle.txt", "bytes": 19, "chunk_count": 1,
        "title": None, "notes": [],
    }  # fmt: skip


def test_the_text_of_a_file(lasting: Any, ids: dict[str, str]) -> None:
    assert get(lasting, f"vector_stores/{ids['store_id']}/files/{ids['file_id']}/content") == {
        "object": "vector_store.file_content.page",
        "data": [{"type": "text", "text": "the kettle is green"}],
        "has_more": False,
        "next_page": None,
    }
    page = get(lasting, f"vector_stores/{ids['store_id']}/files/{ids['file_id']}/chunks")
    (chunk,) = page.pop("data")
    assert page == {"object": "list", "first_id": chunk["id"], "last_id": chunk["id"], "has_more": False}
    assert chunk == {
        "object": "vector_store.file.chunk", "id": chunk["id"], "index": 0, "start": 0, "end": 19, "page": None,
        "last_page": None, "heading": None, "tokens": 4, "content": "the kettle is green",
    }  # fmt: skip


def test_a_batch(lasting: Any, ids: dict[str, str]) -> None:
    batch = get(lasting, f"vector_stores/{ids['store_id']}/file_batches/{ids['batch_id']}")
    assert isinstance(batch.pop("created_at"), int)
    assert batch == {
        "id": ids["batch_id"], "object": "vector_store.files_batch", "vector_store_id": ids["store_id"],
        "status": "completed",
        "file_counts": {"in_progress": 0, "completed": 1, "failed": 0, "cancelled": 0, "total": 1},
    }  # fmt: skip


def test_a_search_in_both_shapes(lasting: Any, ids: dict[str, str]) -> None:
    at = f"vector_stores/{ids['store_id']}/search"
    page = post(lasting, at, {"query": ["green kettle", "loud"], "max_results": 1, "some_field": 1})
    assert list(page) == [
        *("object", "search_query", "data", "has_more", "next_page"),
        *("evidence", "evidence_probability", "degraded"),
    ]
    assert page["object"] == "vector_store.search_results.page"
    assert page["search_query"] == ["green kettle", "loud"]
    assert (page["has_more"], page["next_page"], page["degraded"]) == (False, None, [])
    (hit,) = page["data"]
    assert hit["content"] == [{"type": "text", "text": "the kettle is green"}]
    assert "explanation" not in hit
    flat = post(lasting, at, {"query": ["green kettle", "loud"], "max_results": 1}, params={"format": "flat"})
    assert list(flat) == ["object", "data", "has_more", "evidence", "evidence_probability", "degraded"]
    assert flat["object"] == "list"
    shown = ("evidence", "evidence_probability")
    assert [flat[name] for name in shown] == [page[name] for name in shown]
    assert flat["data"] == [{**hit, "content": "the kettle is green"}]
    assert {"score", "content", "filename", "file_id", "chunk_index"} <= set(hit)


def test_a_hit_in_a_table_has_the_names_of_its_columns(lasting: Any, ids: dict[str, str]) -> None:
    table = lasting.stock("Item | Price\nKettle | cheap")
    for store, columns in ((table, "Item | Price"), (ids, None)):
        page = post(lasting, f"vector_stores/{store['store_id']}/search", {"query": "kettle"})
        assert {hit["columns"] for hit in page["data"]} == {columns}


def test_a_search_in_several_stores_is_one(lasting: Any, ids: dict[str, str]) -> None:
    other = lasting.stock("the kettle is loud")
    asked = {
        "vector_store_ids": [ids["store_id"], other["store_id"]],
        "query": "kettle",
        "max_num_results": 50,
    }
    found = post(lasting, "vector_stores/search", asked)["data"]
    assert {one["vector_store_id"] for one in found} == {ids["store_id"], other["store_id"]}
    assert [one["score"] for one in found] == sorted((one["score"] for one in found), reverse=True)
    missing = {**asked, "vector_store_ids": [ids["store_id"], "vs_nope"]}
    assert post(lasting, "vector_stores/search", missing, 404)["error"]["code"] == "not_found"


def test_our_own_search_options(lasting: Any, ids: dict[str, str]) -> None:
    at = f"vector_stores/{ids['store_id']}/search"
    asked = {
        "query": "green kettle", "diversity": 0.5, "expand": {"neighbours": 1, "section": True}, "mode": "keyword",
        "explain": True, "hybrid_search": {"embedding_weight": 0, "text_weight": 1},
        "filter": {"type": "eq", "key": "mark", "value": "the kettle is green"},
    }  # fmt: skip
    (hit,) = post(lasting, at, asked)["data"]
    assert hit["file_id"] == ids["file_id"]
    assert hit["explanation"]["bm25"] > 0


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "query"),
        ({"query": 5}, "query"),
        ({"query": "a", "max_results": 51}, "max_results"),
        ({"query": "a", "max_results": 5, "max_num_results": 6}, "max_results"),
        ({"query": "a", "diversity": 2}, "diversity"),
        ({"query": "a", "mode": "guess"}, "mode"),
        ({"query": "a", "expand": {"neighbours": -1}}, "expand.neighbours"),
        ({"query": "a", "hybrid_search": {"embedding_weight": 0, "text_weight": 0}}, "hybrid_search"),
        ({"query": "a", "hybrid_search": {"embedding_weight": -1, "text_weight": 1}}, "hybrid_search.embedding_weight"),
        (
            {"query": "a", "ranking_options": {"hybrid_search": {"embedding_weight": 1}}},
            "ranking_options.hybrid_search.text_weight",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_search_is_named(
    lasting: Any, ids: dict[str, str], body: Any, param: str
) -> None:
    told = post(lasting, f"vector_stores/{ids['store_id']}/search", body, 400)["error"]
    assert set(told) == {"message", "type", "param", "code"}
    assert (told["param"], told["type"]) == (param, "invalid_request_error")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"metadata": {f"k{i}": "v" for i in range(17)}}, "metadata"),
        ({"metadata": {"k" * 65: "v"}}, f"metadata.{'k' * 65}"),
        ({"file_ids": ["file-x"] * 501}, "file_ids"),
        ({"expires_after": {"anchor": "last_active_at", "days": 366}}, "expires_after.days"),
        ({"expires_after": {"anchor": "created_at", "days": 3}}, "expires_after.anchor"),
        ({"chunking_strategy": {"type": "best"}}, "chunking_strategy.type"),
        (
            {"chunking_strategy": {"type": "fixed", "chunk_size": 10, "chunk_overlap": 6}},
            "chunking_strategy.chunk_overlap",
        ),
        ({"sharing": "all"}, "sharing"),
        ({"name": 5}, "name"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_store_is_named(lasting: Any, body: Any, param: str) -> None:
    told = post(lasting, "vector_stores", body, 400)["error"]
    assert (told["param"], told["code"]) == (param, "invalid_value")


@pytest.mark.parametrize("kind", ["fixed", "recursive", "semantic"])
def test_our_own_chunking_is_told_as_static(lasting: Any, kind: str) -> None:
    asked = {"type": kind, "chunk_size": 64, "contextual_header": True, "unknown": 1}
    shown = post(lasting, "vector_stores", {"chunking_strategy": asked})["chunking_strategy"]
    assert shown == {
        "type": "static", "static": {"max_chunk_size_tokens": 64, "chunk_overlap_tokens": 32},
        "chunk_size": 64, "chunk_overlap": 32, "contextual_header": True,
        **({} if kind == "fixed" else {"strategy": kind}),
    }  # fmt: skip


def test_another_chunking_is_for_files_that_come(lasting: Any) -> None:
    before = lasting.stock()
    at = f"vector_stores/{before['store_id']}"
    asked = {"type": "recursive", "chunk_size": 300}
    changed = post(lasting, at, {"chunking_strategy": asked})
    assert changed["chunking_strategy"]["strategy"] == "recursive"
    again = post(lasting, at, {"chunking_strategy": {"type": "auto"}, "name": "x"})
    active = again["last_active_at"]
    assert active >= changed["last_active_at"]
    assert again == {**changed, "name": "x", "last_active_at": active}
    other = post(lasting, f"{at}/files", {"file_id": lasting.stock()["file_id"]})
    assert other["chunking_strategy"]["chunk_size"] == 300
    assert get(lasting, f"{at}/files/{before['file_id']}")["chunking_strategy"]["chunk_size"] == 200


FILE = ("notes.md", b"# Notes\n\nThe car is red.", "text/markdown")
SPLIT = {"type": "static", "static": {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 20}}


@pytest.mark.parametrize(
    ("fields", "attributes"),
    [
        ({}, {}),
        ({"attributes": json.dumps({"year": 2024, "good": True}), "chunking_strategy": json.dumps(SPLIT)},
         {"year": 2024, "good": True}),
        (
            {
                "attributes[year]": "2024",
                "chunking_strategy[type]": "static",
                "chunking_strategy[static][max_chunk_size_tokens]": "100",
                "chunking_strategy[static][chunk_overlap_tokens]": "20",
                "unknown": "ignored",
            },
            {"year": "2024"},
        ),
    ],
    ids=["plain", "json", "flat"],
)  # fmt: skip
def test_a_file_is_uploaded_straight_into_a_store(lasting: Any, fields: Any, attributes: Any) -> None:
    store = post(lasting, "vector_stores", {})["id"]
    answer = lasting.request("POST", f"/v1/vector_stores/{store}/files", files={"file": FILE}, data=fields)
    assert answer.status_code == 200, answer.text
    file = answer.json()
    assert (file["status"], file["filename"], file["bytes"]) == ("in_progress", "notes.md", len(FILE[1]))
    assert file["attributes"] == attributes
    assert file["chunking_strategy"]["chunk_size"] == (100 if fields else 200)
    lasting.settled(store)
    asked = {"query": "red car", "filters": attributes}
    (hit,) = post(lasting, f"vector_stores/{store}/search", asked)["data"]
    assert hit["file_id"] == file["id"]
    assert lasting.request("GET", f"/v1/files/{file['id']}/content").content == FILE[1]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"attributes": "{"}, "attributes"),
        ({"attributes": "5"}, "attributes"),
        ({"attributes": '{"a": [1]}'}, "attributes.a"),
        ({"chunking_strategy": '{"type": "odd"}'}, "chunking_strategy.type"),
        ({"chunking_strategy[type]": "static"}, "chunking_strategy.static"),
        (
            {"chunking_strategy": json.dumps({"type": "fixed", "chunk_size": 9_000})},
            "chunking_strategy.chunk_size",
        ),
    ],
)
def test_what_is_wrong_beside_a_file_leaves_nothing(lasting: Any, fields: Any, param: str) -> None:
    store = post(lasting, "vector_stores", {})["id"]
    before = get(lasting, "files"), get(lasting, "admin/usage")
    answer = lasting.request("POST", f"/v1/vector_stores/{store}/files", files={"file": FILE}, data=fields)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text
    answer = lasting.request("POST", "/v1/vector_stores/vs_nope/files", files={"file": FILE})
    assert answer.status_code == 404
    assert (get(lasting, "files"), get(lasting, "admin/usage")) == before


@pytest.mark.parametrize(
    ("options", "status", "param"),
    [
        ({"data": {"purpose": "assistants"}, "files": {"other": FILE}}, 400, "other"),
        ({"files": {"file": FILE}}, 400, "purpose"),
        ({"json": {"purpose": "assistants"}}, 415, None),
        ({"content": b"x", "headers": {"content-type": "multipart/form-data"}}, 400, "Content-Type"),
        ({"content": b"x", "headers": {"content-type": "multipart/form-data; boundary=b"}}, 400, "body"),
    ],
    ids=["another field", "no purpose", "json", "no boundary", "no form"],
)
def test_what_is_no_file_is_refused(lasting: Any, options: Any, status: int, param: str | None) -> None:
    before = get(lasting, "files")
    answer = lasting.request("POST", "/v1/files", **options)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["param"] == param
    assert get(lasting, "files") == before


def test_clients_hear_when_to_ask_again(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    house = opened(jobs={"workers": 0})
    answer = house.request(
        "POST",
        "/v1/files",
        files={"file": FILE},
        data={"purpose": "assistants"},
        headers={"OpenAI-Beta": "assistants=v2"},
    )
    file = answer.json()["id"]
    store = post(house, "vector_stores", {})["id"]
    batch = post(house, f"vector_stores/{store}/file_batches", {"file_ids": [file]})
    assert batch["status"] == "in_progress"
    for path in (f"files/{file}", f"file_batches/{batch['id']}"):
        answer = house.request("GET", f"/v1/vector_stores/{store}/{path}")
        assert (answer.json()["status"], answer.headers["openai-poll-after-ms"]) == ("in_progress", "50")


def test_done_is_not_asked_again(lasting: Any, ids: dict[str, str]) -> None:
    for path in (f"files/{ids['file_id']}", f"file_batches/{ids['batch_id']}"):
        answer = lasting.request("GET", f"/v1/vector_stores/{ids['store_id']}/{path}")
        assert "openai-poll-after-ms" not in answer.headers


def test_an_upload(lasting: Any, ids: dict[str, str]) -> None:
    upload = get(lasting, f"uploads/{ids['upload_id']}")
    assert list(upload) == [
        "object", "id", "bytes", "created_at", "expires_at", "filename", "purpose", "status", "file"
    ]  # fmt: skip
    assert (upload["status"], upload["file"]) == ("pending", None)
    large = {"files": {"data": ("part", b"a" * ((64 << 20) + 1))}}
    answer = lasting.request("POST", f"/v1/uploads/{ids['upload_id']}/parts", **large)
    assert answer.status_code in (400, 413), answer.text


def test_quotas_and_usage_are_the_tenants(opened: Any) -> None:
    keys = [{"name": t, "tenant": t, "role": "admin", "key": f"key-{t}"} for t in ("default", "a", "b")]
    house = opened(keys=keys)
    own = house.request("GET", "/v1/admin/quotas", key="key-a").json()
    assert (own["object"], own["tenant"], own["max_file_bytes"]) == ("quotas", "a", 50 << 20)
    of_a = {"params": {"tenant": "a"}, "key": "key-default"}
    assert post(house, "admin/quotas", {"max_stores": 1}, **of_a) == {**own, "max_stores": 1}
    post(house, "vector_stores", {}, key="key-a")
    told = post(house, "vector_stores", {}, 400, key="key-a")["error"]
    assert told["code"] == "quota_exceeded"
    assert "max_stores" in told["message"]
    usage = house.request("GET", "/v1/admin/usage", key="key-a").json()
    assert (usage["object"], usage["tenant"], usage["stores"], usage["files"]) == ("usage", "a", 1, 0)
    assert house.request("GET", "/v1/admin/usage", **of_a).json() == usage
    assert house.request("GET", "/v1/admin/usage", **{**of_a, "key": "key-b"}).status_code == 403
    post(house, "admin/quotas", {"max_stores": 9}, 403, key="key-a")
    tenants = house.request("GET", "/v1/admin/tenants", key="key-default").json()
    assert [(one["object"], one["name"]) for one in tenants["data"]] == [("tenant", "a")]
    beyond = house.request("GET", "/v1/admin/tenants", key="key-default", params={"after": "a"}).json()
    assert (beyond["data"], beyond["has_more"]) == ([], False)
    assert house.request("GET", "/v1/admin/tenants", key="key-a").status_code == 403
    assert post(house, "admin/quotas", {"max_stores": None}, **of_a) == own
    named = {"max_stores": 2, "tenant": own["tenant"]}
    assert post(house, "admin/quotas", named, **{**of_a, "params": {}}) == {**own, "max_stores": 2}
    assert (
        post(house, "admin/quotas", {**named, "tenant": "other"}, 400, **of_a)["error"]["param"] == "tenant"
    )
    assert post(house, "admin/quotas", {"max_stores": None}, **of_a) == own
    wrong: list[tuple[Any, str]] = [
        ({"max_store": 5}, "max_store"),
        ({"max_stores": -1}, "max_stores"),
        ({"max_stores": "5"}, "max_stores"),
    ]
    for body, param in wrong:
        assert post(house, "admin/quotas", body, 400, **of_a)["error"]["param"] == param


def test_who_may_do_what_with_a_store(opened: Any) -> None:
    keys = [{"name": u, "role": "member", "user": u, "key": f"key-{u}"} for u in ("ada", "bob", "cleo")]
    house = opened(keys=keys)
    store = post(house, "vector_stores", {"writers": ["bob"]}, key="key-ada")
    assert (store["owner"], store["writers"], store["sharing"]) == ("ada", ["bob"], "private")
    at = f"/v1/vector_stores/{store['id']}"

    def may(user: str) -> list[int]:
        upload = house.request("POST", f"{at}/files", key=f"key-{user}", files={"file": FILE}).status_code
        read = house.request("GET", at, key=f"key-{user}").status_code
        return [read, upload, house.request("DELETE", at, key=f"key-{user}").status_code]

    assert may("bob") == [200, 200, 403]
    assert may("cleo") == [404, 404, 404]
    post(house, f"vector_stores/{store['id']}", {"sharing": "tenant"}, key="key-ada")
    assert may("cleo") == [200, 403, 403]
    assert may("ada") == [200, 200, 200]


def test_unknown_parameters_are_ignored(lasting: Any, ids: dict[str, str]) -> None:
    """As OpenAI's clients expect; on our own routes they are named."""
    unknown = {"include[]": ["a", "b"], "beta": "1"}
    assert get(lasting, f"vector_stores/{ids['store_id']}/files", **unknown)["data"]
    answer = lasting.request("GET", "/v1/admin/usage", params=unknown)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "include[]")


def test_a_file_that_is_there_is_not_added_again(lasting: Any) -> None:
    ids = lasting.stock()
    at = f"vector_stores/{ids['store_id']}/files"
    before = get(lasting, f"{at}/{ids['file_id']}")
    assert post(lasting, at, {"file_id": ids["file_id"], "attributes": {"other": 1}}) == before
    assert get(lasting, f"vector_stores/{ids['store_id']}")["file_counts"]["total"] == 2


def test_a_store_for_everyone_is_read_by_all_and_filled_by_its_tenant(opened: Any) -> None:
    keys = [{"name": t, "tenant": t, "role": "admin", "key": f"key-{t}"} for t in ("a", "b")]
    house = opened(keys=keys)
    ids = house.stock(key="key-a")
    at = f"vector_stores/{ids['store_id']}"
    post(house, f"{at}/search", {"query": "kettle"}, 404, key="key-b")
    post(house, at, {"sharing": "everyone"}, key="key-a")
    assert post(house, f"{at}/search", {"query": "kettle"}, key="key-b")["data"]
    content = house.request("GET", f"/v1/{at}/files/{ids['file_id']}/content", key="key-b")
    assert content.json()["data"][0]["text"] == "the kettle is green"
    assert house.request("GET", f"/v1/files/{ids['file_id']}/content", key="key-b").status_code == 404
    own = house.request(
        "POST", "/v1/files", key="key-b", files={"file": FILE}, data={"purpose": "assistants"}
    )
    post(house, f"{at}/files", {"file_id": own.json()["id"]}, 403, key="key-b")
    for method, path in (("DELETE", at), ("DELETE", f"{at}/files/{ids['file_id']}")):
        assert house.request(method, f"/v1/{path}", key="key-b").status_code == 403
    assert house.request("GET", "/v1/vector_stores", key="key-b").json()["data"] == []


def test_static_means_its_numbers_and_auto_the_default(lasting: Any) -> None:
    """OpenAI's own 800 and 400, and the 512 and 50 of other servers, stay what they say."""
    for size, overlap in ((512, 50), (800, 400)):
        numbers = {"max_chunk_size_tokens": size, "chunk_overlap_tokens": overlap}
        asked = {"type": "static", "static": numbers}
        shown = post(lasting, "vector_stores", {"chunking_strategy": asked})["chunking_strategy"]
        assert shown == {**asked, "chunk_size": size, "chunk_overlap": overlap}
    for body in ({}, {"chunking_strategy": {"type": "auto"}}):
        assert post(lasting, "vector_stores", body)["chunking_strategy"] == {**STATIC, **SIZES}
