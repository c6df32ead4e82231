"""The official OpenAPI description, as validators of what the server says. Without the folder shared/data beside the
checkout there is none, and tests that need it are skipped."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

DESCRIPTION = Path(__file__).parents[3] / "shared" / "data" / "openai" / "openai-subset.openapi.json"
HERE = "#/components/schemas/"
needs_description = pytest.mark.skipif(
    not DESCRIPTION.is_file(), reason="the folder shared/data/openai is not beside the checkout"
)


def check(value: Any, name: str) -> None:
    """Fails when a value is not what the description calls `name`, with the place and the reason."""
    wrong = [
        f"{'.'.join(str(step) for step in error.instance_path) or name}: {error.message[:300]}"
        for error in validator(name).iter_errors(value)
    ]
    assert not wrong, f"{wrong[:5]} in {json.dumps(value)[:2000]}"


@cache
def validator(name: str) -> Any:
    """Checks a value against one schema of the description."""
    return jsonschema_rs.Draft202012Validator({"$ref": f"{HERE}{name}", "components": {"schemas": schemas()}})


@cache
def schemas() -> dict[str, Any]:
    """The description's schemas. Where a property tells the alternatives apart, its value chooses the one that holds:
    the alternatives overlap, and errors are about the one that is meant."""
    raw = json.loads(DESCRIPTION.read_text("utf-8"))["components"]["schemas"]
    return {name: _plain(schema, raw) for name, schema in raw.items()}


def _plain(node: Any, raw: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_plain(one, raw) for one in node]
    if not isinstance(node, dict):
        return node
    made = {key: _plain(value, raw) for key, value in node.items() if key != "discriminator"}
    told = node.get("discriminator")
    kind = "oneOf" if "oneOf" in node else "anyOf"
    if isinstance(told, dict) and kind in made:
        made |= _chosen(told["propertyName"], made.pop(kind), raw)
    elif isinstance(
        node.get("oneOf"), list
    ):  # several may hold: an item of a list may be of two types by its fields
        made.setdefault("anyOf", made.pop("oneOf"))
    return made


def _chosen(key: str, options: list[Any], raw: dict[str, Any]) -> dict[str, Any]:
    by_value: dict[str, list[Any]] = {}
    for option in options:
        for value in _values(option, key, raw):
            by_value.setdefault(value, []).append(option)
    rules = [
        {
            "if": {"properties": {key: {"const": value}}},
            "then": some[0] if len(some) == 1 else {"anyOf": some},
        }
        for value, some in by_value.items()
    ]
    return {
        "type": "object",
        "required": [key],
        "properties": {key: {"enum": sorted(by_value)}},
        "allOf": rules,
    }


def _values(option: dict[str, Any], key: str, raw: dict[str, Any]) -> list[str]:
    """What the property may be in one of the alternatives."""
    if "$ref" in option:
        return _values(raw[option["$ref"].removeprefix(HERE)], key, raw)
    if key in option.get("properties", {}):
        return _said(option["properties"][key], raw)
    inner = [*option.get("allOf", ()), *option.get("oneOf", ()), *option.get("anyOf", ())]
    return [value for one in inner for value in _values(one, key, raw)]


def _said(held: dict[str, Any], raw: dict[str, Any]) -> list[str]:
    """The values that a property is limited to."""
    if "$ref" in held:
        return _said(raw[held["$ref"].removeprefix(HERE)], raw)
    if "anyOf" in held:
        return [value for one in held["anyOf"] for value in _said(one, raw)]
    return list(held.get("enum", [held["const"]] if "const" in held else []))


OWN_TOOLS = (
    "memory_search",
    "memory_write",
    "memory_forget",
    "vector_memory_search",
    "vector_memory_write",
    "vector_memory_forget",
)
NOT_NULL = (
    "temperature", "top_p", "presence_penalty", "frequency_penalty", "top_logprobs", "tools", "tool_choice",
    "truncation", "background", "service_tier", "store", "metadata", "text", "parallel_tool_calls", "output", "usage",
)  # fmt: skip
"""What strict clients read without looking."""


def check_response(response: dict[str, Any]) -> None:
    """A response that the official description and the strictest clients accept."""
    check(_officially(response), "Response")
    assert not [name for name in NOT_NULL if response.get(name) is None]
    assert "completed_at" in response
    assert not [key for key in response if key.startswith("_")]
    if response["status"] == "completed":
        usage = response["usage"]
        assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
        assert usage["input_tokens_details"].keys() >= {"cached_tokens", "cache_write_tokens"}
        assert "reasoning_tokens" in usage["output_tokens_details"]
    for item in response["output"]:
        assert not [key for key in item if key.startswith("_")]
        for part in item.get("content") or [] if item["type"] == "message" else []:
            if part["type"] == "output_text":
                assert isinstance(part["annotations"], list)
                assert isinstance(part["logprobs"], list)


def check_event(event: dict[str, Any]) -> None:
    """An event of a stream, and the response that it may tell of."""
    if "response" in event:
        check_response(event["response"])
        event = event | {"response": _officially(event["response"])}
    check(event, "ResponseStreamEvent")


def _officially(response: dict[str, Any]) -> dict[str, Any]:
    """The response without our own tools, of which the description does not know."""
    return response | {"tools": [tool for tool in response["tools"] if tool["type"] not in OWN_TOOLS]}
