"""The OpenAPI document is valid, complete, and true."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs
import pytest

from memoranda.server.archives import ZIP
from memoranda.server.route import BINARY
from memoranda.server.routes import ROUTES
from support.valid_requests import valid_requests


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
            assert declared == set(re.findall(r"{(\w+)}", path))


def asked(house: Any, route: Any, ids: dict[str, str]) -> Any:
    """The answer to a request that is right; what a part was called is kept for those that complete it."""
    path = route.path
    for name, value in ids.items():
        path = path.replace(f"{{{name}}}", value)
    options = valid_requests(ids).get(route.name, {"json": {}} if route.body not in (None, bytes) else {})
    answer = house.request(route.method, path, **options)
    if route.path.endswith("/parts") and answer.status_code == 200:
        ids["part_id"] = answer.json()["id"]
    return answer


def test_answers_are_as_the_document_says(lasting: Any, document: dict[str, Any]) -> None:
    ids = {
        **lasting.stock(),
        "id": lasting.add("something to look at", tags=["a"], kind="fact"),
        "model": "hash-64",
    }
    other = lasting.stock()
    for route in ROUTES:
        if route.answer is None or "/jobs/" in route.path or route.method == "DELETE":
            continue
        if route.path == "/v1/archive":  # needs a key
            continue
        answer = asked(lasting, route, other if route.path.endswith("/cancel") else ids)
        assert answer.status_code == 200, (route.name, answer.text)
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

    embedding = [0.25] * 64
    ids = {**lasting.stock(), "id": lasting.add("look for my vector", embedding=embedding)}
    for route in ROUTES:
        if route.name == "POST /v1/embeddings" or route.path in ("/openapi.json", "/metrics"):
            continue
        answer = asked(lasting, route, ids)
        if route.media == ZIP:
            continue
        if route.media == BINARY:
            assert answer.content == b"the kettle is green"
            continue
        for line in answer.text.splitlines():
            assert not vectors(json.loads(line)), route.name


def unlimited(node: Any, schemas: dict[str, Any], path: str, seen: set[str]) -> list[str]:
    """The lists and mappings in a schema that have no limit."""
    if isinstance(node, list):
        return [one for item in node for one in unlimited(item, schemas, path, seen)]
    if not isinstance(node, dict):
        return []
    found = []
    types = node.get("type", ())
    types = [types] if isinstance(types, str) else types
    if "array" in types and "maxItems" not in node:
        found.append(path)
    if (
        "object" in types
        and isinstance(node.get("additionalProperties"), dict)
        and "maxProperties" not in node
    ):
        found.append(path)
    name = str(node.get("$ref", "")).rpartition("/")[2]
    if name and name not in seen:
        seen.add(name)
        found += unlimited(schemas[name], schemas, name, seen)
    for key, value in node.items():
        found += unlimited(value, schemas, f"{path}.{key}", seen)
    return found


def test_every_list_that_a_request_sends_has_a_limit(document: dict[str, Any]) -> None:
    schemas, seen = document["components"]["schemas"], set[str]()
    found = [
        one
        for path, item in document["paths"].items()
        for operation in item.values()
        for one in unlimited(operation.get("requestBody", {}), schemas, path, seen)
    ]
    assert found == [], "\n".join(found)


@pytest.mark.parametrize(
    ("path", "body", "param", "most"),
    [
        ("/v1/memories", {"content": "x", "source_refs": ["a"] * 1_001}, "source_refs", 1_000),
        ("/v1/memories", {"content": "x", "tags": ["a"] * 1_001}, "tags", 1_000),
        ("/v1/memories/search", {"query": "x", "scopes": ["global"] * 1_001}, "scopes", 1_000),
        ("/v1/memories/search", {"query": "x", "tags": ["a"] * 1_001}, "tags", 1_000),
        ("/v1/memories/search", {"query": "x", "hierarchy": {str(n): "a" for n in range(9)}}, "hierarchy", 8),
        ("/v1/context", {"query": "x", "exclude": ["a"] * 10_001}, "exclude", 10_000),
        ("/v1/responses", {"input": "x", "include": ["a"] * 65}, "include", 64),
        ("/v1/vector_stores/search", {"query": ["a"] * 33, "vector_store_ids": ["a"]}, "query", 32),
    ],
)
def test_a_list_that_is_too_long_is_refused_with_its_limit(
    lasting: Any, path: str, body: dict[str, Any], param: str, most: int
) -> None:
    answer = lasting.request("POST", path, json=body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["param"] == param
    assert f"send at most {most}" in error["message"]
