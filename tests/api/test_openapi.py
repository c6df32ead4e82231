"""The OpenAPI document is valid, complete, and true."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from recollect.api.routes import ROUTES


@pytest.fixture(scope="module")
def document(lasting: Any) -> dict[str, Any]:
    return lasting.request("GET", "/openapi.json").json()


def refs(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [ref for item in node.values() for ref in refs(item)]
    return [ref for item in node for ref in refs(item)] if isinstance(node, list) else []


def test_every_route_is_there_once(document: dict[str, Any]) -> None:
    there = {f"{method.upper()} {path}" for path, item in document["paths"].items() for method in item}
    assert there == {route.name for route in ROUTES}
    ids = [operation["operationId"] for item in document["paths"].values() for operation in item.values()]
    assert len(set(ids)) == len(ids)


def test_every_reference_leads_somewhere_and_every_schema_is_one(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert {ref.rpartition("/")[2] for ref in refs(document)} <= set(schemas)
    for name, schema in schemas.items():
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
        assert schema.get("description") or name in ("Problem",), f"{name} has no description"


def test_path_parameters_are_declared(document: dict[str, Any]) -> None:
    for path, item in document["paths"].items():
        for operation in item.values():
            declared = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
            assert declared == ({path.partition("{")[2].partition("}")[0]} if "{" in path else set())


def test_answers_are_as_the_document_says(lasting: Any, document: dict[str, Any]) -> None:
    id_ = lasting.add("something to look at", tags=["a"])
    bodies = {
        "POST /v1/memories": {"content": "more"},
        "POST /v1/memories/batch": {"memories": [{"content": "most"}]},
        "POST /v1/memories/search": {"query": "something", "explain": True},
        "POST /v1/memories/forget": {"ids": ["x"]},
        "POST /v1/embeddings": {"model": "hash-64", "input": "a"},
        "POST /v1/memories/move_index": {"to": "memory:?engine=float"},
    }
    for route in ROUTES:
        if route.answer is None or "/jobs/" in route.path or route.method == "DELETE":
            continue
        path = route.path.replace("{id}", id_).replace("{model}", "hash-64")
        body = bodies.get(route.name, {} if route.body not in (None, bytes) else None)
        answer = lasting.request(route.method, path, json=body)
        assert answer.status_code == 200, answer.text
        told = document["paths"][route.path][route.method.lower()]["responses"]["200"]["content"]
        schema = {**told[route.media]["schema"], "components": document["components"]}
        jsonschema_rs.validator_for(schema).validate(answer.json())


def test_no_answer_holds_an_embedding(lasting: Any) -> None:
    """No key named so, and no list of numbers as long as one, but where a text's own embedding was asked for."""

    def vectors(value: Any) -> bool:
        if isinstance(value, dict):
            return any(key in ("embedding", "embeddings", "vector") or vectors(v) for key, v in value.items())
        if isinstance(value, list):
            return (len(value) >= 32 and all(isinstance(v, float) for v in value)) or any(map(vectors, value))
        return False

    id_ = lasting.add("look for my vector", embedding=[0.25] * 64)
    query = {"query": "vector", "explain": True, "limit": 50}
    bodies = {
        "POST /v1/memories": {"content": "look for my vector", "embedding": [0.25] * 64},
        "POST /v1/memories/batch": {"memories": [{"content": "b", "embedding": [0.25] * 64}]},
        "POST /v1/memories/search": query,
        "POST /v1/memories/forget": {"ids": ["x"]},
    }
    for route in ROUTES:
        if route.name == "POST /v1/embeddings" or route.path in ("/openapi.json", "/metrics"):
            continue
        path = route.path.replace("{id}", id_)
        body = bodies.get(route.name, {} if route.body not in (None, bytes) else None)
        answer = lasting.request(route.method, path, json=body)

        for line in answer.text.splitlines():
            assert not vectors(json.loads(line)), route.name
