"""mem0's API: what its clients send is kept, found, changed and erased, and what cannot be is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

KEYS = [
    {"name": "admin", "role": "admin", "key": "key-admin"},
    {"name": "app", "role": "service", "key": "key-app"},
    {"name": "ada", "role": "member", "user": "ada", "key": "key-ada"},
    {"name": "ben", "role": "member", "user": "ben", "key": "key-ben"},
    {"name": "reader", "role": "reader", "key": "key-reader"},
    {"name": "other", "role": "admin", "tenant": "other", "key": "key-other"},
]


@pytest.fixture(scope="module")
def keyed(houses: Any) -> Any:
    """A server with keys, for tests that each have entities of their own."""
    return houses(keys=KEYS)


def ask(house: Any, method: str, path: str, *, key: str = "admin", status: int = 200, **options: Any) -> Any:
    """The answer to a request with a key as mem0's clients send it."""
    headers = {"authorization": f"Token key-{key}"}
    answer = house.request(method, path, headers=headers, **options)
    assert answer.status_code == status, answer.text
    return answer.json()


def keep(house: Any, *texts: str, key: str = "admin", **fields: Any) -> list[str]:
    """The ids of texts that are kept as they are."""
    body = {"messages": [{"role": "user", "content": text} for text in texts], "infer": False, **fields}
    made = ask(house, "POST", "/v3/memories/add/", key=key, json=body)["results"]
    assert [(one["event"], one["memory"]) for one in made] == [("ADD", text) for text in texts]
    return [one["id"] for one in made]


def learn(house: Any, text: str, *, key: str = "admin", **fields: Any) -> list[tuple[str, str]]:
    """What was learned of a text: events, each with its memory."""
    body = {"messages": [{"role": "user", "content": text}], **fields}
    made = ask(house, "POST", "/v3/memories/add/", key=key, json=body)["results"]
    assert all(one["data"] == {"memory": one["memory"]} for one in made)
    return [(one["event"], one["memory"]) for one in made]


def listed(house: Any, filters: Any, *, key: str = "admin", **body: Any) -> list[str]:
    """The texts of the memories that pass, oldest first."""
    page = ask(house, "POST", "/v3/memories/", key=key, json={"filters": filters, **body})
    return [one["memory"] for one in page["results"]][::-1]


# --- keys and errors -------------------------------------------------------------------------------


def test_a_token_is_a_key_on_these_routes_only(keyed: Any) -> None:
    token = {"authorization": "Token key-admin"}
    for path in ("/v1/ping/", "/v1/entities/", "/memories?user_id=nobody"):
        assert keyed.request("GET", path, headers=token).status_code == 200
        assert keyed.request("GET", path, key="key-admin").status_code == 200
    assert keyed.request("GET", "/v1/memories", headers=token).status_code == 401
    assert keyed.request("POST", "/retrieval", headers=token, json={}).status_code == 401
    for header in ("Token nope", "Token", "Basic key-admin"):
        answer = keyed.request("GET", "/v1/ping/", headers={"authorization": header})
        assert answer.status_code == 401
        assert answer.json()["detail"] == answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", "/v3/memories/add/", {"messages": [{"content": "a"}]}, "user_id"),
        ("POST", "/v3/memories/add/", {"messages": [], "user_id": "u"}, "messages"),
        ("POST", "/v3/memories/add/", {"messages": [{"content": [{"type": "image_url"}]}]}, "messages[0].content"),
        ("POST", "/v3/memories/add/", {"messages": [{"content": "a"}], "user_id": "*"}, "user_id"),
        ("POST", "/v3/memories/add/", {"user_id": "u", "custom_instructions": "x"}, "custom_instructions"),
        ("POST", "/v3/memories/add/", {"user_id": "u", "messages": [{"content": "a"}], "immutable": True}, "immutable"),
        (
            "POST", "/v3/memories/add/",
            {"messages": [{"content": "a"}], "user_id": "u", "expiration_date": "soon"}, "expiration_date",
        ),
        (
            "POST", "/v3/memories/add/",
            {"messages": [{"content": "a"}], "user_id": "u", "filters": {"user_id": "v"}}, "filters.user_id",
        ),
        (
            "POST", "/v3/memories/add/",
            {"messages": [{"content": "a"}], "filters": {"metadata": {}}}, "filters.metadata",
        ),
        (
            "POST", "/v3/memories/add/",
            {"messages": [{"content": "a"}], "user_id": "u", "metadata": {"extracted_by": "x"}},
            "metadata.extracted_by",
        ),
        (
            "POST", "/v3/memories/add/",
            {"messages": [{"content": "a"}], "user_id": "u", "metadata": {"$a": 1}}, "metadata",
        ),
        (
            "POST", "/v3/memories/add/",
            {"messages": [{"content": "a"}], "user_id": "u", "categories": ["a"] * 65}, "categories",
        ),
        (
            "POST", "/v3/memories/add/",
            {"messages": [{"content": "a"}], "filters": {"app_id": "a\x00"}}, "filters.app_id",
        ),
        (
            "POST", "/v3/memories/add/",
            {"messages": [{"content": "a"}, {"content": " "}], "user_id": "u", "infer": False}, "messages[1].content",
        ),
        ("POST", "/v3/memories/", {"filters": {"keywords": {"icontains": "a"}}}, "filters.keywords"),
        ("POST", "/v3/memories/", {"filters": {"AND": [{"updated_at": "2024"}]}}, "filters.AND[0].updated_at"),
        ("POST", "/v3/memories/", {"filters": {"colour": "red"}}, "filters.colour"),
        ("POST", "/v3/memories/", {"filters": {"user_id": {"icontains": "a"}}}, "filters.user_id.icontains"),
        ("POST", "/v3/memories/", {"filters": {"user_id": {"in": "a"}}}, "filters.user_id.in"),
        ("POST", "/v3/memories/", {"filters": {"user_id": {"eq": ["a"]}}}, "filters.user_id.eq"),
        ("POST", "/v3/memories/", {"filters": {"created_at": {"gt": "soon"}}}, "filters.created_at"),
        ("POST", "/v3/memories/", {"filters": {"metadata": "red"}}, "filters.metadata"),
        ("POST", "/v3/memories/", {"filters": {"NOT": {"metadata": {"n": {"gt": 1}}}}}, "filters.NOT.metadata.n.gt"),
        ("POST", "/v3/memories/", {"filters": {"AND": ["x"]}}, "filters.AND[0]"),
        ("POST", "/v3/memories/", {"filters": {"OR": [{"user_id": "u"}] * 1_001}}, "filters.OR"),
        ("POST", "/v3/memories/", {"filters": {"run_id": ["r"] * 10_001}}, "filters.run_id"),
        ("POST", "/v3/memories/", {"filters": {"app_id": {"in": ["a"] * 10_001}}}, "filters.app_id.in"),
        ("POST", "/v3/memories/", {"page": 0}, "page"),
        ("POST", "/v3/memories/", {"show_expired": True}, "show_expired"),
        ("POST", "/v3/memories/", {"latest_only": False}, "latest_only"),
        ("PUT", "/v1/memories/nope/", {"timestamp": "soon"}, "timestamp"),
        ("POST", "/v3/memories/search/", {"query": "a", "top_k": 0}, "top_k"),
        ("POST", "/v3/memories/search/", {"query": "a", "reference_date": "2024-01-01"}, "reference_date"),
        ("POST", "/v3/memories/search/", {"query": "a", "fields": ["colour"]}, "fields[0]"),
        ("PUT", "/v1/memories/nope/", {}, "text"),
        ("DELETE", "/v1/memories/", None, "user_id"),
        ("DELETE", "/v1/memories/?user_id=ada&categories=food", None, "categories"),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_named(keyed: Any, method: str, path: str, body: Any, field: str) -> None:
    answer = ask(keyed, method, path, status=400, json=body)
    assert answer["error"]["param"] == field
    assert answer["detail"] == answer["error"]["message"]


def test_an_unknown_memory_is_404(keyed: Any) -> None:
    for method, path in (("GET", ""), ("PUT", ""), ("DELETE", ""), ("GET", "history/")):
        body = {"text": "a"} if method == "PUT" else None
        assert ask(keyed, method, f"/v1/memories/nope/{path}", status=404, json=body)["detail"]


# --- texts -----------------------------------------------------------------------------------------


def test_a_text_is_kept_found_changed_and_deleted(keyed: Any) -> None:
    (id_,) = keep(
        keyed, "the kettle is green", user_id="mara", agent_id="cook", app_id="shop", run_id="r1",
        categories=["kitchen"], metadata={"price": 5}, timestamp=1_700_000_000, expiration_date="2999-12-31",
    )  # fmt: skip
    got = ask(keyed, "GET", f"/v1/memories/{id_}/")
    assert {name: got[name] for name in ("memory", "user_id", "agent_id", "app_id", "run_id")} == {
        "memory": "the kettle is green", "user_id": "mara", "agent_id": "cook", "app_id": "shop", "run_id": "r1",
    }  # fmt: skip
    assert (got["metadata"], got["categories"]) == ({"price": 5}, ["kitchen"])
    assert (got["created_at"], got["expiration_date"]) == ("2023-11-14T22:13:20Z", "2999-12-31")
    body = {
        "query": "green kettle",
        "filters": {"AND": [{"user_id": "mara"}, {"run_id": "r1"}]},
        "threshold": 0,
    }
    (hit,) = ask(keyed, "POST", "/v3/memories/search/", json=body)["results"]
    assert hit["id"] == id_
    assert 0 < hit["score"] <= 1
    (few,) = ask(keyed, "POST", "/v3/memories/search/", json={**body, "fields": ["id", "memory"]})["results"]
    assert few == {"id": id_, "memory": "the kettle is green"}
    changes = {"text": "the kettle is red", "metadata": {"sold": True}}
    changed = ask(keyed, "PUT", f"/v1/memories/{id_}/", json=changes)
    assert (changed["memory"], changed["metadata"], changed["app_id"]) == (
        "the kettle is red", {"sold": True}, "shop",
    )  # fmt: skip
    (step,) = ask(keyed, "GET", f"/v1/memories/{id_}/history/")
    assert (step["event"], step["new_memory"], step["old_memory"]) == ("ADD", "the kettle is red", None)
    assert ask(keyed, "DELETE", f"/v1/memories/{id_}/") == {"message": "Memory deleted successfully!"}
    ask(keyed, "GET", f"/v1/memories/{id_}/", status=404)


def test_the_same_text_again_is_no_event(keyed: Any) -> None:
    (id_,) = keep(keyed, "said twice", user_id="again")
    body = {"messages": [{"content": "said twice"}], "infer": False, "user_id": "again"}
    (event,) = ask(keyed, "POST", "/v3/memories/add/", json=body)["results"]
    assert (event["id"], event["event"]) == (id_, "NONE")


def test_pages_say_how_many_there_are_and_where_the_next_is(keyed: Any) -> None:
    keep(keyed, *(f"note {n}" for n in range(5)), user_id="pages")
    seen, path = [], "/v3/memories/?page=1&page_size=2"
    while path is not None:
        page = ask(keyed, "POST", path, json={"filters": {"user_id": "pages"}})
        assert page["count"] == 5
        seen.append([one["memory"] for one in page["results"]])
        path = page["next"]
    assert seen == [["note 4", "note 3"], ["note 2", "note 1"], ["note 0"]]
    assert "page=2" in page["previous"]
    beyond = ask(keyed, "POST", "/v3/memories/?page=9&page_size=2", json={"filters": {"user_id": "pages"}})
    assert beyond["results"] == []


def test_several_are_changed_or_none(keyed: Any) -> None:
    one, two = keep(keyed, "first", "second", user_id="batch")
    body = {"memories": [{"memory_id": one, "text": "1st"}, {"memory_id": "nope", "text": "x"}]}
    ask(keyed, "PUT", "/v1/batch/", status=404, json=body)
    assert listed(keyed, {"user_id": "batch"}) == ["first", "second"]
    body["memories"][1]["memory_id"] = two
    ask(keyed, "PUT", "/v1/batch/", json=body)
    assert listed(keyed, {"user_id": "batch"}) == ["1st", "x"]
    ask(keyed, "DELETE", "/v1/batch/", json={"memories": [{"memory_id": one}, {"memory_id": two}]})
    assert listed(keyed, {"user_id": "batch"}) == []


def test_names_hold_slashes(keyed: Any) -> None:
    body = {"content": "an id of ours", "id": "car/1", "user_id": "org/alice"}
    assert keyed.request("POST", "/v1/memories", key="key-admin", json=body).status_code == 200
    for path in ("/v1/memories/car%2F1/", "/memories/car%2F1"):
        assert ask(keyed, "GET", path)["user_id"] == "org/alice"
    assert ask(keyed, "GET", "/v1/memories/car%2F1/history/")[0]["memory_id"] == "car/1"
    ask(keyed, "DELETE", "/v2/entities/user/org%2Falice/")
    ask(keyed, "GET", "/v1/memories/car%2F1/", status=404)


# --- filters ---------------------------------------------------------------------------------------

ROWS = {
    "u": {"user_id": "u", "categories": ["food"], "metadata": {"n": 1}, "timestamp": 1_704_067_200},
    "ua": {"user_id": "u", "agent_id": "a", "categories": ["food", "home"], "metadata": {"n": 2}},
    "v": {"user_id": "v", "app_id": "p", "metadata": {"n": 3, "colour": "red"}},
    "ur": {"user_id": "u", "run_id": "r", "timestamp": 1_717_200_000},
}
"""Memories by their texts. The first is of 2024-01-01, the last of 2024-06-01."""
ANY = {"OR": [{"user_id": "*"}]}


@pytest.fixture(scope="module")
def filtered(houses: Any) -> Any:
    house = houses(keys=KEYS)
    for text, fields in ROWS.items():
        keep(house, text, **fields)
    return house


@pytest.mark.parametrize(
    ("filters", "texts"),
    [
        ({"user_id": "u"}, "u ua ur"),
        ({"AND": [{"user_id": "u"}, {"agent_id": "a"}]}, "ua"),
        ({"user_id": "u", "agent_id": "a"}, "ua"),
        ({"OR": [{"agent_id": "a"}, {"app_id": "p"}]}, "ua v"),
        ({"AND": [{"user_id": {"in": ["u", "v"]}}, {"NOT": [{"agent_id": "a"}, {"run_id": "r"}]}]}, "u v"),
        ({"NOT": {"OR": [{"user_id": "v"}, {"run_id": "r"}]}}, "u ua"),
        ({"NOT": {"NOT": {"AND": [{"user_id": "u"}, {"run_id": "r"}]}}}, "ur"),
        ({"AND": [{"user_id": "u"}, {"run_id": "*"}]}, "ur"),
        ({"AND": [{"user_id": "*"}, {"NOT": {"run_id": "*"}}]}, "u ua v"),
        ({"AND": [{"user_id": "*"}, {"agent_id": {"ne": "a"}}]}, "u v ur"),
        ({"run_id": {"ne": "r"}}, "u ua v"),
        ({"categories": {"in": ["home", "x"]}}, "ua"),
        ({"categories": {"contains": "food"}}, "u ua"),
        ({"AND": [ANY, {"NOT": {"categories": {"in": ["food"]}}}]}, "v ur"),
        ({"metadata": {"n": 1}}, "u"),
        ({"metadata": {"n": {"gte": 2}, "colour": {"ne": "red"}}}, "ua"),
        ({"metadata": {"colour": "*"}}, "v"),
        ({"created_at": {"gte": "2024-01-01", "lt": "2024-02-01T00:00:00Z"}}, "u"),
        ({"AND": [{"user_id": "u"}, {"NOT": {"created_at": {"lt": "2024-03-01"}}}]}, "ua ur"),
        ({"timestamp": {"lte": 1_704_067_200}}, "u"),
        ({"OR": []}, ""),
    ],
    ids=str,
)
def test_filters(filtered: Any, filters: dict[str, Any], texts: str) -> None:
    assert set(listed(filtered, filters)) == set(texts.split())
    body = {"query": "u ua v ur", "filters": filters, "threshold": 0, "top_k": 50}
    found = ask(filtered, "POST", "/v3/memories/search/", json=body)["results"]
    assert {one["memory"] for one in found} == set(texts.split())


def test_categories_and_dates_beside_filters(filtered: Any) -> None:
    assert listed(filtered, {"user_id": "u"}, categories=["home", "x"]) == ["ua"]
    assert listed(filtered, {"user_id": "u"}, end_date="2024-02-01T00:00:00Z") == ["u"]
    assert listed(filtered, None, agent_id="a") == ["ua"]


def test_a_day_as_an_upper_bound_is_included(houses: Any) -> None:
    house = houses(keys=KEYS)
    for hour in (0, 12, 24):  # of 2024-06-01
        keep(house, f"at {hour}", user_id="w", timestamp=1_717_200_000 + 3_600 * hour)
    day = "2024-06-01"
    assert listed(house, {"user_id": "w", "timestamp": {"lte": day}}) == ["at 0", "at 12"]
    assert listed(house, {"user_id": "w", "timestamp": {"gt": day}}) == ["at 24"]
    assert listed(house, {"user_id": "w", "timestamp": {"lt": day}}) == []
    assert listed(house, {"user_id": "w"}, end_date=day) == ["at 0", "at 12"]


def test_entities_are_listed(filtered: Any) -> None:
    found = ask(filtered, "GET", "/v1/entities/")
    counts = {(one["type"], one["name"]): one["total_memories"] for one in found["results"]}
    assert counts == {("user", "u"): 3, ("user", "v"): 1, ("agent", "a"): 1, ("app", "p"): 1, ("run", "r"): 1}
    assert found["count"] == 5
    assert (
        ask(filtered, "GET", "/v1/entities/", key="app", status=400)["error"]["param"] == "x-memoranda-user"
    )


# --- who sees what ---------------------------------------------------------------------------------


def test_a_key_sees_what_its_role_allows(keyed: Any) -> None:
    keep(keyed, "of ada", user_id="ada", key="app")
    keep(keyed, "of ben", user_id="ben", key="ben")
    assert listed(keyed, {"user_id": "ada"}, key="app") == ["of ada"]
    assert listed(keyed, {"user_id": "ada"}, key="ben") == []
    assert listed(keyed, {"user_id": "*"}, key="ben") == ["of ben"]
    assert listed(keyed, {"user_id": "ada"}, key="other") == []
    body = {"filters": {"user_id": "*"}}
    assert (
        ask(keyed, "POST", "/v3/memories/", key="app", status=400, json=body)["error"]["param"] == "filters"
    )
    add = {"messages": [{"content": "x"}], "user_id": "ada"}
    ask(keyed, "POST", "/v3/memories/add/", key="ben", status=403, json=add)
    ask(keyed, "POST", "/v3/memories/add/", key="reader", status=403, json=add)
    assert ask(keyed, "DELETE", "/v1/memories/?user_id=ada", key="ben")["message"]
    assert listed(keyed, {"user_id": "ada"}, key="ada") == ["of ada"]


# --- facts -----------------------------------------------------------------------------------------


GREEN, BLUE = "The user's favourite colour is green", "The user's favourite colour is blue"


def test_facts_are_learned_superseded_and_erased(houses: Any, tmp_path: Path) -> None:
    def fact(text: str, **fields: Any) -> dict[str, str]:
        return {"text": json.dumps({"facts": [{"text": text, "messages": [1]} | fields]})}

    path = tmp_path / "script.json"
    blue = fact(BLUE, op="replaces F1", quote="my favourite colour is blue")
    path.write_text(json.dumps([fact(GREEN), fact(GREEN, op="same F1"), blue, fact(BLUE, op="same F1")]))
    house = houses(keys=KEYS, model={"url": f"scripted:{path}"})
    who = {"user_id": "nora", "run_id": "kitchen-talk"}
    fields = {"metadata": {"form": 7}, "categories": ["taste"]}
    assert learn(house, "My favourite colour is green.", **who, **fields) == [("ADD", GREEN)]
    (green,) = ask(house, "POST", "/v3/memories/", json={"filters": who})["results"]
    assert (green["user_id"], green["run_id"], green["metadata"]) == ("nora", "kitchen-talk", {"form": 7})
    assert "taste" in green["categories"]
    assert learn(house, "My favourite colour is green.", user_id="nora") == [("NONE", GREEN)]
    again = learn(house, "My favourite colour is blue.", user_id="nora")
    assert again == [("ADD", BLUE), ("DELETE", GREEN)]
    assert learn(house, "My favourite colour is blue.", user_id="nora") == [("NONE", BLUE)]
    assert listed(house, {"user_id": "nora"}) == [BLUE]
    steps = ask(house, "GET", f"/v1/memories/{green['id']}/history/")
    assert [(one["event"], one["old_memory"]) for one in steps] == [("ADD", None), ("UPDATE", GREEN)]
    ask(house, "DELETE", "/v2/entities/user/nora/")
    assert listed(house, {"user_id": "nora"}) == []
    left = house.request("GET", "/v1/memories", key="key-admin", params={"scopes": "user:nora"}).json()[
        "data"
    ]
    assert left == [], "the messages went with what was learned from them"


def test_as_many_categories_as_are_kept_fit_beside_tags_of_a_fact(keyed: Any) -> None:
    categories = [f"category {number}" for number in range(64)]
    assert learn(keyed, "My favourite colour is red.", user_id="otto", categories=categories)
    (fact,) = ask(keyed, "POST", "/v3/memories/", json={"filters": {"user_id": "otto"}})["results"]
    assert set(fact["categories"]) == set(categories)


def test_users_of_one_application_do_not_share_a_conversation(keyed: Any) -> None:
    learn(keyed, "I live in Munich.", user_id="x1", app_id="shared")
    learn(keyed, "I live in Berlin.", user_id="x2", app_id="shared")
    sessions = keyed.request("GET", "/v1/sessions?limit=1000", key="key-admin").json()["data"]
    mine = [one for one in sessions if one["channel_id"] and "app=shared" in one["channel_id"]]
    assert sorted(one["user_id"] for one in mine) == ["x1", "x2"]
    assert len(listed(keyed, {"app_id": "shared"})) == 2
    ask(keyed, "DELETE", "/v2/entities/app/shared/")
    assert listed(keyed, {"app_id": "shared"}) == []


def test_what_teaches_nothing_has_no_events(keyed: Any) -> None:
    assert learn(keyed, "What time is it?", user_id="nothing") == []


def test_messages_are_kept_when_the_model_does_not_answer(houses: Any) -> None:
    house = houses(keys=KEYS, model={"url": "http://127.0.0.1:9/v1", "name": "away", "retries": 0})
    body = {"messages": [{"content": "I live in Munich."}], "user_id": "mara", "run_id": "r"}
    failure = ask(house, "POST", "/v3/memories/add/", status=503, json=body)
    assert failure["error"]["code"] == "model_unavailable"
    said = house.request("GET", "/v1/sessions/r/messages", key="key-admin").json()["data"]
    assert [one["content"] for one in said] == ["I live in Munich."]


# --- the self-hosted server ------------------------------------------------------------------------


def test_the_paths_of_the_self_hosted_server(keyed: Any) -> None:
    body = {"messages": [{"role": "user", "content": "the lamp is blue"}], "user_id": "home", "infer": False}
    id_ = ask(keyed, "POST", "/memories", json=body)["results"][0]["id"]
    assert [one["id"] for one in ask(keyed, "GET", "/memories?user_id=home")["results"]] == [id_]
    assert ask(keyed, "GET", f"/memories/{id_}")["memory"] == "the lamp is blue"
    found = ask(keyed, "POST", "/search", json={"query": "lamp", "user_id": "home", "threshold": 0})
    assert [one["id"] for one in found["results"]] == [id_]
    assert (
        ask(keyed, "PUT", f"/memories/{id_}", json={"text": "the lamp is red"})["memory"] == "the lamp is red"
    )
    assert ask(keyed, "GET", f"/memories/{id_}/history")[0]["new_memory"] == "the lamp is red"
    ask(keyed, "DELETE", f"/memories/{id_}")
    ask(keyed, "DELETE", "/memories?user_id=home")
    assert ask(keyed, "GET", "/memories?user_id=home")["results"] == []


# --- other clients ---------------------------------------------------------------------------------


def test_unknown_fields_are_ignored_and_counted(houses: Any) -> None:
    house = houses(keys=KEYS)
    message = {"content": "the kettle is green", "source": "CLI"}
    add = {"messages": [message], "infer": False, "user_id": "u", "source": "CLI", "org_id": "o"}
    ask(house, "POST", "/v3/memories/add/?source=CLI", json=add)
    search = {"query": "kettle", "filters": {"user_id": "u"}, "threshold": 0, "output_format": "v1.1"}
    path = "/v3/memories/search/?a%20text%20of%20mine=1"
    assert ask(house, "POST", path, json={**search, "source": "CLI"})["results"]
    ask(house, "DELETE", "/v1/memories/?user_id=u&org_id=o")
    counted = [
        line
        for line in house.request("GET", "/metrics", key="key-admin").text.splitlines()
        if line.startswith("memoranda_ignored_fields_total")
    ]
    assert sorted(counted) == [
        'memoranda_ignored_fields_total{api="mem0",field="org_id"} 1.0',
        'memoranda_ignored_fields_total{api="mem0",field="other"} 1.0',
        'memoranda_ignored_fields_total{api="mem0",field="source"} 3.0',
    ]


def test_so_many_names_of_unknown_fields_are_counted(houses: Any) -> None:
    house = houses(keys=KEYS)
    body = {"filters": {"user_id": "u"}, **{f"field_{number}": 1 for number in range(150)}}
    ask(house, "POST", "/v3/memories/", json=body)
    lines = house.request("GET", "/metrics", key="key-admin").text.splitlines()
    counts = [line for line in lines if line.startswith("memoranda_ignored_fields_total")]
    assert len(counts) == 101
    assert 'memoranda_ignored_fields_total{api="mem0",field="other"} 50.0' in counts


def test_the_paths_of_earlier_versions(keyed: Any) -> None:
    who = {"user_id": "early"}
    add = {"messages": [{"role": "user", "content": "the lamp is blue"}], "infer": False, **who}
    beside = {"org_id": "o", "project_id": "p", "output_format": "v1.1", "version": "v2", "async_mode": True}
    made = ask(keyed, "POST", "/v1/memories/", json={**add, **beside})
    id_ = made["results"][0]["id"]
    query = {"query": "lamp", "threshold": 0}
    for path, named in (("/v1/memories/search/", who), ("/v2/memories/search/", {"filters": who})):
        (hit,) = ask(keyed, "POST", path, json={**query, **named})
        assert hit["id"] == id_
        (hit,) = ask(keyed, "POST", path, json={**query, **named, "output_format": "v1.1"})["results"]
        assert hit["id"] == id_
    assert [one["id"] for one in ask(keyed, "GET", "/v1/memories/?user_id=early&org_id=o")] == [id_]
    assert [one["id"] for one in ask(keyed, "POST", "/v2/memories/", json={"filters": who})] == [id_]
    for method, path, body in (
        ("GET", "/v1/memories/?user_id=early&page=1&page_size=1", None),
        ("POST", "/v2/memories/?page=1&page_size=1", {"filters": who}),
    ):
        page = ask(keyed, method, path, json=body)
        assert (page["count"], [one["id"] for one in page["results"]]) == (1, [id_])


# --- events ----------------------------------------------------------------------------------------


def test_an_event_says_what_became_of_texts(keyed: Any) -> None:
    body = {"messages": [{"content": text} for text in ("one of two", "two of two")], "infer": False}
    made = ask(keyed, "POST", "/v3/memories/add/", key="app", json={**body, "user_id": "ada"})
    keep(keyed, "another one", user_id="ada")
    for key in ("admin", "app", "ada"):
        event = ask(keyed, "GET", f"/v1/event/{made['event_id']}/", key=key)
        assert (event["id"], event["status"]) == (made["event_id"], "SUCCEEDED")
        assert event["results"] == made["results"]
    for key in ("other", "ben"):
        ask(keyed, "GET", f"/v1/event/{made['event_id']}/", key=key, status=404)
        listed = ask(keyed, "GET", "/v1/events/", key=key)["results"]
        assert made["event_id"] not in [one["id"] for one in listed]
    newest, before = ask(keyed, "GET", "/v1/events/", key="ada")["results"][:2]
    assert ([one["memory"] for one in newest["results"]], before) == (["another one"], event)
    param = ask(keyed, "GET", "/v1/events/", key="app", status=400)["error"]["param"]
    assert param == "x-memoranda-user"
    ask(keyed, "GET", "/v1/event/nope/", status=404)


def test_an_event_says_what_became_of_messages(keyed: Any) -> None:
    said = [{"content": "I live in Munich."}, {"content": "Nice.", "role": "assistant"}]
    made = ask(keyed, "POST", "/v3/memories/add/", key="app", json={"messages": said, "user_id": "ada"})
    event = ask(keyed, "GET", f"/v1/event/{made['event_id']}/", key="ada")
    assert (event["status"], event["results"]) == ("SUCCEEDED", made["results"])
    assert [one["event"] for one in event["results"]] == ["ADD"]
    assert event in ask(keyed, "GET", "/v1/events/", key="ada")["results"]
    for key in ("other", "ben"):
        ask(keyed, "GET", f"/v1/event/{made['event_id']}/", key=key, status=404)


def test_events_are_of_texts_of_any_place(houses: Any) -> None:
    house = houses(keys=KEYS)
    keep(house, "of an agent", agent_id="cook")
    keep(house, "of an application", app_id="shop", key="ada")
    for kind in ("note", "message"):
        body = {"content": f"{kind} of a channel", "channel_id": "general", "kind": kind}
        assert house.request("POST", "/v1/memories", key="key-admin", json=body).status_code == 200
    listed = ask(house, "GET", "/v1/events/")["results"]
    assert [[one["memory"] for one in event["results"]] for event in listed] == [
        ["note of a channel"], ["of an application"], ["of an agent"],
    ]  # fmt: skip


def test_an_event_waits_for_the_model(houses: Any) -> None:
    house = houses(keys=KEYS, model={"url": "http://127.0.0.1:9/v1", "name": "away", "retries": 0})
    body = {"messages": [{"content": "I live in Munich."}], "user_id": "mara", "run_id": "r"}
    ask(house, "POST", "/v3/memories/add/", status=503, json=body)
    (event,) = ask(house, "GET", "/v1/events/")["results"]
    assert (event["status"], event["results"]) in (("PENDING", []), ("FAILED", []))
    assert (event["error"] is None) == (event["status"] == "PENDING")
