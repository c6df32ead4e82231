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


EXAMPLES = 40 if "TEST_SEED" in os.environ else 5
"""Per route and mode: the whole stays under a minute."""


def stock(url: str) -> dict[str, str]:
    """A file in a store, its batch, and an upload: their ids, as the parameters of paths are called."""

    def made(path: str, **options: Any) -> str:
        return str(httpx.post(f"{url}/v1/{path}", **options).raise_for_status().json()["id"])

    file = made("files", files={"file": ("a.txt", b"the kettle is green")}, data={"purpose": "assistants"})
    store = made("vector_stores", json={"name": "stocked"})
    batch = made(f"vector_stores/{store}/file_batches", json={"file_ids": [file]})
    asked = {"filename": "a.txt", "bytes": 5, "purpose": "assistants", "mime_type": "text/plain"}
    return {"file_id": file, "store_id": store, "batch_id": batch, "upload_id": made("uploads", json=asked)}


@pytest.mark.long
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_no_generated_request_is_a_server_error(served: Any, mode: GenerationMode) -> None:
    """Each mode has a server of its own: generated requests may set limits that refuse what the next one needs."""
    server = served()
    document = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
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
            derandomize="TEST_SEED" not in os.environ,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        bounded(generated(ask))()
    assert len(sent) > 150
    assert 400 in sent
    assert (200 in sent) or mode is GenerationMode.NEGATIVE
    assert httpx.get(f"{server.url}/readyz").status_code == 200
