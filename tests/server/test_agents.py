"""`/v1/agents`: agents made, listed, changed and deleted over HTTP, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

AT = "/v1/agents"
WHOLE = {
    "name": "Support Bot",
    "description": "answers customers",
    "instructions": "You help customers of {{company}}.",
    "model": "qwen3",
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}, {"type": "memory_search"}],
    "tool_choice": "auto",
    "temperature": 0.5,
    "top_p": 1.0,
    "max_output_tokens": 100,
    "reasoning": {"effort": "low"},
    "text": {"format": {"type": "text"}},
    "memory": {
        "episodic": True, "retrieval": None, "max_results": 5, "min_score": 0.5, "kinds": ["fact"], "share": None,
        "summarization": True,
    },
    "variables": {"company": "Acme"},
    "metadata": {"team": "north"},
}  # fmt: skip
FIXED = [
    {
        "id": "agent_support",
        "name": "Support",
        "tools": [
            {"type": "mcp", "server_label": "t", "server_url": "https://h/mcp", "authorization": "hush",
             "headers": {"k": "hush"}}
        ],
    },
    {"id": "agent_sales", "name": "Sales"},
]  # fmt: skip


@pytest.fixture(scope="module")
def keyed(houses: Any) -> Any:
    keys = [
        {"name": name, "role": "member", "user": name, "tenant": "acme", "key": f"key-{name}"}
        for name in ("ann", "bob")
    ]
    keys += [
        {"name": "reader", "role": "reader", "user": "ann", "tenant": "acme", "key": "key-reader"},
        {"name": "admin", "role": "admin", "tenant": "acme", "key": "key-admin"},
        {"name": "other", "role": "admin", "tenant": "other", "key": "key-other"},
    ]
    return houses(keys=keys, agents=FIXED)


def made(house: Any, key: str | None = None, **fields: Any) -> dict[str, Any]:
    answer = house.request("POST", AT, key=key, json={"name": "A", **fields})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_an_agent_is_made_read_changed_and_deleted(lasting: Any) -> None:
    agent = made(lasting, **WHOLE)
    own = {"id", "object", "user_id", "read_only", "created_at", "updated_at"}
    assert agent.keys() == WHOLE.keys() | own
    assert {name: agent[name] for name in WHOLE} == WHOLE
    assert (agent["object"], agent["user_id"], agent["read_only"]) == ("agent", None, False)
    assert agent["created_at"] == agent["updated_at"] > 1_700_000_000
    one = f"{AT}/{agent['id']}"
    assert lasting.request("GET", one).json() == agent
    changed = lasting.request("POST", one, json={"temperature": None, "name": "Other"}).json()
    assert changed == {**agent, "temperature": None, "name": "Other", "updated_at": changed["updated_at"]}
    listed = lasting.request("GET", AT).json()
    assert listed["object"] == "list"
    assert changed in listed["data"]
    gone = {"id": agent["id"], "object": "agent.deleted", "deleted": True}
    assert lasting.request("DELETE", one).json() == gone
    for method in ("GET", "DELETE"):
        assert lasting.request(method, one).status_code == 404


def test_pages_go_on_where_they_ended(keyed: Any) -> None:
    ids = [made(keyed, "key-admin", name=f"page {n}")["id"] for n in range(3)]
    first = keyed.request("GET", f"{AT}?limit=2", key="key-admin").json()
    assert [one["id"] for one in first["data"]] == [ids[2], ids[1]]
    assert (first["first_id"], first["last_id"], first["has_more"]) == (ids[2], ids[1], True)
    rest = keyed.request("GET", f"{AT}?limit=100&after={first['last_id']}", key="key-admin").json()
    assert rest["data"][0]["id"] == ids[0]
    assert [one["id"] for one in rest["data"][-2:]] == ["agent_sales", "agent_support"]
    assert rest["has_more"] is False


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "A", "nam": "A"}, "nam"),
        ({"name": "A", "temperature": "hot"}, "temperature"),
        ({"name": "A", "instructions": "a\ud800"}, "instructions"),
        ({"name": "A", "tools": [{"type": "memory_search"}, {"type": "shell"}]}, "tools[1].type"),
        ({"name": "A", "tools": [{"type": "file_search", "vector_store_ids": "vs"}]}, "tools[0].vector_store_ids"),
        ({"name": "A", "memory": {"min_score": 7}}, "memory.min_score"),
        ({"name": "A", "variables": {"x": 1}}, "variables"),
        ({"name": "A", "metadata": {"$x": "1"}}, "metadata.$x"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(lasting: Any, body: Any, param: str) -> None:
    agent = made(lasting)
    for path in (AT, f"{AT}/{agent['id']}"):
        if path != AT and not body:
            continue
        answer = lasting.request("POST", path, content=json.dumps(body))
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["param"].startswith(param)
        assert answer.json()["error"]["type"] == "invalid_request_error"
    assert lasting.request("GET", f"{AT}/{agent['id']}").json() == agent


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=101", "order=up", "after=nope", "after=a&before=b", "nope=1"]
)
def test_a_page_that_cannot_be_is_refused(lasting: Any, query: str) -> None:
    answer = lasting.request("GET", f"{AT}?{query}")
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] in ("limit", "order", "after", "before", "nope")


def test_agents_of_the_configuration_are_read_only_and_keep_their_secrets(keyed: Any) -> None:
    one = f"{AT}/agent_support"
    for key in ("key-admin", "key-ann", "key-other"):
        agent = keyed.request("GET", one, key=key).json()
        assert (agent["name"], agent["read_only"], agent["created_at"]) == ("Support", True, None)
        assert agent["tools"][0]["authorization"] == agent["tools"][0]["headers"]["k"] == "***"
        assert "hush" not in keyed.request("GET", AT, key=key).text
        for method, options in (("POST", {"json": {"name": "mine"}}), ("DELETE", {})):
            answer = keyed.request(method, one, key=key, **options)
            assert (answer.status_code, answer.json()["error"]["type"]) == (403, "permission_error")
            assert "of the configuration" in answer.json()["error"]["message"]


def test_an_agent_is_its_makers_or_its_tenants(keyed: Any) -> None:
    anns, ours = made(keyed, "key-ann"), made(keyed, "key-admin")
    assert (anns["user_id"], ours["user_id"]) == ("ann", None)

    def status(method: str, agent: dict[str, Any], key: str, **options: Any) -> int:
        return int(keyed.request(method, f"{AT}/{agent['id']}", key=key, **options).status_code)

    change = {"json": {"name": "changed"}}
    for key, wanted in (("key-bob", 404), ("key-other", 404), ("key-ann", 200), ("key-admin", 200)):
        assert status("GET", anns, key) == status("POST", anns, key, **change) == wanted
    for key, reads, writes in (("key-bob", 200, 403), ("key-other", 404, 404), ("key-admin", 200, 200)):
        assert (status("GET", ours, key), status("POST", ours, key, **change)) == (reads, writes)
        assert status("DELETE", ours, key) == writes
    assert status("GET", ours, "key-admin") == 404
    assert keyed.request("POST", AT, key="key-reader", json={"name": "A"}).status_code == 403
    assert status("DELETE", anns, "key-ann") == 200


def test_an_agent_names_only_stores_that_its_maker_sees(keyed: Any) -> None:
    store = keyed.request("POST", "/v1/vector_stores", key="key-ann", json={"name": "ann's"}).json()["id"]

    def asked(key: str, id_: str) -> Any:
        tools = [{"type": "file_search", "vector_store_ids": [id_]}]
        return keyed.request("POST", AT, key=key, json={"name": "A", "tools": tools})

    assert asked("key-ann", store).status_code == 200
    heard = [asked("key-bob", store), asked("key-other", store), asked("key-ann", "vs_none")]
    assert {answer.status_code for answer in heard} == {404}
    said = [answer.json()["error"]["message"].replace(store, "vs_none") for answer in heard]
    assert said == ["no vector store 'vs_none'"] * 3
