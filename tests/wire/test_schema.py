"""Generated requests from the OpenAPI document: whatever is sent, the server never makes a mistake of its own."""

from __future__ import annotations

import json
import os
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error


@schemathesis.serializer("application/x-ndjson")
def ndjson(context: Any, value: Any) -> bytes:
    return value.encode("utf-8", "replace") if isinstance(value, str) else json.dumps(value).encode()


FULL = "TEST_SEED" in os.environ
"""`./test --all`."""
EXAMPLES = 40 if FULL else 5
"""Per route and mode: the whole stays under a minute."""
LONG = 256
"""Characters."""


def stock(url: str) -> dict[str, str]:
    """A file in a store, its batch, and an upload: their ids, as the parameters of paths are called."""

    def made(path: str, **options: Any) -> str:
        return str(httpx.post(f"{url}/v1/{path}", **options).raise_for_status().json()["id"])

    file = made("files", files={"file": ("a.txt", b"the kettle is green")}, data={"purpose": "assistants"})
    store = made("vector_stores", json={"name": "stocked"})
    batch = made(f"vector_stores/{store}/file_batches", json={"file_ids": [file]})
    asked = {"filename": "a.txt", "bytes": 5, "purpose": "assistants", "mime_type": "text/plain"}
    return {"file_id": file, "store_id": store, "batch_id": batch, "upload_id": made("uploads", json=asked)}


def described(url: str) -> Any:
    """The document. In the gate it is without the bounds of long texts that have a pattern, too: the generator writes
    such a bound into the pattern, and compiling that takes a third of the time. `test_openapi_limits` tests them."""

    def shorten(part: Any) -> None:
        if isinstance(part, dict):
            if "pattern" in part and part.get("maxLength", 0) > LONG:
                del part["maxLength"]
            for inner in part.values():
                shorten(inner)
        elif isinstance(part, list):
            for inner in part:
                shorten(inner)

    document = httpx.get(f"{url}/openapi.json").raise_for_status().json()
    if not FULL:
        shorten(document)
    made = schemathesis.openapi.from_dict(document)
    made.config.update(base_url=url)
    return made


@pytest.mark.long
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_no_generated_request_is_a_server_error(served: Any, mode: GenerationMode) -> None:
    """Each mode has a server of its own: generated requests may set limits that refuse what the next one needs."""
    server = served()
    document = described(server.url)
    ids = stock(server.url)
    sent: list[int] = []

    def ask(case: Any) -> None:
        if len(sent) % 2 and not (case.method == "DELETE" or case.path.endswith("/cancel")):
            case.path_parameters.update({name: ids[name] for name in case.path_parameters if name in ids})
        answer = case.call(timeout=30)
        case.validate_response(answer, checks=[not_a_server_error])
        sent.append(answer.status_code)

    for found in document.get_all_operations():
        operation = found.ok()
        if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query):  # any text is a path
            continue
        generated = given(case=operation.as_strategy(generation_mode=mode))
        bounded = settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=not FULL,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        bounded(generated(ask))()
    assert len(sent) > 150
    assert 400 in sent
    assert (200 in sent) or mode is GenerationMode.NEGATIVE
    assert httpx.get(f"{server.url}/readyz").status_code == 200
