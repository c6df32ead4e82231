"""Memories as entries of a vector memory, with nested metadata."""

from __future__ import annotations

from typing import Any

AT = "/v1/memories/entries"
ENTRY = {
    "id": "e1",
    "session_id": "s",
    "content": "The kettle is green.",
    "metadata": {"source": "message", "role": "user", "tags": ["kitchen"], "extra": {"page": 3}},
    "created_at": "2024-05-01T12:00:00Z",
    "updated_at": "2024-05-02T12:00:00Z",
}


def test_an_entry_comes_back_as_it_went(opened: Any) -> None:
    house = opened()
    bare = {"content": "The car is red.", "scope_id": ""}
    assert house.request("POST", AT, json={"entries": [ENTRY, bare]}).status_code == 400
    bare = {
        "content": "The car is red.",
        "session_id": "",
        "metadata": {"source": "", "tags": None, "extra": None},
    }
    made = house.request("POST", AT, json={"entries": [ENTRY, bare]}).json()["entries"]
    assert made[0] == ENTRY | {"updated_at": made[0]["updated_at"]}
    assert set(made[1]) == {"id", "content", "metadata", "created_at", "updated_at"}
    assert made[1]["metadata"] == {"source": "note", "role": "", "tags": [], "extra": {}}

    kept = house.request("GET", "/v1/memories/e1").json()
    assert (kept["kind"], kept["role"], kept["tags"], kept["metadata"]) == (
        "message",
        "user",
        ["kitchen"],
        {"page": 3},
    )

    def search(**fields: Any) -> Any:
        return house.request("POST", f"{AT}/search", json={"query": "green kettle", **fields}).json()

    found = search(scope="session", scope_id="s", limit=0, threshold=0, filters={"page": 3})
    assert set(found) == {"results", "total_count", "query_time"}
    assert isinstance(found["query_time"], int)
    (hit,) = found["results"]
    assert (hit["entry"], hit["highlights"]) == (made[0], ["The kettle is green."])
    assert [one["entry"]["content"] for one in search(scope="global", scope_id="")["results"]] == [
        "The car is red."
    ]
    assert search(scope="", scope_id="", filters={})["total_count"] == 2
    assert search(scope="session", scope_id="")["error"]["param"] == "scope"


def test_an_empty_scope_id_is_none_in_every_search(opened: Any) -> None:
    house = opened()
    house.request("POST", "/v1/memories", json={"content": "The car is red."})
    asked = {"query": "car", "scope": "global", "scope_id": ""}
    assert house.request("POST", "/v1/memories/search", json=asked).json()["total_count"] == 1
    wrong = house.request("POST", AT, json={"entries": [{"content": "x", "metadata": {"tags": "a"}}]})
    assert wrong.json()["error"]["param"] == "entries[0].metadata.tags"


def test_errors_name_fields_as_entries_do(opened: Any) -> None:
    house = opened(limits={"max_batch": 2, "max_tags": 1, "max_metadata_bytes": 50})

    def wrong(*entries: dict[str, Any]) -> Any:
        answer = house.request("POST", AT, json={"entries": [*entries]})
        assert answer.status_code == 400
        return answer.json()["error"]

    error = wrong(*[{"content": text} for text in "abc"])
    assert (error["param"], error["message"]) == ("entries", "entries: holds 3, at most 2 go in one batch")
    tagged = {"content": "a", "metadata": {"tags": ["a", "b"]}}
    assert wrong(tagged)["param"] == "entries[0].metadata.tags"
    assert wrong({"content": "b"}, tagged)["param"] == "entries[1].metadata.tags"
    assert (
        wrong({"content": "b", "metadata": {"extra": {"a": "b" * 60}}})["param"]
        == "entries[0].metadata.extra"
    )
