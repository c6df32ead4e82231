"""The verbs over HTTP: what comes back, and under which names things may be asked."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from starlette.datastructures import Headers

from memoranda.providers.chat.base import chat_models
from memoranda.server.inputs import accepts_gzip
from support.exports import undated
from support.waiting import until


def post(house: Any, path: str, **body: Any) -> dict[str, Any]:
    answer = house.request("POST", f"/v1/memories{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_one_memory_through_its_life(house: Any) -> None:
    made = post(house, "", content="the kettle is green", tags=["kitchen"], metadata={"n": 1}, user_id="ada")
    assert (made["object"], made["created"], made["embedded"], made["scope"]) == (
        "memory",
        True,
        True,
        "user",
    )
    again = post(house, "", content="the kettle is green", user_id="ada")
    assert (again["id"], again["created"]) == (made["id"], False)
    at = f"/v1/memories/{made['id']}"
    changed = house.request("PATCH", at, json={"tags": ["house"], "source": None}).json()
    assert changed["tags"] == ["house"]
    assert changed["metadata"] == {"n": 1}
    assert (
        house.request("POST", at, json={"content": "the kettle is blue"}).json()["content"].endswith("blue")
    )
    assert house.request("GET", at).json()["content"] == "the kettle is blue"
    assert house.request("DELETE", at).json() == {
        "object": "memory.deleted",
        "id": made["id"],
        "deleted": True,
    }
    assert house.request("GET", at).status_code == 404


def test_a_batch_answers_in_order_and_counts_what_was_new(house: Any) -> None:
    house.add("one")
    held = post(house, "/batch", memories=[{"content": "zero"}, {"content": "one"}, {"content": "two"}])
    assert [one["content"] for one in held["data"]] == ["zero", "one", "two"]
    assert (held["object"], held["created"], held["present"]) == ("list", 2, 1)
    assert (held["first_id"], held["last_id"]) == (held["data"][0]["id"], held["data"][-1]["id"])


def test_a_batch_with_one_mistake_writes_nothing_and_names_it(house: Any) -> None:
    memories = [{"content": "fine"}, {"content": "x", "tags": ["a", ""]}]
    answer = house.request("POST", "/v1/memories/batch", json={"memories": memories})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "memories[1].tags[1]"
    assert post(house, "/count")["count"] == 0


def test_pages_are_complete_in_both_orders(house: Any) -> None:
    ids = [house.add(f"memory {i}", session_id="s" if i % 2 else None) for i in range(7)]
    for order, expected in (("asc", ids), ("desc", ids[::-1])):
        seen: list[str] = []
        after: dict[str, str] = {}
        while True:
            params = {"limit": "3", "order": order, **after}
            page = house.request("GET", "/v1/memories", params=params).json()
            seen += [one["id"] for one in page["data"]]
            if not page["has_more"]:
                break
            after = {"after": page["last_id"]}
        assert seen == expected
    page = house.request("GET", "/v1/memories", params={"before": ids[2], "order": "asc"}).json()
    assert [one["id"] for one in page["data"]] == ids[:2]


def test_a_listing_is_filtered_by_repeated_parameters_and_json(house: Any) -> None:
    house.add("a", tags=["x", "y"], metadata={"n": 1}, session_id="s,1")
    house.add("b", tags=["x"], metadata={"n": 2}, channel_id="c")
    house.add("c", tags=["x"])

    def listed(*params: tuple[str, str]) -> list[str]:
        answer = house.request("GET", "/v1/memories", params=[*params, ("order", "asc")])
        assert answer.status_code == 200, answer.text
        return [one["content"] for one in answer.json()["data"]]

    assert listed(("tags", "x"), ("tags", "y")) == ["a"]
    assert listed(("scopes", "session:s,1"), ("scopes", "channel:c")) == ["a", "b"]
    assert listed(("scope", "session"), ("scope_id", "s,1")) == ["a"]
    assert listed(("filters", json.dumps({"type": "gt", "key": "n", "value": 1}))) == ["b"]
    assert listed(("until", "2000-01-01T00:00:00Z")) == []
    assert listed(("include_archived", "true")) == ["a", "b", "c"]


def test_a_search_answers_with_both_scores_and_totals(house: Any) -> None:
    house.add("the kettle is green", session_id="s")
    house.add("the car is red")
    found = post(house, "/search", query="green kettle", explain=True)
    assert found["object"] == "memory.search_results"
    assert found["total_count"] == len(found["results"]) > 0
    assert found["query_time"] > 0
    assert found["degraded"] == []
    hit = found["results"][0]
    assert (hit["object"], hit["memory"]["object"]) == ("memory.search_result", "memory")
    assert hit["memory"]["content"] == "the kettle is green"
    assert 0 < hit["similarity"] <= 1
    assert hit["explanation"]["formula"]
    by_alias = post(house, "/search", query="kettle", scope="session", scope_id="s", limit=5, threshold=0)
    by_name = post(house, "/search", query="kettle", scopes=["session:s"], limit=5, threshold=0)
    assert by_alias["results"] == by_name["results"]
    assert [hit["memory"]["content"] for hit in by_alias["results"]] == ["the kettle is green"]


def test_a_search_without_a_limit_takes_the_configured_one(opened: Any) -> None:
    house = opened(search={"default_limit": 2})
    for i in range(4):
        house.add(f"kettle {i}")
    assert len(post(house, "/search", query="kettle")["results"]) == 2


def test_an_embedding_is_taken_as_floats_or_base64_alike(house: Any) -> None:
    vector = np.arange(64, dtype="<f4") / 7
    encoded = base64.b64encode(vector.tobytes()).decode()
    post(house, "", content="by floats", embedding=vector.tolist())
    post(house, "", content="by base64", embedding=encoded)
    lines = house.request("GET", "/v1/memories/export", params={"vectors": "true"}).text.splitlines()[1:]
    held = [json.loads(line)["embeddings"][0]["vector"] for line in lines]
    assert held == [encoded, encoded]


def test_forgetting_must_name_something(house: Any) -> None:
    house.add("a")
    for body in ({}, {"tags": []}, {"filters": {}}, {"include_archived": True}, {"scopes": None}):
        answer = house.request("POST", "/v1/memories/forget", json=body)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "scopes"), body
    answer = house.request("POST", "/v1/memories/forget", json={"ids": ["x"], "scopes": ["all"]})
    assert answer.json()["error"]["param"] == "ids"
    assert post(house, "/count")["count"] == 1
    receipt = post(house, "/forget", scopes=["all"])
    assert (receipt["object"], receipt["memories"]) == ("memory.receipt", 1)
    assert post(house, "/count")["count"] == 0


def test_an_export_goes_in_again_unchanged(opened: Any) -> None:
    first, second = opened(), opened()
    for i in range(5):
        first.add(f"memory {i}", tags=[str(i)], session_id="s")
    out = first.request("POST", "/v1/memories/export", json={"scopes": ["session:s"]})
    assert out.headers["content-type"].startswith("application/x-ndjson")
    took = second.request("POST", "/v1/memories/import", content=out.content).json()
    assert (took["object"], took["read"], took["created"]) == ("memory.import", 5, 5)
    took = second.request("POST", "/v1/memories/import", content=out.content).json()
    assert (took["created"], took["present"]) == (0, 5)
    imported = undated(out.content).replace(b'"origin":"user"', b'"origin":"import"')
    assert undated(second.request("GET", "/v1/memories/export").content) == imported
    moved = second.request("POST", "/v1/memories/import", params={"scope": "global"}, content=out.content)
    assert (moved.json()["created"], moved.json()["conflicts"]) == (5, [])
    again = second.request("POST", "/v1/memories/import", params={"scope": "global"}, content=out.content)
    assert (again.json()["created"], again.json()["present"], again.json()["conflicts"]) == (0, 5, [])


def test_long_work_is_a_job(house: Any) -> None:
    house.add("a")
    for path, body in (("/reembed", {"everything": True}), ("/compact", {})):
        job = post(house, path, **body)
        assert job["object"] == "job"
        ended = house.portal.call(house.memoranda.memories.wait(job["id"]))
        assert ended.state == "completed"
        assert house.request("GET", f"/v1/jobs/{job['id']}").json()["state"] == "completed"
        assert house.request("POST", f"/v1/jobs/{job['id']}/cancel").json()["state"] == "completed"
    listed = house.request("GET", "/v1/jobs").json()
    assert [job["kind"] for job in listed["data"]] == ["store.compact", "memories.embed"]
    assert house.request("GET", "/v1/jobs/nope").status_code == 404


def test_near_duplicates_are_pairs(house: Any) -> None:
    house.add("the green kettle stands in the kitchen")
    house.add("the green kettle stands in the kitchen now")
    page = post(house, "/near_duplicates")
    assert [pair["object"] for pair in page["data"]] == ["memory.near_duplicate"]
    assert (page["object"], page["compared"], page["has_more"]) == ("list", 2, False)
    older = post(house, "/near_duplicates", after=page["last_id"])
    assert (older["data"], older["compared"]) == ([], 0)


def test_a_projection_has_a_point_for_each_memory(house: Any) -> None:
    for text in ("the green kettle", "the red fence", "the blue door"):
        house.add(text)
    shown = post(house, "/projection")
    assert (shown["object"], shown["total"], shown["kinds"]) == ("memory.projection", 3, ["note"] * 3)
    assert [len(point) for point in shown["points"]] == [2, 2, 2]


@pytest.mark.parametrize(
    ("header", "accepts"),
    [
        ("", False),
        ("br", False),
        ("x-gzip2", False),
        ("gzip", True),
        ("br, GZIP ; q=0.5", True),
        ("gzip;q=1.0, identity;q=0", True),
        ("gzip;q=0", False),
        ("deflate, gzip; q=0.000 ,br", False),
    ],
)
def test_codings_that_a_client_accepts(header: str, accepts: bool) -> None:
    assert accepts_gzip(Headers({"accept-encoding": header})) is accepts


def test_a_large_answer_is_compressed_for_clients_that_accept_it(house: Any) -> None:
    said = [{"content": f"fence {n}", "user_id": f"user{n}", "kind": "fact"} for n in range(300)]
    house.request("POST", "/v1/memories/batch", json={"memories": said})
    until(lambda: len(post(house, "/projection", scopes=["all"])["ids"]) == 300, "the vectors")
    for method, path, asked in (
        ("POST", "/projection", {"json": {"scopes": ["all"]}}),
        ("GET", "/timeline", {"params": {"scopes": "all", "limit": 100}}),
    ):
        plain, packed = (
            house.request(method, f"/v1/memories{path}", headers={"accept-encoding": coding}, **asked)
            for coding in ("gzip;q=0, br", "deflate, gzip")
        )
        assert "content-encoding" not in plain.headers
        assert packed.headers["content-encoding"] == "gzip"
        assert plain.headers["vary"] == packed.headers["vary"] == "accept-encoding"
        assert packed.json() == plain.json()
        assert int(packed.headers["content-length"]) < 0.4 * int(plain.headers["content-length"])


@pytest.mark.parametrize("id_", ["a/b", "ü", "%2F", "a b?c#d", "x" * 256])
def test_any_id_can_be_asked_for(house: Any, id_: str) -> None:
    house.add("a", id=id_)
    assert house.request("GET", f"/v1/memories/{quote(id_, safe='')}").json()["id"] == id_


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("gpt-5-mini", True), ("qwen3:8b", True), ("meta-llama/Llama-3.1-8B-Instruct", True), ("o3", True),
        ("text-embedding-3-small", False), ("nomic-embed-text:latest", False), ("whisper-1", False), ("tts-1", False),
        ("dall-e-3", False), ("omni-moderation-latest", False), ("BAAI/bge-m3", False), ("davinci-002", False),
    ],
)  # fmt: skip
def test_models_that_answer_are_known_by_their_names(name: str, answers: bool) -> None:
    assert (name in chat_models([name], "own")) is answers


def test_embeddings_and_models(house: Any) -> None:
    models = house.request("GET", "/v1/models").json()
    assert [model["id"] for model in models["data"]] == ["extractive", "hash-64"]
    assert house.request("GET", "/v1/models/hash:64").json() == models["data"][1]
    body = {"model": "hash-64", "input": ["a", "b"], "unknown_field": 1, "user": "u"}
    held = house.request("POST", "/v1/embeddings", json=body).json()
    assert [len(one["embedding"]) for one in held["data"]] == [64, 64]
    assert held["usage"] == {"prompt_tokens": 2, "total_tokens": 2}
