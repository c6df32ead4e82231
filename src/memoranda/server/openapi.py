"""`/openapi.json`: the route table as an OpenAPI 3.1 document."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import msgspec

from memoranda.server.errors import JSON
from memoranda.server.route import MULTIPART, Call, Form, Route
from memoranda.server.sse import EVENTS
from memoranda.types import CONFIGURED, NO_NUL
from memoranda.validation.constraints import constraints_of, schemas
from memoranda.validation.nodes import structs_in

REF = "#/components/schemas/{name}"
Schema = dict[str, Any]


async def document_of(call: Call[None, None]) -> Schema:
    return await asyncio.to_thread(call.state.document)


ROUTES = (Route("GET", "/openapi.json", "This document", document_of, "open", dict[str, Any]),)


def document(routes: Sequence[Route], server: str | None, limits: Mapping[str, Any] | None) -> Schema:
    """The document for these routes. `server` is the URL the server is known by, `limits` are those that the
    configuration sets, by its keys; without them the document has none of these."""
    bodies = [route.body for route in routes if route.body not in (None, bytes)]
    bodies += [route.form.fields for route in routes if route.form is not None]
    answers = [route.answer for route in routes if route.answer is not None]
    envelopes = [route.api.envelope for route in routes]
    used = list(dict.fromkeys([*bodies, *answers, *envelopes]))
    references, components = msgspec.json.schema_components(used, ref_template=REF)
    shown = dict(zip(used, references, strict=True))
    sent = _reachable([shown[body] for body in bodies], components)
    for name in _reachable([shown[answer] for answer in answers], components) - sent:
        _require_defaults(components[name])
    _constrain(components, bodies)
    paths: dict[str, Schema] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, shown)
    whole = {
        "openapi": "3.1.0",
        "info": {
            "title": "Memoranda",
            "version": version("memoranda"),
            "description": "Memory and knowledge for AI agents.",
        },
        "servers": [{"url": server or "/"}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}, **_other_schemes(routes)},
        },
    }
    configured: Schema = _configured(whole, limits)
    return configured


def _constrain(components: Schema, types: Sequence[Any]) -> None:
    """Adds the constraints between fields to the schemas of the types, and of those inside them."""
    for inner in {inner: None for type_ in types for inner in structs_in(type_)}:
        if rules := schemas(inner):
            whole = f"{inner.__module__}.{inner.__qualname__}"  # where two types have one name
            components[whole if whole in components else inner.__name__]["allOf"] = rules


def _configured(node: Any, limits: Mapping[str, Any] | None) -> Any:
    """A copy with the limits that the configuration sets in the place of their keys."""
    if isinstance(node, list):
        return [_configured(each, limits) for each in node]
    if not isinstance(node, dict):
        return node
    copy = {name: _configured(each, limits) for name, each in node.items() if name != CONFIGURED}
    if limits is None:
        return copy
    for keyword, key in node.get(CONFIGURED, {}).items():
        limit = limits[key]
        copy[keyword] = min(limit, node.get(keyword, limit)) if keyword.startswith("max") else limit
    return copy


def _reachable(node: Any, components: Schema) -> set[str]:
    """The names of the components that a schema refers to, directly or through others."""
    names: set[str] = set()
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            waiting += part.values()
            name = str(part.get("$ref", "")).rpartition("/")[2]
            if name and name not in names:
                names.add(name)
                waiting.append(components[name])
    return names


def _require_defaults(schema: Schema) -> None:
    """Mark the fields with a default as required: an answer has them, whatever their value."""
    required = schema.get("required", [])
    defaults = [name for name, field in schema.get("properties", {}).items() if "default" in field]
    if defaults:
        schema["required"] = [*required, *(name for name in defaults if name not in required)]


def _operation(route: Route, shown: dict[Any, Schema]) -> Schema:
    operation: Schema = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "security": [] if route.needs == "open" else _security(route),
        "responses": {
            "200": {"description": "The answer.", "content": _answer(route, shown)},
            "default": {
                "description": "What went wrong.",
                "content": {JSON: {"schema": shown[route.api.envelope]}},
            },
        },
    }
    if route.api.name:
        operation["tags"] = [route.api.name]
    if rules := [f"`{rule.field}` {rule.says}." for rule in constraints_of(route.query)]:
        operation["description"] = " ".join(rules)
    parameters = [*_path_parameters(route), *_query_parameters(route)]
    if parameters:
        operation["parameters"] = parameters
    body = _body(route, shown)
    if body is not None:
        operation["requestBody"] = body
    return operation


def _other_schemes(routes: Sequence[Route]) -> Schema:
    """The schemes of keys beside `Bearer`, by the name of their scheme in lower case."""
    names = {name for route in routes for name in route.api.schemes if name != "Bearer"}
    says = "The header's value is `{} KEY`."
    headers = {route.api.key_header for route in routes if route.api.key_header}
    others = {name: {"type": "apiKey", "in": "header", "name": name} for name in sorted(headers)}
    return others | {
        name.lower(): {
            "type": "apiKey", "in": "header", "name": "Authorization", "description": says.format(name),
        }
        for name in sorted(names)
    }  # fmt: skip


def _security(route: Route) -> list[Schema]:
    others = [name.lower() for name in route.api.schemes if name != "Bearer"]
    if route.api.key_header:
        others.append(route.api.key_header)
    return [{"key": []}, *({name: []} for name in others), {}]


def _body(route: Route, shown: dict[Any, Schema]) -> Schema | None:
    content: Schema = {}
    required = True
    if route.body is bytes:
        schema: Schema = {"type": "string", "description": "A header line, then a memory a line."}
        content["application/x-ndjson"] = {"schema": schema}
    elif route.body is not None:
        required = any(field.required for field in msgspec.structs.fields(route.body))
        content[JSON] = {"schema": shown[route.body]}
    if route.form is not None:
        content[MULTIPART] = {"schema": _form(route.form)}
    return {"required": required, "content": content} if content else None


def _form(form: Form) -> Schema:
    """The file, and the fields beside it."""
    _, components = msgspec.json.schema_components([form.fields], ref_template=REF)
    fields = components[form.fields.__name__]
    file = {form.file: {"type": "string", "format": "binary"}}
    return {
        "type": "object",
        "properties": {**file, **fields["properties"]},
        "required": [form.file, *fields.get("required", [])],
    }


def _operation_id(route: Route) -> str:
    """`get_memories_id`; a route of another system's API has its name before and keeps the version."""
    own = not route.api.name
    steps = [step.strip("{}").replace(".", "_") for step in route.path.split("/") if step]
    named = [step for step in steps if not (own and step == "v1")]
    return "_".join([*([] if own else [route.api.name]), route.method.lower(), *named])


def _answer(route: Route, shown: dict[Any, Schema]) -> Schema:
    schema = shown[route.answer] if route.answer is not None else {"type": "string"}
    events: Schema = {EVENTS: {"schema": {"type": "string"}}} if route.streams else {}
    return {route.media: {"schema": schema}, **events}


def _path_parameters(route: Route) -> list[Schema]:
    schema: Schema = {"type": "string", "minLength": 1}
    return [{"name": name, "in": "path", "required": True, "schema": schema} for name in route.parameters]


def _query_parameters(route: Route) -> list[Schema]:
    if route.query is None:
        return []
    (_,), components = msgspec.json.schema_components([route.query], ref_template=REF)
    properties = components[route.query.__name__]["properties"]
    return [_query_parameter(name, schema) for name, schema in properties.items()]


def _query_parameter(name: str, schema: Schema) -> Schema:
    """A query string has no null: a field that may be null is one that may be left out. No value has a NUL
    character."""
    plain = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    kinds = [kind for kind in schema.get("anyOf", []) if kind.get("type") != "null"]
    plain |= kinds[0] if kinds else {}
    if schema.get("default") is not None:
        plain["default"] = schema["default"]
    if plain.get("type") == "string" and "enum" not in plain:
        plain.setdefault("pattern", NO_NUL)
    if name == "filters":
        plain = {"type": "string", "contentMediaType": JSON, "contentSchema": plain}
    return {"name": name, "in": "query", "required": False, "schema": plain}
