"""What the OpenAPI document allows, the server accepts: each field is sent with values at and beyond its limits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from msgspec import inspect

from memoranda.errors import InvalidInput
from memoranda.server.inputs import from_json
from memoranda.server.routes import ROUTES
from memoranda.validation.nodes import alternatives, described
from support.document_probes import Prober
from support.pdf_files import page, pdf_of
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
FILE = {"GET /v1/files/{file_id}/image": "pdf_id"}
"""Which file a route is asked about, where it is not any file."""
NO_SCHEMA_SAYS = {
    r"^(after|before): .*; begin again without a cursor$": "a cursor is an id of the list",
    r"^page: is no page of this list; ": "a page is a place in the list",
    r"^page: must be 1 to \d+, the pages of ": "the pages of a file",
    r"^metadata: would hold \d+ keys, at most 16 are kept$": "what the store has already counts, too",
    r"\(quota \w+\)": "the quota of a tenant",
    r"^part_ids\[\d+\]: .* is no part of this upload$": "ids of the upload's parts",
    r"^Previous response with id .* not found\.$": "an id of a response",
    r"^time_zone: must be the name of a time zone": "a name in the time zone database",
    r"names no tool of this request": "a choice among the tools of the request",
    r"chunk_overlap\w*: .*half of the chunk": "one number is at most half of another",
    r"is cut inside a character at byte \d+$": "tokens together are a text",
    r"^configurations\[\d+\]\.name: .* is the name of another one": "names that differ",
    r"^filters\.user_id: is another than `user_id`": "two names of one field with different values",
}
"""Sentences with which a request that the document allows may be refused, and what no schema can state."""


@pytest.fixture(scope="module")
def ids(lasting: Any) -> dict[str, str]:
    sent = {"file": ("kettle.pdf", pdf_of([page(["The kettle is green."])]))}
    pdf = lasting.request("POST", "/v1/files", files=sent, data={"purpose": "assistants"}).json()["id"]
    mine = {"id": lasting.add("something to look at"), "model": "hash-64", "part_id": "x", "pdf_id": pdf}
    return {**lasting.stock(), **mine}


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


def asked(document: dict[str, Any], route: Any) -> Iterator[tuple[str, Any, bool]]:
    """The name of each parameter of a query string, a value, and whether the document allows it."""
    for parameter in document["paths"][route.path][route.method.lower()]["parameters"]:
        if parameter["in"] == "query":
            schema = {**parameter["schema"], "components": document["components"]}
            for value in Prober(document).values(schema):
                if value not in (None, []):
                    yield parameter["name"], value, allows(schema, value)


def allows(schema: dict[str, Any], value: Any) -> bool:
    """Whether a value is valid, and what it says as JSON where that has a schema of its own."""
    inner = schema.get("contentSchema")
    if inner is None:
        return bool(jsonschema_rs.is_valid(schema, value))
    try:
        return bool(jsonschema_rs.is_valid(inner, json.loads(value)))
    except ValueError:
        return False


def differences(
    house: Any, route: Any, ids: dict[str, str], probes: Iterator[tuple[str, Any, bool]], option: str
) -> list[tuple[str, str]]:
    """Where document and server do not agree: the place, and what the server says. A sentence that the document has
    too, about two parameters, is no difference."""
    operation = house.request("GET", "/openapi.json").json()["paths"][route.path][route.method.lower()]
    stated = operation.get("description", "")
    found = []
    for place, value, allowed in probes:
        sent = {place: value} if option == "params" else value
        answer = house.request(route.method, path_of(route, ids), **{option: sent})
        if answer.status_code >= 500 or (not allowed and answer.status_code < 400):
            found.append((place, f"{answer.status_code} {str(value)[:100]}"))
        elif allowed and answer.status_code in (400, 413, 422):
            says = answer.json()["error"]["message"]
            named = says.partition(": ")[2]
            if named not in stated and not any(re.search(reason, says) for reason in NO_SCHEMA_SAYS):
                found.append((place, says))
    return found


def path_of(route: Any, ids: dict[str, str]) -> str:
    path: str = route.path
    for name, value in {**ids, "file_id": ids[FILE.get(route.name, "file_id")]}.items():
        path = path.replace(f"{{{name}}}", value)
    return path


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
def test_document_and_server_agree_on_bodies(
    lasting: Any, document: dict[str, Any], ids: dict[str, str], route: Any
) -> None:
    assert differences(lasting, route, ids, probed(document, ids, route), "json") == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "route",
    [one for one in ROUTES if one.query is not None and one.method == "GET"],
    ids=lambda one: one.name,
)
def test_document_and_server_agree_on_query_strings(
    lasting: Any, document: dict[str, Any], ids: dict[str, str], route: Any
) -> None:
    assert differences(lasting, route, ids, asked(document, route), "params") == []


def test_a_thousand_conditions_are_taken_and_no_more(lasting: Any) -> None:
    for count, status in ((1_000, 200), (1_001, 400)):
        for body in ({"tags": ["a"] * count}, {"filters": {f"k{n}": "a" for n in range(count)}}):
            answer = lasting.request("POST", "/v1/memories/count", json=body)
            assert answer.status_code == status, (count, [*body])
    user = {"type": "eq", "key": "$user_id", "value": "ada"}
    for kind in ("and", "or"):
        body = {"filters": {"type": kind, "filters": [user] * 999}}
        assert lasting.request("POST", "/v1/memories/count", json=body).status_code == 200


def test_more_parts_and_values_than_the_document_says_are_refused(
    lasting: Any, document: dict[str, Any], ids: dict[str, str]
) -> None:
    schemas = document["components"]["schemas"]
    parts = schemas["CompleteBody"]["properties"]["part_ids"]["maxItems"]
    filters = schemas["ScopedSelectionBody"]["properties"]["filters"]["anyOf"][0]
    values = filters["additionalProperties"]["maxItems"]
    assert (parts, values) == (10_000, 10_000)
    for count, status in ((values, 200), (values + 1, 400)):
        answer = lasting.request("POST", "/v1/memories/count", json={"filters": {"k": ["a"] * count}})
        assert answer.status_code == status, answer.text
    body = {"part_ids": ["a"] * (parts + 1)}
    answer = lasting.request("POST", f"/v1/uploads/{ids['upload_id']}/complete", json=body)
    assert "part_ids" in answer.json()["error"]["message"]
    assert str(parts) in answer.json()["error"]["message"]


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


def test_a_date_alone_is_its_midnight_in_utc_and_its_end_as_an_upper_bound(lasting: Any) -> None:
    days = ("2026-03-01T23:59:59Z", "2026-03-02", "2026-03-02T00:00:00+00:00", "2026-03-02T10:00")
    for day in days:
        lasting.add(f"said at {day}", occurred_at=day, channel_id="days")
    asked = {"scope": "channel", "scope_id": "days", "since": "2026-03-02"}
    assert lasting.request("POST", "/v1/memories/count", json=asked).json()["count"] == 3
    assert len(lasting.request("GET", "/v1/memories", params=asked).json()["data"]) == 3
    for until, number in (("2026-03-01", 1), ("2026-03-02T00:00:00Z", 1), ("2026-03-02", 4)):
        asked = {**asked, "since": "2026-03-01", "until": until}
        assert lasting.request("POST", "/v1/memories/count", json=asked).json()["count"] == number
        assert len(lasting.request("GET", "/v1/memories", params=asked).json()["data"]) == number
    answer = lasting.request("POST", "/v1/memories/count", json={"since": "soon"})
    says = "since: must be a date, or a date and time, such as 2024-05-01 or 2024-05-01T12:00:00Z"
    assert answer.json()["error"]["message"] == says


def test_no_pattern_shares_a_union_with_a_container() -> None:
    """msgspec frees such a pattern as if it were a type: collecting the struct crashes the interpreter."""
    structs = [struct for struct in below(msgspec.Struct) if struct.__module__.startswith("memoranda.")]
    assert len(structs) > 300
    unsafe = [
        f"{struct.__name__}.{field.name}"
        for struct in structs
        for field in getattr(described(struct), "fields", ())
        if any(_crashes(union) for union in _inner(field.type))
    ]
    assert unsafe == []


def below(type_: type[Any]) -> set[type[Any]]:
    """The subclasses of a type, and theirs."""
    return {inner for own in type_.__subclasses__() for inner in (own, *below(own))}


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
