"""Answers to requests that name no user: what the key may see, and nothing of another user or tenant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.rows_in("sqlite")
QUESTION = "Where does Tim live?"
ALL = {"memory_min_score": 0.0}
ROOT = {"name": "root", "role": "admin", "tenant": "north", "key": "root"}
SERVICE = {"name": "app", "role": "service", "tenant": "north", "key": "app"}
OTHER = {"name": "other", "role": "admin", "tenant": "south", "key": "other"}
MEMBERS = [
    {"name": name, "role": role, "tenant": "north", "user": name, "key": name}
    for name, role in {"tim": "member", "bob": "member", "boss": "admin", "bot": "service"}.items()
]


def told(house: Any, key: str | None = None, **fields: Any) -> str:
    """All that a response, a chat completion and a count of tokens say about the question."""
    made = house.request("POST", "/v1/responses", key=key, json={"input": QUESTION, **fields})
    chat = {"messages": [{"role": "user", "content": QUESTION}], **fields}
    answered = house.request("POST", "/v1/chat/completions", key=key, json=chat)
    assert (made.status_code, answered.status_code) == (200, 200), made.text + answered.text
    texts = [part["text"] for item in made.json()["output"] for part in item["content"]]
    return "\n".join([*texts, answered.json()["choices"][0]["message"]["content"]])


def add(house: Any, content: str, key: str | None = None, **fields: Any) -> None:
    answer = house.request("POST", "/v1/memories", key=key, json={"content": content, **fields})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("place", ["user_id", "session_id", "channel_id"])
def test_without_keys_every_memory_answers(opened: Callable[..., Any], place: str) -> None:
    house = opened(responses=ALL)
    add(house, "Tim lives in Hamburg.", **{place: "tim"})
    assert told(house).count("Tim lives in Hamburg.") == 2
    assert told(house, memory=True).count("Tim lives in Hamburg.") == 2
    for named in ({"user_id": "ben"}, {"channel_id": "team"}, {"session_id": "talk"}):
        assert "Hamburg" not in told(house, memory=named), named
    assert "Hamburg" not in told(house, memory=False)


def test_what_an_agent_was_told_stays_with_that_agent(opened: Callable[..., Any]) -> None:
    house = opened(responses=ALL)
    ids = [house.request("POST", "/v1/agents", json={"name": name}).json()["id"] for name in ("one", "two")]
    add(house, "Tim lives in Hamburg.", agent_id=ids[0], user_id="tim")
    assert [told(house, agent=id_).count("Hamburg") for id_ in ids] == [2, 0]
    assert "Hamburg" not in told(house)


def test_a_key_of_no_user_answers_from_what_it_may_search(opened: Callable[..., Any]) -> None:
    house = opened(keys=[ROOT, OTHER], responses=ALL)
    add(house, "Tim lives in Hamburg.", "root", user_id="tim")
    add(house, "Tim lives in Oslo.", "other", user_id="tim")
    for key, own, others in (("root", "Hamburg", "Oslo"), ("other", "Oslo", "Hamburg")):
        assert told(house, key).count(own) == 2
        assert others not in told(house, key)


def test_a_service_answers_from_what_it_names(opened: Callable[..., Any]) -> None:
    house = opened(keys=[ROOT, SERVICE], responses=ALL)
    add(house, "Tim lives in Hamburg.", "root", user_id="tim")
    for fields in ({}, {"store": False}):
        assert "Hamburg" not in told(house, "app", **fields)
    assert told(house, "app", memory={"user_id": "tim"}).count("Hamburg") == 2


def test_a_configured_scope_is_kept_to(opened: Callable[..., Any]) -> None:
    house = opened(responses=ALL, search={"default_scope": "global"})
    add(house, "Tim lives in Hamburg.", user_id="tim")
    assert "Hamburg" not in told(house)


def test_a_key_of_a_user_answers_for_that_user(opened: Callable[..., Any]) -> None:
    house = opened(keys=[ROOT, SERVICE, OTHER, *MEMBERS], responses=ALL)
    for user, city in {"tim": "Hamburg", "bob": "Bergen", "boss": "Basel", "bot": "Bonn"}.items():
        add(house, f"Tim lives in {city}.", user, user_id=user)
    add(house, "Tim lives in Oslo.", "other", user_id="tim")
    for user, city in {"tim": "Hamburg", "bob": "Bergen", "boss": "Basel", "bot": "Bonn"}.items():
        for fields in ({}, {"store": False}, {"user": "tim"}, {"memory": True}):
            answer = told(house, user, **fields)
            assert city in answer, (user, fields)
            others = {"Hamburg", "Bergen", "Basel", "Bonn", "Oslo"} - {city}
            assert not [other for other in others if other in answer], (user, fields, answer)


@pytest.mark.parametrize("others", [MEMBERS, [SERVICE]])
def test_what_others_may_read_later_has_nothing_of_users(
    opened: Callable[..., Any], others: list[dict[str, str]]
) -> None:
    """A stored response of a key without a user is the tenant's, and so are its messages in the log."""
    house = opened(keys=[ROOT, *others], responses=ALL)
    add(house, "Tim lives in Hamburg.", "root", user_id="tim")
    assert "Hamburg" not in told(house, "root")
    assert told(house, "root", store=False).count("Hamburg") == 2
    queued = {"input": QUESTION, "background": True}
    id_ = house.request("POST", "/v1/responses", key="root", json=queued).json()["id"]
    house.answered(id_, key="root")
    for key in [str(other["key"]) for other in others if other["key"] != "tim"]:
        listed = house.request("GET", "/v1/responses", key=key)
        assert listed.json()["data"], key
        answers = [
            house.request("GET", f"/v1/responses/{one['id']}", key=key).text for one in listed.json()["data"]
        ]
        found = house.request(
            "POST", "/v1/memories/search", key=key, json={"query": QUESTION, "threshold": 0}
        )
        assert "Hamburg" not in "".join([listed.text, *answers, found.text]), key


def test_a_response_goes_on_for_the_user_of_its_history(opened: Callable[..., Any]) -> None:
    house = opened(keys=[ROOT], responses=ALL)
    for user, city in {"tim": "Hamburg", "bob": "Bergen"}.items():
        add(house, f"Tim lives in {city}.", "root", user_id=user)
    asked = {"input": "Hello.", "memory": {"user_id": "bob"}}
    first = house.request("POST", "/v1/responses", key="root", json=asked).json()["id"]
    again = {"input": QUESTION, "previous_response_id": first}
    answer = house.request("POST", "/v1/responses", key="root", json=again).text
    assert "Bergen" in answer
    assert "Hamburg" not in answer


def test_one_who_acts_for_a_user_gets_nothing_of_others(opened: Callable[..., Any]) -> None:
    house = opened(keys=[ROOT, SERVICE], responses=ALL)
    for user, city in {"tim": "Hamburg", "bob": "Bergen"}.items():
        add(house, f"Tim lives in {city}.", "root", user_id=user)
    body = {"input": QUESTION, "store": False}
    headers = {"X-Memoranda-User": "bob"}
    answer = house.request("POST", "/v1/responses", key="app", json=body, headers=headers).text
    assert "Bergen" in answer
    assert "Hamburg" not in answer
