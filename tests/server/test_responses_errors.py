"""What clients of responses hear when something they name is not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from memoranda.providers.chat.script import Script, Turn
from support import chat_server

pytestmark = pytest.mark.rows_in("sqlite")
UNKNOWN = "/chat/completions: Invalid model name passed in model=gpt-9. Call `/v1/models` to view the models"


def test_an_unknown_model_is_404_before_a_stream_begins(opened: Callable[..., Any]) -> None:
    turns = [Turn(status=400, message=UNKNOWN), Turn(status=400, message=UNKNOWN), Turn(text="Good day.")]
    with chat_server.serving(Script(turns=turns, models=("small", "large"))) as (url, _):
        house = opened(model={"url": url, "name": "small", "fallback": False})
        body = {"model": "gpt-9", "input": "Hello?", "memory": False}
        plain, streamed = (
            house.request("POST", "/v1/responses", json={**body, "stream": stream})
            for stream in (False, True)
        )
        assert (streamed.status_code, streamed.headers["content-type"]) == (404, "application/json")
        assert streamed.json() == plain.json()
        error = streamed.json()["error"]
        assert (error["code"], error["param"]) == ("model_not_found", "model")
        other = house.request("POST", "/v1/responses", json={**body, "model": "large", "stream": True})
        assert (other.status_code, "Good day." in other.text) == (200, True)
        assert other.text.startswith("event: response.created\n")


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", ""), ("DELETE", ""), ("POST", "/cancel"), ("GET", "/input_items"), ("GET", "?stream=true")],
)
def test_an_unknown_response_is_named_as_by_openai(lasting: Any, method: str, path: str) -> None:
    answer = lasting.request(method, f"/v1/responses/resp_nope{path}")
    assert answer.status_code == 404
    assert answer.json()["error"] == {
        "message": "Response with id 'resp_nope' not found.",
        "type": "invalid_request_error",
        "param": None,
        "code": "not_found",
    }


def test_an_mcp_server_that_is_away_degrades_a_response(opened: Callable[..., Any]) -> None:
    tool = {"type": "mcp", "server_label": "desk", "server_url": "http://127.0.0.1:9/mcp"}
    with chat_server.serving(Script(turns=[Turn(text="Good day."), Turn(text="Good day.")])) as (url, _):
        house = opened(model={"url": url, "name": "small", "fallback": False})
        body = {"input": "Hello?", "memory": False, "tools": [tool]}
        answer = house.request("POST", "/v1/responses", json=body).json()
        assert (answer["status"], answer["extensions"]["degraded"]) == ("completed", ["mcp"])
        streamed = house.request("POST", "/v1/responses", json={**body, "stream": True}).text
        last = msgspec.json.decode(streamed.strip().rpartition("data: ")[2])
        assert last["response"]["extensions"]["degraded"] == ["mcp"]
