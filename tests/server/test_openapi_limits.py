"""What the OpenAPI document allows, the server accepts: each field is sent with values at and beyond its limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from msgspec import inspect

from memoranda.errors import InvalidInput
from memoranda.server.inputs import from_json
from memoranda.server.routes import ROUTES
from memoranda.validation.nodes import alternatives, structs_in
from support.document_probes import Prober
from support.valid_requests import valid_requests

ROUTE_BY_NAME = {route.name: route for route in ROUTES}
IN_GATE = (
    "POST /v1/memories",
    "POST /v1/memories/entries",
    "POST /v1/memories/entries/search",
    "POST /v1/sessions/{session_id}/summary",
    "POST /v1/messages",
    "POST /v1/context",
    "POST /v1/agents",
    "POST /v1/vector_stores",
)
"""Routes that are probed without the handlers: their bodies alone, as far as the types check them."""
DEPENDS = {
    "after": "a cursor is an id of the list",
    "before": "a cursor is an id of the list",
    "bytes": "the quota of a tenant",
    "chunking_strategy": "an overlap is at most half of the size",
    "files[0].chunking_strategy": "an overlap is at most half of the size",
    "dimensions": "the model",
    "embedding": "padding of base64",
    "memories[0].embedding": "padding of base64",
    "filters": "in a query string filters are JSON",
    "input": "tokens of the model",
    "input[0]": "tokens of the model",
    "input[0][0]": "tokens of the model",
    "part_ids": "ids of the upload's parts",
    "part_ids[0]": "ids of the upload's parts",
    "md5": "ids of the upload's parts",
    "previous_response_id": "an id of a response",
    "query": "`question` and `query` are two names of one field",
    "question": "`question` and `query` are two names of one field",
    "scope_id": "parameters of a query string have no constraints between them",
    "scope": "parameters of a query string have no constraints between them",
    "tool_choice": "names a tool of the request",
    "tools": "two tools of an agent are not the same",
}
"""Fields whose values are refused for reasons that no schema states."""


@pytest.fixture(scope="module")
def ids(lasting: Any) -> dict[str, str]:
    return {**lasting.stock(), "id": lasting.add("something to look at"), "model": "hash-64", "part_id": "x"}


@pytest.fixture(scope="module")
def document(lasting: Any) -> dict[str, Any]:
    return lasting.request("GET", "/openapi.json").json()


def body_schema(document: dict[str, Any], route: Any) -> dict[str, Any]:
    operation = document["paths"][route.path][route.method.lower()]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    return {**schema, "components": document["components"]}


def probed(document: dict[str, Any], ids: dict[str, str], route: Any) -> Iterator[tuple[str, Any, bool]]:
    """The place of each probe, its body, and whether the document allows it."""
    schema = body_schema(document, route)
    validator = jsonschema_rs.validator_for(schema)
    base = valid_requests(ids).get(route.name, {}).get("json", {})
    assert validator.is_valid(base), route.name
    for place, body in Prober(document).probes(schema, base):
        yield place, body, validator.is_valid(body)


@pytest.mark.parametrize("name", IN_GATE)
def test_the_document_refuses_what_the_types_refuse(
    document: dict[str, Any], ids: dict[str, str], name: str
) -> None:
    route = ROUTE_BY_NAME[name]
    missed, count = [], 0
    for place, body, allowed in probed(document, ids, route):
        count += 1
        if allowed:
            try:
                from_json(msgspec.json.encode(body), route.body)
            except InvalidInput as exc:
                missed.append((place, str(exc)))
    assert count > 50
    assert missed == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "route", [one for one in ROUTES if one.body not in (None, bytes)], ids=lambda one: one.name
)
def test_the_server_accepts_what_the_document_allows(
    lasting: Any, document: dict[str, Any], ids: dict[str, str], route: Any
) -> None:
    path = route.path
    for name, value in ids.items():
        path = path.replace(f"{{{name}}}", value)
    refused = []
    for place, body, allowed in probed(document, ids, route):
        if allowed and place not in DEPENDS:
            answer = lasting.request(route.method, path, json=body)
            if answer.status_code in (400, 413, 422) or answer.status_code >= 500:
                refused.append((place, answer.json()["error"]["message"]))
    assert refused == []


def test_limits_of_the_configuration_are_in_the_document(opened: Any) -> None:
    house = opened(limits={"max_tags": 3, "max_batch": 7, "max_content_bytes": 50, "max_query_chars": 9})
    schemas = house.request("GET", "/openapi.json").json()["components"]["schemas"]
    memory = schemas["NewMemoryBody"]["properties"]
    assert memory["tags"]["maxItems"] == 3
    assert memory["content"]["maxLength"] == 50
    assert schemas["BatchBody"]["properties"]["memories"]["maxItems"] == 7
    assert schemas["SearchBody"]["properties"]["query"]["maxLength"] == 9
    vector = memory["embedding"]["anyOf"][0]
    assert (vector["minItems"], vector["maxItems"]) == (64, 64)
    assert "x-configured" not in str(schemas)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"id": ""}, "id: must be 1 to 256 characters, without NUL, not ''"),
        ({"id": "a" * 257}, "id: must be 1 to 256 characters, without NUL"),
        ({"content": " "}, "content: must hold some text, without NUL characters, not ' '"),
        ({"importance": 2_000}, "importance: must be between -1000 and 1000, not 2000"),
        ({"confidence": 1.5}, "confidence: must be between 0 and 1, not 1.5"),
        ({"tags": ["a", ""]}, "tags[1]: must be 1 to 256 characters, without NUL, not ''"),
    ],
)
def test_a_limit_is_one_sentence(lasting: Any, body: dict[str, Any], message: str) -> None:
    answer = lasting.request("POST", "/v1/memories", json={"content": "x", **body})
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, message)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"scopes": ["session"]}, "scopes[0]"),
        ({"scopes": []}, "scopes"),
        ({"scope": "session"}, "scope"),
        ({"scope": "session", "scope_id": ""}, "scope"),
        ({"scope": "", "scope_id": "a"}, "scope_id"),
        ({"scope": "global", "scope_id": "a"}, "scope"),
        ({"scope_id": "a"}, "scope_id"),
        ({"scope": "global", "scopes": ["global"]}, "scope"),
        ({"scopes": ["global"], "hierarchy": {"user": "a"}}, "hierarchy"),
        ({"limit": 1_001}, "limit"),
        ({"threshold": -0.1}, "threshold"),
    ],
)
def test_document_and_server_refuse_alike(
    lasting: Any, document: dict[str, Any], body: dict[str, Any], param: str
) -> None:
    route = ROUTE_BY_NAME["POST /v1/memories/search"]
    asked = {"query": "x", **body}
    assert not jsonschema_rs.validator_for(body_schema(document, route)).is_valid(asked)
    answer = lasting.request("POST", "/v1/memories/search", json=asked)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("POST /v1/memories/search", {"query": "x", "scope": "global", "scope_id": ""}),
        ("POST /v1/memories/search", {"query": "x", "scope": "", "scope_id": "", "scopes": ["global"]}),
        ("POST /v1/memories/count", {"scope": "session", "scope_id": ""}),
        ("POST /v1/memories/count", {"scopes": ["session", "user"]}),
        ("POST /v1/memories/entries/search", {"query": "x", "scope": "", "scope_id": "", "limit": 0}),
        ("POST /v1/context", {"query": "x", "scopes": ["global"], "session_id": ""}),
    ],
)
def test_document_and_server_accept_alike(
    lasting: Any, document: dict[str, Any], route: str, body: dict[str, Any]
) -> None:
    assert jsonschema_rs.validator_for(body_schema(document, ROUTE_BY_NAME[route])).is_valid(body)
    method, path = route.split()
    assert lasting.request(method, path, json=body).status_code == 200


@pytest.mark.parametrize("scope", ["session", "user:"])
def test_only_listings_and_counts_take_a_scope_without_an_id(lasting: Any, scope: str) -> None:
    for path, body in (
        ("/v1/memories/search", {"query": "x"}),
        ("/v1/memories/forget", {}),
        ("/v1/context", {"query": "x"}),
        ("/v1/memories/consolidate", {}),
    ):
        answer = lasting.request("POST", path, json={**body, "scopes": [scope]})
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "scopes[0]"), path


def test_a_date_alone_is_its_midnight_in_utc(lasting: Any) -> None:
    days = ("2026-03-01T23:59:59Z", "2026-03-02", "2026-03-02T00:00:00+00:00", "2026-03-02T10:00")
    for day in days:
        lasting.add(f"said at {day}", occurred_at=day, channel_id="days")
    asked = {"scope": "channel", "scope_id": "days", "since": "2026-03-02"}
    assert lasting.request("POST", "/v1/memories/count", json=asked).json()["count"] == 3
    assert len(lasting.request("GET", "/v1/memories", params=asked).json()["data"]) == 3
    asked = {**asked, "since": "2026-03-01", "until": "2026-03-02"}
    assert lasting.request("POST", "/v1/memories/count", json=asked).json()["count"] == 1
    answer = lasting.request("POST", "/v1/memories/count", json={"since": "soon"})
    says = "since: must be a date, or a date and time, such as 2024-05-01 or 2024-05-01T12:00:00Z"
    assert answer.json()["error"]["message"] == says


def test_no_pattern_shares_a_union_with_a_container() -> None:
    """msgspec frees such a pattern as if it were a type: collecting the struct crashes the interpreter."""
    bodies = [route.body for route in ROUTES if route.body not in (None, bytes)]
    bodies += [route.query for route in ROUTES if route.query is not None]
    structs = {struct: None for body in bodies for struct in structs_in(body)}
    assert len(structs) > 50
    unsafe = [
        f"{struct.__name__}.{field.name}"
        for struct in structs
        for field in inspect.type_info(struct).fields  # type: ignore[attr-defined]
        if any(_crashes(union) for union in _inner(field.type))
    ]
    assert unsafe == []


def _inner(node: Any) -> Iterator[list[Any]]:
    """The alternatives at a place, and at the places inside it."""
    kinds = [kind for kind, _ in alternatives([node])]
    yield kinds
    for kind in kinds:
        for name in ("item_type", "value_type"):
            if hasattr(kind, name):
                yield from _inner(getattr(kind, name))


def _crashes(kinds: list[Any]) -> bool:
    containers = (
        inspect.ListType,
        inspect.SetType,
        inspect.FrozenSetType,
        inspect.VarTupleType,
        inspect.DictType,
    )
    return any(getattr(kind, "pattern", None) for kind in kinds) and any(
        isinstance(kind, containers) for kind in kinds
    )
