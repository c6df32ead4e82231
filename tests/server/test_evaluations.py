"""Evaluations over HTTP: a bundled set or questions of one's own, as the key may see memories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

KEYS = [
    {"name": "ada", "key": "ada-key", "tenant": "acme", "user": "ada", "role": "member"},
    {"name": "bob", "key": "bob-key", "tenant": "acme", "user": "bob", "role": "member"},
    {"name": "other", "key": "other-key", "tenant": "other", "role": "admin"},
]


@pytest.mark.rows_in("sqlite")
def test_a_bundled_set_compares_configurations(house: Any) -> None:
    ways = [{"name": "A"}, {"name": "B", "mode": "keyword", "rerank": "off", "times": False}]
    answer = house.request(
        "POST", "/v1/evaluations", json={"set": "assistant", "configurations": ways, "limit": 5}
    )
    assert answer.status_code == 200, answer.text
    compared = answer.json()
    assert (compared["object"], compared["set"], compared["limit"]) == ("evaluation", "assistant", 5)
    assert [scored["name"] for scored in compared["configurations"]] == ["A", "B"]
    assert {len(question["answers"]) for question in compared["questions"]} == {2}
    assert house.request("POST", "/v1/memories/count", json={}).json()["count"] == 0


@pytest.mark.rows_in("sqlite")
def test_questions_are_asked_as_the_key_may_see(houses: Callable[..., Any]) -> None:
    house = houses(keys=KEYS)

    def evaluated(key: str, *ids: str) -> Any:
        body = {"questions": [{"query": "green kettle", "relevant": list(ids)}]}
        return house.request("POST", "/v1/evaluations", key=key, json=body)

    def added(key: str, text: str) -> str:
        return str(house.request("POST", "/v1/memories", key=key, json={"content": text}).json()["id"])

    of_ada = added("ada-key", "the kettle of Ada is green")
    of_bob = added("bob-key", "the kettle of Bob is green")
    (question,) = evaluated("ada-key", of_ada).json()["questions"]
    assert question["answers"][0]["ids"] == [of_ada]
    for key in ("bob-key", "other-key"):
        refused = evaluated(key, of_ada)
        assert refused.status_code == 400
        assert refused.json()["error"]["param"] == "questions[0].relevant"
        assert "Ada" not in refused.text
    assert of_bob not in evaluated("ada-key", of_ada).text


@pytest.mark.rows_in("sqlite")
@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "set"),
        ({"set": "mine"}, "set"),
        ({"set": "assistant", "questions": [{"query": "x", "relevant": ["y"]}]}, "set"),
        ({"questions": []}, "questions"),
        ({"questions": [{"query": "x"}]}, "questions[0].relevant"),
        ({"set": "assistant", "configurations": [{"mode": "magic"}]}, "configurations[0].mode"),
        ({"set": "assistant", "configurations": [{"name": "A"}, {"name": "A"}]}, "configurations[1].name"),
        ({"set": "assistant", "limit": 0}, "limit"),
    ],
)
def test_what_is_wrong_is_named(house: Any, body: Any, param: str) -> None:
    answer = house.request("POST", "/v1/evaluations", json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text
