"""`/retrieval`: Dify finds what is in vector stores, with its conditions and its error codes."""

from __future__ import annotations

from typing import Any

import pytest

KEYS = [
    {"name": "admin", "role": "admin", "key": "key-admin"},
    {"name": "other", "role": "admin", "tenant": "other", "key": "key-other"},
]
FILES = {
    "green": ("The kettle is green.", {"year": 2020, "lang": "en", "day": "2024-01-01"}),
    "red": ("The kettle is red.", {"year": 2022, "lang": "de"}),
    "loud": ("The kettle is loud.", {"year": 2024, "note": "x"}),
}


@pytest.fixture(scope="module")
def stocked(houses: Any) -> Any:
    """A server with the files above in a store named `papers`, and two stores named `twice`."""
    house = houses(keys=KEYS)

    def made(path: str, **options: Any) -> Any:
        answer = house.request("POST", f"/v1/{path}", key="key-admin", **options)
        assert answer.status_code == 200, answer.text
        return answer.json()["id"]

    store = made("vector_stores", json={"name": "papers"})
    for name, (text, attributes) in FILES.items():
        upload = {"files": {"file": (f"{name}.txt", text.encode())}, "data": {"purpose": "assistants"}}
        file = made("files", **upload)
        made(f"vector_stores/{store}/files", json={"file_id": file, "attributes": attributes})
    house.settled(store, key="key-admin")
    for _ in range(2):
        made("vector_stores", json={"name": "twice"})
    house.store = store
    return house


def retrieve(house: Any, status: int = 200, key: str = "key-admin", **body: Any) -> Any:
    sent = {"knowledge_id": "papers", "query": "kettle", "retrieval_setting": {"top_k": 5}, **body}
    answer = house.request("POST", "/retrieval", key=key, json=sent)
    assert answer.status_code == status, answer.text
    return answer.json()


def names(answer: Any) -> set[str]:
    return {record["metadata"]["filename"].removesuffix(".txt") for record in answer["records"]}


def test_a_store_is_found_by_id_and_by_name(stocked: Any) -> None:
    by_name = retrieve(stocked, query="The kettle is green.")
    assert by_name == retrieve(stocked, query="The kettle is green.", knowledge_id=stocked.store)
    first = by_name["records"][0]
    assert (first["content"], first["title"]) == ("The kettle is green.", "green.txt")
    assert 0 < first["score"] <= 1
    assert first["metadata"]["year"] == 2020
    assert first["metadata"]["vector_store_id"] == stocked.store


def test_a_store_that_has_expired_has_no_name(stocked: Any) -> None:
    made = {"name": "papers", "expires_after": {"anchor": "last_active_at", "days": 1}}
    id_ = stocked.request("POST", "/v1/vector_stores", key="key-admin", json=made).json()["id"]
    assert "2 vector stores" in retrieve(stocked, 400)["error_msg"]
    sql = "UPDATE vector_stores SET last_active_at = last_active_at - 86400000000 WHERE id = ? RETURNING 1"
    stocked.memoranda.core.store.db.write(lambda c: c.select(sql, [id_])).result()
    assert retrieve(stocked)["records"][0]["metadata"]["vector_store_id"] == stocked.store
    stocked.request("DELETE", f"/v1/vector_stores/{id_}", key="key-admin")


def test_the_setting_bounds_the_records(stocked: Any) -> None:
    asked = {"top_k": 1, "score_threshold": 0.0}
    assert len(retrieve(stocked, retrieval_setting=asked)["records"]) == 1
    asked = {"top_k": 5, "score_threshold": 1.0}
    assert retrieve(stocked, query="nothing alike", retrieval_setting=asked)["records"] == []


@pytest.mark.parametrize(
    ("name", "operator", "value", "found"),
    [
        ("lang", "is", "en", "green"),
        (["lang"], "is not", "en", "red loud"),
        ("lang", "in", ["en", "de"], "green red"),
        ("lang", "not in", ["en", "de"], "loud"),
        ("note", "empty", None, "green red"),
        ("note", "not empty", None, "loud"),
        ("note", "not null", None, "loud"),
        ("year", "=", "2020", "green"),
        ("year", "≠", 2020, "red loud"),
        ("year", ">", 2020, "red loud"),
        ("year", "≥", "2022", "red loud"),
        ("year", "<", 2022, "green"),
        ("year", "≤", 2022, "green red"),
        ("day", "before", "2024-02-01", "green"),
        ("day", "after", "2024-02-01", ""),
    ],
)
def test_conditions(stocked: Any, name: Any, operator: str, value: Any, found: str) -> None:
    condition = {"name": name, "comparison_operator": operator, "value": value}
    assert names(retrieve(stocked, metadata_condition={"conditions": [condition]})) == set(found.split())


def test_conditions_are_joined(stocked: Any) -> None:
    two = [
        {"name": "lang", "comparison_operator": "is", "value": "en"},
        {"name": "year", "comparison_operator": ">", "value": 2022},
    ]
    either = {"logical_operator": "or", "conditions": two}
    assert names(retrieve(stocked, metadata_condition=either)) == {"green", "loud"}
    assert names(retrieve(stocked, metadata_condition={"conditions": two})) == set()


def test_error_codes(stocked: Any) -> None:
    answer = stocked.request("POST", "/retrieval", headers={"authorization": "key-admin"}, json={})
    assert (answer.status_code, answer.json()["error_code"]) == (401, 1001)
    assert retrieve(stocked, 401, key="nope")["error_code"] == 1002
    for unknown in ("nope", "a\x00b"):
        failure = retrieve(stocked, 404, knowledge_id=unknown)
        assert (failure["error_code"], failure["error_msg"]) == (2001, failure["error"]["message"])
    assert retrieve(stocked, 404, key="key-other", knowledge_id=stocked.store)["error_code"] == 2001
    failure = retrieve(stocked, 400, knowledge_id="twice")
    assert (failure["error_code"], failure["error"]["param"]) == (400, "knowledge_id")
    failure = retrieve(stocked, 400, retrieval_setting={"top_k": 0})
    assert failure["error"]["param"] == "retrieval_setting.top_k"


@pytest.mark.parametrize(
    ("condition", "field"),
    [
        ({"name": "lang", "comparison_operator": "contains", "value": "e"}, "comparison_operator"),
        ({"name": "lang", "comparison_operator": "like", "value": "e"}, "comparison_operator"),
        ({"name": "year", "comparison_operator": ">", "value": "many"}, "value"),
        ({"name": "lang", "comparison_operator": "in", "value": "en"}, "value"),
        ({"name": "lang", "comparison_operator": "is"}, "value"),
        ({"name": "$user_id", "comparison_operator": "is", "value": "x"}, "name"),
    ],
)
def test_a_condition_that_cannot_be_is_named(stocked: Any, condition: Any, field: str) -> None:
    failure = retrieve(stocked, 400, metadata_condition={"conditions": [condition]})
    assert failure["error"]["param"] == f"metadata_condition.conditions[0].{field}"
